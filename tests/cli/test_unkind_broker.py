"""Commands and `Admin` get the same from a broker whose answers are legal but seldom as from a kind one."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.acts import committed
from tests.cli.stages import INACTIVE, put_back

from groupkeeper.cli.dropin import kafka_consumer_groups, kafka_get_offsets
from groupkeeper.cli.main import main
from groupkeeper.client.admin import Admin
from groupkeeper.client.admin.types import OffsetSpec, Position, TopicPartition
from groupkeeper.testing.background import BackgroundBroker

SEEDS = range(1, 5)
COMMANDS = (
    "groups list",
    "groups describe billing zeta",
    "groups describe --all-groups --view state",
    "groups offsets billing",
    "plan reset billing --topic orders --to-earliest",
)
DROP_INS = (
    "--list --state",
    "--describe --group billing",
    "--describe --all-groups",
    "--reset-offsets --group billing --all-topics --shift-by=-8 --dry-run",
)
ORDERS = TopicPartition("orders", 0)
STAGE = INACTIVE


@pytest.fixture(autouse=True)
def kind_again(broker: BackgroundBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("GROUPKEEPER_JOURNAL", str(tmp_path / "journal"))
    yield
    broker.faults.clear()
    asyncio.run(put_back(STAGE, broker.bootstrap_servers))


def printed(servers: str, capsys: pytest.CaptureFixture[str]) -> list[tuple[str, int, str]]:
    """What commands that only look print, with their status."""
    found = []
    for words in COMMANDS:
        status = main([*words.split(), "--bootstrap-server", servers, "--output", "json"])
        report = json.loads(capsys.readouterr().out)
        report.pop("plan", None)  # it has an id and a time of its own
        found.append((words, status, json.dumps(report)))
    for words in DROP_INS:
        status = kafka_consumer_groups.main(["--bootstrap-server", servers, *words.split()])
        lines = capsys.readouterr().out.splitlines()
        # The official tool lists groups in the order of the broker's answer, and so does this one.
        found.append((words, status, "\n".join(sorted(lines) if "--list" in words else lines)))
    status = kafka_get_offsets.main(["--bootstrap-server", servers])
    return [*found, ("get-offsets", status, capsys.readouterr().out)]


@pytest.mark.parametrize("seed", SEEDS)
def test_commands_print_the_same(broker: BackgroundBroker, capsys: pytest.CaptureFixture[str], seed: int) -> None:
    kind = printed(broker.bootstrap_servers, capsys)
    unkindness = broker.faults.unkind(seed)
    assert printed(broker.bootstrap_servers, capsys) == kind
    assert unkindness.hits


@pytest.mark.parametrize("seed", SEEDS)
def test_a_plan_is_applied_and_undone(broker: BackgroundBroker, tmp_path: Path, seed: int) -> None:
    where = ["--bootstrap-server", broker.bootstrap_servers]
    path = str(tmp_path / "plan.json")
    before = committed(broker.bootstrap_servers, "billing")
    broker.faults.unkind(seed)
    assert main(["plan", "reset", "billing", "--topic", "orders", "--to-earliest", "--save", path, *where]) == 0
    assert main(["apply", path, "--execute", *where]) == 0
    assert committed(broker.bootstrap_servers, "billing") != before
    assert main(["undo", "--execute", *where]) == 0
    assert committed(broker.bootstrap_servers, "billing") == before


@pytest.mark.parametrize("seed", SEEDS)
def test_logs_are_read_whole(broker: BackgroundBroker, seed: int) -> None:
    async def read() -> object:
        positions = [Position("orders", partition, offset) for partition in range(3) for offset in range(0, 25, 4)]
        async with Admin(broker.bootstrap_servers) as admin:
            ends = (await admin.list_offsets({ORDERS: OffsetSpec.latest()})).all()
            groups = list((await admin.list_groups()).all())
            first = await admin.first_records(positions)
            return ends, sorted(groups), first.done, {where: type(why) for where, why in first.failed.items()}

    kind = asyncio.run(read())
    broker.faults.unkind(seed)
    assert asyncio.run(read()) == kind
