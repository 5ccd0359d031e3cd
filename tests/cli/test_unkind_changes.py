"""Commands that change something, or follow it, do the same on a broker whose answers are legal but seldom."""

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from tests.cli.stages import INACTIVE, SETTINGS, Stage, put_back, set_up
from tests.patience import until

from groupkeeper.cli.dropin import kafka_share_groups
from groupkeeper.cli.main import main
from groupkeeper.client.admin import Admin
from groupkeeper.protocol.errors import GroupIdNotFound
from groupkeeper.testing.background import BackgroundBroker

SEEDS = range(1, 4)
WATCHED_HITS = 20
SHARES = Stage(
    "shares",
    {"orders": [10, 20], "payments": [5]},
    share_starts={"idle": {("orders", 0): 3, ("orders", 1): 7}, "other": {("payments", 0): 1}},
)
CHANGES = (
    ["groups reset billing --topic orders --to-earliest --execute"],
    ["groups reset * --topic orders:0 --shift-by -1 --execute --confirm 2"],
    ["groups delete-offsets billing --topic orders:0 --execute"],
    ["groups delete zeta --execute"],
    ["groups delete * --execute --confirm 2"],
    ["plan clone billing copy --save PLAN", "apply PLAN --execute --create"],
    ["plan sweep --all-groups --idle 0s --save PLAN", "apply PLAN --execute --confirm 2"],
)
SHARE_COMMANDS = (
    "--list",
    "--describe --all-groups",
    "--describe --all-groups --state",
    "--reset-offsets --group idle --all-topics --to-earliest --dry-run",
    "--reset-offsets --group idle --all-topics --to-latest --execute",
    "--delete-offsets --group idle --topic orders",
    "--delete --group other",
    "--list",
)


@pytest.fixture(autouse=True)
def journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GROUPKEEPER_JOURNAL", str(tmp_path / "journal"))


@contextmanager
def unkind(broker: BackgroundBroker, seed: int) -> Iterator[Any]:
    unkindness = broker.faults.unkind(seed)
    try:
        yield unkindness
    finally:
        broker.faults.clear()


def broker_of(stage: Stage, folder: Path) -> Iterator[BackgroundBroker]:
    with BackgroundBroker(properties=SETTINGS) as broker:
        asyncio.run(set_up(stage, broker.bootstrap_servers, folder))
        yield broker


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BackgroundBroker]:
    yield from broker_of(INACTIVE, tmp_path_factory.mktemp("inactive"))


@pytest.fixture(scope="module")
def shares(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BackgroundBroker]:
    yield from broker_of(SHARES, tmp_path_factory.mktemp("shares"))


def groups_of(servers: str) -> dict[str, object]:
    """All groups with their committed or start offsets."""

    async def ask() -> dict[str, object]:
        async with Admin(servers) as admin:
            types = {group.group_id: group.group_type for group in (await admin.list_groups()).groups.values()}
            plain = [key for key, kind in types.items() if kind != "Share"]
            committed = await admin.list_consumer_group_offsets(dict.fromkeys(plain))
            started = await admin.list_share_group_offsets(dict.fromkeys(set(types).difference(plain)))
        found: dict[str, object] = {key: one.done for key, one in committed.done.items()}
        return found | {
            key: {tp: start.start_offset for tp, start in one.done.items() if start is not None}
            for key, one in started.done.items()
        }

    return asyncio.run(ask())


def said(report: dict[str, Any]) -> dict[str, Any]:
    """A report without what has a time or an id of its own."""
    rows = next(value for key, value in report.items() if isinstance(value, list) and key not in ("notes", "problems"))
    kept = [{key: value for key, value in row.items() if key != "why"} for row in rows]
    errors = [(one["error"], one["group"]) for one in report["problems"]]
    return {"rows": kept, "errors": errors, "executed": report.get("executed"), "notes": len(report["notes"])}


def carried_out(commands: list[str], servers: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> object:
    """What the commands gave, and what there is after them and after they were taken back."""
    (folder / "journal").unlink(missing_ok=True)
    where = ["--bootstrap-server", servers, "--output", "json"]
    found: list[object] = []
    for command in commands:
        status = main([*command.replace("PLAN", str(folder / "plan.json")).split(), *where])
        found.append((status, said(json.loads(capsys.readouterr().out))))
    found.append(groups_of(servers))
    confirm = str(json.loads((folder / "journal").read_text().splitlines()[-1])["groups"])
    status = main(["undo", "--execute", "--confirm", confirm, *where])
    found.append((status, said(json.loads(capsys.readouterr().out)), groups_of(servers)))
    return found


@pytest.mark.parametrize(
    "commands", CHANGES, ids=[" ".join(each[0].split()[:2]) + str(n) for n, each in enumerate(CHANGES)]
)
def test_changes_are_the_same(
    broker: BackgroundBroker, tmp_path: Path, capsys: pytest.CaptureFixture[str], commands: list[str]
) -> None:
    servers = broker.bootstrap_servers
    asyncio.run(put_back(INACTIVE, servers))
    before = groups_of(servers)
    kind = carried_out(commands, servers, tmp_path, capsys)
    for seed in SEEDS:
        asyncio.run(put_back(INACTIVE, servers))
        assert groups_of(servers) == before
        with unkind(broker, seed) as unkindness:
            assert carried_out(commands, servers, tmp_path, capsys) == kind
            assert unkindness.hits


@pytest.mark.parametrize("seed", SEEDS)
def test_share_groups_are_the_same(shares: BackgroundBroker, capsys: pytest.CaptureFixture[str], seed: int) -> None:
    servers = shares.bootstrap_servers

    def done() -> list[object]:
        asyncio.run(put_back(SHARES, servers))
        found: list[object] = []
        for words in SHARE_COMMANDS:
            status = kafka_share_groups.main(["--bootstrap-server", servers, *words.split()])
            found.append((words, status, sorted(capsys.readouterr().out.splitlines())))
        status = main(["groups", "describe", "idle", "--bootstrap-server", servers, "--output", "json"])
        return [*found, status, capsys.readouterr().out, groups_of(servers)]

    kind = done()
    with unkind(shares, seed) as unkindness:
        assert done() == kind
        assert unkindness.hits


@pytest.mark.parametrize("seed", SEEDS)
def test_watch_follows_without_a_false_change(broker: BackgroundBroker, seed: int) -> None:
    """From the first look to the group's end, and nothing between: an unkind answer is no change."""
    servers = broker.bootstrap_servers
    asyncio.run(put_back(INACTIVE, servers))
    groupkeeper = str(Path(sys.executable).with_name("groupkeeper"))
    command = [groupkeeper, "groups", "watch", "zeta", "--interval", "20ms", "--output", "json"]
    with unkind(broker, seed) as unkindness:
        watching = subprocess.Popen(
            [*command, "--bootstrap-server", servers], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        try:
            assert watching.stdout is not None
            rows = [json.loads(watching.stdout.readline()) for _ in range(2)]
            wait_for_hits(unkindness, unkindness.hits + WATCHED_HITS)
            asyncio.run(delete(servers, "zeta"))
            while rows[-1]["after"] is not None:
                rows.append(json.loads(watching.stdout.readline()))
            watching.send_signal(signal.SIGINT)
            _, errors = watching.communicate(timeout=30)
        finally:
            watching.kill()
    told = [(row["change"], row["before"], row["after"]) for row in rows]
    assert told[:2] == [("type", None, "Classic"), ("state", None, "Empty")]
    assert {change for change, _, _ in told[2:]} <= {"type", "state"}
    assert (watching.returncode, errors) == (0, "")


def wait_for_hits(unkindness: Any, hits: int) -> None:
    until(lambda: unkindness.hits >= hits, "nothing is asked any more")


async def delete(servers: str, group_id: str) -> None:
    """Also where the answer is lost: the group is gone when it is asked for once more."""
    async with Admin(servers) as admin:
        with suppress(GroupIdNotFound):
            (await admin.delete_consumer_groups([group_id])).all()
