"""One handler for each group type, with the operations that all types have. A type's package is loaded with the first
group of that type.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from importlib import import_module
from typing import Any, ClassVar, Generic, Protocol

from groupkeeper.coordinator.kernel.group import AnyGroup, GroupType
from groupkeeper.coordinator.kernel.result import Arm, GroupCall, Immediate, Record, Released, Result
from groupkeeper.coordinator.kernel.settings import Settings
from groupkeeper.coordinator.kernel.timers import TimerKey
from groupkeeper.coordinator.kernel.topics_image import TopicsImage
from groupkeeper.native import mypyc_attr
from groupkeeper.protocol.errors import InconsistentGroupProtocol, KafkaError
from groupkeeper.protocol.messages.delete_groups_request import DeleteGroupsRequest
from groupkeeper.protocol.messages.heartbeat_request import HeartbeatRequest
from groupkeeper.protocol.messages.join_group_request import JoinGroupRequest
from groupkeeper.protocol.messages.join_group_response import JoinGroupResponse
from groupkeeper.protocol.messages.leave_group_request import LeaveGroupRequest
from groupkeeper.protocol.messages.offset_commit_request import OffsetCommitRequest
from groupkeeper.protocol.messages.offset_fetch_request import OffsetFetchRequestGroup
from groupkeeper.protocol.messages.sync_group_request import SyncGroupRequest
from groupkeeper.protocol.messages.txn_offset_commit_request import TxnOffsetCommitRequest
from groupkeeper.protocol.primitives import Message

ClassicRequest = JoinGroupRequest | SyncGroupRequest | HeartbeatRequest | LeaveGroupRequest
"""Requests of a member of the classic protocol."""

TYPE_BY_API_KEY: Mapping[int, GroupType] = {
    **dict.fromkeys((68, 69), GroupType.CONSUMER),
    **dict.fromkeys((76, 77, 91, 92), GroupType.SHARE),
    **dict.fromkeys((88, 89, 93), GroupType.STREAMS),
}
"""The group type of each API that is for a single type."""

_LOADED: dict[GroupType, TypeHandler[Any]] = {}
_BY_KEY: dict[type, TypeHandler[Any]] = {}
_OWN_RECORDS = {"Consumer": GroupType.CONSUMER, "Share": GroupType.SHARE, "Streams": GroupType.STREAMS}
"""Prefixes of Kafka's record names by type; classic groups have only GroupMetadata."""


class OffsetRules(Protocol):
    """Checks of commits, fetches and deletions of a group's offsets, and the rule of their expiration. The checks raise
    `KafkaError`, or return it, to refuse the whole request.
    """

    def check_commit(
        self, group: Any, topics: TopicsImage, call: GroupCall, request: OffsetCommitRequest
    ) -> tuple[Arm, ...]:
        """Returns the renewal of the member's session, if commits renew it."""

    def check_transaction(self, group: Any, topics: TopicsImage, request: TxnOffsetCommitRequest) -> None: ...

    def check_fetch(self, group: Any, request: OffsetFetchRequestGroup) -> KafkaError | None: ...

    def check_delete(self, group: Any) -> None: ...

    def do_offsets_age(self, group: Any) -> bool:
        """Whether the group's offsets may expire, see groupkeeper.rules.expiry."""

    def aging_since_ms(self, group: Any) -> int | None:
        """The time from which the age of all offsets of the group counts; None: from each commit."""


@mypyc_attr(allow_interpreted_subclasses=True)
class TypeHandler(Generic[AnyGroup]):
    """The operations that a group type offers to the coordinator: `HANDLER` in its module `handler` is the only one.

    Attributes:
        group_type: type of the groups that its functions take.
        head: class of the record key whose tombstone removes a group.
        offsets: the rules for committed offsets; None if groups of the type have no offsets and do not expire.
        retry_ms: when a timer expires again if the records of its operation could not be stored, as in Kafka.
    """

    group_type: ClassVar[GroupType]
    head: ClassVar[type]
    offsets: ClassVar[OffsetRules | None] = None
    retry_ms: ClassVar[int] = 500

    def new(self, group_id: str) -> AnyGroup:
        """A group before any of its records is replayed."""
        raise NotImplementedError

    def replay(self, group: AnyGroup, record: Record) -> AnyGroup:
        """The group after replaying a record of its type, often the same object. Raises `MalformedMessage` for a record
        out of order.
        """
        raise NotImplementedError

    def handle(self, state: Any, settings_of: Callable[[str], Settings], call: GroupCall, now_ms: int) -> Result:
        """Answers a request of an API of this type. Raises `KafkaError` to refuse it."""
        raise NotImplementedError

    def refuse(self, request: Message, error: KafkaError) -> Message:
        """The response to a request of an API of this type that fails as a whole."""
        raise NotImplementedError

    def handle_classic(
        self,
        group: AnyGroup | None,
        state: Any,
        settings: Settings,
        call: GroupCall,
        request: ClassicRequest,
        now_ms: int,
    ) -> Result:
        """Answers a request of the classic protocol to a group of this type. A classic group replaces an empty one; in
        any other the sender is not a member.
        """
        classic = handler_of(GroupType.CLASSIC)
        if not isinstance(request, JoinGroupRequest):
            return classic.handle_classic(None, state, settings, call, request, now_ms)
        if group is None or not self.makes_room(group):
            return Immediate(JoinGroupResponse(error_code=InconsistentGroupProtocol.code, protocol_name=None))
        result = classic.handle_classic(None, state, settings, call, request, now_ms)
        return replace(result, records=(*self.removal(group), *result.records))

    def makes_room(self, group: AnyGroup) -> bool:
        """Whether a group of another type may replace the group."""
        return not self.members(group)

    def members(self, group: AnyGroup) -> dict[str, tuple[str | None, str]]:
        """Instance and client id by member id."""
        raise NotImplementedError

    def resume(self, group: AnyGroup, settings: Settings, now_ms: int) -> Iterable[Result]:
        """The operations after a group's log is replayed: its members' sessions restart."""
        raise NotImplementedError

    def expire(self, state: Any, settings: Settings, timer: Any, now_ms: int) -> Result:
        """A timer of this type expired; meanwhile the group may have been deleted or changed its type."""
        raise NotImplementedError

    def removal(self, group: AnyGroup) -> list[Record]:
        """The records that remove the group itself; its offsets have tombstones of their own."""
        raise NotImplementedError

    def before_removal(self, state: Any, call: GroupCall, request: DeleteGroupsRequest) -> Result | None:
        """Work to do before the request's groups of this type are deleted; None: no work."""
        return None

    def remove_topics(self, state: Any, topic_ids: frozenset[bytes]) -> list[Record]:
        """The records that remove deleted topics from groups of this type; committed offsets have tombstones of their
        own.
        """
        return []

    def timers(self, group: AnyGroup) -> list[TimerKey]:
        """The timers that may be armed for a group without members."""
        return []

    def unload(self, group: AnyGroup) -> Iterable[Released]:
        """The responses to parked calls when the partition is unloaded."""
        return ()


def handler_of(group_type: GroupType) -> TypeHandler[Any]:
    """The handler of a type; its package is loaded with the first call."""
    handler = _LOADED.get(group_type)
    if handler is None:
        handler = _LOADED[group_type] = import_module(f"groupkeeper.coordinator.{group_type.value}.handler").HANDLER
    return handler


def handler_of_key(key: object) -> TypeHandler[Any]:
    """The handler of the group type to which a record with that key belongs."""
    handler = _BY_KEY.get(type(key))
    if handler is None:
        name = type(key).__name__
        own = [group_type for start, group_type in _OWN_RECORDS.items() if name.startswith(f"{start}Group")]
        handler = _BY_KEY[type(key)] = handler_of(own[0] if own else GroupType.CLASSIC)
    return handler
