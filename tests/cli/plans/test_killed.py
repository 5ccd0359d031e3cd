"""`groupkeeper apply` or the broker killed while it commits, and brokers that refuse or hang up at any point.

The journal tells the truth, a second apply finishes or says why it doesn't, undo restores.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.broker.started import Started
from tests.cli.stages import SETTINGS

from groupkeeper import SyncAdmin
from groupkeeper.cli.main import main
from groupkeeper.client.admin.types import NewTopic, OffsetAndMetadata, TopicPartition
from groupkeeper.operations.plans import document, recorder
from groupkeeper.operations.plans.changes import ApplyResult
from groupkeeper.operations.plans.journal import Journal
from groupkeeper.operations.plans.model import Change, GroupPlan, Plan, PlannedTopic
from groupkeeper.testing.background import BackgroundBroker

GROUPS = [f"group-{number:04}" for number in range(500)]
PLACE = TopicPartition("orders", 0)
BEFORE, AFTER = OffsetAndMetadata(0, None, "kept"), OffsetAndMetadata(0, None, "moved")
"""Both are in an empty log; what tells them apart is the metadata."""

pytestmark = pytest.mark.slow


def set_up(servers: str) -> None:
    with SyncAdmin(servers) as admin:
        admin.create_topics([NewTopic(PLACE.topic, 1, 1)]).all()
        admin.alter_offsets_of_groups({group_id: {PLACE: BEFORE} for group_id in GROUPS}).all()


@pytest.fixture
def broker() -> Iterator[BackgroundBroker]:
    with BackgroundBroker(properties=SETTINGS) as broker:
        set_up(broker.bootstrap_servers)
        yield broker


@pytest.fixture
def plan(tmp_path: Path) -> str:
    groups = tuple(GroupPlan(group_id, {PLACE: Change(BEFORE, AFTER)}) for group_id in GROUPS)
    path = tmp_path / "plan.json"
    path.write_text("".join(document.write(Plan(None, groups, topics={PLACE.topic: PlannedTopic(None, 1)}))))
    return str(path)


def confirmed(servers: str) -> list[str]:
    return ["--execute", "--confirm", str(len(GROUPS)), "--bootstrap-server", servers]


def begin(*words: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "groupkeeper", *words]
    return subprocess.Popen(command, env=os.environ, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def undo(servers: str, *words: str) -> int:
    """Take back as many groups as a preview shows: those that the brokers refused are not among them."""
    where = ["--bootstrap-server", servers]
    command = [sys.executable, "-m", "groupkeeper", "undo", *words, *where, "--output", "json"]
    shown = subprocess.run(command, env=os.environ, capture_output=True, check=False)
    count = len({row["group"] for row in json.loads(shown.stdout)["changes"]})
    return main(["undo", *words, "--execute", *(["--confirm", str(count)] if count else []), *where])


def finish_and_undo(journal: Journal, plan: str, servers: str) -> None:
    """A second apply does the rest, and what the journal has of both can be taken back."""
    assert main(["apply", plan, *confirmed(servers)]) == 0
    assert set(committed(servers).values()) == {AFTER}
    for summary in reversed(journal.summaries()[0]):
        assert undo(servers, summary.head.id) == 0
    assert set(committed(servers).values()) == {BEFORE}


def committed(servers: str, group_ids: list[str] = GROUPS) -> dict[str, OffsetAndMetadata | None]:
    with SyncAdmin(servers) as admin:
        found = admin.list_consumer_group_offsets({group_id: [PLACE] for group_id in group_ids}).all()
    return {group_id: batch.all()[PLACE] for group_id, batch in found.items()}


def wait_for_commits(child: subprocess.Popen[bytes], servers: str) -> None:
    """Return when some of the command's commits have arrived."""
    while AFTER not in committed(servers, GROUPS[::50]).values():
        assert child.poll() is None, "it ended without a commit"


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_killed_within_apply(broker: BackgroundBroker, journal: Journal, plan: str, number: signal.Signals) -> None:
    servers = broker.bootstrap_servers
    child = begin("apply", plan, *confirmed(servers))
    wait_for_commits(child, servers)
    child.send_signal(number)
    _, errors = child.communicate(timeout=60)

    # How much is committed is the scheduler's affair; mostly it is a part.
    summaries, _ = journal.summaries()
    assert [len(one.groups) for one in summaries] == [len(GROUPS)]
    now = committed(servers)
    assert set(now.values()) <= {BEFORE, AFTER}
    if BEFORE in now.values():
        assert summaries[0].result is ApplyResult.UNFINISHED
        assert number is signal.SIGKILL or (child.returncode == 130 and b"groupkeeper history" in errors)
    finish_and_undo(journal, plan, servers)


def test_the_broker_is_killed_within_apply(tmp_path: Path, journal: Journal, plan: str) -> None:
    data = ["--data", str(tmp_path / "data"), "--port"]
    first = Started(*data, "0", directory=tmp_path)
    again = None
    try:
        set_up(first.address)
        child = begin("apply", plan, *confirmed(first.address), "--timeout", "3000ms")
        wait_for_commits(child, first.address)
        first.process.kill()
        first.process.wait()
        child.communicate(timeout=120)
        (summary,), _ = journal.summaries()
        recorded = journal.load(summary.head.id)
        assert recorded is not None
        again = Started(*data, first.address.rpartition(":")[2], directory=tmp_path)
        now = committed(again.address)
        assert set(now.values()) <= {BEFORE, AFTER}
        # What isn't said to be lost was acknowledged, and is there.
        lost = {one.group_id for one in recorded.lost}
        assert {group_id for group_id, one in now.items() if one == BEFORE} <= lost
        if lost:
            assert child.returncode == 1
            assert summary.result in (ApplyResult.PARTLY, ApplyResult.REFUSED)
        finish_and_undo(journal, plan, again.address)
    finally:
        for started in (first, again):
            if started is not None and started.process.poll() is None:
                started.end(signal.SIGTERM)


@pytest.mark.parametrize("nth", [1, 250, 500])
@pytest.mark.parametrize("executes", [False, True])
def test_a_connection_breaks_at_a_commit(
    broker: BackgroundBroker, journal: Journal, plan: str, nth: int, executes: bool
) -> None:
    """Whether the commit came through or not, it is made again, and everything is as planned."""
    with broker.faults.disconnect("OffsetCommit", executes=executes, nth=nth) as fault:
        assert main(["apply", plan, *confirmed(broker.bootstrap_servers)]) == 0
        assert fault.hits == 1
    assert set(committed(broker.bootstrap_servers).values()) == {AFTER}
    assert [one.result for one in journal.summaries()[0]] == [ApplyResult.APPLIED]


@pytest.mark.parametrize("api", ["OffsetFetch", "DescribeGroups", "ListOffsets", "Metadata"])
def test_a_broker_that_refuses_to_be_looked_at_changes_nothing(
    broker: BackgroundBroker, journal: Journal, plan: str, api: str
) -> None:
    with broker.faults.error(api, "UNKNOWN_SERVER_ERROR"):
        assert main(["apply", plan, *confirmed(broker.bootstrap_servers), "--timeout", "3000ms"]) == 1
    assert set(committed(broker.bootstrap_servers).values()) == {BEFORE}
    assert journal.summaries()[0] == []


@pytest.mark.parametrize("executes", [False, True])
def test_answers_that_never_come(
    broker: BackgroundBroker,
    journal: Journal,
    plan: str,
    executes: bool,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The rest isn't tried, which would take the time limit again and again; what may be done can be undone."""
    monkeypatch.setattr(recorder, "_GROUPS_PER_CALL", 50)
    servers = broker.bootstrap_servers
    with broker.faults.drop("OffsetCommit", executes=executes) as fault:
        assert main(["apply", plan, *confirmed(servers), "--timeout", "3000ms"]) == 1
        assert fault.seen <= 50
    assert "the change may or may not have been made: run the same command again" in capsys.readouterr().err
    (summary,), _ = journal.summaries()
    recorded = journal.load(summary.head.id)
    assert recorded is not None
    assert ({one.error for one in recorded.lost}, len(recorded.lost)) == ({"CALL_TIMED_OUT"}, len(GROUPS))
    assert summary.result is ApplyResult.PARTLY
    assert (AFTER in committed(servers).values()) == executes
    assert (undo(servers) if executes else main(["history"])) == 0
    assert set(committed(servers).values()) == {BEFORE}
    finish_and_undo(journal, plan, servers)


def test_some_commits_are_refused(broker: BackgroundBroker, journal: Journal, plan: str) -> None:
    servers = broker.bootstrap_servers
    with broker.faults.error("OffsetCommit", "GROUP_AUTHORIZATION_FAILED", every=10) as fault:
        assert main(["apply", plan, *confirmed(servers)]) == 1
        assert fault.hits == len(GROUPS) // 10
    (summary,), _ = journal.summaries()
    recorded = journal.load(summary.head.id)
    assert recorded is not None
    assert summary.result is ApplyResult.PARTLY
    assert {one.group_id for one in recorded.lost} == {key for key, one in committed(servers).items() if one == BEFORE}
    assert {one.error for one in recorded.lost} == {"GROUP_AUTHORIZATION_FAILED"}
    finish_and_undo(journal, plan, servers)
