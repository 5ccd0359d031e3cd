"""What a read consists of, asked of a broker: offsets, times, patterns, and what is said of those that are missing."""

import asyncio
import json
from collections.abc import Iterator, Mapping
from itertools import count
from types import MappingProxyType
from typing import NamedTuple

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows
from tests.acts import cut, make_topic, produce

from groupkeeper.pipeline.errors import SourceError
from groupkeeper.pipeline.jobs.reading import readings
from groupkeeper.pipeline.kafka.instants import ClusterIdentity, Instant
from groupkeeper.pipeline.kafka.options import parse_options
from groupkeeper.pipeline.kafka.planning import Range, ReadPlan, plan_or_raise
from groupkeeper.pipeline.kafka.source import StreamReader
from groupkeeper.testing.background import BackgroundBroker

RECORDS = 100
BEGIN_MS = 1_700_000_000_000
"""Records are a second apart."""


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    """A broker with the topics `t-1` and `t-2`: partition 0 has all its records, 1 has lost the first 40."""
    with BackgroundBroker(properties={"log.retention.ms": "-1"}) as broker:
        servers = broker.bootstrap_servers
        for topic in ("t-1", "t-2"):
            make_topic(servers, topic, 2)
        for partition in (0, 1):
            produce(servers, "t-1", [b"v"] * RECORDS, [partition], times_ms=count(BEGIN_MS, 1000))
        cut(servers, "t-1", 40, 1)
        yield servers


def options_of(servers: str, given: dict[str, str]) -> dict[str, str]:
    return {"kafka.bootstrap.servers": servers, "cluster": "c"} | given


def planned(servers: str, **given: str) -> dict[tuple[str, int], tuple[int, int]]:
    """Start and end by partition."""
    ranges = asyncio.run(plan_or_raise(parse_options(options_of(servers, given))))
    return {(each.topic, each.partition): (each.start, each.end) for each in ranges}


def offsets(first: int, second: int) -> str:
    return json.dumps({"t-1": {"0": first, "1": second}})


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ({}, [(0, 100), (40, 100)]),
        ({"startingOffsets": offsets(7, -2), "endingOffsets": offsets(-1, 60)}, [(7, 100), (40, 60)]),
        ({"startingTimestamp": str(BEGIN_MS + 49_500)}, [(50, 100), (50, 100)]),
        ({"startingTimestamp": str(BEGIN_MS + 10_000)}, [(10, 100), (40, 100)]),
        ({"endingTimestamp": str(BEGIN_MS + 10**9)}, [(0, 100), (40, 100)]),
        (
            {"startingTimestamp": str(BEGIN_MS + 10**9), "startingOffsetsByTimestampStrategy": "latest"},
            [(100, 100), (100, 100)],
        ),
        ({"startingOffsets": offsets(90, 10), "failOnDataLoss": "false"}, [(90, 100), (40, 100)]),
        ({"endingOffsets": offsets(900, 10), "failOnDataLoss": "false"}, [(0, 100), (40, 40)]),
        ({"startingOffsets": offsets(900, -2), "failOnDataLoss": "false"}, [(100, 100), (40, 100)]),
    ],
)
def test_ranges(servers: str, given: dict[str, str], wanted: list[tuple[int, int]]) -> None:
    assert planned(servers, subscribe="t-1", **given) == {("t-1", number): each for number, each in enumerate(wanted)}


def test_a_time_wins_over_offsets_as_in_sparks_own_connector(servers: str) -> None:
    both = {"startingTimestamp": str(BEGIN_MS + 50_000), "startingOffsets": offsets(7, 70)}
    assert planned(servers, subscribe="t-1", **both)["t-1", 0] == (50, 100)


def test_topics_are_chosen_by_pattern_and_partitions_by_number(servers: str) -> None:
    assert {topic for topic, _ in planned(servers, subscribePattern=r"t-\d")} == {"t-1", "t-2"}
    assert planned(servers, assign='{"t-2": [1]}') == {("t-2", 1): (0, 0)}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"subscribe": "away"}, "cluster c: topic away: it does not exist"),
        ({"subscribePattern": "away.*"}, "cluster c: no topic matches subscribePattern=away.*"),
        ({"subscribePattern": "("}, "subscribePattern=(: "),
        ({"assign": '{"t-1": [2]}'}, "cluster c: t-1 has no partition 2"),
        (
            {"subscribe": "t-1", "startingOffsets": offsets(0, 10)},
            "cluster c, partition t-1-1: offsets 10 to 39 are gone, the log starts at 40: set failOnDataLoss=false",
        ),
        (
            {"subscribe": "t-1", "endingOffsets": offsets(101, 100)},
            "cluster c, partition t-1-0: offset 101 is beyond the end of the log, which is 100: set failOnDataLoss",
        ),
        (
            {"subscribe": "t-1", "startingTimestamp": str(BEGIN_MS + 10**9)},
            f"cluster c, partition t-1-0: no record at or after {BEGIN_MS + 10**9}: set startingOffsetsByTimestamp",
        ),
        (
            {"subscribe": "t-2", "startingOffsets": offsets(0, 0)},
            "cluster c: starting offset or time of t-1-0, which is not among the partitions to read",
        ),
    ],
)
def test_what_cannot_be_read_as_asked_is_named(servers: str, given: dict[str, str], said: str) -> None:
    with pytest.raises(SourceError) as caught:
        planned(servers, **given)
    assert str(caught.value).startswith(said)


def stream(servers: str, **given: str) -> StreamReader:
    given = {"subscribe": "t-1", "startingOffsets": "earliest"} | given
    return StreamReader(parse_options(options_of(servers, given), is_streaming=True))


def test_a_micro_batch_takes_its_share_of_each_partition(servers: str) -> None:
    reader = stream(servers)
    begin = reader.initialOffset()
    assert begin == {"c": {"t-1": {"0": 0, "1": 40}}}
    assert reader.latestOffset(begin, ReadAllAvailable()) == {"c": {"t-1": {"0": 100, "1": 100}}}
    assert reader.latestOffset(begin, ReadMaxRows(160)) == {"c": {"t-1": {"0": 100, "1": 100}}}
    some = reader.latestOffset(begin, ReadMaxRows(16))
    assert some == {"c": {"t-1": {"0": 10, "1": 46}}}
    (ranges,) = [task.value for task in stream(servers).partitions(begin, some)]  # as after a restart
    assert sorted((each.partition, each.start, each.end) for each in ranges) == [(0, 0, 10), (1, 40, 46)]


def test_a_stream_whose_log_was_cut_says_so(servers: str) -> None:
    had_been = {"c": {"t-1": {"0": 500, "1": 90}}}
    end = stream(servers).latestOffset(had_been, ReadMaxRows(1000))
    with pytest.raises(SourceError) as caught:
        stream(servers).partitions(had_been, end)
    text = "cluster c, partition t-1-0: the stream is at offset 500, but the log now ends at 100: it was truncated"
    assert str(caught.value).startswith(text)
    (ranges,) = [task.value for task in stream(servers, failOnDataLoss="false").partitions(had_been, end)]
    assert sorted((each.partition, each.start, each.end) for each in ranges) == [(0, 0, 100), (1, 90, 100)]


def test_a_topic_that_was_made_again_is_not_taken_for_the_one_before(servers: str) -> None:
    wanted = {"subscribe": "t-1", "topicIds": '{"t-1": "AAAAAAAAAAAAAAAAAAAAAQ"}', "failOnDataLoss": "false"}
    with pytest.raises(SourceError, match="cluster c: topic t-1 was deleted and made again: its id is "):
        stream(servers, **wanted).latestOffset({"c": {"t-1": {"0": 0}}}, ReadAllAvailable())
    with pytest.raises(SourceError, match="topic t-1 was deleted and made again"):
        planned(servers, **wanted)


class Ledger(NamedTuple):
    """What a ledger has."""

    next_offsets: dict[str, dict[int, int]]
    identities: Mapping[str, ClusterIdentity] = MappingProxyType({})


def of(ranges: list[Range], **ids: ClusterIdentity) -> ReadPlan:
    return ReadPlan(ranges, {}, {name: Instant(1, each, "o", {}, {}) for name, each in ids.items()})


def test_readings_go_on_where_the_tables_end() -> None:
    ranges = [Range(number, name, "o", partition, 10, 50) for number, name in enumerate("ab") for partition in (0, 1)]
    found, failed = readings(of(ranges), Ledger({"a": {0: 30, 1: 4}, "b": {0: 51}}))
    (reading,) = found
    assert [(each.partition, each.start, each.end) for each in reading.ranges] == [(0, 30, 50), (1, 10, 50)]
    assert (reading.size, reading.read_to) == (60, {0: 50, 1: 50})
    assert reading.notes == ("cluster a, partition o-1: offsets 4 to 9 are gone, the log starts at 10",)
    text = "cluster b, partition o-0: the tables go up to offset 51, the log only to 50: it has been cut"
    assert str(failed["b"]).startswith(text)
    found, failed = readings(of(ranges), Ledger({"b": {0: 50}}))
    assert ([each.name for each in found], failed) == (["a", "b"], {})
    assert [(each.start, each.end) for each in found[1].ranges] == [(50, 50), (10, 50)]
    assert [each.notes for each in found] == [(), ()]


def test_a_log_that_was_made_again_is_seen_however_long_it_is() -> None:
    ranges = [Range(number, name, "o", 0, 0, 900) for number, name in enumerate("abcd")]
    next_offsets = {name: {0: 50} for name in "abcd"}
    then = {
        "a": ClusterIdentity("A", "x"),
        "b": ClusterIdentity("B", "x"),
        "c": ClusterIdentity("C", "x"),
        "d": ClusterIdentity(None, None),
    }
    now = {
        "a": ClusterIdentity("A", "x"),
        "b": ClusterIdentity("2", "x"),
        "c": ClusterIdentity("C", "y"),
        "d": ClusterIdentity("D", "z"),
    }
    found, failed = readings(of(ranges, **now), Ledger(next_offsets, then))
    assert [(each.name, each.topic_ids) for each in found] == [("a", {"o": "x"}), ("d", {"o": "z"})]
    way_out = "choose another --tables, or another name for the cluster"
    assert {name: str(error) for name, error in failed.items()} == {
        "b": f"cluster b: the tables are of another cluster, with the id B; the id is 2 now: {way_out}",
        "c": f"cluster c: the tables are of another offsets topic, with the id x; the id is y now: {way_out}",
    }
    assert not readings(of(ranges, **now), Ledger(next_offsets))[1]  # tables of an earlier version
