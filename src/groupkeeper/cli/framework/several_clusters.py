"""Commands that ask several clusters, each under a name."""

from __future__ import annotations

import asyncio
from argparse import ArgumentTypeError, Namespace
from collections.abc import AsyncGenerator, Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from groupkeeper.cli.framework import context_files, values
from groupkeeper.cli.framework.clusters import (
    Cluster,
    Report,
    UsageMistake,
    check,
    cluster_of,
    pages_of,
    write_report,
)
from groupkeeper.cli.framework.reports import Column, Page
from groupkeeper.cli.framework.terminal import Progress
from groupkeeper.operations.selection import BadPattern, Choice, Names

if TYPE_CHECKING:
    from groupkeeper.cli.framework.commands import ArgumentParser

_UNNAMED = "default"
"""How a cluster is called that no context names."""


class Named(NamedTuple):
    """Brokers under a name."""

    name: str
    servers: str


def add_clusters(command: ArgumentParser, *, timeout_ms: int) -> None:
    """The arguments that say which clusters to ask."""
    where = command.add_argument_group("clusters")
    where.add_argument(
        "--context",
        action="append",
        default=[],
        metavar="NAME",
        help=f"a cluster saved under this name; repeat for several; default: ${context_files.VARIABLE}, else the one "
        "in use (groupkeeper context use), unless --bootstrap-server is given",
    )
    where.add_argument(
        "--bootstrap-server",
        action="append",
        type=named_servers,
        default=[],
        metavar="[NAME=]HOST:PORT[,...]",
        help=f"a cluster's brokers, and what it is called here; repeat for several; default of NAME: {_UNNAMED}",
    )
    where.add_argument(
        "--command-config",
        type=values.properties,
        metavar="FILE",
        help="properties for the clients of all these clusters, by their Kafka names; they win over the contexts'",
    )
    where.add_argument(
        "--timeout",
        type=values.timeout_ms,
        default=timeout_ms,
        metavar="MS",
        help=f"of each call; default: {timeout_ms}",
    )


def named_servers(text: str) -> Named:
    """``NAME=host:port,…``"""
    name, is_named, servers = text.rpartition("=")
    if is_named and not name:
        raise ArgumentTypeError(f"{text!r}: expected a name before '=', for example prod=kafka-1:9092")
    return Named(name or _UNNAMED, values.servers(servers))


def clusters_of(options: Namespace) -> Mapping[str, Cluster]:
    """The clusters that the options name, by their names. Raises UsageMistake."""
    found: dict[str, Cluster] = {}

    def add(name: str, context: str | None, servers: str | None) -> None:
        if name in found:
            raise UsageMistake(f"two clusters are called {name!r}")
        wanted = Namespace(context=context, bootstrap_server=servers, command_config=options.command_config)
        found[name] = cluster_of(wanted)
        check(found[name])

    for name in options.context:
        add(name, name, None)
    for named in options.bootstrap_server:
        add(named.name, None, named.servers)
    if not found:
        cluster = cluster_of(Namespace(context=None, bootstrap_server=None, command_config=options.command_config))
        check(cluster)
        found[cluster.source.removeprefix("--context ") if cluster.source != "--command-config" else _UNNAMED] = cluster
    return found


CLUSTER = Column("cluster", "the cluster's name", in_table=False)
"""Tables have it where several clusters are asked."""


def run_reports(options: Namespace, report_of: Callable[[Namespace], Report]) -> int:
    """Ask all clusters that the options name at the same time, write one report, and give the exit status.

    Each is asked by itself: what fails of one is its own problem. Rows have the name of their cluster in the column
    CLUSTER, and so have problems and remarks where there are several.
    """
    try:
        clusters = clusters_of(options)
        report = report_of(options)
        if len(clusters) > 1:
            report = report._replace(with_columns=[*report.with_columns, CLUSTER.name])
        return write_report(options, report, lambda progress: _all_pages(clusters, report, options, progress))
    except UsageMistake as mistake:
        options.refuse(str(mistake))
        raise


async def _all_pages(
    clusters: Mapping[str, Cluster], report: Report, options: Namespace, progress: Progress
) -> AsyncGenerator[Page, None]:
    """The pages of all clusters, in the order in which these were named."""

    async def ask(name: str, cluster: Cluster) -> list[Page]:
        is_one = len(clusters) == 1
        pages = pages_of(cluster, report, options, progress)
        return [_named(page, name, is_one=is_one) async for page in pages]

    asked = [asyncio.create_task(ask(name, cluster)) for name, cluster in clusters.items()]
    try:
        for each in asked:
            for page in await each:
                yield page
    finally:
        for each in asked:
            each.cancel()
        await asyncio.gather(*asked, return_exceptions=True)


def _named(page: Page, name: str, *, is_one: bool) -> Page:
    rows = [{**row, CLUSTER.name: name} for row in page.rows]
    if is_one:
        return page._replace(rows=rows)
    problems = [problem._replace(cluster=name) for problem in page.problems]
    return page._replace(rows=rows, problems=problems, remarks=[f"{name}: {remark}" for remark in page.remarks])


def add_choices(command: ArgumentParser) -> None:
    """The arguments that say which groups and topics to look at."""
    what = command.add_argument_group("what is looked at")
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
            help=f"{meaning}; a name or a glob; repeat for several",
        )
    what.add_argument("--regex", action="store_true", help="names are regular expressions, for the whole name")


def choice_of(options: Namespace, what: str) -> Choice:
    """What was typed for groups or topics: ``group`` or ``topic``. Raises UsageMistake."""

    def names(argument: str) -> Names:
        try:
            return Names(getattr(options, argument.replace("-", "_")), regex=options.regex)
        except BadPattern as problem:
            raise UsageMistake(f"argument --{argument}: {problem}") from None

    return Choice(names(what), names(f"except-{what}"))
