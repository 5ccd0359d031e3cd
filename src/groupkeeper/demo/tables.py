"""The tour's last stop: the offsets topic of its broker as tables, by Spark."""

import shutil
import subprocess
import time
from importlib.util import find_spec
from pathlib import Path

from groupkeeper import shell
from groupkeeper.demo.stage import TourFailed, command_path, emphasised, say

WITHIN_S = 300.0
FOLDER = Path("build") / "demo"
SHOWN = ("commits", "group_records", "current_offsets")


def make_tables(address: str) -> None:
    """Runs the pipeline on the tour's groups and says where its tables are.

    Raises:
        TourFailed: the command failed, or a table is empty.
    """
    say(emphasised("\nLook back: the offsets topic knows every commit and every rebalance; Spark makes tables of it"))
    if find_spec("pyspark") is None:
        say("  (left out: in a checkout, pip install '.[spark]' brings Spark and a Java)")
        return
    folder = FOLDER.resolve()
    shutil.rmtree(folder, ignore_errors=True)
    words = ["groupkeeper", "pipeline", "report", "--bootstrap-server", f"demo={address}", "--tables", str(folder)]
    say(f"\n$ {shell.text(words)}")
    started = time.monotonic()
    ended = subprocess.run([command_path(words[0]), *words[1:]], timeout=WITHIN_S, check=False)
    if ended.returncode != 0:
        raise TourFailed(f"'{shell.text(words)}' ended with {ended.returncode}")
    say(f"  -> tables in parquet, for Spark, DuckDB, pandas and Polars ({time.monotonic() - started:.1f} s)")
    import pyarrow.parquet as pq

    for name in SHOWN:
        rows = pq.read_table(folder / name).num_rows
        if not rows:
            raise TourFailed(f"the table {name} has no rows")
        say(f"     {folder / name}: {rows} rows")
