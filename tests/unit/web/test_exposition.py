"""The texts that Prometheus reads, judged by the parsers of prometheus_client."""

import gzip
import tracemalloc
from collections.abc import Iterable

import pytest
from prometheus_client import Metric as Family
from prometheus_client.openmetrics.parser import text_string_to_metric_families as open_families
from prometheus_client.parser import text_string_to_metric_families as prometheus_families
from tests.unit.live.views import described, member, row, snapshot, view

from groupkeeper.client.admin.types import GroupState, GroupType, TopicPartition
from groupkeeper.live.model import Wait, not_polled
from groupkeeper.operations.problems import Problem
from groupkeeper.protocol.errors import LeaderNotAvailable
from groupkeeper.web.exporter import OTHERS, OWN, Choices, Exporter
from groupkeeper.web.exposition import Format, wanted_format
from groupkeeper.web.series import Level

HOSTILE = 'a"b\\c\nd{e}=,é\u2028😀 # EOF'
EVERYTHING = Choices((OWN, *OTHERS), frozenset(Level))

Values = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def exported(*snapshots: object, choices: Choices = EVERYTHING) -> Exporter:
    exporter = Exporter(choices)
    for each in snapshots:
        exporter.take(each)  # type: ignore[arg-type]
    return exporter


def values_of(families: Iterable[Family]) -> Values:
    found: Values = {}
    for family in families:
        assert family.documentation
        for sample in family.samples:
            key = (sample.name, tuple(sorted(sample.labels.items())))
            assert key not in found, f"twice: {key}"
            found[key] = sample.value
    return found


def both(exporter: Exporter) -> Values:
    """The samples, which have to be the same in both formats, with each metric's samples together."""
    plain = list(prometheus_families(b"".join(exporter.text(Format.PROMETHEUS)).decode()))
    names = [family.name for family in plain]
    assert len(names) == len(set(names))
    values = values_of(plain)
    assert values == values_of(open_families(b"".join(exporter.text(Format.OPENMETRICS)).decode()))
    return values


def value(values: Values, name: str, **labels: str) -> float | None:
    return values.get((name, tuple(sorted(labels.items()))))


def test_names_may_have_any_characters() -> None:
    consumer = member(HOSTILE, TopicPartition(HOSTILE, 0))
    group = view(HOSTILE, [row(HOSTILE, 0, 5)], [Wait(1500)], described(HOSTILE, consumer, epoch=3))
    values = both(exported(snapshot(group, cluster=HOSTILE)))
    assert value(values, "groupkeeper_group_lag", cluster=HOSTILE, group=HOSTILE, topic=HOSTILE) == 95
    assert value(values, "groupkeeper_group_lag_seconds", cluster=HOSTILE, group=HOSTILE, topic=HOSTILE) == 1.5
    assert "\ud800" not in b"".join(exported(snapshot(view("\ud800"))).text(Format.PROMETHEUS)).decode()


def test_what_is_not_known_is_absent_and_never_zero() -> None:
    unknown = row("t", 0, 5, None)._replace(failure=LeaderNotAvailable())
    problem = Problem("LEADER_NOT_AVAILABLE", "no leader", "g", "t", 0)
    values = both(exported(snapshot(view("g", [unknown], [Wait(None)], problems=(problem,)))))
    known = {name for name, labels in values if ("group", "g") in labels}
    lag_names = {name for name in known if "lag" in name and "unknown" not in name}
    assert lag_names == set()
    assert value(values, "groupkeeper_group_lag_seconds_unknown_partitions", cluster="prod", group="g", topic="t") == 1
    assert "groupkeeper_group_members" not in known
    assert (
        value(values, "groupkeeper_group_problem", cluster="prod", group="g", error="LEADER_NOT_AVAILABLE", acl="") == 1
    )


def test_every_number_of_a_group() -> None:
    consumer = member("a", TopicPartition("t", 0), TopicPartition("t", 1))
    rows = [row("t", 0, 10), row("t", 1, 40), row("t", 2, None), row("u", 0, 3, start=7)]
    waits = [Wait(9000, False, 60_000), Wait(2500, True, 61_000), Wait(None), Wait(100)]
    group = view("g", rows, waits, described("g", consumer, epoch=7), rebalances=4, progress_ms=1_600_000_000_500)
    values = both(exported(snapshot(group)))
    of_t = {"cluster": "prod", "group": "g", "topic": "t"}
    expected = {
        "groupkeeper_group_lag": 150,
        "groupkeeper_group_max_lag": 90,
        "groupkeeper_group_lag_seconds": 9.0,
        "groupkeeper_group_lag_seconds_estimated_partitions": 1,
        "groupkeeper_group_lag_seconds_unknown_partitions": None,
        "groupkeeper_group_retention_margin_seconds": 60.0,
        "groupkeeper_group_commit_age_seconds": 99_999_999.5,
        "groupkeeper_group_partitions": 3,
        "groupkeeper_group_assigned_members": 1,
        "groupkeeper_group_lost": None,
        "groupkeeper_group_uncommitted": 100,
    }
    assert {name: value(values, name, **of_t) for name in expected} == expected
    assert value(values, "groupkeeper_group_lost", cluster="prod", group="g", topic="u") == 4
    assert value(values, "groupkeeper_group_partitions_by_status", **of_t, status="uncommitted") == 1
    assert value(values, "groupkeeper_group_rebalances_total", cluster="prod", group="g") == 4
    assert value(values, "groupkeeper_group_epoch", cluster="prod", group="g") == 7
    assert value(values, "groupkeeper_group_progress_timestamp_seconds", cluster="prod", group="g") == 1_600_000_000.5
    info = {"cluster": "prod", "group": "g", "type": "Consumer", "state": "Stable", "assignor": "range"}
    assert value(values, "groupkeeper_group_info", **info) == 1
    of_member = {"cluster": "prod", "group": "g", "member_id": "a-id", "client_id": "a", "host": "/127.0.0.1"}
    assert value(values, "groupkeeper_group_member_partitions", **of_member) == 2
    assert value(values, "groupkeeper_group_partition_lag", **of_t, partition="1") == 60


def test_series_of_what_is_gone_go() -> None:
    exporter = exported(snapshot(view("a", [row("t", 0, 5)]), view("b", [row("t", 0, 5)])))
    assert value(both(exporter), "groupkeeper_group_lag", cluster="prod", group="b", topic="t") == 95
    exporter.take(snapshot(view("a", [row("t", 0, 6)])))
    values = both(exporter)
    assert value(values, "groupkeeper_group_lag", cluster="prod", group="a", topic="t") == 94
    assert not [key for key in values if ("group", "b") in key[1] or ("group_id", "b") in key[1]]
    exporter.take(snapshot(at_ms=None, problems=(Problem("CALL_TIMED_OUT", "no answer"),)))
    values = both(exporter)
    assert value(values, "groupkeeper_cluster_up", cluster="prod") == 0
    assert value(values, "groupkeeper_cluster_problem", cluster="prod", error="CALL_TIMED_OUT", broker="") == 1
    assert not [key for key in values if "group" in dict(key[1])]


def test_a_cluster_that_was_not_polled_yet_is_neither_up_nor_down() -> None:
    values = both(exported(not_polled("prod")))
    assert value(values, "groupkeeper_cluster_up", cluster="prod") is None
    assert value(values, "groupkeeper_collector_polls_total", cluster="prod") == 0


def test_too_many_series_are_left_out_and_counted() -> None:
    groups = [view(f"g{number:03}", [row("t", 0, 5), row("t", 1, 5)]) for number in range(100)]
    choices = Choices((OWN,), frozenset({Level.PARTITION}))
    everything = both(exported(snapshot(*groups), choices=choices))
    total = value(everything, "groupkeeper_exporter_series", cluster="prod")
    assert total is not None
    assert value(everything, "groupkeeper_exporter_left_out_series", cluster="prod", level="partition") is None
    for most in (int(total) - 1, 500, 10, 1):
        values = both(exported(snapshot(*groups), choices=choices._replace(most=most)))
        served = [key for key in values if "group" in dict(key[1]) or "partition" in dict(key[1])]
        assert len(served) <= most
        left_out = sum(count for (name, _), count in values.items() if name == "groupkeeper_exporter_left_out_series")
        assert left_out + len(served) == total
    # Those of groups stay the longest.
    values = both(exported(snapshot(*groups), choices=choices._replace(most=500)))
    assert len([name for name, _ in values if name == "groupkeeper_group_info"]) == 100
    assert not [name for name, _ in values if name == "groupkeeper_group_partition_lag"]


@pytest.mark.slow
def test_many_series_take_little_memory() -> None:
    groups = [view(f"group-{number:04}", [row("t", each, 5) for each in range(8)]) for number in range(400)]
    found = snapshot(*groups)
    exporter = Exporter(EVERYTHING)
    tracemalloc.start()
    try:
        exporter.take(found)
        packed = exporter.gzipped(Format.PROMETHEUS)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    text = b"".join(exporter.text(Format.PROMETHEUS))
    assert gzip.decompress(packed) == text
    assert len(text) > 1_000_000
    assert most < len(text)


def test_every_metric_with_a_sample_has_the_labels_of_its_table() -> None:
    problem = Problem("X", "why", "g")
    consumer = member("a", TopicPartition("t", 0))
    group = view(
        "g", [row("t", 0, 5), row("t", 1, None)], [Wait(5, True, 6), Wait(None)], described("g", consumer, epoch=1)
    )
    exporter = exported(snapshot(group._replace(problems=(problem,), progress_ms=5), problems=(problem,)))
    labels = {metric.name: set(metric.labels) for metric in exporter.metrics}
    for name, given in both(exporter):
        assert {key for key, _ in given} == labels[name], name


@pytest.mark.parametrize("kind", [GroupType.SHARE, GroupType.STREAMS, GroupType.CLASSIC])
def test_other_exporters_names_have_groups_of_every_type(kind: GroupType) -> None:
    group = view("g", [row("t", 0, 5)], [Wait(2000)], described("g", state=GroupState.EMPTY))._replace(group_type=kind)
    values = both(exported(snapshot(group)))
    expected = {
        ("kminion_kafka_consumer_group_topic_lag", "group_id"): 95,
        ("kafka_consumergroup_lag_sum", "consumergroup"): 95,
        ("kafka_consumergroup_group_sum_lag", "group"): 95,
        ("kafka_consumergroup_group_max_lag_seconds", "group"): 2,
    }
    found = {
        (name, label): number
        for (name, labels), number in values.items()
        for label in ("group_id", "consumergroup", "group")
        if (label, "g") in labels and (name, label) in expected
    }
    assert found == expected


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        ("", Format.PROMETHEUS),
        ("*/*", Format.PROMETHEUS),
        ("text/plain", Format.PROMETHEUS),
        ("application/openmetrics-text", Format.OPENMETRICS),
        (
            "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3,*/*;q=0.2",
            Format.OPENMETRICS,
        ),
        ("text/plain;q=0.9, application/openmetrics-text;q=0.1", Format.PROMETHEUS),
        ("application/openmetrics-text;q=0", Format.PROMETHEUS),
        ("application/openmetrics-text;q=what", Format.PROMETHEUS),
        (";;;,,,q=", Format.PROMETHEUS),
    ],
)
def test_the_format_is_the_one_that_is_liked_best(accept: str, expected: Format) -> None:
    assert wanted_format(accept) is expected
