"""Consumers of a share group, the leader of their share-partition, and the share coordinator: a simulation.

The leader is driven as `groupkeeper.broker.shares.leader` does it. Consumers crash, and are slow; what they say and
what they are told is lost or repeated; leaders start over from what is stored, and one that was replaced may not know
it yet. Checked is what consumers see, and what is stored.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random

from tests.simulation.share.base import Events, MemoryShareState, Outcome, outcome_of
from tests.simulation.share.plan import FetchingPlan

from groupkeeper.coordinator.share_partition.acquire import Acquired, Limits, Span, acquire, archive_acquired
from groupkeeper.coordinator.share_partition.batch import AcknowledgeType, DeliveryLimit, RecordState
from groupkeeper.coordinator.share_partition.partition import Acknowledgement, SharePartition, Transition
from groupkeeper.coordinator.share_state.coordinator import ShareStateWrite
from groupkeeper.coordinator.share_state.state import SharePartitionKey
from groupkeeper.protocol import errors

KEY = SharePartitionKey("g", b"t" * 16, 0)
CALM_MS = 400_000
Said = Sequence[tuple[int, AcknowledgeType]]

ACCEPT, RELEASE, REJECT, RENEW = AcknowledgeType(1), AcknowledgeType(2), AcknowledgeType(3), AcknowledgeType(4)


@dataclass(slots=True)
class Delivery:
    """A record as a consumer has it, until `deadline_ms`."""

    member_id: str
    deadline_ms: int
    count: int


@dataclass
class Truth:
    """What was told of each offset.

    Attributes:
        held: by offset, who was given it last, and still has it.
        counts: by offset, the latest delivery count since the leader began.
        done: offsets of which a consumer was told that they are acknowledged.
        said: offsets of which somebody said that they are done, whatever became of that.
        gone: offsets without a record for consumers: aborted, compacted, deleted.
        tried: how often each was delivered in all.
    """

    held: dict[int, Delivery] = field(default_factory=dict)
    counts: dict[int, int] = field(default_factory=dict)
    done: set[int] = field(default_factory=set)
    said: set[int] = field(default_factory=set)
    gone: set[int] = field(default_factory=set)
    last_counts: dict[int, int] = field(default_factory=dict)
    start_offset: int = -1


class Leader:
    """The share-partition's state and its locks, as `LedPartition` has them."""

    def __init__(self, world: World, epoch: int) -> None:
        self.world = world
        self.epoch = epoch
        stored = world.state.read(KEY, epoch)
        self.state_epoch = stored.state_epoch
        self.states = SharePartition(max(stored.start_offset, 0), stored.batches)
        self.is_fenced = False
        self.is_owing = False
        self.pending: list[tuple[Transition, Consumer | None, Said]] = []

    def fetch(self, member_id: str, max_records: int, *, is_strict: bool) -> list[Acquired]:
        if self.is_fenced:
            raise errors.NotLeaderOrFollower
        world, plan, states = self.world, self.world.plan, self.states
        states.move_start(world.log_start)
        if not states.can_acquire(plan.max_in_flight):
            return []
        offset = states.next_fetch_offset()
        spans = [span for span in world.log if span.last >= offset][:4]
        if not spans:
            return []
        deadline_ms = world.events.now_ms + plan.lock_ms
        limits = Limits(max_records, is_strict, 5, plan.max_in_flight, plan.max_deliveries, deadline_ms)
        acquired = acquire(states, member_id, spans, offset, limits)
        aborted = [span for span in spans if span in world.aborted]
        if aborted:
            acquired = archive_acquired(states, acquired, aborted)
        return acquired

    def acknowledge(self, consumer: Consumer, said: Said) -> None:
        """Begins what becomes known in a while; raises `KafkaError` when it can't be."""
        if self.is_fenced:
            raise errors.NotLeaderOrFollower
        plan = self.world.plan
        transition = self.states.acknowledge(
            consumer.member_id,
            _joined(said),
            limit=DeliveryLimit(plan.max_deliveries),
            renewed_until_ms=self.world.events.now_ms + plan.lock_ms,
        )
        self._store_soon(transition, consumer, said)

    def end_session(self, member_id: str) -> None:
        waiting = {
            offset
            for pending, _, _ in self.pending
            for run in pending.runs
            for offset in range(run.first, run.last + 1)
        }
        held = [
            offset
            for offset, one in self.world.truth.held.items()
            if one.member_id == member_id and offset not in waiting
        ]
        transition = self.states.release_member(member_id, limit=DeliveryLimit(self.world.plan.max_deliveries))
        self._store_soon(transition, None, [(offset, RELEASE) for offset in held])

    def expire(self) -> None:
        self._ended(self.states.expire(self.world.events.now_ms, limit=DeliveryLimit(self.world.plan.max_deliveries)))

    def _ended(self, ended: Transition) -> None:
        """It counts even if it can't be stored, which is tried again later."""
        self.is_owing |= bool(ended.batches)
        if self.is_owing:
            with suppress(errors.KafkaError):
                self._write(self.states.at_rest())
                self.is_owing = False

    def _store_soon(self, transition: Transition, consumer: Consumer | None, said: Said) -> None:
        self.pending.append((transition, consumer, said))
        for offset in (offset for offset, kind in said if kind is RENEW):
            self.world.renewed(self, offset)
        # Mostly at once, as in a broker whose share coordinator is loaded.
        random = self.world.events.random
        if not transition.needs_storing or random.random() < 0.7:
            self.store()
        else:
            self.world.events.at(random.choice((1, 50, 2_000)), self.store)

    def store(self) -> None:
        """Stores what waits first."""
        if not self.pending or self.world.is_dead(self):
            return
        transition, consumer, said = self.pending.pop(0)
        error: errors.KafkaError | None = None
        try:
            if transition.needs_storing:
                self._write(transition)
            self.states.complete(transition)
        except errors.KafkaError as failure:
            error = failure
            now_ms = self.world.events.now_ms
            self._ended(self.states.roll_back(transition, now_ms, limit=DeliveryLimit(self.world.plan.max_deliveries)))
        if consumer is not None:
            self.world.answered(self, consumer, said, error)
        elif error is None and self is self.world.leader:
            self.world.session_ended(self, [offset for offset, _ in said])

    def _write(self, transition: Transition) -> None:
        written = ShareStateWrite(
            self.state_epoch,
            self.epoch,
            self.states.start_offset,
            self.states.delivery_complete_count,
            transition.batches,
        )
        try:
            self.world.state.write(KEY, written)
        except (errors.FencedLeaderEpoch, errors.FencedStateEpoch):
            self.is_fenced = True
            raise
        self.states.stored(written.start_offset)


class Consumer:
    """Fetches, works, says what became of records, and sometimes doesn't come to that.

    Attributes:
        holds: what it works on, with the delivery count that it was told.
    """

    def __init__(self, world: World, number: int) -> None:
        self.world = world
        self.number = number
        self.lives = 0
        self.holds: dict[int, int] = {}
        self.is_down = False
        world.events.at(world.events.random.randint(0, 1_000), self.go_on)

    @property
    def member_id(self) -> str:
        return f"c{self.number}.{self.lives}"

    def go_on(self) -> None:
        events, plan = self.world.events, self.world.plan
        random = events.random
        slow_ms = plan.lock_ms * 2 if events.chance(plan.slow) else 0
        events.at(random.randint(20, 400) + slow_ms, self.go_on)
        if self.is_down:
            self.is_down = not (events.is_calm or random.random() < 0.3)
        elif events.chance(plan.crash):
            self._crash()
        elif self.holds:
            self._acknowledge()
        else:
            self._fetch()

    def _crash(self) -> None:
        """Its connection may end with it, or linger until its locks do."""
        self.world.events.note(f"{self.member_id} crashes holding {sorted(self.holds)}")
        if self.world.events.random.random() < 0.5:
            self.world.leader_of(self).end_session(self.member_id)
            self.world.forget(self.member_id)
        self.holds.clear()
        self.lives += 1
        self.is_down = True

    def _fetch(self) -> None:
        world, random = self.world, self.world.events.random
        leader = world.leader_of(self)
        max_records, is_strict = random.randint(1, 15), random.random() < 0.4
        try:
            acquired = leader.fetch(self.member_id, max_records, is_strict=is_strict)
        except errors.NotLeaderOrFollower:
            world.find_leader(self)
            return
        if is_strict and sum(one.last_offset - one.first_offset + 1 for one in acquired) > max_records:
            world.events.fail("Limits", f"{self.member_id} wanted {max_records} records and got {acquired}")
        world.delivered(leader, self, acquired)
        if acquired and not world.events.chance(world.plan.lost):
            self.holds = {
                offset: one.delivery_count
                for one in acquired
                for offset in range(one.first_offset, one.last_offset + 1)
            }

    def _acknowledge(self) -> None:
        events, plan = self.world.events, self.world.plan
        random = events.random
        offsets = sorted(self.holds)[: random.choice((1, 3, 100))]
        if set(offsets) & self.world.poison and not events.is_calm:
            self._crash()
            return
        said = [(offset, self._verdict(random)) for offset in offsets]
        if random.random() < 0.5:
            # All alike, as most are.
            said = [(offset, said[0][1]) for offset in offsets]
        self._say(said)
        if events.chance(plan.lost):
            self._say(said)  # repeated

    def _verdict(self, random: Random) -> AcknowledgeType:
        if self.world.events.is_calm:
            return ACCEPT
        if random.random() < self.world.plan.release:
            return random.choice((RELEASE, RELEASE, RENEW, REJECT))
        return ACCEPT

    def _say(self, said: Said) -> None:
        world = self.world
        for offset, kind in said:
            if kind is not RENEW:
                self.holds.pop(offset, None)
        if world.events.chance(world.plan.lost):
            return
        leader = world.leader_of(self)
        before = world.truth.held.copy()
        world.truth.said.update(offset for offset, kind in said if kind in (ACCEPT, REJECT))
        try:
            leader.acknowledge(self, said)
            world.taken(leader, self, said, before)
        except (errors.InvalidRecordState, errors.InvalidRequest, errors.NotLeaderOrFollower) as error:
            world.refused(leader, self, said, error)


class World:
    """One partition, its group, and all of the above."""

    def __init__(self, plan: FetchingPlan) -> None:
        self.plan = plan
        self.events = Events(plan.seed)
        self.truth = Truth()
        self.log: list[Span] = []
        self.log_start = 0
        self.log_end = 0
        self.aborted: set[Span] = set()
        self.poison: set[int] = set()
        self.seen = 0
        self.restarts = 0
        self.state = MemoryShareState(self.events, lambda _: 1, plan.append_fails)
        self.events.is_calm = True  # to begin with
        self.state.initialize(KEY, 1, 0)
        self.leader = Leader(self, 0)
        self.events.is_calm = False
        self.zombie: Leader | None = None
        self._follows: dict[int, Leader] = {}
        self.consumers = [Consumer(self, number) for number in range(plan.consumer_count)]
        self.events.at(0, self._produce)
        self.events.at(100, self._tick)
        self.events.at(10_000, self._tidy)

    # --- the log

    def _produce(self) -> None:
        events, plan, random = self.events, self.plan, self.events.random
        if not events.is_calm:
            events.at(random.randint(50, 1_500), self._produce)
        if events.chance(plan.compacted):
            self.truth.gone.update(range(self.log_end, self.log_end + 3))
            self.log_end += 3
        span = Span(self.log_end, self.log_end + random.randint(0, 9))
        self.log.append(span)
        self.log_end = span.last + 1
        if events.chance(plan.aborted):
            self.aborted.add(span)
            self.truth.gone.update(range(span.first, span.last + 1))
        elif events.chance(plan.poison * 5):
            self.poison.add(random.randint(span.first, span.last))

    def _delete_records(self) -> None:
        self.log_start = self.events.random.randint(self.log_start, self.log_end)
        self.truth.gone.update(range(self.log_start))
        self.log = [span for span in self.log if span.last >= self.log_start]
        self.truth.held = {offset: one for offset, one in self.truth.held.items() if offset >= self.log_start}

    # --- time and leaders

    def _tick(self) -> None:
        self.events.at(100, self._tick)
        for leader in (self.leader, self.zombie):
            if leader is not None and not leader.is_fenced:
                leader.expire()
        self._drop_over(0)
        if self.events.chance(self.plan.restart / 10):
            self._begin_anew()
        if self.events.chance(self.plan.deleted / 10):
            self._delete_records()
        self._check_stored()

    def _tidy(self) -> None:
        self.events.at(10_000, self._tidy)
        self.state.tidy()

    def _begin_anew(self) -> None:
        """The broker dies, or another becomes the leader while the old one lives on for a while."""
        self.restarts += 1
        is_crash = self.events.random.random() < 0.6
        self.events.note("restart" if is_crash else "another leader")
        if is_crash:
            self.state.restart()
        try:
            leader = Leader(self, self.leader.epoch + (not is_crash))
        except errors.KafkaError:
            return  # it can't be the leader yet
        self.zombie = None if is_crash else self.leader
        self._follows = {} if self.zombie is None else dict.fromkeys(range(len(self.consumers)), self.zombie)
        self.leader = leader
        self.truth.held.clear()
        self.truth.counts.clear()
        for consumer in self.consumers:
            if is_crash:
                consumer.holds.clear()

    def leader_of(self, consumer: Consumer) -> Leader:
        return self._follows.get(consumer.number, self.leader)

    def find_leader(self, consumer: Consumer) -> None:
        self._follows.pop(consumer.number, None)

    def is_dead(self, leader: Leader) -> bool:
        return leader is not self.leader and leader is not self.zombie

    def forget(self, member_id: str) -> None:
        self.truth.held = {offset: one for offset, one in self.truth.held.items() if one.member_id != member_id}

    def _drop_over(self, grace_ms: int) -> None:
        now_ms = self.events.now_ms
        self.truth.held = {
            offset: one for offset, one in self.truth.held.items() if one.deadline_ms + grace_ms > now_ms
        }

    # --- what consumers see

    def delivered(self, leader: Leader, consumer: Consumer, acquired: Sequence[Acquired]) -> None:
        now_ms, truth = self.events.now_ms, self.truth
        if acquired:
            self.events.note(f"{consumer.member_id} gets {[tuple(one) for one in acquired]} of {leader.epoch}")
        for one in acquired:
            for offset in range(one.first_offset, one.last_offset + 1):
                self.seen += 1
                if offset < self.log_start or offset >= self.log_end:
                    self.events.fail("Log", f"{offset} is not in the log and was delivered")
                if not 1 <= one.delivery_count <= self.plan.max_deliveries:
                    self.events.fail("Limits", f"{offset} was delivered with count {one.delivery_count}")
                if leader is not self.leader:
                    continue  # it doesn't know yet, and nothing it is told will be stored
                if offset in truth.done:
                    self.events.fail("Acknowledged", f"{offset} was done, and is delivered again")
                held = truth.held.get(offset)
                if held is not None and held.deadline_ms > now_ms:
                    self.events.fail("Exclusive", f"{offset} went to {consumer.member_id}, locked by {held}")
                before = truth.counts.get(offset)
                if before is not None and one.delivery_count != before + 1:
                    self.events.fail("Counts", f"{offset}: delivery {one.delivery_count} after {before}")
                truth.counts[offset] = one.delivery_count
                truth.last_counts[offset] = max(truth.last_counts.get(offset, 0), one.delivery_count)
                truth.held[offset] = Delivery(consumer.member_id, now_ms + self.plan.lock_ms, one.delivery_count)
        if leader is self.leader:
            self._check_runs(consumer.member_id)

    def _check_runs(self, member_id: str) -> None:
        """They are in order, and nothing is locked by a member that was not given to it."""
        states, held = self.leader.states, self.truth.held
        behind = states.start_offset
        for run in states.runs():
            if not behind <= run.first <= run.last < states.end_offset:
                self.events.fail("Order", f"{run} behind {behind}, before {states.end_offset}")
            behind = run.last + 1
            is_mine = run.state is RecordState.ACQUIRED and run.member_id == member_id
            if is_mine and any(one not in held for one in range(max(run.first, self.log_start), run.last + 1)):
                self.events.fail("Ownership", f"{run} was not told to its member")
        if behind > states.end_offset:
            self.events.fail("Order", f"it ends at {states.end_offset}, and begins at {states.start_offset}")

    def taken(self, leader: Leader, consumer: Consumer, said: Said, before: Mapping[int, Delivery]) -> None:
        """Nobody is heard on what somebody else has."""
        for offset, _ in said:
            held = before.get(offset)
            is_mine = held is None or held.member_id == consumer.member_id
            if leader is self.leader and not is_mine and offset >= leader.states.start_offset:
                self.events.fail("Ownership", f"{consumer.member_id} was heard on {offset}, which {held} has")

    def session_ended(self, leader: Leader, offsets: Sequence[int]) -> None:
        """What its member had can be had by others at once."""
        truth = self.truth
        left = [
            offset
            for offset in offsets
            if offset not in truth.said | truth.done | truth.gone
            and offset not in truth.held
            and truth.counts.get(offset, 0) < self.plan.max_deliveries
        ]
        if left and leader.states.next_fetch_offset() > min(left):
            self.events.fail("Sessions", f"{left} stay with a member whose session has ended")

    def refused(self, leader: Leader, consumer: Consumer, said: Said, error: errors.KafkaError) -> None:
        """What a consumer has within its lock can't be refused as a record that it doesn't have."""
        self._unsay(said)
        if isinstance(error, errors.NotLeaderOrFollower):
            self.find_leader(consumer)
            return
        now_ms = self.events.now_ms
        held = [self.truth.held.get(offset) for offset, _ in said]
        mine = [one is not None and one.member_id == consumer.member_id and one.deadline_ms > now_ms for one in held]
        if leader is self.leader and all(mine) and not leader.pending:
            self.events.fail("Ownership", f"{consumer.member_id} has {said} and was refused: {error.message}")

    def answered(self, leader: Leader, consumer: Consumer, said: Said, error: errors.KafkaError | None) -> None:
        """What a consumer said is stored, or could not be."""
        self.events.note(f"{consumer.member_id} said {[(offset, int(kind)) for offset, kind in said]}: {error!r}")
        if error is not None:
            self._unsay(said)
            return
        if leader is not self.leader and any(kind is not RENEW for _, kind in said):
            if any(offset >= leader.states.start_offset for offset, kind in said if kind is not RENEW):
                self.events.fail("Fencing", f"a leader of before took {said}")
            return
        for offset, kind in said:
            if kind is RENEW:
                continue
            self.truth.held.pop(offset, None)
            if kind in (ACCEPT, REJECT):
                self.truth.done.add(offset)

    def _unsay(self, said: Said) -> None:
        self.truth.said.difference_update({offset for offset, _ in said} - self.truth.done)

    def renewed(self, leader: Leader, offset: int) -> None:
        held = self.truth.held.get(offset)
        if held is not None and leader is self.leader:
            held.deadline_ms = self.events.now_ms + self.plan.lock_ms

    # --- what is stored

    def _check_stored(self) -> None:
        stored = self.state.coordinator.summary(KEY, 1)
        if stored.start_offset < self.truth.start_offset:
            self.events.fail("StartOffset", f"{stored.start_offset} after {self.truth.start_offset}")
        self.truth.start_offset = stored.start_offset
        behind = stored.start_offset
        for batch in stored.batches:
            if batch.first_offset < behind or batch.last_offset < batch.first_offset:
                self.events.fail("StartOffset", f"stored batches overlap: {stored}")
            behind = batch.last_offset + 1
        self._check_passed(stored.start_offset)

    def _check_passed(self, start_offset: int) -> None:
        """What the start offset has passed was acknowledged, or delivered to the limit, or isn't there."""
        truth = self.truth
        for offset in range(max(start_offset - 40, 0), start_offset):
            count = truth.last_counts.get(offset, 0)
            is_over = count >= self.plan.max_deliveries
            if not is_over and not any(offset in some for some in (truth.said, truth.done, truth.gone)):
                self.events.fail("Loss", f"{offset} was passed, delivered {count} times")

    # --- the end

    def live(self, steps: int) -> None:
        """Raises `Violation`."""
        for _ in range(steps):
            self.events.step()
        self.events.is_calm = True
        self.zombie = None
        self._follows.clear()
        end_ms = self.events.now_ms + CALM_MS
        while self.events.now_ms < end_ms:
            self.events.step()
            # Records are worked off; then nothing is left to hand out.
            if self.leader.states.start_offset == self.log_end and not self.leader.pending:
                break
        else:
            runs = list(self.leader.states.runs())[:3]
            self.events.fail("Liveness", f"at {self.leader.states.start_offset} of {self.log_end}: {runs}")
        self._check_passed_all()

    def _check_passed_all(self) -> None:
        start = self.leader.states.start_offset
        for upto in range(0, start + 40, 40):
            self._check_passed(min(upto, start))
        self._check_stored()
        self.state.restart()
        stored = self.state.coordinator.summary(KEY, 1)
        left = set(range(max(stored.start_offset, self.log_start), self.log_end)) - self.truth.gone
        for batch in stored.batches:
            if batch.delivery_state != 0:
                left.difference_update(range(batch.first_offset, batch.last_offset + 1))
        if left:
            self.events.fail("Liveness", f"all is done, and the next leader would deliver {sorted(left)}: {stored}")


def _joined(said: Said) -> list[Acknowledgement]:
    """As clients send it: a batch for neighbouring offsets, with a type for all or for each."""
    batches: list[tuple[int, list[AcknowledgeType]]] = []
    for offset, kind in said:
        if batches and batches[-1][0] + len(batches[-1][1]) == offset:
            batches[-1][1].append(kind)
        else:
            batches.append((offset, [kind]))
    return [
        Acknowledgement(first, first + len(kinds) - 1, kinds[:1] if len(set(kinds)) == 1 else kinds)
        for first, kinds in batches
    ]


def run(seed: int, steps: int) -> Outcome:
    """One run to its end."""
    return outcome_of(World(FetchingPlan.of_seed(seed)), steps)
