"""Plots as inline SVG: drawn on 1000 by 100, stretched by the page; what is to be read stands beside them as text."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from html import escape

from groupkeeper.pipeline.report import words
from groupkeeper.pipeline.report.model import STATUSES, Activity, LagLine

__all__ = ["bars_over_time", "dot", "lag_plot", "share_bar", "stack"]

_WIDTH, _HEIGHT = 1000, 100
_WIDEST_BAR = 40
_FRAME = (
    f'<path class="frame" d="M0 0H{_WIDTH}M0 50H{_WIDTH}M0 {_HEIGHT}H{_WIDTH}'
    f'M{_WIDTH // 4} 0V{_HEIGHT}M{_WIDTH // 2} 0V{_HEIGHT}M{_WIDTH * 3 // 4} 0V{_HEIGHT}"/>'
)
_DAY_S = 86400 * 1.05
"""A span this long has the hour only at its marks; a longer one has the date too, and fewer of them."""


def lag_plot(line: LagLine) -> str:
    """Records over time, from 0 on, on a scale of its own; dashed, on a shade, where it is only the least it was."""
    begin, end = line.points[0][0], line.points[-1][0]
    span_s = max(1e-6, (end - begin).total_seconds())
    top = max(lag for _, lag in line.points)
    places = [
        (
            (time - begin).total_seconds() / span_s * _WIDTH,
            _HEIGHT - lag / max(1, top) * _HEIGHT,
            time >= line.known_from,
        )
        for time, lag in line.points
    ]
    least = [(x, y) for x, y, is_known in places if not is_known]
    known = [(x, y) for x, y, is_known in places if is_known]
    area = f"M0 {_HEIGHT}{''.join(f'L{x:.0f} {y:.1f}' for x, y, _ in places)}L{_WIDTH} {_HEIGHT}Z"
    highest = max(line.points, key=lambda each: each[1])
    said = f"highest {words.number(highest[1])} records at {words.moment(highest[0])} UTC"
    curves, shade = "", ""
    if least:
        until = known[0][0] if known else _WIDTH
        shade = f'<rect class="dim" width="{until:.0f}" height="{_HEIGHT}"/>'
        curves += f'<path class="curve least" d="{_path([*least, *known[:1]])}"/>'
    if len(known) > 1:
        curves += f'<path class="curve" d="{_path(known)}"/>'
    return (
        f'<p class="scale">{words.amount(top)} records</p>'
        f'{_svg("plot", said)}{shade}<path class="area" d="{area}"/>{_FRAME}{curves}</svg>{_axis(begin, end)}'
    )


def bars_over_time(activity: Activity, counts: Sequence[int], unit: str, *, is_rate: bool) -> str:
    """A bar for each bin: per minute where it is a rate, else how many."""
    spans = activity.covered if is_rate else (1,) * len(counts)
    top = max(
        [1 / activity.minutes if is_rate else 1, *(count / span for count, span in zip(counts, spans, strict=True))]
    )
    width = _WIDTH / len(counts)
    end = activity.begin + timedelta(minutes=activity.minutes * len(counts))
    drawn = []
    for position, (count, span) in enumerate(zip(counts, spans, strict=True)):
        if count:
            height = max(1.5, count / span / top * _HEIGHT)
            began = activity.begin + timedelta(minutes=activity.minutes * position)
            shown = _shown(count / span)
            drawn.append(
                f'<rect class="bar" x="{position * width + width * 0.08:.1f}" y="{_HEIGHT - height:.1f}" '
                f'width="{min(_WIDEST_BAR, width * 0.84):.1f}" height="{height:.1f}">'
                f"<title>{words.moment(began)} UTC: {shown} {escape(unit)}</title></rect>"
            )
    most = _shown(top) if any(counts) else "0"
    said = f"at most {most} {unit}"
    return (
        f'<p class="scale">{most} {escape(unit)}</p>'
        f"{_svg('plot tall', said)}{_FRAME}{''.join(drawn)}</svg>{_axis(activity.begin, end)}"
    )


def share_bar(value: int, most: int, status: str) -> str:
    """A bar from the left, as long as `value` is among values up to `most`."""
    width = max(0.6, value / max(1, most) * 100)
    return (
        '<svg viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">'
        f'<rect class="fill-{status}" width="{width:.1f}" height="10"/></svg>'
    )


def stack(statuses: dict[str, int]) -> str:
    """How many groups have which status, as one bar."""
    total = sum(statuses.values())
    drawn, x = [], 0.0
    for status in reversed(STATUSES):
        if count := statuses.get(status, 0):
            width = count / total * 100
            drawn.append(
                f'<rect class="fill-{status}" x="{x:.2f}" width="{width:.2f}" height="10">'
                f"<title>{words.number(count)} {status}</title></rect>"
            )
            x += width
    said = ", ".join(f"{count} {status}" for status, count in statuses.items() if count) or "no groups"
    return (
        f'<svg class="stack" viewBox="0 0 100 10" preserveAspectRatio="none" role="img" aria-label="{escape(said)}">'
        f"{''.join(drawn)}</svg>"
    )


def dot(status: str) -> str:
    """The mark of a status."""
    shape = '<circle cx="5" cy="5" r="5"/>' if status in ("ok", "unknown") else '<path d="M5 0L10 10H0Z"/>'
    return f'<svg viewBox="0 0 10 10" aria-hidden="true" class="fill-{status}">{shape}</svg>'


def _shown(each: float) -> str:
    return words.amount(round(each)) if each >= 10 or each == int(each) else f"{each:.1f}"


def _path(places: Sequence[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{x:.0f} {y:.1f}" for x, y in places)


def _svg(kind: str, said: str) -> str:
    return (
        f'<svg class="{kind}" viewBox="0 0 {_WIDTH} {_HEIGHT}" preserveAspectRatio="none" role="img" '
        f'aria-label="{escape(said)}">'
    )


def _axis(begin: datetime, end: datetime) -> str:
    span_s = (end - begin).total_seconds()
    steps = 4 if 1200 <= span_s < _DAY_S else 2
    marks = [begin + (end - begin) * step / steps for step in range(steps + 1)]
    return f'<div class="axis">{"".join(f"<span>{words.clock(each, span_s)}</span>" for each in marks)}</div>'
