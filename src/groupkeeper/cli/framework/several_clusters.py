"""Commands over several clusters, each with a name."""

from __future__ import annotations

import asyncio
from argparse import ArgumentTypeError, Namespace
from collections.abc import AsyncGenerator, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import aclosing
from typing import Any, NamedTuple

from groupkeeper.cli.framework import context_files, values
from groupkeeper.cli.framework.clusters import (
    OTHERWISE,
    TIMEOUT_MS,
    Cluster,
    ClusterReport,
    add_client,
    add_context,
    admin_of,
    cluster_of,
    is_pattern,
    pages_of,
    refusals_of,
    write_report,
)
from groupkeeper.cli.framework.commands import ArgumentParser, UsageMistake, refusing
from groupkeeper.cli.framework.group_arguments import named
from groupkeeper.cli.framework.output import complain
from groupkeeper.cli.framework.render import note_text
from groupkeeper.cli.framework.reports import CLUSTER, Page, Problem
from groupkeeper.cli.framework.terminal import Progress
from groupkeeper.operations.selection import Choice, Names
from groupkeeper.protocol.errors import GroupIdNotFound

_UNNAMED = "default"
"""The name of a cluster given without a name."""

_PATIENCE_S = 1.0
"""How long to wait for slower clusters, so that all are shown in the order of the command line."""


_PAUSE_S = 2.0
"""The pause before a failed cluster is asked again."""


class Named(NamedTuple):
    """Brokers under a name; "": they have none."""

    name: str
    servers: str


def add_clusters(
    command: ArgumentParser, *, otherwise: str = OTHERWISE, unnamed: str = _UNNAMED, timeout_ms: int = TIMEOUT_MS
) -> None:
    """Adds the options that select clusters. For the help: `otherwise`, the default of --context, and what a cluster
    `unnamed` is called.
    """
    where = command.add_argument_group("clusters")
    add_context(where, may_be_several=True, otherwise=otherwise)
    where.add_argument(
        "--bootstrap-server",
        action="append",
        type=named_servers,
        metavar="[NAME=]HOST:PORT[,...]",
        help=f"a cluster's brokers, and a name for it; default of NAME: {unnamed}",
    )
    add_client(where, "the clients of all these clusters", timeout_ms)


def named_servers(text: str) -> Named:
    """`NAME=host:port,…`"""
    name, is_named, servers = text.rpartition("=")
    if is_named and not name:
        raise ArgumentTypeError(f"{text!r}: expected a name before '=', for example prod=kafka-1:9092")
    return Named(name, values.servers(servers))


def clusters_of(options: Namespace, *, by_servers: bool = False) -> Mapping[str, Cluster | Problem]:
    """The clusters that the options name, by their names; why no client can be made for a context matched by a glob.

    `by_servers`: those without a typed name, of which there may be many, are called as their brokers. Raises
    UsageMistake.
    """
    found: dict[str, Cluster | Problem] = {}

    def add(name: str, cluster: Cluster | Problem) -> None:
        if name in found:
            raise UsageMistake(f"two clusters are called {name!r}")
        found[name] = cluster

    contexts = contexts_named(options.context)
    if isinstance(options.bootstrap_server, str):
        if len(contexts) > 1:
            raise UsageMistake("argument --bootstrap-server: not allowed with several contexts, which have their own")
        context = next(iter(contexts), None)
        return {context or _UNNAMED: _checked(options, context, options.bootstrap_server)}
    for name, is_typed in contexts.items():
        add(name, _checked(options, name, None) if is_typed else _checked_apart(options, name))
    for one in options.bootstrap_server or ():
        add(one.name or (one.servers if by_servers else _UNNAMED), _checked(options, None, one.servers))
    if not found:
        cluster = _checked(options, None, None)
        add(cluster.bootstrap_server if by_servers else cluster.context or _UNNAMED, cluster)
    return found


def usable_clusters_of(options: Namespace, *, by_servers: bool = False) -> Mapping[str, Cluster]:
    """As `clusters_of`, but raises UsageMistake where one of them makes no client."""
    usable: dict[str, Cluster] = {}
    for name, cluster in clusters_of(options, by_servers=by_servers).items():
        if isinstance(cluster, Problem):
            raise UsageMistake(cluster.message)
        usable[name] = cluster
    return usable


def contexts_named(typed: Iterable[str]) -> Mapping[str, bool]:
    """The names of contexts, and whether each was typed itself. Raises UsageMistake for a glob without a match."""
    from fnmatch import filter as matching

    names: dict[str, bool] = {}
    for text in typed:
        if not is_pattern(text):
            names[text] = True
            continue
        known = context_files.names()
        if not (found := matching(known, text)):
            there = f"known: {', '.join(known)}" if known else "there are none yet"
            raise UsageMistake(f"argument --context: no context matches {text!r}; {there}")
        names |= dict.fromkeys((name for name in found if name not in names), False)
    return names


def _checked(options: Namespace, context: str | None, servers: str | None) -> Cluster:
    wanted = Namespace(
        context=context, bootstrap_server=servers, command_config=options.command_config, property=options.property
    )
    cluster = cluster_of(wanted)
    admin_of(cluster)
    return cluster


def _checked_apart(options: Namespace, context: str) -> Cluster | Problem:
    try:
        return _checked(options, context, None)
    except UsageMistake as mistake:
        return Problem("CONTEXT_UNUSABLE", str(mistake))


def run_reports(options: Namespace, report_of: Callable[[Namespace], ClusterReport]) -> int:
    """Query all selected clusters at the same time, write one report, and return the exit status.

    A failure of one cluster doesn't affect the others. With several clusters, rows, problems and notes have the
    cluster's name.
    """
    with refusing(options):
        clusters = clusters_of(options)
        report = report_of(options)
        if len(clusters) > 1:
            report = report._replace(with_columns=[*report.with_columns, CLUSTER.name])

        def ask(progress: Progress) -> AsyncGenerator[Page, None]:
            pages = _all_pages(clusters, report, options, progress)
            return pages if report.in_order is None else report.in_order(pages)

        return write_report(options, report, ask)


def _all_pages(
    clusters: Mapping[str, Cluster | Problem], report: ClusterReport, options: Namespace, progress: Progress
) -> AsyncGenerator[Page, None]:
    """The pages of all clusters."""
    if len(clusters) == 1:
        [(name, cluster)] = clusters.items()
        return _pages_of(name, cluster, report, options, progress, is_only=True)
    if report.has_lines:
        return _as_they_come([_pages_again(name, each, report, options, progress) for name, each in clusters.items()])
    pages_by_cluster = {name: _pages_of(name, cluster, report, options, progress) for name, cluster in clusters.items()}
    patience_s = _PATIENCE_S if getattr(options, "sort", None) is None else None
    return _one_after_the_other(pages_by_cluster, _Absences(report.may_lack), patience_s)


async def _pages_of(
    name: str,
    cluster: Cluster | Problem,
    report: ClusterReport,
    options: Namespace,
    progress: Progress,
    *,
    is_only: bool = False,
) -> AsyncGenerator[Page, None]:
    """The pages of one cluster among others. `is_only`: there are none, and only whole rows have its name."""
    own = None if is_only else name
    if isinstance(cluster, Problem):
        yield Page(problems=[cluster._replace(cluster=own)])
        return
    is_in_rows = not is_only or options.wide or options.output != "table"
    async with aclosing(pages_of(cluster, report, options, progress, own)) as pages:
        async for page in pages:
            rows = [{**row, CLUSTER.name: name} for row in page.rows] if is_in_rows else page.rows
            yield page._replace(rows=rows, problems=[problem._replace(cluster=own) for problem in page.problems])


async def _pages_again(
    name: str, cluster: Cluster | Problem, report: ClusterReport, options: Namespace, progress: Progress
) -> AsyncGenerator[Page, None]:
    """The pages of one cluster in a report without end: after a failure, which is reported once, it is asked again."""
    is_failing = False
    while True:
        async with aclosing(_pages_of(name, cluster, report, options, progress)) as pages:
            async for page in pages:
                if page.problems and is_failing:
                    continue
                if is_failing:
                    progress.clear()
                    complain(note_text(f"{name}: it replies again"))
                is_failing = bool(page.problems)
                yield page
        if isinstance(cluster, Problem) or not is_failing:
            return
        refusals: str | None = ""
        while refusals is not None:
            await asyncio.sleep(_PAUSE_S)
            refusals = await refusals_of(cluster.bootstrap_server)


async def _as_they_come(all_pages: Sequence[AsyncGenerator[Page, None]]) -> AsyncGenerator[Page, None]:
    """The pages of reports without end, as they come. Raises the first exception at once."""
    come: asyncio.Queue[Page | asyncio.Task[None]] = asyncio.Queue()

    async def follow(pages: AsyncGenerator[Page, None]) -> None:
        async for page in pages:
            come.put_nowait(page)

    following = [asyncio.create_task(follow(pages)) for pages in all_pages]
    for each in following:
        each.add_done_callback(come.put_nowait)
    left = len(following)
    try:
        while left:
            next_one = await come.get()
            if isinstance(next_one, Page):
                yield next_one
            else:
                next_one.result()
                left -= 1
    finally:
        await _ended(following)


async def _one_after_the_other(
    pages_by_cluster: Mapping[str, AsyncGenerator[Page, None]], absences: _Absences, patience_s: float | None
) -> AsyncGenerator[Page, None]:
    """The pages of clusters in the order of the command line; slow clusters come after the others.

    `patience_s`: the time after which a cluster is slow, None: never. Notes come last; one that several clusters
    share is shown once.
    """

    async def collect(pages: AsyncGenerator[Page, None]) -> list[Page]:
        return [page async for page in pages]

    left = {asyncio.create_task(collect(pages)): name for name, pages in pages_by_cluster.items()}
    notes: dict[str, list[str]] = {}
    try:
        await asyncio.wait(left, timeout=patience_s)
        while left:
            for each in [each for each in left if each.done()]:
                name = left.pop(each)
                pages = each.result()
                absences.count(pages)
                for page in pages:
                    for note in page.notes:
                        notes.setdefault(note, []).append(name)
                    problems = [one for one in page.problems if not absences.holds(one)]
                    yield page._replace(problems=problems, notes=())
            if left:
                await asyncio.wait(left, return_when=asyncio.FIRST_COMPLETED)
        yield Page(notes=[f"{_list_of(names, pages_by_cluster)}: {note}" for note, names in notes.items()])
        yield absences.page()
    finally:
        await _ended(list(left))


def _list_of(names: Sequence[str], every: Collection[str]) -> str:
    """The names of clusters that share a note, in the order of the command line."""
    if len(names) == len(every):
        return f"all {len(every)} clusters" if len(every) > 2 else "both clusters"
    return ", ".join(name for name in every if name in names)


_NOWHERE = (None, None, None)
"""Group, topic and broker of a problem that concerns the whole cluster."""


class _Absences:
    """Groups that some clusters don't have, and these clusters. `is_allowed`: one cluster with the group is
    enough.
    """

    def __init__(self, is_allowed: bool) -> None:
        self._is_allowed = is_allowed
        self._answered = 0
        self._held: dict[str, list[Problem]] = {}

    def count(self, pages: Sequence[Page]) -> None:
        """Counts a cluster as answered, unless its pages have a problem of the whole cluster."""
        failed = any((one.group, one.topic, one.broker) == _NOWHERE for page in pages for one in page.problems)
        self._answered += not failed

    def holds(self, problem: Problem) -> bool:
        """Whether the problem is that a group is missing; it is then kept for `page`."""
        if not self._is_allowed or problem.error != GroupIdNotFound.name or problem.group is None:
            return False
        self._held.setdefault(problem.group, []).append(problem)
        return True

    def page(self) -> Page:
        """Problems for groups that no cluster has; notes for groups that only some clusters lack."""
        page = Page()
        for group_id, problems in self._held.items():
            if len(problems) >= self._answered:
                page = page._replace(problems=[*page.problems, *problems])
            else:
                where = ", ".join(str(problem.cluster) for problem in problems)
                page = page._replace(notes=[*page.notes, f"group {group_id} is not in {where}"])
        return page


async def _ended(tasks: Sequence[asyncio.Task[Any]]) -> None:
    for each in tasks:
        each.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def add_choices(command: ArgumentParser) -> None:
    """Adds the options that select groups and topics."""
    what = command.add_argument_group("groups and topics")
    for option, meaning in {
        "--group": "only these groups",
        "--except-group": "not these groups",
        "--topic": "only these topics of groups",
        "--except-topic": "not these topics of groups",
    }.items():
        what.add_argument(
            option,
            action="append",
            default=[],
            metavar=option.rpartition("-")[2].upper(),
            help=f"{meaning}; a name or a glob",
        )
    what.add_argument("--regex", action="store_true", help="names are regular expressions that match the whole name")


def choice_of(options: Namespace, what: str) -> Choice:
    """The names and patterns typed for `group` or `topic`. Raises UsageMistake."""

    def names(argument: str) -> Names:
        return named(getattr(options, argument.replace("-", "_")), regex=options.regex, argument=f"--{argument}")

    return Choice(names(what), names(f"except-{what}"))
