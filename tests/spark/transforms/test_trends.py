"""What measurements tell together: rates, trends and what is kept of them, as a replay in plain Python tells it."""

import random
import time
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from tests.acts import commit, new_topic, produce
from tests.spark.kafka.test_instant import MINUTE_MS, asked, options_of, rows
from tests.spark.transforms.traces import HOUR, at, frame, lag_row, listed, ms, seconds_of, table_of

from groupkeeper.pipeline.jobs.snapshot import snapshot
from groupkeeper.pipeline.present.trends import lag_history, log_ends, with_trend
from groupkeeper.pipeline.storage.contents import parts
from groupkeeper.pipeline.storage.lake import OPEN
from groupkeeper.pipeline.storage.ledger import Tables
from groupkeeper.pipeline.storage.output import THIN_DAYS, Output, open_output
from groupkeeper.pipeline.tables import FRESHNESS, LAG, LAG_HISTORY, LOG_ENDS, LOG_OFFSETS
from groupkeeper.pipeline.transforms.latest import hourly_ends, hourly_lag

Measured = dict[str, Any]


MEASURED = pa.schema(
    [*list(LAG.arrow)[: LAG.names.index("measures")], ("retention_ms", pa.int64()), ("is_waiting", pa.bool_())]
)


def judged(found: Iterable[Measured], then: pa.Table | None = None, jumps: Iterable[int] = ()) -> pa.Table:
    """Rows of tables.LAG, as one refresh after that of `then` has them; those partitions were put ahead since."""
    moved = [lag_row(0, 0, 0, None, 0, partition=number) for number in jumps]
    earlier = LAG.arrow.empty_table() if then is None else then
    return with_trend(pa.Table.from_pylist(list(found), MEASURED), earlier, table_of(LAG, moved).select(LAG.key))


def test_rates_trend_and_what_they_lead_to() -> None:
    hour_ms = HOUR * 1000
    first = {
        0: lag_row(0, 100, 1100, 50_000, 0),  # catches up: 20 come, 60 are read in a second
        1: lag_row(0, 100, 1100, 50_000, 0),  # falls behind
        2: lag_row(0, 100, 1100, 50_000, 0),  # stands still with its topic
        3: lag_row(0, 1000, 1010, 500, 0),  # lag is what came since its last commit
        4: lag_row(0, 100, 1100, 50_000, 0),  # was put back
        5: lag_row(0, 100, 1100, 50_000, 0),  # was put ahead by a reset
        6: lag_row(0, 100, 1100, 50_000, 0),  # the topic was created again
        7: lag_row(0, -5, 1000, 50_000, 0),  # before the log
    }  # fmt: skip
    now = {
        0: lag_row(60, 1900, 2300, 20_000, 60, retention_ms=hour_ms),
        1: lag_row(60, 700, 2300, 90_000, 60, retention_ms=60_000),
        2: lag_row(60, 100, 1100, 110_000, 0, retention_ms=-1),
        3: lag_row(60, 2000, 2025, 700, 60),
        4: lag_row(60, 50, 1200, 110_000, 60),
        5: lag_row(60, 1000, 1200, 10_000, 60),
        6: lag_row(60, 100, 500, 10_000, 60),
        7: lag_row(60, 600, 1000, 0, 60, retention_ms=hour_ms),
    }
    then = judged((row | {"partition": number} for number, row in first.items()))
    assert {(row.produced_per_s, row.trend, row.catch_up_ms) for row in listed(then)} == {(None, None, None)}
    found = judged((row | {"partition": number} for number, row in now.items()), then, jumps=(5,))
    columns = ("produced_per_s", "consumed_per_s", "trend", "catch_up_ms", "retention_margin_ms")
    assert {row.partition: tuple(getattr(row, name) for name in columns) for row in listed(found)} == {
        0: (20.0, 30.0, "shrinking", 40_000, hour_ms - 20_000),
        1: (20.0, 10.0, "growing", None, -30_000),
        2: (0.0, 0.0, "steady", None, None),
        3: (pytest.approx(1015 / 60), pytest.approx(1000 / 60), "steady", None, None),
        4: (None, None, None, None, None),
        5: (None, None, None, None, None),
        6: (None, None, None, None, None),
        7: (0.0, 10.0, "shrinking", 40_000, None),
    }  # fmt: skip
    assert found.column_names == LAG.names


class Replayed:
    """One group's partition, refresh after refresh, as docs/pipeline-tables.md has it."""

    def __init__(self) -> None:
        self.measures: list[tuple[int, int | None, int | None]] = []
        self.history: list[tuple[int, int | None]] = []

    def measure(
        self, seconds: int, committed: int, end: int, *, is_known: bool, jumped: bool
    ) -> tuple[float | None, str | None]:
        """The rate of records that come, and the trend."""
        known = [each for each in self.measures if each[2] is not None]
        if jumped or (known and (committed < (known[-1][1] or 0) or end < (known[-1][2] or 0))):
            self.measures = []
        if not self.measures or seconds // 60 > self.measures[-1][0] // 60:
            values = (committed, end) if is_known else (None, None)
            before = self.measures[-1] if self.measures else None
            self.measures = [*self.measures, (seconds, *values)][-11:]
            if before is None or before[1:] != values or before[0] // 3600 < seconds // 3600:
                self.history.append((seconds, end - committed if is_known else None))
        known = [each for each in self.measures if each[2] is not None]
        if not is_known or not known or seconds - known[0][0] < 30:
            return None, None
        then, committed_then, end_then = known[0]
        assert committed_then is not None
        assert end_then is not None
        rate = (end - end_then) / (seconds - then)
        come, read = end - end_then, committed - committed_then
        is_steady = end == committed or abs(come - read) <= max(come, read) / 20
        return rate, "steady" if is_steady else "growing" if come > read else "shrinking"


@pytest.mark.long
def test_as_a_replay_of_random_measurements() -> None:
    rng = random.Random(20)
    partitions = range(30)
    ends, committed = [1000] * len(partitions), [500] * len(partitions)
    replayed = [Replayed() for _ in partitions]
    seconds = 3000
    then: pa.Table | None = None
    kept = []
    for _ in range(30):
        seconds += rng.choice((7, 25, 61, 90, 600))
        given: list[Measured] = []
        wanted: dict[int, tuple[float | None, str | None]] = {}
        jumps = []
        for number in partitions:
            what = rng.choices(("read", "ahead", "back", "unknown", "not asked"), (80, 5, 5, 5, 5))[0]
            ends[number] += rng.choice((0, 0, 10, 700))
            if what in ("read", "unknown"):
                committed[number] = min(ends[number], committed[number] + rng.choice((0, 0, 10, 700)))
            elif what == "ahead":
                jumps.append(number)
                committed[number] = ends[number]
            elif what == "back":
                committed[number] = max(0, committed[number] - 300)
            place = (committed[number], ends[number])
            made = lag_row(seconds, *place, None, 0, partition=number)
            if what == "not asked":
                wanted[number] = (None, None)
                made |= {"measured_time": None, "lag": None}
            else:
                is_known = what != "unknown"
                wanted[number] = replayed[number].measure(seconds, *place, is_known=is_known, jumped=what == "ahead")
                made |= {} if is_known else {"lag": None, "problem": "history is behind"}
            given.append(made)
        then = judged(given, then, jumps)
        for row in listed(then):
            names = ("committed_offset", "log_end_offset")
            measures = [(seconds_of(each["time"]), *map(each.get, names)) for each in row.measures]
            assert measures == replayed[row.partition].measures
            rate, trend = wanted[row.partition]
            assert (row.produced_per_s, row.trend) == (None if rate is None else pytest.approx(rate), trend)
        kept += listed(lag_history(then, column=OPEN))
    by_partition = defaultdict(list)
    for each in kept:
        by_partition[each.partition].append((seconds_of(each.measured_time), each.lag))
    assert by_partition == {number: own.history for number, own in enumerate(replayed)}


def test_log_ends_hold_until_they_change() -> None:
    """By partition: where its log ended at each measurement, in seconds, None: it could not be asked."""
    told: dict[int, dict[int, int | None]] = {
        0: {0: 10, 30: 11, 65: 12, 130: 12, 200: 12, HOUR: 12, HOUR + 70: 13},
        1: {0: 5, 65: None, 130: 5, HOUR: None, HOUR + 70: 5},
        2: {HOUR + 70: 1},
    }
    wanted = {
        (0, 0, 10), (0, 65, 12), (0, HOUR, 12), (0, HOUR + 70, 13),
        (1, 0, 5), (1, HOUR + 70, 5),
        (2, HOUR + 70, 1),
    }  # fmt: skip
    last, all_rows = table_of(LOG_ENDS, []), []
    for seconds in sorted({each for own in told.values() for each in own}):
        place = {"cluster": "c", "topic": "t", "measured_time": at(seconds), "log_start_offset": 0}
        given = [
            {**place, "partition": number, "last_stable_offset": own[seconds], "log_end_offset": own[seconds]}
            for number, own in told.items()
            if seconds in own
        ]
        freshness = {"cluster": "c", "log_partition": 9, "measured_time": at(seconds), "log_end_offset": 77}
        measured = table_of(LOG_OFFSETS, given), table_of(FRESHNESS, [freshness])
        found = log_ends(*measured, "__consumer_offsets", last, "is_last")
        all_rows += listed(found.filter(pc.invert(found["is_last"])))
        last = found.filter(found["is_last"]).drop_columns("is_last")
    all_rows += listed(last)
    ends = {(row.partition, seconds_of(row.measured_time), row.log_end_offset) for row in all_rows if row.topic == "t"}
    assert ends == wanted
    own = sorted(seconds_of(row.measured_time) or 0 for row in all_rows if row.topic == "__consumer_offsets")
    assert own == [0, HOUR]
    assert len(all_rows) == len(wanted) + 2


@pytest.mark.long
def test_what_was_measured_stays_when_tables_are_rebuilt(spark: SparkSession, servers: str, tmp_path: Path) -> None:
    topic = new_topic(servers)
    until_the_hour_ms = HOUR * 1000 - time.time_ns() // 1_000_000 % (HOUR * 1000)  # a new hour begins with a row

    def measure(minutes: int, committed: int, *, from_start: bool = False) -> Measured:
        commit(servers, "measured", {(topic, 0): committed})
        found = asked(servers, until_the_hour_ms + minutes * MINUTE_MS)
        summary = snapshot(spark, options_of(servers), str(tmp_path), ask=lambda: found, from_start=from_start)
        assert not summary.problems
        (lag,) = rows(tmp_path, "lag", "measured", topic)
        return lag

    produce(servers, topic, "v" * 40)
    first = measure(0, 10)
    produce(servers, topic, "v" * 60)
    lag = measure(2, 70)
    rate = pytest.approx(60 / (lag["measured_time"] - first["measured_time"]).total_seconds())
    assert (lag["produced_per_s"], lag["consumed_per_s"], lag["trend"]) == (rate, rate, "steady")
    assert lag["retention_margin_ms"] is None  # the broker keeps records for ever
    history = [(30, 40), (30, 100)]
    assert history_of(tmp_path, topic) == history
    assert ends_of(tmp_path, topic) == [40, 100]
    measure(5, 70, from_start=True)
    assert history_of(tmp_path, topic) == history
    measure(7, 100)
    assert history_of(tmp_path, topic) == [*history, (0, 100)]
    assert ends_of(tmp_path, topic) == [40, 100]
    for path in (tmp_path / "lag_history").iterdir():
        path.unlink()
    measure(9, 90)
    assert history_of(tmp_path, topic) == [(10, 100)]


def history_of(tables: Path, topic: str) -> list[tuple[int, int]]:
    found = sorted(rows(tables, "lag_history", "measured", topic), key=lambda row: row["measured_time"])
    return [(row["lag"], row["log_end_offset"]) for row in found]


def ends_of(tables: Path, topic: str) -> list[int]:
    found = [row for row in pq.read_table(tables / "log_ends").to_pylist() if row["topic"] == topic]
    return [row["log_end_offset"] for row in sorted(found, key=lambda row: row["measured_time"])]


def test_after_a_week_an_hour_has_one_row(spark: SparkSession, tmp_path: Path) -> None:
    measured = [(0, 5), (600, 9), (1200, 7), (HOUR, None), (HOUR + 60, 1), (HOUR + 120, 1)]

    def add(output: Output, begin: float) -> None:
        place = {"cluster": "c", "group_id": "g", "topic": "t", "partition": 0}
        given = [{**place, "measured_time": at(begin + seconds), "lag": lag} for seconds, lag in measured]
        is_open = [begin > 0 and seconds == HOUR + 120 for seconds, _ in measured]
        table = LAG_HISTORY
        made = table_of(table, given).append_column(OPEN, pa.array(is_open))
        files = {is_open: output.stage(rows, table).files for is_open, rows in parts(made, OPEN)}
        output.refresh(Tables({}, {table.name: files[False]}, {table.name: files.get(True, [])}), {})

    day_ms = 24 * HOUR * 1000
    week_ms = ms(0) + THIN_DAYS * day_ms
    with open_output(spark, str(tmp_path)) as output:
        add(output, 0)
        add(output, 24 * HOUR)
        assert output.thin(LAG_HISTORY, hourly_lag, week_ms + day_ms - 1) == 0  # not for less than a day of rows
        assert output.thin(LAG_HISTORY, hourly_lag, week_ms + day_ms) == 1
        assert output.thin(LAG_HISTORY, hourly_lag, week_ms + day_ms + 1) == 0
    with open_output(spark, str(tmp_path)) as output:
        found = output.read(LAG_HISTORY).collect()
    assert sorted(((seconds_of(row.measured_time) or 0) / 60, row.lag) for row in found) == [
        (10, 9), (62, 1), (1440, 5), (1450, 9), (1460, 7), (1500, None), (1501, 1), (1502, 1),
    ]  # fmt: skip


def test_of_an_hour_the_last_ends_are_left(spark: SparkSession) -> None:
    place = {"cluster": "c", "topic": "t", "partition": 0}
    given = [{**place, "measured_time": at(seconds), "log_end_offset": seconds} for seconds in (0, 60, HOUR, HOUR + 60)]
    assert sorted(row.log_end_offset for row in hourly_ends(frame(spark, LOG_ENDS, given)).collect()) == [60, HOUR + 60]
