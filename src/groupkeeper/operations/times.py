"""Points in time and durations as operators write them for a reset. No clock is read here."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import NamedTuple

from groupkeeper.base_error import GroupkeeperError

_LONG_MAX = 2**63 - 1
_INSTANT_SECONDS = range(-31557014167219200, 31556889864403199 + 1)
_DAYS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


class BadDatetime(GroupkeeperError, ValueError):
    """Not a point in time. The text is Kafka's."""


class BadDuration(GroupkeeperError, ValueError):
    """Not a duration, or one that is too long. The text is Java's."""


class NoUnit(BadDuration):
    """A bare number: seconds for some programs, milliseconds for others."""


class Duration(NamedTuple):
    """A signed duration: whole seconds, rounded down, and the nanoseconds above them (0 ≤ nanos < 10⁹)."""

    seconds: int
    nanos: int = 0

    def before_ms(self, now_ns: int) -> int:
        """Milliseconds since 1970 of the point this long before ``now_ns``. Raises BadDuration when out of range."""
        then = now_ns - (self.seconds * 10**9 + self.nanos)
        if then // 10**9 not in _INSTANT_SECONDS:
            raise BadDuration("Instant exceeds minimum or maximum instant")
        then_ms = then // 10**6
        if not -_LONG_MAX - 1 <= then_ms <= _LONG_MAX:
            raise BadDuration("long overflow")
        return then_ms


def parse_datetime(text: str) -> int:
    """Milliseconds since 1970 of ``yyyy-MM-ddTHH:mm:ss.SSS[Z|±hh[:mm]]``, UTC without a zone.

    Kafka's form (Utils.getDateTime): the fraction is a number of milliseconds and mandatory, numbers may have any
    count of digits, blanks before a number and anything after the zone are passed over. Raises BadDatetime.
    """
    _, separator, time = text.partition("T")
    if not separator or not time.rstrip("T"):
        raise BadDatetime("Error parsing timestamp. It does not contain a 'T' according to ISO8601 format")
    time = time.partition("T")[0]
    if not any(sign in time for sign in "+-Z"):
        text += "Z"
    reader = _DatetimeReader(text)
    try:
        fields = [reader.number(end) for end in ("-", "-", "T", ":", ":", ".", "")]
        offset = reader.zone()
    except ValueError:
        raise _unparseable(text) from None
    year, month, day, hour, minute, second, millis = fields
    _check_fields(text, fields, offset)
    seconds = ((_days(year, month, day) * 24 + hour) * 60 + minute - offset) * 60 + second
    timestamp = seconds * 1000 + millis
    if not -_LONG_MAX - 1 <= timestamp <= _LONG_MAX:
        raise _unparseable(text)
    return timestamp


def parse_iso_datetime(text: str) -> int:
    """Milliseconds since 1970 of an ISO 8601 date with or without a time, a fraction and a zone; UTC without one.

    A fraction is one of a second, as ISO has it (Kafka's form takes ``.5`` for 5 ms). Raises BadDatetime.
    """
    try:
        then = datetime.fromisoformat(text)
    except ValueError:
        raise _unparseable(text) from None
    if then.tzinfo is None:
        then = then.replace(tzinfo=UTC)
    return (then - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)


def parse_duration(text: str) -> Duration:
    """A duration ``[±]P[nD][T[nH][nM][n[.f]S]]``, each number with its own sign, in any case (Java's Duration.parse).

    Raises BadDuration.
    """
    sign, rest = _take_sign(text.upper() if text.isascii() else "")
    if not rest.startswith("P"):
        raise _not_a_duration()
    date, has_time, time = rest[1:].partition("T")
    total_ns = 0
    found = False
    for name, unit, size, part in (("days", "D", 86400, 0), ("hours", "H", 3600, 1), ("minutes", "M", 60, 1)):
        number, date, time = _take_component(unit, part, date, time)
        if number is not None:
            found = True
            total_ns += _bounded(number * size, name) * 10**9
    if time:
        found = True
        total_ns += _seconds(time)
        time = ""
    if date or not found or (has_time and rest.endswith("T")):
        raise _not_a_duration()
    if not -(2**63) <= total_ns // 10**9 < 2**63 or not -(2**63) <= sign * total_ns // 10**9 < 2**63:
        raise BadDuration("Text cannot be parsed to a Duration: overflow")
    return Duration(*divmod(sign * total_ns, 10**9))


_LENGTH = re.compile(r"(?:([0-9]{1,9})d)?(?:([0-9]{1,9})h)?(?:([0-9]{1,9})m)?(?:([0-9]{1,9})s)?(?:([0-9]{1,12})ms)?")

_BARE = re.compile(r"(?=.*[1-9])[0-9]+(\.[0-9]+)?")
_DECIMAL = re.compile(r"([0-9]{1,9})\.([0-9]{1,9})(d|h|m|s|ms)")
_NS_BY_UNIT = {"d": 86400 * 10**9, "h": 3600 * 10**9, "m": 60 * 10**9, "s": 10**9, "ms": 10**6}


def parse_length(text: str) -> Duration:
    """A duration as people write it, ``7d``, ``1h30m``, ``0.5h``, ``500ms``, or in the ISO form.

    Raises BadDuration, and NoUnit where only the unit is missing.
    """
    if _BARE.fullmatch(text):
        raise NoUnit(f"a duration needs a unit: {text}ms, {text}s, {text}m, {text}h or {text}d")
    if (decimal := _DECIMAL.fullmatch(text)) is not None:
        whole, part, unit = decimal.groups()
        unit_ns = _NS_BY_UNIT[unit]
        return Duration(*divmod(int(whole) * unit_ns + int(part) * unit_ns // 10 ** len(part), 10**9))
    match = _LENGTH.fullmatch(text)
    if match is None or not text:
        return parse_duration(text)
    days, hours, minutes, seconds, millis = (int(part or 0) for part in match.groups())
    return Duration(((days * 24 + hours) * 60 + minutes) * 60 + seconds + millis // 1000, millis % 1000 * 10**6)


class _DatetimeReader:
    """Reads numbers and a zone off a text, one after the other. Raises ValueError where the form isn't kept."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def number(self, end: str) -> int:
        """Blanks, digits, then ``end``."""
        start = self._pass_blanks()
        while self._at < len(self._text) and self._text[self._at].isdecimal():
            self._at += 1
        number = int(self._text[start : self._at])
        if not self._text.startswith(end, self._at):
            raise ValueError(end)
        self._at += len(end)
        return number

    def zone(self) -> int:
        """``Z``, ``±hh`` or ``±hh:mm`` in minutes; minutes that aren't any are passed over with the rest."""
        zone = self._text[self._pass_blanks() :]
        if zone.startswith("Z"):
            return 0
        digits = zone[1:3]
        if zone[:1] not in ("+", "-") or len(digits) < 2 or not (digits.isascii() and digits.isdecimal()):
            raise ValueError(zone)
        minutes = int(digits) * 60
        tail = zone[4:6]
        if zone[3:4] == ":" and len(tail) == 2 and tail.isascii() and tail.isdecimal() and int(tail) < 60:
            minutes += int(tail)
        return -minutes if zone[0] == "-" else minutes

    def _pass_blanks(self) -> int:
        while self._at < len(self._text) and self._text[self._at] in " \t":
            self._at += 1
        return self._at


def _unparseable(text: str) -> BadDatetime:
    return BadDatetime(f'Unparseable date: "{text}"')


def _check_fields(text: str, fields: list[int], offset: int) -> None:
    year, month, day, hour, minute, second, millis = fields
    right = (
        year >= 1
        and 1 <= month <= 12
        and 1 <= day <= _DAYS[month - 1] + (month == 2 and _is_leap(year))
        and not (1582, 10, 4) < (year, month, day) < (1582, 10, 15)
        and hour <= 23
        and minute <= 59
        and second <= 59
        and millis <= 999
        and -13 * 60 <= offset <= 14 * 60
    )
    if not right:
        raise _unparseable(text)


def _is_leap(year: int) -> bool:
    return year % 4 == 0 and (year <= 1582 or year % 100 != 0 or year % 400 == 0)


def _days(year: int, month: int, day: int) -> int:
    """Days since 1970-01-01, in the Julian calendar before 15 October 1582 and the Gregorian from then on."""
    gregorian = (year, month, day) >= (1582, 10, 15)
    # Counted in years that begin in March, so that the leap day is a year's last.
    year, month = (year - 1, month + 9) if month <= 2 else (year, month - 3)
    leaps = year // 4 - (year // 100 - year // 400 if gregorian else 2)
    return year * 365 + leaps + (153 * month + 2) // 5 + day - 719469


def _take_sign(text: str) -> tuple[int, str]:
    if text[:1] in ("+", "-"):
        return (-1 if text[0] == "-" else 1), text[1:]
    return 1, text


def _take_component(unit: str, part: int, date: str, time: str) -> tuple[int | None, str, str]:
    """The number before ``unit`` at the beginning of the date (part 0) or the time (part 1), and what is left."""
    source = time if part else date
    number, found, rest = source.partition(unit)
    if not found:
        return None, date, time
    value = _whole(number)
    return (value, date, rest) if part else (value, rest, time)


def _whole(text: str) -> int:
    sign, digits = _take_sign(text)
    if not digits.isdecimal():
        raise _not_a_duration()
    return sign * int(digits)


def _bounded(seconds: int, name: str) -> int:
    if not -(2**63) <= seconds < 2**63:
        raise BadDuration(f"Text cannot be parsed to a Duration: {name}")
    return seconds


def _seconds(time: str) -> int:
    """``1.5S`` in nanoseconds; the fraction has the sign of the number."""
    number, found, rest = time.partition("S")
    if not found or rest:
        raise _not_a_duration()
    whole, _, fraction = number.replace(",", ".", 1).partition(".")
    if fraction and (not fraction.isdecimal() or len(fraction) > 9):
        raise _not_a_duration()
    seconds = _bounded(_whole(whole), "seconds")
    nanos = int(fraction.ljust(9, "0")) if fraction else 0
    return seconds * 10**9 + (-nanos if whole.startswith("-") else nanos)


def _not_a_duration() -> BadDuration:
    return BadDuration("Text cannot be parsed to a Duration")


@lru_cache(maxsize=1024)
def utc_text(timestamp_ms: int) -> str:
    """A time as people and programs read it: ``2026-01-31T23:59:59.123Z``; the number of ms beyond year 9999."""
    seconds, millis = divmod(timestamp_ms, 1000)
    try:
        then = datetime(1970, 1, 1) + timedelta(seconds=seconds)
    except OverflowError:
        return f"{timestamp_ms} ms"
    return f"{then.isoformat()}.{millis:03}Z"
