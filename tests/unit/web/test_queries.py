"""The queries of dashboards and rules, ours and published ones, ask for metrics and labels that there are."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.unit.web.test_exposition import EVERYTHING, exported

import groupkeeper.web

FILES = Path(groupkeeper.web.__file__).parent / "files"

# The groups' part of what these projects publish: danielqsj/kafka_exporter's overview, kafka-lag-exporter's dashboard,
# and queries in use on kminion's metrics.
PUBLISHED = (
    'sum by(topic) (kafka_topic_partitions{instance="$instance",topic=~"$topic"})',
    "sum(delta(kafka_consumergroup_current_offset{instance=~'$instance',topic=~\"$topic\"}[5m])/5) by (topic)",
    "sum(delta(kafka_topic_partition_current_offset{instance=~'$instance', topic=~\"$topic\"}[5m])/5) by (topic)",
    'sum(kafka_consumergroup_lag{instance="$instance",topic=~"$topic"}) by (consumergroup, topic) ',
    'sum(rate(kafka_topic_partition_current_offset{instance="$instance", topic=~"$topic"}[1m])) by (topic)',
    'label_values(kafka_consumergroup_current_offset{job=~"$job"}, instance)',
    'kafka_consumergroup_group_max_lag_seconds{namespace="$namespace",cluster_name="$cluster_name",group!=""}',
    'kafka_consumergroup_group_max_lag{namespace="$namespace",cluster_name="$cluster_name",group=~"$consumer_group"}',
    'max(kafka_consumergroup_group_lag_seconds{namespace="$namespace",cluster_name="$cluster_name"}) by (group)',
    "sum((kafka_consumergroup_group_offset * 0) + on(topic,partition) group_left() kafka_partition_latest_offset)",
    'topk(25, kafka_consumergroup_group_lag{namespace="$namespace",cluster_name="$cluster_name"})',
    'topk(5, sum by (group_id) (kminion_kafka_consumer_group_topic_lag{cluster="prod"}))',
    'avg by (group_id,topic_name) (kminion_kafka_consumer_group_topic_lag{group_id="g", topic_name="t"}) > 2000000',
    'kminion_kafka_consumer_group_info{cluster="prod", state=~"PreparingRebalance|CompletingRebalance"}',
    'kminion_kafka_consumer_group_members{cluster="prod", group_id="g"}',
    'sum(kminion_kafka_consumer_group_topic_partition_lag{group_id="g", partition_id="0"})',
)

GIVEN_BY_PROMETHEUS = {"instance", "job", "namespace"}
_SELECTED = re.compile(r"\b(kafka_\w+|kminion_\w+|groupkeeper_\w+|process_\w+)\b(?:\{([^}]*)\})?")
_MATCHED = re.compile(r"(\w+)\s*(?:=~|!~|!=|=)")
_GROUPED = re.compile(r"\b(?:by|on|without)\s*\(([^)]*)\)")


def dashboard() -> Iterator[str]:
    document = json.loads((FILES / "grafana-dashboard.json").read_text())
    for panel in document["panels"]:
        yield from (target["expr"] for target in panel["targets"])
    yield from (one["definition"] for one in document["templating"]["list"] if "definition" in one)


def rules() -> Iterator[str]:
    text = (FILES / "prometheus-rules.yaml").read_text()
    folded = re.sub(r">-\n +(.*)\n +(.*)", r"\1 \2", text)
    yield from re.findall(r"^ +expr: (.*)$", folded, re.MULTILINE)


def test_there_are_queries() -> None:
    assert len(list(dashboard())) > 20
    assert len(list(rules())) == (FILES / "prometheus-rules.yaml").read_text().count("- alert:")


@pytest.mark.parametrize("query", [*dashboard(), *rules(), *PUBLISHED])
def test_a_query_asks_for_what_there_is(query: str) -> None:
    labels = {metric.name: {*metric.labels, *GIVEN_BY_PROMETHEUS} for metric in exported(choices=EVERYTHING).metrics}
    selected = _SELECTED.findall(re.sub(r"\$\w+", "x", query))
    assert selected
    there: set[str] = set()
    for name, matchers in selected:
        assert name in labels, f"no metric {name}"
        assert set(_MATCHED.findall(re.sub(r'"[^"]*"|\'[^\']*\'', '""', matchers))) <= labels[name]
        there |= labels[name]
    for grouped in _GROUPED.findall(query):
        assert {part.strip() for part in grouped.split(",") if part.strip()} <= there
