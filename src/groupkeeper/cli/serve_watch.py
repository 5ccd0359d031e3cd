"""The work of `groupkeeper serve` on each snapshot, beside serving it."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Coroutine, Iterable, Iterator, Mapping
from typing import Any

from groupkeeper.live.alerts import Alerts, Notice
from groupkeeper.live.archive import Archive
from groupkeeper.live.courier import Courier
from groupkeeper.live.model import ClusterSnapshot
from groupkeeper.live.rules import Rules
from groupkeeper.live.webhooks import title
from groupkeeper.shell import Ways
from groupkeeper.web.changes.record import ChangeRecord
from groupkeeper.web.exporter import plain
from groupkeeper.web.exposition import Sample, labels, sample, seconds
from groupkeeper.web.pages.alerts import AlertsNow

_LOG = logging.getLogger("groupkeeper.serve")

_ALERTS = "alerts"
_NOTICES = "notices"
KEPT = (_ALERTS, _NOTICES)
"""Names of texts in the history that are kept for the next run."""

_PAUSE_S = 0.25
"""The pause between two writes: changes in it are written together."""


class ServeWatch:
    """Handles each snapshot, beside serving it: alerts, and lines on standard error about changes."""

    def __init__(
        self, archive: Archive, rules: Rules, kept: Mapping[str, str], ways: Ways, record: ChangeRecord | None = None
    ) -> None:
        """`kept`: the texts of KEPT before a restart. `ways`: to the clusters, for commands. `record`: of the
        journal, where there is one.
        """
        self._archive = archive
        self._record = record
        self._alerts = Alerts(rules, kept.get(_ALERTS, ""), ways)
        names = {rule.name for rule in rules.rules}
        self._courier = Courier(rules.webhooks, _LOG.info, names, kept.get(_NOTICES, ""))
        self._has_rules = bool(names)
        self._clusters = list(ways)
        self._unused: list[tuple[str, str]] = []
        self._state = self._alerts.state()
        self._said: dict[str, str | None] = {}
        self._began_ms = time.time_ns() // 1_000_000
        self._replaced_ms: dict[str, int] = {}
        self._unmatched: dict[str, tuple[str, ...]] = {}

    def beside(self) -> list[Coroutine[Any, Any, None]]:
        """Tasks that run while snapshots come."""
        if not self._has_rules:
            return []
        return [self._courier.run(is_kept=self._archive.is_kept), self._keep_changes()]

    async def _keep_changes(self) -> None:
        while True:
            await self._courier.changed.wait()
            await self.keep()
            await asyncio.sleep(_PAUSE_S)

    async def keep(self) -> None:
        """Stores the state for a restart: the current alerts, and waiting notices."""
        self._courier.changed.clear()
        await self._archive.keep({_ALERTS: self._alerts.state(), _NOTICES: self._courier.state()})

    def replace(self, rules: Rules) -> None:
        """Applies other rules from now on."""
        ended = self._alerts.replace(rules, time.time_ns() // 1_000_000)
        self._courier.replace(rules.webhooks)
        self._tell(ended)
        self._unused = []

    def _tell(self, notices: Iterable[Notice]) -> None:
        for notice in notices:
            if not notice.is_repeat:
                _LOG.info(f"{title(notice)}: {'; '.join(notice.texts)}")
            self._courier.take(notice)

    def take(self, snapshot: ClusterSnapshot) -> None:
        """Handles the latest snapshot of a cluster."""
        if self._has_rules:
            self._tell(self._alerts.take(snapshot, time.time_ns() // 1_000_000))
            if (state := self._alerts.state()) != self._state:
                self._state = state
                self._courier.changed.set()
            self._say_unused()
        problem = None if snapshot.is_up else "; ".join(" ".join(each.message.split()) for each in snapshot.problems)
        self._note(f"cluster {snapshot.cluster}", problem, "is up")
        self._say_replaced(snapshot)
        self._say_unmatched(snapshot)
        if self._archive.problem is not None or "the history" in self._said:
            self._note("the history", self._archive.problem, "can be written again")
        record = self._record
        if record is not None and (record.is_failing or "the journal" in self._said):
            problem = record.problem.removeprefix("journal: ") if record.is_failing else None
            self._note("the journal", problem, "can be read again")

    def _say_replaced(self, snapshot: ClusterSnapshot) -> None:
        """Logs, once, that a name went to another cluster while this program runs."""
        replaced = snapshot.replaced
        if replaced is not None and replaced.since_ms > self._replaced_ms.get(snapshot.cluster, self._began_ms):
            now = snapshot.known.cluster_id
            _LOG.info(f"cluster {snapshot.cluster} is another one now: its id is {now}, it was {replaced.before}")
            self._replaced_ms[snapshot.cluster] = replaced.since_ms

    def _say_unmatched(self, snapshot: ClusterSnapshot) -> None:
        """Logs options whose names match no group or topic."""
        if snapshot.is_up:
            before = self._unmatched.get(snapshot.cluster, ())
            for each in snapshot.scope.unmatched:
                if each not in before:
                    _LOG.info(f"cluster {snapshot.cluster}: nothing matches {each}")
            self._unmatched[snapshot.cluster] = snapshot.scope.unmatched

    def _say_unused(self) -> None:
        before, self._unused = self._unused, list(self._alerts.unmatched(self._clusters))
        for rule, why in self._unused:
            if (rule, why) not in before:
                _LOG.info(f"rule {rule!r}: {why}")

    def notes(self) -> list[str]:
        """Notes about parts of the rules without effect."""
        return [f"Rule {rule!r}: {why}." for rule, why in self._unused]

    def alerts(self) -> AlertsNow:
        """The alerts that fire, and the silences."""
        return AlertsNow(self._alerts.firing(time.time_ns() // 1_000_000), self._alerts.silences)

    def _note(self, what: str, problem: str | None, good: str) -> None:
        if what not in self._said or self._said[what] != problem:
            self._said[what] = problem
            _LOG.info(f"{what} {good}" if problem is None else f"{what}: {problem}")

    def samples(self) -> Iterator[Sample]:
        """The samples about the program itself."""
        if self._archive.is_kept:
            yield plain("groupkeeper_history_up", int(self._archive.problem is None))
            yield plain("groupkeeper_history_failed_polls_total", self._archive.failed)
        if self._record is not None:
            yield plain("groupkeeper_journal_up", int(not self._record.is_failing))
        for (rule, cluster, group), severity, *_ in self._alerts.firing(0):
            own = labels(rule=rule, severity=severity, cluster=cluster, group=group)
            yield sample("groupkeeper_alert_firing", own, 1)
        for rule, cluster, count in self._alerts.judged():
            yield sample("groupkeeper_rule_groups", labels(rule=rule, cluster=cluster), count)
        for rule, count in Counter(rule for rule, _ in self._unused).items():
            yield sample("groupkeeper_rule_unmatched_names", labels(rule=rule), count)
        for webhook, outbox in sorted(self._courier.outboxes.items()):
            own = labels(webhook=webhook)
            yield sample("groupkeeper_webhook_pending", own, outbox.pending)
            yield sample("groupkeeper_webhook_retries_total", own, outbox.retries)
            for outcome, count in sorted(outbox.counts.items()):
                yield sample("groupkeeper_webhook_notices_total", labels(webhook=webhook, outcome=outcome), count)
            for reason, count in sorted(outbox.failures.items()):
                yield sample("groupkeeper_webhook_failures_total", labels(webhook=webhook, reason=reason), count)
        for webhook, age_ms in self._courier.ages_ms():
            yield sample("groupkeeper_webhook_oldest_pending_seconds", labels(webhook=webhook), seconds(age_ms))
