"""`groupkeeper plan reset`: the result of a reset, as a table and as a file for `groupkeeper apply`."""

from __future__ import annotations

import time
from argparse import Namespace
from collections.abc import AsyncIterator

from groupkeeper.cli.framework.clusters import ClusterReport, ClusterSession, add_cluster, run_report
from groupkeeper.cli.framework.commands import ArgumentParser, Command
from groupkeeper.cli.framework.execution import add_creating
from groupkeeper.cli.framework.group_arguments import add_filters, add_groups, names_of, passed_over, selected
from groupkeeper.cli.framework.reports import Page
from groupkeeper.cli.framework.typed import words_of
from groupkeeper.cli.plans.plan_options import (
    add_policies,
    add_saving,
    add_scope,
    is_plain,
    policies_of,
    shown,
    topics_of,
)
from groupkeeper.cli.plans.scenario import add_scenario, check_scope, plans_of, request_of
from groupkeeper.cli.plans.shapes import CHANGES
from groupkeeper.operations.plans.builder import make_reset
from groupkeeper.operations.plans.recorder import without_secrets
from groupkeeper.rules.words import counted


def _add_arguments(command: ArgumentParser) -> None:
    add_groups(command)
    add_filters(command)
    add_scope(command)
    add_scenario(command)
    add_policies(command)
    add_creating(command, "plan for")
    add_saving(command)
    add_cluster(command)


def _report(options: Namespace) -> ClusterReport:
    """Refuses invalid combinations of options, and an invalid file of offsets."""
    check_scope(options)
    names_of(options, "groups")
    topics_of(options)
    plans_of(options)
    return ClusterReport(CHANGES, _pages, is_plain=is_plain(options))


async def _pages(session: ClusterSession) -> AsyncIterator[Page]:
    options = session.options
    selection, overall = await selected(session)
    request = request_of(options, selection.group_ids)._replace(
        policies=policies_of(options), command=without_secrets(words_of(options)), made_ms=time.time_ns() // 10**6
    )
    yield overall._replace(
        remarks=[*overall.remarks, *passed_over(options.from_file, request.from_file or (), selection.group_ids)]
    )
    session.progress.say(f"planning {counted(len(selection.group_ids), 'group')}")
    made = await make_reset(session.admin, request)
    has_notes = any(group.notes for group in made.plan.groups) or options.if_no_record == "skip"
    for page in await shown(session, made, None if has_notes else request.scenario):
        yield page


RESET = Command(
    _add_arguments,
    lambda options: run_report(options, _report),
    "Plan new committed offsets. Nothing is changed. The table shows, for each partition, the offset before and "
    "after, how many offsets are skipped or read again, and the times of the records there.",
    """\
  groupkeeper plan reset billing --topic orders --by-duration 1h --save plan.json
  groupkeeper plan reset 'billing-*' --all-topics --to-earliest --save plan.json
  groupkeeper apply plan.json --execute""",
)
