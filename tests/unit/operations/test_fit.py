"""Comparing a plan with how things are now: pure, from what is known of groups and logs."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groupkeeper.client.admin.types import (
    Batch,
    GroupState,
    GroupType,
    MemberDescription,
    Node,
    OffsetAndMetadata,
    PartitionDescription,
    TopicDescription,
    TopicPartition,
)
from groupkeeper.operations.errors import GroupIsActive, PartitionsMissing, StalePlan
from groupkeeper.operations.plans.cluster_state import FoundGroup, FoundGroups, Logs
from groupkeeper.operations.plans.fit import PlanFit, fit_of
from groupkeeper.operations.plans.model import Change, GroupPlan, Kind, Plan, PlannedTopic, is_same
from groupkeeper.protocol.errors import GroupAuthorizationFailed, LeaderNotAvailable

NODE = Node(1, "here", 9092)
P, Q = TopicPartition("orders", 0), TopicPartition("orders", 1)
TOPIC_ID = bytes(15) + b"\x01"


def commit(offset: int, epoch: int | None = None, metadata: str = "") -> OffsetAndMetadata:
    return OffsetAndMetadata(offset, epoch, metadata)


def plan_of(changes: Mapping[TopicPartition, Change], partitions: int | None = 2) -> Plan:
    return Plan("c", (GroupPlan("g", dict(changes)),), topics={"orders": PlannedTopic(TOPIC_ID.hex(), partitions)})


def groups_of(
    committed: Mapping[TopicPartition, OffsetAndMetadata], state: GroupState | None = GroupState.EMPTY
) -> FoundGroups:
    """State None: there is no such group."""
    members = (MemberDescription("m-1", None, "worker", "/10.0.0.1"), MemberDescription("m-2", None, "", "/10.0.0.2"))
    described: dict[str, FoundGroup] = {}
    if state is not None:
        active = members if state is GroupState.STABLE else ()
        described["g"] = FoundGroup("g", GroupType.CLASSIC, state, active)
    return FoundGroups(described, {"g": dict(committed)}, {})


def logs_of(ends: Mapping[TopicPartition, tuple[int, int]], topic_id: bytes = TOPIC_ID, partitions: int = 2) -> Logs:
    described = tuple(PartitionDescription(number, NODE) for number in range(partitions))
    topics = Batch({"orders": TopicDescription("orders", topic_id, False, described)})
    return Logs(topics, {tp: low for tp, (low, _) in ends.items()}, {tp: high for tp, (_, high) in ends.items()}, {})


PLAN = plan_of({P: Change(commit(5), commit(2))})
NOW = groups_of({P: commit(5), Q: commit(9)})
LOGS = logs_of({P: (0, 10)})


def said(fit: PlanFit) -> list[str]:
    return [f"{trouble.topic_partition}: {trouble.failure}" for trouble in fit.troubles]


def test_what_is_as_it_was_is_ready() -> None:
    assert fit_of(PLAN, NOW, LOGS) == PlanFit(PLAN.groups, (), ())
    assert fit_of(PLAN, NOW._replace(described={}), LOGS).ready == PLAN.groups


@pytest.mark.parametrize(
    ("groups", "logs", "text"),
    [
        (
            groups_of({P: commit(6)}),
            LOGS,
            "orders-0: it was committed at 5 when the plan was made, and is committed at 6",
        ),
        (groups_of({}), LOGS, "orders-0: it was committed at 5 when the plan was made, and is not committed now"),
        (groups_of({P: commit(5, None, "x")}), LOGS, "orders-0: it was committed at 5"),
        (NOW, logs_of({P: (3, 10)}), "orders-0: the log begins at 3 now, after the planned offset 2"),
        (NOW, logs_of({P: (0, 1)}), "orders-0: the log ends at 1 now, before the planned offset 2"),
        (
            NOW,
            logs_of({P: (0, 10)}, partitions=3),
            "orders: the topic had 2 partitions when the plan was made, and has 3",
        ),
        (NOW, logs_of({P: (0, 10)}, topic_id=bytes(16)), "orders: the topic was deleted and recreated since"),
    ],
)
def test_what_moved_is_said(groups: FoundGroups, logs: Logs, text: str) -> None:
    fit = fit_of(PLAN, groups, logs)
    assert fit.ready == ()
    assert isinstance(fit.troubles[0].failure, StalePlan)
    assert said(fit)[0].startswith(text)


def test_an_active_group_is_refused_by_its_members() -> None:
    fit = fit_of(PLAN, groups_of({P: commit(5)}, GroupState.STABLE), LOGS)
    assert isinstance(fit.troubles[0].failure, GroupIsActive)
    assert said(fit) == ["None: the group is active (Stable), held by worker on /10.0.0.1, m-2 on /10.0.0.2"]


def test_what_cannot_be_looked_at_is_refused() -> None:
    refused = GroupAuthorizationFailed()
    assert fit_of(PLAN, NOW._replace(failed={"g": refused}), LOGS).troubles[0].failure is refused
    leaderless = LeaderNotAvailable()
    assert fit_of(PLAN, NOW, logs_of({})._replace(failed={P: leaderless})).troubles[0].failure is leaderless
    far = TopicPartition("orders", 7)
    plan = plan_of({far: Change(None, commit(0))})
    unknown = logs_of({})._replace(failed={far: leaderless})
    assert isinstance(fit_of(plan, NOW, unknown).troubles[0].failure, PartitionsMissing)


def test_a_deletion_needs_no_log() -> None:
    plan = plan_of({P: Change(commit(5), None)})
    logs = logs_of({})._replace(failed={P: LeaderNotAvailable()})
    assert fit_of(plan, NOW, logs) == PlanFit(plan.groups, (), ())
    assert fit_of(plan, groups_of({}), logs) == PlanFit((), (("g", P),), ())


def test_who_reads_is_unknown_while_a_group_without_members_rebalances() -> None:
    plan = plan_of({P: Change(commit(5), None)})
    fit = fit_of(plan, groups_of({P: commit(5)}, GroupState.PREPARING_REBALANCE), LOGS)
    assert isinstance(fit.troubles[0].failure, GroupIsActive)


def test_a_sweep_commits_once_more_what_is_in_the_log() -> None:
    kept = plan_of({P: Change(commit(5), commit(5))})
    assert fit_of(kept, NOW, LOGS) == PlanFit((), (("g", P),), ())
    sweep = kept._replace(kind=Kind.SWEEP)
    assert fit_of(sweep, NOW, LOGS) == PlanFit(sweep.groups, (), ())
    fit = fit_of(sweep, NOW, logs_of({P: (6, 10)}))
    assert said(fit) == ["orders-0: the log begins at 6 now, after the planned offset 5"]


def test_a_share_group_is_reset_to_where_it_begins_as_records_ahead_of_it_are_done() -> None:
    plan = plan_of({P: Change(commit(5), commit(5))})._replace(kind=Kind.SHARE_RESET)
    assert fit_of(plan, NOW, LOGS) == PlanFit(plan.groups, (), ())
    moved = plan_of({P: Change(commit(3), commit(5))})._replace(kind=Kind.SHARE_RESET)
    assert fit_of(moved, NOW, LOGS) == PlanFit((), (("g", P),), ())


def test_new_partitions_do_not_matter_to_a_plan_for_some() -> None:
    plan = plan_of(PLAN.groups[0].changes, partitions=None)
    assert fit_of(plan, NOW, logs_of({P: (0, 10)}, partitions=3)).troubles == ()


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (None, None, True),
        (None, commit(0), False),
        (commit(1), commit(1), True),
        (commit(1), commit(2), False),
        (commit(1, 3), commit(1, 4), False),
        (commit(1, 3), commit(1), True),
        (commit(1, 3, "a"), commit(1, 3, "b"), False),
    ],
)
def test_same_commits(one: OffsetAndMetadata | None, other: OffsetAndMetadata | None, same: bool) -> None:
    assert (is_same(one, other), is_same(other, one)) == (same, same)


commits = st.none() | st.builds(commit, st.integers(0, 12), st.none() | st.integers(0, 2), st.sampled_from(["", "x"]))
places = st.sampled_from([TopicPartition("orders", number) for number in range(4)])
plans = st.dictionaries(places, st.builds(Change, commits, commits), max_size=4)
ends = st.tuples(st.integers(0, 6), st.integers(6, 12))


@given(plans, st.dictionaries(places, commits, max_size=4), st.lists(ends, min_size=4, max_size=4))
def test_a_stale_plan_is_never_ready(
    changes: dict[TopicPartition, Change],
    now: dict[TopicPartition, OffsetAndMetadata | None],
    starts_and_ends: list[tuple[int, int]],
) -> None:
    committed = {tp: one for tp, one in now.items() if one is not None}
    logs = logs_of({TopicPartition("orders", n): each for n, each in enumerate(starts_and_ends)}, partitions=4)
    fit = fit_of(plan_of(changes, partitions=4), groups_of(committed), logs)
    if fit.troubles:
        assert fit.ready == ()
    for group in fit.ready:
        assert set(group.changes) <= set(changes)
        for tp, change in group.changes.items():
            assert is_same(committed.get(tp), change.before)
            if change.after is not None:
                assert logs.log_starts[tp] <= change.after.offset <= logs.log_ends[tp]
    ready = {tp for group in fit.ready for tp in group.changes}
    done = {tp for _, tp in fit.already}
    assert all(is_same(committed.get(tp), changes[tp].after) for tp in done)
    if not fit.troubles:
        assert ready | done == set(changes)
