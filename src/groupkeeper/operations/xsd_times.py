"""Dates and durations as XML Schema 1.0 writes them. Pure: no clock is read here.

The calendar is the proleptic Gregorian one, in years of any size; there is no year 0.
"""

from __future__ import annotations

import re
from calendar import monthrange
from datetime import date, timedelta
from typing import NamedTuple

from groupkeeper.operations.times import BadDatetime, BadDuration

_DATETIME = re.compile(
    r"(-?)([0-9]{4,})-([0-9]{2})-([0-9]{2})T([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]+))?(Z|[+-][0-9]{2}:[0-9]{2})?"
)
_DURATION = re.compile(
    r"(-?)P(?:([0-9]+)Y)?(?:([0-9]+)M)?(?:([0-9]+)D)?"
    r"(T(?:([0-9]+)H)?(?:([0-9]+)M)?(?:([0-9]+)(?:\.([0-9]+))?S)?)?"
)
_MOST_DIGITS = 18
_DAY_S = 86400
_CYCLE_DAYS = 146097
"""The days of 400 years, after which the calendar is the same again; `date` knows few years."""


class XsdDuration(NamedTuple):
    """A duration. `sign`, 1 or −1, holds for all parts; `nanos`, below 10⁹: the fraction of the seconds."""

    sign: int
    months: int
    seconds: int
    nanos: int

    def before_ms(self, now_ms: int) -> int:
        """Milliseconds since 1970 of the point this long before `now_ms` (after it, when the sign is −1).

        Years and months go first: the same day of another month, or that month's last day.
        """
        days, rest_ms = divmod(now_ms, _DAY_S * 1000)
        year, month, day = _civil(days)
        count = year * 12 + month - 1 - self.sign * self.months
        year, month = count // 12, count % 12 + 1
        days = _days_since_1970(year, month, min(day, monthrange(year, month)[1]))
        then_ns = (days * _DAY_S * 1000 + rest_ms) * 10**6 - self.sign * (self.seconds * 10**9 + self.nanos)
        return then_ns // 10**6


def parse_xsd_datetime(text: str) -> int:
    """Milliseconds since 1970 of `[-]YYYY-MM-DDThh:mm:ss[.fraction][Z|±hh:mm]`; without a zone it is UTC.

    Digits of the fraction after the third are dropped; 24:00:00 is midnight of the next day. Raises BadDatetime.
    """
    match = _DATETIME.fullmatch(text)
    if match is None:
        raise BadDatetime(f"{text!r} is not a date and time like 2017-01-01T09:00:00.000 or 2017-01-01T09:00:00+01:00")
    sign, year_text, *rest, fraction, zone = match.groups()
    month, day, hour, minute, second = map(int, rest)
    if len(year_text) > _MOST_DIGITS or (len(year_text) > 4 and year_text[0] == "0") or not int(year_text):
        raise BadDatetime(f"{text!r}: there is no year {sign}{year_text}")
    # The year before 1 is −1.
    year = 1 - int(year_text) if sign else int(year_text)
    if not (1 <= month <= 12 and 1 <= day <= monthrange(year, month)[1]):
        raise BadDatetime(f"{text!r}: there is no such day")
    is_midnight = hour == 24 and not minute and not second and not int(fraction or 0)
    if not (hour < 24 or is_midnight) or minute > 59 or second > 59:
        raise BadDatetime(f"{text!r}: there is no such time of day")
    seconds = _days_since_1970(year, month, day) * _DAY_S + hour * 3600 + minute * 60 + second - _zone_s(text, zone)
    return seconds * 1000 + int((fraction or "")[:3].ljust(3, "0"))


def parse_xsd_duration(text: str) -> XsdDuration:
    """`[-]PnYnMnDTnHnMnS`: at least one part, a fraction only of seconds, T only before a part. BadDuration."""
    match = _DURATION.fullmatch(text)
    if match is None or not any(match.group(2, 3, 4, 5)) or match.group(5) == "T":
        raise BadDuration(f"{text!r} is not a duration like P1M (a month), PT1M (a minute) or P1DT2H3M4.5S")
    if any(len(part) > _MOST_DIGITS for part in match.group(2, 3, 4, 6, 7, 8) if part):
        raise BadDuration(f"{text!r} is longer than any log")
    years, months, days, hours, minutes, seconds = (int(part or 0) for part in match.group(2, 3, 4, 6, 7, 8))
    return XsdDuration(
        -1 if match[1] else 1,
        years * 12 + months,
        days * _DAY_S + hours * 3600 + minutes * 60 + seconds,
        int((match[9] or "")[:9].ljust(9, "0")),
    )


def _zone_s(text: str, zone: str | None) -> int:
    if zone is None or zone == "Z":
        return 0
    hours, minutes = int(zone[1:3]), int(zone[4:6])
    if minutes > 59 or hours * 60 + minutes > 14 * 60:
        raise BadDatetime(f"{text!r}: there is no zone {zone}")
    seconds = hours * 3600 + minutes * 60
    return -seconds if zone[0] == "-" else seconds


def _days_since_1970(year: int, month: int, day: int) -> int:
    cycles, year = divmod(year - 2000, 400)
    return cycles * _CYCLE_DAYS + (date(2000 + year, month, day) - date(1970, 1, 1)).days


def _civil(days: int) -> tuple[int, int, int]:
    """Year, month and day of a number of days since 1970: the inverse of the above."""
    cycles, rest = divmod(days - _days_since_1970(2000, 1, 1), _CYCLE_DAYS)
    then = date(2000, 1, 1) + timedelta(days=rest)
    return then.year + 400 * cycles, then.month, then.day
