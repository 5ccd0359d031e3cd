"""`groupkeeper pipeline as-of` and `scan-time`: committed offsets at a past time, and offsets by time, read from the
logs.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from argparse import Namespace
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from groupkeeper.cli.framework import values
from groupkeeper.cli.framework.clusters import is_pattern
from groupkeeper.cli.framework.commands import Command
from groupkeeper.cli.framework.execution import words_to_apply
from groupkeeper.cli.framework.files import Unsaved, check_directory_writable, check_writable, save
from groupkeeper.cli.framework.typed import way_of, words_of
from groupkeeper.cli.pipeline.family import add_clusters, add_output, add_spark, named_clusters, run_job
from groupkeeper.cli.pipeline.parts import import_part
from groupkeeper.cli.pipeline.privacy import add_privacy_key
from groupkeeper.cli.pipeline.watch import Screen
from groupkeeper.coroutines import run_coroutine
from groupkeeper.operations.selection import Names
from groupkeeper.pipeline.errors import SourceError
from groupkeeper.pipeline.jobs.watch import Problem
from groupkeeper.rules.words import counted
from groupkeeper.shell import Way, command
from groupkeeper.shell import text as text_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from groupkeeper.cli.framework.commands import ArgumentParser
    from groupkeeper.client.admin import Admin
    from groupkeeper.operations.plans.model import GroupPlan
    from groupkeeper.pipeline.jobs.restoring import OffsetThen, Then
    from groupkeeper.pipeline.jobs.watch import Run, Summary
    from groupkeeper.pipeline.kafka.planning import ReadPlan

_LONGEST_NAME = 200


def _add_time(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--time", type=values.datetime_ms, required=True,
        help="the time to look up: ISO 8601, UTC without a zone, for example 2026-01-31T23:59:59",
    )  # fmt: skip


def _add_as_of_arguments(parser: ArgumentParser) -> None:
    _add_time(parser)
    parser.add_argument(
        "--group", action="append", metavar="GROUP", dest="groups",
        help="a group to plan for, or a glob; default: all groups",
    )  # fmt: skip
    parser.add_argument(
        "--save", metavar="FILE", help="write a plan for 'groupkeeper apply' that brings the groups back (one cluster)"
    )
    parser.add_argument(
        "--save-kip122", metavar="DIR",
        help="write a plan for 'kafka-consumer-group-reset --execute' for each group: DIR/GROUP.json (one cluster)",
    )  # fmt: skip
    parser.add_argument(
        "--save-starting-offsets", metavar="DIR",
        help="write the option startingOffsets for a Spark query that takes a group's place: DIR/GROUP.json (one "
        "cluster)",
    )  # fmt: skip
    add_output(parser)
    add_clusters(parser)
    add_privacy_key(parser)
    add_spark(parser)


def _as_of(options: Namespace) -> int:
    is_planned = bool(options.save or options.save_kip122 or options.save_starting_offsets)
    if options.time > time.time_ns() // 10**6:
        options.refuse("argument --time: it is in the future")
    for name in ("save", "save_kip122", "save_starting_offsets"):
        check = check_writable if name == "save" else check_directory_writable
        try:
            if path := getattr(options, name):
                check(path)
        except Unsaved as problem:
            options.refuse(f"argument --{name.replace('_', '-')}: {problem}")
    ways = [way_of(options, cluster) for _, cluster in named_clusters(options)] if is_planned else []
    if len(ways) > 1:
        options.refuse("a plan is for one cluster: give one --bootstrap-server or --context")

    def work(screen: Screen, source: dict[str, str], ask: Callable[[], ReadPlan], spark: Any) -> Summary:
        past = import_part("jobs.as_of").as_of(
            spark, source, options.tables, options.time, screen,
            wants=Names(options.groups).matches if is_planned else None,
            ask=ask,
        )  # fmt: skip
        run: Run = past.run
        if is_planned:
            (name,) = {each.name for each in ask().ranges}  # the directory may have other clusters, too
            offsets = past.offsets.get(name, [])
            known = {each.group_id for each in offsets}
            wanted = Names(options.groups).among(known)
            for group in (each for each in wanted.exact if each not in known):
                run.fail(Problem(None, f"group {group} had no committed offsets then"))
            offsets = [each for each in offsets if wanted.matches(each.group_id)]
            then = run_coroutine(_of_topics_now(source, offsets, run))
            _save(options, source, ways[0], then, run, screen)
        return run.summary

    return run_job(options, "as-of", work)


async def _of_topics_now(source: dict[str, str], offsets: list[OffsetThen], run: Run) -> Then:
    """The offsets without those of topics that were created again since, which are reported."""
    from groupkeeper.pipeline.jobs.restoring import of_topics_now, then_of

    async with _admin_of(source) as admin:
        found = await of_topics_now(admin, offsets)
    for text in found.left_out:
        run.fail(Problem(None, text))
    for text in found.doubts:
        run.note(text)
    return then_of(found.offsets)


def _save(options: Namespace, source: dict[str, str], way: Way, then: Then, run: Run, screen: Screen) -> None:
    """Writes the plan to its file. Raises SourceError."""
    from groupkeeper.cli.framework.render import explained
    from groupkeeper.operations.plans import document
    from groupkeeper.operations.plans.consequences import trouble_problem
    from groupkeeper.pipeline.jobs.restoring import kip122_plans

    if not then:
        run.fail(Problem(None, "there are no committed offsets of that time to plan for: no plan is written"))
        return
    try:
        if options.save_starting_offsets:
            run_coroutine(_save_starts(options.save_starting_offsets, source, then, run, screen))
        if options.save_kip122:
            os.makedirs(options.save_kip122, exist_ok=True)
            before = {name for name in os.listdir(options.save_kip122) if name.endswith(".json")}
            for group_id, text in kip122_plans(then).items():
                _write(os.path.join(options.save_kip122, _file_name(group_id)), text)
            if others := before - set(map(_file_name, then)):
                run.note(f"{options.save_kip122} has {counted(len(others), 'other plan')} from earlier runs")
            screen.say(f"plans of {counted(len(then), 'group')}: {options.save_kip122}")
        if options.save:
            made = run_coroutine(_made(source, then, options))
            for trouble in made.troubles:
                run.fail(Problem(None, explained(trouble_problem(trouble))))
            for group in made.plan.groups:
                if group.adjustments:
                    run.note(_outside(group))
            _write(options.save, "".join(document.write(made.plan)))
            words = command(way, ["apply", options.save, *words_to_apply(made.plan)])
            screen.say(f"plan of {counted(len(made.plan.groups), 'group')}; to carry it out: {text_of(words)}")
    except OSError as error:
        raise SourceError(f"{error.filename or options.save}: {error.strerror}") from None
    except Unsaved as error:
        raise SourceError(str(error)) from None


def _outside(group: GroupPlan) -> str:
    """Text about offsets outside of the logs: how many, and one of them."""
    from groupkeeper.operations.plans.builder import because

    one = group.adjustments[0]
    count = counted(len(group.adjustments), "offset")
    return f"group {group.group_id}: {count} outside of the log, for example of {one.tp}: {because(one)}"


async def _save_starts(folder: str, source: dict[str, str], then: Then, run: Run, screen: Screen) -> None:
    """Writes a file for each group all of whose topics could be asked."""
    from groupkeeper.operations.queries.starting_offsets import EARLIEST, start_at_offsets

    os.makedirs(folder, exist_ok=True)
    written = 0
    async with _admin_of(source) as admin:
        for group_id, commits in then.items():
            offsets = {tp: commit.offset for tp, commit in commits.items()}
            starts = await start_at_offsets(admin, offsets, otherwise=EARLIEST)
            for tp, why in starts.failed.items():
                text = f"group {group_id}: {tp.topic}-{tp.partition}: {why}: no starting offsets are written"
                run.fail(Problem(None, text))
            for note in starts.notes():
                run.note(f"group {group_id}: {note}")
            if starts.done and not starts.failed:
                _write(os.path.join(folder, _file_name(group_id)), f"{starts.as_json()}\n")
                written += 1
    screen.say(f"starting offsets of {counted(written, 'group')}: {folder}")


def _admin_of(source: dict[str, str]) -> Admin:
    from groupkeeper.client.admin import Admin
    from groupkeeper.pipeline.kafka.options import parse_options

    (cluster,) = parse_options({**source, "rows": "decoded"}).clusters
    return Admin(cluster.bootstrap_servers, properties=cluster.properties)


def _file_name(group_id: str) -> str:
    """The file name of a group's plan; a name that file systems would refuse is cut, and made unique by a digest."""
    name = quote(group_id, safe="")
    if len(name) > _LONGEST_NAME:
        name = f"{name[:_LONGEST_NAME]}-{hashlib.sha256(group_id.encode()).hexdigest()[:16]}"
    return f"{name}.json"


async def _made(source: dict[str, str], then: Then, options: Namespace) -> Any:
    from groupkeeper.operations.plans.recorder import without_secrets
    from groupkeeper.pipeline.jobs.restoring import restore_plan

    async with _admin_of(source) as admin:
        made_by = without_secrets(words_of(options))
        return await restore_plan(admin, then, command=made_by, made_ms=time.time_ns() // 10**6)


def _write(path: str, text: str) -> None:
    save(path, [text], is_private=True)


def _add_scan_time_arguments(parser: ArgumentParser) -> None:
    _add_time(parser)
    parser.add_argument(
        "--topic", action="append", required=True, metavar="TOPIC[:PARTITION,...]", dest="topics",
        help="a topic to scan, or partitions of it",
    )  # fmt: skip
    add_output(parser)
    add_clusters(parser)
    add_spark(parser)


def _scan_time(options: Namespace) -> int:
    chosen = _chosen(options)

    def work(screen: Screen, source: dict[str, str], ask: Callable[[], ReadPlan], spark: Any) -> Summary:
        summary: Summary = import_part("jobs.scan_time").write_scan_time(
            spark, {**source, **chosen}, options.tables, options.time, screen,
        )  # fmt: skip
        return summary

    return run_job(options, "scan-time", work, {"rows": "records", **chosen})


def _chosen(options: Namespace) -> dict[str, str]:
    """The source's option that chooses the partitions."""
    by_topic: dict[str, list[int]] = {}
    for text in options.topics:
        topic, colon, numbers = text.partition(":")
        try:
            by_topic.setdefault(topic, []).extend(int(number) for number in numbers.split(",")) if colon else None
        except ValueError:
            options.refuse(f"argument --topic: {text!r}: expected TOPIC or TOPIC:0,1,2")
    whole = [text for text in options.topics if ":" not in text]
    for text in options.topics:
        if is_pattern(text):
            options.refuse(f"argument --topic: {text!r}: globs are not allowed here: give the topic's whole name")
    if whole and by_topic:
        options.refuse("argument --topic: whole topics and single partitions cannot be combined")
    return {"assign": json.dumps(by_topic)} if by_topic else {"subscribe": ",".join(whole)}


AS_OF = Command(
    _add_as_of_arguments,
    _as_of,
    "Find the committed offsets that groups had at an earlier time. They are written as the table offsets_as_of in "
    "DIR, and as a plan that brings the groups back to them. The history in DIR is brought up to date first.",
    """\
  groupkeeper pipeline as-of --time 2026-01-31T23:59:59 --group 'billing*' --tables tables \\
      --save plan.json
  groupkeeper apply plan.json --dry-run""",
)
SCAN_TIME = Command(
    _add_scan_time_arguments,
    _scan_time,
    "Find the first offset at or after a time in each partition, by reading the whole partition. The result is the "
    "table scan_time in DIR. For topics whose time index cannot be used (old formats, times out of order).",
    """\
  groupkeeper pipeline scan-time --time 2026-01-31T00:00:00Z --topic orders --tables tables""",
)
