"""Tables of a lake as the format's own reader for Spark has them.

    python -m tests.rig.lake delta TABLES TARGET lag commits

writes each table there is as TARGET/<table>.parquet. Nothing of the pipeline's own reading is used.
"""

import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from groupkeeper.pipeline.runtime.lake import lake_settings
from groupkeeper.pipeline.session import start_session
from groupkeeper.pipeline.tables import TABLES

ROOT = Path(__file__).resolve().parents[2]
TIMEOUT_S = 300


def read(
    lake_format: str, tables: Path, names: Iterable[str], environment: Mapping[str, str]
) -> dict[str, list[dict[str, Any]]]:
    """The rows of each table, by a Spark of its own."""
    target = tables.with_name(f"{tables.name}-{lake_format}")
    names = list(names)
    line = [sys.executable, "-m", "tests.rig.lake", lake_format, str(tables), str(target), *names]
    ended = subprocess.run(line, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=TIMEOUT_S)
    assert ended.returncode == 0, f"{' '.join(line[1:])}: {ended.stderr[-2000:]}"
    return {name: pq.read_table(target / f"{name}.parquet").to_pylist() for name in names}


def main(lake_format: str, tables: str, target: str, *names: str) -> None:
    settings = {
        "spark.sql.catalog.rig": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.rig.type": "hadoop",
        "spark.sql.catalog.rig.warehouse": f"{tables}/iceberg",
    }
    needed = lake_settings(lake_format, settings if lake_format == "iceberg" else {})
    spark = start_session("rig", master="local[1]", settings=needed, is_short=True, has_source=False)
    Path(target).mkdir(exist_ok=True)
    known = {table.name: table for table in TABLES}
    for name in names:
        place = f"rig.`{name}`" if lake_format == "iceberg" else f"delta.`{tables}/{name}`"
        rows = spark.table(place).select(*known[name].names).toArrow()
        pq.write_table(rows.cast(known[name].arrow), f"{target}/{name}.parquet")
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
