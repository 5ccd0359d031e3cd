"""examples/: the pytest project, the CI service and the Spark job, run as their pages say."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from confluent_kafka import Producer

from groupkeeper import NewTopic, OffsetAndMetadata, SyncAdmin, TopicPartition
from groupkeeper.testing.background import BackgroundBroker

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
BIN = Path(sys.executable).parent
ENVIRONMENT = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}"}


def run(*words: str | Path, cwd: Path, timeout: float = 50, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {**ENVIRONMENT, **variables}
    return subprocess.run(words, cwd=cwd, env=environment, capture_output=True, text=True, check=False, timeout=timeout)


def test_every_example_has_its_row() -> None:
    page = (EXAMPLES / "README.md").read_text()
    folders = {each.name for each in EXAMPLES.iterdir() if each.is_dir()}
    assert set(re.findall(r"^\| \[([\w-]+)\]", page, re.MULTILINE)) == folders


def test_the_pytest_project(tmp_path: Path) -> None:
    project = shutil.copytree(EXAMPLES / "pytest-project", tmp_path / "project")
    done = run(BIN / "python", "-m", "pytest", "-q", "-p", "no:cacheprovider", cwd=project)
    assert done.returncode == 0, done.stdout
    assert "3 passed" in done.stdout
    page = (project / "README.md").read_text()
    assert re.findall(r"`(test_\w+)`", page) == re.findall(
        r"^def (test_\w+)", (project / "test_billing.py").read_text(), re.M
    )
    # Its tests can fail: an application that commits nothing.
    program = (project / "billing.py").read_text()
    assert "        consumer.commit(asynchronous=False)\n" in program
    (project / "billing.py").write_text(program.replace("        consumer.commit(asynchronous=False)\n", ""))
    broken = run(BIN / "python", "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "goes_on", cwd=project)
    assert "1 failed" in broken.stdout


ASK = """
import os
from groupkeeper import SyncAdmin
with SyncAdmin(os.environ["KAFKA_BOOTSTRAP_SERVERS"]) as admin:
    print(admin.broker_settings(["num.partitions"]))
"""


def test_the_ci_service(tmp_path: Path) -> None:
    script = EXAMPLES / "ci-service/with-broker.sh"
    done = run(script, "python", "-c", ASK, cwd=tmp_path, BROKER_OPTIONS="--property num.partitions=3")
    assert (done.stdout, done.returncode) == ("{'num.partitions': '3'}\n", 0), done.stderr
    assert run(script, "sh", "-c", "exit 3", cwd=tmp_path).returncode == 3
    wrong = run(script, "true", cwd=tmp_path, BROKER_OPTIONS="--property num.partitions=many")
    assert wrong.returncode == 1
    assert "num.partitions" in wrong.stderr
    assert run(script, cwd=tmp_path).returncode == 2
    assert list(tmp_path.iterdir()) == []
    workflow = (EXAMPLES / "ci-service/workflow.yml").read_text()
    assert re.findall(r"run: (.*)", workflow)[-1].startswith("./with-broker.sh ")


@pytest.mark.long
@pytest.mark.timeout(240)
def test_the_spark_job(tmp_path: Path) -> None:
    with BackgroundBroker(properties={"log.retention.ms": "-1"}) as broker:
        servers = broker.bootstrap_servers
        tp = TopicPartition("orders", 0)
        with SyncAdmin(servers) as admin:
            admin.create_topics([NewTopic("orders", 1)]).all()
            producer = Producer({"bootstrap.servers": servers})
            for timestamp in (1_700_000_000_000, 1_700_000_001_000, 1_700_003_600_000):
                producer.produce("orders", b"x", timestamp=timestamp)
            assert producer.flush(20) == 0
            admin.alter_consumer_group_offsets("billing", {tp: OffsetAndMetadata(1)}).all()
            admin.alter_consumer_group_offsets("billing", {tp: OffsetAndMetadata(2)}).all()
            admin.alter_consumer_group_offsets("audit", {tp: OffsetAndMetadata(3)}).all()
            admin.delete_consumer_groups(["audit"]).all()
        job = EXAMPLES / "spark-job/orders_by_hour.py"
        done = run(BIN / "python", job, servers, "orders", cwd=tmp_path, timeout=220)
    assert done.returncode == 0, done.stderr
    found = done.stdout.splitlines()
    assert found == ["2023-11-14 22:00  2 records", "2023-11-14 23:00  1 records", "billing is at 2 in partition 0"]
