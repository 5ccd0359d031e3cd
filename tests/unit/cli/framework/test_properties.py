"""What Kafka's admin client accepts in its properties."""

import pytest

from groupkeeper.cli.framework.properties import BadValue, check_properties


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("request.timeout.ms", "abc", "Not a number of type INT"),
        ("request.timeout.ms", "99999999999", "Not a number of type INT"),
        ("request.timeout.ms", "-1", "Value must be at least 0"),
        ("retry.backoff.ms", "1.5", "Not a number of type LONG"),
        ("sasl.login.refresh.window.factor", "0.4", "Value must be at least 0.5"),
        ("sasl.login.refresh.buffer.seconds", "3601", "Value must be no more than 3600"),
        ("enable.metrics.push", "maybe", "Expected value to be either true or false"),
        ("metrics.recording.level", "info", "String must be one of: INFO, DEBUG, TRACE"),
        (
            "security.protocol",
            "NOPE",
            "String must be one of (case insensitive): PLAINTEXT, SASL_PLAINTEXT, SASL_SSL, SSL",
        ),
    ],
)
def test_values_that_are_refused(name: str, value: str, problem: str) -> None:
    with pytest.raises(BadValue) as refusal:
        check_properties({name: value})
    assert str(refusal.value) == f"Invalid value {value} for configuration {name}: {problem}"


def test_values_that_are_right_lose_their_blanks() -> None:
    properties = {"request.timeout.ms": " 5 ", "security.protocol": "plaintext", "unknown": " x "}
    found = check_properties(properties)
    assert found == {"request.timeout.ms": "5", "security.protocol": "plaintext", "unknown": " x "}
