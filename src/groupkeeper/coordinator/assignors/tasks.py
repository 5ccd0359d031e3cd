"""The `sticky` assignor of streams groups (KIP-1071): balances tasks, and otherwise leaves them at their members.
Active tasks: the numbers of two members differ by at most one, also the numbers of tasks with state. A task stays at
its member within the member's share; else it goes to a member with its standby, else to the member with the fewest
tasks, so that the tasks of each subtopology spread. Standbys: each copy of a task with state is in another process, the
same as before if possible, else the process with the lowest load per member.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from groupkeeper.coordinator.assignors.spec import Task, TaskRole, Tasks


@dataclass(frozen=True, slots=True)
class TaskMember:
    """A member: its process, and its previous target assignment."""

    process_id: str
    target: Tasks = frozenset()


def assign(
    members: Mapping[str, TaskMember], task_counts: Mapping[str, int], stateful: Collection[str], standby_count: int
) -> dict[str, Tasks]:
    """The tasks of every member. `task_counts` is by subtopology id, `stateful` has the ids of subtopologies that need
    standbys.
    """
    if not members:
        return {}
    assignment = _Assignment(members)
    active = [Task(TaskRole.ACTIVE, one, index) for one in sorted(task_counts) for index in range(task_counts[one])]
    assignment.place_active(active, stateful)
    assignment.place_standbys([task for task in active if task.subtopology_id in stateful], standby_count)
    return {member_id: frozenset(tasks) for member_id, tasks in assignment.tasks.items()}


class _Assignment:
    def __init__(self, members: Mapping[str, TaskMember]) -> None:
        self._members = members
        self.tasks: dict[str, set[Task]] = {member_id: set() for member_id in members}
        self._members_of: dict[str, list[str]] = {}
        for member_id, member in members.items():
            self._members_of.setdefault(member.process_id, []).append(member_id)
        self._holders: dict[Task, list[str]] = {}
        for member_id, member in members.items():
            for task in member.target:
                self._holders.setdefault(task, []).append(member_id)

    # --- active tasks

    def place_active(self, active: list[Task], stateful: Collection[str]) -> None:
        """Places active tasks, tasks with state first, so that both kinds are balanced."""
        with_state = [task for task in active if task.subtopology_id in stateful]
        self._place(with_state, len(with_state))
        self._place([task for task in active if task.subtopology_id not in stateful], len(active))

    def _place(self, active: list[Task], total: int) -> None:
        """Places tasks so that members then have equally many of `total` active tasks: they differ by at most one."""
        share, extra = divmod(total, len(self._members))
        left = self._keep(active, share, extra)
        left = self._promote(left, share, extra)
        for task in left:
            self._give(task, self._least(self._members))

    def _keep(self, active: list[Task], share: int, extra: int) -> list[Task]:
        """Keeps tasks at their members, up to a member's share; some members may keep one more."""
        kept_by: dict[str, list[Task]] = {member_id: [] for member_id in self._members}
        for task in active:
            for member_id in self._holders.get(task, ())[:1]:
                kept_by[member_id].append(task)
        have_more = [member_id for member_id, tasks in self.tasks.items() if len(tasks) > share]
        want_more = [one for one, kept in kept_by.items() if len(self.tasks[one]) + len(kept) > share]
        with_more = list(dict.fromkeys((*have_more, *want_more)))[:extra]
        placed = set()
        for member_id, kept in kept_by.items():
            room = max(0, share + (member_id in with_more) - len(self.tasks[member_id]))
            self.tasks[member_id].update(kept[:room])
            placed.update(kept[:room])
        return [task for task in active if task not in placed]

    def _promote(self, left: list[Task], share: int, extra: int) -> list[Task]:
        """Makes standby tasks active at members with room."""
        rest = []
        for task in left:
            holders = self._holders.get(task._replace(role=TaskRole.STANDBY), ())
            with_more = sum(len(tasks) > share for tasks in self.tasks.values())
            room = share + (with_more < extra)
            able = [member_id for member_id in holders if len(self.tasks[member_id]) < room]
            if able:
                self._give(task, self._least(able))
            else:
                rest.append(task)
        return rest

    # --- standbys

    def place_standbys(self, tasks: list[Task], count: int) -> None:
        count = min(count, len(self._members_of) - 1)
        total = sum(len(some) for some in self.tasks.values()) + count * len(tasks)
        limit = -(-total // len(self._members))
        for task in tasks:
            standby = task._replace(role=TaskRole.STANDBY)
            holders = [*self._holders.get(standby, ()), *self._holders.get(task, ())]
            taken = {self._members[one].process_id for one, some in self.tasks.items() if task in some}
            for _ in range(count):
                member_id = self._standby_for(holders, taken, limit)
                taken.add(self._members[member_id].process_id)
                self._give(standby, member_id)

    def _standby_for(self, holders: list[str], taken: set[str], limit: int) -> str:
        """A member that has the task's state and isn't full, else a member of the process with the lowest load."""
        for member_id in holders:
            if self._members[member_id].process_id not in taken and len(self.tasks[member_id]) < limit:
                return member_id
        process_id = min((one for one in self._members_of if one not in taken), key=self._load)
        return self._least(self._members_of[process_id])

    def _load(self, process_id: str) -> float:
        members = self._members_of[process_id]
        return sum(len(self.tasks[member_id]) for member_id in members) / len(members)

    # --- both

    def _least(self, member_ids: Iterable[str]) -> str:
        return min(member_ids, key=lambda member_id: len(self.tasks[member_id]))

    def _give(self, task: Task, member_id: str) -> None:
        self.tasks[member_id].add(task)
