"""What jobs have written, as tests read it."""

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq


def rows_of(tables: Path, name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = pq.read_table(tables / name).to_pylist()
    return found
