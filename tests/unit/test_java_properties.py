"""Files of Java properties, as java.util.Properties reads them."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groupkeeper.java_properties import BadEscape, escaped, parse_properties, read_properties


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("a=b", {"a": "b"}),
        ("a = b \n", {"a": "b "}),
        ("a:b", {"a": "b"}),
        ("a b c", {"a": "b c"}),
        ("a\t=\tb", {"a": "b"}),
        ("a", {"a": ""}),
        ("a=", {"a": ""}),
        ("# comment\n! comment\n\n  a=b", {"a": "b"}),
        ("a=1\na=2", {"a": "2"}),
        ("a=x=y:z", {"a": "x=y:z"}),
        (r"a=C\:\\dir\\", {"a": "C:\\dir\\"}),
        ("a=one,\\\n   two", {"a": "one,two"}),
        ("a=one\\\\\nb=2", {"a": "one\\", "b": "2"}),
        (r"a\ key\=\:=v", {"a key=:": "v"}),
        (r"a=\u00e4\t\n\r\f\q", {"a": "ä\t\n\r\fq"}),
        ("a=b\r\nc=d\r", {"a": "b", "c": "d"}),
        ("a=end\\", {"a": "end"}),
        ("listeners=EXTERNAL\\://localhost\\:9092", {"listeners": "EXTERNAL://localhost:9092"}),
    ],
)
def test_lines(text: str, values: dict[str, str]) -> None:
    assert parse_properties(text) == values


@pytest.mark.parametrize("bad", ["\\u12x4", "\\u12", "\\u", "\\uD83D\\u+123"])
def test_a_bad_escape_is_refused_with_its_line(bad: str) -> None:
    with pytest.raises(BadEscape, match="Malformed") as refusal:
        parse_properties(f"a=1\\\n2\nb={bad}")
    assert refusal.value.line == 3


def test_files_are_latin_1(tmp_path: Path) -> None:
    path = tmp_path / "client.properties"
    path.write_bytes(b"a=\xe9\r\nb=\\ud83d\\ude42\r\n")
    assert read_properties(str(path)) == {"a": "é", "b": "🙂"}


@given(st.dictionaries(st.text(), st.text()))
def test_what_is_escaped_is_read_again(properties: dict[str, str]) -> None:
    lines = [f"{escaped(key, is_key=True)}={escaped(value)}\n" for key, value in properties.items()]
    assert parse_properties("".join(lines)) == properties
