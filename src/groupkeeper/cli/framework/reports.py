"""What commands of ``groupkeeper`` report: rows of a documented shape, in pages, and what is missing beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from groupkeeper.operations.problems import Problem as Problem
from groupkeeper.operations.problems import problem_of as problem_of
from groupkeeper.operations.reporting.group_rows import Row as Row
from groupkeeper.operations.reporting.group_rows import Value as Value

Places = Mapping[str, Sequence[int]]
"""Partitions by topic."""


class Column(NamedTuple):
    """A key in JSON and a column in CSV. ``in_table`` False: tables leave it out unless it is selected.

    ``goes``: the greater, the sooner a table that would be too wide leaves it out; 0: it stays.
    """

    name: str
    meaning: str
    in_table: bool = True
    goes: int = 0


CLUSTER = Column("cluster", "the cluster's name", in_table=False)
"""The first column of tables, with several clusters."""


class Shape(NamedTuple):
    """Rows of one kind: what its schema is called, the key in JSON that has them, and their columns.

    ``version`` grows when a column is removed or changes its meaning, not when one is added at the end.
    """

    schema: str
    kind: str
    columns: Sequence[Column]
    version: int = 1

    @property
    def name(self) -> str:
        """``offsets/1``"""
        return f"{self.schema}/{self.version}"


class Page(NamedTuple):
    """A part of a report: it is shown at once. ``remarks``: what is noteworthy but no failure.

    ``more``: facts about the whole, for programs. ``plain``: the text of a page in a report without rows.
    """

    rows: Sequence[Row] = ()
    problems: Sequence[Problem] = ()
    remarks: Sequence[str] = ()
    more: Mapping[str, Value] = {}
    plain: str = ""
