"""`--show-command`: what Apache's own kafka-consumer-groups makes of it is what the plan says."""

import asyncio
import json
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.acts import committed_offsets
from tests.cli.stages import FIRST_MS, INACTIVE, SETTINGS, Stage, put_back, set_up
from tools.apache_kafka import run_tool

from groupkeeper.cli.main import main
from groupkeeper.client.admin.types import TopicPartition
from groupkeeper.operations.times import utc_text
from groupkeeper.testing.background import BackgroundBroker

pytestmark = [pytest.mark.conformance, pytest.mark.usefixtures("apache_jars"), pytest.mark.timeout(120)]
STAGE = Stage("plans", INACTIVE.records, INACTIVE.starts, INACTIVE.commits)


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with BackgroundBroker(properties=SETTINGS) as broker:
        asyncio.run(set_up(STAGE, broker.bootstrap_servers, tmp_path_factory.mktemp("plans")))
        yield broker.bootstrap_servers


@pytest.mark.parametrize(
    "words",
    [
        "reset billing --topic orders --to-earliest",
        "reset billing --all-topics --shift-by -2",
        "reset billing --topic orders:0,1 --to-offset 7",
        f"reset billing --topic orders:1 --to-datetime {utc_text(FIRST_MS + 7000)}",
        f"reset billing --topic orders --to-datetime {utc_text(FIRST_MS + 15_000)} --if-no-record skip",
        "delete-offsets billing --topic orders",
        "clone billing copy --topic orders",
    ],
)
def test_the_official_tool_does_what_the_plan_says(
    servers: str, words: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    where = ["--bootstrap-server", servers]
    assert main(["plan", *words.split(), *where, "--output", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)["changes"]
    assert rows
    assert main(["plan", *words.split(), *where, "--show-command"]) == 0
    group_id = rows[0]["group"]
    wanted = committed_offsets(servers, group_id)
    for row in rows:
        tp = TopicPartition(row["topic"], row["partition"])
        wanted.pop(tp, None)
        if row["after"] is not None:
            wanted[tp] = row["after"]
    try:
        for line in capsys.readouterr().out.splitlines():
            tool, *arguments = shlex.split(line)
            ran = run_tool(tool.removeprefix("kafka-"), *arguments)
            assert ran.returncode == 0, ran.stderr
        assert committed_offsets(servers, group_id) == wanted
    finally:
        asyncio.run(put_back(STAGE, servers))
