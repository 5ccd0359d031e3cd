"""What type checkers make of a program that imports from `groupkeeper`."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PROGRAM = """
from typing import assert_type

from groupkeeper import Admin, Batch, Broker, GroupLags, SyncAdmin, TopicPartition
from groupkeeper.client.admin.types import GroupListings

async def ask(broker: Broker) -> None:
    admin = assert_type(await Admin.connect(broker.bootstrap_servers), Admin)
    assert_type(await admin.lag(), GroupLags)
    assert_type(await admin.delete_records({TopicPartition("t", 0): None}), Batch[TopicPartition, int])

with SyncAdmin("localhost:9092") as admin:
    assert_type(admin, SyncAdmin)
    assert_type(admin.list_groups(), GroupListings)
    assert_type(admin.lag(["a"]).done["a"].total, int | None)
    admin.create_partitions({"t": "3"})
    admin.no_such_call()
"""


@pytest.mark.conformance  # several seconds
def test_mypy_knows_every_call(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file", "", "--no-color-output", "program.py"]
    said = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120).stdout
    assert [line.split("error: ")[1] for line in said.splitlines() if "error: " in line] == [
        'Dict entry 0 has incompatible type "str": "str"; expected "str": "int | NewPartitions"  [dict-item]',
        '"SyncAdmin" has no attribute "no_such_call"  [attr-defined]',
    ]
