"""Commands over a cluster: the options that select it, the output of the report, and progress of long runs."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from argparse import Namespace
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from typing import Any, NamedTuple

from groupkeeper.cli.framework import context_files, garbage, render, values
from groupkeeper.cli.framework.commands import ArgumentParser, UsageMistake, refusing
from groupkeeper.cli.framework.output import complain, flush, say
from groupkeeper.cli.framework.reports import Page, Problem, Schema, Value, problem_of
from groupkeeper.cli.framework.terminal import Progress, columns_of, has_colour, is_terminal
from groupkeeper.client.addresses import Address, parse_bootstrap_servers
from groupkeeper.client.admin import Admin
from groupkeeper.client.errors import ClientError
from groupkeeper.coroutines import run_coroutine
from groupkeeper.protocol.errors import KafkaError

TIMEOUT_MS = 30_000
TIMEOUT_PROPERTY = "default.api.timeout.ms"

PATIENCE_S = 1.0
"""After this time without a connection, the state of each broker address is shown."""

Pages = Callable[["ClusterSession"], AsyncIterator[Page]]
"""The body of a command: sends requests, and yields its report page by page. An exception is the last problem."""


class Cluster(NamedTuple):
    """A cluster: its address, its clients' properties, and their source, for messages. `protected`: the name of its
    context, if that is protected.
    """

    bootstrap_server: str
    properties: Mapping[str, str]
    source: str = "--bootstrap-server"
    context: str | None = None
    protected: str | None = None


class ClusterSession(NamedTuple):
    """The client of a command."""

    admin: Admin
    options: Namespace
    progress: Progress
    is_secured: bool = False
    """Whether it uses TLS or SASL: brokers may then hide things from its user."""
    cluster: str | None = None
    """The cluster's name, with several clusters; None: there is one."""
    context: str | None = None
    """The name of the context in use; None: none."""
    protected: str | None = None
    """The name of the context that protects this cluster; None: none is known."""
    timeout_ms: int = TIMEOUT_MS

    def note(self, text: str) -> None:
        """Write a note to standard error at once, instead of at the end of the report."""
        self.progress.clear()
        complain(render.note_text(text if self.cluster is None else f"{self.cluster}: {text}"))


class ClusterReport(NamedTuple):
    """The report of a command."""

    schema: Schema
    pages: Pages
    more: Mapping[str, Value] = {}
    """Facts about the whole; those of a page override them."""
    with_columns: Sequence[str] = ()
    """Shown although tables leave them out by default."""
    is_plain: bool = False
    """Whether it has no rows."""
    has_lines: bool = False
    """Whether it has no end, so JSON is one object for each row."""
    in_order: Callable[[AsyncIterator[Page]], AsyncGenerator[Page, None]] | None = None
    """Sorts the rows of all pages; None: they stay as they come."""
    may_lack: bool = False
    """Whether, with several clusters, a named group may be missing in some if another one has it."""


OTHERWISE = (
    f"${context_files.VARIABLE}, else the one in use (groupkeeper context use), unless --bootstrap-server is given"
)


def add_cluster(command: ArgumentParser, *, may_be_several: bool = False) -> None:
    """Adds the options that select the cluster, or several, and the format of the report."""
    where = command.add_argument_group("cluster")
    where.add_argument(
        "--bootstrap-server", type=values.servers, help="brokers to connect to first; default: those of the context"
    )
    add_context(where, may_be_several=may_be_several)
    add_client(where)
    add_output(command)


def add_context(where: argparse._ArgumentGroup, *, may_be_several: bool, otherwise: str = OTHERWISE) -> None:
    """Adds `--context`: one, or a list. `otherwise`: the default, for the help."""
    default = f"default: {otherwise}"
    if may_be_several:
        meaning = "a cluster saved under this name, or a glob such as '*' for all that match"
        where.add_argument("--context", action="append", metavar="NAME", help=f"{meaning}; {default}")
    else:
        where.add_argument("--context", metavar="NAME", help=f"the cluster saved under this name; {default}")


def add_client(where: argparse._ArgumentGroup, whose: str = "the client", timeout_ms: int = TIMEOUT_MS) -> None:
    """Adds the options for properties of the client, and for the time of a call. For the help: `whose` properties, and
    `timeout_ms`, the default without a property.
    """
    where.add_argument(
        "--command-config",
        type=values.properties,
        help=f"properties for {whose}, by their Kafka names; they override the context's",
    )
    where.add_argument(
        "--property",
        action="append",
        type=values.client_property,
        help="a property for the client, which overrides those of files; other users can see it "
        "in the process list: put secrets into a file or a context",
    )
    where.add_argument(
        "--timeout",
        type=values.span_ms,
        help="the limit of each call to a cluster, with all its retries; default: default.api.timeout.ms of the "
        f"properties, else {timeout_ms // 1000}s",
    )


def timeout_of(cluster: Cluster, given_ms: int | None, otherwise_ms: int = TIMEOUT_MS) -> int:
    """The time that a call may take, in milliseconds. Raises UsageMistake for a property that is no time."""
    from groupkeeper.client.settings import Settings

    if given_ms is not None:
        return given_ms
    if TIMEOUT_PROPERTY not in cluster.properties:
        return otherwise_ms
    try:
        return Settings.of_properties(cluster.properties).default_api_timeout_ms
    except ClientError as problem:
        raise UsageMistake(f"argument {cluster.source}: {problem}") from None


def add_output(command: ArgumentParser) -> None:
    """Adds the options for the format of a report."""
    how = command.add_argument_group("output")
    how.add_argument("--output", choices=["table", "json", "csv"], default="table", help="default: table")
    how.add_argument("--wide", action="store_true", help="all columns in the table")
    how.add_argument(
        "--color",
        choices=["auto", "always", "never"],
        default="auto",
        help="default: auto, on a terminal unless NO_COLOR is set",
    )


def cluster_of(options: Namespace) -> Cluster:
    """The cluster that the options, the environment and the context in use name, in this order. Raises UsageMistake."""
    name = options.context
    if name is None and options.bootstrap_server is None:
        name = os.environ.get(context_files.VARIABLE) or context_files.current()
    own = dict(getattr(options, "property", ()))
    given: Mapping[str, str] = {**(options.command_config or {}), **own}
    source = "--bootstrap-server" if name is None else f"--context {name}"
    if given:
        source = "--property" if own else "--command-config"
    if name is None:
        if options.bootstrap_server is None:
            raise UsageMistake(
                "no cluster is named: give --bootstrap-server HOST:PORT or --context NAME, "
                f"set {context_files.VARIABLE}, or choose one with 'groupkeeper context use NAME'"
            )
        note_misspelt(given)
        return Cluster(options.bootstrap_server, given, source)
    try:
        context = context_files.read(name)
    except context_files.ContextProblem as problem:
        if is_pattern(name):
            known = ", ".join(context_files.names()) or "none"
            raise UsageMistake(
                f"argument --context: this command is for one cluster, not {name!r}; known: {known}"
            ) from None
        raise UsageMistake(str(problem)) from None
    properties = {**_referred(context), **context.properties, **given}
    if context.properties and context_files.is_open_to_others(name):
        complain(f"note: other users may read the file of context {name}, which can hold secrets\n")
    note_misspelt(properties)
    servers = options.bootstrap_server or context.bootstrap_server
    return Cluster(servers, properties, source, name, name if context.is_protected else None)


def is_pattern(context: str) -> bool:
    """Whether the text is a glob, for several contexts."""
    return any(char in context for char in "*?[")


def admin_of(cluster: Cluster, given_ms: int | None = None, otherwise_ms: int = TIMEOUT_MS) -> Admin:
    """The cluster's client, not connected yet. Raises UsageMistake when its properties make no client."""
    timeout_ms = timeout_of(cluster, given_ms, otherwise_ms)
    try:
        return Admin(cluster.bootstrap_server, properties=cluster.properties, default_timeout_ms=timeout_ms)
    except ClientError as problem:
        raise UsageMistake(f"argument {cluster.source}: {problem}") from None


def check(cluster: Cluster) -> None:
    """Raises UsageMistake for properties with which no client can be made, and notes probably misspelt ones."""
    note_misspelt(cluster.properties)
    admin_of(cluster)


def note_misspelt(properties: Mapping[str, str]) -> None:
    """Warns about property names that are probably misspelt. Other unknown names are accepted, as files of
    Java's clients may have them.
    """
    if not properties:
        return
    from groupkeeper.cli.framework.properties import misspelt

    for name, meant in misspelt(properties).items():
        complain(f"note: there is no client property {name!r}; did you mean {meant!r}?\n")


def _referred(context: context_files.Context) -> Mapping[str, str]:
    from argparse import ArgumentTypeError

    if context.command_config is None:
        return {}
    try:
        return values.properties(context.command_config)
    except ArgumentTypeError as problem:
        raise UsageMistake(f"context {context.name}: {problem}") from None


def run_report(options: Namespace, report_of: Callable[[Namespace], ClusterReport]) -> int:
    """Run a command, stream its report, and return the exit status."""
    with refusing(options):
        report = report_of(options)
        cluster = cluster_of(options)
        return write_report(options, report, lambda progress: pages_of(cluster, report, options, progress))


def write_report(
    options: Namespace, report: ClusterReport, ask: Callable[[Progress], AsyncGenerator[Page, None]]
) -> int:
    """Write a report page by page, and return the exit status."""
    garbage.look_less_often()  # saves a seventh of the time where there are many rows
    return run_coroutine(_write(options, report, ask))


async def _write(
    options: Namespace, report: ClusterReport, ask: Callable[[Progress], AsyncGenerator[Page, None]]
) -> int:
    writer = _writer(options, report)
    problems: list[Problem] = []
    notes: list[str] = []
    async with Progress() as progress:
        say(writer.begin())
        try:
            async with aclosing(ask(progress)) as pages:
                async for page in pages:
                    progress.clear()
                    say(writer.page(page))
                    flush()
                    problems += page.problems
                    notes += page.notes
                    if report.has_lines:  # there may be no end to tell them at
                        _tell(options, (), page.problems)
        except asyncio.CancelledError:
            # After Ctrl-C, the output so far should be readable, and tell that it is incomplete.
            if options.output == "json" and not report.has_lines:
                say(writer.page(Page(problems=[_INTERRUPTED])) + writer.end())
            raise
        progress.clear()
        say(writer.end())
    _tell(options, [*notes, *_notes_on(writer)], () if report.has_lines else problems)
    return 1 if problems else 0


_INTERRUPTED = Problem("INTERRUPTED", "interrupted: the output may be incomplete")


def print_report(options: Namespace, schema: Schema, page: Page) -> int:
    """Write a report of one page that needs no cluster, and return the exit status."""
    writer = _writer(options, ClusterReport(schema, _nothing))
    say(writer.begin() + writer.page(page) + writer.end())
    return _tell(options, [*page.notes, *_notes_on(writer)], page.problems)


def _notes_on(writer: render.Writer) -> list[str]:
    return [render.CUT] if isinstance(writer, render.TableWriter) and writer.has_cut else []


async def _nothing(session: ClusterSession) -> AsyncIterator[Page]:
    return
    yield


def _tell(options: Namespace, notes: Sequence[str], problems: Sequence[Problem]) -> int:
    """Writes notes and problems to standard error, unless the report has them; returns the exit status."""
    if options.output != "json":
        is_coloured = has_colour(sys.stderr, options.color)
        complain("".join(map(render.note_text, notes)))
        complain("".join(render.problem_text(problem, has_colour=is_coloured) for problem in problems))
    return 1 if problems else 0


def _writer(options: Namespace, report: ClusterReport) -> render.Writer:
    if report.is_plain:
        return render.PlainWriter()
    if options.output == "json" and report.has_lines:
        return render.JsonLinesWriter(report.schema, encoding=sys.stdout.encoding)
    if options.output == "json":
        return render.JsonWriter(report.schema, report.more, encoding=sys.stdout.encoding)
    if options.output == "csv":
        return render.CsvWriter(report.schema)
    every = [column.name for column in report.schema.columns]
    return render.TableWriter(
        report.schema,
        has_colour=has_colour(sys.stdout, options.color),
        with_columns=every if options.wide else report.with_columns,
        limit=None if options.wide else columns_of(sys.stdout) or render.WIDTH,
        cuts_names=is_terminal(sys.stdout),
        encoding=sys.stdout.encoding,
    )


async def pages_of(
    cluster: Cluster, report: ClusterReport, options: Namespace, progress: Progress, name: str | None = None
) -> AsyncGenerator[Page, None]:
    """The pages of one cluster; a failure of the whole is a problem on the last page. Raises UsageMistake."""
    is_secured = cluster.properties.get("security.protocol", "PLAINTEXT").strip().upper() != "PLAINTEXT"
    protected = cluster.protected
    if protected is None and hasattr(options, "execute"):
        protected = context_files.protecting(cluster.bootstrap_server.split(","))
    admin = admin_of(cluster, options.timeout)
    timeout_ms = timeout_of(cluster, options.timeout)
    session = ClusterSession(admin, options, progress, is_secured, name, cluster.context, protected, timeout_ms)
    try:
        async with AsyncExitStack() as stack:
            session.progress.say(f"connecting to {cluster.bootstrap_server}")
            async with beside(tell_of_refusals(cluster.bootstrap_server, timeout_ms, session.note)):
                await stack.enter_async_context(session.admin)
            session.progress.say("" if report.has_lines else f"asking {cluster.bootstrap_server}")
            async for page in report.pages(session):
                yield page
    except (KafkaError, ClientError) as problem:
        yield Page(problems=[problem_of(problem)])


async def tell_of_refusals(bootstrap_server: str, timeout_ms: int, tell: Callable[[str], None]) -> None:
    """Tells why broker addresses refuse connections when none has been made for a while; the client keeps trying."""
    await asyncio.sleep(PATIENCE_S)
    if (refusals := await refusals_of(bootstrap_server)) is not None:
        tell(f"{refusals}; trying until {timeout_ms / 1000:g} s have passed")


@asynccontextmanager
async def beside(*work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Runs the work beside the block. At its end, unfinished work is cancelled and awaited."""
    tasks = [asyncio.create_task(each) for each in work]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def refusals_of(bootstrap_server: str) -> str | None:
    """Why all addresses refuse the client; None: one accepts it."""
    addresses = parse_bootstrap_servers(bootstrap_server)
    refusals = await asyncio.gather(*map(_refusal, addresses))
    return None if None in refusals else ", ".join(map(str, refusals))


async def _refusal(address: Address) -> str | None:
    """Why no client can connect to the address now; None: one can."""
    try:
        async with asyncio.timeout(PATIENCE_S):
            _, writer = await asyncio.open_connection(address.host, address.port)
    except ConnectionRefusedError:
        return f"connection refused by {address}"
    except OSError:  # TimeoutError is one
        return f"no connection yet to {address}"
    writer.close()
    return None
