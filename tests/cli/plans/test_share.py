"""Changes of share groups' start offsets are journalled, and can be taken back."""

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.apache_kafka import require as require_apache_kafka
from tests.cli.stages import SETTINGS, Stage, set_up
from tools.apache_kafka import ApacheKafka

from groupkeeper import SyncAdmin
from groupkeeper.cli.dropin import kafka_share_groups
from groupkeeper.client.admin.types import OffsetAndMetadata, TopicPartition
from groupkeeper.operations.plans import document
from groupkeeper.operations.plans.changes import ApplyResult
from groupkeeper.operations.plans.journal import Journal
from groupkeeper.operations.plans.model import Change, GroupPlan, Plan
from groupkeeper.testing.background import BackgroundBroker

ORDERS = [TopicPartition("orders", number) for number in range(2)]
PAYMENTS = TopicPartition("payments", 0)
STAGE = Stage(
    "shares", {"orders": [10, 20], "payments": [5]}, share_starts={"idle": {("orders", 0): 3, ("orders", 1): 7}}
)


@pytest.fixture(params=["groupkeeper", pytest.param("apache", marks=pytest.mark.conformance)])
def servers(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "apache":
        require_apache_kafka()
    broker = ApacheKafka(SETTINGS) if request.param == "apache" else BackgroundBroker(properties=SETTINGS)
    with broker:
        asyncio.run(set_up(STAGE, broker.bootstrap_servers, tmp_path))
        yield broker.bootstrap_servers


def starts(servers: str) -> Mapping[TopicPartition, int]:
    with SyncAdmin(servers) as admin:
        found = admin.list_share_group_offsets({"idle": None}).result("idle").done
    return {tp: one.start_offset for tp, one in found.items() if one is not None}


@pytest.mark.parametrize(
    ("words", "kind", "after"),
    [
        ("--reset-offsets --topic orders --to-earliest --execute", "share-reset", {ORDERS[0]: 0, ORDERS[1]: 0}),
        ("--delete-offsets --topic orders", "share-delete-offsets", {}),
        ("--reset-offsets --all-topics --to-offset 4 --execute", "share-reset", dict.fromkeys(ORDERS, 4)),
        ("--reset-offsets --from-file starts.csv --execute --export", "share-reset", {ORDERS[0]: 1, ORDERS[1]: 7}),
        ("--delete", "share-delete-groups", {}),
        ("--reset-offsets --topic payments --to-latest --execute", "share-reset", {PAYMENTS: 5}),
    ],
)
def test_a_change_is_journalled_and_undone(
    servers: str,
    journal: Journal,
    run: Any,
    words: str,
    kind: str,
    after: Mapping[TopicPartition, int],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("starts.csv").write_text("orders,0,1\n")
    before = starts(servers)
    assert before == {ORDERS[0]: 3, ORDERS[1]: 7}
    assert kafka_share_groups.main(["--bootstrap-server", servers, "--group", "idle", *words.split()]) == 0
    now = starts(servers)
    assert now == ({**before, **after} if after and ORDERS[0] not in after else after)
    (summary,), _ = journal.summaries()
    assert (summary.head.kind, summary.result) == (kind, ApplyResult.APPLIED)
    status, report = run("undo", "--execute")
    assert (status, report["problems"]) == (0, [])
    assert any("delivered again" in note for note in report["notes"])
    assert starts(servers) == before
    # The undo is a change of a share group, too.
    assert run("undo", "--execute", journal.summaries()[0][-1].head.id)[0] == 0
    assert starts(servers) == now


@pytest.mark.parametrize(
    "words", ["--reset-offsets --topic orders --to-earliest --execute", "--delete-offsets --topic orders", "--delete"]
)
def test_a_cluster_that_does_not_tell_its_id_in_time_is_journalled_without(
    tmp_path: Path, journal: Journal, words: str
) -> None:
    with BackgroundBroker(properties=SETTINGS) as broker:
        servers = broker.bootstrap_servers
        asyncio.run(set_up(STAGE, servers, tmp_path))
        with broker.faults.drop("DescribeCluster", executes=False):
            command = ["--bootstrap-server", servers, "--timeout", "1000", "--group", "idle", *words.split()]
            assert kafka_share_groups.main(command) == 0
        assert starts(servers) in ({}, dict.fromkeys(ORDERS, 0))
    (summary,), _ = journal.summaries()
    assert (summary.head.cluster_id, summary.result) == (None, ApplyResult.APPLIED)


def test_nothing_is_written_on_the_event_loop(servers: str, monkeypatch: pytest.MonkeyPatch) -> None:
    written = []

    class Watched(Journal):
        def _append(self, lines: Iterable[Mapping[str, Any]]) -> None:
            with pytest.raises(RuntimeError, match="no running event loop"):
                asyncio.get_running_loop()
            written.append(list(lines))

    monkeypatch.setattr("groupkeeper.cli.framework.journals.Journal", Watched)
    words = ["--bootstrap-server", servers, "--group", "idle", "--delete-offsets", "--topic", "orders"]
    assert kafka_share_groups.main(words) == 0
    assert [lines[0]["event"] for lines in written] == ["change", "outcome"]


def test_what_moved_since_is_not_undone(servers: str, journal: Journal, run: Any) -> None:
    words = ["--bootstrap-server", servers, "--group", "idle", "--reset-offsets", "--topic", "orders"]
    assert kafka_share_groups.main([*words, "--to-latest", "--execute"]) == 0
    assert kafka_share_groups.main([*words, "--to-earliest", "--dry-run"]) == 0
    first = journal.summaries()[0][0].head.id
    assert kafka_share_groups.main([*words, "--to-earliest", "--execute"]) == 0
    status, report = run("undo", "--execute", first)
    assert (status, {one["error"] for one in report["problems"]}) == (1, {"STALE_PLAN"})
    assert starts(servers) == {ORDERS[0]: 0, ORDERS[1]: 0}


@pytest.mark.parametrize(
    "words",
    [
        "plan reset idle --topic orders --to-earliest",
        "plan delete-offsets idle --all-topics",
        "plan sweep idle --idle PT0S",
        "plan clone copy idle",
        "apply",
    ],
)
def test_plans_name_its_type_and_the_way_out(servers: str, run: Any, tmp_path: Path, words: str) -> None:
    before = starts(servers)
    if words == "apply":  # made when the group was one of consumers
        change = Change(None, OffsetAndMetadata(1))
        plan = Plan(None, (GroupPlan("idle", {ORDERS[0]: change}),))
        (tmp_path / "plan.json").write_text("".join(document.write(plan)))
        words = f"apply {tmp_path / 'plan.json'}"
    status, report = run(*words.split())
    assert (status, report["changes"]) == (1, [])
    (problem,) = [one for one in report["problems"] if one["group"] == "idle"]
    assert problem["error"] == "NOT_OF_CONSUMERS"
    assert "kafka-share-groups shows, sets and deletes (--describe, --reset-offsets" in problem["message"]
    assert starts(servers) == before
