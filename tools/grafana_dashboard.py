"""Writes the dashboard for Grafana that comes with `groupkeeper serve`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

TARGET = Path(__file__).resolve().parent.parent / "src/groupkeeper/web/files/grafana-dashboard.json"

_DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}
_CHOSEN = 'cluster=~"$cluster",group=~"$group"'

Targets = list[tuple[str, str]]
"""Queries, and what their series are called."""


def _variable(name: str, query: str, *, is_several: bool = True) -> dict[str, Any]:
    return {
        "name": name,
        "type": "query",
        "datasource": _DATASOURCE,
        "definition": query,
        "query": {"query": query, "refId": name},
        "refresh": 2,
        "sort": 1,
        "multi": is_several,
        "includeAll": is_several,
        "allValue": ".*",
        "current": {"text": "All", "value": "$__all"},
    }


def _panel(title: str, kind: str, unit: str, targets: Targets, place: tuple[int, int, int, int]) -> dict[str, Any]:
    x, y, width, height = place
    is_instant = kind in ("stat", "table")
    panel: dict[str, Any] = {
        "title": title,
        "type": kind,
        "datasource": _DATASOURCE,
        "gridPos": {"x": x, "y": y, "w": width, "h": height},
        "fieldConfig": {"defaults": {"unit": unit, "min": 0 if kind == "timeseries" else None}, "overrides": []},
        "targets": [
            {
                "datasource": _DATASOURCE,
                "expr": query,
                "legendFormat": name,
                "refId": chr(ord("A") + number),
                "instant": is_instant,
                "range": not is_instant,
                "format": "table" if kind == "table" else "time_series",
            }
            for number, (query, name) in enumerate(targets)
        ],
    }
    return panel


_OF_GROUP = "{{cluster}} {{group}}"
_OF_CLUSTER = "{{cluster}}"


def _behind() -> list[dict[str, Any]]:
    return [
        _panel("Clusters that cannot be reached", "stat", "none",
               [("count(groupkeeper_cluster_up == 0) or vector(0)", "")], (0, 0, 4, 4)),
        _panel("Groups", "stat", "none",
               [('sum by (cluster) (groupkeeper_cluster_groups{cluster=~"$cluster"})', _OF_CLUSTER)], (4, 0, 6, 4)),
        _panel("Groups with problems", "stat", "none",
               [('groupkeeper_collector_groups_with_problems{cluster=~"$cluster"}', _OF_CLUSTER)], (10, 0, 6, 4)),
        _panel("Age of what is known", "stat", "s",
               [('time() - groupkeeper_collector_succeeded_timestamp_seconds{cluster=~"$cluster"}', _OF_CLUSTER)],
               (16, 0, 8, 4)),
        _panel("Longest behind, in time", "timeseries", "s",
               [(f"topk(20, max by (cluster, group) (groupkeeper_group_lag_seconds{{{_CHOSEN}}}))", _OF_GROUP)],
               (0, 4, 12, 9)),
        _panel("Furthest behind, in offsets", "timeseries", "short",
               [(f"topk(20, sum by (cluster, group) (groupkeeper_group_lag{{{_CHOSEN}}}))", _OF_GROUP)],
               (12, 4, 12, 9)),
        _panel("Until retention removes what is not read", "timeseries", "s",
               [(f"bottomk(20, min by (cluster, group) (groupkeeper_group_retention_margin_seconds{{{_CHOSEN}}}))",
                 _OF_GROUP)], (0, 13, 12, 8)),
        _panel("Rebalances in 10 minutes", "timeseries", "short",
               [(f"topk(20, increase(groupkeeper_group_rebalances_total{{{_CHOSEN}}}[10m]))", _OF_GROUP)],
               (12, 13, 12, 8)),
    ]  # fmt: skip


def _beside() -> list[dict[str, Any]]:
    waits = f"and on (cluster, group) (sum by (cluster, group) (groupkeeper_group_lag{{{_CHOSEN}}}) > 0)"
    return [
        _panel("Commits stand still for", "timeseries", "s",
               [(f"topk(20, (time() - groupkeeper_group_progress_timestamp_seconds{{{_CHOSEN}}}) {waits})", _OF_GROUP)],
               (0, 21, 12, 8)),
        _panel("Members", "timeseries", "short",
               [(f"topk(20, groupkeeper_group_members{{{_CHOSEN}}})", _OF_GROUP)], (12, 21, 12, 8)),
        _panel("Lag by topic", "timeseries", "short",
               [(f'topk(20, groupkeeper_group_lag{{{_CHOSEN},topic=~"$topic"}})', "{{cluster}} {{group}} {{topic}}")],
               (0, 29, 12, 8)),
        _panel("Not in the lag: records of partitions without a commit; removed unread", "timeseries", "short",
               [(f"topk(10, sum by (cluster, group) (groupkeeper_group_uncommitted{{{_CHOSEN}}}))",
                 f"{_OF_GROUP} without a commit"),
                (f"topk(10, sum by (cluster, group) (groupkeeper_group_lost{{{_CHOSEN}}}))", f"{_OF_GROUP} removed")],
               (12, 29, 12, 8)),
        _panel("States", "timeseries", "short",
               [('sum by (type, state) (groupkeeper_cluster_groups{cluster=~"$cluster"})', "{{type}} {{state}}")],
               (0, 37, 12, 8)),
        _panel("Problems", "table", "none",
               [(f"groupkeeper_group_problem{{{_CHOSEN}}}", ""),
                ('groupkeeper_cluster_problem{cluster=~"$cluster"}', "")], (12, 37, 12, 8)),
        _panel("Collecting: seconds of a poll", "timeseries", "s",
               [('groupkeeper_collector_poll_seconds{cluster=~"$cluster"}', _OF_CLUSTER)], (0, 45, 8, 6)),
        _panel("Series; left out", "timeseries", "short",
               [('groupkeeper_exporter_series{cluster=~"$cluster"}', _OF_CLUSTER),
                ('groupkeeper_exporter_left_out_series{cluster=~"$cluster"}', "{{cluster}} left out: {{level}}")],
               (8, 45, 8, 6)),
        _panel("Memory of groupkeeper serve", "timeseries", "bytes",
               [('process_resident_memory_bytes and on (instance, job) groupkeeper_build_info', "{{instance}}")],
               (16, 45, 8, 6)),
    ]  # fmt: skip


def document() -> str:
    """The dashboard as JSON."""
    panels = [*_behind(), *_beside()]
    for number, panel in enumerate(panels, 1):
        panel["id"] = number
    dashboard = {
        "title": "Kafka consumer groups (groupkeeper)",
        "uid": "groupkeeper-groups",
        "tags": ["kafka", "groupkeeper"],
        "timezone": "browser",
        "schemaVersion": 39,
        "version": 1,
        "refresh": "30s",
        "time": {"from": "now-3h", "to": "now"},
        "templating": {
            "list": [
                {"name": "datasource", "type": "datasource", "query": "prometheus", "label": "Prometheus"},
                _variable("cluster", "label_values(groupkeeper_cluster_up, cluster)"),
                _variable("group", 'label_values(groupkeeper_group_info{cluster=~"$cluster"}, group)'),
                _variable("topic", f"label_values(groupkeeper_group_lag{{{_CHOSEN}}}, topic)"),
            ]
        },
        "panels": panels,
    }
    return json.dumps(dashboard, indent=1) + "\n"


if __name__ == "__main__":
    TARGET.write_text(document())
