"""`groupkeeper plan delete-offsets` and `plan sweep`."""

from __future__ import annotations

import time
from argparse import Namespace
from collections.abc import AsyncIterator

from groupkeeper.cli.framework import values
from groupkeeper.cli.framework.clusters import ClusterReport, ClusterSession, add_cluster, run_report
from groupkeeper.cli.framework.commands import ArgumentParser, Command, UsageMistake
from groupkeeper.cli.framework.group_arguments import add_filters, add_groups, selected
from groupkeeper.cli.framework.reports import Page
from groupkeeper.cli.framework.typed import words_of
from groupkeeper.cli.plans.plan_options import add_saving, add_scope, is_plain, shown, topics_of
from groupkeeper.cli.plans.schemas import CHANGES
from groupkeeper.operations.plans.builder import ALL_COMMITTED
from groupkeeper.operations.plans.deletions import make_deletion
from groupkeeper.operations.plans.recorder import without_secrets
from groupkeeper.operations.plans.sweeps import RETENTION, Criteria, make_sweep
from groupkeeper.rules.words import counted


def _add_delete_offsets(command: ArgumentParser) -> None:
    add_groups(command)
    add_filters(command)
    add_scope(command)
    add_saving(command)
    add_cluster(command)


def _deletion_report(options: Namespace) -> ClusterReport:
    if not options.all_topics and not options.topic:
        raise UsageMistake("name the partitions whose offsets to delete: --all-topics or --topic")
    return ClusterReport(CHANGES, _deletion_pages, is_plain=is_plain(options))


async def _deletion_pages(session: ClusterSession) -> AsyncIterator[Page]:
    options = session.options
    selection, overall = await selected(session)
    yield overall
    session.progress.say(f"planning {counted(len(selection.group_ids), 'group')}")
    command, now_ms = without_secrets(words_of(options)), time.time_ns() // 10**6
    made = await make_deletion(session.admin, selection.group_ids, topics_of(options), now_ms, command)
    for page in await shown(session, made):
        yield page


def _add_sweep(command: ArgumentParser) -> None:
    add_groups(command)
    add_filters(command)
    command.add_argument(
        "--idle",
        type=values.age_ms,
        help="delete the offsets of groups without members that have committed nothing for this time, and of topics "
        "that no member of a group reads: 30d",
    )
    command.add_argument(
        "--missing-topics", action="store_true", help="delete offsets of topics and partitions that don't exist"
    )
    command.add_argument(
        "--expiring", type=values.age_ms, help="recommit offsets that the brokers would remove within this time: 2d"
    )
    command.add_argument(
        "--retention", type=values.age_ms, help=f"how long brokers keep offsets; default: {RETENTION} of a broker"
    )
    command.add_argument(
        "--age-of",
        choices=["commits", "records"],
        default="commits",
        help="the age that --idle uses: of the commits (default; needs READ on the topic __consumer_offsets), or of "
        "the last records read, which are at least as old",
    )
    add_scope(command)
    add_saving(command)
    add_cluster(command)


def _sweep_report(options: Namespace) -> ClusterReport:
    if options.idle is None and options.expiring is None and not options.missing_topics:
        raise UsageMistake("say what to sweep: --idle AGE, --missing-topics or --expiring TIME")
    if options.age_of == "records" and (options.idle is None or options.expiring is not None):
        raise UsageMistake("argument --age-of records: only for --idle, and not with --expiring")
    if options.retention is not None and options.expiring is None:
        raise UsageMistake("argument --retention: only for --expiring")
    return ClusterReport(CHANGES, _sweep_pages, is_plain=is_plain(options))


async def _sweep_pages(session: ClusterSession) -> AsyncIterator[Page]:
    options = session.options
    selection, overall = await selected(session)
    yield overall
    session.progress.say(f"reading {counted(len(selection.group_ids), 'group')}, and the times of their commits")
    criteria = Criteria(
        options.idle, options.missing_topics, options.expiring, options.retention, options.age_of == "records"
    )
    topics = topics_of(options) if options.topic else ALL_COMMITTED
    command, now_ms = without_secrets(words_of(options)), time.time_ns() // 10**6
    made = await make_sweep(session.admin, selection.group_ids, topics, criteria, now_ms, command)
    for page in await shown(session, made):
        yield page


DELETE_OFFSETS = Command(
    _add_delete_offsets,
    lambda options: run_report(options, _deletion_report),
    "Plan to delete committed offsets. Nothing is changed. Topics that no longer exist may be named, too.",
    """\
  groupkeeper plan delete-offsets billing --topic orders:0 --save plan.json
  groupkeeper plan delete-offsets 'test-*' --all-topics --save plan.json""",
)

SWEEP = Command(
    _add_sweep,
    lambda options: run_report(options, _sweep_report),
    "Plan to clean up: delete offsets that are idle or without a topic, recommit offsets that are about to expire. "
    "Nothing is changed. The plan has the reason beside each offset.",
    """\
  groupkeeper plan sweep --all-groups --missing-topics --save plan.json
  groupkeeper plan sweep 'test-*' --idle 30d --save plan.json
  groupkeeper plan sweep billing --expiring 2d --save plan.json""",
)
