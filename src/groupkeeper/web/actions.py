"""What a person may see and do: looking, planning, applying and undoing, the same for pages, the HTTP API and MCP."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from groupkeeper import shell
from groupkeeper.client.admin.types import GroupType
from groupkeeper.live.model import ClusterSnapshot, GroupView
from groupkeeper.operations.plans.changes import Recorded
from groupkeeper.operations.plans.journal import JournalUnreadable
from groupkeeper.operations.plans.model import Subject
from groupkeeper.operations.times import utc_text
from groupkeeper.rules.words import several
from groupkeeper.web.access.people import Person
from groupkeeper.web.access.roles import Role
from groupkeeper.web.changes.change_request import Form, Target, change_request_of, first, swept_of
from groupkeeper.web.changes.desk import MOST_PLANS, Desk, DeskEntry
from groupkeeper.web.changes.record import ChangeRecord
from groupkeeper.web.refusals import ActionRefused, Concern

OPTIONS = "--group, --except-group"
"""The options of the server that leave out groups."""

_PATIENCE_S = 1.0
"""How long to wait until a new change is read back from the journal; otherwise pages show it a little later."""

_MOST_NAMES = 20

Snapshots = Callable[[], Sequence[ClusterSnapshot]]
"""Returns the latest snapshot of each cluster, in the order in which they were named."""


def why_left_out(group_id: str) -> str:
    """Why there is no page of a group."""
    return f"This server leaves out {group_id} ({OPTIONS}), so it has no page here."


def why_down(snapshot: ClusterSnapshot) -> str:
    """Why nothing is known of a cluster now, and since when."""
    since_ms = snapshot.polls.failing_ms
    since = "" if since_ms is None else f", since {utc_text(since_ms)}"
    reasons = "; ".join(dict.fromkeys(each.message for each in snapshot.problems))
    return f"{snapshot.cluster} cannot be reached now{since}{': ' * bool(reasons)}{reasons}"


class Actions:
    """Each action checks the rights of its person. `desk` None: nothing can be changed here. `record` None: there is no
    journal.
    """

    def __init__(self, snapshots: Snapshots, desk: Desk | None, record: ChangeRecord | None) -> None:
        self.desk = desk
        self.record = record
        self._snapshots = snapshots

    def clusters(self, person: Person) -> list[ClusterSnapshot]:
        """The clusters, with the groups that the person may see."""
        return [seen for each in self._snapshots() if (seen := person.rights.seen(each)) is not None]

    def cluster(self, person: Person, name: str) -> ClusterSnapshot:
        """The cluster of this name, as `clusters` has it; "": the only one. Raises ActionRefused."""
        seen = self.clusters(person)
        for snapshot in seen:
            if snapshot.cluster == name or (not name and len(seen) == 1):
                return snapshot
        if not name and seen:
            names = several([each.cluster for each in seen], _MOST_NAMES)
            raise ActionRefused(400, f"Name one of the clusters, cluster=NAME: {names}.", Concern.CLUSTER)
        raise ActionRefused(404, f"There is no cluster {name!r} here.", Concern.CLUSTER)

    def group(self, person: Person, cluster: str, group_id: str) -> tuple[ClusterSnapshot, GroupView]:
        """The current state of a group, with its cluster. Raises ActionRefused."""
        snapshot = self.cluster(person, cluster)
        if group_id not in snapshot.groups:
            if not snapshot.is_up:
                raise ActionRefused(503, why_down(snapshot), Concern.CLUSTER)
            raise ActionRefused(404, f"There is no group {group_id!r} now.", Concern.GROUP)
        return snapshot, snapshot.groups[group_id]

    def known_cluster(self, person: Person, name: str) -> ClusterSnapshot:
        """A cluster with a current or an earlier snapshot. Raises ActionRefused."""
        snapshot = self.cluster(person, name)
        if not snapshot.known.is_up:
            raise ActionRefused(503, why_down(snapshot), Concern.CLUSTER)
        return snapshot

    def known_group(self, person: Person, cluster: str, group_id: str) -> tuple[ClusterSnapshot, GroupView]:
        """The last known state of a group, with its cluster. Raises ActionRefused."""
        snapshot = self.known_cluster(person, cluster)
        group = snapshot.known.groups.get(group_id)
        if group is None:
            is_left_out = group_id in snapshot.known.scope.left_out
            reason = f"There is no group {group_id!r} in {snapshot.cluster} now."
            raise ActionRefused(404, why_left_out(group_id) if is_left_out else reason, Concern.GROUP)
        return snapshot, group

    def entry(self, person: Person, entry_id: str) -> DeskEntry:
        """A plan that the person may see. Raises ActionRefused."""
        entry = None if self.desk is None else self.desk.entry(entry_id)
        if entry is None or not self._sees(person, entry):
            reason = f"There is no such plan. The server keeps the last {MOST_PLANS} plans until it stops."
            raise ActionRefused(404, reason, Concern.PLAN)
        return entry

    def entries(self, person: Person) -> list[DeskEntry]:
        """The plans that the person may see, the latest first."""
        return [] if self.desk is None else [each for each in self.desk.entries() if self._sees(person, each)]

    def why_nothing(self, person: Person) -> str:
        """Why the person can plan no change at all; "": they can."""
        if self.desk is None:
            return "This server is read-only: it was started without --allow-changes."
        return "" if person.is_known else "Log in to change something."

    def why_not(self, person: Person, cluster: str, group_id: str) -> str:
        """Why the person cannot plan a change of a group; "": they can."""
        if why := self.why_nothing(person):
            return why
        if not person.rights.may(Role.CHANGE, cluster, group_id):
            return f"{person.name} has no role that may change this group (change, in the file of --roles)."
        return ""

    def may(self, person: Person, cluster: str, group_ids: Sequence[str]) -> bool:
        """Whether the roles allow a change of these groups."""
        return person.is_known and all(person.rights.may(Role.CHANGE, cluster, group_id) for group_id in group_ids)

    def unseen(self, group_ids: Sequence[str]) -> str:
        """One of these groups that the server does not watch; "": it watches all."""
        return "" if self.desk is None else next((key for key in group_ids if not self.desk.watched.matches(key)), "")

    async def plan(self, person: Person, form: Form) -> DeskEntry:
        """Plans the change that a form requests. Nothing is changed. Raises ActionRefused, BadForm."""
        desk = self.open_desk(person)
        snapshot, group = self.group(person, first(form, "cluster"), first(form, "group"))
        is_share = group.group_type is GroupType.SHARE
        wanted = change_request_of(form, snapshot.cluster, group.group_id, desk.ways, is_share=is_share)
        target = wanted.target or Target(snapshot.cluster, group.group_id)
        self.cluster(person, target.cluster)
        self._check(person, target.cluster, (target.group_id,), wanted.command)
        return await desk.make(snapshot.cluster, wanted, person)

    async def sweep(self, person: Person, form: Form) -> DeskEntry:
        """Plans the sweep that a form requests. Raises as `plan`."""
        desk = self.open_desk(person)
        snapshot = self.cluster(person, first(form, "cluster"))
        swept = swept_of(form)
        group_ids = [
            group_id
            for group_id, group in snapshot.groups.items()
            if swept.groups.matches(group_id)
            and group.group_type is not GroupType.SHARE
            and person.rights.may(Role.CHANGE, snapshot.cluster, group_id)
        ]
        if not group_ids:
            raise ActionRefused(404, "There is no such group that you may change.", Concern.GROUP)
        return await desk.sweep(snapshot.cluster, swept, group_ids, person)

    async def compare(self, person: Person, entry_id: str) -> DeskEntry:
        """Compares a plan with the cluster again. Raises as `plan`."""
        desk = self.open_desk(person)
        entry = self.entry(person, entry_id)
        self._check(person, entry.cluster, entry.group_ids)
        await desk.compare(entry)
        return entry

    async def apply(self, person: Person, entry_id: str, confirmed: str = "") -> DeskEntry:
        """Applies a plan, if it fits. `confirmed`: its number of groups; "" is enough for one. Raises as `plan`."""
        desk = self.open_desk(person)
        entry = self.entry(person, entry_id)
        self._check(person, entry.cluster, entry.group_ids)
        count = len(entry.group_ids)
        if confirmed != str(count) and (count > 1 or confirmed):
            raise ActionRefused(422, f"Nothing was changed: confirm must be the number of groups, {count}.")
        if entry.made.is_refused or not (entry.plan.groups or entry.is_deletion_of_group):
            raise ActionRefused(409, "Nothing was changed: the plan has nothing that can be done.", Concern.PLAN)
        try:
            await desk.apply(entry, person)
        finally:
            if self.record is not None:
                await self.record.refresh(_PATIENCE_S)
        return entry

    async def undo(self, person: Person, cluster: str, change_id: str) -> DeskEntry:
        """Plans the undo of a change of the journal. Raises as `plan`."""
        desk = self.open_desk(person)
        recorded = await desk.recorded(change_id)
        if recorded is None or not self.journal().is_seen(person, recorded.head, tuple(recorded.groups)):
            raise ActionRefused(404, "The journal has no such change.", Concern.CHANGE)
        self._check(person, cluster, tuple(recorded.groups), desk.undo_command(cluster, change_id))
        if cluster not in (each.cluster for each in self._snapshots()):
            raise ActionRefused(404, f"There is no cluster {cluster!r} here.", Concern.CLUSTER)
        return await desk.undo(cluster, change_id, recorded, person)

    def journal(self) -> ChangeRecord:
        """The journal. Raises ActionRefused."""
        if self.record is None:
            raise ActionRefused(404, "This server has no journal: it is turned off.", Concern.JOURNAL)
        self.record.know(self._snapshots())
        return self.record

    async def change(self, person: Person, change_id: str) -> Recorded:
        """A change of the journal. Raises ActionRefused."""
        record = self.journal()
        try:
            recorded = await record.load(change_id)
        except JournalUnreadable as problem:
            raise ActionRefused(503, str(problem), Concern.JOURNAL) from None
        if recorded is None or not record.is_seen(person, recorded.head, tuple(recorded.groups)):
            raise ActionRefused(404, "The journal has no such change.", Concern.CHANGE)
        return recorded

    def where_to_undo(self, person: Person, recorded: Recorded) -> str | None:
        """The cluster on which the person may undo a change; None: they may not."""
        cluster = self.journal().cluster(recorded.head)
        is_final = recorded.head.subject is Subject.TRANSACTION
        is_allowed = cluster is not None and not is_final and self.may(person, cluster, tuple(recorded.groups))
        return cluster if is_allowed else None

    def open_desk(self, person: Person) -> Desk:
        """The desk, for a person who is logged in. Raises ActionRefused."""
        if self.desk is None:
            raise ActionRefused(403, self.why_nothing(person), Concern.SERVER)
        if not person.is_known:
            raise ActionRefused(403, "Nothing was changed: log in first.", Concern.LOGIN)
        return self.desk

    @staticmethod
    def _sees(person: Person, entry: DeskEntry) -> bool:
        """Whether a person may see a plan. One without groups may still name some in its problems."""
        may = all(person.rights.may(Role.VIEW, entry.cluster, group_id) for group_id in entry.group_ids)
        return may and (bool(entry.group_ids) or entry.made_by == person.name)

    def _check(self, person: Person, cluster: str, group_ids: Sequence[str], command: Sequence[str] = ()) -> None:
        """Raises ActionRefused if the person may not change these groups. `command`: named in the text."""
        if not self.may(person, cluster, group_ids):
            reason = f"Nothing was changed: {person.name} has no role that may change all of these groups."
            raise ActionRefused(403, reason, Concern.ROLE)
        if unseen := self.unseen(group_ids):
            raise ActionRefused(
                403,
                f"Nothing was changed: this server leaves out {unseen} ({OPTIONS}), so it neither shows nor "
                f"changes it. As a command: {shell.text(command)}",
                Concern.SERVER,
            )
