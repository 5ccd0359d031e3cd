"""sasl.jaas.config as Kafka's Java clients read it."""

import pytest

from groupkeeper.security.errors import BadCredentials
from groupkeeper.security.jaas import parse_jaas, parse_jaas_file

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"


def test_a_login_module_and_its_options() -> None:
    module = parse_jaas(f'{PLAIN} required username="alice" password="a b;=\\"\\\\";')
    assert module.class_name == "PlainLoginModule"
    assert module.options == {"username": "alice", "password": 'a b;="\\'}


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("Plain\n  REQUIRED\n  username=alice\n  password='x y';", {"username": "alice", "password": "x y"}),
        ('Plain required // a comment\n user_a-b$c="1" /* another\n one */ ;', {"user_a-b$c": "1"}),
        ('Plain optional "quoted key"="v";', {"quoted key": "v"}),
        ('Plain required empty="";', {"empty": ""}),
        ('Plain required p="\\101\\t\\u";', {"p": "A\tu"}),
        ('Plain required p="größe €";', {"p": "größe €"}),
        ("Plain required;", {}),
        ("Plain required a=b.c_d-e;", {"a": "b.c_d-e"}),
    ],
)
def test_forms_that_java_takes(text: str, options: dict[str, str]) -> None:
    assert parse_jaas(text).options == options


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "has no login module"),
        ('Plain required username="a"', "must end with a semicolon"),
        ('Plain required username="a" password="b" other', "has no value, or no ';'"),
        ("x.PlainLoginModule", "after the class name of PlainLoginModule the word 'required' must follow"),
        ('Plain username="a";', "the word 'required' must follow"),
        ('Plain required username="a;', "a quote is not closed"),
        ("Plain required /* a;", "a comment is not closed"),
        ("Plain required password=12345;", "the option password of the login module must be in double quotes"),
        ("Plain required password=;", "the option password of the login module must be in double quotes"),
        ("Plain required =x;", "out of place"),
        ("= required;", "must begin with the class name"),
        ("Plain required; Scram required;", "it has 2 login modules"),
    ],
)
def test_what_is_wrong_is_said(text: str, says: str) -> None:
    with pytest.raises(BadCredentials, match=says):
        parse_jaas(text)


@pytest.mark.parametrize(
    "text",
    [
        'Plain required username="u" password="hush',
        'Plain required username="u" password=hush!;',
        'Plain required username="u" password "hush";',
        'Plain required username="u" "hush";',
        'Plain required username="u" password="hush"',
        "hush",
        "x.hush",
        "hush required",
        "hush = required",
        'PlainLoginModule required username="u" password=my hush word;',
        "PlainLoginModule required username=u password=x hush=;",
        "PlainLoginModule required hush",
    ],
)
def test_secrets_stay_out_of_errors(text: str) -> None:
    with pytest.raises(BadCredentials) as caught:
        parse_jaas(text)
    assert "hush" not in str(caught.value)


def test_a_password_in_place_of_a_section_stays_out_of_errors() -> None:
    for text in ("hush {", "hush { PlainLoginModule required;", "hush { PlainLoginModule required; }"):
        with pytest.raises(BadCredentials) as caught:
            parse_jaas_file(text)
        assert "hush" not in str(caught.value)


def test_secrets_stay_out_of_repr() -> None:
    module = parse_jaas('Plain required username="u" password="hush";')
    assert "hush" not in repr(module)
    assert module.title == "the login module"
