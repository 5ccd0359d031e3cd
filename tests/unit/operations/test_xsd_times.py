"""Dates and durations of XML Schema, beside Python's calendar where that reaches."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groupkeeper.operations.times import BadDatetime, BadDuration, parse_datetime
from groupkeeper.operations.xsd_times import parse_xsd_datetime, parse_xsd_duration

NO_DATETIMES = """
    2017-01-01 2017-01-01T09:00 2017-01-01T09:00:00. 2017-01-01T09:00:00,5 2017-1-1T09:00:00 17-01-01T09:00:00
    2017-13-01T09:00:00 2017-00-01T09:00:00 2017-02-29T09:00:00 2017-02-00T09:00:00 1900-02-29T00:00:00
    2017-01-01T25:00:00 2017-01-01T24:00:01 2017-01-01T24:00:00.001 2017-01-01T09:60:00 2017-01-01T09:00:60
    2017-01-01T09:00:00+1 2017-01-01T09:00:00+01 2017-01-01T09:00:00+0100 2017-01-01T09:00:00+14:01
    2017-01-01T09:00:00+01:60 2017-01-01T09:00:00z 2017-01-01t09:00:00 +2017-01-01T09:00:00 02017-01-01T09:00:00
    0000-01-01T00:00:00 -0000-01-01T00:00:00 ２017-01-01T09:00:00 now 1483261200000
    """
NO_DURATIONS = """
    P PT P1 1D P1H P1DT PT1D P1M1Y P1D1M PT1S1M P1.5D PT1.5M PT1.S PT.5S P-1D +P1D --P1D p1d P1W P1Y1Y PT1H1H T1H 60
    P１D PT1,5S
    """


def ms(text: str) -> int:
    return round(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000)


# K122-33, K122-34
@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("2017-01-01T09:00:00.000", "2017-01-01T09:00:00"),
        ("2017-01-01T09:00:00", "2017-01-01T09:00:00"),
        ("2017-01-01T09:00:00Z", "2017-01-01T09:00:00"),
        ("2017-01-01T09:00:00+01:00", "2017-01-01T08:00:00"),
        ("2017-01-01T09:00:00-05:30", "2017-01-01T14:30:00"),
        ("2017-01-01T09:00:00-00:00", "2017-01-01T09:00:00"),
        ("2017-01-01T09:00:00+14:00", "2016-12-31T19:00:00"),
        ("2017-01-01T09:00:00.1", "2017-01-01T09:00:00.100"),
        ("2017-01-01T09:00:00.1239999999999999999999Z", "2017-01-01T09:00:00.123"),
        ("2016-12-31T24:00:00", "2017-01-01T00:00:00"),
        ("2016-12-31T24:00:00.00Z", "2017-01-01T00:00:00"),
        ("2016-02-29T12:00:00", "2016-02-29T12:00:00"),
        ("2000-02-29T12:00:00", "2000-02-29T12:00:00"),
        ("1969-12-31T23:59:59.5", "1969-12-31T23:59:59.5"),
    ],
)
def test_datetimes(text: str, same: str) -> None:
    assert parse_xsd_datetime(text) == ms(same)


# K122-X7
def test_a_fraction_is_optional_here_and_mandatory_in_the_shipped_tool() -> None:
    text = "2017-01-01T09:00:00"
    assert parse_xsd_datetime(text) == parse_datetime(f"{text}.000")
    with pytest.raises(BadDatetime):
        parse_datetime(text)


def test_years_of_any_size() -> None:
    year_ms = 400 * 365.2425 * 86_400_000
    assert parse_xsd_datetime("12000-01-01T00:00:00") - parse_xsd_datetime("2000-01-01T00:00:00") == 25 * year_ms
    # There is no year 0: 1 BC is directly before AD 1.
    assert parse_xsd_datetime("0001-01-01T00:00:00") - parse_xsd_datetime("-0001-12-31T00:00:00") == 86_400_000
    assert parse_xsd_datetime("-0001-02-29T00:00:00") < parse_xsd_datetime("-0001-03-01T00:00:00")  # a leap year


@pytest.mark.parametrize(
    "text",
    [
        *NO_DATETIMES.split(),
        "",
        " 2017-01-01T09:00:00",
        "2017-01-01T09:00:00\n",
        "2017-01-01 09:00:00",
        "9" * 5000 + "-01-01T00:00:00",
    ],
)
def test_what_is_no_datetime(text: str) -> None:
    with pytest.raises(BadDatetime):
        parse_xsd_datetime(text)


NOW = "2023-03-31T12:00:00.250"


# K122-35, K122-36, K122-37
@pytest.mark.parametrize(
    ("period", "now", "then"),
    [
        ("P1M", NOW, "2023-02-28T12:00:00.250"),
        ("P1M", "2024-03-31T00:00:00", "2024-02-29T00:00:00"),
        ("P1M", "2024-03-30T00:00:00", "2024-02-29T00:00:00"),
        ("P1M", "2023-05-31T00:00:00", "2023-04-30T00:00:00"),
        ("P1M", "2023-01-15T00:00:00", "2022-12-15T00:00:00"),
        ("P13M", "2023-01-15T00:00:00", "2021-12-15T00:00:00"),
        ("PT1M", NOW, "2023-03-31T11:59:00.250"),
        ("P1Y", "2024-02-29T00:00:00", "2023-02-28T00:00:00"),
        ("P4Y", "2024-02-29T00:00:00", "2020-02-29T00:00:00"),
        ("P1Y2M3DT4H5M6.5S", NOW, "2022-01-28T07:54:53.750"),
        ("P1M1D", "2023-03-31T00:00:00", "2023-02-27T00:00:00"),  # the month first, then the day
        ("P0D", NOW, NOW),
        ("PT36H", NOW, "2023-03-30T00:00:00.250"),
        ("PT0.25S", NOW, "2023-03-31T12:00:00"),
        ("PT0.0001S", NOW, "2023-03-31T12:00:00.249"),
        ("-P1M", "2023-01-31T00:00:00", "2023-02-28T00:00:00"),
        ("-PT1H", NOW, "2023-03-31T13:00:00.250"),
        ("P100Y", "1970-01-01T00:00:00", "1870-01-01T00:00:00"),
    ],
)
def test_periods(period: str, now: str, then: str) -> None:
    assert parse_xsd_duration(period).before_ms(ms(now)) == ms(then)


@pytest.mark.parametrize("text", [*NO_DURATIONS.split(), "", " P1D", "P1D\n", f"P{'9' * 5000}D"])
def test_what_is_no_period(text: str) -> None:
    with pytest.raises(BadDuration):
        parse_xsd_duration(text)


@given(st.datetimes())
def test_the_calendar_is_pythons(then: datetime) -> None:
    """Every day forth and back: a datetime, and no months before it."""
    then = then.replace(microsecond=then.microsecond // 1000 * 1000)
    expected = (then - datetime(1970, 1, 1)).total_seconds() * 1000
    parsed = parse_xsd_datetime(then.isoformat())
    assert parsed == round(expected)
    assert parse_xsd_duration("P0M").before_ms(parsed) == parsed
