"""Bootstrap servers: what is understood, and what a mistake is answered with."""

import pytest

from groupkeeper.client.addresses import Address, parse_bootstrap_servers
from groupkeeper.client.errors import InvalidAddress


@pytest.mark.parametrize(
    ("text", "addresses"),
    [
        ("localhost:9092", [("localhost", 9092)]),
        ("a:1,b:2", [("a", 1), ("b", 2)]),
        (" a:1 , b:2 ,", [("a", 1), ("b", 2)]),
        ("a:1,a:1", [("a", 1)]),
        ("[::1]:9092", [("::1", 9092)]),
        ("PLAINTEXT://broker:9092", [("broker", 9092)]),
        ("SASL_SSL://[fe80::1]:9093", [("fe80::1", 9093)]),
    ],
)
def test_lists_of_servers(text: str, addresses: list[tuple[str, int]]) -> None:
    assert parse_bootstrap_servers(text) == addresses


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "no bootstrap server is given"),
        (" , ", "no bootstrap server is given"),
        ("localhost", "expected host:port, for example localhost:9092"),
        (":9092", "expected host:port"),
        ("localhost:", "the port must be a number"),
        ("localhost:kafka", "the port must be a number from 1 to 65535, not 'kafka'"),
        ("localhost:0", "the port must be a number"),
        ("localhost:70000", "the port must be a number"),
        ("localhost:٣", "the port must be a number"),
        ("::1:9092", "an IPv6 address is written in brackets"),
        ("[::1]", "an IPv6 address is written in brackets, as [::1]:9092"),
        ("a b:9092", "expected host:port"),
        ("http://host/path:1", "expected host:port"),
        ("good:9092,bad", "bootstrap server bad:"),
    ],
)
def test_mistakes_are_named(text: str, says: str) -> None:
    with pytest.raises(InvalidAddress) as caught:
        parse_bootstrap_servers(text)
    assert says in str(caught.value)


@pytest.mark.parametrize("text", ["kafka://u:hush@host:9092", "u:hush@host:9092", "good:1,u:p@hush@host:9092"])
def test_a_password_is_not_quoted(text: str) -> None:
    with pytest.raises(InvalidAddress) as caught:
        parse_bootstrap_servers(text)
    assert "bootstrap server host:9092: no user or password stands in front" in str(caught.value)
    assert "hush" not in str(caught.value)


def test_an_address_is_written_as_it_is_read() -> None:
    assert str(Address("::1", 9092)) == "[::1]:9092"
    assert str(Address("broker", 9092)) == "broker:9092"
