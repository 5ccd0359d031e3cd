"""One coordinator at work: its partition's log, its timers, and the calls that wait for an answer."""

from __future__ import annotations

import asyncio
from logging import getLogger
from time import perf_counter_ns

from groupkeeper.broker.runtime_log import append_records, batches_of, load_records, map_log_error
from groupkeeper.broker.runtime_timers import TimerTable
from groupkeeper.broker.runtime_topics import match_topics
from groupkeeper.coordinator.classic_group import ClassicGroup
from groupkeeper.coordinator.coordinator import Coordinator
from groupkeeper.coordinator.refusals import refuse
from groupkeeper.coordinator.result import PARKED, Call, RegexLookup, Released
from groupkeeper.coordinator.share_group import ShareGroup
from groupkeeper.coordinator.streams_group import StreamsGroup
from groupkeeper.coordinator.timers import Arm, ConsumerSession, MemberSession, ShareSession, StreamsSession
from groupkeeper.coordinator.topics_image import TopicsChange
from groupkeeper.protocol.codec import MalformedMessage
from groupkeeper.protocol.errors import CoordinatorLoadInProgress, KafkaError, NotCoordinator

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

    from groupkeeper.broker.meters import GroupMeters
    from groupkeeper.broker.topic_log import PartitionLog
    from groupkeeper.broker.transaction_marker import Marker
    from groupkeeper.coordinator.result import Result
    from groupkeeper.coordinator.settings import Settings
    from groupkeeper.coordinator.share_work import ShareErrors, ShareWork
    from groupkeeper.coordinator.streams_topology import MissingTopic
    from groupkeeper.coordinator.timers import TimerKey
    from groupkeeper.coordinator.topics_image import TopicsImage
    from groupkeeper.protocol.primitives import Message

_log = getLogger("groupkeeper.broker")

_RECORDS_PER_TURN = 200


class Shard:
    """The coordinator of one partition of `__consumer_offsets`, driven as `groupkeeper.coordinator.result` says.

    Everything between reading the state and having changed it is one plain call, so operations never mix; appends
    reach the log before the call returns.

    Attributes:
        coordinator: the state machine.
        is_loading: whether the log is still being replayed.
        failure: None, or why the partition couldn't be loaded; it answers NOT_COORDINATOR then.
        has_resigned: whether it was told to, and nobody coordinates the partition until another one does.
    """

    def __init__(
        self,
        log: PartitionLog,
        settings: Settings,
        now_ms: Callable[[], int],
        meters: GroupMeters,
        codec: int = 0,
        do_share_work: Callable[[ShareWork], Awaitable[ShareErrors]] | None = None,
    ) -> None:
        """`do_share_work` brings work to the share coordinator, and tells what of it failed; None without one."""
        self.coordinator = Coordinator(settings)
        self.is_loading = True
        self.failure: str | None = None
        self.has_resigned = False
        self._log = log
        self._codec = codec
        self._now_ms = now_ms
        self._meters = meters
        self._do_share_work = do_share_work
        self._share_work: dict[asyncio.Task[None], ShareWork] = {}
        self._share_turn = asyncio.Lock()
        self._timers = TimerTable(asyncio.get_running_loop(), self._expire)
        self._parked: dict[int, asyncio.Future[Message]] = {}
        self._last_call_id = 0
        self._removed_while_loading: list[Mapping[str, bytes]] = []

    @property
    def parked_count(self) -> int:
        """Calls that wait for an answer."""
        return len(self._parked)

    async def load(self) -> None:
        """Replays the log, then starts the timers."""
        began_ns = perf_counter_ns()
        try:
            since_turn = 0
            for count in load_records(self._log, self.coordinator):
                since_turn += count
                if since_turn >= _RECORDS_PER_TURN:
                    since_turn = 0
                    await asyncio.sleep(0)
        except (MalformedMessage, KafkaError, OSError) as error:
            self.failure = str(error)
            _log.error("%r: cannot load its groups: %s", self._log, error)
        if self.failure is None:
            self._meters.loaded(began_ns)
            self.begin()

    def begin(self) -> None:
        """Serves from now on; what the log holds is replayed."""
        self.is_loading = False
        now_ms = self._now_ms()
        for result in self.coordinator.resume(now_ms):
            self._settle(result, None, now_ms)
        removed, self._removed_while_loading = self._removed_while_loading, []
        for topic_ids in removed:
            self.remove_topics(topic_ids)

    def require_active(self) -> None:
        """Raises `CoordinatorLoadInProgress` or `NotCoordinator`."""
        if self.failure is not None:
            raise NotCoordinator
        if self.is_loading:
            raise CoordinatorLoadInProgress

    def see_topics(self, image: TopicsImage) -> None:
        """Takes over the topics of the cluster as they are now."""
        if image is not self.coordinator.state.topics:
            self.coordinator.apply(TopicsChange(image))

    async def ask(
        self,
        request: Message,
        version: int,
        client_id: str = "",
        client_host: str = "",
        *,
        fresh_id: str = "",
        regex_trouble: str | None = None,
        may_describe: Callable[[str], bool] = lambda topic: True,
    ) -> Message:
        """The answer to a request; waits while it is parked. `may_describe` tells which topics its caller may see."""
        if self.failure is not None:
            return refuse(request, NotCoordinator())
        if self.is_loading:
            return refuse(request, CoordinatorLoadInProgress())
        self._last_call_id += 1
        call = Call(self._last_call_id, request, version, client_id, client_host, fresh_id, regex_trouble)
        began_ns = perf_counter_ns()
        now_ms = self._now_ms()
        result = self.coordinator.handle(call, now_ms)
        response = self._settle(result, call, now_ms)
        self._meters.worked(began_ns)
        for lookup in result.lookups:
            if isinstance(lookup, RegexLookup):
                asyncio.get_running_loop().call_soon(self._look_up, lookup, may_describe)
        if response is not None:
            return response
        answer: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        self._parked[call.call_id] = answer
        try:
            return await answer
        finally:
            self._parked.pop(call.call_id, None)

    def _look_up(self, lookup: RegexLookup, may_describe: Callable[[str], bool]) -> None:
        if self.failure is not None:
            return
        now_ms = self._now_ms()
        matched = match_topics(lookup.regexes, self.coordinator.state.topics.topics, may_describe)
        self._settle(self.coordinator.regexes_resolved(lookup.group_id, matched, now_ms), lookup, now_ms)

    def _begin_share_work(self, work: ShareWork) -> None:
        task = asyncio.get_running_loop().create_task(self._finish_share_work(work))
        self._share_work[task] = work
        task.add_done_callback(self._share_work.pop)

    async def _finish_share_work(self, work: ShareWork) -> None:
        assert self._do_share_work is not None
        async with self._share_turn:  # in the order in which it was asked for
            errors = await self._do_share_work(work)
        if self.failure is None:
            self._settle(self.coordinator.share_work_done(work, errors), work, self._now_ms())

    def remove_topics(self, topic_ids: Mapping[str, bytes]) -> None:
        """Topics were deleted, by name with their id: drops their offsets, after a load that is under way."""
        if self.failure is not None:
            return
        if self.is_loading:
            self._removed_while_loading.append(topic_ids)
        else:
            self._settle(self.coordinator.remove_topics(topic_ids), None, self._now_ms())

    def end_transaction(self, marker: Marker, now_ms: int) -> None:
        """Appends and replays a transaction marker. Raises `KafkaError`; then nothing has happened."""
        self.require_active()
        self._log.append(marker.batch(now_ms), now_ms)
        self.coordinator.replay_end_transaction(marker.producer_id, is_commit=marker.is_commit)

    def unload(self) -> None:
        """Stops: timers end, parked calls are answered NOT_COORDINATOR."""
        self.failure = "unloaded"
        self._timers.clear()
        self._release(self.coordinator.unload().released)
        for task, work in self._share_work.items():
            task.cancel()
            if work.call is not None:
                self._release((Released(work.call.call_id, refuse(work.call.request, NotCoordinator())),))

    def resign(self) -> None:
        """Stops as when another broker becomes the coordinator."""
        self.unload()
        self.has_resigned = True

    def members_of(self, group_id: str) -> dict[str, tuple[str | None, str]] | None:
        """Instance and client id by member id; None when there is no such group. Raises `KafkaError`."""
        self.require_active()
        group = self.coordinator.state.groups.get(group_id)
        if group is None:
            return None
        if isinstance(group, ShareGroup):
            return {one.member_id: (None, one.client_id) for one in group.members.values()}
        members = group.roster.members if isinstance(group, ClassicGroup) else group.members
        return {one.member_id: (one.instance_id, one.client_id) for one in members.values()}

    def missing_topics_of(self, group_id: str) -> Sequence[MissingTopic]:
        """The internal topics that a streams group was last found to lack."""
        group = self.coordinator.state.groups.get(group_id)
        configured = group.soft.configured if isinstance(group, StreamsGroup) else None
        return () if configured is None else configured.missing

    def expire_session(self, group_id: str, member_id: str) -> None:
        """Lets a member's session run out at once; nothing happens when it has none."""
        for session in (MemberSession, ConsumerSession, ShareSession, StreamsSession):
            self._timers.expire(session(group_id, member_id))

    def _expire(self, timer: TimerKey) -> None:
        began_ns = perf_counter_ns()
        now_ms = self._now_ms()
        self._settle(self.coordinator.expire(timer, now_ms), timer, now_ms)
        self._meters.worked(began_ns)

    def _settle(
        self, result: Result, cause: Call | TimerKey | RegexLookup | ShareWork | None, now_ms: int
    ) -> Message | None:
        """Makes a result happen; returns the answer for its caller, None when it is parked or nobody asked."""
        try:
            for batch in batches_of(result):
                began_ns = perf_counter_ns()
                first_offset = append_records(self._log, batch, now_ms, self._codec, result.transaction)
                self._meters.flushed(began_ns)
                producer_id = -1 if result.transaction is None else result.transaction.producer_id
                for offset, record in enumerate(batch, first_offset):
                    self.coordinator.replay(record, offset, producer_id)
        except KafkaError as error:
            _log.warning("%r: cannot append: %s", self._log, error)
            result = self.coordinator.append_failed(cause, map_log_error(error), now_ms)
            assert not result.records
        for change in result.soft:
            self.coordinator.apply(change)
        for timer in result.timers:
            if isinstance(timer, Arm):
                self._timers.arm(timer.timer, timer.after_ms, keeps_earlier=timer.keeps_earlier)
            else:
                self._timers.disarm(timer.timer)
        if result.marks:
            now_ns = perf_counter_ns()
            for meter, count in result.marks:
                self._meters.marks[meter].record(count, now_ns)
        for lookup in result.lookups:
            if not isinstance(lookup, RegexLookup):
                self._begin_share_work(lookup)
        self._release(result.released)
        return None if result.response is PARKED else result.response

    def _release(self, answers: Iterable[Released]) -> None:
        for released in answers:
            answer = self._parked.get(released.call_id)
            if answer is not None and not answer.done():
                answer.set_result(released.response)
