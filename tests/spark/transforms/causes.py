"""A history whose tombstones say why offsets went."""

from types import MappingProxyType

import pyarrow as pa
import pyarrow.compute as pc

from groupkeeper.pipeline.kafka.retention import Retentions
from groupkeeper.pipeline.tables import COMMITS, GROUP_RECORDS
from groupkeeper.pipeline.transforms.tombstones import causes


def with_causes(commits: pa.Table, group_records: pa.Table, retentions: Retentions = MappingProxyType({})) -> pa.Table:
    """All rows of tables.COMMITS."""
    told = causes(commits, COMMITS.arrow.empty_table(), group_records, GROUP_RECORDS.arrow.empty_table(), retentions)
    return pa.concat_tables([commits.filter(pc.invert(commits["is_tombstone"])), told])
