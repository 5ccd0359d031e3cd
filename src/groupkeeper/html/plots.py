"""Plots as inline SVG: drawn on 1000 by 100 units, stretched by the page, with text beside them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from html import escape
from typing import NamedTuple

from groupkeeper.rules import words
from groupkeeper.rules.status import Status

_WIDTH, _HEIGHT = 1000, 100
_EDGE = 3
"""The margin above and below, so that a line along an edge is not cut."""

_WIDEST_BAR = 40
_DAY_S = 86400 * 1.05
"""A span this long has the hour only at its marks; a longer one has the date too, and fewer of them."""

_Points = Sequence[tuple[datetime, float | None]]


class Activity(NamedTuple):
    """Offset commits and completed rebalances in a cluster, in bins."""

    cluster: str
    begin: datetime
    """The time of the first bin."""
    minutes: int
    """The length of a bin."""
    commits: tuple[int, ...]
    rebalances: tuple[int, ...]
    covered: tuple[int, ...]
    """How many minutes of each bin the report covers, fewer for the first and the last one."""


class LagLine(NamedTuple):
    """The lag of a group in records over time; None: unknown, or not measured. Before `known_from` the values are lower
    bounds. From `measured_from` on they were measured, and a point holds until the next one; None: never.
    """

    cluster: str
    group_id: str
    points: tuple[tuple[datetime, int | None], ...]
    known_from: datetime
    measured_from: datetime | None = None

    @property
    def known(self) -> list[tuple[datetime, int]]:
        """The points with a known lag."""
        return [(time, lag) for time, lag in self.points if lag is not None]


def lag_plot(line: LagLine) -> str:
    """The lag over time, from 0 on, on its own scale; dashed and shaded where the values are lower bounds, with gaps
    where the lag is unknown.
    """
    begin, end = line.points[0][0], line.points[-1][0]
    span_s = max(1e-6, (end - begin).total_seconds())
    highest = max(line.known, key=lambda each: each[1], default=(begin, 0))
    top = max(1, highest[1])

    def place(time: datetime, lag: int) -> tuple[float, float]:
        return ((time - begin).total_seconds() / span_s * _WIDTH, _HEIGHT - lag / top * _HEIGHT)

    drawn = ""
    if line.known_from > begin:
        until = (min(line.known_from, end) - begin).total_seconds() / span_s * _WIDTH
        drawn += f'<rect class="dim" width="{until:.0f}" height="{_HEIGHT}"/>'
    for piece in _pieces(line):
        shown = [place(*each) for each in piece]
        area = f"M{shown[0][0]:.0f} {_HEIGHT}L{_joined(shown)}L{shown[-1][0]:.0f} {_HEIGHT}Z"
        drawn += f'<path class="area" d="{area}"/>'
        least = [each for each in piece if each[0] < line.known_from]
        known = [each for each in piece if each[0] >= line.known_from]
        if least:
            drawn += f'<path class="curve least" d="M{_joined([place(*each) for each in [*least, *known[:1]]])}"/>'
        if len(known) > 1:
            drawn += f'<path class="curve" d="M{_joined([place(*each) for each in known])}"/>'
        elif not least:
            x, y = shown[0]
            drawn += f'<path class="curve dot" d="M{x:.0f} {y:.1f}h.01"/>'
    label = f"lag over time, highest {words.number(highest[1])} records at {words.moment(highest[0])} UTC"
    return _chart("plot", label, "records to read", top, (begin, end), line.points, drawn)


def _pieces(line: LagLine) -> list[list[tuple[datetime, int]]]:
    """The pieces of a line between its gaps. A measured value holds until the next measurement."""
    found: list[list[tuple[datetime, int]]] = [[]]
    for time, lag in line.points:
        held = found[-1][-1:]
        if held and line.measured_from is not None and time > line.measured_from:
            found[-1].append((time, held[0][1]))
        if lag is None:
            found.append([])
        else:
            found[-1].append((time, lag))
    return [each for each in found if each]


def bars_over_time(activity: Activity, counts: Sequence[int], unit: str, *, is_rate: bool) -> str:
    """A bar for each bin: with `is_rate` the count per minute, otherwise the count."""
    spans = activity.covered if is_rate else (1,) * len(counts)
    values = [count / span for count, span in zip(counts, spans, strict=True)]
    top = max([1 / activity.minutes if is_rate else 1, *values])
    width = _WIDTH / len(counts)
    begins = [activity.begin + timedelta(minutes=activity.minutes * position) for position in range(len(counts))]
    end = begins[-1] + timedelta(minutes=activity.minutes)
    drawn = []
    for position, value in enumerate(values):
        if value:
            height = max(1.5, value / top * _HEIGHT)
            drawn.append(
                f'<rect class="bar" x="{position * width + width * 0.08:.1f}" y="{_HEIGHT - height:.1f}" '
                f'width="{min(_WIDEST_BAR, width * 0.84):.1f}" height="{height:.1f}"/>'
            )
    most = _shown(top) if any(counts) else "0"
    points = list(zip(begins, values, strict=True))
    return _chart("plot tall", f"{unit} over time, at most {most}", unit, top, (activity.begin, end), points,
                  "".join(drawn))  # fmt: skip


def _chart(
    kind: str, label: str, unit: str, top: float, span: tuple[datetime, datetime], points: _Points, drawn: str
) -> str:
    """A plot with its axes. Its values are in the element, too: the script shows them by pointer, by keyboard and as a
    table, and draws shorter ranges of time.
    """
    begin, end = span
    view = f"0 {-_EDGE} {_WIDTH} {_HEIGHT + 2 * _EDGE}"
    marks = "".join(f"<span>{each}</span>" for each in (_shown(top), _shown(top / 2), "0"))
    values = " ".join(
        f"{round((time - begin).total_seconds())}:{'' if value is None else f'{value:.10g}'}" for time, value in points
    )
    is_bars = ' data-bars=""' if kind != "plot" else ""
    return (
        f'<div class="chart" data-begin="{begin.timestamp():.0f}" data-end="{end.timestamp():.0f}" '
        f'data-unit="{escape(unit)}" data-values="{values}"{is_bars}>'
        f'<p class="scale"><span>{escape(unit)}</span></p><div class="frame">'
        f'<div class="y" aria-hidden="true">{marks}</div>'
        f'<svg class="{kind}" viewBox="{view}" preserveAspectRatio="none" role="img" aria-label="{escape(label)}">'
        f"{drawn}</svg></div>{_axis(begin, end)}</div>"
    )


def share_bar(value: int, most: int, status: str) -> str:
    """A bar from the left, with the share of `value` in `most` as its length."""
    width = max(0.6, value / max(1, most) * 100)
    return (
        '<svg viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">'
        f'<rect class="fill-{status}" width="{width:.1f}" height="10"/></svg>'
    )


def stack(statuses: dict[str, int]) -> str:
    """The number of groups with each status, as one bar."""
    total = sum(statuses.values())
    drawn, x = [], 0.0
    for status in Status:
        if count := statuses.get(status, 0):
            width = count / total * 100
            drawn.append(
                f'<rect class="fill-{status}" x="{x:.2f}" width="{width:.2f}" height="10">'
                f"<title>{words.number(count)} {status}</title></rect>"
            )
            x += width
    label = ", ".join(f"{count} {status}" for status, count in statuses.items() if count) or "no groups"
    return (
        f'<svg class="stack" viewBox="0 0 100 10" preserveAspectRatio="none" role="img" aria-label="{escape(label)}">'
        f"{''.join(drawn)}</svg>"
    )


def dot(status: str) -> str:
    """The mark of a status."""
    shape = (
        '<circle cx="5" cy="5" r="5"/>'
        if status in (Status.OK, Status.ABANDONED, Status.UNKNOWN)
        else '<path d="M5 0L10 10H0Z"/>'
    )
    return f'<svg viewBox="0 0 10 10" aria-hidden="true" class="fill-{status}">{shape}</svg>'


def clock(time: datetime, span_s: float) -> str:
    """The label of a time on an axis of `span_s` seconds."""
    if span_s < 1200:
        return f"{time.astimezone(UTC):%H:%M:%S}"
    return f"{time.astimezone(UTC):%H:%M}" if span_s < _DAY_S else f"{time.astimezone(UTC):%m-%d %H:%M}"


def _shown(each: float) -> str:
    return words.amount(round(each)) if each >= 10 or each == int(each) else f"{each:.1f}"


def _joined(places: Sequence[tuple[float, float]]) -> str:
    return "L".join(f"{x:.0f} {y:.1f}" for x, y in places)


def _axis(begin: datetime, end: datetime) -> str:
    span_s = (end - begin).total_seconds()
    steps = 4 if 1200 <= span_s < _DAY_S else 2
    marks = [begin + (end - begin) * step / steps for step in range(steps + 1)]
    shown = "".join(f"<span>{clock(each, span_s)}</span>" for each in marks)
    return f'<div class="axis">{shown}<span class="zone">UTC</span></div>'
