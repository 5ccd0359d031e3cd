"""`groupkeeper groups describe`, `offsets` and `members`: one report in three views, and its sums."""

from __future__ import annotations

import asyncio
from argparse import Namespace
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from groupkeeper.cli.framework import values
from groupkeeper.cli.framework.clusters import ClusterReport, ClusterSession, add_cluster
from groupkeeper.cli.framework.commands import ArgumentParser, Command, UsageMistake, similar
from groupkeeper.cli.framework.group_arguments import (
    LAG_TO,
    add_filters,
    add_groups,
    add_order,
    add_topics,
    arranged,
    names_of,
    selected,
    with_suggestions,
)
from groupkeeper.cli.framework.reports import Page, Problem, Row, Schema, problem_of
from groupkeeper.cli.framework.several_clusters import run_reports
from groupkeeper.cli.groups import statuses
from groupkeeper.cli.groups.schemas import GROUP_SUMS, MEMBERS, OFFSETS, STATES, TOPIC_SUMS, TOPOLOGY
from groupkeeper.cli.groups.topology import topology_pages
from groupkeeper.cli.groups.trends import COLUMNS, NO_TREND, FirstMeasurement
from groupkeeper.operations.groups import AnyGroup, AnyMember, describe_any
from groupkeeper.operations.lag import (
    GroupsLag,
    LagStatus,
    LagSum,
    PartitionLag,
    describe_lag,
    in_parts,
    sum_by_group,
    sum_by_topic,
)
from groupkeeper.operations.reporting.group_rows import is_unread, lag_row, member_row, state_row, sum_row
from groupkeeper.operations.share_groups import DeadLetterQueue, dead_letter_queues
from groupkeeper.operations.topics import HIDDEN, describe_topics, hides_topics
from groupkeeper.rules.words import counted

_FEW = 3
"""More groups of a kind than this are counted, not named one by one."""

_STATUSES = values.ListOf(LagStatus, "STATUS", "uncommitted,below_log_start")

_OF_LAG: Mapping[str, Mapping[str, Any]] = {
    "--sum": {"choices": ["group", "topic"], "help": "a row for each group, or each topic of a group"},
    "--lag-to": LAG_TO,
    "--min-lag": {
        "type": values.count,
        "help": "only rows with at least N records left to read: the lag, or the whole log where nothing is committed",
    },
    "--trend": {
        "type": values.span_ms,
        "help": "measure twice, this long apart, and show the rates at which records are produced and consumed, and "
        "the time until the lag is 0 at these rates: 10s",
    },
    "--status": {"type": _STATUSES, "default": [], "help": f"only partitions with these: {_STATUSES}"},
}
"""Options of the views that have a lag, by their names. Other views refuse them."""

_NO_PROBLEM = (
    LagStatus.OK,
    LagStatus.UNCOMMITTED,
    LagStatus.BELOW_LOG_START,
    LagStatus.BEYOND_LOG_END,
    LagStatus.DELETED,
)

_SORTS = {
    OFFSETS.report: ["group", "topic", "lag", "readable", "lost", "log_end_offset", "status", "client_id"],
    MEMBERS.report: ["group", "client_id", "host", "partitions"],
    STATES.report: ["group", "type", "state", "members"],
    TOPOLOGY.report: ["group", "subtopology", "node"],
    GROUP_SUMS.report: ["group", "lag", "readable", "max_lag", "lost", "uncommitted", "partitions"],
    TOPIC_SUMS.report: ["group", "topic", "lag", "readable", "max_lag", "lost", "uncommitted", "partitions"],
}


def _adding(*schemas: Schema, has_views: bool = False, has_lag: bool = True) -> Callable[[ArgumentParser], None]:
    """Adds the arguments of a command that shows rows of one of the schemas."""

    def add(command: ArgumentParser) -> None:
        add_groups(command)
        add_filters(command, of_all_types=True)
        if has_views:
            views = ["offsets", "members", "state", "topology"]
            command.add_argument("--view", choices=views, default="offsets", help="default: offsets")
        add_topics(command)
        if has_lag:
            for option, given in _OF_LAG.items():
                command.add_argument(option, **given)
            statuses.add_status(command)
        add_order(command, list(dict.fromkeys(name for schema in schemas for name in _SORTS[schema.report])))
        add_cluster(command, may_be_several=True)

    return add


def _report(view: str | None) -> Callable[[Namespace], ClusterReport]:
    def report(options: Namespace) -> ClusterReport:
        shown = view or options.view
        if shown == "offsets":
            schema = {None: OFFSETS, "group": GROUP_SUMS, "topic": TOPIC_SUMS}[options.sum]
            pages = _offset_pages
        else:
            schema, pages = {
                "members": (MEMBERS, _member_pages),
                "state": (STATES, _state_pages),
                "topology": (TOPOLOGY, topology_pages),
            }[shown]
            _refuse_lag(options, shown)
        if options.sort is not None and options.sort not in _SORTS[schema.report]:
            raise UsageMistake(
                f"argument --sort: {options.sort!r} is no column here (choose from {', '.join(_SORTS[schema.report])})"
            )
        with_columns = ["last_stable_offset"] if getattr(options, "lag_to", "end") == "lso" else []
        if getattr(options, "min_lag", None) or options.sort == "readable":
            with_columns.append("readable")
        if getattr(options, "trend", None) is not None:
            with_columns += COLUMNS
        if getattr(options, "with_status", False):
            with_columns += statuses.COLUMNS
        return ClusterReport(
            schema, pages, with_columns=with_columns, in_order=lambda pages: arranged(pages, options), may_lack=True
        )

    return report


def _refuse_lag(options: Namespace, view: str) -> None:
    for option, given in _OF_LAG.items():
        default = given.get("default")
        if getattr(options, option[2:].replace("-", "_"), default) != default:
            raise UsageMistake(f"argument {option}: not allowed with --view {view}, which has no lag")
    if view != "state" and getattr(options, "with_status", False):
        raise UsageMistake(f"argument --with-status: not allowed with --view {view}")
    if view in ("state", "topology") and options.topic:
        raise UsageMistake(f"argument --topic: not allowed with --view {view}, which has no topics")


async def _offset_pages(session: ClusterSession) -> AsyncIterator[Page]:
    """Offsets of groups, page by page. A group that cannot be described is a problem beside the others."""
    options = session.options
    topics = names_of(options, "topic")
    selection, overall = await selected(session, with_share=True, with_streams=True)
    seen = _Described()
    total = len(selection.group_ids)
    earlier = await _first_measurement(session, selection.group_ids) if options.trend is not None else None
    session.progress.say(f"describing {counted(total, 'group')}")
    done = shown = 0
    filters = _filters(options)
    judged = await statuses.statuses_of(session)
    parts = describe_lag(session.admin, selection.group_ids, topics=topics, to_last_stable=options.lag_to == "lso")
    async for part in parts:
        rows = [
            row for group_id in sorted(part.rows) for row in _lag_rows(part.rows[group_id], group_id, options, earlier)
        ]
        done += len(set(part.rows) | set(part.failed))
        shown += len(rows)
        session.progress.say(f"describing groups: {done} of {total}")
        about = {str(row["group"]) for row in rows} if filters else part.rows.keys()
        queues = await dead_letter_queues(session.admin, part.descriptions.values())
        failures = await with_suggestions(session, part.failed)
        yield Page(judged.beside(rows), failures + seen.of(part, about), _of_queues(queues))
    problems = await _topic_problems(session, topics.exact, seen)
    hidden = [HIDDEN] if seen.without_offsets and await hides_topics(session.admin) else []
    notes = [*overall.notes, *seen.notes(bool(topics), may_hide=bool(hidden)), *hidden]
    if filters and total and not shown:
        notes.append(f"no row of {counted(total, 'group')} matches {filters}")
    yield Page(problems=[*overall.problems, *problems], notes=notes)


def _filters(options: Namespace) -> str:
    """The options that leave out rows, as they are typed."""
    typed = [f"--status {','.join(each.value for each in options.status)}"] if options.status else []
    typed += [f"--min-lag {options.min_lag}"] if options.min_lag is not None else []
    return " ".join(typed)


class _Described:
    """Notes about groups and partitions, each once. `without_offsets`: groups that seem to have none."""

    def __init__(self) -> None:
        self.topics: set[str] = set()
        self._shown: set[tuple[str, str, int | None]] = set()
        self._idle: list[str] = []
        self.without_offsets: list[str] = []
        self._deleted: set[str] = set()

    def of(self, part: GroupsLag, about: Collection[str]) -> list[Problem]:
        """Notes a part of the report; returns the problems of partitions that no earlier row had."""
        for group_id in sorted(part.rows):
            if group_id not in part.failed and group_id in about:
                group = part.descriptions.get(group_id)
                if group is not None and not group.members:
                    self._idle.append(group_id)
                if not part.rows[group_id]:
                    self.without_offsets.append(group_id)
        return [problem for rows in part.rows.values() for row in rows for problem in self._row(row)]

    def _row(self, row: PartitionLag) -> Iterable[Problem]:
        self.topics.add(row.topic)
        if row.status is LagStatus.DELETED:
            self._deleted.add(row.topic)
        if row.status in _NO_PROBLEM or row.failure is None:
            return
        # A missing right concerns the whole topic, not the partition.
        partition = None if row.status is LagStatus.NOT_AUTHORIZED else row.partition
        key = (type(row.failure).__name__, row.topic, partition)
        if key not in self._shown:
            self._shown.add(key)
            yield problem_of(row.failure, topic=row.topic, partition=partition)

    def notes(self, is_filtered: bool, *, may_hide: bool) -> list[str]:
        """All notes. `may_hide`: some offsets may be hidden."""
        what = "no committed offsets" + " for these topics" * is_filtered + " that you may see" * may_hide
        return [
            *_counted(self._idle, "has no members", "have no members"),
            *_counted(self.without_offsets, f"has {what}", f"have {what}"),
            *(f"topic {topic}, or some of its partitions, no longer exists" for topic in sorted(self._deleted)),
        ]


def _counted(group_ids: Sequence[str], one: str, many: str) -> list[str]:
    if len(group_ids) > _FEW:
        return [f"{counted(len(group_ids), 'group')} {many}"]
    return [f"group {group_id} {one}" for group_id in group_ids]


async def _topic_problems(session: ClusterSession, wanted: Sequence[str], seen: _Described) -> list[Problem]:
    """Problems with named topics that are missing: brokers silently leave out hidden ones."""
    missing = [topic for topic in wanted if topic not in seen.topics]
    if not missing:
        return []
    described = await describe_topics(session.admin, missing)
    problems = []
    for topic, failure in described.failed.items():
        problem = problem_of(failure, topic=topic)
        if problem.acl is None:
            known = await session.admin.list_topics()
            meant = similar(topic, [each.name for each in known])
            if meant:
                problem = problem._replace(message=problem.message.removesuffix(".") + meant)
        problems.append(problem)
    return problems


async def _first_measurement(session: ClusterSession, group_ids: Sequence[str]) -> FirstMeasurement:
    """The first of two measurements, taken --trend before the second one."""
    options = session.options
    first = FirstMeasurement()
    session.progress.say("measuring the first time")
    async for part in describe_lag(
        session.admin, group_ids, topics=names_of(options, "topic"), to_last_stable=options.lag_to == "lso"
    ):
        for rows in part.rows.values():
            first.see(rows)
    session.progress.say(f"measuring again {options.trend / 1000:g} s later")
    await asyncio.sleep(options.trend / 1000)
    return first


def _lag_rows(
    rows: Sequence[PartitionLag], group_id: str, options: Namespace, earlier: FirstMeasurement | None
) -> Iterable[Row]:
    """The rows of a group that the options select, or their sums."""
    if options.status:
        rows = [row for row in rows if row.status in options.status]
        if not rows:
            return []

    def trend(some: Sequence[PartitionLag]) -> Row:
        return _NOTHING_MORE if earlier is None else {**statuses.NO_STATUS, **earlier.trend_of(some)}

    if options.sum is None and earlier is None:  # as nearly always, of a million rows, too
        return [lag_row(row, _NOTHING_MORE) for row in rows if _is_much(row, options)]
    if options.sum is None:
        return [lag_row(row, trend([row])) for row in rows if _is_much(row, options)]
    sums = [sum_by_group(group_id, rows)] if options.sum == "group" else sum_by_topic(group_id, rows)
    return [
        {**sum_row(each), **trend([row for row in rows if each.topic in (None, row.topic)])}
        for each in sums
        if _is_much(each, options)
    ]


def _is_much(row: PartitionLag | LagSum, options: Namespace) -> bool:
    return options.min_lag is None or (row.readable or 0) >= options.min_lag


_NOTHING_MORE: Row = {**statuses.NO_STATUS, **NO_TREND}


async def _descriptions(session: ClusterSession) -> AsyncIterator[tuple[list[AnyGroup], Page]]:
    """The groups in parts by id, each with its problems; then notes about all."""
    selection, overall = await selected(session, with_share=True, with_streams=True)
    total = len(selection.group_ids)
    done = 0
    session.progress.say(f"describing {counted(total, 'group')}")
    for part in in_parts(selection.group_ids):
        described = await describe_any(session.admin, part)
        groups = [described.done[key] for key in sorted(described.done) if key not in described.failed]
        done += len(part)
        session.progress.say(f"describing groups: {done} of {total}")
        yield groups, Page(problems=await with_suggestions(session, described.failed))
    yield [], overall


async def _state_pages(session: ClusterSession) -> AsyncIterator[Page]:
    judged = await statuses.statuses_of(session)
    async for groups, page in _descriptions(session):
        queues = await dead_letter_queues(session.admin, groups)
        rows = judged.beside(state_row(one, queues.get(one.group_id), statuses.NO_STATUS) for one in groups)
        yield page._replace(rows=rows, notes=[*page.notes, *_of_queues(queues)])


async def _member_pages(session: ClusterSession) -> AsyncIterator[Page]:
    topics = names_of(session.options, "topic")
    idle: list[str] = []
    unread: list[str] = []
    async for groups, page in _descriptions(session):
        unread += [group.group_id for group in groups if any(map(is_unread, group.members))]
        idle += [group.group_id for group in groups if not group.members]
        rows = [
            member_row(group.group_id, member)
            for group in groups
            for member in _in_order(group.members)
            if not topics or any(topics.matches(topic) for topic, _ in member.assignment)
        ]
        yield page._replace(rows=rows)
    why = "a member whose assignment cannot be read"
    notes = _counted(unread, f"has {why}", f"have {why}")
    yield Page(notes=[*_counted(idle, "has no members", "have no members"), *notes])


def _in_order(members: Iterable[AnyMember]) -> list[AnyMember]:
    return sorted(members, key=lambda member: (member.client_id, member.member_id))


def _of_queues(queues: Mapping[str, DeadLetterQueue]) -> list[str]:
    return [f"the dead-letter queue of share group {group_id} is {queue}" for group_id, queue in sorted(queues.items())]


DESCRIBE = Command(
    _adding(OFFSETS, MEMBERS, STATES, TOPOLOGY, TOPIC_SUMS, has_views=True),
    lambda options: run_reports(options, _report(None)),
    examples="""\
  groupkeeper groups describe billing
  groupkeeper groups describe 'orders-*' --view members --wide
  groupkeeper groups describe --all-groups --context '*' --output json""",
)

OFFSETS_COMMAND = Command(
    _adding(OFFSETS, TOPIC_SUMS),
    lambda options: run_reports(options, _report("offsets")),
    examples="""\
  groupkeeper groups offsets billing shipping
  groupkeeper groups offsets 'orders-*' --topic 'eu-*' --sort lag --top 20
  groupkeeper groups offsets --all-groups --sum group --sort lag --output csv
  groupkeeper groups offsets --all-groups --context '*' --min-lag 10000 --sort readable --top 20""",
)

MEMBERS_COMMAND = Command(
    _adding(MEMBERS, has_lag=False),
    lambda options: run_reports(options, _report("members")),
    examples="""\
  groupkeeper groups members billing
  groupkeeper groups members --all-groups --output csv""",
)
