"""Durations and properties, which are the same for all commands."""

from argparse import ArgumentTypeError, Namespace
from pathlib import Path

import pytest

from groupkeeper.cli.framework import values
from groupkeeper.cli.framework.clusters import cluster_of, timeout_of
from groupkeeper.cli.framework.commands import parse
from groupkeeper.cli.framework.typed import follow_up
from groupkeeper.cli.pipeline.family import source_of


@pytest.mark.parametrize(
    ("text", "ms"),
    [("500ms", 500), ("5s", 5000), ("1h30m", 5_400_000), ("7d", 604_800_000), ("PT5M", 300_000), ("PT0.5S", 500)],
)
def test_durations_have_units(text: str, ms: int) -> None:
    assert (values.span_ms(text), values.span_s(text), values.wait_s(text)) == (ms, ms / 1000, ms / 1000)
    assert values.hours(text) == ms / 3_600_000
    assert (values.wait_s("0"), values.hours("0")) == (0, 0)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        *[
            (each, "expected a duration")
            for each in ("", "soon", "0", "5 s", "1e3", "1w", "-", "-soon", "9" * 12 + "d")
        ],
        *[(each, "a duration must be at least 1ms") for each in ("0s", "-0s", "0.1ms", "PT0.0001S")],
        *[(each, "a duration cannot be negative") for each in ("-5s", "-0.5h", "-PT5M", "PT-5M")],
        ("36501d", "a duration can be 36500d (100 years) at most"),
    ],
)
def test_what_is_no_duration_is_refused_with_the_reason(text: str, reason: str) -> None:
    with pytest.raises(ArgumentTypeError) as refused:
        values.span_ms(text)
    assert str(refused.value) == f"{text!r}: {reason}, for example 500ms, 30s, 5m, 1h30m, 7d or PT5M"


@pytest.mark.parametrize("text", ["-7d", "-P7D", "P-7D"])
def test_a_duration_back_from_now_is_not_negative(text: str) -> None:
    with pytest.raises(ArgumentTypeError, match="cannot be negative, for example 7d"):
        values.duration(text)


def test_a_property_wins_over_files_and_contexts(tmp_path: Path) -> None:
    path = tmp_path / "client.properties"
    path.write_text("client.id=of-the-file\nretries=3\n")
    words = ["groups", "list", "--bootstrap-server", "b:1", "--command-config", str(path), "--property", "client.id=me"]
    cluster = cluster_of(Namespace(**{**vars(parse(words)), "context": None}))
    assert (cluster.properties, cluster.source) == ({"client.id": "me", "retries": "3"}, "--property")


@pytest.mark.parametrize(
    ("given", "ms"),
    [
        ("", 30_000),
        ("--property default.api.timeout.ms=4000", 4000),
        ("--property default.api.timeout.ms=4000 --timeout 2s", 2000),
        ("--timeout 2s", 2000),
    ],
)
def test_a_timeout_wins_over_the_property_of_that_meaning(given: str, ms: int) -> None:
    options = parse(["groups", "list", "--bootstrap-server", "b:1", *given.split()])
    cluster = cluster_of(Namespace(**{**vars(options), "context": None}))
    assert timeout_of(cluster, options.timeout) == ms


@pytest.mark.parametrize(
    ("given", "properties", "poll_ms"),
    [
        ("", {}, None),
        ("--property default.api.timeout.ms=4000", {"kafka.default.api.timeout.ms": "4000"}, None),
        ("--property default.api.timeout.ms=4000 --timeout 2s", {"kafka.default.api.timeout.ms": "2000"}, "2000"),
    ],
)
def test_the_pipeline_takes_the_same_timeout(given: str, properties: dict[str, str], poll_ms: str | None) -> None:
    options = parse(["pipeline", "snapshot", "--tables", "t", "--bootstrap-server", "b:1", *given.split()])
    source = source_of(options)
    assert {name: value for name, value in source.items() if "timeout" in name} == properties
    assert source.get("kafkaConsumer.pollTimeoutMs") == poll_ms


def test_secrets_of_properties_are_not_said_again() -> None:
    words = ["plan", "delete-offsets", "g", "--topic", "t", "--bootstrap-server", "b:1"]
    options = parse([*words, "--property", "sasl.password=hush", "--property", "client.id=me"])
    assert follow_up(options, "undo") == (
        "groupkeeper undo --bootstrap-server b:1 --property 'sasl.password=********' --property client.id=me"
    )


def test_a_property_may_stand_before_the_command() -> None:
    assert parse(["--property", "client.id=me", "groups", "list"]).property == [("client.id", "me")]
