"""Files of Java properties, and what Kafka's admin client accepts in them."""

from pathlib import Path

import pytest

from groupkeeper.cli.properties import BadEscape, BadValue, check_properties, read_properties


def read(tmp_path: Path, text: str) -> dict[str, str]:
    path = tmp_path / "client.properties"
    path.write_bytes(text.encode("latin-1"))
    return read_properties(str(path))


def test_names_end_at_an_equals_sign_a_colon_or_a_blank(tmp_path: Path) -> None:
    text = "a=1\nb: 2\r\n  c   3\nd\ne = = 5 \nf\\=g\\ h=\\\\\n"
    assert read(tmp_path, text) == {"a": "1", "b": "2", "c": "3", "d": "", "e": "= 5 ", "f=g h": "\\"}


def test_comments_and_joined_lines(tmp_path: Path) -> None:
    assert read(tmp_path, "# no\n ! no\n\na=one\\\n   two\\\\\nb=#yes\n") == {"a": "onetwo\\", "b": "#yes"}


def test_escapes(tmp_path: Path) -> None:
    assert read(tmp_path, "a=\\u0041\\t\\q\\u00e9x\n") == {"a": "A\tqéx"}
    with pytest.raises(BadEscape, match="Malformed"):
        read(tmp_path, "a=\\u00zz\n")


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
    assert check_properties(properties) == {
        "request.timeout.ms": "5",
        "security.protocol": "plaintext",
        "unknown": " x ",
    }
