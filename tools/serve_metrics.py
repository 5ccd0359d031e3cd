"""Writes docs/serve-metrics.md from the tables of the metrics of `groupkeeper serve`."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from groupkeeper.web import series
from groupkeeper.web.exporter import OTHERS, PROGRAM_METRICS
from groupkeeper.web.exposition import MetricFamily

TARGET = Path(__file__).resolve().parent.parent / "docs" / "serve-metrics.md"

INTRODUCTION = """# Metrics of `groupkeeper serve`

Written by `make docs` from the tables in `src/groupkeeper/web/`; do not edit. [serve.md](serve.md) says how to run it.

A series whose value isn't known is absent, never 0. Where a sum has partitions of which it isn't known, another series
counts them. Times are in seconds. All numbers of a cluster are those of one instant,
`groupkeeper_collector_measured_timestamp_seconds`.
"""

OTHER_NAMES = """## Under the names of other exporters

`--metric-names` adds them, or replaces the above (but for those of the cluster and of the program). Labels are those of
the exporter; where it has none for the cluster there is `cluster`. What brokers tell about anything else than groups is
not there, nor what can only be counted by reading `__consumer_offsets`
(`kminion_kafka_consumer_group_offset_commits_total`). Ends of logs are of partitions that a group has."""


def _table(title: str, metrics: Iterable[MetricFamily]) -> list[str]:
    lines = ["", f"## {title}", "", "| metric | labels | meaning |", "|---|---|---|"]
    return [*lines, *(f"| `{each.name}` | {', '.join(each.labels)} | {each.doc} |" for each in metrics)]


def document() -> str:
    """The page."""
    lines = [INTRODUCTION.rstrip("\n")]
    lines += _table("Clusters and their collectors", series.CLUSTER_METRICS)
    lines += _table("Groups", series.GROUP_METRICS)
    lines += _table("Topics of groups", series.TOPIC_METRICS)
    lines += _table("Partitions: `--series partitions`", series.PARTITION_METRICS)
    lines += _table("Members: `--series members`", series.MEMBER_METRICS)
    lines += _table("The program", PROGRAM_METRICS)
    lines += ["", OTHER_NAMES]
    for name, others in OTHERS.items():
        lines += ["", f"### {name}", "", "| metric | labels |", "|---|---|"]
        lines += [f"| `{each.name}` | {', '.join(each.labels)} |" for each in others.metrics]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    TARGET.write_text(document())
    print(f"wrote {TARGET.name}")
