"""Collects facts for a translation by time: the records that show where a group is, and both logs then."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import NamedTuple

from groupkeeper.client.admin import Admin
from groupkeeper.client.admin.types import Failure, FirstRecord, Position, TopicPartition
from groupkeeper.operations.errors import TimeUnknown
from groupkeeper.operations.plans.by_time import Since, committed_before, committed_from, first_since, toured
from groupkeeper.operations.plans.clones.translator import Ends, LogPart, Lookups, TranslationFacts
from groupkeeper.operations.plans.cluster_state import last_records
from groupkeeper.protocol.errors import TopicAuthorizationFailed


class Sides(NamedTuple):
    """Both clusters. `named`: the target's partition by the source's; ends: by each cluster's names."""

    source: Admin
    target: Admin
    named: Mapping[TopicPartition, TopicPartition]
    here: Mapping[TopicPartition, Ends]
    there: Mapping[TopicPartition, Ends]

    def ends_there(self, tp: TopicPartition) -> Ends:
        """The ends in the target for a partition of the source."""
        return self.there[self.named[tp]]


async def facts_of(
    sides: Sides, offsets: Mapping[TopicPartition, int]
) -> tuple[dict[TopicPartition, TranslationFacts], dict[TopicPartition, Failure]]:
    """The facts about the source's partitions in both clusters, and failures of others. Empty logs have none."""
    source, target, named, here, there = sides
    records, failed = await _records(source, offsets, here)
    looked_up, why_not = await _looked_up(source, target, records, named)
    failed |= why_not
    facts: dict[TopicPartition, TranslationFacts] = {}
    for tp, (lookups_here, lookups_there, is_append_time) in looked_up.items():
        record, is_all_read, leaves_out = records[tp]
        facts[tp] = TranslationFacts(
            offsets[tp], here[tp], there[named[tp]], record, is_all_read, lookups_here, lookups_there, is_append_time,
            leaves_out=leaves_out,
        )  # fmt: skip
    await _compare(source, target, facts, named)
    return facts, failed


class _Anchor(NamedTuple):
    """The first record that the group has not read, or the last that it has where `is_all_read`."""

    record: FirstRecord
    is_all_read: bool
    leaves_out: bool = False


async def _records(
    source: Admin, offsets: Mapping[TopicPartition, int], here: Mapping[TopicPartition, Ends]
) -> tuple[dict[TopicPartition, _Anchor], dict[TopicPartition, Failure]]:
    """The records whose times show where the groups are; and failures."""
    offsets_in_log = {
        tp: max(offset, here[tp].log_start) for tp, offset in offsets.items() if offset < here[tp].log_end
    }
    read = await source.first_records([Position(*tp, offset) for tp, offset in offsets_in_log.items()])
    failed: dict[TopicPartition, Failure] = {at.topic_partition: _unread(at, why) for at, why in read.failed.items()}
    found = {at.topic_partition: _Anchor(record, False) for at, record in read.done.items() if record is not None}
    ends = {
        Position(*tp, min(offset, here[tp].log_end)): here[tp].log_start
        for tp, offset in offsets.items()
        if tp not in found and tp not in failed
    }
    last = await last_records(source, ends)
    found |= {at.topic_partition: _Anchor(record, True) for at, record in last.done.items() if record is not None}
    failed |= {at.topic_partition: _unread(at, why) for at, why in last.failed.items()}
    await _leave_out_aborted(source, found, offsets_in_log, here)
    for tp, (record, *_) in list(found.items()):
        if record.timestamp < 0:
            failed[tp] = TimeUnknown(f"the record at offset {record.offset} of the source has no timestamp")
            del found[tp]
    for at, last_one in last.done.items():
        if last_one is None:
            failed[at.topic_partition] = TimeUnknown(
                "the end of the source's log has no record, only markers of transactions"
            )
    return found, failed


async def _leave_out_aborted(
    source: Admin,
    found: dict[TopicPartition, _Anchor],
    offsets_in_log: Mapping[TopicPartition, int],
    here: Mapping[TopicPartition, Ends],
) -> None:
    """Replaces aborted records by committed ones, as only these are copied."""
    some = {tp: anchor for tp, anchor in found.items() if anchor.record.is_transactional}
    begins = {tp: anchor.record.offset for tp, anchor in some.items() if not anchor.is_all_read}
    following = await committed_from(source, begins)
    for tp, record in following.items():
        if record is not None:
            found[tp] = _Anchor(record, False, leaves_out=record.offset > begins[tp])
    ends = {tp: (here[tp].log_start, anchor.record.offset + 1) for tp, anchor in some.items() if anchor.is_all_read}
    ends |= {tp: (here[tp].log_start, offsets_in_log[tp]) for tp, record in following.items() if record is None}
    before = await committed_before(source, ends)
    found.update((tp, _Anchor(record, True)) for tp, record in before.items())


async def _looked_up(
    source: Admin,
    target: Admin,
    anchors: Mapping[TopicPartition, _Anchor],
    named: Mapping[TopicPartition, TopicPartition],
) -> tuple[dict[TopicPartition, tuple[Lookups, Lookups, bool]], dict[TopicPartition, Failure]]:
    """The first records at and after the times in both clusters; whether the target stamps records; failures."""
    times = {tp: anchor.record.timestamp for tp, anchor in anchors.items()}
    requests = [
        first_since(
            admin, {names[tp]: time_ms + later for tp, time_ms in times.items()}, skips_aborted=True)
        for admin, names in ((source, {tp: tp for tp in times}), (target, named))
        for later in (0, 1)
    ]  # fmt: skip
    at_here, after_here, at_there, after_there = await asyncio.gather(*requests)
    found: dict[TopicPartition, tuple[Lookups, Lookups, bool]] = {}
    failed: dict[TopicPartition, Failure] = {}
    for tp, time_ms in times.items():
        to = named[tp]
        why = at_here.failed.get(tp) or after_here.failed.get(tp) or at_there.failed.get(to)
        why = why or after_there.failed.get(to)
        if why is not None:
            failed[tp] = why
            continue
        at, there, later = at_here.done[tp], at_there.done[to], after_there.done[to]
        first = at.at._replace(timestamp=time_ms) if at.doubt else at.at  # from there on is the record itself
        lookups_here = Lookups(first, after_here.done[tp].at)
        found[tp] = (lookups_here, Lookups(there.at, later.at, there.doubt or later.doubt), there.is_append_time)
    return found, failed


async def _compare(
    source: Admin,
    target: Admin,
    facts: dict[TopicPartition, TranslationFacts],
    named: Mapping[TopicPartition, TopicPartition],
) -> None:
    """Completes the facts: records at the other log's times, the target's last records, and nearby records."""
    ends = {
        named[tp]: (one.target.log_start, one.target.log_end) for tp, one in facts.items() if one.there.at.offset < 0
    }
    last = await _last_of(target, ends)
    times = {tp: last[named[tp]].timestamp for tp in facts if named[tp] in last}
    from_last = {named[tp]: time_ms for tp, time_ms in times.items()}
    first = await first_since(target, from_last, skips_aborted=True)
    times |= {
        tp: one.there.at.timestamp
        for tp, one in facts.items()
        if one.there.at.offset >= 0 and one.there.at.timestamp != one.here.at.timestamp
    }
    known = {tp: time_ms for tp, time_ms in times.items() if time_ms >= 0}
    back = await first_since(source, known, skips_aborted=True)
    for tp, since in back.done.items():
        if facts[tp].there.at.offset < 0:
            facts[tp] = facts[tp]._replace(last=since.at, keeps_times=since.at.timestamp == times[tp])
        elif not since.doubt:
            facts[tp] = facts[tp]._replace(counterpart=since.at)
    source_ranges = {tp: _source_range(one) for tp, one in facts.items()}
    target_ranges = {named[tp]: _target_range(one, first.done.get(named[tp])) for tp, one in facts.items()}
    in_source, in_target = await asyncio.gather(_parts(source, source_ranges), _parts(target, target_ranges))
    for tp, one in facts.items():
        facts[tp] = one._replace(source_part=in_source.get(tp), target_part=in_target.get(named[tp]))


async def _last_of(target: Admin, ends: Mapping[TopicPartition, tuple[int, int]]) -> dict[TopicPartition, FirstRecord]:
    """The last committed records in the target's logs (or those in no transaction), as far as they can be found."""
    log_starts = {Position(*tp, log_end): begin for tp, (begin, log_end) in ends.items()}
    last = await last_records(target, log_starts)
    found = {at.topic_partition: record for at, record in last.done.items() if record is not None}
    some = {tp: ends[tp] for tp, record in found.items() if record.is_transactional}
    committed = await committed_before(target, some)
    return {tp: record for tp, record in found.items() if tp not in some} | committed


def _source_range(facts: TranslationFacts) -> tuple[int, int]:
    """The range of the source's log that shows how many records are skipped or read again."""
    here, record, end = facts.here, facts.record, facts.source.log_end
    if facts.there.at.offset < 0:
        return (facts.source.log_start if facts.last is None else max(0, facts.last.offset)), end
    after = here.after.offset if here.after.offset >= 0 and not facts.is_all_read else end
    if facts.there.at.timestamp == here.at.timestamp:
        return here.at.offset, max(after, record.offset)
    back = facts.counterpart.offset
    return (here.at.offset, end) if facts.is_all_read else (record.offset, back if back >= record.offset else end)


def _target_range(facts: TranslationFacts, first: Since | None) -> tuple[int, int]:
    """The target's range in which to count. `first`: the first record there with the time of its last one."""
    end = facts.target.log_end
    if facts.there.at.offset < 0:
        return (end, end) if first is None or first.doubt or first.at.offset < 0 else (first.at.offset, end)
    return facts.there.at.offset, facts.there.after.offset if facts.there.after.offset >= 0 else end


async def _parts(admin: Admin, ranges: Mapping[TopicPartition, tuple[int, int]]) -> dict[TopicPartition, LogPart]:
    """The records of these ranges, except ranges that are too large."""
    wanted = {tp: (begin, end) for tp, (begin, end) in ranges.items() if begin < end}
    found = await toured(admin, wanted)
    return {tp: LogPart(*wanted[tp], records) for tp, records in found.items()}


def _unread(position: Position, why: Failure) -> Failure:
    """TimeUnknown with the reason and the position, which the failure itself does not name."""
    reason = f"{type(why).__name__}: {why}".removesuffix(": ")
    if isinstance(why, TopicAuthorizationFailed):
        reason = f"the ACL READ on topic {position.topic} is missing in its cluster"
    return TimeUnknown(f"the source's record at offset {position.offset} could not be read: {reason}")
