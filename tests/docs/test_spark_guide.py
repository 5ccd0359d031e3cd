"""The commands of docs/spark.md that need no Spark are run as they are printed."""

import shutil
from collections.abc import Iterator
from itertools import repeat
from pathlib import Path

import pytest
from tests.acts import commit, make_topic, produce
from tests.docs.test_readme import ROOT, examples, run

from groupkeeper.testing.background import BackgroundBroker

RECORDED = ROOT / "tests/cli/checkpoints"
COMMANDS = [text for _, text in examples((ROOT / "docs/spark.md").read_text()) if text.startswith("groupkeeper spark ")]


@pytest.fixture
def address() -> Iterator[str]:
    with BackgroundBroker(properties={"log.retention.ms": "-1"}) as broker:
        servers = broker.bootstrap_servers
        make_topic(servers, "orders", 2)
        make_topic(servers, "payments")
        produce(servers, "orders", map(str, range(20)), times_ms=repeat(1_700_000_000_000))
        commit(servers, "billing", {("orders", 0): 12})
        yield servers


def test_the_commands_do_what_they_say(address: str, tmp_path: Path) -> None:
    for name, source in {"orders": "orders", "b7": "assigned", "team-1": "two-sources"}.items():
        shutil.copytree(RECORDED / source, tmp_path / "checkpoints" / name)
    assert len(COMMANDS) == 5
    told = []
    for command in COMMANDS:
        here = command.replace("/checkpoints", f"{tmp_path}/checkpoints")
        ended = run(f"{here} --bootstrap-server {address}", tmp_path)
        assert ended.returncode == 0, (here, ended)
        told.append(ended.stdout)
    assert "billing" in told[1]
    assert "team-1" in told[1]
    assert told[2:] == [
        '{"orders": {"0": 12, "1": -2}}\n', '{"orders": {"0": 17, "1": 0}}\n', '{"orders": {"0": 20, "1": 0}}\n',
    ]  # fmt: skip
