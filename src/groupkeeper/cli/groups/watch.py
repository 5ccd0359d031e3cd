"""`groupkeeper groups watch`: each change of groups and their members as it happens, until Ctrl-C."""

from __future__ import annotations

import signal
import time
from argparse import Namespace
from collections.abc import AsyncIterator

from groupkeeper.cli.framework import values
from groupkeeper.cli.framework.clusters import ClusterReport, ClusterSession, add_cluster
from groupkeeper.cli.framework.commands import ArgumentParser, Command
from groupkeeper.cli.framework.group_arguments import add_groups, names_of
from groupkeeper.cli.framework.output import dismiss, flush
from groupkeeper.cli.framework.reports import CLUSTER, Column, Page, Row, Schema, Value
from groupkeeper.cli.framework.several_clusters import run_reports
from groupkeeper.operations.watch import LATE_S, Partitions, WatchedChange, follow

CHANGES = Schema(
    "watch",
    "changes",
    [
        Column("time", "of the poll that found it, in UTC, with milliseconds"),
        Column("group", "the group's id"),
        Column(
            "change",
            "`type`, `state`, `assignor`, `group_epoch`, `target_epoch`; `member_joined`, `member_left`; "
            "`member_present`: at the first poll; of a member: `member_epoch`, `upgraded`, `target_assignment`, "
            "`assignment`; `problem`: the group can't be described",
        ),
        Column("member_id", "null: the change is the group's", goes=2),
        Column("client_id", "the member's", goes=1),
        Column("host", "the member's", in_table=False),
        Column("before", "null: it wasn't there. Assignments are lists of `{topic, partition}`"),
        Column("after", "null: it is gone; of `member_joined` and `member_present`, the assignment"),
        Column("initial", "whether the first poll found it, so that it is not a change", goes=3),
        CLUSTER,
    ],
)


def _add_watch(command: ArgumentParser) -> None:
    add_groups(command)
    command.add_argument("--interval", type=values.span_ms, default=1000, help="between two polls; default: 1s")
    add_cluster(command, may_be_several=True)


async def _pages(session: ClusterSession) -> AsyncIterator[Page]:
    options = session.options
    names = names_of(options, "groups")
    awaited = set(names.exact)
    followed = follow(session.admin, names, interval_s=options.interval / 1000)
    is_failing = False
    async for found, failure, is_late in followed:
        awaited -= {change.group_id for change in found}
        if is_late:
            if not is_failing:
                session.note(f"no reply for {LATE_S:g} s; waiting")
            continue
        if is_failing != (failure is not None):
            is_failing = failure is not None
            again = "the groups can be described again"
            session.note(f"no group can be described: {failure}; retrying" if is_failing else again)
        if awaited:
            for group_id in sorted(awaited):
                session.note(f"waiting for group {group_id}")
            awaited = set()
        if not found:
            continue
        now = time.time_ns() // 1_000_000
        moment = f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(now / 1000))}.{now % 1000:03}Z"
        yield Page([_row(moment, change) for change in found])


def _row(moment: str, change: WatchedChange) -> Row:
    member = change.member
    return {
        "time": moment,
        "group": change.group_id,
        "change": change.what.value,
        "member_id": member.member_id if member else None,
        "client_id": member.client_id if member else None,
        "host": member.host if member else None,
        "before": _value(change.before),
        "after": _value(change.after),
        "initial": change.is_initial,
    }


def _value(value: str | int | bool | Partitions | None) -> Value:
    if isinstance(value, tuple):
        return [{"topic": topic, "partition": partition} for topic, partition in value]
    return value


def _run(options: Namespace) -> int:
    # Without job control, shells let background commands ignore Ctrl-C: this one would never end.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, lambda number, frame: signal.raise_signal(signal.SIGINT))
    try:
        return run_reports(options, lambda _: ClusterReport(CHANGES, _pages, has_lines=True))
    except KeyboardInterrupt as interrupt:
        dismiss(interrupt)
        # Following ends this way.
        flush()
        return 0


WATCH = Command(
    _add_watch,
    _run,
    "Follow groups and print each change of their state, epochs, members and assignments as it happens, until Ctrl-C. "
    "The first poll prints the groups as they are, marked as initial; groups that don't exist yet are shown once they "
    "are created. JSON has "
    "a line for each change.",
    """\
  groupkeeper groups watch billing
  groupkeeper groups watch --all-groups --context '*' --interval 5s --output json""",
)
