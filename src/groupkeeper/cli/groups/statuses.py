"""The statuses of groups beside what commands list: one poll as those of `serve`, judged by groupkeeper.rules."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from groupkeeper.cli.framework.group_arguments import names_of
from groupkeeper.cli.framework.reports import Row
from groupkeeper.operations.selection import Choice, Names

if TYPE_CHECKING:
    from groupkeeper.cli.framework.clusters import ClusterSession
    from groupkeeper.cli.framework.commands import ArgumentParser
    from groupkeeper.live.model import ClusterSnapshot

COLUMNS = ("group_status", "reason", "not_judged")
NO_STATUS: Row = dict.fromkeys(COLUMNS)


class Statuses(NamedTuple):
    """The status columns. `rows`: by group; groups that the poll has not found are unknown. None: rows keep
    NO_STATUS.
    """

    rows: Mapping[str, Row] | None = None

    def beside(self, rows: Iterable[Row]) -> list[Row]:
        """The rows with the status columns."""
        if self.rows is None:
            return list(rows)
        unknown: Row = {**NO_STATUS, "group_status": "unknown"}
        return [{**row, **self.rows.get(str(row["group"]), unknown)} for row in rows]


def add_status(command: ArgumentParser) -> None:
    """Adds the option."""
    command.add_argument(
        "--with-status",
        action="store_true",
        help="also show the status of each group, as the pages of serve do, and why; this reads the timestamp of each "
        "next record. A single measurement cannot tell that a group has stopped",
    )


async def statuses_of(session: ClusterSession) -> Statuses:
    """The statuses of the selected groups. Raises the failure if nothing is known."""
    options = session.options
    if not options.with_status:
        return Statuses()
    from groupkeeper.live.cluster_poll import WantedGroups, take_snapshot

    topics = names_of(options, "topic") if hasattr(options, "topic") else Names(())
    wanted = WantedGroups(Choice(names_of(options, "groups"), Names(())), Choice(topics, Names(())))
    return judged(await take_snapshot(session.admin, wanted, session.progress.say, within_s=session.timeout_ms / 1000))


def judged(snapshot: ClusterSnapshot) -> Statuses:
    """The statuses of a poll's groups."""
    from groupkeeper.live.statuses import status_row

    at_ms = snapshot.at_ms
    return Statuses({key: status_row(group, at_ms, is_first_poll=True) for key, group in snapshot.groups.items()})
