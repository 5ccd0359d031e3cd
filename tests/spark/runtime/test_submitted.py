"""A program that spark-submit starts: what it was told about the cluster holds."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest

from groupkeeper.pipeline.runtime.java import find_java

PROGRAM = """
import json, os
from groupkeeper.pipeline.session import start_session
spark = start_session("mine")
names = ("spark.sql.warehouse.dir", "spark.driver.extraJavaOptions", "spark.sql.session.timeZone", "spark.local.dir")
found = {name: spark.conf.get(name, None) for name in names}
print("FOUND", json.dumps({**found, "master": spark.sparkContext.master, "SPARK_HOME": os.environ.get("SPARK_HOME")}))
spark.stop()
"""


@pytest.mark.long
@pytest.mark.timeout(600)
def test_its_master_and_settings_stay(tmp_path: Path) -> None:
    program, warehouse, home = tmp_path / "program.py", tmp_path / "warehouse", str(Path(pyspark.__file__).parent)
    program.write_text(PROGRAM)
    given = {"spark.sql.warehouse.dir": f"file:{warehouse}", "spark.driver.extraJavaOptions": "-Dmine=1",
             "spark.local.dir": str(tmp_path), "spark.ui.enabled": "false"}  # fmt: skip
    words = [f"{home}/bin/spark-submit", "--master", "local[1]"]
    words += [word for key, value in given.items() for word in ("--conf", f"{key}={value}")]
    environment = {**os.environ, "JAVA_HOME": str(find_java().home), "SPARK_HOME": home}
    environment |= {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    ran = subprocess.run([*words, str(program)], env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr[-2000:]
    (line,) = [each for each in ran.stdout.splitlines() if each.startswith("FOUND ")]
    found = json.loads(line.removeprefix("FOUND "))
    java_options = found.pop("spark.driver.extraJavaOptions")
    assert "-Dmine=1" in java_options
    assert "log4j2.configurationFile" not in java_options
    kept = {name: given[name] for name in ("spark.sql.warehouse.dir", "spark.local.dir")}
    assert found == {**kept, "spark.sql.session.timeZone": "UTC", "master": "local[1]", "SPARK_HOME": home}
