"""Plan files: what is written is read, and what people break when they edit one is named."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groupkeeper.client.admin.types import OffsetAndMetadata, TopicPartition
from groupkeeper.operations.plans.document import BadPlanFile, read, write
from groupkeeper.operations.plans.model import Change, GroupPlan, Kind, Plan, PlannedTopic

names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=5) | st.sampled_from(
    ["offset", "topic", "group", "format"]
)
longs = st.integers(0, 2**63 - 1)
commits = st.builds(OffsetAndMetadata, longs, st.none() | st.integers(0, 2**31 - 1), st.text(max_size=5))
times = st.none() | st.integers(0, 253_402_300_799_999)
changes = st.builds(
    Change,
    st.none() | commits,
    st.none() | commits,
    st.none() | longs,
    st.none() | longs,
    times,
    times,
    st.text(max_size=5),
    skips=st.none(),
    replays=st.none(),
)
places = st.builds(TopicPartition, names, st.integers(0, 2**31 - 1))
groups = st.builds(GroupPlan, names, st.dictionaries(places, changes, max_size=4), st.just(()), st.text(max_size=5))
plans = st.builds(
    Plan,
    st.none() | names,
    st.lists(groups, max_size=3, unique_by=lambda group: group.group_id).map(tuple),
    st.sampled_from([Kind.RESET, Kind.UNDO, Kind.DELETE, Kind.CLONE, Kind.SWEEP]),
    st.integers(0, 253_402_300_799_999),
    st.lists(names).map(tuple),
    st.dictionaries(names, st.builds(PlannedTopic, st.none() | names, st.none() | st.integers(0, 9))),
    st.none() | names,
)


@given(plans)
def test_what_is_written_is_read(plan: Plan) -> None:
    text = "".join(write(plan))
    assert read(text) == plan
    assert read(json.dumps(json.loads(text))) == plan


SMALL = Plan(
    "cluster",
    (GroupPlan("billing", {TopicPartition("orders", 0): Change(None, OffsetAndMetadata(5), 0, 9)}),),
    topics={"orders": PlannedTopic("id", 1)},
)
Edit = Callable[[Any], object]


def test_how_sure_a_clone_is_may_be_missing_as_in_older_plans() -> None:
    (group,) = SMALL.groups
    tp, change = next(iter(group.changes.items()))
    sure = SMALL._replace(groups=(group._replace(changes={tp: change._replace(certainty="content")}),))
    text = "".join(write(sure))
    assert read(text) == sure
    assert read(text.replace(', "certainty": "content"', "")) == SMALL
    assert '"certainty"' not in "".join(write(SMALL))


def partition(**fields: Any) -> Edit:
    return lambda plan: plan["groups"][0]["partitions"][0].update(fields)


def after(**fields: Any) -> Edit:
    return partition(after=fields)


def group(**fields: Any) -> Edit:
    return lambda plan: plan["groups"][0].update(fields)


def top(**fields: Any) -> Edit:
    return lambda plan: plan.update(fields)


@pytest.mark.parametrize(
    ("edit", "fault"),
    [
        (partition(aftr=None), "orders-0 has the field aftr, which no plan has"),
        (lambda plan: plan["groups"][0]["partitions"][0].pop("why"), "orders-0 has no why"),
        (partition(after=5), 'orders-0: after must be null or an object like {"offset": 5}'),
        (partition(before={}), 'orders-0: before must be null or an object like {"offset": 5}'),
        (after(offset="5"), 'orders-0: after: offset is "5", and must be a number from 0 to 9223372036854775807'),
        (after(offset=-1), "orders-0: after: offset is -1"),
        (after(offset=True), "orders-0: after: offset is true"),
        (after(offset=2**63), "orders-0: after: offset is 9223372036854775808"),
        (after(offset={"offset": 1}), "orders-0: after: offset is "),
        (after(offset=1, meta=""), "orders-0: after has the field meta"),
        (after(offset=1, metadata=1), "orders-0: after: metadata is 1, and must be a text"),
        (after(offset=1, leader_epoch=-1), "orders-0: after: leader_epoch is -1"),
        (partition(partition="0"), 'topic orders: partition is "0"'),
        (partition(topic=""), "a topic without a name"),
        (partition(topic=[]), "a partition: topic is []"),
        (partition(topic={}), "group billing: partitions must be a list of partitions"),
        (partition(log_start_offset=-3), "orders-0: log_start_offset is -3"),
        (partition(after_time="noon"), 'orders-0: after_time is "noon", and must be a time like 2026-'),
        (partition(why=3), "orders-0: why is 3"),
        (group(group=""), "a group has no name"),
        (group(group={}), "groups must be a list of objects like"),
        (group(state=3), "group billing: state is 3"),
        (group(partitions={}), "group billing: partitions must be a list of partitions"),
        (lambda plan: plan["groups"][0]["partitions"].append(plan["groups"][0]["partitions"][0]), "0 is listed twice"),
        (lambda plan: plan["groups"].append(plan["groups"][0]), "group billing is listed twice"),
        (top(groups={}), "groups must be a list of objects like"),
        (top(format="x"), 'it has no "format": "groupkeeper-plan"'),
        (top(version=2), "the plan has version 2; this groupkeeper reads version 1"),
        (top(kind="rest"), 'kind is "rest", and must be one of reset, undo,'),
        (top(kind="share-reset"), 'kind is "share-reset", and must be one of reset, undo,'),
        (top(made="yesterday"), 'the plan: made is "yesterday", and must be a time'),
        (top(command="x"), "command must be a list of words"),
        (top(topics=[]), "topics must be an object"),
        (top(topics={"orders": 3}), "topic orders must be an object"),
        (top(topics={"orders": {"id": 3, "partitions": 1}}), "topic orders: id is 3"),
        (top(undoes=3), "the plan: undoes is 3"),
        (top(more=1), "the plan has the field more"),
    ],
)
def test_what_is_edited_wrongly_is_named(edit: Edit, fault: str) -> None:
    plan = json.loads("".join(write(SMALL)))
    edit(plan)
    with pytest.raises(BadPlanFile) as refusal:
        read(json.dumps(plan))
    assert fault in str(refusal.value)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "not JSON: Expecting value in line 1, column 1"),
        ("orders,0,5\n", "not JSON: "),
        ('{"format": 1,}', "not JSON: "),
        ("[]", 'it has no "format"'),
        ("5", 'it has no "format"'),
        ("[" * 100_000, "nested too deeply"),
        ('{"format": 1, "format": 1}', "the field format appears twice in one object"),
        ('{"format": ' + "9" * 5000 + "}", "thousands of digits"),
        ('{"version": 1, "offsets": {"group_id": "g", "topics": []}}', 'it has no "format"'),
    ],
)
def test_what_is_no_plan(text: str, fault: str) -> None:
    with pytest.raises(BadPlanFile) as refusal:
        read(text)
    assert fault in str(refusal.value)
