"""Lag over time as it was measured."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tests.fleet_tables import Rows, write

from groupkeeper.html.plots import LagLine, lag_plot
from groupkeeper.pipeline.report.reading import read_report
from groupkeeper.pipeline.tables import TABLES

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def lines(
    folder: Path, measures: Mapping[int, Sequence[tuple[float, int | None]]], now: float, lags: Sequence[int | None]
) -> tuple[LagLine, ...]:
    """Of a group, from measures of its partitions (minutes from noon, and lag), and those of the last instant."""
    key = {"cluster": "c", "group_id": "g", "topic": "t"}
    instant = NOON + timedelta(minutes=now)
    rows: Rows = {table.name: [] for table in TABLES}
    rows["lag_history"] = [
        {**key, "partition": partition, "measured_time": NOON + timedelta(minutes=minute), "lag": lag}
        for partition, own in measures.items()
        for minute, lag in own
    ]
    rows["lag"] = [{**key, "partition": number, "lag": lag, "measured_time": instant}
                   for number, lag in enumerate(lags)]  # fmt: skip
    rows["groups"] = [{"cluster": "c", "group_id": "g", "members": 0, "partitions": len(lags)}]
    rows["rates"] = [
        {"cluster": "c", "minute": NOON + timedelta(minutes=minute), "offset_commits": 1}
        for minute in (0, int(now) + 9)
    ]
    return read_report(str(write(folder / "t", rows)), hours=24, top=3).lag_lines


def minutes(line: LagLine) -> list[tuple[float, int | None]]:
    return [((time - NOON).total_seconds() / 60, lag) for time, lag in line.points]


def test_partitions_are_summed_and_hold_until_measured_again(tmp_path: Path) -> None:
    (line,) = lines(tmp_path, {0: [(1, 10), (21, 40)], 1: [(1, 5), (41, 7)]}, 50, [41, 8])
    assert minutes(line) == [(1, 15), (21, 45), (41, 47), (50, 49)]
    assert line.measured_from == NOON + timedelta(minutes=1)


def test_the_line_ends_at_the_measurement_although_the_report_goes_on(tmp_path: Path) -> None:
    (line,) = lines(tmp_path, {0: [(0, 10)]}, 30, [12])
    assert minutes(line)[-1] == (30, 12)


def test_an_hour_without_a_measurement_is_a_gap(tmp_path: Path) -> None:
    (line,) = lines(tmp_path, {0: [(5, 10), (70, 20), (185, 30)]}, 190, [30])
    assert minutes(line) == [(5, 10), (70, 20), (120, None), (185, 30), (190, 30)]
    assert lag_plot(line).count('class="curve"') == 2


def test_what_is_not_known_is_no_number(tmp_path: Path) -> None:
    (line,) = lines(tmp_path, {0: [(1, 10), (20, None), (40, 30)]}, 50, [31])
    assert minutes(line) == [(1, 10), (20, None), (40, 30), (50, 31)]
    assert " 1140: " in lag_plot(line)


def test_of_what_is_close_together_the_highest_is_shown(tmp_path: Path) -> None:
    many = [(minute / 10, 1000 if minute == 333 else minute % 7) for minute in range(600)]
    (line,) = lines(tmp_path, {0: many}, 60, [1])
    assert len(line.points) < 110
    assert max(lag for _, lag in line.known) == 1000
