"""`groupkeeper check`: whether groups keep limits, for cron and CI: an exit status, and rows of broken limits."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import AsyncIterator, Callable, Mapping

from groupkeeper.cli.framework import values
from groupkeeper.cli.framework.clusters import ClusterReport, ClusterSession, add_output
from groupkeeper.cli.framework.commands import ArgumentParser, Command, UsageMistake
from groupkeeper.cli.framework.group_arguments import add_groups, add_topics, names_of
from groupkeeper.cli.framework.reports import CLUSTER, Column, Page, Problem, Row, Schema, problem_of
from groupkeeper.cli.framework.several_clusters import add_clusters, run_reports
from groupkeeper.live.cluster_poll import WantedGroups, take_snapshot
from groupkeeper.live.limits import GroupLimits, LimitFinding, Value, judge, read_part
from groupkeeper.live.model import ClusterSnapshot, GroupView, Wait
from groupkeeper.operations.lag import PartitionLag
from groupkeeper.operations.selection import Choice, Names
from groupkeeper.operations.topics import HIDDEN
from groupkeeper.protocol.errors import GroupIdNotFound
from groupkeeper.rules.limits import TIMES, Measure, Verdict
from groupkeeper.rules.status import Status
from groupkeeper.rules.words import duration

BROKEN = 3
"""The exit status when a limit is broken."""

_TOLD_STATUSES = values.ListOf((Status.LAGGING, Status.LOSING, Status.UNKNOWN), "STATUS", "lagging,losing")
"""Statuses that one poll shows."""

CHECKS = Schema(
    "check",
    "checks",
    [
        Column("group", "the group's id"),
        Column(
            "measure",
            "`lag`, `time_lag`, `uncommitted`, `lost`, `retention_margin`, `idle`, `rebalances`, `dead_letters`, "
            "`members`, `state` or `status`",
        ),
        Column(
            "verdict", "`broken`; `unknown`: a value that the result depends on is not known; `ok`, with `--show-ok`"
        ),
        Column("value", "the value; times in seconds, in tables in words; null: not known"),
        Column(
            "limit",
            "the limit: a minimum for `retention_margin` and `members`, allowed values for `state`, forbidden ones "
            "for `status`, otherwise a maximum",
        ),
        Column("why", "why the value is not known; null: it is"),
        CLUSTER,
        Column("topic", "broken: of the partition with the worst value; unknown: of the reason; null: it is of none"),
        Column("partition", "the partition of that topic; null: it is not about one"),
    ],
)


_LIMITS: Mapping[str, tuple[Callable[[str], int], str]] = {
    "--max-lag": (values.number, "offsets, summed over all partitions"),
    "--max-time-lag": (values.span_ms, "age of the oldest record still to be read: 10m, 2h"),
    "--max-uncommitted": (values.number, "offsets in partitions without a committed offset, which the lag leaves out"),
    "--max-lost": (values.number, "offsets that were removed before they were read"),
    "--max-dead-letters": (values.number, "records in the dead-letter queue of a share group"),
    "--min-retention-margin": (values.span_ms, "time until retention.ms allows an unread record to be removed"),
    "--max-rebalances": (values.number, "seen within --within"),
    "--within": (values.span_ms, "for --max-rebalances; default: 1m"),
    "--min-members": (values.number, "members of the group"),
}


def _add_arguments(command: ArgumentParser) -> None:
    add_groups(command, is_required=False)
    add_topics(command)
    limits = command.add_argument_group("limits, at least one")
    for option, (parse, meaning) in _LIMITS.items():
        limits.add_argument(option, type=parse, default=60_000 if option == "--within" else None, help=meaning)
    limits.add_argument("--state", type=values.listed_states, default=[], help="the states that are allowed")
    limits.add_argument(
        "--bad-status",
        type=_TOLD_STATUSES,
        default=[],
        help=f"the statuses that break the limit: {_TOLD_STATUSES}; one poll does not tell whether a group has stopped",
    )
    command.add_argument("--quiet", action="store_true", help="say nothing while all groups are within their limits")
    command.add_argument("--show-ok", action="store_true", help="also show groups within their limits")
    add_clusters(command)
    add_output(command)


def _limits(options: Namespace) -> GroupLimits:
    return GroupLimits(
        max_lag=options.max_lag,
        max_time_lag_ms=options.max_time_lag,
        max_uncommitted=options.max_uncommitted,
        max_lost=options.max_lost,
        max_dead_letters=options.max_dead_letters,
        min_margin_ms=options.min_retention_margin,
        max_rebalances=options.max_rebalances,
        min_members=options.min_members,
        states=frozenset(options.state),
        statuses=frozenset(options.bad_status),
    )


class _Check:
    """One run of the command, over one or several clusters.

    Attributes:
        broken: findings of broken limits so far, of all clusters.
    """

    def __init__(self, options: Namespace) -> None:
        self.broken = 0
        self._limits = _limits(options)
        if not self._limits:
            raise UsageMistake("no limit is given: for example --max-lag 1000 or --max-time-lag 10m")

    async def pages(self, session: ClusterSession) -> AsyncIterator[Page]:
        options = session.options
        names = names_of(options, "groups")
        snapshot = await self._poll(session, names)
        missing = [group_id for group_id in names.exact if group_id not in snapshot.groups]
        problems = [*snapshot.problems]
        problems += (problem_of(GroupIdNotFound(f"Group {each} not found."), group=each) for each in missing)
        findings = list(judge(snapshot, self._limits))
        self.broken += sum(finding.verdict is Verdict.BROKEN for finding in findings)
        problems += (each.why for each in findings if each.verdict is Verdict.UNKNOWN and each.why is not None)
        shown = [each for each in findings if each.verdict is not Verdict.OK or options.show_ok]
        notes = [f"no group matches {text}" for text in names.without_match(snapshot.groups)]
        bad = {finding.group_id for finding in findings if finding.verdict is not Verdict.OK}
        if snapshot.scope.hides_topics:
            notes.append(HIDDEN)
        if bad or not options.quiet:
            count = len(snapshot.groups)
            notes.append(f"{count - len(bad)} of {count} groups are within their limits")
        time_of = _in_words if options.output == "table" else _seconds
        yield Page(
            [_row(each, snapshot.groups[each.group_id], time_of) for each in shown],
            list(dict.fromkeys(problems)),
            notes,
        )

    async def _poll(self, session: ClusterSession, names: Names) -> ClusterSnapshot:
        """The groups now; if rebalances are limited, after following them for --within."""
        limits, options = self._limits, session.options
        reads = bool(limits.statuses) or limits.max_time_lag_ms is not None or limits.min_margin_ms is not None
        wanted = WantedGroups(
            Choice(names, Names(())), Choice(names_of(options, "topic"), Names(())), reads_records=reads
        )
        for_s = 0 if limits.max_rebalances is None else options.within / 1000
        within_s = session.timeout_ms / 1000
        return await take_snapshot(session.admin, wanted, session.progress.say, within_s=within_s, for_s=for_s)


def _row(finding: LimitFinding, group: GroupView, time_of: Callable[[Value], Value]) -> Row:
    as_shown = time_of if finding.measure in TIMES else lambda value: value
    topic, partition = _worst(finding, group) if finding.why is None else (finding.why.topic, finding.why.partition)
    return {
        "group": finding.group_id,
        "measure": finding.measure.value,
        "verdict": finding.verdict.value,
        "value": as_shown(finding.value),
        "limit": as_shown(finding.limit),
        "why": None if finding.why is None else _why(finding.why),
        "topic": topic,
        "partition": partition,
    }


def _worst(finding: LimitFinding, group: GroupView) -> tuple[str | None, int | None]:
    """The partition that breaks the limit, or has most of the value; None: none does."""
    part = _PARTS.get(finding.measure)
    if part is None or finding.verdict is not Verdict.BROKEN:
        return None, None
    read = read_part(group)
    parts = ((part(row, wait), row.topic, row.partition) for row, wait in zip(read.rows, read.waits, strict=True))
    return max((each for each in parts if each[0] is not None), default=(0, None, None))[1:]


_PARTS: Mapping[Measure, Callable[[PartitionLag, Wait], int | None]] = {
    Measure.LAG: lambda row, wait: row.lag,
    Measure.TIME_LAG: lambda row, wait: wait.lag_ms,
    Measure.UNCOMMITTED: lambda row, wait: row.in_log if row.committed is None else None,
    Measure.LOST: lambda row, wait: row.lost,
    Measure.MARGIN: lambda row, wait: None if wait.margin_ms is None else -wait.margin_ms,
}
"""A partition's part in the value of its group; larger is worse."""


def _why(problem: Problem) -> str:
    return problem.message if problem.acl is None else f"missing ACL: {problem.acl}"


def _seconds(ms: Value) -> Value:
    return ms // 1000 if isinstance(ms, int) else ms


def _in_words(ms: Value) -> Value:
    return f"{'-' * (ms < 0)}{duration(abs(ms))}" if isinstance(ms, int) else ms


def _run(options: Namespace) -> int:
    checks: list[_Check] = []

    def report(given: Namespace) -> ClusterReport:
        checks.append(_Check(given))
        return ClusterReport(CHECKS, checks[-1].pages)

    status = run_reports(options, report)
    return BROKEN if any(check.broken for check in checks) else status


COMMAND = Command(
    _add_arguments,
    _run,
    f"Check that groups are within limits, in one cluster or several. Exits with 0 when all are, {BROKEN} when a "
    f"limit is broken, 1 when a value that the result depends on could not be read: an unknown value never counts as "
    f"within its limit. A group that is named must exist in each of the clusters; a glob may match none.",
    """\
  groupkeeper check --max-lag 10000 --max-time-lag 10m
  groupkeeper check billing --state Stable --min-members 2
  groupkeeper check 'orders-*' --context '*' --min-retention-margin 1d --output json""",
)
