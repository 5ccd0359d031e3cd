"""`groupkeeper groups why`: the facts that explain why a group does not move, the reason first."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import AsyncIterator

from groupkeeper.cli.framework import values
from groupkeeper.cli.framework.clusters import ClusterReport, ClusterSession, add_cluster, run_report
from groupkeeper.cli.framework.commands import ArgumentParser, Command
from groupkeeper.cli.framework.group_arguments import with_suggestions
from groupkeeper.cli.framework.reports import Column, Page, Row, Schema
from groupkeeper.cli.framework.typed import follow_up
from groupkeeper.operations.causes.facts import Explained, Fact, explain
from groupkeeper.operations.times import utc_text
from groupkeeper.protocol.errors import GroupIdNotFound
from groupkeeper.rules.words import counted, rate, waiting

_INTERVAL_MS = 10_000

CAUSES = Schema(
    "why",
    "facts",
    [
        Column("cause", "see below; the first row has the reason"),
        Column("topic", "null: it is about the whole group"),
        Column("partition", ""),
        Column("fact", "as a sentence"),
        Column("command", "a command that helps, ready to copy", in_table=False),
        Column("offset", "the committed offset; null: nothing is committed, or not about a partition",
               in_table=False),
        Column("transactional_id", "of the transaction that blocks readers; null: no such transaction is known",
               in_table=False),
        Column("producer_id", "of that transaction", in_table=False),
        Column("record_offset", "of the next record of a stuck partition; null, as in the columns below: no record, "
               "or it could not be read", in_table=False),
        Column("record_time", "", in_table=False),
        Column("record_key", "as text, or in hexadecimal after `0x`; at most 200 bytes", in_table=False),
        Column("record_key_size", "in bytes", in_table=False),
        Column("record_value_size", "in bytes; null: a tombstone", in_table=False),
        Column("record_headers", "names and values, as `a=1, b=2`", in_table=False),
        Column("record_value", "as the key; null unless `--show-value`", in_table=False),
    ],
)  # fmt: skip

MEANINGS = {
    "no_members": "no consumer is a member, and records wait",
    "rebalancing": "members do not have their partitions yet",
    "open_transaction": "readers of committed records have read up to an open transaction",
    "no_leader": "no broker leads the partition",
    "no_rights": "you may not describe the topic",
    "unassigned": "records wait, and no member is assigned the partition",
    "out_of_range": "the committed offset is no longer in the log",
    "never_committed": "a member is assigned the partition, and nothing is committed",
    "stuck": "records wait, and the committed offset is the same at both measurements",
    "slow": "more is written than read",
    "unread": "records wait in a topic that no member reads; the group's status leaves it out too",
}


def _add_why(command: ArgumentParser) -> None:
    command.add_argument("group", help="the group")
    command.add_argument(
        "--interval",
        type=values.span_s,
        default=_INTERVAL_MS / 1000,
        help="time between the two measurements; a time without commits proves nothing, so take at least the interval "
        "between commits (auto.commit.interval.ms); default: 10s",
    )
    command.add_argument("--show-value", action="store_true", help="also show the value of the next record")
    add_cluster(command)


async def _pages(session: ClusterSession) -> AsyncIterator[Page]:
    options = session.options
    session.progress.say(f"looking at {options.group} twice, {options.interval:g} s apart")
    try:
        found = await explain(session.admin, options.group, interval_s=options.interval, shows_value=options.show_value)
    except GroupIdNotFound as failure:
        yield Page(problems=await with_suggestions(session, {options.group: failure}))
        return
    rows = [_row(fact, options) for fact in found.facts]
    notes = [_summary(found, options)]
    commands = {str(row["cause"]): row["command"] for row in reversed(rows)}
    notes += [f"{cause}: {commands[cause]}" for cause in reversed(commands)]
    notes += [text for fact in found.facts if (text := _record(fact))]
    cause = str(found.facts[0].cause) if found.facts else None
    yield Page(rows, found.problems, notes, {"group": options.group, "cause": cause})


def _summary(found: Explained, options: Namespace) -> str:
    waits = waiting(found.waiting, "record") if found.waiting else "nothing waits that is known"
    rates = f"{rate(found.rate.consumed)} read and {rate(found.rate.produced)} written within {options.interval:g} s"
    said = ""
    if found.waiting and not found.facts:
        said = "it moves: " if found.rate.consumed > 0 else "no cause is found: "
    return f"{said}{waits}; {rates}"


def _record(fact: Fact) -> str:
    one = fact.record
    if one is None or fact.tp is None:
        return ""
    headers = ", ".join(f"{name}={value}" for name, value in one.headers)
    time = "without a time" if one.time_ms is None else f"of {utc_text(one.time_ms)}"
    where = f"{fact.tp.topic}-{fact.tp.partition}"
    text = f"{where}: the record at offset {one.offset} is {time}, key {'null' if one.key is None else one.key}"
    text += f", {'a tombstone' if one.value_size is None else counted(one.value_size, 'byte')}"
    return text + (f", headers {headers}" if headers else "") + (f", value {one.value}" if one.value else "")


def _row(fact: Fact, options: Namespace) -> Row:
    topic, partition = fact.tp or (None, None)
    one, transaction = fact.record, fact.transaction
    return {
        "cause": str(fact.cause),
        "topic": topic,
        "partition": partition,
        "fact": fact.text,
        "command": follow_up(options, *fact.words, names=fact.names),
        "offset": fact.offset,
        "transactional_id": transaction and transaction.transactional_id,
        "producer_id": transaction and transaction.producer.producer_id,
        "record_offset": one and one.offset,
        "record_time": None if one is None or one.time_ms is None else utc_text(one.time_ms),
        "record_key": one and one.key,
        "record_key_size": one and one.key_size,
        "record_value_size": one and one.value_size,
        "record_headers": one and ", ".join(f"{name}={value}" for name, value in one.headers),
        "record_value": one and one.value,
    }


WHY = Command(
    _add_why,
    lambda options: run_report(options, lambda _: ClusterReport(CAUSES, _pages)),
    "Say why a group does not move: no members, a rebalance, an open transaction, no leader, no rights, partitions "
    "without a member, the record at the offset that does not move, or more written than read. The first row is the "
    "reason; a command that helps is named for each.",
    """\
  groupkeeper groups why billing
  groupkeeper groups why billing --interval 30s --output json
  groupkeeper groups why billing --show-value""",
)
