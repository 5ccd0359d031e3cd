"""The schema of a table: columns, types and meanings. Arrow's types define it; Spark's follow from them."""

from __future__ import annotations

from typing import NamedTuple

import pyarrow as pa

TIME = pa.timestamp("us", "UTC")
"""A point in time. Null for Kafka's −1, and for implausible times: before 1970, beyond the year 9999."""

LAST_MS = 253_402_300_799_999
"""The end of the year 9999: later times have no date in Python and many readers. Clients may write any number."""

LARGEST = 2**63 - 1
"""The largest whole number: larger sums are cut off."""


class Column(NamedTuple):
    """A column; `meaning` also explains null, if null can occur."""

    name: str
    type: pa.DataType
    meaning: str


class Table(NamedTuple):
    """A table, kept as a parquet dataset."""

    name: str
    """The dataset is at DIR/name/."""
    one_row_per: str
    """The thing that a row stands for."""
    key: tuple[str, ...]
    """The columns that identify a row."""
    columns: tuple[Column, ...]
    day_of: str | None = None
    """The column with a row's time, by which --keep-rows removes it; None: the table is replaced as a whole."""
    is_carried: bool = False
    """Whether its rows are built from its earlier rows and new records; if it is lost, from the whole history."""
    is_measured: bool = False
    """Whether its rows are measurements. The history does not have them, so a rebuild keeps them."""

    @property
    def arrow(self) -> pa.Schema:
        """The schema as Arrow has it; every column is nullable."""
        return pa.schema([pa.field(column.name, column.type) for column in self.columns])

    @property
    def ddl(self) -> str:
        """The schema as Spark's DDL."""
        return ", ".join(self.ddl_columns)

    @property
    def ddl_columns(self) -> list[str]:
        """The columns of `ddl`, one by one."""
        return [f"`{column.name}` {ddl_of(column.type)}" for column in self.columns]

    @property
    def names(self) -> list[str]:
        return [column.name for column in self.columns]


CLUSTER = Column("cluster", pa.string(), "name of the cluster")
GROUP = (CLUSTER, Column("group_id", pa.string(), "the group"))
PARTITION = (Column("topic", pa.string(), "the topic"), Column("partition", pa.int32(), "its partition"))


_DDL_BY_TYPE = {
    pa.bool_(): "BOOLEAN",
    pa.int16(): "SMALLINT",
    pa.int32(): "INT",
    pa.int64(): "BIGINT",
    pa.float64(): "DOUBLE",
    pa.string(): "STRING",
    pa.binary(): "BINARY",
    TIME: "TIMESTAMP",
}


def ddl_of(kind: pa.DataType) -> str:
    """Spark's name of an Arrow type. Raises KeyError for one that no table has."""
    if pa.types.is_list(kind):
        return f"ARRAY<{ddl_of(kind.value_type)}>"
    if pa.types.is_struct(kind):
        fields = [kind.field(index) for index in range(kind.num_fields)]
        return f"STRUCT<{', '.join(f'`{field.name}`: {ddl_of(field.type)}' for field in fields)}>"
    return _DDL_BY_TYPE[kind]
