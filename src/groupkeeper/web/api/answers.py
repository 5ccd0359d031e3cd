"""Documents of what a person may see, made from the snapshots as pages are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from groupkeeper import shell
from groupkeeper.live.model import ClusterSnapshot
from groupkeeper.live.statuses import partition_statuses, status_row
from groupkeeper.operations.groups import AnyMember
from groupkeeper.operations.problems import Problem
from groupkeeper.operations.reporting.group_rows import Row, lag_row, member_row, state_row, sum_row
from groupkeeper.operations.reporting.plan_rows import change_rows, history_row, recorded_rows
from groupkeeper.operations.selection import Names
from groupkeeper.operations.times import utc_text
from groupkeeper.rules.status import Status
from groupkeeper.web.access.people import Person
from groupkeeper.web.actions import Actions
from groupkeeper.web.api import documents as d
from groupkeeper.web.api.cursors import WantedPage
from groupkeeper.web.changes.desk import DeskEntry
from groupkeeper.web.pages.alerts import AlertsNow
from groupkeeper.web.pages.cluster import Wish, chosen
from groupkeeper.web.pages.judged import Firing, Judge, JudgedGroup, sums_of, with_alerts
from groupkeeper.web.pages.plan import notes_of, outcome_of, problems_of, results_of
from groupkeeper.web.pages.topics import topics_of

_MOST_PARTITIONS = 200
_MOST_PROBLEMS = 50
_MOST_NAMES = 20


class Answers(NamedTuple):
    """The API's answers. `judge`: as for pages; `now`: the current alerts. All methods raise ActionRefused."""

    actions: Actions
    judge: Judge
    now: Callable[[], AlertsNow]

    def clusters(self, person: Person) -> d.ClusterList:
        return d.ClusterList(clusters=[self._cluster_row(each) for each in self.actions.clusters(person)])

    def _cluster_row(self, snapshot: ClusterSnapshot) -> d.ClusterRow:
        known = snapshot.known
        sums = sums_of(known)
        return d.ClusterRow(
            cluster=snapshot.cluster,
            cluster_id=known.cluster_id,
            state="up" if snapshot.is_up else "down" if snapshot.polls.done else "not polled yet",
            measured=None if known.measured_ms is None else utc_text(known.measured_ms),
            groups=len(known.groups),
            left_out=len(known.scope.left_out),
            statuses=Counter(row.judged.status.value for row in self.judge(known)),
            members=sums.members,
            lag=sums.lag,
            lost=sums.lost,
            time_lag_ms=sums.time_lag_ms,
            retention_margin_ms=sums.margin_ms,
            problems=problem_rows(snapshot.problems),
        )

    def groups(self, person: Person, cluster: str, wish: Wish, page: WantedPage) -> d.GroupList:
        snapshot = self.actions.known_cluster(person, cluster)
        firing = self.now().by_group()
        rows = chosen(with_alerts(self.judge, firing)(snapshot.known), wish._replace(sort="group", order="up"))
        found, after = page.of(rows, lambda row: (row.group.group_id,))
        shown = [d.GroupRow(**_group_row(snapshot.known, row, firing)) for row in found]
        return d.GroupList(groups=shown, **_measured(snapshot), next=after)

    def group(self, person: Person, cluster: str, group_id: str) -> d.GroupDetail:
        snapshot, group = self.actions.known_group(person, cluster, group_id)
        firing = self.now().by_group()
        row = next(each for each in with_alerts(self.judge, firing)(snapshot.known) if each.group.group_id == group_id)
        own = {} if group.description is None else state_row(group.description, group.dead_letters)
        fields = {**own, **_group_row(snapshot.known, row, firing)}
        return d.GroupDetail(**fields, **_measured(snapshot))

    def offsets(self, person: Person, cluster: str, group_id: str, page: WantedPage) -> d.OffsetList:
        snapshot, group = self.actions.known_group(person, cluster, group_id)
        statuses = partition_statuses(group, snapshot.known.at_ms)

        def offset_row(number: int) -> d.OffsetRow:
            row, wait = group.rows[number], group.waits[number]
            status, why = statuses.get(row.tp, ("ok", None))
            more = {"time_lag_ms": wait.lag_ms, "retention_margin_ms": wait.margin_ms,
                    "partition_status": str(status), "partition_reason": why or None}  # fmt: skip
            return d.OffsetRow(**_fields(lag_row(row, more)))

        numbers, after = page.of(range(len(group.rows)), lambda number: group.rows[number].tp)
        return d.OffsetList(offsets=[offset_row(number) for number in numbers], **_measured(snapshot), next=after)

    def members(self, person: Person, cluster: str, group_id: str, page: WantedPage) -> d.MemberList:
        snapshot, group = self.actions.known_group(person, cluster, group_id)
        members: Sequence[AnyMember] = () if group.description is None else group.description.members
        found, after = page.of(members, lambda member: (member.member_id,))
        rows = [_cut(member_row(group_id, member)) for member in found]
        return d.MemberList(members=[d.MemberRow(**row) for row in rows], **_measured(snapshot), next=after)

    def topics(self, person: Person, cluster: str, text: str, page: WantedPage) -> d.TopicList:
        snapshot = self.actions.known_cluster(person, cluster)
        found, after = page.of(topics_of(snapshot.known, text.lower()), lambda topic: (topic.name,))
        rows = [
            d.TopicRow(
                topic=each.name,
                partitions=each.partitions,
                groups=len(each.readers),
                active_groups=each.active,
                lag=each.lag,
                time_lag_ms=each.lag_ms,
                retention_margin_ms=each.margin_ms,
                lost=each.lost,
            )
            for each in found
        ]
        return d.TopicList(topics=rows, **_measured(snapshot), next=after)

    def alerts(self, person: Person, page: WantedPage) -> d.AlertList:
        found, after = page.of(self.now().seen_by(person).firing, lambda each: (each.since_ms, *each.key))
        rows = [
            d.AlertRow(
                rule=each.key.rule,
                cluster=each.key.cluster,
                group=each.key.group or None,
                severity=each.severity,
                owner=each.owner or None,
                since=utc_text(each.since_ms),
                texts=list(each.texts),
                silenced=each.is_silenced,
            )
            for each in found
        ]
        return d.AlertList(alerts=rows, next=after)

    async def history(self, person: Person, group_id: str, page: WantedPage) -> d.HistoryList:
        record = self.actions.journal()
        changes = await record.changes(person, group_id)
        found, after = page.of(changes, lambda change: (-change.head.time_ms, change.head.id))
        rows = [d.HistoryRow(**_fields(history_row(each)) | {"cluster": record.cluster(each.head)}) for each in found]
        return d.HistoryList(changes=rows, problem=record.said_to(person) or None, next=after)

    async def change(self, person: Person, change_id: str, page: WantedPage) -> d.RecordedDetail:
        recorded = await self.actions.change(person, change_id)
        head = recorded.head
        rows = recorded_rows(recorded, Names(()))
        found, after = page.of(
            rows, lambda row: (str(row["group"] or row["transaction"]), str(row["topic"]), int(str(row["partition"])))
        )
        return d.RecordedDetail(
            id=head.id,
            time=utc_text(head.time_ms),
            user=head.user,
            kind=head.kind,
            result=str(recorded.result),
            undoes=head.undoes,
            command=shell.text(head.command),
            cluster=self.actions.journal().cluster(head),
            undo_on=self.actions.where_to_undo(person, recorded),
            changes=[d.RecordedRow(**_fields(row)) for row in found],
            next=after,
        )

    def plans(self, person: Person, page: WantedPage) -> d.PlanList:
        found, after = page.of(self.actions.entries(person), lambda entry: (-entry.plan.made_ms, entry.id))
        return d.PlanList(plans=[d.PlanHead(**_plan_head(each)) for each in found], next=after)

    def plan(self, entry: DeskEntry, page: WantedPage) -> d.PlanDetail:
        """A plan that the person may see."""
        planned = ((group.group_id, tp, group) for group in entry.plan.groups for tp in group.changes)
        found, after = page.of(planned, lambda each: (each[0], *each[1]))
        results = results_of(entry)
        rows = [
            _fields(row) | {"result": results.get((group_id, tp)) or None}
            for group_id, tp, group in found
            for row in change_rows([group._replace(changes={tp: group.changes[tp]})])
        ]
        return d.PlanDetail(
            **_plan_head(entry),
            command=shell.text(entry.plan.command),
            notes=notes_of(entry),
            problems=problem_rows(problems_of(entry)),
            changes=[d.PlannedRow(**row) for row in rows],
            next=after,
        )


def _group_row(snapshot: ClusterSnapshot, row: JudgedGroup, firing: Firing) -> dict[str, Any]:
    group = row.group
    is_new = group.is_old and row.judged.status not in (Status.STOPPED, Status.STALLED)
    return {
        **sum_row(group.lag),
        **status_row(group, snapshot.at_ms, is_first_poll=is_new),
        "urgency": row.urgency.value,
        "cluster": snapshot.cluster,
        "group": group.group_id,
        "type": None if group.group_type is None else str(group.group_type),
        "state": None if group.group_state is None else str(group.group_state),
        "members": group.members,
        "lag_change_per_s": group.lag_change_per_s,
        "catch_up_ms": row.catch_up_ms,
        "time_lag_ms": group.wait.lag_ms,
        "retention_margin_ms": group.wait.margin_ms,
        "commits_still_ms": None if group.is_old else row.judged.still_ms,
        "rebalances": group.rebalances,
        "unread": sorted(group.unread)[:_MOST_NAMES],
        "alerts": list(firing.get((snapshot.cluster, group.group_id), ()))[:_MOST_NAMES],
        "problems": problem_rows(group.problems),
    }


def _plan_head(entry: DeskEntry) -> dict[str, Any]:
    return {
        "id": entry.id,
        "cluster": entry.cluster,
        "kind": str(entry.plan.kind),
        "made_by": entry.made_by,
        "made": utc_text(entry.plan.made_ms),
        "compared": utc_text(entry.compared_ms),
        "stage": entry.stage.value,
        "can_be_applied": entry.can_be_applied,
        "groups": len(entry.group_ids),
        "names": list(entry.group_ids[:_MOST_NAMES]),
        "outcome": outcome_of(entry, problems_of(entry))[1],
        "change_id": entry.change_id or None,
        "applied_by": entry.applied_by or None,
    }


def _measured(snapshot: ClusterSnapshot) -> dict[str, Any]:
    return {"measured": utc_text(snapshot.known.at_ms), "is_old": not snapshot.is_up}


def problem_rows(problems: Sequence[Problem]) -> list[d.ProblemRow]:
    """The first problems, as rows."""
    return [
        d.ProblemRow(**{**each._asdict(), "acl": each.acl and d.Acl(**each.acl._asdict())})
        for each in problems[:_MOST_PROBLEMS]
    ]


def _fields(row: Row) -> dict[str, Any]:
    """A row without its cluster, for which callers have a field."""
    return {name: value for name, value in row.items() if name != "cluster"}


def _cut(row: Row) -> dict[str, Any]:
    """A member, with its assignments cut to the longest that an answer may have."""
    return {key: value[:_MOST_PARTITIONS] if isinstance(value, list) else value for key, value in _fields(row).items()}
