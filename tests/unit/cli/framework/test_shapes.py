"""Programs read columns by their place (CSV) and name: rows have those of their shapes."""

import importlib
import pkgutil

import pytest
from tests.unit.live.views import described, member, row
from tools import cli_reference

from groupkeeper import cli
from groupkeeper.cli.framework.reports import CLUSTER, Shape
from groupkeeper.cli.groups.shapes import GROUP_SUMS, MEMBERS, OFFSETS, STATES
from groupkeeper.cli.groups.statuses import NO_STATUS
from groupkeeper.cli.groups.trends import NO_TREND
from groupkeeper.operations.lag import sum_by_group
from groupkeeper.operations.reporting.group_rows import Row, lag_row, member_row, state_row, sum_row

OF_OPTIONS = {**NO_STATUS, **NO_TREND}
"""Columns that only an option fills."""


def shapes() -> list[Shape]:
    modules = [importlib.import_module(each.name) for each in pkgutil.walk_packages(cli.__path__, f"{cli.__name__}.")]
    return [each for module in modules for each in vars(module).values() if isinstance(each, Shape)]


@pytest.mark.parametrize(
    ("made", "shape"),
    [
        (lag_row(row("t", 0, 5), OF_OPTIONS), OFFSETS),
        ({**sum_row(sum_by_group("g", [row("t", 0, 5)])), **OF_OPTIONS}, GROUP_SUMS),
        (member_row("g", member("m")), MEMBERS),
        (state_row(described(), None, NO_STATUS), STATES),
    ],
    ids=lambda value: value.name if isinstance(value, Shape) else "",
)
def test_a_row_has_its_columns_in_their_order(made: Row, shape: Shape) -> None:
    """JSON and CSV of the same report have the same order. A new column is added to both: operations/reporting/, and
    shapes.py in cli/.
    """
    wanted = [column.name for column in shape.columns]
    if wanted[-1] == CLUSTER.name:  # it is added where there are several clusters
        wanted.pop()
    assert list(made) == wanted, (
        "operations/reporting/group_rows.py gives a row its columns in the order of shapes.py: those behind `cluster` "
        'come after `**more` and `"cluster": None`, as in state_row'
    )


def test_the_reference_describes_every_shape() -> None:
    described = [shape for _, shape, _ in cli_reference.SHAPES]
    missing = {shape.name for shape in shapes() if shape not in described}
    assert not missing, f"add these to SHAPES of tools/cli_reference.py, then run `make docs`: {', '.join(missing)}"
