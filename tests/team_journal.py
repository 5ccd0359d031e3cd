"""Two machines that share a journal in a topic: one is killed within a change, the other one takes it back."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import uuid

import pytest

from groupkeeper.cli.main import main
from groupkeeper.client.admin import Admin
from groupkeeper.client.admin.types import NewTopic, OffsetAndMetadata, TopicPartition
from groupkeeper.operations.plans.journal import ApplyResult
from groupkeeper.operations.plans.topic_journal import of_servers

BEFORE, AFTER = OffsetAndMetadata(0, None, "kept"), OffsetAndMetadata(0, None, "moved")

KILLED = """
import asyncio, os, signal, sys
from groupkeeper.client.admin import Admin
from groupkeeper.client.admin.types import OffsetAndMetadata, TopicPartition
from groupkeeper.operations.plans.model import Change, GroupPlan, Plan
from groupkeeper.operations.plans.recording import Recorder, cluster_id_of, commit
from groupkeeper.operations.plans.topic_journal import of_servers

servers, address, topic, *groups = sys.argv[1:]

class Killed(Admin):
    async def alter_offsets_of_groups(self, offsets, **more):
        (await super().alter_offsets_of_groups(dict(list(offsets.items())[:1]), **more)).all()
        os.kill(os.getpid(), signal.SIGKILL)

async def run():
    change = Change(OffsetAndMetadata(0, None, "kept"), OffsetAndMetadata(0, None, "moved"))
    async with Killed(servers) as admin:
        plans = tuple(GroupPlan(one, {TopicPartition(topic, 0): change}) for one in groups)
        plan = Plan(await cluster_id_of(admin), plans)
        await commit(admin, plan, Recorder(of_servers(address), ("groupkeeper", "apply"), None))

asyncio.run(run())
"""


def check_two_machines(
    servers: str, replicas: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    name = uuid.uuid4().hex[:8]
    topic, groups = f"t-{name}", [f"a-{name}", f"b-{name}"]
    place, address = TopicPartition(topic, 0), f"kafka://{servers}/journal-{name}"

    async def set_up() -> None:
        async with Admin(servers) as admin:
            (await admin.create_topics([NewTopic(topic, 1, 1)])).all()
            (await admin.alter_offsets_of_groups({one: {place: BEFORE} for one in groups})).all()

    async def committed() -> list[str]:
        async with Admin(servers) as admin:
            found = (await admin.list_consumer_group_offsets({one: [place] for one in groups})).all()
        return [one.metadata for each in groups if (one := found[each].all()[place]) is not None]

    async def configs() -> dict[str, str]:
        async with Admin(servers) as admin:
            names = ["cleanup.policy", "min.insync.replicas"]
            return (await admin.topic_settings([f"journal-{name}"], names)).result(f"journal-{name}")

    def run(*words: str) -> tuple[int, list[dict[str, object]]]:
        status = main([*words, "--output", "json"])
        return status, json.loads(capsys.readouterr().out)["changes"]

    asyncio.run(set_up())
    one = [sys.executable, "-c", KILLED, servers, address, topic, *groups]
    assert subprocess.run(one, env=os.environ, timeout=60, check=False).returncode == -signal.SIGKILL
    assert asyncio.run(committed()) == ["moved", "kept"]
    assert asyncio.run(configs()) == {
        "cleanup.policy": "compact", "min.insync.replicas": str(max(1, replicas - 1)),
    }  # fmt: skip

    monkeypatch.setenv("GROUPKEEPER_JOURNAL", address)
    status, (change,) = run("history")
    assert (status, change["result"], change["groups"], change["partitions"]) == (0, "unfinished", 2, 2)
    status, _ = run("undo", str(change["id"]), "--execute", "--confirm", "1", "--bootstrap-server", servers)
    assert (status, asyncio.run(committed())) == (0, ["kept", "kept"])
    status, (change, undo) = run("history")
    assert (status, change["undone_by"], undo["kind"], undo["result"]) == (0, undo["id"], "undo", "applied")
    (first, last), broken = of_servers(address).summaries()
    assert (first.result, last.result, broken) == (ApplyResult.UNFINISHED, ApplyResult.APPLIED, 0)
