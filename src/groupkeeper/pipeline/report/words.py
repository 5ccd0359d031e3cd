"""Numbers, times and names as the report shows them."""

from __future__ import annotations

from datetime import UTC, datetime

__all__ = ["ago", "amount", "clock", "counted", "days", "duration", "moment", "name", "number", "rate", "reason"]

_LONGEST = 90
_LONGEST_REASON = 600
"""More than any that the tables have: a topic's name has 249 characters at most."""

_TAIL = 20


def number(value: int | None) -> str:
    """In full: 1,234,567; an em dash where it is not known."""
    return "—" if value is None else f"{value:,}"


def counted(value: int, noun: str) -> str:
    """1 group, 2 groups, 1,234 groups"""
    return f"{value:,} {noun}{'s' * (value != 1)}"


def amount(value: int | None) -> str:
    """In short: 950, 12.3 k, 4.56 M."""
    if value is None:
        return "—"
    if abs(value) < 10_000:
        return f"{value:,}"
    rounded = float(f"{value:.3g}")  # before the unit is chosen: 999,600 is 1 M
    if abs(rounded) >= 1e15:
        return f"{rounded:.2e}"
    size, unit = next(each for each in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")) if abs(rounded) >= each[0])
    return f"{rounded / size:.3g} {unit}"


def rate(value: float) -> str:
    """Per second: 0.4/s, 12.3 k/s."""
    return f"{amount(round(value)) if abs(value) >= 10 or value == round(value) else f'{value:.1f}'}/s"


def duration(ms: int | None) -> str:
    """The two largest units: 0 s, 12 s, 3 min 5 s, 2 h 10 min, 4 d 1 h."""
    if ms is None:
        return "—"
    if 0 < ms < 1000:
        return "under 1 s"
    seconds = ms // 1000
    for size, unit, below, lower in ((86400, "d", 3600, "h"), (3600, "h", 60, "min"), (60, "min", 1, "s")):
        if seconds >= size:
            rest = seconds % size // below
            return f"{seconds // size:,} {unit}" + (f" {rest} {lower}" if rest else "")
    return f"{seconds} s"


def days(value: float | None) -> str:
    return "—" if value is None else f"{value:,.1f} d" if value < 10 else f"{value:,.0f} d"


def moment(time: datetime | None) -> str:
    """A date with its time, in UTC (stated on the page)."""
    return "—" if time is None else f"{time.astimezone(UTC):%Y-%m-%d %H:%M:%S}"


def clock(time: datetime, span_s: float) -> str:
    """The label of a time on an axis of `span_s` seconds."""
    if span_s < 1200:
        return f"{time.astimezone(UTC):%H:%M:%S}"
    return f"{time.astimezone(UTC):%H:%M}" if span_s < 86400 * 1.05 else f"{time.astimezone(UTC):%m-%d %H:%M}"


def ago(time: datetime | None, now: datetime | None) -> str:
    """How long before `now` that was."""
    if time is None or now is None:
        return "—"
    return duration(max(0, int((now - time).total_seconds() * 1000)))


def reason(text: str) -> str:
    """A sentence with untrusted names; it may be longer than a name before it is shortened."""
    return name(text, _LONGEST_REASON)


def name(text: str | None, longest: int = _LONGEST) -> str:
    """An untrusted name on one line, without control characters for terminals or for text direction; very long ones are
    shortened in the middle.
    """
    if text is None:
        return "—"
    shown = text
    if len(text) > longest:
        shown = f"{text[: longest - _TAIL]}…{text[-_TAIL:]} ({len(text):,} characters)"
    if not shown.isprintable():
        escaped = (each.encode("unicode_escape", "surrogatepass").decode() for each in shown)
        shown = "".join(each if each.isprintable() else code for each, code in zip(shown, escaped, strict=True))
    return shown or "(empty)"
