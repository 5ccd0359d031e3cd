"""`groupkeeper groups …` shows share groups beside the others; these and plans change nothing of them."""

from pathlib import Path
from typing import Any

import pytest
from tests.cli.stages import SHARE

STAGE = SHARE

LONG = "a-topic-with-a-long-name"


def test_list(run: Any) -> None:
    status, report = run("groups", "list")
    types = {row["group"]: (row["type"], row["state"]) for row in report["groups"]}
    assert status == 0
    assert (types["app"], types["set"], types["working"]) == (
        ("Classic", "Stable"),
        ("Share", "Empty"),
        ("Share", "Stable"),
    )
    shares = run("groups", "list", "--type", "share", "--state", "stable")[1]["groups"]
    assert [row["group"] for row in shares] == ["alone", "waiting", "working"]
    assert {row["type"] for row in run("groups", "list", "--type", "Classic,Consumer")[1]["groups"]} == {"Classic"}


def test_a_reset_that_is_refused_names_no_way_back(run: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GROUPKEEPER_JOURNAL", str(tmp_path / "journal.jsonl"))
    status, report = run("groups", "reset", "set", "--topic", "orders", "--to-earliest", "--execute")
    assert (status, report["offsets"]) == (1, [])
    assert {one["error"] for one in report["problems"]} == {"NOT_OF_CONSUMERS"}
    assert not any("undo" in note for note in report["notes"])


def test_offsets_with_the_lag_that_the_broker_counts(run: Any) -> None:
    # GS-15, GS-16
    status, report = run("groups", "offsets", "set", "billing", "working", "nope")
    rows = [
        (row["group"], row["topic"], row["partition"], row["committed_offset"], row["lag"], row["done_ahead"])
        for row in report["offsets"]
    ]
    assert rows == [
        ("billing", "orders", 0, 4, 6, None),
        ("billing", "orders", 1, None, None, None),
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
    assert working == {("orders", "client-of-working", "uncommitted"), ("payments", "client", "uncommitted")}
    assert (status, [problem["group"] for problem in report["problems"]]) == (1, ["nope"])
    sums = run("groups", "describe", "set", "--sum", "group")[1]["lag_by_group"]
    assert [(row["partitions"], row["lag"], row["max_lag"]) for row in sums] == [(4, 13, 7)]


def test_members(run: Any) -> None:
    # K1099-37
    report = run("groups", "members", "working", "app")[1]
    rows = [(row["group"], row["member_id"], row["partitions"]) for row in report["members"] if row["group"] != "app"]
    assert rows == [("working", "a-member-with-a-rather-long-id", 2), ("working", "b-member", 3)]
    assert [row["group"] for row in report["members"]] == ["app", "working", "working"]
    member = report["members"][1]
    assert (member["instance_id"], member["target_assignment"], member["upgraded"]) == (None, None, None)
    assert member["assignment"] == [{"topic": "payments", "partition": partition} for partition in (0, 1)]
    assert member["epoch"] > 0


def test_states(run: Any) -> None:
    # K1099-37
    rows = {row["group"]: row for row in run("groups", "describe", "--all-groups", "--view", "state")[1]["groups"]}
    working, app = rows["working"], rows["app"]
    expected = {"type": "Share", "state": "Stable", "members": 2, "assignor": "simple"}
    assert {name: working[name] for name in expected} == expected
    assert working["group_epoch"] == working["target_epoch"] > 0
    assert (app["type"], app["group_epoch"]) == ("Classic", None)


CHANGING = {
    "groups delete": "--delete",
    "groups delete-offsets": "--delete-offsets",
    "groups reset": "--reset-offsets",
    "plan reset": "--reset-offsets",
    "plan delete-offsets": "--delete-offsets",
    "plan sweep": "--delete-offsets",
}
"""Commands that change offsets or plan to, and what kafka-share-groups does instead."""
MORE_WORDS = {
    "groups delete": [],
    "groups delete-offsets": ["--topic", "orders"],
    "plan delete-offsets": ["--all-topics"],
    "plan sweep": ["--idle", "1ms"],
}
WITH_FILTERS = sorted(set(CHANGING) - {"groups delete-offsets"})


def ask(run: Any, command: str, *words: str) -> tuple[int, Any]:
    execute = ["--execute"] if command.startswith("groups") else []
    more = MORE_WORDS.get(command, ["--topic", "orders", "--to-earliest"])
    found: tuple[int, Any] = run(*command.split(), *words, *more, *execute)
    return found


@pytest.mark.parametrize("command", CHANGING)
@pytest.mark.parametrize("group", ["set", "100% of a long name, with $SIGNS"])
def test_a_share_group_is_refused_with_the_tool_and_option_for_it(run: Any, command: str, group: str) -> None:
    status, report = ask(run, command, group)
    [problem] = report["problems"]
    assert (status, problem["error"], problem["group"]) == (1, "NOT_OF_CONSUMERS", group)
    assert "kafka-share-groups" in problem["message"]
    assert CHANGING[command] in problem["message"]
    assert report[next(key for key in ("deleted", "offsets", "changes") if key in report)] == []
    assert len(run("groups", "list", "--type", "share")[1]["groups"]) == 7


@pytest.mark.parametrize("command", WITH_FILTERS)
def test_share_groups_are_no_type_of_groups_to_change(
    run: Any, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    with pytest.raises(SystemExit) as ended:
        ask(run, command, "--all-groups", "--type", "Share")
    said = capsys.readouterr().err
    assert ended.value.code == 2
    assert "expected some of Classic, Consumer, for example Consumer; 'kafka-share-groups' changes share groups" in said


def test_all_groups_to_delete_are_consumer_groups(run: Any) -> None:
    report = run("groups", "delete", "--all-groups")[1]
    assert [row["group"] for row in report["deleted"]] == ["billing"]
    assert [(one["group"], one["error"]) for one in report["problems"]] == [("app", "NON_EMPTY_GROUP")]
