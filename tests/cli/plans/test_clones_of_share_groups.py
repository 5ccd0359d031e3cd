"""Clones of share groups say what of their work does not go with start offsets."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.acts import begin_with_the_first_record, make_topic
from tests.broker.conftest import Wire
from tests.broker.test_share_fetch import ACCEPT, RELEASE, Consumer
from tests.cli.share_members import ShareMember, join
from tests.cli.stages import PATIENCE_S, connect
from tests.copies import Writer, items

from groupkeeper.cli.main import main
from groupkeeper.client.admin import Admin
from groupkeeper.protocol.messages.share_group_heartbeat_request import ShareGroupHeartbeatRequest
from groupkeeper.testing.background import BackgroundBroker

GROUP, TOPIC, RECORDS = "g", "jobs", 20
FIRST_DONE, LAST_DONE = 3, 12
DONE = LAST_DONE - FIRST_DONE + 1


@pytest.fixture(scope="module")
def clusters() -> Iterator[tuple[str, str]]:
    """A group has accepted records of partition 0 out of their order, and none of partition 1, and has no members."""
    properties = {"group.share.assignment.interval.ms": "0", "share.coordinator.state.topic.num.partitions": "2"}
    with BackgroundBroker(properties=properties) as here, BackgroundBroker(properties=properties) as there:
        for servers in (here.bootstrap_servers, there.bootstrap_servers):
            make_topic(servers, TOPIC, 2)
            Writer(servers, TOPIC).write(items(RECORDS))
        asyncio.run(work(here.bootstrap_servers))
        yield here.bootstrap_servers, there.bootstrap_servers


async def work(servers: str) -> None:
    begin_with_the_first_record(servers, GROUP)
    name = "A" * 22
    async with Admin(servers) as admin:
        await join(admin, await connect(servers, "test"), ShareMember(GROUP, name, "c", [TOPIC], 2), PATIENCE_S)
        topic_id = (await admin.describe_topics([TOPIC])).result(TOPIC).topic_id
    assert topic_id is not None
    wire = await Wire.open(servers)
    member = Consumer(wire, topic_id, name)
    async with asyncio.timeout(PATIENCE_S):
        while not (taken := await member.take(wait_ms=500)):
            pass
    assert taken == [(0, RECORDS - 1, 1)]
    said = [(0, FIRST_DONE - 1, RELEASE), (FIRST_DONE, LAST_DONE, ACCEPT), (LAST_DONE + 1, RECORDS - 1, RELEASE)]
    assert await member.say(said) == 0
    leaves = ShareGroupHeartbeatRequest(GROUP, name, -1, None, None)
    assert (await wire.call(leaves, 1)).error_code == 0


def test_what_is_done_above_a_start_offset_is_counted(
    clusters: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    here, there = clusters
    file = str(tmp_path / "plan.json")
    words = ["plan", "clone", GROUP, "--save", file, "--from-bootstrap-server", here, "--bootstrap-server", there]
    assert main([*words, "--output", "json"]) == 0
    report = json.loads(capsys.readouterr().out)
    (row,) = report["changes"]
    assert (row["partition"], row["after"], row["skipped"], row["replayed"]) == (0, 0, 0, DONE)
    assert f"{DONE} records are done after the start offset, and delivered again" in row["why"]
    notes = "\n".join(report["notes"])
    assert f"{DONE} records replayed, 0 skipped" in notes
    assert f"{GROUP} has no start offset yet in {TOPIC}-1: {GROUP} starts there by its share.auto.offset.reset" in notes
    for command in (["apply", file, "--create"], ["apply", file, "--create", "--execute"], ["undo"]):
        notes += "".join(capsys.readouterr())
        assert main([*command, "--bootstrap-server", there]) == 0
    notes += "".join(capsys.readouterr())
    assert "1 partition without a start offset before the change: a share group reads" in notes
    assert "1 partition without a start offset after the change: a share group reads" in notes
    assert "committed offset" not in notes


def test_within_a_cluster_it_is_told(clusters: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    words = ["plan", "clone", GROUP, "copy", "--bootstrap-server", clusters[0], "--output", "json"]
    assert main(words) == 0
    (row,) = json.loads(capsys.readouterr().out)["changes"]
    assert f"{DONE} records are done after the start offset, and delivered again" in row["why"]


def test_only_partitions_that_are_meant_are_named(
    clusters: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    here, there = clusters
    words = ["plan", "clone", GROUP, "--topic", f"{TOPIC}:0", "--from-bootstrap-server", here]
    assert main([*words, "--bootstrap-server", there]) == 0
    assert "no start offset yet" not in capsys.readouterr().err


@pytest.mark.parametrize("words", [["--all-groups"], ["--group", "?"], ["--group", "[a-z]", "--regex"]])
def test_patterns_tell_that_it_is_left_out(
    clusters: tuple[str, str], capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    here, there = clusters
    where = ["--from-bootstrap-server", here, "--bootstrap-server", there]
    left_out = f"1 share group left out: plan for each of them by its name ({GROUP})"
    assert main(["plan", "clone", *words, *where]) == 0
    assert left_out in capsys.readouterr().err
    assert main(["plan", "clone", *words, "--except", GROUP, *where]) == 0
    assert left_out not in capsys.readouterr().err
