"""`groupkeeper groups …` shows share groups beside the others, and changes nothing of them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cli.stages import SETTINGS, SHARE, set_up

from groupkeeper.cli.main import main
from groupkeeper.testing.background import BackgroundBroker

LONG = "a-topic-with-a-long-name"


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with BackgroundBroker(properties=SETTINGS) as broker:
        asyncio.run(set_up(SHARE, broker.bootstrap_servers, tmp_path_factory.mktemp("share")))
        yield broker.bootstrap_servers


@pytest.fixture
def run(servers: str, capsys: pytest.CaptureFixture[str]) -> Any:
    """Runs a command with --output json: its status and what it printed."""

    def call(*words: str) -> tuple[int, Any]:
        status = main(["groups", *words, "--bootstrap-server", servers, "--output", "json"])
        return status, json.loads(capsys.readouterr().out)

    return call


def test_list(run: Any) -> None:
    status, report = run("list")
    types = {row["group"]: (row["type"], row["state"]) for row in report["groups"]}
    assert status == 0
    assert (types["app"], types["set"], types["working"]) == (
        ("Classic", "Stable"),
        ("Share", "Empty"),
        ("Share", "Stable"),
    )
    shares = run("list", "--type", "share", "--state", "stable")[1]["groups"]
    assert [row["group"] for row in shares] == ["alone", "waiting", "working"]
    assert {row["type"] for row in run("list", "--type", "Classic,Consumer")[1]["groups"]} == {"Classic"}


def test_a_reset_that_is_refused_names_no_way_back(run: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GROUPKEEPER_JOURNAL", str(tmp_path / "journal.jsonl"))
    status, report = run("reset", "set", "--topic", "orders", "--to-earliest", "--execute")
    assert (status, report["offsets"]) == (1, [])
    assert {one["error"] for one in report["problems"]} == {"NOT_OF_CONSUMERS"}
    assert not any("undo" in note for note in report["notes"])


def test_offsets_with_the_lag_that_the_broker_counts(run: Any) -> None:
    # GS-15, GS-16
    status, report = run("offsets", "set", "billing", "working", "nope")
    rows = [
        (row["group"], row["topic"], row["partition"], row["current_offset"], row["lag"], row["done_ahead"])
        for row in report["offsets"]
    ]
    assert rows == [
        ("billing", "orders", 0, 4, 6, None),
        ("set", LONG, 0, 2, 1, 0),
        ("set", "orders", 0, 3, 7, 0),
        ("set", "orders", 1, 20, 0, 0),
        ("set", "payments", 0, 0, 5, 0),
        ("working", "orders", 0, None, None, None),
        ("working", "orders", 1, None, None, None),
        ("working", "orders", 2, None, None, None),
        ("working", "payments", 0, None, None, None),
        ("working", "payments", 1, None, None, None),
    ]
    working = {
        (row["topic"], row["client_id"], row["status"]) for row in report["offsets"] if row["group"] == "working"
    }
    assert working == {("orders", "client-of-working", "no_commit"), ("payments", "client", "no_commit")}
    assert (status, [problem["group"] for problem in report["problems"]]) == (1, ["nope"])
    sums = run("describe", "set", "--sum", "group")[1]["lag_by_group"]
    assert [(row["partitions"], row["lag"], row["max_lag"]) for row in sums] == [(4, 13, 7)]


def test_members(run: Any) -> None:
    # K1099-37
    report = run("members", "working", "app")[1]
    rows = [(row["group"], row["member_id"], row["partitions"]) for row in report["members"] if row["group"] != "app"]
    assert rows == [("working", "a-member-with-a-rather-long-id", 2), ("working", "b-member", 3)]
    assert [row["group"] for row in report["members"]] == ["app", "working", "working"]
    member = report["members"][1]
    assert (member["instance_id"], member["target_assignment"], member["upgraded"]) == (None, None, None)
    assert member["assignment"] == [{"topic": "payments", "partition": partition} for partition in (0, 1)]
    assert member["epoch"] > 0


def test_states(run: Any) -> None:
    # K1099-37
    rows = {row["group"]: row for row in run("describe", "--all-groups", "--view", "state")[1]["groups"]}
    working, app = rows["working"], rows["app"]
    assert (working["type"], working["state"], working["members"], working["assignor"]) == (
        "Share",
        "Stable",
        2,
        "simple",
    )
    assert working["group_epoch"] == working["target_epoch"] > 0
    assert (app["type"], app["group_epoch"]) == ("Classic", None)


@pytest.mark.parametrize(
    "command",
    [
        "delete set --execute",
        "delete-offsets set --topic orders --execute",
        "delete --type share --all-groups --execute",
    ],
)
def test_nothing_is_deleted(run: Any, command: str) -> None:
    status, report = run(*command.split())
    assert (status, report["deleted"]) == (1, [])
    assert {problem["error"] for problem in report["problems"]} <= {"GROUP_ID_NOT_FOUND", "NOT_OF_CONSUMERS"}
    assert len(run("list", "--type", "share")[1]["groups"]) == 7


def test_all_groups_to_delete_are_consumer_groups(run: Any) -> None:
    report = run("delete", "--all-groups")[1]
    assert [row["group"] for row in report["deleted"]] == ["billing"]
    assert [(one["group"], one["error"]) for one in report["problems"]] == [("app", "NON_EMPTY_GROUP")]
