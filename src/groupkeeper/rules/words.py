"""Numbers, times, amounts and names in words for people. An em dash stands for an unknown value."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

_LONGEST = 90
_LONGEST_REASON = 600
"""The longest reason shown; those of the tables are shorter, as a topic's name has at most 249 characters."""

_TAIL = 20
_UNITS = ((86_400, "d", 3600, "h"), (3600, "h", 60, "min"), (60, "min", 1, "s"))


def number(value: int | None) -> str:
    """A number in full: 1,234,567."""
    return "—" if value is None else f"{value:,}"


def counted(value: int, noun: str) -> str:
    """1 group, 2 groups, 1,234 groups"""
    return f"{value:,} {noun}{'s' * (value != 1)}"


def several(names: Sequence[str], most: int) -> str:
    """a, b, c and 1,234 more"""
    left = len(names) - most
    return ", ".join(names[:most]) + (f" and {left:,} more" if left > 0 else "")


def waiting(value: int, noun: str) -> str:
    """1 record waits, 2 records wait"""
    return f"{counted(value, noun)} wait{'s' * (value == 1)}"


def capitalized(text: str) -> str:
    """The text with a capital first letter; other letters are unchanged."""
    return text[:1].upper() + text[1:]


def amount(value: int | None) -> str:
    """A number in short: 950, 12.3 k, 4.56 M."""
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
    """A rate per second: 0.4/s, 12.3 k/s."""
    return f"{amount(round(value)) if abs(value) >= 10 or value == round(value) else f'{value:.1f}'}/s"


def duration(ms: int | None) -> str:
    """A duration in its two largest units: 0 s, 12 s, 3 min 5 s, 2 h 10 min, 4 d 1 h."""
    if ms is None:
        return "—"
    if 0 < ms < 1000:
        return "under 1 s"
    seconds = ms // 1000
    for size, unit, below, lower in _UNITS:
        if seconds >= size:
            rest = seconds % size // below
            return f"{seconds // size:,} {unit}" + (f" {rest} {lower}" if rest else "")
    return f"{seconds} s"


def margin(ms: int | None) -> str:
    """A retention margin as text: "overdue" if it is 0 or less, else a duration."""
    return "overdue" if ms is not None and ms <= 0 else duration(ms)


def within(ms: int) -> str:
    """When records with this retention margin may be removed, as text."""
    return "at any moment" if ms <= 0 else f"in {duration(ms)}"


def length(ms: int) -> str:
    """A duration as options and rules accept it, in whole seconds and at most two units: 0s, 1m30s."""
    sign = "-" if ms < 0 else ""
    return sign + duration(abs(ms) // 1000 * 1000).replace("min", "m").replace(",", "").replace(" ", "")


def ago(ms: int) -> str:
    """How long ago a time was; a time to come was just now."""
    return f"{duration(max(0, ms))} ago"


def days(value: float | None) -> str:
    """A number of days: 3.5 d, 12 d."""
    return "—" if value is None else f"{value:,.1f} d" if value < 10 else f"{value:,.0f} d"


def moment(time: int | datetime | None) -> str:
    """A time in UTC: 2026-01-31 23:59:59. A number: milliseconds since 1970."""
    if time is None:
        return "—"
    known = datetime.fromtimestamp(time / 1000, UTC) if isinstance(time, int) else time.astimezone(UTC)
    return f"{known:%Y-%m-%d %H:%M:%S}"


def printable(text: str) -> str:
    """The text with escapes for what isn't printable: `\\n`, `\\x1b`."""
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape", "surrogatepass").decode() for char in text
    )


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
    return printable(shown) or "(empty)"
