"""`groupkeeper pipeline`: the offsets topics of clusters as tables, with Spark."""

from __future__ import annotations

import json
import re
import signal
import threading
from argparse import ArgumentTypeError, Namespace
from collections.abc import Callable, Coroutine, Mapping
from functools import cache, partial
from pathlib import Path

from groupkeeper.cli.framework import several_clusters, values
from groupkeeper.cli.framework.clusters import (
    OTHERWISE,
    TIMEOUT_MS,
    TIMEOUT_PROPERTY,
    Cluster,
    beside,
    tell_of_refusals,
)
from groupkeeper.cli.framework.commands import Command, CommandName, Family, refusing
from groupkeeper.cli.framework.output import complain, say
from groupkeeper.cli.pipeline.directory import check_directory, directory, read_offsets
from groupkeeper.cli.pipeline.lake import add_lake, check_lake, keeping, settings_of
from groupkeeper.cli.pipeline.parts import import_part
from groupkeeper.cli.pipeline.privacy import add_privacy, privacy_of
from groupkeeper.cli.pipeline.watch import FollowScreen, Screen
from groupkeeper.coroutines import run_coroutine
from groupkeeper.java_properties import name_in
from groupkeeper.pipeline.checkpoints.folders import local_path
from groupkeeper.pipeline.errors import SourceError
from groupkeeper.rules.words import counted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from groupkeeper.cli.framework.commands import ArgumentParser
    from groupkeeper.operations.plans.journal import ChangeJournal
    from groupkeeper.pipeline.jobs.watch import Summary
    from groupkeeper.pipeline.kafka.options import ClusterOptions, ReadOptions
    from groupkeeper.pipeline.kafka.planning import ReadPlan
    from groupkeeper.pipeline.storage.ledger import NextOffsets

    JobFunction = Callable[[Screen, dict[str, str], Callable[[], ReadPlan], Any], Summary]
    """The work of a job: gets the source's options, and a function that asks the clusters, once, for ranges."""

_FAILED = 1
_FOLLOWING_TIMEOUT_MS = 10_000
_FEW = 500_000
"""Spark reads at most this many records before Java's better compiler pays. In other jobs Java hardly works: Python
tasks read and make the rows.
"""
_OF_PLANS = ("as-of",)
_OF_LOGS = ("as-of", "scan-time")
"""Jobs that read the logs from their starts, whatever the tables have."""
_ENDLESS = "follow"
_DECODED = {"rows": "decoded"}
_MASTER = re.compile(
    r"local(\[(\d+|\*)(, *\d+)?\])?|local-cluster\[\d+, *\d+, *\d+\]|spark://[^\s,/]+:\d+(,[^\s,/]+:\d+)*|yarn|k8s://\S+"
)
_REMOTE = re.compile(r"sc://[^\s/:;]+(:\d+)?(/.*)?|sc://\[\S+")
_SETTING = re.compile(r"spark\.[^\s=]+")
_OF_OPTIONS = {"spark.master": "--master", "spark.remote": "--remote"}


def add_clusters(parser: ArgumentParser, otherwise: str = OTHERWISE, timeout_ms: int = TIMEOUT_MS) -> None:
    """Adds the options that select clusters. For the help: `otherwise`, the default, and `timeout_ms`, the client's."""
    several_clusters.add_clusters(parser, otherwise=otherwise, unnamed="the cluster's id", timeout_ms=timeout_ms)


def add_output(parser: ArgumentParser, text_output: str = "the directory") -> None:
    """Adds the options for the tables' directory and the output; `text_output` names the text output in the help."""
    add_directory(parser)
    parser.add_argument(
        "--output", choices=("text", "json"), default="text", metavar="{text,json}",
        help=f"format of standard output: {text_output}, or a JSON object that sums up; default: text",
    )  # fmt: skip


def add_directory(parser: ArgumentParser) -> None:
    """Adds the option for the tables' directory."""
    parser.add_argument(
        "--tables", metavar="DIR", type=directory, required=True,
        help="the directory of the tables: any path Spark writes to",
    )  # fmt: skip


def add_sources(parser: ArgumentParser) -> None:
    """Adds the arguments of a refresh beside clusters and directory: other sources, and where Spark runs."""
    parser.add_argument(
        "--checkpoint", action="append", dest="checkpoints", type=values.checkpoint,
        help="the checkpointLocation of a Structured Streaming query: any path that Spark reads, or a glob; the query "
        "is shown among the groups of the cluster, as NAME or else as its folder",
    )  # fmt: skip
    add_owners(parser)
    parser.add_argument(
        "--journal", action="append", metavar="PATH", dest="journals", type=_journal,
        help="a journal of groupkeeper (a file, kafka://CONTEXT/TOPIC or kafka://HOST:PORT/TOPIC), or a folder with "
        "journals of several hosts (*.jsonl, at any depth), for the table rewinds: who moved offsets, and by which "
        "command; this user's journal: ~/.local/state/groupkeeper/journal.jsonl",
    )  # fmt: skip
    add_privacy(parser)
    add_spark(parser)


def add_owners(parser: ArgumentParser) -> None:
    """Adds the argument that names the file of owners."""
    parser.add_argument(
        "--owners", metavar="FILE", type=_owners, default=(),
        help="a file that says who owns groups and topics, for the table owners: lines of [group:|topic:]PATTERN "
        "OWNER; the last line that matches counts",
    )  # fmt: skip


def _owners(path: str) -> Any:
    from groupkeeper.pipeline.owners import parse_owners

    try:
        return parse_owners(values.text_of(path), path)
    except SourceError as error:
        raise ArgumentTypeError(str(error)) from None


def _journal(path: str) -> str | ChangeJournal:
    from groupkeeper.cli.framework.journals import checked
    from groupkeeper.operations.errors import OperationRefused
    from groupkeeper.operations.plans.topic_journal import SCHEME

    if path.startswith(SCHEME):
        try:
            return checked(path)
        except OperationRefused as refused:
            raise ArgumentTypeError(str(refused)) from None
    where = Path(path).expanduser()
    if not where.is_file() and not (where.is_dir() and next(where.rglob("*.jsonl"), None)):
        raise ArgumentTypeError(f"{path!r}: there is no journal, and no folder that has some (*.jsonl)")
    return path


def add_spark(parser: ArgumentParser) -> None:
    """Adds the options that select where Spark runs."""
    how = parser.add_argument_group("Spark")
    where = how.add_mutually_exclusive_group()
    where.add_argument(
        "--master", type=_master, metavar="URL", help="Spark's master; default: all cores of this machine"
    )
    where.add_argument("--remote", type=_remote, metavar="URL", help="a Spark Connect server, sc://HOST:PORT")
    how.add_argument(
        "--conf", action="append", metavar="KEY=VALUE", dest="settings", type=_setting,
        help="a Spark setting, for example spark.driver.memory=4g",
    )  # fmt: skip


def _master(text: str) -> str:
    if not _MASTER.fullmatch(text):
        raise ArgumentTypeError(f"{text!r}: expected local[*], spark://HOST:PORT, yarn or k8s://https://HOST:PORT")
    return text


def _remote(text: str) -> str:
    if not _REMOTE.fullmatch(text):
        raise ArgumentTypeError(f"{text!r}: expected sc://HOST:PORT")
    return text


def _setting(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not _SETTING.fullmatch(key):
        named = key if equals else name_in(text)  # the rest may be a secret
        quoted = f"{named!r}: " if named else ""
        raise ArgumentTypeError(f"{quoted}expected spark.NAME=VALUE, for example spark.driver.memory=4g")
    if key in _OF_OPTIONS:
        raise ArgumentTypeError(f"{key} is set by {_OF_OPTIONS[key]}")
    return key, value


def _add_snapshot_arguments(parser: ArgumentParser, timeout_ms: int = TIMEOUT_MS) -> None:
    add_output(parser)
    add_clusters(parser, timeout_ms=timeout_ms)
    add_sources(parser)
    add_lake(parser)


def check_checkpoints(options: Namespace) -> None:
    """Refuses checkpoints whose cluster is unclear."""
    clusters = named_clusters(options) if options.checkpoints else []
    names = [name for name, _ in clusters if name]
    for each in options.checkpoints:
        if each.cluster is None and len(clusters) > 1:
            example = f"{names[0] if names else 'NAME'}:{each.name or ''}={each.path}"
            options.refuse(f"argument --checkpoint: say which cluster it reads, for example {example}")
        elif each.cluster is not None and each.cluster not in names:
            options.refuse(f"argument --checkpoint: no cluster is called {each.cluster}: name it by NAME=HOST:PORT")


def _refreshing(name: str, *, from_start: bool = False) -> Callable[[Namespace], int]:
    def run(options: Namespace) -> int:
        check_checkpoints(options)
        check_lake(options)
        return run_job(options, name, snapshot_work(options, from_start=from_start))

    return run


def _given(options: Namespace) -> dict[str, Any]:
    """What the jobs that refresh the tables are given beside clusters and directory."""
    own = {name: getattr(options, name) for name in ("checkpoints", "owners", "journals")}
    return {**own, **keeping(options)}


def snapshot_work(options: Namespace, *, from_start: bool = False) -> JobFunction:
    """The work of `snapshot`, or of `rebuild`, for run_job."""

    def work(screen: Screen, source: dict[str, str], ask: Callable[[], ReadPlan], spark: Any) -> Summary:
        snapshot, given = import_part("jobs.snapshot").snapshot, _given(options)
        summary: Summary = snapshot(spark, source, options.tables, screen, ask=ask, from_start=from_start, **given)
        return summary

    return work


def _add_follow_arguments(parser: ArgumentParser) -> None:
    _add_snapshot_arguments(parser, _FOLLOWING_TIMEOUT_MS)
    parser.add_argument(
        "--interval", type=values.span_s, default=5.0, help="between two polls of the clusters; default: 5s"
    )
    parser.add_argument(
        "--refresh", type=values.span_s, default=30.0,
        help="the shortest time between rebuilds of the derived tables; default: 30s",
    )  # fmt: skip


def _follow(options: Namespace) -> int:
    if options.remote is not None:
        options.refuse("follow writes from the machine that it is started on: give --master, not --remote")
    check_checkpoints(options)
    check_lake(options)
    stop = threading.Event()

    def work(screen: Screen, source: dict[str, str], ask: Callable[[], ReadPlan], spark: Any) -> Summary:
        def end(number: int, frame: object) -> None:
            if stop.is_set():  # the work does not end
                raise import_part("jobs.running").InterruptedAtWork(number)
            stop.set()
            # In a thread: the program may hold the screen's lock now.
            said = "stopping after the current refresh; press Ctrl-C again to stop at once"
            threading.Thread(target=screen.say, args=(said,)).start()

        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, end)
        ui = spark.sparkContext.uiWebUrl
        jobs = f"; Spark shows its jobs at {ui}" if ui else ""
        screen.say(f"following, the first refresh takes longest; Ctrl-C ends it{jobs}")
        summary: Summary = import_part("jobs.following.job").follow(
            spark, source, options.tables, stop, screen,
            interval_s=options.interval, refresh_s=options.refresh, **_given(options),
        )  # fmt: skip
        return summary

    return run_job(options, _ENDLESS, work)


def run_job(options: Namespace, name: str, work: JobFunction, more: Mapping[str, str] = _DECODED) -> int:
    """Query the clusters, start Spark, run the job and write the summary; returns the exit status. `more`: options of
    the source.
    """
    screen = FollowScreen() if name == _ENDLESS else Screen()
    try:
        summary = do_job(options, name, work, screen, more)
    except SourceError as error:
        complain(f"error: {error}\n")
        if options.output == "json":
            say(_json_text(options, name, None, str(error)))
        return _FAILED
    say(_json_text(options, name, summary) if options.output == "json" else f"{options.tables}\n")
    told = f", with {counted(len(summary.problems), 'problem')}, shown above" if summary.problems else ""
    screen.say(f"done in {screen.seconds:.1f} s{told}")
    return _FAILED if summary.problems else 0


def do_job(
    options: Namespace, name: str, work: JobFunction, screen: Screen, more: Mapping[str, str] = _DECODED
) -> Summary:
    """As run_job, but writes no summary, and failures raise SourceError."""
    check_directory(options)
    with screen.shown():
        source = source_of(options)
        settings = settings_of(options)
        import_part("session").check_can_start(settings, master=options.master, remote=options.remote)
        if name == _ENDLESS:
            settings = {"spark.ui.enabled": "true", "spark.port.maxRetries": "100", **settings}
        parsed = import_part("kafka.options").parse_options({**source, **more})
        known = {} if name in _OF_LOGS else read_offsets(options.tables)
        ask = cache(partial(_survey, parsed, screen, known, has_end=name != _ENDLESS))
        is_tried = _is_tried(options)
        is_few = not is_tried and sum(each.size for each in ask().ranges) < _FEW
        screen.doing("starting Spark")
        is_short = name != _ENDLESS and (name not in _OF_PLANS or is_few)
        session = import_part("jobs.running").session
        with session(name, master=options.master, remote=options.remote, settings=settings, is_short=is_short) as spark:
            screen.stage = partial(import_part("runtime.executors").stage_of, spark)
            try:
                summary = work(screen, source, ask, spark)
            finally:
                screen.stage = lambda: None
            screen.doing("")
    return summary


def _is_tried(options: Namespace) -> bool:
    """Whether only a start of Spark shows errors in its options, or in a directory elsewhere: then clusters are asked
    after the start. On this machine they are asked first, as Spark takes its time.
    """
    return bool(options.master or options.remote or options.settings) or local_path(options.tables) is None


def _json_text(options: Namespace, name: str, summary: Summary | None, error: str | None = None) -> str:
    found: dict[str, object] = {"schema": f"pipeline-{name}/1", "output": options.tables}
    if summary is None:
        found |= {"tables": [], "notes": [], "problems": [{"cluster": None, "message": error}]}
    else:
        rows, new = summary.rows, summary.new_rows
        tables = [{"table": each, "rows": rows.get(each), "new_rows": new.get(each)} for each in {**new, **rows}]
        problems = [each._asdict() for each in summary.problems]
        found |= {"tables": tables, "notes": summary.notes, "problems": problems}
    return json.dumps(found, indent=2) + "\n"


def named_clusters(options: Namespace) -> list[tuple[str, Cluster]]:
    """The clusters that the options name, each with its name; "": it is called by its cluster id."""
    if not hasattr(options, "named_clusters"):  # notes about them are written once
        with refusing(options):
            found = several_clusters.usable_clusters_of(options, by_servers=True)
        options.named_clusters = [
            ("" if name == cluster.bootstrap_server else name, cluster) for name, cluster in found.items()
        ]
    named: list[tuple[str, Cluster]] = options.named_clusters
    return named


def source_of(options: Namespace) -> dict[str, str]:
    """The source's options for the named clusters."""
    found = [
        # The tables are built from committed records: isolation.level, in the file for consumers, is ignored.
        {f"kafka.{key}": value for key, value in cluster.properties.items() if key != "isolation.level"}
        | {"kafka.bootstrap.servers": cluster.bootstrap_server}
        | ({"cluster": name} if name else {})
        for name, cluster in named_clusters(options)
    ]
    shared = privacy_of(options)
    if options.timeout is not None:
        found = [{**each, f"kafka.{TIMEOUT_PROPERTY}": str(options.timeout)} for each in found]
        shared["kafkaConsumer.pollTimeoutMs"] = str(options.timeout)
    return (found[0] if len(found) == 1 else {"clusters": json.dumps(found)}) | shared


def _survey(parsed: ReadOptions, screen: Screen, known: NextOffsets, *, has_end: bool) -> ReadPlan:
    """The ranges to read; none for a job without an end, which asks the clusters itself. Prints how many records are
    past the `known` offsets. Raises SourceError when no cluster can be read.
    """
    from groupkeeper.pipeline.kafka.planning import ReadPlan

    if not has_end:
        return ReadPlan([], {}, {})
    screen.doing("asking the clusters")
    found = run_coroutine(_planned(parsed, screen))
    for name in dict.fromkeys(each.name for each in found.ranges):
        own, read = [each for each in found.ranges if each.name == name], known.get(name, {})
        size = sum(max(0, each.end - max(each.start, read.get(each.partition, 0))) for each in own)
        noun = "new record" if read else "record"
        screen.say(f"cluster {name}: {counted(len(own), 'partition')}, {counted(size, noun)} at most")
    if not found.ranges:
        *others, last = found.failed.values()
        for error in others:
            complain(f"error: {error}\n")
        raise last if found.failed else SourceError("there are no partitions to read")
    return found


async def _planned(options: ReadOptions, screen: Screen) -> ReadPlan:
    """Plans the reading; an address that refuses connections is named soon, while it is still tried."""
    from groupkeeper.client.settings import Settings
    from groupkeeper.pipeline.kafka.planning import plan

    def telling(cluster: ClusterOptions) -> Coroutine[Any, Any, None]:
        timeout_ms = Settings.of_properties(cluster.properties).default_api_timeout_ms
        return tell_of_refusals(cluster.bootstrap_servers, timeout_ms, lambda said: screen.say(f"note: {said}"))

    async with beside(*map(telling, options.clusters)):
        return await plan(options)


SNAPSHOT = Command(
    _add_snapshot_arguments,
    _refreshing("snapshot"),
    "Append the new records of the clusters' offsets topics to the history in DIR, and bring all other tables up to "
    "date (docs/pipeline.md). Spark runs on this machine by default.",
    """\
  groupkeeper pipeline snapshot --bootstrap-server localhost:9092 --tables tables
  groupkeeper pipeline snapshot --context '*' --tables tables --table-format delta""",
)
REBUILD = Command(
    _add_snapshot_arguments,
    _refreshing("rebuild", from_start=True),
    "Like snapshot, but all tables are rebuilt from the whole history in DIR: for use when a table is damaged. The "
    "history itself (commits, group_records) stays as it is.",
    """\
  groupkeeper pipeline rebuild --bootstrap-server localhost:9092 --tables tables""",
)
FOLLOW = Command(
    _add_follow_arguments,
    _follow,
    "Like snapshot, again and again until Ctrl-C or SIGTERM. After a kill at any moment it continues where it stopped: "
    "no row is lost or duplicated.",
    """\
  groupkeeper pipeline follow --bootstrap-server localhost:9092 --tables tables
  groupkeeper pipeline follow --context '*' --tables tables --interval 5s --refresh 1m""",
)

FAMILY = Family(
    {
        "snapshot": CommandName("bring the tables up to date", "pipeline.family:SNAPSHOT"),
        "rebuild": CommandName("rebuild all tables from the whole history", "pipeline.family:REBUILD"),
        "follow": CommandName("keep the tables up to date", "pipeline.family:FOLLOW"),
        "report": CommandName("show the tables as a page, with a summary", "pipeline.report:REPORT"),
        "quality": CommandName("check whether the tables can be relied on", "pipeline.quality:QUALITY"),
        "forget": CommandName("remove the rows of groups from the tables", "pipeline.forget:FORGET"),
        "as-of": CommandName("find the committed offsets of an earlier time", "pipeline.questions:AS_OF"),
        "scan-time": CommandName("find the first offsets at or after a time", "pipeline.questions:SCAN_TIME"),
    }
)
