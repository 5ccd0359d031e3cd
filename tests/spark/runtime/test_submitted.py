"""A program that spark-submit starts: what it was told about the cluster holds."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest
from tests.acts import commit, new_topic

from groupkeeper.cli import spark_submit
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


HOME = str(Path(pyspark.__file__).parent)


def submitted(*program: str, **given: str) -> subprocess.CompletedProcess[str]:
    words = [f"{HOME}/bin/spark-submit", "--master", "local[1]"]
    words += [word for key, value in given.items() for word in ("--conf", f"{key}={value}")]
    environment = {**os.environ, "JAVA_HOME": str(find_java().home), "SPARK_HOME": HOME}
    environment |= {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    return subprocess.run([*words, *program], env=environment, capture_output=True, text=True, check=False)


@pytest.mark.long
@pytest.mark.timeout(600)
def test_its_master_and_settings_stay(tmp_path: Path) -> None:
    program, warehouse = tmp_path / "program.py", tmp_path / "warehouse"
    program.write_text(PROGRAM)
    given = {"spark.sql.warehouse.dir": f"file:{warehouse}", "spark.driver.extraJavaOptions": "-Dmine=1",
             "spark.local.dir": str(tmp_path), "spark.ui.enabled": "false"}  # fmt: skip
    ran = submitted(str(program), **given)
    assert ran.returncode == 0, ran.stderr[-2000:]
    (line,) = [each for each in ran.stdout.splitlines() if each.startswith("FOUND ")]
    found = json.loads(line.removeprefix("FOUND "))
    java_options = found.pop("spark.driver.extraJavaOptions")
    assert "-Dmine=1" in java_options
    assert "log4j2.configurationFile" not in java_options
    kept = {name: given[name] for name in ("spark.sql.warehouse.dir", "spark.local.dir")}
    assert found == {**kept, "spark.sql.session.timeZone": "UTC", "master": "local[1]", "SPARK_HOME": HOME}


MINE = """\
rootLogger.level = info
rootLogger.appenderRef.mine.ref = mine
appender.mine.type = Console
appender.mine.name = mine
appender.mine.target = SYSTEM_ERR
appender.mine.layout.type = PatternLayout
appender.mine.layout.pattern = MINE %m%n
"""


@pytest.mark.conformance
@pytest.mark.timeout(600)
def test_a_command_is_not_lost_among_messages_of_spark(servers: str, tmp_path: Path) -> None:
    """spark-submit has Python's standard error in its standard output. A configuration of one's own stays."""
    commit(servers, "submitted", {(new_topic(servers), 0): 1})
    tables, mine = str(tmp_path / "tables"), tmp_path / "mine.properties"
    words = [str(spark_submit.__file__), "snapshot", "--bootstrap-server", f"c={servers}", "--tables", tables]
    ran = submitted(*words)
    assert ran.returncode == 0, ran.stderr[-2000:]
    assert (tables in ran.stdout.splitlines(), "asking the clusters" in ran.stdout) == (True, True)
    assert [line for line in ran.stderr.splitlines() if " INFO " in line] == []
    mine.write_text(MINE)
    ran = submitted(*words, **{"spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={mine}"})
    assert ran.returncode == 0, ran.stderr[-2000:]
    assert "MINE Submitted application: groupkeeper snapshot" in ran.stderr
