"""The coordinator of the groups of one partition of `__consumer_offsets`.

A state machine without I/O, clock, chance or logging. `handle`, `expire`, `resume` and the like compute a `Result` and
change nothing; `replay` and `apply` change the state, and are called by whoever drives the coordinator with what a
result says, in the order that `groupkeeper.coordinator.kernel.result` describes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from groupkeeper.coordinator import views
from groupkeeper.coordinator.classic import membership as classic_membership
from groupkeeper.coordinator.classic.group import ClassicGroup, Syncing
from groupkeeper.coordinator.consumer import describe as consumer_describe
from groupkeeper.coordinator.consumer import membership as consumer_membership
from groupkeeper.coordinator.consumer import regex as consumer_regex
from groupkeeper.coordinator.consumer.classic_protocol import handle_membership, join
from groupkeeper.coordinator.consumer.group import ConsumerGroup
from groupkeeper.coordinator.consumer.heartbeat import heartbeat
from groupkeeper.coordinator.kernel.result import Call, Record, RegexLookup, Released, Result, Work
from groupkeeper.coordinator.kernel.settings import Settings, SettingsChange
from groupkeeper.coordinator.kernel.soft import SoftChange
from groupkeeper.coordinator.kernel.timers import (
    ConsumerTimer,
    JoinPhase,
    MemberSession,
    OffsetExpiration,
    ShareSession,
    StreamsTimer,
    SyncPhase,
    TimerKey,
)
from groupkeeper.coordinator.offsets import commit as offsets
from groupkeeper.coordinator.offsets import expiry as offset_expiry
from groupkeeper.coordinator.offsets import transactional as offsets_transactional
from groupkeeper.coordinator.refusals import refuse
from groupkeeper.coordinator.share.group import ShareGroup
from groupkeeper.coordinator.state import State, StateView
from groupkeeper.coordinator.streams.group import STREAMS_API_KEYS, StreamsGroup
from groupkeeper.protocol.errors import KafkaError, NotCoordinator
from groupkeeper.protocol.messages.consumer_group_describe_request import ConsumerGroupDescribeRequest
from groupkeeper.protocol.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from groupkeeper.protocol.messages.delete_groups_request import DeleteGroupsRequest
from groupkeeper.protocol.messages.describe_groups_request import DescribeGroupsRequest
from groupkeeper.protocol.messages.heartbeat_request import HeartbeatRequest
from groupkeeper.protocol.messages.join_group_request import JoinGroupRequest
from groupkeeper.protocol.messages.join_group_response import JoinGroupResponse
from groupkeeper.protocol.messages.leave_group_request import LeaveGroupRequest
from groupkeeper.protocol.messages.list_groups_request import ListGroupsRequest
from groupkeeper.protocol.messages.offset_commit_request import OffsetCommitRequest
from groupkeeper.protocol.messages.offset_delete_request import OffsetDeleteRequest
from groupkeeper.protocol.messages.offset_fetch_request import OffsetFetchRequest
from groupkeeper.protocol.messages.sync_group_request import SyncGroupRequest
from groupkeeper.protocol.messages.sync_group_response import SyncGroupResponse
from groupkeeper.protocol.messages.txn_offset_commit_request import TxnOffsetCommitRequest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from groupkeeper.coordinator.share.work import ShareErrors


class Coordinator:
    """One per partition; it never hears of groups whose id hashes to another one."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._state = State()

    @property
    def state(self) -> StateView:
        """Everything it knows, to read."""
        return self._state

    def settings_of(self, group_id: str) -> Settings:
        """The settings that hold for a group."""
        return self._state.settings_by_group.get(group_id, self._settings)

    # --- computing: none of these changes anything

    def handle(self, call: Call, now_ms: int) -> Result:
        """Answers a request. An error of the protocol is an answer as well; it comes without changes."""
        try:
            return self._handle(call, now_ms)
        except KafkaError as error:
            return Result(refuse(call.request, error))

    def _handle(self, call: Call, now_ms: int) -> Result:
        state, settings_of = self._state, self.settings_of
        match call.request:
            case HeartbeatRequest() | SyncGroupRequest() | LeaveGroupRequest() as request:
                return handle_membership(state, settings_of(request.group_id), call, request, now_ms)
            case ConsumerGroupHeartbeatRequest() as request:
                return heartbeat(state, settings_of(request.group_id), call, request, now_ms)
            case OffsetCommitRequest() as request:
                return offsets.commit(state, settings_of(request.group_id), call, request, now_ms)
            case OffsetFetchRequest() as request:
                return offsets.fetch(state, request)
            case JoinGroupRequest() as request:
                return join(state, settings_of(request.group_id), call, request, now_ms)
            case OffsetDeleteRequest() as request:
                return offsets.delete(state, request)
            case TxnOffsetCommitRequest() as request:
                return offsets_transactional.commit_transactional(
                    state, settings_of(request.group_id), call, request, now_ms
                )
            case _:
                return self._handle_listing(call, now_ms)

    def _handle_listing(self, call: Call, now_ms: int) -> Result:
        match call.request:
            case ListGroupsRequest() as request:
                return views.list_groups(self._state, request)
            case DescribeGroupsRequest() as request:
                return views.describe_groups(self._state, call, request)
            case ConsumerGroupDescribeRequest() as request:
                return consumer_describe.describe_consumer_groups(self._state, self._settings, request)
            case DeleteGroupsRequest() as request:
                return views.delete_groups(self._state, call, request)
        if getattr(call.request, "API_KEY", None) in STREAMS_API_KEYS:
            from groupkeeper.coordinator.streams import requests as streams_requests

            return streams_requests.handle(self._state, self.settings_of, call, now_ms)
        from groupkeeper.coordinator.share import requests as share_requests

        return share_requests.handle(self._state, self.settings_of, call, now_ms)

    def expire(self, timer: TimerKey, now_ms: int) -> Result:
        """A timer ran out. One that lost its meaning meanwhile gives an empty result."""
        if isinstance(timer, OffsetExpiration):
            return offset_expiry.expire_offsets(self._state, self._settings, now_ms)
        settings = self.settings_of(timer.group_id)
        if isinstance(timer, ConsumerTimer):
            return consumer_membership.timer_expired(self._state, settings, timer, now_ms)
        if isinstance(timer, ShareSession):
            from groupkeeper.coordinator.share.heartbeat import session_expired

            return session_expired(self._state, settings, timer, now_ms)
        if isinstance(timer, StreamsTimer):
            from groupkeeper.coordinator.streams.heartbeat import timer_expired

            return timer_expired(self._state, settings, timer, now_ms)
        group = self._state.classic_group(timer.group_id)
        if group is None:
            return Result()
        match timer:
            case MemberSession(member_id=member_id):
                return classic_membership.session_expired(group, settings, member_id, now_ms)
            case JoinPhase():
                return classic_membership.join_phase_expired(group, settings, now_ms)
            case SyncPhase():
                return classic_membership.sync_phase_expired(group, settings, now_ms)

    def resume(self, now_ms: int, *, first_pass: float = 1) -> Iterator[Result]:
        """What to do once the log is replayed: sessions and the expiration pass start afresh; the first one
        after this share of the interval between them.
        """
        yield Result(timers=(offset_expiry.next_pass(self._settings, first_pass),))
        for group in list(self._state.groups.values()):
            if isinstance(group, ClassicGroup):
                yield from classic_membership.resume_group(group, self.settings_of(group.group_id), now_ms)
            elif isinstance(group, ShareGroup):
                from groupkeeper.coordinator.share.heartbeat import resume_group

                yield resume_group(group, self.settings_of(group.group_id))
            elif isinstance(group, StreamsGroup):
                from groupkeeper.coordinator.streams import heartbeat as streams_group_heartbeat

                yield streams_group_heartbeat.resume_group(group, self.settings_of(group.group_id))
            else:
                yield consumer_membership.resume_group(group, self.settings_of(group.group_id))

    def regexes_resolved(
        self, group_id: str, topics_by_regex: Mapping[str, frozenset[str]] | None, now_ms: int
    ) -> Result:
        """What the regular expressions of a `RegexLookup` match; None when it couldn't be found out."""
        group = self._state.groups.get(group_id)
        if not isinstance(group, ConsumerGroup):
            return Result()
        settings = self.settings_of(group_id)
        return consumer_regex.regexes_resolved(group, settings, self._state.topics, topics_by_regex, now_ms)

    def share_work_done(self, work: Work, errors: ShareErrors) -> Result:
        """The share coordinator did what a result asked for, but for the share-partitions with an error."""
        from groupkeeper.coordinator.share import requests as share_requests

        return share_requests.work_done(self._state, work, errors)

    def _lookup_failed(self, group_id: str) -> Result:
        group = self._state.groups.get(group_id)
        return consumer_regex.lookup_failed(group) if isinstance(group, ConsumerGroup) else Result()

    def remove_topics(self, topic_ids: Mapping[str, bytes]) -> Result:
        """Topics were deleted, given by name with their id: their offsets go too."""
        return offset_expiry.remove_topics(self._state, topic_ids)

    def append_failed(
        self, cause: Call | TimerKey | RegexLookup | Work | None, error: KafkaError, now_ms: int
    ) -> Result:
        """The records of an operation are not in the log, so nothing of it has happened; what happens instead.

        `cause` is the call, timer, lookup or work of the operation, None for one without. `error` is the answer for
        clients.
        """
        if cause is None:
            return Result()
        if isinstance(cause, RegexLookup):
            return self._lookup_failed(cause.group_id)
        if not isinstance(cause, Call | TimerKey):
            waiting = cause.call
            released = () if waiting is None else (Released(waiting.call_id, refuse(waiting.request, error)),)
            return Result(released=released)
        if not isinstance(cause, Call):
            if isinstance(cause, OffsetExpiration):
                return Result(timers=(offset_expiry.next_pass(self._settings),))
            if isinstance(cause, ConsumerTimer):
                return Result(timers=(consumer_membership.retry_timer(cause),))
            if isinstance(cause, ShareSession):
                from groupkeeper.coordinator.share.heartbeat import retry_timer

                return Result(timers=(retry_timer(cause),))
            if isinstance(cause, StreamsTimer):
                from groupkeeper.coordinator.streams import heartbeat as streams_group_heartbeat

                return Result(timers=(streams_group_heartbeat.retry_timer(cause),))
            return Result(timers=(classic_membership.retry_timer(cause),))
        if isinstance(cause.request, SyncGroupRequest):
            group = self._state.classic_group(cause.request.group_id)
            if group is not None and isinstance(group.soft.rebalance, Syncing):
                return classic_membership.sync_failed(group, self.settings_of(group.group_id), cause, error, now_ms)
        return Result(refuse(cause.request, error))

    def unload(self) -> Result:
        """The partition moves away: everything parked is answered NOT_COORDINATOR."""
        released: list[Released] = []
        for group in self._state.groups.values():
            rebalance = group.soft.rebalance if isinstance(group, ClassicGroup) else None
            if rebalance is None:
                continue
            answer = (
                SyncGroupResponse(error_code=NotCoordinator.code)
                if isinstance(rebalance, Syncing)
                else JoinGroupResponse(error_code=NotCoordinator.code, protocol_name=None)
            )
            for calls in rebalance.waiting.values():
                released.extend(Released(call_id, answer) for call_id in calls)
        return Result(released=tuple(released))

    # --- changing: driven by results and by the log, nothing else

    def replay(self, record: Record, log_offset: int = -1, producer_id: int = -1) -> None:
        """Makes a record of the log part of the state; `producer_id` is −1 outside transactions."""
        self._state.replay(record, log_offset, producer_id)

    def replay_end_transaction(self, producer_id: int, *, is_commit: bool) -> None:
        """Replays a transaction marker of the log."""
        self._state.replay_end_transaction(producer_id, is_commit=is_commit)

    def apply(self, change: SoftChange) -> None:
        """Takes over a change of what is not in the log."""
        if isinstance(change, SettingsChange) and change.settings is not None:
            self._settings = change.settings
        self._state.apply(change)
