"""Two machines that share a journal in a topic: one is killed within a change, the other one takes it back."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from groupkeeper.cli.framework.journals import checked
from groupkeeper.cli.main import main
from groupkeeper.client.admin import Admin
from groupkeeper.client.admin.resources.access_types import Acl, AclFilter, AclOperation, AclResourceType
from groupkeeper.client.admin.types import NewTopic, OffsetAndMetadata, TopicPartition
from groupkeeper.operations.plans.changes import ApplyResult, Head
from groupkeeper.operations.plans.journal import JournalUnreadable, JournalUnwritable
from groupkeeper.operations.plans.topic_journal import TopicJournal
from groupkeeper.pipeline.present.changes import read_changes

BEFORE, AFTER = OffsetAndMetadata(0, None, "kept"), OffsetAndMetadata(0, None, "moved")

MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule required"

JOURNAL_ACLS = ("READ", "WRITE", "CREATE", "DESCRIBE_CONFIGS")
"""What docs/plans.md says that the first writer of a journal needs on its topic; CREATE is for who makes it."""

KILLED = """
import asyncio, os, signal, sys
from argparse import Namespace
from groupkeeper.cli.framework.clusters import admin_of, cluster_of
from groupkeeper.cli.framework.journals import journal
from groupkeeper.client.admin import Admin
from groupkeeper.client.admin.types import OffsetAndMetadata, TopicPartition
from groupkeeper.operations.plans.model import Change, GroupPlan, Plan
from groupkeeper.operations.plans.recorder import Recorder, cluster_id_of, commit

topic, *groups = sys.argv[1:]

class Killed(Admin):
    async def alter_offsets_of_groups(self, offsets, **more):
        (await super().alter_offsets_of_groups(dict(list(offsets.items())[:1]), **more)).all()
        os.kill(os.getpid(), signal.SIGKILL)

async def run():
    change = Change(OffsetAndMetadata(0, None, "kept"), OffsetAndMetadata(0, None, "moved"))
    cluster = cluster_of(Namespace(context="prod", bootstrap_server=None, command_config=None))
    async with Killed(cluster.bootstrap_server, properties=cluster.properties) as admin:
        plans = tuple(GroupPlan(one, {TopicPartition(topic, 0): change}) for one in groups)
        plan = Plan(await cluster_id_of(admin), plans)
        await commit(admin, plan, Recorder(journal(), ("groupkeeper", "apply"), None))

asyncio.run(run())
"""


class Login(NamedTuple):
    """How somebody connects. `properties`: of the client; none where everybody may do everything."""

    servers: str
    properties: Mapping[str, str] = {}

    def admin(self) -> Admin:
        return Admin(self.servers, properties=self.properties)

    def machine(self, folder: Path, journal: str = "") -> Mapping[str, str]:
        """The environment of a machine whose context prod this is, perhaps with a journal."""
        (folder / "groupkeeper" / "contexts").mkdir(parents=True)
        lines = [f"bootstrap.servers={self.servers}", *(f"{key}={value}" for key, value in self.properties.items())]
        lines += [f"journal.url={journal}"] if journal else []
        file = folder / "groupkeeper" / "contexts" / "prod.properties"
        file.write_text("\n".join(lines))
        file.chmod(0o600)
        return {"XDG_CONFIG_HOME": str(folder)}


def as_user(servers: str, name: str) -> Login:
    """A user whose password is NAME-secret."""
    return Login(
        servers,
        {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.jaas.config": f'{MODULE} username="{name}" password="{name}-secret";',
        },
    )


class Scene:
    """A topic with two groups, and the name of a journal. `root` may do everything."""

    def __init__(self, root: Login) -> None:
        name = uuid.uuid4().hex[:8]
        self.root = root
        self.topic, self.groups, self.journal = f"t-{name}", [f"a-{name}", f"b-{name}"], f"journal-{name}"
        self.place = TopicPartition(self.topic, 0)

    async def set_up(self) -> None:
        async with self.root.admin() as admin:
            (await admin.create_topics([NewTopic(self.topic, 1, 1)])).all()
            (await admin.alter_offsets_of_groups({one: {self.place: BEFORE} for one in self.groups})).all()

    async def allow(self, user: str, on_journal: Sequence[str]) -> None:
        """What a user needs to reset and delete offsets of the groups, and these operations on the journal's topic."""
        wanted = [
            *((AclResourceType.GROUP, one, "READ") for one in self.groups),
            (AclResourceType.TOPIC, self.topic, "READ"),
            *((AclResourceType.TOPIC, self.journal, one) for one in on_journal),
        ]
        async with self.root.admin() as admin:
            acls = [Acl(f"User:{user}", AclOperation(operation), kind, name) for kind, name, operation in wanted]
            (await admin.create_acls(acls)).all()
            while len(await admin.describe_acls(AclFilter(f"User:{user}"))) < len(acls):
                pass  # not yet in force

    async def committed(self) -> list[str]:
        async with self.root.admin() as admin:
            found = (await admin.list_consumer_group_offsets({one: [self.place] for one in self.groups})).all()
        return [one.metadata for each in self.groups if (one := found[each].all()[self.place]) is not None]

    async def configs(self) -> dict[str, str]:
        async with self.root.admin() as admin:
            names = ["cleanup.policy", "min.insync.replicas", "message.timestamp.type"]
            return (await admin.topic_settings([self.journal], names)).result(self.journal)


def check_two_users(root: Login, logins: dict[str, Login], *where: Any) -> None:
    """With the ACLs that are documented one user undoes what another has done; without one of them nothing is done."""
    scene = Scene(root)
    asyncio.run(scene.set_up())
    asyncio.run(scene.allow("anna", JOURNAL_ACLS))
    asyncio.run(scene.allow("bob", ["READ", "WRITE", "DESCRIBE_CONFIGS"]))
    check_two_machines(scene, logins.pop("anna"), logins.pop("bob"), 1, *where)
    check_missing_acls(Scene(root), logins)


def check_two_machines(
    scene: Scene,
    one: Login,
    two: Login,
    replicas: int,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The first machine is killed after it has committed one of two groups."""

    def run(*words: str) -> tuple[int, list[dict[str, object]]]:
        status = main([*words, "--output", "json"])
        return status, json.loads(capsys.readouterr().out)["changes"]

    address = f"kafka://prod/{scene.journal}"
    words = [sys.executable, "-c", KILLED, scene.topic, *scene.groups]
    env = {**os.environ, **one.machine(folder / "one"), "GROUPKEEPER_JOURNAL": address}
    killed = subprocess.run(words, env=env, timeout=60, check=False)
    assert killed.returncode == -signal.SIGKILL
    assert asyncio.run(scene.committed()) == ["moved", "kept"]
    assert asyncio.run(scene.configs()) == {
        "cleanup.policy": "compact", "min.insync.replicas": str(max(1, replicas - 1)),
        "message.timestamp.type": "LogAppendTime",
    }  # fmt: skip

    for name, value in two.machine(folder / "two", address).items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("GROUPKEEPER_JOURNAL")
    monkeypatch.setenv("GROUPKEEPER_CONTEXT", "prod")
    status, (change,) = run("history")
    assert (status, change["result"], change["groups"], change["partitions"]) == (0, "unfinished", 2, 2)
    status, _ = run("undo", str(change["id"]), "--execute", "--confirm", "1", "--context", "prod")
    assert (status, asyncio.run(scene.committed())) == (0, ["kept", "kept"])
    status, (change, undo) = run("history")
    assert (status, change["undone_by"], undo["kind"], undo["result"]) == (0, undo["id"], "undo", "applied")
    assert main(["history"]) == 0
    assert "no outcome is recorded" not in capsys.readouterr().err  # it was taken back
    rows, notes = read_changes([checked(address)], {"prod": None})
    assert (len(rows), notes) == (3, [])
    (first, last), broken = journal_of(two, scene).summaries()
    assert (first.result, last.result, broken) == (ApplyResult.UNFINISHED, ApplyResult.APPLIED, 0)


def journal_of(login: Login, scene: Scene) -> TopicJournal:
    return TopicJournal(f"kafka://prod/{scene.journal}", login.admin)


def check_missing_acls(scene: Scene, login_of: Mapping[str, Login]) -> None:
    """Each user lacks the operation that is their name in lower case, on a journal that there is (all but create)."""
    pairs = {scene.place: (BEFORE, AFTER)}

    def head(change_id: str, undoes: str | None = None) -> Head:
        return Head(change_id, 0, "cluster", "undo" if undoes else "reset", "u", "h", (), undoes)

    def needed(user: str, operation: str) -> str:
        name = operation.title().replace("_", "")
        return f"User:{user} needs {operation} on the topic: kafka-acls --add .* --operation {name} --topic "

    async def allow() -> None:
        for user in login_of:
            await scene.allow(user, [one for one in JOURNAL_ACLS if one.lower() != user])

    asyncio.run(allow())
    with pytest.raises(JournalUnwritable, match=needed("create", "CREATE")):
        journal_of(login_of["create"], scene).begin(head("none"), [("g", pairs)])
    journal_of(scene.root, scene).begin(head("change"), [("g", pairs)])
    journal_of(login_of["create"], scene).begin(head("another"), [("g", pairs)])
    with pytest.raises(JournalUnwritable, match=needed("write", "WRITE")):
        journal_of(login_of["write"], scene).begin(head("none"), [("g", pairs)])
    with pytest.raises(JournalUnreadable, match=needed("read", "READ")):
        journal_of(login_of["read"], scene).summaries()
    match = "somebody else undoes change is not known, .*" + needed("read", "READ")
    with pytest.raises(JournalUnwritable, match=match):
        journal_of(login_of["read"], scene).begin(head("undo", "change"), [("g", pairs)])
    journal_of(login_of["describe_configs"], scene).begin(head("unchecked"), [("g", pairs)])
    results = {one.head.id: one.result for one in journal_of(login_of["write"], scene).summaries()[0]}
    assert results == {**dict.fromkeys(("change", "another", "unchecked"), ApplyResult.UNFINISHED),
                       "undo": ApplyResult.REFUSED}  # fmt: skip
