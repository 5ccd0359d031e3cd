"""How --bootstrap-server is read."""

import pytest

from groupkeeper.cli.dropin.bootstrap import NO_CLIENT, bootstrap_servers
from groupkeeper.cli.dropin.drop_in import ExecutionFailure


@pytest.mark.parametrize(
    ("text", "servers"),
    [
        (" 127.0.0.1:9092 , 127.0.0.2:1 ", "127.0.0.1:9092,127.0.0.2:1"),
        ("PLAINTEXT://127.0.0.1:9092", "127.0.0.1:9092"),
        ("[::1]:9092", "[::1]:9092"),
        (":9092", "localhost:9092"),
    ],
)
def test_servers(text: str, servers: str) -> None:
    assert bootstrap_servers(text) == servers


@pytest.mark.parametrize("text", ["", "nonsense", "127.0.0.1", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:65536", "a b:1"])
def test_not_servers(text: str) -> None:
    with pytest.raises(ExecutionFailure, match=NO_CLIENT):
        bootstrap_servers(text)


@pytest.mark.parametrize("text", [",", "127.0.0.1:1,", ",127.0.0.1:1"])
def test_empty_servers(text: str) -> None:
    with pytest.raises(ExecutionFailure, match="values must not be empty"):
        bootstrap_servers(text)
