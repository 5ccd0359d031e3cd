"""Plans that were made from pages, with their outcomes. How plans are made and carried out is in `operations`.

Every plan is of one cluster, and has its own client while it is made, compared or applied. Changes of a cluster are
applied one after the other. The plans are lost when the program ends; the journal is not.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from enum import StrEnum
from typing import TypeVar

from groupkeeper.client.admin import Admin
from groupkeeper.client.errors import ClientError
from groupkeeper.operations.delete import delete_compared, find_deletion
from groupkeeper.operations.errors import OperationRefused
from groupkeeper.operations.plans.builder import ALL_COMMITTED, Made, Request, make_reset, with_times
from groupkeeper.operations.plans.changes import Recorded
from groupkeeper.operations.plans.clones.builder import CloneRequest, Source, make_clone
from groupkeeper.operations.plans.cluster_state import will_be_made
from groupkeeper.operations.plans.deletions import make_deletion
from groupkeeper.operations.plans.execution import Applied, apply_plan
from groupkeeper.operations.plans.fit import PlanFit, check
from groupkeeper.operations.plans.journal import ChangeJournal, JournalUnreadable, JournalUnwritable
from groupkeeper.operations.plans.model import Kind, Plan, PlanTrouble
from groupkeeper.operations.plans.recorder import Recorder
from groupkeeper.operations.plans.sweeps import make_sweep
from groupkeeper.operations.plans.undo import make_undo, undo_of, undone_text
from groupkeeper.operations.selection import ALL, Choice, Names
from groupkeeper.operations.share_changes import ShareAdmin, is_of_share_groups
from groupkeeper.protocol.errors import KafkaError
from groupkeeper.shell import Way, command, way_to
from groupkeeper.web.access.people import Person
from groupkeeper.web.changes.change_request import ChangeRequest, Deed, Swept, Target
from groupkeeper.web.refusals import ActionRefused, Concern

MOST_PLANS = 200
"""The most plans that are kept; the oldest are dropped."""

THROUGH = "groupkeeper serve"

T = TypeVar("T")


class DeskStage(StrEnum):
    """The stage of a plan."""

    PLANNED = "planned"
    APPLYING = "being applied"
    APPLIED = "applied"


class DeskEntry:
    """A plan on the desk."""

    def __init__(self, cluster: str, made_by: str, made: Made, fit: PlanFit, group_ids: tuple[str, ...]) -> None:
        self.id = secrets.token_urlsafe(9)
        self.cluster = cluster
        self.made_by = made_by
        self.made = made
        self.fit = fit
        """How the plan fitted when it was last compared with the cluster."""
        self.compared_ms = _now_ms()
        self.group_ids = group_ids
        self.stage = DeskStage.PLANNED
        self.applied: Applied | None = None
        """The changes that were made; None: the plan was not applied yet."""
        self.applied_by = ""
        self.change_id = ""
        """In the journal; empty: the plan is not applied, or had nothing to do."""
        self.notes = list(made.notes)
        """Texts for people, from making and applying the plan."""
        self.is_of_share_groups = False

    @property
    def plan(self) -> Plan:
        return self.made.plan

    @property
    def troubles(self) -> tuple[PlanTrouble, ...]:
        """The reasons why the plan, which is applied as a whole, does not fit now."""
        return self.fit.troubles

    @property
    def is_deletion_of_group(self) -> bool:
        return self.plan.kind is Kind.DELETE_GROUPS

    @property
    def can_be_applied(self) -> bool:
        """Whether the plan has changes to make, and all of it fits."""
        has_work = bool(self.fit.ready) or self.is_deletion_of_group or self.plan.settles
        return self.stage is DeskStage.PLANNED and has_work and not self.troubles and not self.made.is_refused


_NAMED = 100
"""The most groups that a command names."""


def sweep_command(way: Way, options: Sequence[str], group_ids: Sequence[str]) -> tuple[str, ...]:
    """The command for these groups by name, as pages leave out groups that a pattern, or --all-groups, would include.
    Empty: they are too many.
    """
    if len(group_ids) > _NAMED:
        return ()
    return command(way, ["plan", "sweep", *options], [Names(()).quoted(group_id) for group_id in group_ids])


class Desk:
    """The plans in memory. `open_admins`: functions that make clients, not connected yet, by cluster. `tell` is
    called with the cluster of each applied plan. `watched`: the groups that the server shows; it changes no others.
    `ways`: how commands reach the clusters. `through`: the program's name in the journal.
    """

    def __init__(
        self,
        open_admins: Mapping[str, Callable[[], Admin]],
        journal: ChangeJournal,
        tell: Callable[[str], None],
        watched: Choice = ALL,
        ways: Mapping[str, Way] = {},
        through: str = THROUGH,
    ) -> None:
        self._through = through
        self.journal = journal
        self.watched = watched
        self.ways = ways
        self._open_admins = open_admins
        self._tell = tell
        self._entries: dict[str, DeskEntry] = {}
        self._applying = {cluster: asyncio.Lock() for cluster in open_admins}

    def entry(self, entry_id: str) -> DeskEntry | None:
        """A plan; None: none has this id, or it was dropped."""
        return self._entries.get(entry_id)

    def entries(self) -> list[DeskEntry]:
        """All plans, the latest first."""
        return list(self._entries.values())[::-1]

    async def make(self, cluster: str, change: ChangeRequest, person: Person) -> DeskEntry:
        """Plans the requested change, and compares it. Nothing is changed. Raises ActionRefused."""
        target = change.target
        if target is None:
            group_ids, is_share = (change.group_id,), change.is_of_share_group
            return await self._planned(cluster, person, lambda admin: _made(admin, change), group_ids, is_share)

        async def clone(admin: Admin) -> Made:
            return await self._cloned(admin, cluster, change, target)

        return await self._planned(target.cluster, person, clone, (target.group_id,))

    async def _planned(
        self,
        cluster: str,
        person: Person,
        plan: Callable[[Admin], Awaitable[Made]],
        group_ids: tuple[str, ...] | None = None,
        is_share: bool = False,
    ) -> DeskEntry:
        """Puts a plan on the desk, compared with the cluster. `group_ids` None: those of the plan."""

        async def work(admin: Admin) -> DeskEntry:
            made = await plan(admin)
            concerned = tuple(group.group_id for group in made.plan.groups) if group_ids is None else group_ids
            fit = await _compared(admin, made.plan, concerned)
            return DeskEntry(cluster, person.name, made, fit, concerned)

        entry = await self._with(cluster, work, is_share)
        entry.is_of_share_groups = is_share
        self._entries[entry.id] = entry
        idle = [each for each in self._entries.values() if each.stage is not DeskStage.APPLYING]
        for old in idle[: max(0, len(self._entries) - MOST_PLANS)]:
            del self._entries[old.id]
        return entry

    async def _cloned(self, admin: Admin, cluster: str, change: ChangeRequest, target: Target) -> Made:
        async def plan(other: Admin | None) -> Made:
            groups = {change.group_id: target.group_id}
            wanted = CloneRequest(groups, change.topics, change.policies, _now_ms(), change.command)
            return await make_clone(admin, Source(other, target.prefix or None), wanted)

        made = await plan(None) if cluster == target.cluster else await self._with(cluster, plan)
        by_command = will_be_made(target.group_id)
        notes = [f"there is no group {target.group_id}: the plan creates it" if each == by_command else each
                   for each in made.notes]  # fmt: skip
        return made._replace(notes=tuple(notes))

    async def sweep(self, cluster: str, swept: Swept, group_ids: Sequence[str], person: Person) -> DeskEntry:
        """Plans a sweep of these groups. Nothing is changed. Raises ActionRefused."""

        async def plan(admin: Admin) -> Made:
            made = await make_sweep(admin, group_ids, ALL_COMMITTED, swept.criteria, _now_ms())
            concerned = [group.group_id for group in made.plan.groups]
            words = sweep_command(way_to(cluster, self.ways), swept.options, concerned)
            return made._replace(plan=made.plan._replace(command=words))

        return await self._planned(cluster, person, plan)

    def undo_command(self, cluster: str, change_id: str) -> tuple[str, ...]:
        """The command that undoes a change."""
        return command(way_to(cluster, self.ways), ["undo"], (change_id,))

    async def undo(self, cluster: str, change_id: str, recorded: Recorded, person: Person) -> DeskEntry:
        """Plans the undo of a change. Nothing is changed. Raises ActionRefused."""
        is_share = await self._ask_journal(lambda: is_of_share_groups(self.journal, recorded))
        undone = await self._ask_journal(lambda: undo_of(self.journal.summaries()[0], change_id))
        words = self.undo_command(cluster, change_id)

        async def plan(admin: Admin) -> Made:
            made, _ = await make_undo(admin, recorded, words, _now_ms(), undo=undone)
            timed, notes = await with_times(admin, made)
            return Made(timed, notes=(*([] if undone is None else [undone_text(change_id, undone)]), *notes))

        return await self._planned(cluster, person, plan, tuple(recorded.groups), is_share)

    async def compare(self, entry: DeskEntry) -> None:
        """Compares a plan with the cluster again. Raises ActionRefused."""

        async def work(admin: Admin) -> PlanFit:
            return await _compared(admin, entry.plan, entry.group_ids)

        fit = await self._with(entry.cluster, work, entry.is_of_share_groups)
        if entry.stage is DeskStage.PLANNED:
            entry.fit, entry.compared_ms = fit, _now_ms()

    async def apply(self, entry: DeskEntry, person: Person) -> None:
        """Compares a plan, and applies it if all of it fits; at most once, however often it is requested. Raises
        ActionRefused.
        """
        if entry.stage is not DeskStage.PLANNED:
            return
        entry.stage = DeskStage.APPLYING
        recorder = Recorder(self.journal, entry.plan.command, None, made_by=person.name, through=self._through)

        async def work(admin: Admin) -> Applied | None:
            entry.fit, entry.compared_ms = await _compared(admin, entry.plan, entry.group_ids), _now_ms()
            if entry.fit.troubles:
                return None
            if entry.is_deletion_of_group:
                return await delete_compared(admin, entry.group_ids, entry.fit, recorder)
            return await apply_plan(admin, entry.plan, recorder, fit=entry.fit)

        try:
            async with self._applying[entry.cluster]:
                applied = await self._with(entry.cluster, work, entry.is_of_share_groups)
        except JournalUnwritable as problem:
            entry.stage = DeskStage.PLANNED
            raise ActionRefused(
                503, f"nothing was changed, as the journal cannot be written: {problem}", Concern.JOURNAL
            ) from None
        except BaseException:
            entry.stage = DeskStage.APPLIED if recorder.id else DeskStage.PLANNED
            entry.change_id = recorder.id
            self._tell(entry.cluster)
            raise
        if applied is None:
            entry.stage = DeskStage.PLANNED
            return
        entry.stage, entry.applied = DeskStage.APPLIED, applied
        entry.applied_by, entry.change_id = person.name, recorder.id
        self._tell(entry.cluster)
        if recorder.failure:
            entry.notes.append(f"the journal lacks the outcome, so the change looks unfinished: {recorder.failure}")

    async def recorded(self, change_id: str) -> Recorded | None:
        """A change of the journal. Raises ActionRefused."""
        return await self._ask_journal(lambda: self.journal.load(change_id))

    async def _ask_journal(self, question: Callable[[], T]) -> T:
        try:
            return await asyncio.to_thread(question)
        except JournalUnreadable as problem:
            raise ActionRefused(503, str(problem), Concern.JOURNAL) from None

    async def _with(self, cluster: str, work: Callable[[Admin], Awaitable[T]], is_share: bool = False) -> T:
        try:
            async with self._open_admins[cluster]() as admin:
                return await work(ShareAdmin(admin) if is_share else admin)
        except OperationRefused as refused:
            raise ActionRefused(409, str(refused), Concern.CHANGE) from None
        except (KafkaError, ClientError) as failure:
            raise ActionRefused(502, f"{type(failure).__name__}: {failure}", Concern.CLUSTER) from failure


async def _made(admin: Admin, change: ChangeRequest) -> Made:
    now_ms = _now_ms()
    if change.deed is Deed.RESET:
        request = Request(
            [change.group_id], change.topics, change.scenario, change.policies, command=change.command, made_ms=now_ms,
            creates=False,
        )  # fmt: skip
        made = await make_reset(admin, request)
        return made._replace(plan=made.plan._replace(kind=Kind.SHARE_RESET)) if change.is_of_share_group else made
    if change.deed is Deed.DELETE_OFFSETS:
        return await make_deletion(admin, [change.group_id], change.topics, now_ms, change.command)
    made = await make_deletion(admin, [change.group_id], ALL_COMMITTED, now_ms, change.command)
    return made._replace(plan=made.plan._replace(kind=Kind.DELETE_GROUPS))


async def _compared(admin: Admin, plan: Plan, group_ids: tuple[str, ...]) -> PlanFit:
    if plan.kind is not Kind.DELETE_GROUPS:
        return await check(admin, plan, creates=plan.kind in (Kind.UNDO, Kind.CLONE))
    fit = await check(admin, plan)
    found = await find_deletion(admin, group_ids)
    stale = tuple(each for each in fit.troubles if each.topic_partition is not None)
    return fit._replace(troubles=(*(PlanTrouble(key, None, why) for key, why in found.failed.items()), *stale))


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
