"""`groupkeeper spark lag`: checkpoints of this machine, beside the ends of the logs."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence

from groupkeeper.cli.framework.clusters import ClusterReport, ClusterSession, add_cluster, run_report
from groupkeeper.cli.framework.commands import ArgumentParser, Command
from groupkeeper.cli.framework.group_arguments import LAG_TO, add_order, add_topics, arranged, names_of
from groupkeeper.cli.framework.reports import Page, Problem, Row, problem_of
from groupkeeper.cli.framework.values import checkpoint
from groupkeeper.cli.spark.schemas import QUERIES_LAG
from groupkeeper.operations.lag import LagStatus, PartitionLag, lag_of_offsets
from groupkeeper.operations.times import utc_text
from groupkeeper.pipeline.checkpoints.queries import Query, read_queries

_SORTS = ["query", "topic", "lag", "lost", "log_end_offset", "status"]


def _add_arguments(command: ArgumentParser) -> None:
    command.add_argument(
        "checkpoints", nargs="+", type=checkpoint, metavar="[[CLUSTER:][NAME]=]CHECKPOINT",
        help="a query's checkpointLocation: a folder of this machine, or a glob; the query is called NAME, or else by "
        "the folder's name; CLUSTER: what its source groupkeeper calls the cluster",
    )  # fmt: skip
    add_topics(command, with_regex=True)
    command.add_argument("--lag-to", **LAG_TO)
    add_order(command, _SORTS)
    add_cluster(command)


async def _pages(session: ClusterSession) -> AsyncIterator[Page]:
    options = session.options
    session.progress.say("reading checkpoints")
    clusters = await names_of_cluster(session)
    # before the logs are asked, so that no lag is too low
    queries, failed = read_queries(options.checkpoints, clusters)
    by_name = {query.name: query for query in queries}
    session.progress.say("asking for the ends of logs")
    found = await lag_of_offsets(
        session.admin,
        {query.name: query.offsets for query in queries},
        topics=names_of(options, "topic"),
        to_last_stable=options.lag_to == "lso",
    )
    rows = [_row(row, by_name[name]) for name in sorted(found) for row in found[name]]
    problems = [Problem("BAD_CHECKPOINT", text) for text in failed]
    problems += _problems(found)
    yield Page(rows, problems, _notes(queries))


async def names_of_cluster(session: ClusterSession) -> list[str]:
    """The names by which a query's source may call the cluster: its id, or its name here."""
    found = (await session.admin.describe_cluster()).cluster_id, session.context
    return [each for each in found if each is not None]


def _notes(queries: Sequence[Query]) -> list[str]:
    found = [f"{query.name}: {note}" for query in queries for note in query.notes]
    found += [f"{query.name}: no batch is done yet" for query in queries if query.batch_id is None]
    found += [
        f"{query.name}: it reads {'by other sources than kafka and groupkeeper' if query.others else 'nothing yet'}"
        for query in queries
        if not query.offsets and not query.notes
    ]
    return found


def _problems(found: Mapping[str, Sequence[PartitionLag]]) -> list[Problem]:
    return [
        problem_of(row.failure, topic=row.topic, partition=row.partition)
        for rows in found.values()
        for row in rows
        if row.failure is not None and row.status is not LagStatus.DELETED
    ]


def _row(row: PartitionLag, query: Query) -> Row:
    running = query.running.get(row.tp)
    return {
        "query": query.name,
        "topic": row.topic,
        "partition": row.partition,
        "next_offset": None if row.committed is None else row.committed.offset,
        "running_to": running,
        "log_start_offset": row.log_start_offset,
        "log_end_offset": row.log_end_offset,
        "lag": row.lag,
        "lost": row.lost,
        "status": str(row.status),
        "batch": query.batch_id,
        "batch_time": None if query.batch_id is None else utc_text(query.done_ms),
        "query_id": query.query_id,
    }


LAG = Command(
    _add_arguments,
    lambda options: run_report(
        options, lambda _: ClusterReport(QUERIES_LAG, lambda session: arranged(_pages(session), options))
    ),
    "Show the lag of queries of Structured Streaming: the offsets of completed batches in their checkpoints, beside "
    "the ends of the logs. For a stopped query the lag is exact; for a running one it may be lower by now.",
    """\
  groupkeeper spark lag /checkpoints/orders
  groupkeeper spark lag billing=/checkpoints/b7 '/checkpoints/team-*' --sort lag --top 20""",
)
