"""Points in time and durations of resets (K122-79), compared with what Java makes of the same texts."""

import pytest

from groupkeeper.operations.times import (
    BadDatetime,
    BadDuration,
    Duration,
    parse_datetime,
    parse_duration,
    parse_iso_datetime,
    parse_length,
)

NOON = 1700000003000
"""2023-11-14T22:13:23 in UTC."""


@pytest.mark.parametrize(
    ("text", "timestamp"),
    [
        ("2023-11-14T22:13:23.000", NOON),
        ("2023-11-14T22:13:23.000Z", NOON),
        ("2023-11-14T23:13:23.000+01:00", NOON),
        ("2023-11-14T23:13:23.000+01", NOON),
        ("2023-11-14T20:43:23.000-01:30", NOON),
        ("2023-11-14T23:13:23.000+0100", NOON),
        ("2023-11-14T23:13:23.000+01:60", NOON),
        ("2023-11-14T22:13:23.5", NOON + 5),
        ("2023-11-14T22:13:23.0999", NOON + 999),
        (" 2023- 11-14T 22:13:23.000 ", NOON),
        ("2023-11-14T22:13:23.000Zfoo", NOON),
        ("2023-1-4T2:3:3.000", 1672797783000),
        ("2024-02-29T00:00:00.000", 1709164800000),
        ("1970-01-01T00:00:00.000", 0),
        ("1969-12-31T23:59:59.999", -1),
        ("1582-10-15T00:00:00.000", -12219292800000),
        ("1582-10-04T00:00:00.000", -12219379200000),
        ("1500-02-29T00:00:00.000", -14825894400000),
        ("0001-01-01T00:00:00.000", -62135769600000),
        ("292278994-08-17T07:12:55.807", 2**63 - 1),
    ],
)
def test_datetimes(text: str, timestamp: int) -> None:
    assert parse_datetime(text) == timestamp


@pytest.mark.parametrize(
    "text",
    [
        "2023-11-14T22:13:23",
        "2023-11-14T22:13:23.",
        "2023-11-14T22:13:23.1000",
        "2023-11-14T22:13:23.-5",
        "2023-02-29T22:13:23.000",
        "2023-13-01T22:13:23.000",
        "2023-11-14T24:00:00.000",
        "2023-11-14T22:60:00.000",
        "2023-11-14T22:13:60.000",
        "1582-10-10T00:00:00.000",
        "0000-11-10T22:13:23.000",
        "292278995-08-17T07:12:55.807",
        "2023-11-14T22:13:23.000+1:00",
        "2023-11-14T22:13:23.000+14:01",
        "2023-11-14T22:13:23.000-13:01",
        "2023 -11-14T22:13:23.000",
        "20231114T221323.000",
        "Today",
    ],
)
def test_not_datetimes(text: str) -> None:
    shown = text if any(sign in text.partition("T")[2] for sign in "+-Z") else f"{text}Z"
    with pytest.raises(BadDatetime) as refusal:
        parse_datetime(text)
    assert str(refusal.value) == f'Unparseable date: "{shown}"'


@pytest.mark.parametrize("text", ["", "2023-11-14", "2023-11-14T", "T", "yesterday", "2023-11-14 22:13:23.000"])
def test_a_datetime_without_time(text: str) -> None:
    with pytest.raises(BadDatetime, match="does not contain a 'T'"):
        parse_datetime(text)


@pytest.mark.parametrize(
    ("text", "timestamp"),
    [
        ("2023-11-14T22:13:23", NOON),
        ("2023-11-14T22:13:23Z", NOON),
        ("2023-11-14 22:13:23.000", NOON),
        ("2023-11-14T23:13:23+01:00", NOON),
        ("2023-11-14T22:13:23.5", NOON + 500),
        ("2023-11-14T22:13:23.0009", NOON),
        ("2023-11-14", NOON - (22 * 3600 + 13 * 60 + 23) * 1000),
        ("1969-12-31T23:59:59.999", -1),
    ],
)
def test_iso_datetimes(text: str, timestamp: int) -> None:
    assert parse_iso_datetime(text) == timestamp


@pytest.mark.parametrize("text", ["", "yesterday", "2023-02-29T00:00:00", "2023-11-14T22:60", "1700000003000"])
def test_not_iso_datetimes(text: str) -> None:
    with pytest.raises(BadDatetime):
        parse_iso_datetime(text)


@pytest.mark.parametrize(
    ("text", "duration"),
    [
        ("PT1S", Duration(1)),
        ("p1dt2h3m4.5s", Duration(86400 + 2 * 3600 + 3 * 60 + 4, 500_000_000)),
        ("-P1D", Duration(-86400)),
        ("P-1D", Duration(-86400)),
        ("-PT-1H+1M", Duration(3540)),
        ("PT-0.5S", Duration(-1, 500_000_000)),
        ("-PT0.5S", Duration(-1, 500_000_000)),
        ("PT1,5S", Duration(1, 500_000_000)),
        ("PT1.S", Duration(1)),
        ("PT0.123456789S", Duration(0, 123456789)),
        ("+P0D", Duration(0)),
    ],
)
def test_durations(text: str, duration: Duration) -> None:
    assert parse_duration(text) == duration


# K122-X6: no months here
@pytest.mark.parametrize(
    "text",
    [
        "",
        "P",
        "PT",
        "P1DT",
        "1D",
        "P1",
        "P1M",
        "P1Y",
        "P1W",
        "PT1.5M",
        "PT.5S",
        "PT1S1M",
        "P1D1H",
        " P1D",
        "P--1D",
        "P٣D",
        "PT1.1234567890S",
    ],
)
def test_not_durations(text: str) -> None:
    with pytest.raises(BadDuration, match=r"^Text cannot be parsed to a Duration$"):
        parse_duration(text)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("P106751991167301D", "days"),
        ("PT2562047788015216H", "hours"),
        ("PT153722867280912931M", "minutes"),
        ("PT9223372036854775808S", "seconds"),
        ("P106751991167300DT999999999H", "overflow"),
        pytest.param(f"P1DT{'9' * 5000}H", "hours", id="thousands of digits"),
        ("-PT-9223372036854775808S", "overflow"),
    ],
)
def test_durations_that_are_too_long(text: str, what: str) -> None:
    with pytest.raises(BadDuration, match=f": {what}$"):
        parse_duration(text)


def test_the_point_before_now() -> None:
    now_ns = 1_700_000_000_123_456_789
    assert parse_duration("PT1.5S").before_ms(now_ns) == 1_699_999_998_623
    assert parse_duration("-P1D").before_ms(now_ns) == 1_700_086_400_123
    with pytest.raises(BadDuration, match="Instant exceeds"):
        parse_duration("PT9223372036854775807S").before_ms(now_ns)
    with pytest.raises(BadDuration, match="long overflow"):
        parse_duration("P365241780471D").before_ms(now_ns)


@pytest.mark.parametrize(
    ("text", "same"),
    [("7d", "P7D"), ("2m", "PT2M"), ("1h30m", "PT1H30M"), ("500ms", "PT0.5S"), ("1d2h3m4s5ms", "P1DT2H3M4.005S"),
     ("0s", "PT0S"), ("P7D", "P7D"), ("-PT1H", "-PT1H"), ("pt1h", "PT1H"),
     ("1.5h", "PT1H30M"), ("0.25d", "PT6H"), ("0.5ms", "PT0.0005S")],
)  # fmt: skip
def test_durations_as_people_write_them(text: str, same: str) -> None:
    assert parse_length(text) == parse_duration(same)


@pytest.mark.parametrize("text", ["", "7", "7w", "7D", "30m1h", "1.5h30m", "1.h", "-2m", "1h 30m", "ms", "\u0661m"])
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(BadDuration):
        parse_length(text)
