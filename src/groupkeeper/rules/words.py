"""Numbers, times and amounts in words for people. An em dash stands for an unknown value."""

from __future__ import annotations

from datetime import UTC, datetime

_UNITS = ((86_400, "d", 3600, "h"), (3600, "h", 60, "min"), (60, "min", 1, "s"))


def number(value: int | None) -> str:
    """A number in full: 1,234,567."""
    return "—" if value is None else f"{value:,}"


def counted(value: int, noun: str) -> str:
    """1 group, 2 groups, 1,234 groups"""
    return f"{value:,} {noun}{'s' * (value != 1)}"


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


def moment(ms: int | None) -> str:
    """A time since 1970 in UTC: 2026-01-31 23:59:59."""
    return "—" if ms is None else f"{datetime.fromtimestamp(ms / 1000, UTC):%Y-%m-%d %H:%M:%S}"
