"""Points in time and durations as operators write them for a reset. No clock is read here."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import NamedTuple

from groupkeeper.base_error import GroupkeeperError
from groupkeeper.java_numbers import LONG_MAX

_INSTANT_SECONDS = range(-31557014167219200, 31556889864403199 + 1)
_DATETIME = "".join(rf"[ \t]*(\d+){end}" for end in ("-", "-", "T", ":", ":", r"\.", "")) + (
    r"[ \t]*(?:Z|([+-])([0-9]{2})(?::([0-5][0-9]))?)"
)
_DURATION = (
    r"([+-]?)P(?:([+-]?[0-9]+)D)?"
    r"(T(?:([+-]?[0-9]+)H)?(?:([+-]?[0-9]+)M)?(?:([+-]?[0-9]+)(?:[.,]([0-9]{0,9}))?S)?)?"
)


class BadDatetime(GroupkeeperError, ValueError):
    """The text is not a point in time. The message is Kafka's."""


class BadDuration(GroupkeeperError, ValueError):
    """The text is not a duration, or the duration is too long. The message is Java's."""


class NoUnit(BadDuration):
    """A bare number: seconds for some programs, milliseconds for others."""


class Duration(NamedTuple):
    """A signed duration: whole seconds, rounded down, and the nanoseconds above them (0 ≤ nanos < 10⁹)."""

    seconds: int
    nanos: int = 0

    @property
    def whole_ms(self) -> int:
        """In milliseconds, rounded down."""
        return self.seconds * 1000 + self.nanos // 10**6

    def before_ms(self, now_ns: int) -> int:
        """Milliseconds since 1970 of the point this long before `now_ns`. Raises BadDuration when out of range."""
        then = now_ns - (self.seconds * 10**9 + self.nanos)
        if then // 10**9 not in _INSTANT_SECONDS:
            raise BadDuration("Instant exceeds minimum or maximum instant")
        then_ms = then // 10**6
        if not -LONG_MAX - 1 <= then_ms <= LONG_MAX:
            raise BadDuration("long overflow")
        return then_ms


def parse_datetime(text: str) -> int:
    """Milliseconds since 1970 of `yyyy-MM-ddTHH:mm:ss.SSS[Z|±hh[:mm]]`, UTC without a zone.

    Kafka's form (Utils.getDateTime): the fraction is a number of milliseconds and mandatory, numbers may have any
    count of digits, blanks before a number and anything after the zone are passed over. Raises BadDatetime.
    """
    _, separator, time = text.partition("T")
    if not separator or not time.rstrip("T"):
        raise BadDatetime("Error parsing timestamp. It does not contain a 'T' according to ISO8601 format")
    time = time.partition("T")[0]
    if not any(sign in time for sign in "+-Z"):
        text += "Z"
    match = re.match(_DATETIME, text)
    if match is None:
        raise _unparseable(text)
    try:
        year, month, day, hour, minute, second, millis = map(int, match.group(*range(1, 8)))
    except ValueError:  # thousands of digits
        raise _unparseable(text) from None
    zone = int(match[9] or 0) * 60 + int(match[10] or 0)
    offset = -zone if match[8] == "-" else zone
    if not (
        year >= 1
        and 1 <= month <= 12
        and 1 <= day <= _days_in(year, month)
        and not (1582, 10, 4) < (year, month, day) < (1582, 10, 15)
        and hour <= 23
        and minute <= 59
        and second <= 59
        and millis <= 999
        and -13 * 60 <= offset <= 14 * 60
    ):
        raise _unparseable(text)
    seconds = ((_days(year, month, day) * 24 + hour) * 60 + minute - offset) * 60 + second
    timestamp = seconds * 1000 + millis
    if not -LONG_MAX - 1 <= timestamp <= LONG_MAX:
        raise _unparseable(text)
    return timestamp


def parse_iso_datetime(text: str) -> int:
    """Milliseconds since 1970 of an ISO 8601 date with or without a time, a fraction and a zone; UTC without one.

    A fraction is one of a second, as ISO has it (Kafka's form takes `.5` for 5 ms). Raises BadDatetime.
    """
    try:
        then = datetime.fromisoformat(text)
    except ValueError:
        raise _unparseable(text) from None
    if then.tzinfo is None:
        then = then.replace(tzinfo=UTC)
    return (then - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)


def parse_duration(text: str) -> Duration:
    """A duration `[±]P[nD][T[nH][nM][n[.f]S]]`, each number with its own sign, in any case (Java's Duration.parse).

    Raises BadDuration.
    """
    match = re.fullmatch(_DURATION, text, re.ASCII | re.IGNORECASE)
    if match is None or not any(match.group(2, 4, 5, 6)) or match[3] in ("T", "t"):
        raise BadDuration("Text cannot be parsed to a Duration")
    nanos = int((match[7] or "").ljust(9, "0"))
    total_ns = -nanos if (match[6] or "").startswith("-") else nanos
    units = ("days", 86400), ("hours", 3600), ("minutes", 60), ("seconds", 1)
    for (name, size), part in zip(units, match.group(2, 4, 5, 6), strict=True):
        try:
            seconds = int(part or 0) * size
        except ValueError:  # thousands of digits
            seconds = 2**63
        if not -(2**63) <= seconds < 2**63:
            raise BadDuration(f"Text cannot be parsed to a Duration: {name}")
        total_ns += seconds * 10**9
    sign = -1 if match[1] == "-" else 1
    if not -(2**63) <= total_ns // 10**9 < 2**63 or not -(2**63) <= sign * total_ns // 10**9 < 2**63:
        raise BadDuration("Text cannot be parsed to a Duration: overflow")
    return Duration(*divmod(sign * total_ns, 10**9))


_LENGTH = re.compile(r"(?:([0-9]{1,9})d)?(?:([0-9]{1,9})h)?(?:([0-9]{1,9})m)?(?:([0-9]{1,9})s)?(?:([0-9]{1,12})ms)?")

_BARE = re.compile(r"(?=.*[1-9])[0-9]+(\.[0-9]+)?")
_DECIMAL = re.compile(r"([0-9]{1,9})\.([0-9]{1,9})(d|h|m|s|ms)")
_NS_BY_UNIT = {"d": 86400 * 10**9, "h": 3600 * 10**9, "m": 60 * 10**9, "s": 10**9, "ms": 10**6}


def parse_length(text: str) -> Duration:
    """A duration as people write it, `7d`, `1h30m`, `0.5h`, `500ms`, or in the ISO form.

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


def _unparseable(text: str) -> BadDatetime:
    return BadDatetime(f'Unparseable date: "{text}"')


def _days_in(year: int, month: int) -> int:
    from calendar import monthrange  # half a millisecond that few commands need

    return 29 if month == 2 and year <= 1582 and year % 4 == 0 else monthrange(year, month)[1]


def _days(year: int, month: int, day: int) -> int:
    """Days since 1970-01-01, in the Julian calendar before 15 October 1582 and the Gregorian from then on."""
    gregorian = (year, month, day) >= (1582, 10, 15)
    # Counted in years that begin in March, so that the leap day is a year's last.
    year, month = (year - 1, month + 9) if month <= 2 else (year, month - 3)
    leaps = year // 4 - (year // 100 - year // 400 if gregorian else 2)
    return year * 365 + leaps + (153 * month + 2) // 5 + day - 719469


@lru_cache(maxsize=1024)
def utc_text(timestamp_ms: int) -> str:
    """A time as people and programs read it: `2026-01-31T23:59:59.123Z`; the number of ms beyond year 9999."""
    seconds, millis = divmod(timestamp_ms, 1000)
    try:
        then = datetime(1970, 1, 1) + timedelta(seconds=seconds)
    except OverflowError:
        return f"{timestamp_ms} ms"
    return f"{then.isoformat()}.{millis:03}Z"
