"""Common arguments of commands on groups, and their meaning: which groups and topics, in which order."""

from __future__ import annotations

import heapq
from argparse import Namespace
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Mapping, Sequence
from typing import Any

from groupkeeper.cli.framework import values
from groupkeeper.cli.framework.clusters import ClusterSession
from groupkeeper.cli.framework.commands import ArgumentParser, UsageMistake
from groupkeeper.cli.framework.reports import Page, Problem, Row, problem_of
from groupkeeper.client.admin.types import Failure
from groupkeeper.client.errors import ClientError
from groupkeeper.operations.problems import Attempt
from groupkeeper.operations.selection import BadGroupPattern, Names, Selection, list_selected, select_groups
from groupkeeper.protocol.errors import GroupIdNotFound, KafkaError

GROUP_HELP = (
    "a group, or a glob such as 'orders-*' ([*] matches the character *); a group of exactly this name comes first"
)


LAG_TO: Mapping[str, Any] = {
    "choices": ["end", "lso"],
    "default": "end",
    "help": "count the lag up to the log's end, or to the last stable offset, where readers of committed records stop; "
    "default: end",
}
"""What `--lag-to` is added with."""

_FEW_NAMES = 5
_MANY_NAMES = 20_000
"""Similar names are only suggested for few unknown groups, among not too many: each pair takes 20 µs."""


def add_groups(command: ArgumentParser, *, is_required: bool = True) -> None:
    """Adds the arguments for groups: GROUP …, or --all-groups."""
    default = "" if is_required else "; default: all"
    command.add_argument("groups", nargs="*", default=[], metavar="GROUP", help=f"{GROUP_HELP}{default}")
    command.add_argument("--all-groups", action="store_true", help=f"all consumer groups{default and ', the default'}")
    command.checks += [_check_groups if is_required else _check_one_way, lambda options: names_of(options, "groups")]
    command.add_argument("--regex", action="store_true", help="names are regular expressions that match the whole name")


def _check_one_way(options: Namespace) -> None:
    if options.groups and options.all_groups:
        raise UsageMistake("name groups, or give --all-groups: not both")


def _check_groups(options: Namespace) -> None:
    _check_one_way(options)
    if not options.groups and not options.all_groups:
        raise UsageMistake(
            "no groups are named: type their names, a glob such as 'orders-*', or --all-groups; "
            "put a name that starts with '-' after '--'"
        )


def add_filters(command: ArgumentParser, *, of_all_types: bool = False) -> None:
    """Adds filters of these groups. `of_all_types`: share and streams groups, too, which are only shown."""
    states, types = (values.listed_states, values.listed_types) if of_all_types else (values.states, values.types)
    command.add_argument("--state", type=states, default=[], help=f"only groups in these states: {states}")
    command.add_argument("--type", type=types, default=[], help=f"only groups of these types: {types}")


def add_topics(command: ArgumentParser, *, with_regex: bool = False) -> None:
    """Adds the option for topics. `with_regex`: --regex is about them only."""
    command.add_argument("--topic", action="append", help="only these; a name or a glob")
    command.checks.append(lambda options: names_of(options, "topic"))
    if with_regex:
        command.add_argument("--regex", action="store_true", help="names of topics are regular expressions")


def add_order(command: ArgumentParser, columns: Sequence[str]) -> None:
    """Adds the options for order and number of rows."""
    by = ", ".join(f"{name} (the lag, or the whole log where nothing is committed)" if name == "readable" else name
                   for name in columns)  # fmt: skip
    command.add_argument("--sort", choices=columns, metavar="COLUMN", help=f"by {by}; numbers in descending order")
    command.add_argument("--top", type=values.count, help="only the first N rows")


def named(texts: Iterable[str], *, regex: bool, argument: str) -> Names:
    """The names or patterns typed for an argument. Raises UsageMistake for an invalid pattern."""
    try:
        return Names(texts, regex=regex)
    except BadGroupPattern as problem:
        raise UsageMistake(f"argument {argument}: {problem}") from None


def names_of(options: Namespace, argument: str) -> Names:
    """The names and patterns typed for `groups` or `topic`. Raises UsageMistake."""
    shown = "GROUP" if argument == "groups" else "--topic"
    return named(getattr(options, argument), regex=options.regex, argument=shown)


def are_typed(options: Namespace) -> bool:
    """Whether each group was named: not by a pattern, and not all or those in some state."""
    names = names_of(options, "groups")
    filters = (getattr(options, "state", []), getattr(options, "type", []))
    return bool(names.exact) and not names.patterns and not any(filters)


async def selected(
    session: ClusterSession, *, with_share: bool = False, with_streams: bool = False
) -> tuple[Selection, Page]:
    """The groups that the options select, and the problems and notes about the selection. `with_share`,
    `with_streams`: also groups of these types.
    """
    options = session.options
    session.progress.say("listing groups")
    names = names_of(options, "groups")
    filters = (getattr(options, "state", []), getattr(options, "type", []))
    selection = await select_groups(session.admin, names, *filters, with_share=with_share, with_streams=with_streams)
    page = await said_about(session, selection)
    if not selection.group_ids and not selection.unmatched and not selection.failed:
        page = page._replace(notes=[*page.notes, f"no groups{' in these states or of these types' * any(filters)}"])
    return selection, page


def passed_over(file: values.PlanFile | None, in_file: Iterable[str], meant: Iterable[str]) -> list[str]:
    """The note about groups that are in the file of --from-file and not selected."""
    others = sorted(set(in_file).difference(meant))
    if file is None or not others:
        return []
    more = f" and {len(others) - _FEW_NAMES} more" if len(others) > _FEW_NAMES else ""
    return [f"{file.path}: lines of other groups are skipped: {', '.join(others[:_FEW_NAMES])}{more}"]


async def said_about(session: ClusterSession, selection: Selection) -> Page:
    """Problems and notes about a selection: failed brokers, patterns without a group, and possibly hidden groups."""
    problems = [problem_of(failure, broker=node.id) for node, failure in selection.failed.items()]
    notes = [f"no group matches {pattern!r}" for pattern in selection.unmatched]
    notes += [
        f"{name!r} is the name of a group, and only that group is meant; --regex makes it a pattern"
        for name in selection.namesakes
    ]
    names = names_of(session.options, "groups")
    if session.is_secured and (names.patterns or not names) and await _hides_groups(session):
        notes.append(
            "groups that you may not describe are not listed; you need the ACL DESCRIBE on the cluster to see all "
            "groups"
        )
    return Page(problems=problems, notes=notes)


async def _hides_groups(session: ClusterSession) -> bool:
    """Whether brokers leave out the groups that the client may not describe."""
    try:
        cluster = await session.admin.describe_cluster(include_authorized_operations=True)
    except (KafkaError, ClientError):
        return False
    return cluster.authorized_operations is not None and "DESCRIBE" not in cluster.authorized_operations


def problems_of(options: Namespace, failed: Mapping[str, Failure], deed: Attempt = Attempt.DESCRIBE) -> list[Problem]:
    """The failures of groups as problems.

    Groups matched by a pattern that were deleted after they were listed are left out.
    """
    typed = frozenset(getattr(options, "groups", failed) if deed is Attempt.DESCRIBE else failed)
    return [
        problem_of(failed[group_id], deed, group=group_id)
        for group_id in sorted(failed)
        if group_id in typed or not isinstance(failed[group_id], GroupIdNotFound)
    ]


async def with_suggestions(session: ClusterSession, failed: Mapping[str, Failure]) -> list[Problem]:
    """As `problems_of`, with a similar existing name for groups that don't exist."""
    problems = problems_of(session.options, failed)
    unknown = [one.group for one in problems if one.group and isinstance(failed[one.group], GroupIdNotFound)]
    meant = await suggested(session, unknown)
    return [
        one._replace(message=one.message.removesuffix(".") + meant[one.group]) if one.group in meant else one
        for one in problems
    ]


async def suggested(session: ClusterSession, unknown: Sequence[str]) -> dict[str, str]:
    """Suggestions for groups that don't exist: a text with the similar name of an existing one, if there is one."""
    if not 0 < len(unknown) <= _FEW_NAMES:
        return {}
    from groupkeeper.cli.framework.commands import similar

    try:
        listed, _ = await list_selected(session.admin, Names(()))
    except (KafkaError, ClientError):
        return {}
    ids = [group.group_id for group in listed[:_MANY_NAMES]]
    return {group_id: meant for group_id in unknown if (meant := similar(group_id, ids))}


def _key(column: str) -> Callable[[Row], tuple[bool, int, str]]:
    def key(row: Row) -> tuple[bool, int, str]:
        value = row[column]
        if isinstance(value, int):
            return (False, -value, "")
        return (value is None, 0, value if isinstance(value, str) else "")

    return key


async def arranged(pages: AsyncIterator[Page], options: Namespace) -> AsyncGenerator[Page, None]:
    """The pages with their rows sorted by --sort and limited by --top.

    Without --sort they are streamed, and no further requests are sent once there are enough rows.
    """
    top: int | None = options.top
    if options.sort is None:
        async for page in pages:
            rows = page.rows if top is None else page.rows[:top]
            yield page._replace(rows=rows)
            if top is not None:
                top -= len(rows)
                if top == 0:
                    break
        if isinstance(pages, AsyncGenerator):
            await pages.aclose()
        return
    key = _key(options.sort)
    kept: list[Row] = []
    async for page in pages:
        kept += page.rows
        if top is not None:
            kept = heapq.nsmallest(top, kept, key)
        yield page._replace(rows=())
    yield Page(kept if top is not None else sorted(kept, key=key))
