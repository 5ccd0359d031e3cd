"""Which partitions and which offset kafka-get-offsets is asked for."""

from pathlib import Path

import pytest

from groupkeeper.cli.dropin.drop_in import Refusal
from groupkeeper.cli.dropin.kafka_get_offsets import TABLE, check_servers, main, offset_spec, rules_of
from groupkeeper.client.admin.types import OffsetSpec

PLACES = [(topic, partition) for topic in ("orders", "payments", "__consumer_offsets") for partition in range(4)]


def chosen(*arguments: str) -> list[str]:
    rules = rules_of(TABLE.parse(arguments))
    return [f"{t}-{p}" for t, p in PLACES if any(rule.has_topic(t) and rule.has_partition(p) for rule in rules)]


@pytest.mark.parametrize(
    ("pattern", "places"),
    [
        ("orders:1", ["orders-1"]),
        ("orders:1-3", ["orders-1", "orders-2"]),
        ("orders:2-", ["orders-2", "orders-3"]),
        ("orders:-1", ["orders-0"]),
        ("orders:3-1", []),
        ("orders:9", []),
        ("ord.*:0,pay.*:3", ["orders-0", "payments-3"]),
        (":0", ["orders-0", "payments-0", "__consumer_offsets-0"]),
        ("orders", ["orders-0", "orders-1", "orders-2", "orders-3"]),
        ("orders:-", ["orders-0", "orders-1", "orders-2", "orders-3"]),
    ],
)
def test_topic_partitions(pattern: str, places: list[str]) -> None:
    assert chosen("--topic-partitions", pattern) == places


def test_topics_and_partitions() -> None:
    found = chosen("--topic", " 'orders , payments' ", "--partitions", "0,3")
    assert found == ["orders-0", "orders-3", "payments-0", "payments-3"]
    assert chosen("--topic", "ord") == []
    assert chosen("--partitions", "") == [f"{topic}-{partition}" for topic, partition in PLACES]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--topic-partitions", "a:0:1"], "Invalid rule specification: a:0:1"),
        (["--topic-partitions", "a:x"], "Invalid rule specification: a:x"),
        (["--topic", "["], "[ is an invalid regex."),
        (
            ["--partitions", "0,a"],
            "--partitions expects a comma separated list of numeric partition ids, but received: 0,a",
        ),
    ],
)
def test_what_is_refused(arguments: list[str], text: str) -> None:
    with pytest.raises(Refusal) as refusal:
        chosen(*arguments)
    assert str(refusal.value).endswith(text)


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        ("latest", OffsetSpec.latest()),
        ("-2", OffsetSpec.earliest()),
        ("max-timestamp", OffsetSpec.max_timestamp()),
        ("earliest-pending-upload", OffsetSpec.earliest_pending_upload()),
        ("1700000000000", OffsetSpec.for_timestamp(1700000000000)),
        ("+5", OffsetSpec.for_timestamp(5)),
    ],
)
def test_times(text: str, spec: OffsetSpec) -> None:
    assert offset_spec(text) == spec


@pytest.mark.parametrize("text", ["", "LATEST", "yesterday", "1.5", "99999999999999999999"])
def test_not_times(text: str) -> None:
    with pytest.raises(Refusal, match=f"^Malformed time argument {text}. Please use -1 or latest / -2 or earliest / "):
        offset_spec(text)


@pytest.mark.parametrize("text", ["a:1", "a:1,b:2", "PLAINTEXT://a:1", "[::1]:1", ":1", "a:1,"])
def test_servers(text: str) -> None:
    check_servers(TABLE.parse(["--bootstrap-server", text]))


def test_a_bad_escape_in_the_properties_is_no_mistake_of_usage(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    properties = tmp_path / "client.properties"
    properties.write_text("client.id=\\u00zz\n")
    assert main(["--bootstrap-server", "127.0.0.1:1", "--command-config", str(properties)]) == 1
    assert capsys.readouterr().err == "Error occurred: Malformed \\uxxxx encoding.\n"
