"""Consumers that read on from where a change has put their group, and what they must find there."""

import time
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any, NamedTuple

import confluent_kafka
from confluent_kafka import KafkaError, TopicPartition
from tests.rig.actors.performing import CLIENT, PATIENCE_S
from tests.rig.facts import Assigned, Consumed, Joining, Left, Notebook, Produced, now
from tests.rig.truth import Log

Place = tuple[str, int]


class Read(NamedTuple):
    """A record that a consumer was given. `identity`: what its producer wrote into it, its name and a number."""

    offset: int
    identity: str


Reads = Mapping[Place, Sequence[Read]]


def identity_of(record: Produced) -> str:
    """What is in a record, by its producer's facts."""
    if record.is_tombstone:
        return ""
    return "old" if record.number < 0 else f"{record.producer} {record.number}"


def read_on(servers: str, cluster: str, group: str, places: Collection[Place], notebook: Notebook) -> Reads:
    """By a consumer that assigns partitions to itself, and begins where the group's commits say, up to the ends."""
    client = _consumer(servers, group, "rig reads on")
    client.assign([TopicPartition(*place, confluent_kafka.OFFSET_STORED) for place in places])
    try:
        return _to_the_ends(client, cluster, group, places, notebook)
    finally:
        client.close()


def read_on_as_member(servers: str, cluster: str, group: str, places: Collection[Place], notebook: Notebook) -> Reads:
    """By a member of the group, which gets all partitions of its topics, and leaves at the end."""
    name = f"rig member of {group}"[:60]
    client = _consumer(servers, group, name)

    def note(_: object, given: Iterable[TopicPartition]) -> None:
        has = sorted((one.topic, one.partition) for one in given)
        notebook.write(Assigned(cluster, group, name, 1, has, now()))

    notebook.write(Joining(cluster, group, name, 1, now()))
    client.subscribe(sorted({topic for topic, _ in places}), on_assign=note)
    try:
        return _to_the_ends(client, cluster, group, places, notebook)
    finally:
        began = now()
        client.close()
        notebook.write(Left(cluster, group, name, 1, False, began, now()))
        notebook.flush()


def _consumer(servers: str, group: str, name: str) -> Any:
    return confluent_kafka.Consumer({
        "bootstrap.servers": servers, "group.id": group, "client.id": name, "enable.auto.commit": False,
        "auto.offset.reset": "earliest", "isolation.level": "read_uncommitted", "enable.partition.eof": True, **CLIENT,
    })  # fmt: skip


def _to_the_ends(client: Any, cluster: str, group: str, places: Collection[Place], notebook: Notebook) -> Reads:
    found: dict[Place, list[Read]] = {place: [] for place in places}
    left, deadline = set(places), time.monotonic() + PATIENCE_S
    while left:
        assert time.monotonic() < deadline, f"{group} has not read to the end of {sorted(left)[:5]}"
        for message in client.consume(500, 0.5):
            place = (message.topic(), message.partition())
            error = message.error()
            if error is None and place in found:
                found[place].append(Read(message.offset(), identity_in(message.value())))
            elif error is not None and error.code() == KafkaError._PARTITION_EOF:
                left.discard(place)
    for place, reads in found.items():
        if reads:
            notebook.write(Consumed(cluster, group, *place, reads[0].offset, reads[-1].offset, now()))
    return found


def identity_in(value: bytes | None) -> str:
    """What is in a record that was read."""
    if value is None:
        return ""
    return b" ".join(value.split(b" ", 2)[:2]).decode("utf-8", "replace")


class Figures(NamedTuple):
    """What a plan says of a partition; None: it says nothing."""

    skipped: int | None = None
    replayed: int | None = None


def position(log: Log, committed: int | None, at: int) -> int:
    """Where a consumer begins, which begins at the oldest record where nothing is committed or the log lacks it."""
    start, end = log.start(at, at).low, log.end(at, at).low
    return committed if committed is not None and start <= committed <= end else start


def differences(log: Log, reads: Sequence[Read], before: int | None, after: int, said: Figures) -> Iterator[str]:
    """What is wrong with what was read from the position `after` on. `before`: where the group would have read on
    without the change; None: there was none.
    """
    offsets = log.offsets[bisect_left(log.offsets, after) :]
    wanted = [Read(offset, identity_of(log.records[offset])) for offset in offsets]
    for found, one in zip_longest(reads, wanted):
        if found != one:
            yield f"from {after} on {found} was read, truth {one}"
            break
    if before is None:
        return
    first = reads[0].offset if reads else max(after, log.offsets[-1] + 1 if log.offsets else 0)
    repeated = sum(one.offset < before for one in reads)
    left_out = bisect_left(log.offsets, max(first, before)) - bisect_left(log.offsets, before)
    for what, count, figure, gaps in (
        ("read again", repeated, said.replayed, _gaps(log, after, before)),
        ("skipped", left_out, said.skipped, _gaps(log, before, after)),
    ):
        if figure is not None and figure - gaps != count:
            yield f"{count} records were {what}, the plan said {figure} offsets, of which {gaps} are no records"


def _gaps(log: Log, low: int, high: int) -> int:
    """How many offsets hold no record: the markers of transactions."""
    return max(0, high - low) - max(0, bisect_left(log.offsets, high) - bisect_left(log.offsets, low))


def spoilt(reads: Sequence[Read], choose: Callable[[int], int]) -> Iterator[tuple[str, Sequence[Read]]]:
    """What was read with one thing wrong, in each way."""
    if not reads:
        yield "a record that is not there", [Read(7, "nobody 7")]
        return
    at = choose(len(reads))
    yield "a record is skipped", [*reads[:at], *reads[at + 1 :]]
    yield "a record is read twice", [*reads[: at + 1], *reads[at:]]
    yield "another record", [*reads[:at], reads[at]._replace(identity="nobody 7"), *reads[at + 1 :]]
