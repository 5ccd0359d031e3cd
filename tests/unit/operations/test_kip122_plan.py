"""The JSON plan of kafka-consumer-group-reset: strict when written, lenient when read."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groupkeeper.client.admin.types import TopicPartition
from groupkeeper.operations import plan_csv
from groupkeeper.operations.plans.kip122 import BadResetPlan, ResetPlan, read, write

names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=5)
offsets = st.integers(-(2**63), 2**63 - 1)
plans = st.builds(
    ResetPlan, names, st.dictionaries(st.builds(TopicPartition, names, st.integers(0, 2**31 - 1)), offsets, max_size=6)
)


# K122-20, K122-X2
def test_the_canonical_form() -> None:
    plan = ResetPlan("g", {TopicPartition("b", 0): 1, TopicPartition("a", 10): 3, TopicPartition("a", 2): 2})
    assert json.loads(write(plan)) == {
        "version": 1,
        "offsets": {
            "group_id": "g",
            "topics": [
                {"a": [{"partition": 2, "offset": 2}, {"partition": 10, "offset": 3}]},
                {"b": [{"partition": 0, "offset": 1}]},
            ],
        },
    }
    assert list(json.loads(write(plan))) == ["version", "offsets"]


# K122-22
@given(plans)
def test_what_is_written_is_read(plan: ResetPlan) -> None:
    assert read(write(plan)) == plan
    document = json.loads(write(plan))
    document["offsets"]["topics"] = {k: v for one in document["offsets"]["topics"] for k, v in one.items()}
    turned = {"offsets": dict(reversed(document["offsets"].items())), "version": 1}
    assert read(json.dumps(turned)) == plan


# K122-24, K122-25, K122-X2
def test_what_is_tolerated() -> None:
    entry = {"partition": 0, "offset": -9, "metadata": "x", "comment": None}
    text = json.dumps({"version": 1, "why": "x", "offsets": {"group_id": "g", "by": 1, "topics": [{"t": [entry]}]}})
    assert read(text) == ResetPlan("g", {TopicPartition("t", 0): -9})
    assert read('{"version": 1, "offsets": {"group_id": "g", "topics": []}}') == ResetPlan("g", {})
    two = [{"t": [{"partition": 0, "offset": 1}], "u": []}, {"t": [{"partition": 1, "offset": 1}]}]
    assert len(read(plan_text(topics=two)).offsets) == 2


def plan_text(*, version: Any = 1, group_id: Any = "g", topics: Any = ()) -> str:
    return json.dumps({"version": version, "offsets": {"group_id": group_id, "topics": topics}})


def entry_text(**entry: Any) -> str:
    return plan_text(topics=[{"t": [entry]}])


# K122-21, K122-23
@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "not JSON"),
        ("{“offsets”: {}}", "not JSON"),
        ("[" * 100_000, "brackets"),
        ("[]", "the plan must be an object"),
        ("null", "the plan must be an object"),
        ('{"offsets": {"group_id": "g", "topics": []}}', "no field version"),
        ('{"version": 1}', "no field offsets"),
        ('{"version": 1, "offsets": []}', "offsets must be an object"),
        ('{"version": 1, "offsets": {"topics": []}}', "no field group_id"),
        ('{"version": 1, "offsets": {"group_id": "g"}}', "no field topics"),
        ('{"version": 1, "version": 1, "offsets": {}}', "version appears twice"),
        (plan_text(version=2), "version is 2"),
        (plan_text(version=True), "version is true"),
        (plan_text(version=1.0), "version is 1.0"),
        (plan_text(version="1"), 'version is "1"'),
        (plan_text(group_id=""), "group_id"),
        (plan_text(group_id=5), "group_id"),
        (plan_text(topics="t"), "topics"),
        (plan_text(topics=["t"]), "topics"),
        (plan_text(topics=[{"t": {}}]), "topic t"),
        (plan_text(topics=[{"": []}]), "without a name"),
        (plan_text(topics=[{"t": [5]}]), "topic t"),
        (entry_text(offset=1), "no field partition"),
        (entry_text(partition=0), "no field offset"),
        (entry_text(partition=-1, offset=1), "partition is -1"),
        (entry_text(partition=2**31, offset=1), "partition is 2147483648"),
        (entry_text(partition="0", offset=1), 'partition is "0"'),
        (entry_text(partition=0, offset=1.5), "offset of partition 0 is 1.5"),
        (entry_text(partition=0, offset=None), "offset of partition 0 is null"),
        (entry_text(partition=0, offset=True), "offset of partition 0 is true"),
        (entry_text(partition=0, offset=2**63), "offset of partition 0 is 9223372036854775808"),
        (plan_text(topics=[{"t": [{"partition": 0, "offset": 1}] * 2}]), "partition 0 is listed twice"),
        (plan_text(topics=[{"t": [{"partition": 0, "offset": 1}]}] * 2), "partition 0 is listed twice"),
        ('{"version": 1, "offsets": {"group_id": "g", "topics": {"t": [{"partition": 0, "offset": NaN}]}}}', "NaN"),
    ],
)
def test_what_is_refused_is_named(text: str, fault: str) -> None:
    with pytest.raises(BadResetPlan) as refusal:
        read(text)
    assert fault in str(refusal.value)
    assert "\n" not in str(refusal.value)


# K122-X5
@given(plans.filter(lambda plan: bool(plan.offsets)))
def test_neither_tool_reads_the_form_of_the_other(plan: ResetPlan) -> None:
    with pytest.raises(plan_csv.BadPlan):
        plan_csv.read(write(plan), plan.group_id)
    with pytest.raises(BadResetPlan, match="not JSON"):
        read(plan_csv.write([(plan.group_id, plan.offsets)], with_group=True))
