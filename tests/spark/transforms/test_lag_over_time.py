"""A past whose lag is known at every minute, from a broker's logs to the numbers and the plots of the report."""

import json
import re
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from confluent_kafka import Producer
from pyspark.sql import SparkSession
from tests.acts import new_topic
from tests.spark.kafka.test_source import PATIENCE_S

from groupkeeper.cli.main import main
from groupkeeper.pipeline.jobs.snapshot import snapshot
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.offsets_topic import Entry, encode_record

MINUTE_MS = 60_000
LENGTH = 360
"""Minutes of the past; in each of them a record is written to every partition."""
STOPS, IS_RESET, BEGINS = 119, 304, 204
COMMITS = range(4, LENGTH, 5)
BEHIND = 10


def slow(minute: int) -> int | None:
    """Ten records behind, and then it stops."""
    return max(0, min(minute, STOPS) - BEHIND)


def fast(minute: int) -> int | None:
    """Always at the end."""
    return minute + 1


def reset(minute: int) -> int | None:
    """At the end, until it is set back to the first record, from where it does not go on."""
    return minute + 1 if minute < IS_RESET else 0


def late(minute: int) -> int | None:
    """It begins late, and stays there."""
    return BEGINS if minute >= BEGINS else None


GROUPS: dict[str, Callable[[int], int | None]] = {"slow": slow, "fast": fast, "reset": reset, "late": late}
PARTITIONS = {"reset": 1}
"""The other groups read partition 0: what one group has not read tells of its log for all that read it."""

KNOWN_FROM = {"slow": STOPS - BEHIND, "reset": COMMITS[0], "late": STOPS - BEHIND}
"""The minute of the first record that anybody of those who are behind has not read in the partition, but not before the
first commit, where the report begins.
"""


def write_past(servers: str, log: str, topic: str, begin_ms: int) -> None:
    """A record of each minute, and commits in every fifth one, in a topic that holds what an offsets topic does."""
    producer = Producer({"bootstrap.servers": servers, "linger.ms": 20})
    for minute in range(LENGTH):
        now_ms = begin_ms + minute * MINUTE_MS
        for partition in (0, 1):
            producer.produce(topic, b"v", partition=partition, timestamp=now_ms)
        for group_id, position in GROUPS.items():
            offset = position(minute)
            is_silent = group_id == "slow" and minute > STOPS
            if minute in COMMITS and offset is not None and not is_silent:
                place = m.OffsetCommitKey(group_id, topic, PARTITIONS.get(group_id, 0))
                key, value = encode_record(Entry(place, m.OffsetCommitValue(offset, commit_timestamp=now_ms)))
                producer.produce(log, value, key, partition=0, timestamp=now_ms)
    assert producer.flush(PATIENCE_S) == 0


class Past:
    """The report of the past, and what is true of it."""

    def __init__(self, found: dict[str, Any], page: str, begin_ms: int) -> None:
        self.found, self._begin_ms = found, begin_ms
        self.lines = {each["group_id"]: each for each in found["lag_lines"]}
        style = re.sub(r"<(style|script)>.*?</\1>", "", page.removeprefix("<!DOCTYPE html>"), flags=re.DOTALL)
        figures = ElementTree.fromstring(style).findall(".//section[@id='lag']//figure")
        self.figures = {next(filter(str.strip, each.find("h3").itertext())).strip(): each for each in figures}  # type: ignore[union-attr]

    def minute(self, text: str) -> float:
        return (datetime.fromisoformat(text).timestamp() * 1000 - self._begin_ms) / MINUTE_MS

    def true_lag(self, group_id: str, minute: float) -> int | None:
        """By what had been written and committed by then; None: it had no offset."""
        whole = min(int(minute), LENGTH - 1)
        last = max((each for each in COMMITS if each <= whole), default=None)
        offset = None if last is None else GROUPS[group_id](last)
        return None if offset is None else whole + 1 - offset

    def path(self, group_id: str, kind: str) -> list[tuple[float, float]]:
        """The places of a curve of the plot, as shares of its width and height from below."""
        (curve,) = [each for each in self.figures[group_id].iter("path") if each.get("class") == kind]
        places = (each.split() for each in re.split("[ML]", curve.get("d", ""))[1:])
        return [(float(x) / 1000, 1 - float(y) / 100) for x, y in places]


@pytest.fixture(scope="module")
def past(spark: SparkSession, servers: str, tmp_path_factory: pytest.TempPathFactory) -> Past:
    topic, log = new_topic(servers, 2), new_topic(servers, 1)
    begin_ms = (time.time_ns() // 10**6 // MINUTE_MS - LENGTH) * MINUTE_MS
    write_past(servers, log, topic, begin_ms)
    tables = tmp_path_factory.mktemp("past") / "tables"
    summary = snapshot(spark, {"kafka.bootstrap.servers": servers, "cluster": "c", "subscribe": log}, str(tables))
    assert (summary.problems, summary.new_rows["group_records"]) == ([], 0)
    return reported(tables, begin_ms)


def reported(tables: Path, begin_ms: int) -> Past:
    file = tables / "numbers.json"
    with pytest.MonkeyPatch.context() as patch, file.open("w") as out:
        patch.setattr("sys.stdout", out)
        assert main(["pipeline", "report", "--tables", str(tables), "--output", "json"]) == 0
    return Past(json.loads(file.read_text()), (tables / "report.html").read_text(), begin_ms)


def test_lag_is_what_it_was(past: Past) -> None:
    assert set(past.lines) == set(KNOWN_FROM)  # who reads everything is not behind
    now = {each["group_id"]: each["lag"] for each in past.found["groups"]}
    assert now == {"slow": LENGTH - (STOPS - BEHIND), "fast": 0, "reset": LENGTH, "late": LENGTH - BEGINS}
    for group_id, line in past.lines.items():
        known_from = past.minute(line["known_from"])
        assert known_from == pytest.approx(KNOWN_FROM[group_id], abs=1)
        assert line["points"][-1][1] == now[group_id]
        assert len(line["points"]) > 90
        for moment, lag in line["points"][:-1]:
            minute = past.minute(moment)
            true = past.true_lag(group_id, minute)
            if true is None:
                assert lag == 0, minute
            elif minute >= known_from:
                # The measurement comes a little after the last record, and the log is taken to have grown till then.
                assert lag == pytest.approx(true, abs=4), (group_id, minute)
            else:
                assert 0 <= lag <= true, (group_id, minute)  # at least so much


def test_what_is_not_known_is_the_least_that_others_show(past: Past) -> None:
    """Before the first record that it has not read, the commits of who reads everything tell that "slow" is behind."""
    line = past.lines["slow"]
    before = [(past.minute(moment), lag) for moment, lag in line["points"]]
    least = [lag for minute, lag in before if 20 <= minute < KNOWN_FROM["slow"]]
    assert len(least) > 20
    assert all(BEHIND <= lag <= BEHIND + 5 for lag in least)


def test_the_plots_are_dashed_where_it_is_not_known(past: Past) -> None:
    assert set(past.figures) == set(KNOWN_FROM)
    length = past.minute(past.found["until"]) - COMMITS[0]
    for group_id in ("slow", "late"):
        dashed, solid = past.path(group_id, "curve least"), past.path(group_id, "curve")
        assert dashed[-1] == solid[0]
        assert solid[0][0] == pytest.approx((KNOWN_FROM[group_id] - COMMITS[0]) / length, abs=0.02)
        assert solid[-1] == (1, 1)
        assert "known from" in "".join(past.figures[group_id].itertext())
    halfway = [height for x, height in past.path("slow", "curve") if x <= (240 - COMMITS[0]) / length]
    assert halfway[-1] == pytest.approx((241 - 109) / (LENGTH - 109), abs=0.03)
    assert not [each for each in past.figures["reset"].iter("path") if "least" in each.get("class", "")]


def test_what_happened_is_told_beside_it(past: Past) -> None:
    (rewind,) = past.found["rewinds"]
    moved = tuple(rewind[name] for name in ("group_id", "from_offset", "to_offset", "records"))
    assert moved == ("reset", IS_RESET - 5 + 1, 0, IS_RESET - 5 + 1)
    assert past.minute(rewind["rewind_time"]) == IS_RESET
    (activity,) = past.found["activity"]
    assert sum(activity["commits"]) == 2 * len(COMMITS) + (STOPS + 1) / 5 + (LENGTH + 4 - BEGINS) / 5
    per_minute = [count / span for count, span in zip(activity["commits"], activity["covered"], strict=True)]
    assert max(per_minute) <= 4
