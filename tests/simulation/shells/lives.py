"""The real hosts of coordinators, the real logs and the real led share-partitions, under failing disks, crashes, clocks
that step, and coordinators that move: what was acknowledged is there, what was refused is not."""

import asyncio
import errno
import itertools
import logging
import random
import tempfile
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any
from unittest.mock import patch

from tests.simulation.shells.damage import FlippedBit
from tests.simulation.shells.disk import Disk
from tests.simulation.shells.records import COMMITTED, TOPIC, UNCOMMITTED, Violation
from tests.simulation.shells.truth import PRODUCERS, SHARES, UNCERTAIN, Truth
from tests.simulation.shells.virtual import DeafServer, SimulatedBroker, VirtualLoop, run_life
from tests.unit.broker.peer import Peer

from groupkeeper.base_error import InvalidSetting
from groupkeeper.broker.coordination.group_shard import GroupShard
from groupkeeper.broker.shares.leader import SharePartitions
from groupkeeper.coordinator.kernel.timers import OffsetExpiration
from groupkeeper.coordinator.share_partition.acquire import Span
from groupkeeper.coordinator.share_partition.batch import AcknowledgeType
from groupkeeper.coordinator.share_partition.partition import Acknowledgement
from groupkeeper.coordinator.share_state.state import SharePartitionKey
from groupkeeper.protocol import errors
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.errors import KafkaError
from groupkeeper.protocol.record_batch import Record, write_batch

RECORDS = 60
CALM_S = 120.0
LOCK_MS = 15_000
MOST_DELIVERIES = 10
POWER_FAILURES = 0.3
CLEAN_STOPS = 0.4
FLIPPED_BITS = 0.6
"""Of the pauses between lives that are without a power failure."""
CLEANER = "groupkeeper.broker.log.cleaner"
PROPERTIES: dict[str, str | int | float | bool] = {
    "offsets.topic.num.partitions": 2,
    "transaction.state.log.num.partitions": 2,
    "share.coordinator.state.topic.num.partitions": 2,
    "group.initial.rebalance.delay.ms": 0,
    "group.share.record.lock.duration.ms": LOCK_MS,
    "group.share.delivery.count.limit": MOST_DELIVERIES,
    "transaction.max.timeout.ms": 10_000,
    "offsets.retention.check.interval.ms": 10_000,
    "transactional.id.expiration.ms": 60_000,
    "transaction.remove.expired.transaction.cleanup.interval.ms": 10_000,
    "message.max.bytes": 4_000,
    "log.roll.ms": 20_000,
    "log.cleaner.backoff.ms": 3_000,
    "log.cleaner.min.cleanable.ratio": 0.1,
    "groupkeeper.internal.topics.roll.bytes": 4_000,
    "log.flush.offset.checkpoint.interval.ms": 10_000,
}
LONG = "x" * 200
MANY = 40
"""Records with a long key for two partitions, so that one batch of a partition is larger than it may be."""
FEW = 10
"""Producer ids are reserved at a time, so that it happens often."""
UNFINISHED_S = 5.0
MOST_ATTEMPTS = 15


class Said:
    """Stands for the log of the transaction coordinators.

    Attributes:
        lines: when, at which level, and what.
    """

    def __init__(self) -> None:
        self.lines: list[tuple[float, int, str]] = []

    def log(self, level: int, text: str, *arguments: object) -> None:
        self.lines.append((asyncio.get_running_loop().time(), level, text % arguments))

    def warning(self, text: str, *arguments: object) -> None:
        self.log(logging.WARNING, text, *arguments)


class Life:
    """The clients of one life of the broker, and what befalls it."""

    def __init__(self, broker: SimulatedBroker, disk: Disk, truth: Truth, chance: random.Random) -> None:
        self.broker = broker
        self.disk = disk
        self.truth = truth
        self.chance = chance
        self.peer = Peer(broker)
        self.said = Said()
        self.tears = False
        """Whether writes may leave a part behind that can't be cut off; the log is closed up to the next start then."""
        self.deleted: dict[str, bytes] = {}
        """Topics with their ids; groups had committed offsets and share state in them."""
        self._unfinished: dict[tuple[str, int], float] = {}

    async def pause(self, most_s: float) -> None:
        await asyncio.sleep(self.chance.uniform(0, most_s))

    # --- clients

    async def commit(self, group_id: str) -> int:
        offset = self.truth.offsets[group_id]
        offset.last += 1
        (code,) = (await self.peer.commit({("t", 0): offset.last}, group_id=group_id)).values()
        offset.told(offset.last, code)
        self.truth.acknowledged += code == errors.NONE
        return code

    async def look(self, group_id: str) -> int:
        request = m.OffsetFetchRequest(groups=[m.OffsetFetchRequestGroup(group_id, topics=None)], require_stable=True)
        (group,) = (await self.peer.ask(request, 9)).groups
        if group.error_code:
            return int(group.error_code)
        found = [one for topic in group.topics for one in topic.partitions]
        if found and found[0].error_code:
            return int(found[0].error_code)
        self.truth.offsets[group_id].check(group_id, found[0].committed_offset if found else -1)
        return errors.NONE

    async def transact(self, number: int) -> int:
        """One transaction of a producer that begins anew, with the error that ended it."""
        name, group_id = f"producer-{number}", f"transactional-{number}"
        offset, ask, records = self.truth.offsets[group_id], self.peer.ask, self.truth.records
        begun = await ask(m.InitProducerIdRequest(name, 10_000, -1, -1), 4)
        if begun.error_code:
            return int(begun.error_code)
        producer_id, epoch = begun.producer_id, begun.producer_epoch
        if self.truth.producer_ids.setdefault(producer_id, name) != name:
            raise Violation(f"two producers have the id {producer_id}")
        values, code = await records.produce_in(self.peer, name, producer_id, epoch)
        if code:
            return code
        added = await ask(m.AddOffsetsToTxnRequest(name, producer_id, epoch, group_id), 3)
        if added.error_code:
            return int(added.error_code)
        offset.last += 1
        partitions = [m.TxnOffsetCommitRequestPartition(0, offset.last, -1, "")]
        topics = [m.TxnOffsetCommitRequestTopic("t", partitions=partitions)]
        request = m.TxnOffsetCommitRequest(name, group_id, producer_id, epoch, topics=topics)
        stored: int = (await ask(request, 3)).topics[0].partitions[0].error_code
        if stored:
            return stored
        # When the power fails, the marker of the transaction before may be written again, behind these offsets.
        offset.past.add(offset.last)
        if self.chance.random() < 0.2:
            return errors.NONE  # it is left open: the next one aborts it, or time does
        is_commit = self.chance.random() < 0.7
        if is_commit:
            records.ending(values)
        ended: int = (await ask(m.EndTxnRequest(name, producer_id, epoch, is_commit), 3)).error_code
        records.ended(values, ended, is_commit=is_commit, is_certain=ended != UNCERTAIN)
        if is_commit:
            offset.told(offset.last, ended)
            self.truth.acknowledged += ended == errors.NONE
        return ended

    async def identify(self) -> None:
        """A producer without transactions begins."""
        begun = await self.peer.ask(m.InitProducerIdRequest(None, 10_000, -1, -1), 4)
        if not begun.error_code:
            _require(begun.producer_id not in self.truth.producer_ids, f"two producers have the id {begun.producer_id}")
            self.truth.producer_ids[begun.producer_id] = ""

    async def consume(self, number: int) -> None:
        """Acquires records of a share-partition and accepts or releases some of them. Raises `KafkaError`."""
        topic = self.broker.topics.get("shared")
        assert topic is not None
        partitions: SharePartitions = self.broker.share_sessions.partitions
        place = "share", topic.topic_id, number
        led = partitions.get(*place) or await partitions.load(*place)
        member = f"member-{self.chance.randrange(3)}"
        acquired = led.acquire(
            member, [Span(0, RECORDS - 1)], 0, aborted=(), max_records=self.chance.randint(1, 10), batch_size=5,
            is_strict=True,
        )  # fmt: skip
        accepted = self.truth.accepted[number]
        for one in acquired:
            records = range(one.first_offset, one.last_offset + 1)
            again = accepted.intersection(records)
            if again:
                raise Violation(f"accepted records are delivered again: {sorted(again)}")
            if one.delivery_count >= MOST_DELIVERIES:
                self.truth.given_up[number].update(records)
            await self.pause(LOCK_MS / 3000)
            kind = self.chance.choice((AcknowledgeType.ACCEPT, AcknowledgeType.ACCEPT, AcknowledgeType.RELEASE))
            try:
                await led.acknowledge(member, [Acknowledgement(records[0], records[-1], (kind,))])
            except errors.UnknownServerError:
                self.truth.given_up[number].update(records if kind is AcknowledgeType.ACCEPT else ())
                raise
            if kind is AcknowledgeType.ACCEPT:
                accepted.update(records)
                self.truth.acknowledged += 1

    async def delete_a_topic(self) -> None:
        """Makes a topic with an offset and share state, sometimes more than one batch holds, and deletes it.

        Raises `KafkaError`.
        """
        topics, name = self.broker.topics, f"doomed-{self.chance.randrange(10**9)}"
        count = MANY if self.chance.random() < 0.1 else 1
        topic = topics.create(name, count)
        topic.partitions[0].append(write_batch([Record(None, b"value")]), self.broker.now_ms())
        for index in range(count):
            self.broker.share_states.initialize(SharePartitionKey(f"mourner-{LONG}", topic.topic_id, index), 1, 0)
        await self.peer.commit({(name, 0): 1}, group_id="mourner")
        await self.pause(1)
        try:
            topics.delete(name)
        except OSError as error:
            raise Violation(f"the deletion of a topic ends with {error}") from error
        self.deleted[name] = topic.topic_id

    async def _again_and_again(self, do: Callable[[], Awaitable[object]], most_s: float) -> None:
        while True:
            await self.pause(most_s)
            try:
                await do()
            except KafkaError:
                continue

    # --- what befalls it

    def _befall(self) -> None:
        disk, chance, broker = self.disk, self.chance, self.broker
        match chance.randrange(6):
            case 0 | 1:
                disk.trouble = chance.choice((errno.ENOSPC, errno.EIO))
                disk.tears = self.tears and chance.random() < 0.2
                disk.spares_journals = chance.random() < 0.5
            case 2:
                broker.skew_ms += chance.choice((-3_600_000, -1_000, 1_000, 3_600_000))
            case 3:
                host: Any = chance.choice((broker.groups, broker.transactions))
                if host.shards:
                    partition = chance.randrange(len(host.shards))
                    host.resign(partition)
                    longest_s = chance.choice((2, 2, 20))
                    asyncio.get_running_loop().call_later(chance.uniform(0, longest_s), host.elect, partition)
            case 4:
                host = chance.choice((broker.groups, broker.transactions, broker.share_states))
                if host.shards:
                    _fail_once(chance.choice(host.shards).coordinator, "replay", comes_late=chance.random() < 0.5)
            case _:
                if broker.groups.shards:
                    _fail_once(chance.choice(broker.groups.shards).coordinator, "expire", comes_late=False)

    async def _fate(self) -> None:
        while True:
            await self.pause(4)
            self._befall()
            await self.pause(1)
            self.disk.trouble = 0

    async def watch_transactions(self) -> None:
        """A transaction that does not end is tried again ever later, and operators read of it."""
        if not self.broker.transactions.shards:
            return
        now_s = asyncio.get_running_loop().time()
        unfinished = {
            (name, shard.coordinator.transactions[name].producer_epoch)
            for shard in self.broker.transactions.shards
            for name in shard._retries
        }
        self._unfinished = {one: self._unfinished.get(one, now_s) for one in unfinished}
        for (name, _), since_s in self._unfinished.items():
            if now_s - since_s > UNFINISHED_S:
                said = [(at_s, level) for at_s, level, text in self.said.lines if at_s >= since_s and name in text]
                is_warned = any(level >= logging.WARNING for _, level in said)
                _require(is_warned, f"no warning that {name} can't end its transaction")
                lately = sum(at_s >= now_s - UNFINISHED_S for at_s, _ in said)
                _require(lately <= MOST_ATTEMPTS, f"the transaction of {name} is ended {lately} times in vain")

    # --- a life

    async def begin_idle_producers(self) -> None:
        """Producers with more transactional ids than one batch holds tombstones of, which they never use."""
        for number in range(MANY):
            request = m.InitProducerIdRequest(f"idle-{number}-{LONG}", 10_000, -1, -1)
            begun = await self.peer.ask(request, 4)
            _require(begun.error_code == errors.NONE, f"no producer can begin: error {begun.error_code}")

    def check_expiration_passes(self) -> None:
        """Those of coordinators that begin together come one after the other."""
        due = [shard._timers._deadline_by_timer.get(OffsetExpiration()) for shard in self.broker.groups.shards]
        _require(None not in due, "a coordinator does not expire offsets any more")
        _require(len(set(due)) == len(due), "all coordinators expire offsets at the same time")

    async def begin_shares(self) -> None:
        """Initializes the share-partitions, as the coordinator of their group does, which a power failure may undo."""
        await self.broker.share_states.wait_until_loaded()
        topic = self.broker.topics.get("shared")
        assert topic is not None
        for number in range(SHARES):
            key = SharePartitionKey("share", topic.topic_id, number)
            try:
                self.broker.share_states.initialize(key, 1 + self.truth.power_failures, 0)
            except KafkaError as error:
                raise Violation(f"share-partition {number} can't be initialized: {error}") from error

    async def go_on(self, seconds: float) -> None:
        """The clients work for a while, whatever happens."""
        works = [self._fate()]
        works += [
            self._again_and_again(lambda one=one: self.commit(one), 0.5)  # type: ignore[misc]
            for one in self.truth.offsets
            if one.startswith("plain")
        ]
        works += [self._again_and_again(lambda one=one: self.look(one), 1) for one in self.truth.offsets]  # type: ignore[misc]
        works += [self._again_and_again(lambda one=one: self.transact(one), 2) for one in range(PRODUCERS)]  # type: ignore[misc]
        works += [self._again_and_again(lambda one=one: self.consume(one), 2) for one in range(SHARES)]  # type: ignore[misc]
        works.append(self._again_and_again(lambda: self.truth.records.produce(self.peer, self.chance), 1))
        works += [
            self._again_and_again(lambda one=one: self.truth.records.read(self.peer, one, self.chance), 1)  # type: ignore[misc]
            for one in (UNCOMMITTED, COMMITTED)
        ]
        works.append(self._again_and_again(self.identify, 2))
        works.append(self._again_and_again(self.watch_transactions, 1))
        works.append(self._again_and_again(self.delete_a_topic, 5))
        tasks = [asyncio.ensure_future(one) for one in works]
        done, _ = await asyncio.wait(tasks, timeout=seconds, return_when=asyncio.FIRST_EXCEPTION)
        for task in done:
            task.result()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def settle(self) -> None:
        """Without faults everything works again before long, and memory is what the log holds."""
        self._end_faults()
        broker = self.broker
        await asyncio.sleep(CALM_S)
        for host in (broker.groups, broker.transactions, broker.share_states):
            for shard in host.shards:
                _require(shard.is_active, f"{shard.log!r} has no coordinator: {shard.failure}")
        for number in range(PRODUCERS):  # a transaction that a clock set back has kept open is aborted
            await self.peer.ask(m.InitProducerIdRequest(f"producer-{number}", 10_000, -1, -1), 4)
        await asyncio.sleep(1)
        # The power may take the last of a transaction's log, and leave its offsets: it hangs, as in Apache Kafka.
        right = {errors.NONE, errors.UnstableOffsetCommit.code} if self.truth.power_failures else {errors.NONE}
        for group_id in self.truth.offsets:
            _require(await self.look(group_id) in right, f"{group_id} can't be read")
        await self.truth.records.check_all(self.peer, ends_are_known=not self.truth.power_failures)
        for group_id in (one for one in self.truth.offsets if one.startswith("plain")):
            _require(await self.commit(group_id) == errors.NONE, f"{group_id} can't commit")
        for number in range(PRODUCERS):
            code = await self._transact_at_last(number)
            _require(code == errors.NONE, f"producer {number} can't end a transaction: error {code}")
        for number in range(SHARES):
            accepted, given_up = self.truth.accepted[number], self.truth.given_up[number]
            for _ in range(40 * RECORDS):
                if len(accepted | given_up) == RECORDS:
                    break
                with suppress(errors.InvalidRecordState):  # one lock of many ended before its acknowledgement
                    await self.consume(number)
                await asyncio.sleep(1)
            _require(len(accepted | given_up) == RECORDS, f"share-partition {number} keeps records back")
        for shard in broker.groups.shards:
            await self._compare(shard)
        left = await self._topics_of("mourner")
        _require(not left & self.deleted.keys(), f"offsets of deleted topics are still there: {sorted(left)}")
        kept = {key.topic_id for shard in broker.share_states.shards for key in shard.coordinator.states}
        _require(kept.isdisjoint(self.deleted.values()), "share state of deleted topics is still there")
        _require(not self.disk.removed_in_loop, f"clients wait while {self.disk.removed_in_loop} is removed")
        if broker.skew_ms >= 0:  # else it is not time yet
            names = {name for shard in broker.transactions.shards for name in shard.coordinator.transactions}
            idle = [name for name in names if name.startswith("idle")]
            _require(not idle, f"{len(idle)} transactional ids do not expire")
        self.check_expiration_passes()
        shard = broker.groups.shard_of("sleeper")
        _require(not shard.members_of("sleeper"), "a silent member is still there")

    async def _transact_at_last(self, number: int) -> int:
        """A transaction, tried again while that helps.

        The power may take the epochs of a producer from the transaction's log and leave them in that of the offsets,
        which refuses those that are drawn again, as in Apache Kafka.
        """
        code = await self.transact(number)
        for _ in range(200 if self.truth.power_failures else 0):
            if code not in (errors.InvalidProducerEpoch.code, errors.ConcurrentTransactions.code):
                break
            await asyncio.sleep(1)
            code = await self.transact(number)
        return code

    async def _topics_of(self, group_id: str) -> set[str]:
        """Topics in which a group has committed offsets."""
        request = m.OffsetFetchRequest(groups=[m.OffsetFetchRequestGroup(group_id, topics=None)])
        (group,) = (await self.peer.ask(request, 8)).groups
        return {topic.name for topic in group.topics}

    def _end_faults(self) -> None:
        """Those that were injected and not met yet, too."""
        self.disk.trouble = 0
        for host in (self.broker.groups, self.broker.transactions, self.broker.share_states):
            for shard in host.shards:
                for name in ("replay", "expire"):
                    vars(shard.coordinator).pop(name, None)

    async def _compare(self, shard: GroupShard) -> None:
        groups = self.broker.groups
        fresh = GroupShard(shard.log, groups.settings, self.broker.now_ms, groups.meters)
        await fresh.load()
        for name in ("_committed", "_pending"):
            kept, read = (getattr(one.coordinator.state.offsets, name) for one in (shard, fresh))
            _require(kept == read, f"{shard.log!r}: memory has {kept}, the log {read}")
        fresh.unload()


def _fail_once(coordinator: Any, name: str, *, comes_late: bool) -> None:
    """The next call raises what is a mistake of ours, before it does anything, or once it is done."""
    original = getattr(coordinator, name)

    def failing(*arguments: Any, **named: Any) -> Any:
        delattr(coordinator, name)
        if comes_late:
            original(*arguments, **named)
        raise RuntimeError("injected")

    setattr(coordinator, name, failing)


def _require(holds: bool, trouble: str) -> None:
    if not holds:
        raise Violation(trouble)


def _first_offset_of(broker: SimulatedBroker, name: str) -> int:
    topic = broker.topics.get(name)
    assert topic is not None
    return topic.partitions[0].log_start_offset


async def _started(directory: Path, bit: FlippedBit | None) -> SimulatedBroker:
    """A broker; it may refuse a damaged file by name, which is then brought back."""
    while True:
        broker = SimulatedBroker(directory, PROPERTIES)
        try:
            with patch("groupkeeper.broker.broker.Server", DeafServer):
                await broker.start()
            return broker
        except InvalidSetting as error:
            if bit is None or not bit.is_named(str(error)):
                raise Violation(f"the broker does not start: {error}") from error
            bit.repair()
            bit = None


async def _live(
    directory: Path,
    disk: Disk,
    truth: Truth,
    chance: random.Random,
    *,
    is_first: bool,
    is_last: bool,
    bit: FlippedBit | None,
) -> None:
    broker = await _started(directory, bit)
    disk.removed_in_loop.clear()  # what a start removes keeps no client waiting
    gone = [name for name in ("t", "shared", TOPIC) if broker.topics.get(name) is None and not is_first]
    _require(not gone, f"topics are gone: {gone}")
    life = Life(broker, disk, truth, chance)
    life.tears = not is_last
    try:
        if is_first:
            broker.topics.create("t", 1, {})
            broker.topics.create("shared", SHARES, {})
            broker.topics.create(TOPIC, 1, {})
            for host in (broker.groups, broker.transactions, broker.share_states):
                host.ensure_topic()
            life.check_expiration_passes()
            await life.begin_idle_producers()
            await life.peer.stable_member("sleeper")
        if is_first or truth.is_after_power_failure:
            await life.begin_shares()
            truth.records.begin_at(_first_offset_of(broker, TOPIC))
            truth.is_after_power_failure = False
        with patch("groupkeeper.broker.coordination.transaction_shard._log", life.said):
            await life.go_on(chance.uniform(5, 60))
        if is_last:
            await life.settle()
        elif chance.random() < CLEAN_STOPS:
            disk.trouble = 0
            await broker.stop()
    finally:
        broker.crash()


def run(seed: int) -> Truth:
    """Some lives of one broker. Raises `Violation`."""
    chance, truth = random.Random(seed), Truth()
    disk = Disk(chance)
    now_s, lives = 0.0, chance.randint(1, 4)
    bit: FlippedBit | None = None
    with tempfile.TemporaryDirectory(prefix="groupkeeper-simulation-") as folder, disk.in_use():
        for number in range(lives):
            loop = VirtualLoop(now_s)
            is_last = number == lives - 1
            with (
                patch("os.urandom", chance.randbytes),
                patch(f"{CLEANER}.perf_counter", _impatient()),
                patch("groupkeeper.broker.storage.directory.PRODUCER_ID_BLOCK", 10),
            ):
                run_life(
                    loop,
                    lambda number=number, is_last=is_last, bit=bit: _live(  # type: ignore[misc]
                        Path(folder), disk, truth, chance, is_first=number == 0, is_last=is_last, bit=bit
                    ),
                    disk,
                )
            strange = [one for one in loop.raised if "injected" not in str(one)]
            _require(not strange, f"raised and caught by nobody: {strange}")
            now_s = loop.now_s + 1
            bit = None
            if not is_last and chance.random() < POWER_FAILURES:
                disk.lose_power(Path(folder))
                truth.lose_power()
            elif not is_last and chance.random() < FLIPPED_BITS:
                bit = FlippedBit(Path(folder), chance)
                truth.lose(bit)
    return truth


def _impatient() -> Callable[[], float]:
    """A clock by which each turn of the cleaner is over after a few steps."""
    ticks = itertools.count()
    return lambda: next(ticks) / 2000


def run_all(seeds: Iterable[int]) -> int:
    """How many acknowledgements clients got in all runs. Raises `Violation` with the seed."""
    total = 0
    for seed in seeds:
        try:
            total += run(seed).acknowledged
        except Violation as violation:
            raise Violation(f"seed {seed}: {violation}") from violation
    return total
