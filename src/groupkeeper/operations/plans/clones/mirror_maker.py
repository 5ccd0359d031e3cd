"""The records in which MirrorMaker 2 keeps its progress: names of topics in the target, and known places."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, TypeVar

from groupkeeper.client.admin import Admin
from groupkeeper.client.admin.types import OffsetSpec, TopicPartition
from groupkeeper.client.errors import ClientError
from groupkeeper.operations.plans.clones.mirror_records import (
    Checkpoint,
    OffsetSync,
    decode_checkpoint,
    decode_offset_sync,
)
from groupkeeper.operations.plans.clones.mirror_syncs import Pair, Syncs
from groupkeeper.protocol.codec import MalformedMessage
from groupkeeper.protocol.errors import KafkaError
from groupkeeper.protocol.record import Record
from groupkeeper.protocol.record_batch import CorruptRecord, iter_headers, read_records

MOST_RECORDS = 200_000
"""How many of an internal topic's last records to read: the latest ones matter most."""

_CHECKPOINTS = re.compile(r"(?P<alias>.+)(?P<separator>[._-]+)checkpoints(?P=separator)internal")
_SYNCS = re.compile(r"mm2-offset-syncs(?P<separator>[._-]+)(?P<alias>.+)(?P=separator)internal")

_SEPARATORS = "._-"

T = TypeVar("T", OffsetSync, Checkpoint)


class RemoteNames(NamedTuple):
    """Topics of both clusters that MirrorMaker 2 has made."""

    copies: Mapping[str, Sequence[str]] = {}
    """By topic of the source, the target's topics of that name behind the source's alias and a separator."""
    checkpoints: Sequence[str] = ()
    """The target's topics of checkpoints."""
    syncs_here: Sequence[str] = ()
    """The source's topics of offset syncs."""
    syncs_there: Sequence[str] = ()
    """The target's topics of offset syncs."""


class MirrorRecords(NamedTuple):
    """MirrorMaker 2's records about the requested partitions, by the source's names.

    `syncs`: offsets of copied records. `checkpoints`: offsets of groups in both clusters.
    """

    syncs: Mapping[TopicPartition, Syncs] = {}
    checkpoints: Mapping[tuple[str, TopicPartition], Pair] = {}


def names_of(source: Iterable[str], target: Iterable[str]) -> RemoteNames:
    """Finds the topics of MirrorMaker 2 in both clusters: its copies and its internal ones."""
    aliases: dict[str, None] = {}
    checkpoints, syncs_there = [], []
    names = sorted(target)
    for name in names:
        if match := _CHECKPOINTS.fullmatch(name):
            checkpoints.append(name)
        elif match := _SYNCS.fullmatch(name):
            syncs_there.append(name)
        if match:
            aliases[match["alias"]] = None
    copies: dict[str, list[str]] = {}
    for alias in aliases:
        for name in names:
            rest = name.removeprefix(alias)
            for at in range(1, len(rest)) if rest != name else ():
                if rest[at - 1] not in _SEPARATORS:
                    break
                copies.setdefault(rest[at:], []).append(name)
    return RemoteNames(copies, checkpoints, [one for one in sorted(source) if _SYNCS.fullmatch(one)], syncs_there)


async def mirror_of(
    source: Admin, target: Admin, names: RemoteNames, named: Mapping[TopicPartition, TopicPartition]
) -> tuple[MirrorRecords, list[str]]:
    """Reads what MirrorMaker 2's topics have about partitions; and notes about topics that could not be read."""
    notes: list[str] = []
    found: list[dict[TopicPartition, Syncs]] = []
    for admin, topics in ((source, names.syncs_here), (target, names.syncs_there)):
        for topic in topics:
            of_topic: dict[TopicPartition, Syncs] = {}
            for sync in await _read(admin, topic, decode_offset_sync, notes):
                tp = TopicPartition(sync.topic, sync.partition)
                if tp in named:
                    of_topic.setdefault(tp, Syncs()).add(Pair(sync.upstream, sync.downstream))
            found.append(of_topic)
    # If there are syncs for several targets, it isn't known which are for this one.
    syncs = {tp: each for one in found for tp, each in one.items() if sum(tp in other for other in found) == 1}
    back = {to: tp for tp, to in named.items()}
    checkpoints: dict[tuple[str, TopicPartition], Pair] = {}
    for topic in names.checkpoints:
        for one in await _read(target, topic, decode_checkpoint, notes):
            to = TopicPartition(one.topic, one.partition)
            if to in back:
                checkpoints[one.group_id, back[to]] = Pair(one.upstream, one.downstream)
    return MirrorRecords(syncs, checkpoints), notes


async def _read(
    admin: Admin, topic: str, decode: Callable[[bytes | None, bytes | None], T | None], notes: list[str]
) -> list[T]:
    """The last records of a topic of one partition, in their order."""
    tp, found = TopicPartition(topic, 0), list[T]()

    def take(_: TopicPartition, batches: bytes) -> int | None:
        reached = None
        try:
            for pos, header in iter_headers(batches):
                reached = header.next_offset
                if not header.is_control:
                    found.extend(_decoded(read_records(batches, pos, header=header), decode))
        except CorruptRecord:
            return None
        return reached

    try:
        log_start = (await admin.list_offsets({tp: OffsetSpec.earliest()})).result(tp)
        log_end = (await admin.list_offsets({tp: OffsetSpec.latest()})).result(tp)
        begin = max(log_start.offset, log_end.offset - MOST_RECORDS)
        (await admin.read_logs({tp: (begin, log_end.offset)}, take)).all()
    except (KafkaError, ClientError) as why:
        notes.append(f"MirrorMaker 2's topic {topic} could not be read and is not used: {why or type(why).__name__}")
        return []
    return found


def _decoded(records: Iterable[Record], decode: Callable[[bytes | None, bytes | None], T | None]) -> Iterable[T]:
    for record in records:
        try:
            one = decode(record.key, record.value)
        except MalformedMessage:
            continue  # none of MirrorMaker 2's
        if one is not None:
            yield one
