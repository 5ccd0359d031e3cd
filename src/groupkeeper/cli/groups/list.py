"""`groupkeeper groups list`."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import AsyncIterator

from groupkeeper.cli.framework import group_arguments
from groupkeeper.cli.framework.clusters import ClusterReport, ClusterSession, add_cluster
from groupkeeper.cli.framework.commands import ArgumentParser, Command
from groupkeeper.cli.framework.reports import Page
from groupkeeper.cli.framework.several_clusters import run_reports
from groupkeeper.cli.groups.schemas import GROUPS
from groupkeeper.cli.groups.statuses import COLUMNS, NO_STATUS, add_status, statuses_of
from groupkeeper.operations.reporting.group_rows import listing_row
from groupkeeper.operations.selection import list_selected
from groupkeeper.protocol.errors import GroupIdNotFound


def _add_arguments(command: ArgumentParser) -> None:
    group_arguments.add_groups(command, is_required=False)
    group_arguments.add_filters(command, of_all_types=True)
    add_status(command)
    group_arguments.add_order(command, [column.name for column in GROUPS.columns])
    add_cluster(command, may_be_several=True)


def _report(options: Namespace) -> ClusterReport:
    shown = COLUMNS if options.with_status else ()
    return ClusterReport(
        GROUPS,
        _pages,
        with_columns=shown,
        in_order=lambda pages: group_arguments.arranged(pages, options),
        may_lack=True,
    )


async def _pages(session: ClusterSession) -> AsyncIterator[Page]:
    """Groups by id. A broker that cannot be reached is a problem; the groups of the others are shown."""
    options = session.options
    names = group_arguments.names_of(options, "groups")
    session.progress.say("listing groups")
    groups, selection = await list_selected(
        session.admin, names, options.state, options.type, with_share=True, with_streams=True
    )
    statuses = await statuses_of(session)
    yield Page(statuses.beside(listing_row(group, NO_STATUS) for group in groups))
    page = await group_arguments.said_about(session, selection)
    is_filtered = bool(options.state or options.type)
    if names.exact and not is_filtered and not selection.failed:
        missing = set(names.exact).difference(selection.group_ids)
        unknown = {group_id: GroupIdNotFound(f"Group {group_id} not found.") for group_id in missing}
        page = page._replace(problems=[*page.problems, *await group_arguments.with_suggestions(session, dict(unknown))])
    elif not groups and not selection.failed and not selection.unmatched:
        text = f"no groups{' in these states or of these types' if is_filtered else ''}"
        page = page._replace(notes=[text, *page.notes])
    yield page


LIST = Command(
    _add_arguments,
    lambda options: run_reports(options, _report),
    examples="""\
  groupkeeper groups list
  groupkeeper groups list 'orders-*' --state Stable,Empty
  groupkeeper groups list --context '*' --state Dead,Empty
  groupkeeper groups list --with-status
  groupkeeper groups list --regex '(orders|payments)-v[0-9]+' --output json""",
)
