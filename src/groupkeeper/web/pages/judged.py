"""The groups of a snapshot with their statuses, judged once for all pages that show them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from groupkeeper.live.model import ClusterSnapshot, GroupView
from groupkeeper.live.statuses import Judged, group_catch_up_ms, judge_status, urgency_facts
from groupkeeper.operations.lag import known_sum
from groupkeeper.rules.urgency import Urgency, UrgencyFacts, order, urgency

_MOST_KEPT = 20
GENERATED = re.compile(r"console-consumer-\d{1,5}")
"""Names of groups that Kafka's console consumer makes for one run: their alerts don't count as needing attention."""


class JudgedGroup(NamedTuple):
    """A group with its status, and its rank by urgency, the lowest first."""

    group: GroupView
    judged: Judged
    cluster: str
    urgency_facts: UrgencyFacts
    rank: tuple[int, int, float, int]

    @classmethod
    def of(cls, group: GroupView, cluster: str, at_ms: int) -> JudgedGroup:
        judged = judge_status(group, at_ms)
        facts = urgency_facts(group, judged)
        return cls(group, judged, cluster, facts, order(facts))

    def with_alert(self) -> JudgedGroup:
        """The group while an alert about it fires."""
        facts = self.urgency_facts._replace(is_watched=True)
        return self._replace(urgency_facts=facts, rank=order(facts))

    @property
    def catch_up_ms(self) -> int | None:
        return group_catch_up_ms(self.group)

    @property
    def urgency(self) -> Urgency:
        return urgency(self.urgency_facts)


Firing = Mapping[tuple[str, str], Sequence[str]]
"""The names of the rules with firing alerts, by cluster and group."""
Judge = Callable[[ClusterSnapshot], Sequence[JudgedGroup]]
"""Returns the groups of a snapshot by name, judged at its instant, as series, `check` and alerts do."""


def rows_of(snapshot: ClusterSnapshot) -> Sequence[JudgedGroup]:
    """A `Judge`, which keeps nothing."""
    at_ms = snapshot.at_ms
    groups = (group for _, group in sorted(snapshot.groups.items()))
    return [JudgedGroup.of(group, snapshot.cluster, at_ms) for group in groups]


def with_alerts(judge: Judge, firing: Firing) -> Judge:
    """`judge`, with the groups about which alerts fire marked."""

    def rows(snapshot: ClusterSnapshot) -> Sequence[JudgedGroup]:
        names = {name for cluster, name in firing if cluster == snapshot.cluster and not GENERATED.fullmatch(name)}
        found = judge(snapshot)
        return [row.with_alert() if row.group.group_id in names else row for row in found] if names else found

    return rows


class KeptRows:
    """Keeps the judged groups of snapshots until `forget`. Without viewers, nothing is judged."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, int], tuple[Mapping[str, GroupView], Sequence[JudgedGroup]]] = {}

    def rows_of(self, snapshot: ClusterSnapshot) -> Sequence[JudgedGroup]:
        """A `Judge` that judges the groups of a poll once."""
        key = snapshot.cluster, id(snapshot.groups)
        kept = self._kept.get(key)
        if kept is None:
            kept = snapshot.groups, rows_of(snapshot)  # with the groups, so that no others get the id
            if len(self._kept) < _MOST_KEPT:
                self._kept[key] = kept
        return kept[1]

    def forget(self, cluster: str) -> None:
        """Drops the groups of the cluster's earlier snapshot."""
        self._kept = {key: kept for key, kept in self._kept.items() if key[0] != cluster}


class ClusterSums(NamedTuple):
    """The sums of a snapshot's known groups, None: unknown for all of them. `time_lag_ms`: the longest; `margin_ms`:
    the shortest; None: nothing waits, or unknown.
    """

    members: int | None
    lag: int | None
    lost: int | None
    time_lag_ms: int | None
    margin_ms: int | None


def sums_of(snapshot: ClusterSnapshot) -> ClusterSums:
    """The sums of a snapshot."""
    groups = snapshot.groups.values()
    lags = [group.lag.lag for group in groups if group.lag.lag is not None]
    return ClusterSums(
        known_sum([group.members for group in groups]),
        sum(lags) if lags else None,
        known_sum([group.lag.lost for group in groups]),
        max((group.wait.lag_ms for group in groups if group.wait.lag_ms is not None), default=None),
        min((group.wait.margin_ms for group in groups if group.wait.margin_ms is not None), default=None),
    )
