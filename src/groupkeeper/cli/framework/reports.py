"""The reports of commands: rows of a documented schema, in pages, and missing parts beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from groupkeeper.operations.problems import Problem as Problem
from groupkeeper.operations.problems import problem_of as problem_of
from groupkeeper.operations.reporting.group_rows import Row as Row
from groupkeeper.operations.reporting.group_rows import Value as Value


class Column(NamedTuple):
    """A key in JSON, and a column in CSV and tables. `in_table` False: tables have it only if it is selected.

    `goes`: the larger, the sooner it is left out of a table that is too wide; 0: it stays.
    """

    name: str
    meaning: str
    in_table: bool = True
    goes: int = 0


GROUP = Column("group", "the group's id")
PARTITION = (Column("topic", ""), Column("partition", ""))

CLUSTER = Column("cluster", "the cluster's name", in_table=False)
"""The first column of tables, with several clusters."""


class Schema(NamedTuple):
    """Rows of one kind: the name of the report, their key in JSON, and their columns.

    `version` grows when a column is removed or changes its meaning, not when one is added at the end.
    """

    report: str
    kind: str
    columns: Sequence[Column]
    version: int = 1

    @property
    def name(self) -> str:
        """`offsets/1`"""
        return f"{self.report}/{self.version}"


class Page(NamedTuple):
    """A part of a report, shown at once. `notes`: noteworthy facts that are no failures.

    `more`: facts about the whole, for programs. `plain`: the text of a page in a report without rows.
    """

    rows: Sequence[Row] = ()
    problems: Sequence[Problem] = ()
    notes: Sequence[str] = ()
    more: Mapping[str, Value] = {}
    plain: str = ""
