"""Tables of one refresh, opened for Arrow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from groupkeeper.pipeline.decode.privacy import DROP, KEEP, Privacy
from groupkeeper.pipeline.errors import SourceError
from groupkeeper.pipeline.report.model import Refresh
from groupkeeper.pipeline.storage.stored import Stored
from groupkeeper.pipeline.tables import Table

_ROWS_AT_A_TIME = 1 << 17


class Opened:
    """`missing`: the `needed` tables that do not exist. `refresh`: the refresh that all rows are of; None: no run has
    listed the tables.

    Raises SourceError when there are no tables.
    """

    def __init__(self, directory: str, needed: Sequence[Table]) -> None:
        self._stored = Stored(directory)
        self.missing = tuple(table.name for table in needed if not self._stored.has(table))
        if len(self.missing) == len(needed):
            raise SourceError(
                f"{directory} has no tables: make them with 'groupkeeper pipeline snapshot --tables {directory}', "
                "or name the clusters here"
            )
        number = self._stored.number
        self.refresh = Refresh(number, self._stored.written_time) if number else None

    @property
    def cluster_ids(self) -> dict[str, str | None]:
        """Cluster ids by the clusters' names in the tables, as far as runs have noted them; None: the brokers have
        none.
        """
        return {name: each.cluster_id for name, each in self._stored.identities.items()}

    @property
    def privacy(self) -> Privacy:
        """How personal data from journals is kept: what the tables salt is dropped, as the key is unknown here."""
        return Privacy(hosts=KEEP if self._stored.privacy.get("hosts", KEEP) == KEEP else DROP)

    def table(self, table: Table, columns: Sequence[str] | None = None, wanted: Any = None) -> Any:
        """Rows as an Arrow table; a missing table has none. `columns` None: all. `wanted`: a filter of Arrow; None: all
        rows.
        """
        found = self._stored.dataset(table)
        return found.to_table(columns=None if columns is None else list(columns), filter=wanted)

    def parts(self, table: Table, columns: Sequence[str]) -> Iterator[Any]:
        """The table's rows, some at a time: a dataset would hold all of a row group, which may be millions."""
        schema = pa.schema([table.arrow.field(name) for name in columns])
        for path in getattr(self._stored.dataset(table), "files", ()):
            with self._stored.system.open_input_file(path) as opened:
                file = pq.ParquetFile(opened, coerce_int96_timestamp_unit="us")
                there = [name for name in columns if name in file.schema_arrow.names]
                for batch in file.iter_batches(_ROWS_AT_A_TIME, columns=there):
                    rows = pa.Table.from_batches([batch])
                    for name in columns:
                        if name not in there:
                            rows = rows.append_column(name, pa.nulls(len(rows)))
                    yield rows.select(columns).cast(schema)
