"""The coordinator of the groups of one partition of `__consumer_offsets`.

A state machine without I/O, clock, random numbers or logging. `handle`, `expire`, `resume` and the like compute a
`Result` and change nothing. `replay` and `apply` change the state: the coordinator's driver calls them with the
contents of a result, in the order that `groupkeeper.coordinator.kernel.result` describes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from groupkeeper.coordinator import views
from groupkeeper.coordinator.classic import describe as classic_describe
from groupkeeper.coordinator.classic import membership as classic_membership
from groupkeeper.coordinator.classic.group import ClassicGroup, Syncing
from groupkeeper.coordinator.handlers import TYPE_BY_API_KEY, handler_of
from groupkeeper.coordinator.kernel.group import GroupType
from groupkeeper.coordinator.kernel.result import Arm, GroupCall, Immediate, Record, RegexLookup, Released, Result, Work
from groupkeeper.coordinator.kernel.settings import Settings, SettingsChange
from groupkeeper.coordinator.kernel.soft import SoftChange
from groupkeeper.coordinator.kernel.timers import OffsetExpiration, TimerKey
from groupkeeper.coordinator.offsets import commit as offsets
from groupkeeper.coordinator.offsets import expiry as offset_expiry
from groupkeeper.coordinator.refusals import refuse
from groupkeeper.coordinator.state import State, StateView
from groupkeeper.protocol.errors import KafkaError
from groupkeeper.protocol.messages.delete_groups_request import DeleteGroupsRequest
from groupkeeper.protocol.messages.describe_groups_request import DescribeGroupsRequest
from groupkeeper.protocol.messages.heartbeat_request import HeartbeatRequest
from groupkeeper.protocol.messages.join_group_request import JoinGroupRequest
from groupkeeper.protocol.messages.leave_group_request import LeaveGroupRequest
from groupkeeper.protocol.messages.list_groups_request import ListGroupsRequest
from groupkeeper.protocol.messages.offset_commit_request import OffsetCommitRequest
from groupkeeper.protocol.messages.offset_delete_request import OffsetDeleteRequest
from groupkeeper.protocol.messages.offset_fetch_request import OffsetFetchRequest
from groupkeeper.protocol.messages.sync_group_request import SyncGroupRequest
from groupkeeper.protocol.messages.txn_offset_commit_request import TxnOffsetCommitRequest
from groupkeeper.protocol.primitives import RootMessage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from groupkeeper.coordinator.share.work import ShareErrors


class Coordinator:
    """The coordinator of one partition, for the groups with an id that hashes to it."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._state = State()

    @property
    def state(self) -> StateView:
        """The state, read-only."""
        return self._state

    def settings_of(self, group_id: str) -> Settings:
        """The settings of a group: its own, else the broker's."""
        return self._state.settings_by_group.get(group_id, self._settings)

    # --- computing: none of these changes anything

    def handle(self, call: GroupCall, now_ms: int) -> Result:
        """Answers a request. A protocol error is a response too; the state is unchanged then."""
        state, settings_of = self._state, self.settings_of
        try:
            match call.request:
                case OffsetCommitRequest() as request:  # the most frequent one comes first
                    return offsets.commit(state, settings_of(request.group_id), call, request, now_ms)
                case HeartbeatRequest() | JoinGroupRequest() | SyncGroupRequest() | LeaveGroupRequest() as request:
                    group = state.groups.get(request.group_id)
                    handler = handler_of(GroupType.CLASSIC if group is None else group.group_type)
                    return handler.handle_classic(group, state, settings_of(request.group_id), call, request, now_ms)
                case OffsetFetchRequest() as request:
                    return offsets.fetch(state, request)
                case OffsetDeleteRequest() as request:
                    return offsets.delete(state, request)
                case TxnOffsetCommitRequest() as request:
                    return offsets.commit_transactional(state, settings_of(request.group_id), call, request, now_ms)
                case ListGroupsRequest() as request:
                    return views.list_groups(state, request)
                case DescribeGroupsRequest() as request:
                    return classic_describe.describe_groups(state, call, request)
                case DeleteGroupsRequest() as request:
                    return views.delete_groups(state, call, request)
                case request:
                    assert isinstance(request, RootMessage)
                    return handler_of(TYPE_BY_API_KEY[request.API_KEY]).handle(state, settings_of, call, now_ms)
        except KafkaError as error:
            return Immediate(refuse(call.request, error))

    def expire(self, timer: TimerKey, now_ms: int) -> Result:
        """Handles an expired timer. The result is empty if the timer is obsolete."""
        if isinstance(timer, OffsetExpiration):
            return offset_expiry.expire_offsets(self._state, self._settings, now_ms)
        handler = handler_of(timer.group_type)
        return handler.expire(self._state, self.settings_of(timer.group_id), timer, now_ms)

    def resume(self, now_ms: int, *, first_pass: float = 1) -> Iterator[Result]:
        """The operations after the log is replayed: all sessions restart, and the first expiration pass is due after
        this fraction of the interval between passes.
        """
        yield Result(timers=(offset_expiry.next_pass(self._settings, first_pass),))
        for group in list(self._state.groups.values()):
            yield from handler_of(group.group_type).resume(group, self.settings_of(group.group_id), now_ms)

    def regexes_resolved(
        self, group_id: str, topics_by_regex: Mapping[str, frozenset[str]] | None, now_ms: int
    ) -> Result:
        """Takes the result of a `RegexLookup`: the topics that each expression matches; None when the lookup failed."""
        from groupkeeper.coordinator.consumer import regex

        return regex.regexes_resolved(self._state, self.settings_of(group_id), group_id, topics_by_regex, now_ms)

    def share_work_due(self, work: Work) -> tuple[Work, Result]:
        """Called before a result's work: returns the part that is still needed, and a result that the driver must carry
        out first. If that result fails, the work fails too.
        """
        from groupkeeper.coordinator.share import offsets as share_offsets

        return share_offsets.work_due(self._state, work)

    def share_work_done(self, work: Work, errors: ShareErrors) -> Result:
        """Called after the share coordinator did the work of a result, except for the share-partitions in `errors`."""
        from groupkeeper.coordinator.share import offsets as share_offsets

        return share_offsets.work_done(self._state, work, errors)

    def remove_topics(self, topic_ids: Mapping[str, bytes]) -> Result:
        """Called after topics (name → id) were deleted: removes their offsets, and the groups' state about them."""
        return offset_expiry.remove_topics(self._state, topic_ids)

    def append_failed(
        self, cause: GroupCall | TimerKey | RegexLookup | Work | None, error: KafkaError, now_ms: int
    ) -> Result:
        """Called when the records of an operation could not be appended: returns the result that replaces it.

        `cause` is the call, timer, lookup or work of the operation, None for one without. `error` is the response for
        clients.
        """
        if cause is None:
            return Result()
        if isinstance(cause, RegexLookup):
            return self.regexes_resolved(cause.group_id, None, now_ms)
        if not isinstance(cause, GroupCall | TimerKey):
            waiting = cause.call
            released = () if waiting is None else (Released(waiting.call_id, refuse(waiting.request, error)),)
            return Result(released=released)
        if not isinstance(cause, GroupCall):
            if isinstance(cause, OffsetExpiration):
                return Result(timers=(offset_expiry.next_pass(self._settings),))
            return Result(timers=(Arm(cause, handler_of(cause.group_type).retry_ms),))
        if isinstance(cause.request, SyncGroupRequest):
            group = self._state.find(cause.request.group_id, ClassicGroup)
            if group is not None and isinstance(group.soft.rebalance, Syncing):
                return classic_membership.sync_failed(group, self.settings_of(group.group_id), cause, error, now_ms)
        return Result(refuse(cause.request, error))

    def unload(self) -> Result:
        """The partition moves to another broker: replies NOT_COORDINATOR to every parked call."""
        groups = self._state.groups.values()
        return Result(released=tuple(one for group in groups for one in handler_of(group.group_type).unload(group)))

    # --- changing: driven by results and by the log, nothing else

    def replay(self, record: Record, log_offset: int = -1, producer_id: int = -1) -> None:
        """Makes a record of the log part of the state; `producer_id` is −1 outside transactions."""
        self._state.replay(record, log_offset, producer_id)

    def replay_end_transaction(self, producer_id: int, *, is_commit: bool) -> None:
        """Replays a transaction marker of the log: the producer's pending offsets are committed or dropped."""
        self._state.offsets.end_transaction(producer_id, is_commit=is_commit)

    def apply(self, change: SoftChange) -> None:
        """Applies a change of the state that is not in the log."""
        if isinstance(change, SettingsChange) and change.settings is not None:
            self._settings = change.settings
        self._state.apply(change)
