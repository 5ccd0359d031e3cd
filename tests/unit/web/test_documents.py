"""What commands report of groups and changes, the API tells, too."""

import pytest
from tests.unit.live.views import described, member, row

from groupkeeper.cli.framework.reports import Shape
from groupkeeper.cli.groups.shapes import GROUP_SUMS, GROUPS, MEMBERS, OFFSETS, STATES
from groupkeeper.cli.plans.shapes import CHANGES, HISTORY, RECORDED
from groupkeeper.operations.lag import sum_by_group
from groupkeeper.operations.reporting.group_rows import Row, lag_row, member_row, state_row, sum_row
from groupkeeper.web.api import documents as d

OF_OPTIONS = {
    *("group_status", "reason", "not_judged"),  # of --with-status
    *("produced_per_s", "consumed_per_s", "trend", "catch_up_ms"),  # of --trend
    "cluster",
}


def columns(shape: Shape) -> set[str]:
    return {column.name for column in shape.columns} - OF_OPTIONS


@pytest.mark.parametrize(
    ("made", "shape"),
    [
        (lag_row(row("t", 0, 5)), OFFSETS),
        (sum_row(sum_by_group("g", [row("t", 0, 5)])), GROUP_SUMS),
        (member_row("g", member("m")), MEMBERS),
        (state_row(described(), None), STATES),
    ],
    ids=lambda value: value.name if isinstance(value, Shape) else "",
)
def test_a_row_has_the_columns_of_its_shape(made: Row, shape: Shape) -> None:
    """A new one is added to both: operations/reporting/ and shapes.py in cli/."""
    assert made.keys() - OF_OPTIONS == columns(shape), "a column that only an option fills is among OF_OPTIONS here"


@pytest.mark.parametrize(
    ("shape", "document"),
    [
        (OFFSETS, d.OffsetRow),
        (GROUP_SUMS, d.GroupRow),
        (MEMBERS, d.MemberRow),
        (GROUPS, d.GroupDetail),
        (STATES, d.GroupDetail),
        (HISTORY, d.HistoryRow),
        (RECORDED, d.RecordedRow),
        (CHANGES, d.PlannedRow),
    ],
    ids=lambda value: value.name if isinstance(value, Shape) else value.__name__,
)
def test_each_column_is_a_field_of_the_api(shape: Shape, document: type[d.Document]) -> None:
    """A new one is added to web/api/documents.py, whose documents allow no other fields."""
    lacking = columns(shape) - document.model_fields.keys()
    assert not lacking, f"{document.__name__} lacks them; columns that only an option fills are among OF_OPTIONS here"
