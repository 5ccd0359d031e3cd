"""Times of records: of the first one from an offset on, and the first offset from a time on."""

import asyncio
import random
from dataclasses import replace
from typing import Any

from tests.rig.asking import Answer, Desk, Difference, Verdict
from tests.rig.facts import now
from tests.rig.truth import Log, Truth
from tests.spark.streams_member import PATIENT

from groupkeeper.client.admin import Admin
from groupkeeper.client.admin.types import OffsetSpec, Position, TopicPartition

NAME = "times"
POSITIONS = 150
NO_RECORD = -1
ABORTED_MS = 60_000
"""What has waited for less is not asked whether it was aborted, unless it is at the start of a log: groups without a
commit may begin there.
"""


def ask(desk: Desk, cluster: str, rng: random.Random, truth: Truth) -> Answer:
    """Of places that groups have committed, and of others, all in one call: the answers share a size limit."""
    positions = {
        Position(topic, partition, commits[-1].offset)
        for (where, _, topic, partition), commits in truth.commits.items()
        if where == cluster and commits[-1].offset >= 0 and rng.random() < 0.5
    }
    places = [place for place, log in truth.logs.items() if place[0] == cluster and log.offsets]
    if not places:
        return Answer(cluster, now(), now(), {})
    positions |= {
        Position(place[1], place[2], rng.randint(0, truth.logs[place].offsets[-1]))
        for place in rng.choices(places, k=POSITIONS // 2)
    }
    chosen = rng.sample(sorted(positions), min(POSITIONS, len(positions)))
    specs = {}
    for _, topic, partition in rng.sample(places, min(60, len(places))):
        log = truth.logs[cluster, topic, partition]
        record = log.records[rng.choice(log.offsets)]
        specs[TopicPartition(topic, partition)] = record.timestamp + rng.choice([0, 0, 1, -1000])
    return asyncio.run(_call(desk.servers[cluster], cluster, chosen, specs))


async def _call(servers: str, cluster: str, positions: list[Position], times: dict[TopicPartition, int]) -> Answer:
    async with Admin(servers, properties=PATIENT) as admin:
        asked = now()
        records = await admin.record_timestamps(positions)
        offsets = await admin.list_offsets({tp: OffsetSpec.for_timestamp(at) for tp, at in times.items()})
        content: dict[Any, Any] = {"times": times}
        content["records"] = {**records.done, **{one: type(why).__name__ for one, why in records.failed.items()}}
        content["offsets"] = {tp: (one.offset, one.timestamp) for tp, one in offsets.done.items()}
        content["offsets"] |= {tp: type(why).__name__ for tp, why in offsets.failed.items()}
        return Answer(cluster, asked, now(), content)


def judge(truth: Truth, answer: Answer) -> Verdict:
    verdict = Verdict()
    for position, found in answer.content.get("records", {}).items():
        if _leaves(truth, answer, position, verdict):
            continue
        log = truth.logs[answer.cluster, position.topic, position.partition]
        admissible = records_at(truth, answer, position)
        verdict.comparisons += 1
        if found not in admissible:
            truths = " or ".join(sorted(map(str, admissible)))
            where = f"{position.topic}-{position.partition} {position.offset}"
            end = log.end(answer.asked, answer.answered)
            text = f"record at {where}: {found}, truth {truths} (end {end})"
            verdict.differences.append(Difference(NAME, answer.cluster, text, position.topic))
    for place, found in answer.content.get("offsets", {}).items():
        if _leaves(truth, answer, place, verdict):
            continue
        timestamp = answer.content["times"][place]
        log = truth.logs[answer.cluster, place.topic, place.partition]
        verdict.comparisons += 1
        firsts = offsets_from(truth, log, answer, timestamp)
        if found not in firsts and not may_be_marker(log, found, firsts, timestamp):
            text = f"offset of time {timestamp} in {place}: {found}, truth {sorted(firsts)}"
            verdict.differences.append(Difference(NAME, answer.cluster, text, place.topic))
    return verdict


def _leaves(truth: Truth, answer: Answer, place: Position | TopicPartition, verdict: Verdict) -> bool:
    """Whether the topic was being changed, or not all of its records have a known offset."""
    log = truth.logs.get((answer.cluster, place.topic, place.partition))
    if log is None or truth.is_changing(answer.cluster, place.topic, answer.asked):
        verdict.leave(f"{NAME}: the topic was being changed")
        return True
    if log.has_unplaced:
        verdict.leave(f"{NAME}: offsets of some records were never told")
    return log.has_unplaced


def records_at(truth: Truth, answer: Answer, position: Position) -> set[int | str | None]:
    """What may be told of the first record from an offset on. None: there is none."""
    log = truth.logs[answer.cluster, position.topic, position.partition]
    end, start = log.end(answer.asked, answer.answered), log.start(answer.asked, answer.answered)
    found: set[int | str | None] = set()
    if position.offset < start.high or position.offset > end.low:
        found.add("OffsetOutOfRange")
    if position.offset < start.low or position.offset > end.high:
        return found
    at = position.offset
    while (record := log.next_record(at)) is not None and record.began < answer.answered:
        if record.offset >= start.low:
            found.add(record.timestamp)
        if record.ended <= answer.asked and record.offset >= start.high and not truth.is_compacted(record):
            return found
        at = record.offset + 1
    return found | {None}


def waiting_at(truth: Truth, answer: Answer, position: Position, at_ms: int) -> set[int | str | None]:
    """What may be told at that time of the first record that waits from an offset on: once one has waited for a minute,
    or at the start of the log, it is looked whether it was aborted, and if so for the one after it.
    """
    found = records_at(truth, answer, position)
    log = truth.logs[answer.cluster, position.topic, position.partition]
    is_first = position.offset <= log.start(answer.asked, answer.answered).high
    if not is_first and not any(isinstance(one, int) and at_ms - one >= ABORTED_MS for one in found):
        return found
    record = log.next_record(position.offset)
    while record is not None and truth.is_aborted(record):
        record = log.next_record(record.offset + 1)
        found.add(None if record is None or record.began >= answer.answered else record.timestamp)
    return found


def offsets_from(truth: Truth, log: Log, answer: Answer, timestamp: int) -> set[tuple[int, int]]:
    """First records with that time or a later one, with their times; offset -1: there is none.

    A cut of the log leaves records in their segment, and Kafka looks only into the first segment whose largest time is
    late enough: where that is a record that was cut off, its answer is -1.
    """
    start = log.start(answer.asked, answer.answered)
    found: set[tuple[int, int]] = set()
    cut_off = log.first_from_time(timestamp, 0)
    if cut_off is not None and cut_off.offset < start.high:
        found.add((NO_RECORD, NO_RECORD))
    at = start.low
    while (record := log.first_from_time(timestamp, at)) is not None:
        if record.began < answer.answered:
            found.add((record.offset, record.timestamp))
        if record.ended <= answer.asked and record.offset >= start.high and not truth.is_compacted(record):
            return found
        at = record.offset + 1
    return found | {(NO_RECORD, NO_RECORD)}


def may_be_marker(log: Log, found: object, firsts: set[tuple[int, int]], timestamp: int) -> bool:
    """Whether it may be the marker of a transaction's end, which has an offset and a time as records have."""
    if not isinstance(found, tuple) or found[0] < 0 or found[0] in log.records or found[1] < timestamp:
        return False
    last = log.offsets[-1] + len(log.markers) if (NO_RECORD, NO_RECORD) in firsts else max(firsts)[0]
    ends = ((began // 1_000_000, ended // 1_000_000) for began, ended in log.markers)
    return found[0] <= last and any(began <= found[1] <= ended for began, ended in ends)


def spoil(truth: Truth, answer: Answer, rng: random.Random) -> Answer | None:
    part = rng.choice(["records", "offsets"])
    rows = dict(answer.content.get(part, {}))
    if not rows:
        return None
    one = rng.choice([place for place in rows if not _leaves(truth, answer, place, Verdict())] or [None])
    if one is None:
        return None
    rows[one] = -7 if part == "records" else (-7, -7)
    return replace(answer, content=answer.content | {part: rows})
