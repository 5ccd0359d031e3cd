"""Drives one group coordinator: its partition's log, its timers, and its parked calls."""

from __future__ import annotations

import asyncio
from logging import getLogger
from time import perf_counter_ns
from typing import ClassVar, Final

from groupkeeper.broker.coordination.shard_host import Shard
from groupkeeper.broker.coordination.shard_log import CODECS
from groupkeeper.broker.coordination.timers import TimerTable
from groupkeeper.broker.coordination.topics_view import match_topics
from groupkeeper.coordinator.coordinator import Coordinator
from groupkeeper.coordinator.handlers import handler_of
from groupkeeper.coordinator.kernel.result import PARKED, Arm, GroupCall, Immediate, RegexLookup, Released, Result, Work
from groupkeeper.coordinator.kernel.timers import ConsumerSession, MemberSession, ShareSession, StreamsSession
from groupkeeper.coordinator.kernel.topics_image import TopicsChange
from groupkeeper.coordinator.refusals import refuse
from groupkeeper.protocol.errors import CoordinatorLoadInProgress, KafkaError, NotCoordinator, UnknownServerError
from groupkeeper.protocol.messages.offset_fetch_request import OffsetFetchRequest
from groupkeeper.protocol.offsets_topic import UnknownRecord, decode_record, encode_record
from groupkeeper.protocol.primitives import Message
from groupkeeper.protocol.record_batch import read_end_transaction

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

    from groupkeeper.broker.coordination.transaction_marker import Marker
    from groupkeeper.broker.log.partition_log import PartitionLog
    from groupkeeper.broker.meters import GroupMeters
    from groupkeeper.coordinator.kernel.result import Record
    from groupkeeper.coordinator.kernel.settings import Settings
    from groupkeeper.coordinator.kernel.timers import TimerKey
    from groupkeeper.coordinator.kernel.topics_image import TopicsImage
    from groupkeeper.coordinator.share.work import ShareErrors
    from groupkeeper.coordinator.streams.topology import MissingTopic
    from groupkeeper.protocol.record_batch import BatchHeader
    from groupkeeper.protocol.record_batch import Record as LogRecord

_log = getLogger("groupkeeper.broker")

_GOLDEN_RATIO = 0.618034
_NOTHING: Final = -1


class GroupShard(Shard["Record"]):
    """The coordinator of one partition of `__consumer_offsets`, driven as in `groupkeeper.coordinator.kernel.result`.

    Everything from reading the state to changing it is one plain call, so operations never interleave; appends reach
    the log before the call returns.

    Attributes:
        coordinator: the state machine.
    """

    RECORDS_PER_TURN: ClassVar[int] = 200

    def __init__(
        self,
        log: PartitionLog,
        settings: Settings,
        now_ms: Callable[[], int],
        meters: GroupMeters,
        codec: int = 0,
        do_share_work: Callable[[Work, int], Awaitable[ShareErrors]] | None = None,
    ) -> None:
        """`do_share_work` sends work of a node to the share coordinator, and returns the errors; None without a share
        coordinator.
        """
        super().__init__(log, CODECS[codec])
        self.coordinator = Coordinator(settings)
        self._now_ms = now_ms
        self._meters = meters
        self._do_share_work = do_share_work
        self._share_work: dict[asyncio.Task[None], Work] = {}
        self._share_turn = asyncio.Lock()
        self._timers = TimerTable(asyncio.get_running_loop(), self._expire)
        self._parked: dict[int, asyncio.Future[tuple[Message, int]]] = {}
        self._last_call_id = 0

    @property
    def parked_count(self) -> int:
        """Calls that wait for a response."""
        return len(self._parked)

    def _replay(self, header: BatchHeader, records: Iterable[LogRecord]) -> None:
        if header.is_control:
            for record in records:
                marker = read_end_transaction(record)
                if marker is not None:
                    self.coordinator.replay_end_transaction(header.producer_id, is_commit=marker.is_commit)
            return
        producer_id = header.producer_id if header.is_transactional else -1
        replay = self.coordinator.replay
        for record in records:
            self.record = record
            decoded = decode_record(record.key or b"", record.value)
            if isinstance(decoded, UnknownRecord):
                _log.warning(
                    "%r: skipping a record of unknown type %d at offset %d", self.log, decoded.key_type, record.offset
                )
            else:
                replay(decoded, record.offset, producer_id)

    def _encode(self, record: Record) -> tuple[bytes, bytes | None]:
        return encode_record(record)

    def _apply(self, record: Record, offset: int, producer_id: int) -> None:
        self.coordinator.replay(record, offset, producer_id)

    def _appended(self, since_ns: int, now_ns: int) -> None:
        self._meters.flushing.record(since_ns, now_ns)

    async def load(self) -> None:
        began_ns = perf_counter_ns()
        await super().load()
        if self.failure is None:
            self._meters.loading.record(began_ns, perf_counter_ns())

    def _resume(self) -> None:
        now_ms = self._now_ms()
        for result in self.coordinator.resume(now_ms, first_pass=_first_pass(self.log.index)):
            self._settle(result, None, now_ms)

    def see_topics(self, image: TopicsImage) -> None:
        """Applies the current topics of the cluster."""
        if image is not self.coordinator.state.topics:
            self.coordinator.apply(TopicsChange(image))

    async def ask(
        self,
        request: Message,
        version: int,
        client_id: str = "",
        client_host: str = "",
        *,
        patience_ms: int = 0,
        fresh_id: str = "",
        regex_error: str | None = None,
        may_describe: Callable[[str], bool] = lambda topic: True,
    ) -> Message:
        """The response to a request; waits while it is parked, and at most `patience_ms` for replicas that lag.
        `may_describe`: whether the caller may see a topic.
        """
        if not self.is_active:
            return self.reply(request, version)
        self._last_call_id += 1
        call = GroupCall(self._last_call_id, request, version, client_id, client_host, fresh_id, regex_error)
        result = self._carry_out(call, self._now_ms())
        for lookup in result.lookups:
            if isinstance(lookup, RegexLookup):
                asyncio.get_running_loop().call_soon(self._look_up, lookup, may_describe)
        due = _NOTHING if isinstance(result, Immediate) else self._due()
        try:
            if result.response is PARKED:
                response, due = await self._released(call, due, patience_ms)
            else:
                assert result.response is not None
                response = result.response
            if due != _NOTHING:
                await self.replicated(due, patience_ms)
        except KafkaError as error:
            is_fetch = isinstance(request, OffsetFetchRequest)
            return refuse(request, NotCoordinator() if is_fetch else error)
        return response

    def _due(self) -> int:
        """The offset up to which in-sync replicas must have the log before a response made now may be sent."""
        return _NOTHING if self.log.placement.held_high_watermark is None else self.log.log_end_offset

    async def _released(self, call: GroupCall, due: int, patience_ms: int) -> tuple[Message, int]:
        """The response to a parked call, and the offset that in-sync replicas must have before it is sent. As in Apache
        Kafka, the call fails when replicas take longer than `patience_ms` to get the records written before it (`due`).
        """
        response: asyncio.Future[tuple[Message, int]] = asyncio.get_running_loop().create_future()
        self._parked[call.call_id] = response
        try:
            if due != _NOTHING:
                await asyncio.wait((response,), timeout=patience_ms / 1000)
                if not response.done():
                    await self.replicated(due, 0)
            return await response
        finally:
            self._parked.pop(call.call_id, None)

    def reply(
        self,
        request: Message,
        version: int,
        client_id: str = "",
        client_host: str = "",
        *,
        received_ms: int | None = None,
    ) -> Message:
        """The response to a request that is never parked and needs no lookup, for example a commit. Does not wait for
        replicas. `received_ms`: the time of the request; None: now.
        """
        if self.failure is not None:
            return refuse(request, NotCoordinator())
        if self.is_loading:
            return refuse(request, CoordinatorLoadInProgress())
        self._last_call_id += 1
        now_ms = self._now_ms() if received_ms is None else received_ms
        result = self._carry_out(GroupCall(self._last_call_id, request, version, client_id, client_host), now_ms)
        assert isinstance(result.response, Message)
        return result.response

    def _carry_out(self, call: GroupCall, now_ms: int) -> Result:
        began_ns = perf_counter_ns()
        result = self._settle(self.coordinator.handle(call, now_ms), call, now_ms)
        self._meters.processing.record(began_ns, perf_counter_ns())
        return result

    def _look_up(self, lookup: RegexLookup, may_describe: Callable[[str], bool]) -> None:
        if self.failure is not None:
            return
        now_ms = self._now_ms()
        matched = match_topics(lookup.regexes, self.coordinator.state.topics.topics, may_describe)
        self._settle(self.coordinator.regexes_resolved(lookup.group_id, matched, now_ms), lookup, now_ms)

    def _begin_share_work(self, work: Work) -> None:
        task = asyncio.get_running_loop().create_task(self._finish_share_work(work))
        self._share_work[task] = work
        task.add_done_callback(self._share_work.pop)

    async def _finish_share_work(self, work: Work) -> None:
        assert self._do_share_work is not None
        with self.fail_stop:  # else a caller would wait for ever
            async with self._share_turn:  # in the order of the requests
                if self.failure is not None:
                    return
                work, before = self.coordinator.share_work_due(work)
                if self._settle(before, work, self._now_ms()) is not before:
                    return  # it could not be written, and waiting callers got errors
                errors = await self._do_share_work(work, self.log.placement.leader)
            if self.failure is None:
                self._settle(self.coordinator.share_work_done(work, errors), work, self._now_ms())

    def _forget_topics(self, topic_ids: Mapping[str, bytes]) -> None:
        result = self.coordinator.remove_topics(topic_ids)
        self.write(result.records, self._now_ms(), is_atomic=result.is_atomic)

    def end_transaction(self, marker: Marker, now_ms: int) -> None:
        """Appends and replays a transaction marker. Raises `KafkaError`; then nothing has changed."""
        self.require_active()
        self.log.append(marker.batch(now_ms), now_ms)
        with self.fail_stop:
            self.coordinator.replay_end_transaction(marker.producer_id, is_commit=marker.is_commit)
        if self.failure is not None:
            raise UnknownServerError

    def unload(self) -> None:
        """Stops the coordinator: clears its timers, and answers parked calls with NOT_COORDINATOR."""
        super().unload()
        self._timers.clear()
        self._release(self.coordinator.unload().released)
        for task, work in self._share_work.items():
            task.cancel()
            if work.call is not None:
                self._release((Released(work.call.call_id, refuse(work.call.request, NotCoordinator())),))

    def members_of(self, group_id: str) -> dict[str, tuple[str | None, str]] | None:
        """Instance and client id by member id; None when there is no such group. Raises `KafkaError`."""
        self.require_active()
        group = self.coordinator.state.groups.get(group_id)
        return None if group is None else handler_of(group.group_type).members(group)

    def missing_topics_of(self, group_id: str) -> Sequence[MissingTopic]:
        """The internal topics that a streams group lacked when last checked."""
        from groupkeeper.coordinator.streams.group import StreamsGroup

        group = self.coordinator.state.find(group_id, StreamsGroup)
        configured = None if group is None else group.soft.configured
        return () if configured is None else configured.missing

    def expire_session(self, group_id: str, member_id: str) -> None:
        """Expires a member's session at once; does nothing if the member has none."""
        for session in (MemberSession, ConsumerSession, ShareSession, StreamsSession):
            self._timers.expire(session(group_id, member_id))

    def _expire(self, timer: TimerKey) -> None:
        began_ns = perf_counter_ns()
        now_ms = self._now_ms()
        self._settle(self.coordinator.expire(timer, now_ms), timer, now_ms)
        self._meters.processing.record(began_ns, perf_counter_ns())

    def _settle(self, result: Result, cause: GroupCall | TimerKey | RegexLookup | Work | None, now_ms: int) -> Result:
        """Carries out a result and returns the result that was carried out: another one if its records can't be
        appended.
        """
        try:  # inlined FailStop
            if result.records:
                try:
                    self.write(result.records, now_ms, transaction=result.transaction, is_atomic=result.is_atomic)
                except KafkaError as error:
                    if self.failure is not None:
                        raise
                    self.log_refusal(error)
                    result = self.coordinator.append_failed(cause, error, now_ms)
                    assert not result.records
            self._take(result)
        except Exception as error:
            self.fail(error)
            return Result(refuse(cause.request, UnknownServerError()) if isinstance(cause, GroupCall) else None)
        return result

    def _take(self, result: Result) -> None:
        """Carries out a result except for its records and its response."""
        for change in result.soft:
            self.coordinator.apply(change)
        for timer in result.timers:
            if isinstance(timer, Arm):
                self._timers.arm(timer.timer, timer.after_ms, timer.keeps_earlier)
            else:
                self._timers.disarm(timer.timer)
        if result.marks:
            now_ns = perf_counter_ns()
            for meter, count in result.marks:
                self._meters.marks[meter].record(count, now_ns)
        for lookup in result.lookups:
            if not isinstance(lookup, RegexLookup):
                self._begin_share_work(lookup)
        if result.released:
            self._release(result.released, self._due() if result.records else _NOTHING)

    def _release(self, responses: Iterable[Released], due: int = _NOTHING) -> None:
        for released in responses:
            waiting = self._parked.get(released.call_id)
            if waiting is not None and not waiting.done():
                waiting.set_result((released.response, due))


def _first_pass(partition: int) -> float:
    """The fraction of the interval before the first expiration pass. It differs between partitions, so that they don't
    all work at the same time.
    """
    return 1 - partition * _GOLDEN_RATIO % 1 / 2
