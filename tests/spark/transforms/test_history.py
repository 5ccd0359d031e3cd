"""What became of groups and offsets that their records alone do not tell; test_splits.py has the rest."""

from types import MappingProxyType

from tests.spark.transforms.causes import with_causes
from tests.spark.transforms.traces import (
    DAY,
    HOUR,
    MINUTE,
    Trace,
    current_offsets,
    events_of,
    listed,
    log_offsets,
    moves_of,
    rewinds_of,
    seconds_of,
)

from groupkeeper.pipeline.kafka.retention import Retention, Retentions


def test_an_event_names_the_member_and_its_client() -> None:
    trace = Trace()
    trace.group(0, 1, ["a"])
    trace.group(10, 2, ["a", "s=b"])
    (joined,) = (row for row in listed(events_of(trace.group_records())) if row.member_id == "b")
    assert (joined.event, joined.instance_id, joined.client_id, joined.client_host) == ("joined", "s", "app", "/h")
    assert (joined.generation, joined.group_epoch, seconds_of(joined.event_time)) == (2, None, 10)


def causes(trace: Trace, retentions: Retentions = MappingProxyType({})) -> list[str]:
    found = with_causes(trace.commits(), trace.group_records(), retentions)
    return [row.removed_by for row in listed(found.sort_by("log_offset")) if row.is_tombstone]


def test_clusters_keep_offsets_for_as_long_as_they_say() -> None:
    trace = Trace()
    trace.commit(0, 1, group_id="young")
    trace.commit(HOUR, None, group_id="young")
    trace.commit(0, 1, group_id="old")
    trace.commit(7 * DAY + 5 * MINUTE, None, group_id="old")
    assert causes(trace) == ["deleted", "expired"]
    found = causes(trace, {"another": Retention(1), "c": Retention(HOUR * 1000, MINUTE * 1000)})
    assert found == ["expired", "unknown"]


def test_an_offset_of_a_topic_that_a_member_reads_went_with_the_topic() -> None:
    trace = Trace()
    trace.group(0, 1, ["a"])
    trace.commit(10, 1)
    trace.commit(7 * DAY + MINUTE, None)
    assert causes(trace) == ["deleted"]


def test_an_earlier_log_tells_nothing_of_what_is_beyond_this_one() -> None:
    trace = Trace()
    trace.commit(1, 5000, topic_id="earlier")
    trace.commit(2, 6000, topic_id="earlier")
    trace.commit(3, 10, topic_id="now")
    trace.commit(4, 5000, partition=1)
    trace.commit(5, 6000, partition=1)
    trace.commit(6, None, partition=1)  # with its topic
    trace.commit(7, 10, partition=2)
    trace.commit(8, 6000, partition=2)
    logs = log_offsets(20, {0: (0, 1000), 1: (0, 1000), 2: (0, 1000)}, topic_id="now")
    moves = moves_of(trace.commits(), events_of(trace.group_records()))
    found = listed(rewinds_of(moves, current_offsets(trace.commits()), logs))
    assert [(row.partition, row.direction, row.to_offset) for row in found] == [(2, "ahead", 6000)]
