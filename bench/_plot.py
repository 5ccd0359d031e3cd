"""Two plots with logarithmic axes beside each other, as SVG."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import NamedTuple

_WIDTH, _HEIGHT = 400, 300
_LEFT, _TOP, _GAP, _FOOT = 60, 40, 90, 70
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")


class Panel(NamedTuple):
    """One plot: its title, the ends of its vertical axis (powers of ten), and its lines by name: y by x."""

    title: str
    ends: tuple[float, float]
    lines: Mapping[str, Mapping[int, float]]


def side_by_side(axis: str, *panels: Panel) -> str:
    """The picture. `axis` is what the horizontal ones count; all panels have the same lines."""
    names = list(panels[0].lines)
    width = _LEFT + len(panels) * (_WIDTH + _GAP)
    height = _TOP + _HEIGHT + _FOOT + 20 * len(names)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
    ]
    for index, panel in enumerate(panels):
        parts.append(f'<g transform="translate({_LEFT + index * (_WIDTH + _GAP)},{_TOP})">')
        parts += _panel(axis, panel)
        parts.append("</g>")
    for index, name in enumerate(names):
        y = _TOP + _HEIGHT + _FOOT + 20 * index
        colour = _COLOURS[index % len(_COLOURS)]
        parts.append(f'<rect x="{_LEFT}" y="{y}" width="24" height="4" fill="{colour}"/>')
        parts.append(f'<text x="{_LEFT + 34}" y="{y + 6}">{name}</text>')
    return "\n".join([*parts, "</svg>\n"])


def _short(count: int) -> str:
    """A number that leaves room for its neighbours: 500, 10 k, 2.5 M."""
    for unit, name in ((1_000_000, "M"), (1_000, "k")):
        if count >= unit:
            return f"{count / unit:g} {name}"
    return str(count)


def _panel(axis: str, panel: Panel) -> Iterator[str]:
    counts = sorted({x for line in panel.lines.values() for x in line})
    low_x, high_x = math.log10(counts[0]), math.log10(counts[-1])
    low_y, high_y = (math.log10(end) for end in panel.ends)

    def place(x: float, y: float) -> tuple[float, float]:
        across = (math.log10(x) - low_x) / (high_x - low_x)
        up = (math.log10(y) - low_y) / (high_y - low_y)
        return round(across * _WIDTH, 1), round((1 - up) * _HEIGHT, 1)

    yield f'<text x="0" y="-14" font-weight="bold">{panel.title}</text>'
    for exponent in range(round(low_y), round(high_y) + 1):
        _, y = place(counts[0], 10.0**exponent)
        yield f'<path d="M0 {y}H{_WIDTH}" stroke="#ddd"/>'
        yield f'<text x="-8" y="{y + 4}" text-anchor="end">{10.0**exponent:g}</text>'
    for count in counts:
        x, _ = place(count, panel.ends[0])
        yield f'<path d="M{x} 0V{_HEIGHT}" stroke="#ddd"/>'
        yield f'<text x="{x}" y="{_HEIGHT + 20}" text-anchor="middle">{_short(count)}</text>'
    yield f'<text x="{_WIDTH / 2}" y="{_HEIGHT + 40}" text-anchor="middle">{axis}</text>'
    for (name, line), colour in zip(panel.lines.items(), _COLOURS, strict=False):
        points = [place(x, y) for x, y in sorted(line.items())]
        path = "L".join(f"{x} {y}" for x, y in points)
        yield f'<path d="M{path}" fill="none" stroke="{colour}" stroke-width="2"><title>{name}</title></path>'
        yield from (f'<circle cx="{x}" cy="{y}" r="3.5" fill="{colour}"/>' for x, y in points)
