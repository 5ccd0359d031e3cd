"""Turns snapshots into notices: an alert fires once, is repeated rarely, is resolved, and is never sent twice. Pure: no
clock here.

Unknown values change nothing: a firing alert keeps firing, a pending one stays pending.
"""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from enum import StrEnum
from functools import partial
from typing import NamedTuple

from groupkeeper.client.admin.types import GroupType
from groupkeeper.live.limits import LimitFinding, judge_group, read_part
from groupkeeper.live.model import ClusterSnapshot, GroupView
from groupkeeper.live.rules import AlertRule, Rules, Silence
from groupkeeper.live.statuses import judge_status, status_row, urgency_facts
from groupkeeper.operations.selection import Names, command_about
from groupkeeper.rules.limits import TIMES, Measure, Verdict
from groupkeeper.rules.status import REBALANCES_MS, Status
from groupkeeper.rules.urgency import next_step
from groupkeeper.rules.words import length
from groupkeeper.shell import Way, Ways, quoted, text, way_to
from groupkeeper.shell import command as command_of


class AlertKind(StrEnum):
    """The kind of a notice."""

    FIRING = "firing"
    RESOLVED = "resolved"


class Key(NamedTuple):
    """The rule and the subject of an alert; the group is "" for an alert about a cluster."""

    rule: str
    cluster: str
    group: str


class Notice(NamedTuple):
    """A message for webhooks."""

    kind: AlertKind
    key: Key
    severity: str
    owner: str
    since_ms: int
    """When the limit was first broken."""
    at_ms: int
    """The time of the notice."""
    texts: tuple[str, ...]
    """The broken limits, or why the alert is resolved."""
    command: str
    """A command that helps; empty: the alert is resolved."""
    to: tuple[str, ...]
    """Names of webhooks."""
    is_repeat: bool = False


class FiringAlert(NamedTuple):
    """A firing alert."""

    key: Key
    severity: str
    owner: str
    since_ms: int
    """When the limit was first broken."""
    texts: tuple[str, ...]
    """The broken limits."""
    is_silenced: bool
    """Whether no notices are sent now."""
    to: tuple[str, ...] = ()
    """Names of webhooks; empty: notices go nowhere."""


class _Alert:
    """An alert that is pending (`fired_ms` None) or fires. `well_ms`: since when the limit is kept again."""

    __slots__ = ("fired_ms", "sent_ms", "since_ms", "texts", "well_ms")

    def __init__(self, since_ms: int) -> None:
        self.since_ms = since_ms
        self.fired_ms: int | None = None
        self.well_ms: int | None = None
        self.sent_ms: dict[str, int] = {}
        self.texts: tuple[str, ...] = ()

    def clamp(self, now_ms: int) -> None:
        """Moves times after `now_ms`, left from a clock that was set back, to it: nothing would end before them."""
        self.since_ms = min(self.since_ms, now_ms)
        self.fired_ms = None if self.fired_ms is None else min(self.fired_ms, now_ms)
        self.well_ms = None if self.well_ms is None else min(self.well_ms, now_ms)
        self.sent_ms = {name: min(at_ms, now_ms) for name, at_ms in self.sent_ms.items()}


class Alerts:
    """All alerts of all clusters."""

    def __init__(self, rules: Rules, kept: str = "", ways: Mapping[str, Way] = {}) -> None:
        """`kept`: what `state` gave before a restart. `ways`: to clusters, for commands."""
        self._ways = ways
        self._alerts: dict[Key, _Alert] = {}
        self._rebalances: dict[tuple[str, str, str], deque[tuple[int, int]]] = {}
        self._seen_since: dict[str, int] = {}  # by cluster: rebalances before that are not known
        self._begin_with(rules)
        names = {rule.name for rule in rules.rules}
        for rule, cluster, group, since_ms, fired_ms, well_ms, sent_ms, texts in json.loads(kept or "[]"):
            if rule in names:
                alert = self._alerts[Key(rule, cluster, group)] = _Alert(since_ms)
                alert.fired_ms, alert.well_ms, alert.texts = fired_ms, well_ms, tuple(texts)
                alert.sent_ms = {name: ms for name, ms in sent_ms.items() if name in rules.webhooks}

    def _begin_with(self, rules: Rules) -> None:
        self._rules = rules
        self._unmatched = {rule.name: rule.groups.wanted.without_any(()) for rule in rules.rules}
        self._judged: dict[tuple[str, str], int] = {}
        self._used: set[str] = set()

    def replace(self, rules: Rules, now_ms: int) -> list[Notice]:
        """Applies other rules from now on; returns the notices that end the alerts of removed rules."""
        names = {rule.name for rule in rules.rules}
        gone = {rule.name: rule for rule in self._rules.rules if rule.name not in names}
        ended = [key for key in self._alerts if key.rule in gone]
        found = [notice for key in ended for notice in self._end(gone[key.rule], key, ("the rule is gone",), now_ms)]
        for alert in self._alerts.values():
            alert.sent_ms = {name: ms for name, ms in alert.sent_ms.items() if name in rules.webhooks}
        self._rebalances = {own: seen for own, seen in self._rebalances.items() if own[0] in names}
        self._begin_with(rules)
        known = (notice._replace(to=tuple(name for name in notice.to if name in rules.webhooks)) for notice in found)
        return [notice for notice in known if notice.to]

    def state(self) -> str:
        """The state to keep for a restart."""
        return json.dumps(
            [
                [*key, each.since_ms, each.fired_ms, each.well_ms, each.sent_ms, each.texts]
                for key, each in self._alerts.items()
            ]
        )

    def firing(self, now_ms: int) -> list[FiringAlert]:
        """The alerts that fire, in the order in which they began."""
        rules = {rule.name: rule for rule in self._rules.rules}
        found = [
            FiringAlert(key, rules[key.rule].severity, rules[key.rule].owner, each.since_ms, each.texts,
                        self._is_silenced(key, now_ms), rules[key.rule].to)
            for key, each in self._alerts.items() if each.fired_ms is not None
        ]  # fmt: skip
        return sorted(found, key=lambda each: (each.since_ms, each.key))

    @property
    def silences(self) -> tuple[Silence, ...]:
        """All silences of the rules, past ones too."""
        return self._rules.silences

    def judged(self) -> Iterator[tuple[str, str, int]]:
        """Each rule and cluster, with the number of groups that the rule applied to at the last successful poll."""
        return ((rule, cluster, count) for (rule, cluster), count in self._judged.items())

    def unmatched(self, clusters: Collection[str]) -> Iterator[tuple[str, str]]:
        """Rules, with parts that have matched nothing since the start; groups only count once all clusters were
        polled.
        """
        for rule in self._rules.rules:
            for name in rule.clusters.without_any(clusters):
                yield rule.name, f"no cluster here matches {name!r}"
            concerned = [name for name in clusters if rule.clusters.matches(name)]
            if rule.is_of_cluster or not concerned or any((rule.name, name) not in self._judged for name in concerned):
                continue
            names = self._unmatched[rule.name]
            yield from ((rule.name, f"no group matches {name!r} so far") for name in names)
            if not names and rule.name not in self._used:
                yield rule.name, "it applies to no group so far"

    def take(self, snapshot: ClusterSnapshot, now_ms: int) -> list[Notice]:
        """The notices to send after this snapshot, in the order of the rules and groups."""
        found: list[Notice] = []
        for rule in self._rules.rules:
            found += self._of_nobody(rule, snapshot.cluster, now_ms)
            if not rule.clusters.matches(snapshot.cluster):
                continue
            if rule.is_of_cluster:
                found += self._of_cluster(rule, snapshot, now_ms)
            elif snapshot.is_up:
                found += self._of_groups(rule, snapshot, now_ms)
            else:  # firing alerts keep firing, and are repeated
                for key in [key for key in self._alerts if key[:2] == (rule.name, snapshot.cluster)]:
                    found += self._step(rule, key, Verdict.UNKNOWN, (), now_ms)
        return found

    def _of_nobody(self, rule: AlertRule, cluster: str, now_ms: int) -> Iterator[Notice]:
        """Ends alerts of groups and clusters that the edited rule no longer applies to."""
        for key in [key for key in self._alerts if key[:2] == (rule.name, cluster)]:
            is_for = rule.clusters.matches(cluster) and rule.is_of_cluster == (not key.group)
            if not is_for or (key.group and not rule.groups.matches(key.group)):
                yield from self._end(rule, key, ("the rule no longer applies to it",), now_ms)

    def _of_cluster(self, rule: AlertRule, snapshot: ClusterSnapshot, now_ms: int) -> Iterator[Notice]:
        key = Key(rule.name, snapshot.cluster, "")
        if snapshot.is_up:
            yield from self._step(rule, key, Verdict.OK, ("it can be polled again",), now_ms)
        else:
            texts = tuple(" ".join(problem.message.split()) for problem in snapshot.problems)
            yield from self._step(rule, key, Verdict.BROKEN, texts, now_ms)

    def _of_groups(self, rule: AlertRule, snapshot: ClusterSnapshot, now_ms: int) -> Iterator[Notice]:
        self._note_names(rule, snapshot)
        since_ms = min(self._seen_since.get(snapshot.cluster, now_ms), now_ms)
        self._seen_since[snapshot.cluster] = since_ms
        blind, at_ms = _blind(rule, now_ms - since_ms), snapshot.measured_ms or now_ms
        for group_id in sorted(snapshot.groups):
            if rule.groups.matches(group_id):
                group = self._within(rule, snapshot.cluster, snapshot.groups[group_id], now_ms)
                findings = list(judge_group(group, rule.limits, at_ms))
                verdicts = {_seen_verdict(finding, blind) for finding in findings}
                verdict = next((each for each in (Verdict.BROKEN, Verdict.UNKNOWN) if each in verdicts), Verdict.OK)
                broken = tuple(_alert_text(each, group, at_ms) for each in findings if each.verdict is Verdict.BROKEN)
                key = Key(rule.name, snapshot.cluster, group_id)
                texts = broken or ("it is within its limits again",)
                command = partial(helpful, key, findings, self._ways, group, at_ms)
                yield from self._step(rule, key, verdict, texts, now_ms, command)
        own = (rule.name, snapshot.cluster)
        for seen in [key for key in self._rebalances if key[:2] == own and key[2] not in snapshot.groups]:
            del self._rebalances[seen]
        for key in [key for key in self._alerts if key[:2] == own and key.group not in snapshot.groups]:
            yield from self._end(rule, key, ("the group no longer exists",), now_ms)

    def _note_names(self, rule: AlertRule, snapshot: ClusterSnapshot) -> None:
        count = sum(map(rule.groups.matches, snapshot.groups))
        self._judged[rule.name, snapshot.cluster] = count
        if count:
            self._used.add(rule.name)
        if unmatched := self._unmatched[rule.name]:
            missing = set(rule.groups.wanted.without_any(snapshot.groups))
            self._unmatched[rule.name] = [name for name in unmatched if name in missing]

    def _within(self, rule: AlertRule, cluster: str, group: GroupView, now_ms: int) -> GroupView:
        """The group; if its rebalances are limited, with those within the rule's window."""
        if rule.limits.max_rebalances is None:
            return group
        seen = self._rebalances.setdefault((rule.name, cluster, group.group_id), deque())
        if seen and seen[-1][0] > now_ms:
            # The clock was set back.
            earlier = [(min(at_ms, now_ms), count) for at_ms, count in seen]
            seen.clear()
            seen.extend(earlier)
        if not seen or seen[-1][1] > group.rebalances:
            seen.clear()
            seen.append((now_ms, group.rebalances))
        elif seen[-1][1] < group.rebalances:
            seen.append((now_ms, group.rebalances))
        while len(seen) > 1 and seen[1][0] <= now_ms - rule.within_ms:
            seen.popleft()
        return group._replace(rebalances=group.rebalances - seen[0][1])

    def _step(
        self,
        rule: AlertRule,
        key: Key,
        verdict: Verdict,
        texts: tuple[str, ...],
        now_ms: int,
        command: Callable[[], str] | None = None,
    ) -> Iterator[Notice]:
        alert = self._alerts.get(key)
        if alert is not None:
            alert.clamp(now_ms)
        if verdict is Verdict.BROKEN:
            alert = self._alerts.setdefault(key, alert or _Alert(now_ms))
            alert.well_ms, alert.texts = None, texts
            if alert.fired_ms is None and now_ms - alert.since_ms >= rule.for_ms:
                alert.fired_ms = now_ms
        elif alert is None:
            return
        elif verdict is Verdict.OK:
            if alert.well_ms is None:
                alert.well_ms = now_ms
            if alert.fired_ms is None or now_ms - alert.well_ms >= rule.resolve_ms:
                yield from self._end(rule, key, texts, now_ms)
                return
        else:
            alert.well_ms = None
        if alert.fired_ms is not None:
            yield from self._tell(rule, key, alert, now_ms, command or partial(helpful, key, (), self._ways))

    def _tell(
        self, rule: AlertRule, key: Key, alert: _Alert, now_ms: int, suggest: Callable[[], str]
    ) -> Iterator[Notice]:
        due = [name for name in rule.to if self._is_due(name, alert, now_ms)]
        if not due or self._is_silenced(key, now_ms):
            return
        command = _filled(rule.command, key, self._ways) if rule.command else suggest()
        for is_repeat in (False, True):
            to = tuple(name for name in due if (name in alert.sent_ms) is is_repeat)
            if to:
                yield Notice(
                    AlertKind.FIRING, key, rule.severity, rule.owner, alert.since_ms, now_ms, alert.texts, command, to,
                    is_repeat,
                )  # fmt: skip
        alert.sent_ms.update(dict.fromkeys(due, now_ms))

    def _is_due(self, webhook: str, alert: _Alert, now_ms: int) -> bool:
        sent_ms, repeat_ms = alert.sent_ms.get(webhook), self._rules.webhooks[webhook].repeat_ms
        return sent_ms is None or (repeat_ms is not None and now_ms - sent_ms >= repeat_ms)

    def _end(self, rule: AlertRule, key: Key, texts: tuple[str, ...], now_ms: int) -> Iterator[Notice]:
        alert = self._alerts.pop(key)
        # A webhook that got the alert also gets its resolution, silenced or not; the others don't.
        if alert.sent_ms:
            to = tuple(name for name in rule.to if name in alert.sent_ms)
            since_ms = alert.since_ms
            yield Notice(AlertKind.RESOLVED, key, rule.severity, rule.owner, since_ms, now_ms, texts, "", to)

    def _is_silenced(self, key: Key, now_ms: int) -> bool:
        return any(
            each.holds(now_ms)
            and each.rules.matches(key.rule)
            and each.clusters.matches(key.cluster)
            and each.groups.matches(key.group)
            for each in self._rules.silences
        )


def _blind(rule: AlertRule, seen_ms: int) -> set[Measure]:
    """Measures whose limits may be broken unseen: rebalances were watched for too short a time."""
    found = {Measure.REBALANCES} if seen_ms < rule.within_ms else set()
    return found | ({Measure.STATUS} if Status.UNSTABLE in rule.limits.statuses and seen_ms < REBALANCES_MS else set())


def _seen_verdict(finding: LimitFinding, blind: Collection[Measure]) -> Verdict:
    is_guess = finding.verdict is Verdict.OK and finding.measure in blind
    return Verdict.UNKNOWN if is_guess else finding.verdict


_WORDS: Mapping[Measure, str] = {
    Measure.LAG: "lag {value} offsets, limit {limit}",
    Measure.TIME_LAG: "{value} behind, limit {limit}",
    Measure.UNCOMMITTED: "{value} offsets in partitions without a commit, limit {limit}",
    Measure.LOST: "{value} offsets were removed before they were read, limit {limit}",
    Measure.DEAD_LETTERS: "{value} records in the dead-letter queue, limit {limit}",
    Measure.MARGIN: "unread records may be removed in {value}, limit {limit}",
    Measure.IDLE: "nothing committed for {value} while records wait, limit {limit}",
    Measure.REBALANCES: "{value} rebalances, limit {limit}",
    Measure.MEMBERS: "{value} members, limit {limit}",
    Measure.STATE: "state {value}, expected {limit}",
    Measure.STATUS: "status {value}",
}


def text_of(finding: LimitFinding) -> str:
    """A broken limit in words."""
    values = (finding.value, finding.limit)
    value, limit = (length(each) if finding.measure in TIMES and isinstance(each, int) else each for each in values)
    return _WORDS[finding.measure].format(value=value, limit=limit)


def _alert_text(finding: LimitFinding, group: GroupView, at_ms: int) -> str:
    """A broken limit in words; for a status, with the reason that pages give."""
    reason = status_row(read_part(group), at_ms)["reason"] if finding.measure is Measure.STATUS else None
    return text_of(finding) + (f": {reason}" if reason else "")


def helpful(
    key: Key, findings: Sequence[LimitFinding], ways: Ways, group: GroupView | None = None, at_ms: int = 0
) -> str:
    """The command that shows more or helps: the one on pages, unless the broken limit has its own. Lost records cannot
    be read again: for them it moves the group to its logs' starts, where it is before these. `group`: at the time
    `at_ms`.
    """
    way = way_to(key.cluster, ways)
    if not key.group:
        return text(command_of(way, ["groups", "list"]))
    measures = {each.measure for each in findings if each.verdict is Verdict.BROKEN}
    words: Sequence[str] = ("groups", "describe")
    if Measure.LOST in measures and (group is None or group.group_type is not GroupType.SHARE):
        words = ("plan", "reset", "--all-topics", "--to-current")  # which sets no start offset of a share group
    elif Measure.REBALANCES in measures:
        words = ("groups", "watch")
    elif Measure.MEMBERS in measures or Measure.STATE in measures:
        words = ("groups", "members")
    elif group is not None:
        words = next_step(urgency_facts(group, judge_status(group, at_ms))._replace(is_watched=True))
    return text(command_about(way, words, key.group))


def _filled(template: str, key: Key, ways: Ways) -> str:
    """Fills in a rule's own command. A group's name becomes a glob that matches only it, and looks like no option."""
    group = Names(()).quoted(key.group)
    values = {
        "{group}": quoted(f"[-]{group[1:]}" if group.startswith("-") else group),
        "{cluster}": quoted(key.cluster),
        "{where}": text(way_to(key.cluster, ways).options),
    }
    return re.sub("|".join(map(re.escape, values)), lambda match: values[match[0]], template)
