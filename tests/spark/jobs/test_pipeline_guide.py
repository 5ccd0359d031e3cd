"""docs/pipeline.md: its examples run as printed, in their order."""

import ast
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from tests.acts import commit, make_topic
from tests.spark.kafka.test_source import produce

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]

GUIDE = (Path(__file__).resolve().parents[3] / "docs/pipeline.md").read_text()
ADDRESS = "localhost:9092"
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```", GUIDE, re.MULTILINE | re.DOTALL)
(PROGRAM,) = [text for language, text in BLOCKS if language == "python" and ADDRESS in text]
(QUERY,) = re.findall(r'^duckdb\.sql\("(.*)"\)\.show\(\)$', GUIDE, re.MULTILINE)
LINES = [line for language, text in BLOCKS if not language for line in text.splitlines()]


def run(words: list[str], folder: Path) -> str:
    own = {**os.environ, "XDG_CONFIG_HOME": str(folder)}
    done = subprocess.run(words, cwd=folder, env=own, capture_output=True, text=True, check=False, timeout=1000)
    assert done.returncode == 0, (words, done.stderr)
    return done.stdout


def printed(start: str) -> list[str]:
    """The first line that does."""
    return shlex.split(next(line for line in LINES if line.startswith(start)), comments=True)


def test_the_examples_run(servers: str, tmp_path: Path) -> None:
    make_topic(servers, "orders", 3)
    produce(servers, "orders", 30)
    commit(servers, "billing", {("orders", 0): 3})
    groupkeeper = str(Path(sys.executable).with_name("groupkeeper"))
    snapshot, report = printed("groupkeeper pipeline snapshot"), printed("groupkeeper pipeline report")
    run([groupkeeper, *(word.replace(ADDRESS, servers) for word in snapshot[1:])], tmp_path)
    assert "billing" in run([groupkeeper, *report[1:]], tmp_path)
    assert "billing" in (tmp_path / "tables/report.html").read_text()
    assert "billing" in run([sys.executable, "-c", f"import duckdb\nprint(duckdb.sql({QUERY!r}))"], tmp_path)
    read_by_spark = re.sub(r"'(tables/\w+)/\*\.parquet'", rf"parquet.`{tmp_path}/\1`", QUERY)
    assert read_by_spark != QUERY
    assert ADDRESS in PROGRAM
    shown = f"print(records.count(), [tuple(row) for row in spark.sql({read_by_spark!r}).collect()])"
    program = f"{PROGRAM.replace(ADDRESS, servers)}\n{shown}\n"
    count, groups = run([sys.executable, "-c", program], tmp_path).split(" ", 1)
    assert count == "30"
    assert ("billing", 7) in ast.literal_eval(groups)
