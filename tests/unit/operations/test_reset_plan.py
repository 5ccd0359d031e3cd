"""The arithmetic of resets: pure, from what is known about the partitions."""

import pytest

from groupkeeper.client.admin.types import (
    ListedOffset,
    Node,
    OffsetAndMetadata,
    PartitionDescription,
    TopicDescription,
    TopicPartition,
)
from groupkeeper.operations.errors import BadTopicArgument, NothingCommitted, PartitionsLeaderless, PartitionsMissing
from groupkeeper.operations.plans.model import Adjustment, AdjustmentKind
from groupkeeper.operations.plans.reset import (
    LogFacts,
    Scenario,
    ShiftBy,
    ToCurrent,
    ToEarliest,
    ToLatest,
    ToOffset,
    ToPlan,
    ToTime,
    parse_topic_argument,
    plan_offsets,
    refuse_unusable,
)

P = TopicPartition("orders", 0)
FACTS = LogFacts(log_starts={P: 5}, log_ends={P: 20}, committed={P: OffsetAndMetadata(12, 3, "adjustment")})


def new_offset(scenario: Scenario, facts: LogFacts = FACTS) -> tuple[int, list[AdjustmentKind]]:
    plan = plan_offsets("g", [P], scenario, facts)
    return plan.offsets[P].offset, [adjustment.kind for adjustment in plan.adjustments]


@pytest.mark.parametrize(
    ("scenario", "offset", "adjustments"),
    [
        (ToEarliest(), 5, []),
        (ToLatest(), 20, []),
        (ToCurrent(), 12, []),
        (ToOffset(5), 5, []),
        (ToOffset(20), 20, []),
        (ToOffset(4), 5, [AdjustmentKind.BELOW_LOG_START]),
        (ToOffset(-1), 5, [AdjustmentKind.BELOW_LOG_START]),
        (ToOffset(21), 20, [AdjustmentKind.ABOVE_LOG_END]),
        (ShiftBy(8), 20, []),
        (ShiftBy(9), 20, [AdjustmentKind.ABOVE_LOG_END]),
        (ShiftBy(2**63 - 1), 20, [AdjustmentKind.ABOVE_LOG_END]),
        (ShiftBy(-7), 5, []),
        (ShiftBy(-8), 5, [AdjustmentKind.BELOW_LOG_START]),
        (ToPlan({P: 99}), 20, [AdjustmentKind.ABOVE_LOG_END]),
    ],
)
def test_scenarios(
    scenario: Scenario, offset: int, adjustments: list[AdjustmentKind]
) -> None:  # K122-70, K122-76, K122-77
    assert new_offset(scenario) == (offset, adjustments)


def test_notes_tell_what_was_asked_and_what_is_used() -> None:
    assert plan_offsets("g", [P], ToOffset(4), FACTS).adjustments == (
        Adjustment(AdjustmentKind.BELOW_LOG_START, P, 4, 5),
    )


# K122-78
def test_current_is_the_end_where_nothing_is_committed() -> None:
    assert new_offset(ToCurrent(), FACTS._replace(committed={})) == (20, [])


def test_current_is_moved_into_the_log_unless_told_not_to() -> None:
    facts = FACTS._replace(committed={P: OffsetAndMetadata(50)})
    assert new_offset(ToCurrent(), facts) == (20, [AdjustmentKind.ABOVE_LOG_END])
    assert new_offset(ToCurrent(clamp=False), facts) == (50, [])


# K122-79
def test_a_time_after_the_last_record_is_the_end() -> None:
    assert new_offset(ToTime(7), FACTS._replace(found={P: ListedOffset(9, 8)})) == (9, [])
    assert new_offset(ToTime(7), FACTS._replace(found={P: ListedOffset(-1)})) == (20, [AdjustmentKind.NOTHING_LATER])


# K122-77
def test_a_shift_needs_somewhere_to_start() -> None:
    with pytest.raises(NothingCommitted, match="Cannot shift offset for partition orders-0 since there is no current"):
        plan_offsets("g", [P], ShiftBy(1), FACTS._replace(committed={}))


def test_metadata_stays_and_the_leader_epoch_stays_with_its_offset() -> None:
    assert plan_offsets("g", [P], ToCurrent(), FACTS).offsets[P] == OffsetAndMetadata(12, 3, "adjustment")
    assert plan_offsets("g", [P], ToLatest(), FACTS).offsets[P] == OffsetAndMetadata(20, None, "adjustment")
    found = FACTS._replace(found={P: ListedOffset(9, 8, 2)})
    assert plan_offsets("g", [P], ToTime(7), found).offsets[P] == OffsetAndMetadata(9, 2, "adjustment")


# K496-51, K496-52
@pytest.mark.parametrize(
    ("argument", "parsed"),
    [
        ("orders", ("orders", None)),
        ("", ("", None)),
        ("orders:0,2", ("orders", [0, 2])),
        ("orders:0,", ("orders", [0])),
        ("orders:,", ("orders", [])),
        ("orders:+1", ("orders", [1])),
        ("orders:-1", ("orders", [-1])),
        (":0", ("", [0])),
    ],
)
def test_topic_arguments(argument: str, parsed: tuple[str, list[int] | None]) -> None:
    assert parse_topic_argument(argument) == parsed


@pytest.mark.parametrize("argument", ["orders:", "orders:0:1", "a:b:c", ":"])
def test_topic_arguments_with_the_wrong_number_of_parts(argument: str) -> None:
    with pytest.raises(BadTopicArgument) as refusal:
        parse_topic_argument(argument)
    assert str(refusal.value) == f"Invalid topic arg '{argument}', expected topic name and partitions"


@pytest.mark.parametrize(
    ("argument", "part"),
    [
        ("t:x", "x"),
        ("t:0,,1", ""),
        ("t: 1", " 1"),
        ("t:99999999999", "99999999999"),
        pytest.param(f"t:{'9' * 5000}", "9" * 5000, id="thousands of digits"),
    ],
)
def test_topic_arguments_with_partitions_that_are_no_numbers(argument: str, part: str) -> None:
    with pytest.raises(BadTopicArgument) as refusal:
        parse_topic_argument(argument)
    assert str(refusal.value) == f"Invalid partition '{part}' specified in topic arg '{argument}''"


# K122-75
def test_partitions_must_exist_and_have_a_leader() -> None:
    node = Node(1, "h", 1)
    partitions = (PartitionDescription(0, node), PartitionDescription(1, None))
    described = {"orders": TopicDescription("orders", None, False, partitions)}
    refuse_unusable([P], described)
    with pytest.raises(PartitionsMissing, match='The partitions "orders-9,orders-8" do not exist'):
        refuse_unusable([TopicPartition("orders", n) for n in (0, 9, 1, 8)], described)
    with pytest.raises(PartitionsLeaderless, match='The partitions "orders-1" have no leader'):
        refuse_unusable([TopicPartition("orders", n) for n in (0, 1)], described)
