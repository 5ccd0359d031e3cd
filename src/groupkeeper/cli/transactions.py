"""`groupkeeper transactions …`: open transactions, offsets held back, and the abort of one that does not end."""

from __future__ import annotations

import time
from argparse import Namespace
from collections.abc import AsyncIterator, Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from groupkeeper.cli.framework import values
from groupkeeper.cli.framework.clusters import ClusterReport, ClusterSession, add_cluster, run_report
from groupkeeper.cli.framework.commands import ArgumentParser, Command, CommandName, Family, UsageMistake
from groupkeeper.cli.framework.execution import add_executing, check_context, not_yet, show_first
from groupkeeper.cli.framework.journals import own_recorder
from groupkeeper.cli.framework.reports import CLUSTER, Column, Page, Problem, Row, Schema
from groupkeeper.cli.framework.several_clusters import run_reports
from groupkeeper.cli.framework.typed import follow_up
from groupkeeper.client.admin.resources.types import TransactionDescription, TransactionState
from groupkeeper.client.admin.types import Failure, TopicPartition
from groupkeeper.client.errors import ClientError
from groupkeeper.operations.problems import Attempt, problem_of
from groupkeeper.operations.times import utc_text
from groupkeeper.operations.transactions import (
    OPEN_STATES,
    Abort,
    Open,
    OpenTransaction,
    abort,
    held_offsets,
    open_anywhere,
    plan_of_hanging,
    plan_of_known,
)
from groupkeeper.protocol.errors import KafkaError
from groupkeeper.rules.transactions import Standing, standing_of_known
from groupkeeper.rules.words import counted

_WHO = (
    Column("transactional_id", "null: no coordinator reports the transaction"),
    Column("producer_id", "of the producer that has the transaction", goes=1),
    Column("producer_epoch", "", goes=7),
)
_HOW = (
    Column("standing", "`open`, `late`, `ending`, `unclaimed`, `hanging`, `unknown` or `ended`, see below"),
    Column("state", "as the coordinator calls it; null: no coordinator reports the transaction", goes=2),
    Column("started_time", "when it began; if no coordinator reports it, when its last record was written; null: not "
           "known", goes=4),
    Column("open_ms", "time since then; null: not known"),
    Column("timeout_ms", "after which its coordinator aborts it; null: no coordinator reports it", goes=5),
)  # fmt: skip

TRANSACTIONS = Schema(
    "transactions",
    "transactions",
    [
        *_WHO,
        *_HOW,
        Column("partitions", "how many it has written to"),
        Column("held_offsets", "offsets that readers of committed records do not get, in all of these partitions "
               "together; null: not known", goes=1),
        Column("coordinator", "`host:port`; null: none reports it", goes=6),
        CLUSTER,
    ],
)  # fmt: skip

PARTITIONS = Schema(
    "transaction",
    "partitions",
    [
        *_WHO,
        Column("topic", "null: it has not written to any partition, or you may not see where"),
        Column("partition", ""),
        Column("first_offset", "of the transaction in this partition; null: not known, or no record is written yet"),
        Column("held_offsets", "offsets from the last stable one to the end of the log; null: not known", goes=3),
        *_HOW,
        Column("coordinator_epoch", "of the last marker of this producer here; -1: there was none", in_table=False),
        CLUSTER,
    ],
)

ABORTED = Schema(
    "aborted_transactions",
    "aborted",
    [
        *_WHO,
        Column("topic", "null: it has not written to any partition, or you may not see where"),
        Column("partition", ""),
        Column("first_offset", "of the transaction in this partition; null: not known"),
        Column("way", "`coordinator`: it fences the producer and ends the transaction; `marker`: no coordinator has "
               "it, and a marker is written to the partition", goes=1),
        Column("result", "`aborted`, or `would be aborted`"),
    ],
)  # fmt: skip

STANDINGS = {
    "open": "its coordinator aborts it after its timeout, if its producer does not end it before",
    "late": "its coordinator should have aborted it, and has not",
    "ending": "its coordinator writes its markers; if that takes long, a partition of it has no leader",
    "unclaimed": "no coordinator reports it: it hangs, it is too recent to judge, or you lack DESCRIBE on its "
    "transactional id",
    "hanging": "no coordinator reports it, and its last record, by its own time, is older than "
    "`transaction.max.timeout.ms`",
    "unknown": "no coordinator reports it, but not all of them replied",
    "ended": "no transaction is open (`list --all`)",
}


_IN_TOPIC = "only transactions that have written to this topic"


class _Found(NamedTuple):
    """Open transactions of a cluster, by coordinators and by partitions, and the offsets that these hold back."""

    described: Mapping[str, TransactionDescription]
    open: Open
    held: Mapping[TopicPartition, int]
    problems: list[Problem]

    def held_in(self, tps: Collection[TopicPartition]) -> int | None:
        """The number of offsets held back in partitions; None: unknown for one, or the partitions are unknown."""
        known = [self.held[tp] for tp in tps if tp in self.held]
        return sum(known) if tps and len(known) == len(tps) else None


def _add_list(command: ArgumentParser) -> None:
    add = command.add_argument
    add("--topic", action="append", help=_IN_TOPIC)
    add("--hanging", action="store_true", help="only hanging ones, which nothing will end")
    add("--older-than", type=values.span_ms, help="only transactions open for longer")
    add("--all", action="store_true", help="also transactional ids without an open transaction")
    add_cluster(command, may_be_several=True)
    command.checks.append(_check_list)


def _check_list(options: Namespace) -> None:
    if options.all and (options.hanging or options.older_than or options.topic):
        raise UsageMistake("argument --all: not allowed with --hanging, --older-than or --topic")


async def _list_pages(session: ClusterSession) -> AsyncIterator[Page]:
    """Transactions, the oldest first; hanging ones before all others."""
    options = session.options
    session.progress.say("looking for partitions whose last stable offset is not their end")
    states = () if options.all else OPEN_STATES
    found = await _look(session, options.topic or None, states)
    now_ms = _now_ms()
    rows = [row for row in _rows(found, now_ms) if _is_wanted(row, options)]
    rows.sort(key=lambda row: (row["standing"] != Standing.HANGING, -int(str(row["open_ms"] or 0))))
    hanging = [row for row in rows if row["standing"] == Standing.HANGING]
    notes = [] if rows or found.problems else [f"no transaction {'hangs' if options.hanging else 'is open'}"]
    if hanging:
        look = follow_up(options, "transactions", "describe", context=session.context)
        end = follow_up(options, "transactions", "abort", "--partition", "TOPIC:PARTITION", context=session.context)
        notes.append(
            f"{counted(len(hanging), 'transaction')} will not end by itself: "
            f"'{look}' shows the partitions, and '{end}' says how one is aborted"
        )
    yield Page(rows, found.problems, notes)


async def _look(
    session: ClusterSession, topics: Sequence[str] | None, states: Iterable[TransactionState] = OPEN_STATES
) -> _Found:
    admin = session.admin
    held, failed = await held_offsets(admin, topics)
    found = await open_anywhere(admin, [tp for tp, number in held.items() if number], states=states)
    described = found.described
    if topics is not None:
        described = {key: one for key, one in described.items() if any(tp.topic in topics for tp in one.partitions)}
    problems = [_problem_at(failure, tp) for tp, failure in {**failed, **found.failed}.items()]
    problems += [problem_of(failure) for failure in found.silent]
    return _Found(described, found, held, problems)


def _problem_at(failure: Failure, tp: TopicPartition) -> Problem:
    partition = None if tp.partition < 0 else tp.partition
    return problem_of(failure, Attempt.READ_RECORDS, topic=tp.topic, partition=partition)


def _is_wanted(row: Row, options: Namespace) -> bool:
    if options.hanging and row["standing"] != Standing.HANGING:
        return False
    return options.older_than is None or int(str(row["open_ms"] or 0)) > options.older_than


def _rows(found: _Found, now_ms: int) -> Iterator[Row]:
    """One row for each transaction: those of coordinators, and those that only partitions have."""
    for transactional_id, one in found.described.items():
        yield {
            **_who(transactional_id, one.producer_id, one.producer_epoch),
            **_known(one, now_ms),
            "partitions": len(one.partitions),
            "held_offsets": found.held_in(one.partitions),
            "coordinator": f"{one.coordinator.host}:{one.coordinator.port}",
        }
    by_producer: dict[tuple[int, int], list[OpenTransaction]] = {}
    for each in found.open.transactions:
        if each.description is None:
            by_producer.setdefault((each.producer.producer_id, each.producer.producer_epoch), []).append(each)
    for producer, parts in by_producer.items():
        yield {
            **_who(None, *producer),
            **_how(parts[0], now_ms),
            "partitions": len(parts),
            "held_offsets": found.held_in([each.tp for each in parts]),
            "coordinator": None,
        }


def _who(transactional_id: str | None, producer_id: int | None, producer_epoch: int | None) -> Row:
    return {"transactional_id": transactional_id, "producer_id": producer_id, "producer_epoch": producer_epoch}


def _known(one: TransactionDescription, now_ms: int) -> Row:
    open_ms = None if one.started_ms is None else max(0, now_ms - one.started_ms)
    standing = standing_of_known(one.state, open_ms, one.timeout_ms)
    has_begun = standing is not Standing.ENDED and one.started_ms is not None
    return {
        "standing": str(standing),
        "state": str(one.state),
        "started_time": utc_text(one.started_ms) if has_begun and one.started_ms is not None else None,
        "open_ms": open_ms if has_begun else None,
        "timeout_ms": one.timeout_ms,
    }


def _how(each: OpenTransaction, now_ms: int) -> Row:
    if each.description is not None:
        return _known(each.description, now_ms)
    return {
        "standing": str(each.standing(now_ms)),
        "state": None,
        "started_time": None if each.began_ms is None else utc_text(each.began_ms),
        "open_ms": each.open_ms(now_ms),
        "timeout_ms": None,
    }


def _add_describe(command: ArgumentParser) -> None:
    add = command.add_argument
    add("transactions", nargs="*", metavar="TRANSACTION", help="transactional ids; default: all open transactions")
    add("--topic", action="append", help=_IN_TOPIC)
    add_cluster(command, may_be_several=True)


async def _describe_pages(session: ClusterSession) -> AsyncIterator[Page]:
    """A row for each partition with the open transaction."""
    options, now_ms = session.options, _now_ms()
    found = await _look(session, options.topic or None)
    wanted = set(options.transactions)
    problems, described = list(found.problems), dict(found.described)
    unknown = [each for each in options.transactions if each not in described]
    if unknown:
        more = await session.admin.describe_transactions(unknown)
        described |= more.done
        problems += [_problem_with(failure, key) for key, failure in more.failed.items()]
    rows: list[Row] = []
    seen: set[tuple[str | None, TopicPartition]] = set()
    for each in found.open.transactions:
        if not wanted or each.transactional_id in wanted:
            seen.add((each.transactional_id, each.tp))
            rows.append(_partition_row(each, found, now_ms))
    for key, one in described.items():
        if not wanted or key in wanted:
            rest = [tp for tp in one.partitions if (key, tp) not in seen]
            tps: Sequence[TopicPartition | None] = rest or ([] if one.partitions else [None])
            who = _who(key, one.producer_id, one.producer_epoch)
            how = {**_known(one, now_ms), "coordinator_epoch": None}
            rows += ({**who, **_partition(tp, None, None), **how} for tp in tps)
    notes = [] if rows or problems else ["no transaction is open"]
    yield Page(rows, problems, notes)


def _partition_row(each: OpenTransaction, found: _Found, now_ms: int) -> Row:
    state = each.producer
    return {
        **_who(each.transactional_id, state.producer_id, state.producer_epoch),
        **_partition(each.tp, state.transaction_start, found.held.get(each.tp)),
        **_how(each, now_ms),
        "coordinator_epoch": state.coordinator_epoch,
    }


def _partition(tp: TopicPartition | None, first_offset: int | None, held: int | None) -> Row:
    topic, partition = tp or (None, None)
    return {"topic": topic, "partition": partition, "first_offset": first_offset, "held_offsets": held}


def _problem_with(failure: Failure, transactional_id: str, deed: Attempt = Attempt.DESCRIBE) -> Problem:
    found = problem_of(failure, deed)
    acl = found.acl and found.acl._replace(name=found.acl.name or transactional_id)
    return found._replace(message=f"{transactional_id}: {found.message}", acl=acl)


def _add_abort(command: ArgumentParser) -> None:
    add = command.add_argument
    coordinated = "the transactional id, of a transaction that its coordinator has: its producer is fenced"
    where = "where a transaction is open that no coordinator has"
    add("transaction", nargs="?", help=coordinated)
    add("--partition", type=values.partition, help=where)
    which = "with --partition: which one, if several are open there"
    add("--producer-id", type=values.number, metavar="NUMBER", help=which)
    forced = "with --partition: needed, as you may lack DESCRIBE on its transactional id; be sure it hangs"
    add("--force", action="store_true", help=forced)
    add_executing(command, "abort the transaction", counts_groups=False)
    add_cluster(command)
    command.checks.append(_check_abort)


def _check_abort(options: Namespace) -> None:
    if (options.transaction is None) == (options.partition is None):
        raise UsageMistake("name one transaction: its transactional id, or --partition TOPIC:PARTITION")
    if options.partition is None and (options.producer_id is not None or options.force):
        raise UsageMistake("arguments --producer-id and --force: only with --partition")


async def _abort_pages(session: ClusterSession) -> AsyncIterator[Page]:
    """The transactions to abort; with --execute, aborts them."""
    options = session.options
    transactional_id: str | None = options.transaction
    try:
        if transactional_id is None:
            planned = await plan_of_hanging(
                session.admin, options.partition, options.producer_id, _now_ms(), is_forced=options.force
            )
        else:
            planned = await plan_of_known(session.admin, transactional_id)
        notes = _consequences(planned)
        would_be = list(_abort_rows(planned, "would be aborted"))
        await check_context(session, lambda: show_first(session, ABORTED, would_be, notes))
        if options.execute:
            recorder = own_recorder(options, notes)
            planned = await abort(session.admin, planned, recorder)
    except (ClientError, KafkaError) as failure:
        yield Page(problems=[_abort_problem(failure, options)], more={"executed": False})
        return
    if not options.execute:
        notes.append(not_yet(1))
    rows = list(_abort_rows(planned, "aborted")) if options.execute else would_be
    yield Page(rows, (), notes, {"executed": options.execute})


def _abort_problem(failure: Failure, options: Namespace) -> Problem:
    if options.transaction is not None:
        return _problem_with(failure, options.transaction, Attempt.ABORT)
    topic, partition = options.partition
    return problem_of(failure, Attempt.ABORT, topic=topic, partition=partition)


def _abort_rows(planned: Abort, result: str) -> Iterator[Row]:
    for tp, state in planned.partitions.items() or [(None, None)]:
        topic, partition = tp or (None, None)
        yield {
            **_who(planned.transactional_id, state and state.producer_id, state and state.producer_epoch),
            "topic": topic,
            "partition": partition,
            "first_offset": state and state.transaction_start,
            "way": "marker" if planned.transactional_id is None else "coordinator",
            "result": result,
        }


def _consequences(planned: Abort) -> list[str]:
    discarded = "readers of committed records skip the records of the transaction; an abort cannot be taken back"
    if planned.transactional_id is None:
        return [discarded]
    fenced = f"the producer of {planned.transactional_id} is fenced: its application fails, and has to start it again"
    return [discarded, fenced]


def _now_ms() -> int:
    return time.time_ns() // 10**6


LIST = Command(
    _add_list,
    lambda options: run_reports(options, lambda _: ClusterReport(TRANSACTIONS, _list_pages)),
    "List open transactions, hanging ones first. The command asks the leader of each partition whose last stable "
    "offset is before the log end for open transactions, and compares them with those of the transaction coordinators.",
    """\
  groupkeeper transactions list
  groupkeeper transactions list --hanging --context '*'
  groupkeeper transactions list --topic orders --older-than 5m --output json""",
)

DESCRIBE = Command(
    _add_describe,
    lambda options: run_reports(options, lambda _: ClusterReport(PARTITIONS, _describe_pages)),
    "Show each partition that transactions are open in, from which offset on, and how many offsets readers of "
    "committed records do not get.",
    """\
  groupkeeper transactions describe
  groupkeeper transactions describe billing-tx-1 --output json
  groupkeeper transactions describe --topic orders""",
)

ABORT = Command(
    _add_abort,
    lambda options: run_report(options, lambda _: ClusterReport(ABORTED, _abort_pages, more={"executed": False})),
    "Show the open transaction that would be aborted, and with --execute abort it. One that its coordinator has is "
    "named by its transactional id, and its producer is fenced. One that no coordinator reports is named by its "
    "partition, and needs --force: it may have a transactional id that you may not describe.",
    """\
  groupkeeper transactions abort billing-tx-1
  groupkeeper transactions abort billing-tx-1 --execute
  groupkeeper transactions abort --partition orders:0 --force --execute""",
)


FAMILY = Family(
    {
        "list": CommandName("list open transactions, hanging ones first", "transactions:LIST"),
        "describe": CommandName(
            "show the partitions of open transactions, and the records that they block", "transactions:DESCRIBE"
        ),
        "abort": CommandName("abort an open transaction; shows only, unless --execute", "transactions:ABORT"),
    },
    "List, describe and abort open transactions. Readers of committed records cannot pass the first record of the "
    "oldest open transaction of a partition.",
)
