import pytest

from groupkeeper.broker.properties import InvalidProperties, parse_properties


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


def test_a_bad_escape_is_refused_with_its_line() -> None:
    with pytest.raises(InvalidProperties, match="line 2"):
        parse_properties("a=1\nb=\\u12x4")
