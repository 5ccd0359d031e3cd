"""Who runs which tasks: balanced, sticky, standbys in other processes (KIP-1071)."""

from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from groupkeeper.coordinator.assignors.spec import Task, TaskRole, Tasks
from groupkeeper.coordinator.assignors.tasks import TaskMember, assign

COUNTS = st.dictionaries(st.sampled_from("012"), st.integers(1, 6), max_size=3)
PROCESSES = st.lists(st.sampled_from("pqrs"), min_size=1, max_size=7)


def active(*names: str) -> Tasks:
    return frozenset(Task(TaskRole.ACTIVE, name[0], int(name[2:])) for name in names)


def standby(*names: str) -> Tasks:
    return frozenset(task._replace(role=TaskRole.STANDBY) for task in active(*names))


def members_of(processes: list[str], targets: Mapping[str, Tasks]) -> dict[str, TaskMember]:
    return {
        f"m{index}": TaskMember(process_id, targets.get(f"m{index}", frozenset()))
        for index, process_id in enumerate(processes)
    }


def test_tasks_of_each_subtopology_spread() -> None:
    targets = assign(members_of(["p", "q"], {}), {"0": 2, "1": 2}, (), 0)
    assert targets == {"m0": active("0_0", "1_0"), "m1": active("0_1", "1_1")}


def test_tasks_with_state_spread_for_themselves() -> None:
    before = {"m0": active("0_0", "0_1")}
    targets = assign(members_of(["p", "q"], before), {"0": 2, "1": 2}, {"0"}, 0)
    assert targets == {"m0": active("0_0", "1_0"), "m1": active("0_1", "1_1")}


def test_a_new_member_gets_its_share_and_nothing_else_moves() -> None:
    before = {"m0": active("0_0", "0_1", "0_2"), "m1": active("0_3", "0_4")}
    targets = assign(members_of(["p", "q", "r"], before), {"0": 5}, (), 0)
    assert targets["m2"] == active("0_2")
    assert targets["m0"] == active("0_0", "0_1")
    assert targets["m1"] == active("0_3", "0_4")


def test_who_keeps_the_state_takes_over() -> None:
    before = {"m0": active("0_0"), "m1": standby("0_2") | active("0_1")}
    targets = assign(members_of(["p", "q"], before), {"0": 3}, {"0"}, 0)
    assert targets == {"m0": active("0_0"), "m1": active("0_1", "0_2")}


def test_standbys_stay_where_the_state_is() -> None:
    before = {"m0": active("0_0"), "m1": active("0_1") | standby("0_0"), "m2": standby("0_1")}
    targets = assign(members_of(["p", "q", "r"], before), {"0": 2}, {"0"}, 1)
    assert targets["m1"] == active("0_1") | standby("0_0")
    assert targets["m2"] == standby("0_1")


def test_stateless_subtopologies_and_single_processes_have_no_standbys() -> None:
    assert all(not one - active("0_0", "0_1") for one in assign(members_of(["p", "q"], {}), {"0": 2}, (), 2).values())
    targets = assign(members_of(["p", "p"], {}), {"0": 2}, {"0"}, 2)
    assert {task.role for one in targets.values() for task in one} == {TaskRole.ACTIVE}


@given(processes=PROCESSES, counts=COUNTS, later=PROCESSES, later_counts=COUNTS, standbys=st.integers(0, 2))
def test_every_task_is_there_once_balanced_and_stays(
    processes: list[str], counts: dict[str, int], later: list[str], later_counts: dict[str, int], standbys: int
) -> None:
    first = assign(members_of(processes, {}), counts, counts, standbys)
    assert assign(members_of(processes, first), counts, counts, standbys) == first
    members = members_of(later, first)
    targets = assign(members, later_counts, later_counts, standbys)
    check(members, targets, later_counts, standbys)


def check(
    members: Mapping[str, TaskMember], targets: Mapping[str, Tasks], counts: Mapping[str, int], standbys: int
) -> None:
    wanted = {Task(TaskRole.ACTIVE, one, index) for one, count in counts.items() for index in range(count)}
    run = [task for tasks in targets.values() for task in tasks if task.role is TaskRole.ACTIVE]
    assert sorted(run) == sorted(wanted)
    loads = [sum(task.role is TaskRole.ACTIVE for task in tasks) for tasks in targets.values()]
    assert max(loads) - min(loads) <= 1
    processes = {member.process_id for member in members.values()}
    for task in wanted:
        where = [
            members[member_id].process_id
            for member_id, tasks in targets.items()
            for one in tasks
            if one[1:] == task[1:]
        ]
        assert len(where) == len(set(where)) == min(1 + standbys, len(processes))
