"""What commands report of groups and changes, the API tells, too."""

from typing import get_args

import pytest
from tests.unit.cli.framework.test_shapes import OF_OPTIONS

from groupkeeper.cli.framework.reports import CLUSTER, Shape
from groupkeeper.cli.groups.shapes import GROUP_SUMS, GROUPS, MEMBERS, OFFSETS, STATES
from groupkeeper.cli.plans.shapes import CHANGES, HISTORY, RECORDED
from groupkeeper.web.api import documents as d


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
    elsewhere = {CLUSTER.name}.union(*OF_OPTIONS.values())
    lacking = {column.name for column in shape.columns} - elsewhere - document.model_fields.keys()
    assert not lacking, (
        f"{document.__name__} lacks them; columns that only an option fills are in OF_OPTIONS of test_shapes"
    )
    strict = {
        column.name
        for column in shape.columns
        if "null" in column.meaning and column.name not in elsewhere
        and type(None) not in get_args(document.model_fields[column.name].annotation)
    }  # fmt: skip
    assert not strict, f"these columns can be null: `… | None` in {document.__name__}"
