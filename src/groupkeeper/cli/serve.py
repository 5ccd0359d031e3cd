"""`groupkeeper serve`: watches clusters, and serves metrics and pages, until a signal ends it."""

from __future__ import annotations

import asyncio
import signal
import socket
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from ipaddress import ip_address
from typing import TYPE_CHECKING

from groupkeeper.cli.framework import garbage, values
from groupkeeper.cli.framework.clusters import admin_of
from groupkeeper.cli.framework.commands import Command, UsageMistake, refusing
from groupkeeper.cli.framework.group_arguments import LAG_TO
from groupkeeper.cli.framework.logs import add_log_format, log_to_stderr
from groupkeeper.cli.framework.output import complain
from groupkeeper.cli.framework.several_clusters import add_choices, add_clusters, choice_of, usable_clusters_of
from groupkeeper.cli.framework.typed import way_of
from groupkeeper.cli.serve_access import PageAccess, add_access, admission_of
from groupkeeper.cli.serve_files import ServedFile, ServedFiles, read_file
from groupkeeper.cli.serve_watch import KEPT, ServeWatch
from groupkeeper.cli.sockets import listen
from groupkeeper.client.addresses import Address
from groupkeeper.client.admin import Admin
from groupkeeper.coroutines import run_coroutine
from groupkeeper.live.archive import Archive
from groupkeeper.live.cluster_poll import WantedGroups
from groupkeeper.live.collector import Collector, Schedule, Told
from groupkeeper.live.history import BOUNDS, Bounds, History, HistoryFailed, default_path
from groupkeeper.live.model import ClusterSnapshot
from groupkeeper.live.rules import Rules, read_rules
from groupkeeper.shell import Ways
from groupkeeper.web.exporter import OTHERS, OWN, Choices, Exporter
from groupkeeper.web.series import Level

if TYPE_CHECKING:
    from groupkeeper.cli.framework.commands import ArgumentParser
    from groupkeeper.web.app import Site
    from groupkeeper.web.news import News

_TIMEOUT_MS = 10_000
_OFF = "off"
_PAGES_FIRST_S = 1.0
"""The pause between a poll and writing its series, which takes the event loop as long: open pages load in it."""

_LEVELS = {"partitions": Level.PARTITION, "members": Level.MEMBER}
_DAY_MS = 24 * 3600 * 1000


def _add_arguments(command: ArgumentParser) -> None:
    add_clusters(command, timeout_ms=_TIMEOUT_MS)
    add_choices(command)
    how = command.add_argument_group("polling")
    how.add_argument(
        "--interval",
        type=values.span_ms,
        default=15_000,
        help="from the start of one poll of a cluster to the start of the next; default: 15s",
    )
    how.add_argument("--lag-to", **LAG_TO)
    how.add_argument(
        "--no-record-times",
        action="store_true",
        help="read no records: the lag in seconds is interpolated between the ends of logs at earlier polls",
    )
    _add_served(command)
    add_access(command)
    _add_history(command)


def _add_served(command: ArgumentParser) -> None:
    served = command.add_argument_group("server")
    served.add_argument("--host", default="127.0.0.1", help="address to listen at; default: 127.0.0.1")
    served.add_argument(
        "--port", type=values.port, default=8080, help="port to listen on; 0: any free port; default: 8080"
    )
    served.add_argument(
        "--allowed-host",
        action="append",
        metavar="NAME",
        help="answer requests for this host name, for example behind a proxy; default: any host "
        "name; when listening on a loopback address, only names of this machine",
    )
    served.add_argument(
        "--metric-names",
        type=values.ListOf((OWN, *OTHERS), "NAME", OWN),
        default=[OWN],
        help=f"the names of metrics: {OWN}, or those of {', '.join(OTHERS)}; default: {OWN}",
    )
    served.add_argument(
        "--series",
        type=values.ListOf(_LEVELS, "LEVEL", "partitions"),
        default=[],
        help=f"series beside those of groups and topics: {', '.join(_LEVELS)}",
    )
    served.add_argument(
        "--max-series",
        type=values.count,
        default=Choices().most,
        help=f"most series of each cluster; default: {Choices().most}",
    )
    served.add_argument(
        "--rules",
        metavar="FILE",
        help="limits for groups, and the webhooks that are notified when one is broken (docs/serve.md)",
    )
    add_log_format(served)


def _add_history(command: ArgumentParser) -> None:
    kept = command.add_argument_group("history")
    kept.add_argument(
        "--history",
        metavar="FILE",
        help=f"the file of the history, or '{_OFF}'; default: watched.sqlite beside the journal",
    )
    kept.add_argument(
        "--history-age",
        type=values.age_ms,
        default=BOUNDS.age_ms,
        help=f"remove entries older than this; default: {BOUNDS.age_ms // _DAY_MS}d",
    )
    kept.add_argument(
        "--history-rows",
        type=values.count,
        default=BOUNDS.rows,
        help=f"keep at most N entries of each kind; default: {BOUNDS.rows}",
    )


def _rules(options: Namespace) -> Rules:
    """The rules in the given file. Raises UsageMistake."""
    rules = Rules((), (), {}) if options.rules is None else read_file("--rules", options.rules, read_rules)
    return rules.with_polls(options.interval)


def _run(options: Namespace) -> int:
    try:
        from groupkeeper.web.app import Site, application
        from groupkeeper.web.http_server import serve
        from groupkeeper.web.news import News
    except ImportError as missing:
        complain(f"error: groupkeeper serve needs {missing.name}: pip install '.[serve]' in a checkout brings it\n")
        return 1
    with refusing(options):
        rules = _rules(options)
        clusters = usable_clusters_of(options)
        groups, topics = choice_of(options, "group"), choice_of(options, "topic")
    garbage.look_less_often()
    log_to_stderr(options, "%(asctime)s %(message)s", "%Y-%m-%dT%H:%M:%SZ")
    try:
        bounds = Bounds(options.history_rows, options.history_age)
        history = None if options.history == _OFF else History(options.history or default_path(), bounds)
        kept = {} if history is None else {name: history.kept(name) for name in KEPT}
        listening = listen(options.host, options.port)
    except (HistoryFailed, OSError) as problem:
        complain(f"error: {problem}\n")
        return 1
    openers = {name: partial(admin_of, each, options.timeout, _TIMEOUT_MS) for name, each in clusters.items()}
    archive = Archive(history)
    wanted = WantedGroups(groups, topics, options.lag_to == "lso", not options.no_record_times, rules.short_ms)
    schedule = Schedule(options.interval / 1000, wanted)
    collectors = [Collector(name, opener, schedule, archive) for name, opener in openers.items()]
    ways = {name: way_of(options, cluster) for name, cluster in clusters.items()}
    admission = _admission(options, openers, collectors, listening, ways)
    watch = ServeWatch(archive, rules, kept, ways, admission.record)
    levels = frozenset(_LEVELS[name] for name in options.series)
    exporter = Exporter(Choices(options.metric_names, levels, options.max_series), watch.samples)
    for collector in collectors:
        exporter.take(collector.snapshot)
    news = News()
    files = ServedFiles([*_files_of_rules(options, watch, collectors), *admission.files])
    site = Site(exporter, lambda: [each.snapshot for each in collectors], archive, *admission[:3], news,
                lambda: [*files.notes(), *watch.notes()], watch.alerts, admission.oidc, ways)  # fmt: skip
    told = _told(site, news, watch, exporter, min(_PAGES_FIRST_S, 0.1 * schedule.interval_s))

    async def run() -> None:
        stop = _stopping()
        _announce(list(clusters), listening, admission)
        app = application(site, _hosts(options, listening))
        try:
            reading = () if admission.record is None else (admission.record.run(),)
            beside = (news.run(), files.run(), *reading, *watch.beside())
            await serve(collectors, app, listening, stop, told, *beside)
        finally:
            await watch.keep()

    try:
        run_coroutine(run())
    finally:
        archive.close()
    return 0


def _files_of_rules(options: Namespace, watch: ServeWatch, collectors: Sequence[Collector]) -> list[ServedFile]:
    def follow() -> None:
        rules = _rules(options)
        watch.replace(rules)
        for each in collectors:
            each.look_from(rules.short_ms)

    return [] if options.rules is None else [ServedFile(options.rules, follow)]


def _told(site: Site, news: News, watch: ServeWatch, exporter: Exporter, pages_first_s: float) -> Told:
    async def show(snapshot: ClusterSnapshot) -> None:
        site.forget(snapshot.cluster)
        news.tell(snapshot.cluster)
        if news.streams:
            await asyncio.sleep(pages_first_s)

    async def take(snapshot: ClusterSnapshot) -> None:
        watch.take(snapshot)
        await exporter.take_aside(snapshot)

    return Told(show, take)


def _stopping() -> asyncio.Event:
    """An event that a signal sets."""
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    return stop


def _announce(clusters: Sequence[str], listening: socket.socket, admission: PageAccess) -> None:
    host, port = listening.getsockname()[:2]
    address = f"http://{Address(host, port)}/"
    complain(f"serving {', '.join(clusters)} at {address}\n")
    if admission.token:
        complain(f"to change something, log in at {address}login with {admission.token}\n")


def _admission(
    options: Namespace,
    openers: Mapping[str, Callable[[], Admin]],
    collectors: Sequence[Collector],
    listening: socket.socket,
    ways: Ways,
) -> PageAccess:
    def tell(cluster: str) -> None:
        for each in collectors:
            if each.cluster == cluster:
                each.hurry()

    try:
        return admission_of(options, openers, tell, ways, is_local=_is_local(listening))
    except UsageMistake as mistake:
        listening.close()
        options.refuse(str(mistake))
        raise


def _hosts(options: Namespace, listening: socket.socket) -> frozenset[str] | None:
    """The host names that requests may have; None: any."""
    from groupkeeper.web.app import LOOPBACK_NAMES

    # A web page must not reach a server for this machine only by a name that leads here.
    is_any = not _is_local(listening) and not options.allowed_host
    return None if is_any else LOOPBACK_NAMES.union(map(str.lower, options.allowed_host))


def _is_local(listening: socket.socket) -> bool:
    """Whether only this machine can reach the socket."""
    return ip_address(listening.getsockname()[0]).is_loopback


COMMAND = Command(
    _add_arguments,
    _run,
    "Watch clusters, and serve their state: pages for a browser, /metrics for Prometheus and OpenMetrics, /healthz, "
    "/readyz. Brokers are polled on a schedule, never because of an HTTP request. SIGTERM or Ctrl-C ends it.",
    """\
  groupkeeper serve --context '*'
  groupkeeper serve --bootstrap-server localhost:9092 --history history.db --rules rules.toml""",
)
