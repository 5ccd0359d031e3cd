"""`groupkeeper spark starting-offsets`: the way back from a group, or a checkpoint, to a query."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import AsyncIterator, Mapping

from groupkeeper.cli.framework import values
from groupkeeper.cli.framework.clusters import ClusterReport, ClusterSession, add_cluster, run_report
from groupkeeper.cli.framework.commands import ArgumentParser, Command, UsageMistake
from groupkeeper.cli.framework.group_arguments import add_topics, names_of
from groupkeeper.cli.framework.reports import Page, Problem, problem_of
from groupkeeper.cli.spark.lag import names_of_cluster
from groupkeeper.cli.spark.schemas import STARTING_OFFSETS as SCHEMA
from groupkeeper.client.admin.types import Failure, TopicPartition
from groupkeeper.operations.queries.starting_offsets import EARLIEST, LATEST, Starts, start_at_offsets, start_at_time
from groupkeeper.operations.selection import Names
from groupkeeper.pipeline.checkpoints.queries import read_queries

_OTHERWISE = {"earliest": EARLIEST, "latest": LATEST}


def _add_arguments(command: ArgumentParser) -> None:
    what = command.add_mutually_exclusive_group(required=True)
    what.add_argument("--group", help="start where this group has committed")
    what.add_argument(
        "--checkpoint", type=values.checkpoint,
        help="start where the query with this checkpoint is: a folder of this machine; CLUSTER: what its source "
        "groupkeeper calls the cluster",
    )  # fmt: skip
    what.add_argument(
        "--time", type=values.datetime_ms,
        help="start at the first records at or after a time: ISO 8601, UTC without a zone; needs --topic",
    )  # fmt: skip
    add_topics(command, with_regex=True)
    command.add_argument(
        "--without-commit", choices=list(_OTHERWISE), default="earliest",
        help="where to start in partitions of these topics that have no offset; default: earliest",
    )  # fmt: skip
    add_cluster(command)


def _report(options: Namespace) -> ClusterReport:
    topics = names_of(options, "topic")
    if options.time is not None and not topics:
        raise UsageMistake("argument --time: add --topic with the topics to read")
    return ClusterReport(SCHEMA, _pages, is_plain=options.output == "table")


async def _pages(session: ClusterSession) -> AsyncIterator[Page]:
    options = session.options
    topics = names_of(options, "topic")
    if options.time is not None:
        names = [*topics.exact]
        if topics.patterns:
            names += [each.name for each in await session.admin.list_topics() if topics.matches(each.name)]
        starts = await start_at_time(session.admin, dict.fromkeys(names), options.time)
        yield _page(starts, [], topics)
        return
    offsets, problems = await (_of_group(session) if options.group is not None else _of_checkpoint(session))
    wanted = {tp: offset for tp, offset in offsets.items() if not topics or topics.matches(tp.topic)}
    if not wanted and not problems:
        where = f"group {options.group}" if options.group is not None else options.checkpoint.path
        problems = [Problem("NO_OFFSETS", f"{where} has no offsets{' of these topics' * bool(offsets)}")]
    starts = await start_at_offsets(session.admin, wanted, otherwise=_OTHERWISE[options.without_commit])
    yield _page(starts, problems, topics)


async def _of_group(session: ClusterSession) -> tuple[Mapping[TopicPartition, int], list[Problem]]:
    group = session.options.group
    fetched = await session.admin.list_consumer_group_offsets({group: None})
    failure: Failure | None = fetched.failed.get(group)
    if failure is not None:
        return {}, [problem_of(failure, group=group)]
    batch = fetched.done[group]
    problems = [
        problem_of(why, group=group, topic=tp.topic, partition=tp.partition) for tp, why in batch.failed.items()
    ]
    return {tp: commit.offset for tp, commit in batch.done.items() if commit is not None}, problems


async def _of_checkpoint(session: ClusterSession) -> tuple[Mapping[TopicPartition, int], list[Problem]]:
    queries, failed = read_queries([session.options.checkpoint], await names_of_cluster(session))
    if len(queries) > 1:
        failed, queries = [f"{session.options.checkpoint.path}: {len(queries)} checkpoints match: name one"], []
    problems = [Problem("BAD_CHECKPOINT", text) for text in failed]
    problems += [Problem("NO_OFFSETS", f"{query.name}: {note}") for query in queries for note in query.notes]
    return (queries[0].offsets if queries else {}), problems


def _page(starts: Starts, problems: list[Problem], topics: Names) -> Page:
    """The page with the JSON, only if that is complete: with less, a query would read something else."""
    problems = problems + [problem_of(why, topic=tp.topic, partition=tp.partition) for tp, why in starts.failed.items()]
    known = {tp.topic for tp in starts.done}
    missing = [name for name in topics.exact if name not in known and not problems]
    problems += [
        Problem("NO_OFFSETS", f"topic {name} does not exist, or has no offsets", topic=name) for name in missing
    ]
    notes = [*starts.notes()]
    notes += [f"no topic matches {text}" for text in topics.without_match(known)]
    rows = [
        {"topic": tp.topic, "partition": tp.partition, "offset": start.offset, "note": start.note}
        for tp, start in starts.done.items()
    ]
    is_whole = bool(rows) and not problems
    return Page(rows, problems, notes, plain=f"{starts.as_json()}\n" if is_whole else "")


STARTING_OFFSETS = Command(
    _add_arguments,
    lambda options: run_report(options, _report),
    "Print the option startingOffsets, with which a Structured Streaming query starts where a group is, where another "
    "query is by its checkpoint, or at a time. Spark needs an offset for each partition of the topics: partitions "
    "without one start at the earliest. --output json prints the offsets as rows.",
    """\
  groupkeeper spark starting-offsets --group billing
  groupkeeper spark starting-offsets --checkpoint /checkpoints/orders
  groupkeeper spark starting-offsets --time 2026-01-31T23:00:00 --topic orders""",
)
