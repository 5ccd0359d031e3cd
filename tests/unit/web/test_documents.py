"""What commands report of groups and changes, the API tells, too."""

from typing import get_args

import pytest
from tests.unit.cli.framework.test_schemas import OF_OPTIONS

from groupkeeper.cli.framework.reports import CLUSTER, Schema
from groupkeeper.cli.groups.schemas import GROUP_SUMS, GROUPS, MEMBERS, OFFSETS, STATES
from groupkeeper.cli.plans.schemas import CHANGES, HISTORY, RECORDED
from groupkeeper.web.api import documents as d


@pytest.mark.parametrize(
    ("schema", "document"),
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
    ids=lambda value: value.name if isinstance(value, Schema) else value.__name__,
)
def test_each_column_is_a_field_of_the_api(schema: Schema, document: type[d.Document]) -> None:
    """A new one is added to web/api/documents.py, whose documents allow no other fields."""
    elsewhere = {CLUSTER.name}.union(*OF_OPTIONS.values())
    lacking = {column.name for column in schema.columns} - elsewhere - document.model_fields.keys()
    assert not lacking, (
        f"{document.__name__} lacks them; columns that only an option fills are in OF_OPTIONS of test_schemas"
    )
    strict = {
        column.name
        for column in schema.columns
        if "null" in column.meaning and column.name not in elsewhere
        and type(None) not in get_args(document.model_fields[column.name].annotation)
    }  # fmt: skip
    assert not strict, f"these columns can be null: `… | None` in {document.__name__}"


def test_a_group_of_which_only_the_list_is_known_has_an_answer() -> None:
    own = {name: of for name, of in d.GroupDetail.model_fields.items() if name not in d.GroupRow.model_fields}
    needed = [each.name for each in STATES.columns if each.name in own and own[each.name].is_required()]
    assert needed == [], "a group may have no description: `= None`"
