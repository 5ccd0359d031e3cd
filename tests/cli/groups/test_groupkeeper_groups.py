"""`groupkeeper groups …` on the embedded broker: rows, problems beside them, exit statuses, and nothing by accident."""

import asyncio
import contextlib
import json
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.acts import commit, committed, make_topic
from tests.cli.groups.test_groups_watch import COMMAND
from tests.cli.stages import BOTH, FIRST_MS, put_back

from groupkeeper.broker.authorizer import Operation, ResourceType, RuleAuthorizer
from groupkeeper.cli.main import main
from groupkeeper.client.admin.types import OffsetAndMetadata, TopicPartition
from groupkeeper.operations.times import utc_text
from groupkeeper.testing.background import BackgroundBroker

STAGE = BOTH

Run = Callable[..., tuple[int, Any, str]]


@pytest.fixture
def run(servers: str, capsys: pytest.CaptureFixture[str]) -> Iterator[Run]:
    """Runs a command with --output json: its status, what it printed, and standard error."""

    def call(*words: str) -> tuple[int, Any, str]:
        status = main(["groups", *words, "--bootstrap-server", servers, "--output", "json"])
        output, errors = capsys.readouterr()
        return status, json.loads(output) if output else None, errors

    yield call
    asyncio.run(put_back(STAGE, servers))


# K518-40, K518-41, K518-42
def test_list_is_ordered_and_filtered(run: Run) -> None:
    status, report, _ = run("list")
    assert status == 0
    told = [{name: value for name, value in row.items() if value is not None} for row in report["groups"]]
    assert report | {"groups": told} == {
        "schema": "group_list/1",
        "groups": [
            {"group": group, "type": "Classic", "state": state, "cluster": "default"}
            for group, state in (("app", "Stable"), ("billing", "Empty"), ("zeta", "Empty"))
        ],
        "notes": [],
        "problems": [],
    }
    assert [row["group"] for row in run("list", "--state", "stable")[1]["groups"]] == ["app"]
    assert run("list", "--type", "consumer")[1]["groups"] == []


# K88-50, K88-52, K1099-60
def test_describe_shows_lag_and_the_groups_that_it_can(run: Run) -> None:
    status, report, _ = run("describe", "app", "billing", "nope")
    assert status == 1
    rows = [(r["group"], r["topic"], r["partition"], r["committed_offset"], r["lag"]) for r in report["offsets"]]
    assert rows == [
        ("app", "orders", 0, 4, 6),
        ("app", "orders", 1, None, None),
        ("app", "orders", 2, 0, 0),
        ("billing", "orders", 0, 4, 6),
        ("billing", "orders", 1, 12, 8),
        ("billing", "payments", 1, 5, 0),
    ]
    assert report["offsets"][0]["client_id"] == "client-of-app"
    assert report["problems"] == [
        {
            "error": "GROUP_ID_NOT_FOUND",
            "message": "Group nope not found.",
            "group": "nope",
            "topic": None,
            "partition": None,
            "broker": None,
            "acl": None,
            "cluster": None,
        }
    ]


def test_describe_members_and_states(run: Run) -> None:
    (member,) = run("describe", "app", "--view", "members")[1]["members"]
    assert (member["client_id"], member["assignment"]) == (
        "client-of-app",
        [{"topic": "orders", "partition": 0}, {"topic": "orders", "partition": 1}],
    )
    states = run("describe", "--all-groups", "--view", "state")[1]["groups"]
    found = [(row["group"], row["members"], row["assignor"]) for row in states]
    assert found == [("app", 1, "range"), ("billing", 0, None), ("zeta", 0, None)]


def test_tables_are_for_people(servers: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["groups", "describe", "zeta", "--bootstrap-server", servers]) == 0
    output, errors = capsys.readouterr()
    lines = [line.split() for line in output.splitlines()]
    assert lines[0] == ["GROUP", "TOPIC", "PARTITION", "COMMITTED-OFFSET", "LOG-END-OFFSET", "LAG", "STATUS"]
    assert lines[1] == ["zeta", "a-topic-with-a-long-name", "0", "99", "3", "0", "beyond_log_end"]
    assert errors == "note: group zeta has no members\n"


def test_reset_changes_nothing_unless_told_to(run: Run, servers: str) -> None:
    before = committed(servers, "billing")
    status, report, _ = run("reset", "billing", "--all-topics", "--to-earliest")
    assert status == 0
    assert [row["new_offset"] for row in report["offsets"]] == [0, 5, 0]
    assert committed(servers, "billing") == before


# K122-53 and the defects that the better form doesn't have
def test_reset_keeps_metadata_and_moves_into_the_log(run: Run, servers: str) -> None:
    status, report, _ = run("reset", "billing", "--topic", "orders:1", "--shift-by", "100", "--execute")
    assert status == 0
    assert report["offsets"][0]["note"] == "112 is above the log end"
    assert committed(servers, "billing")[TopicPartition("orders", 1)] == OffsetAndMetadata(20, None, "note")
    run("reset", "zeta", "--topic", "a-topic-with-a-long-name", "--to-current", "--execute")
    assert committed(servers, "zeta")[TopicPartition("a-topic-with-a-long-name", 0)] == OffsetAndMetadata(3)


def test_what_is_committed_instead_is_told_beside_a_table_without_notes(
    servers: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = "groups reset billing --topic orders --to-offset 99 --bootstrap-server".split()
    assert main([*words, servers]) == 0
    output, errors = capsys.readouterr()
    assert "above" not in output
    assert "note: 3 partitions with an offset above the log end: the log end instead\n" in errors


# K122-73: the others go on
def test_reset_refuses_active_groups_beside_the_rest(run: Run) -> None:
    status, report, _ = run("reset", "app", "billing", "--topic", "orders:0", "--to-latest", "--execute")
    assert status == 1
    assert [(row["group"], row["new_offset"]) for row in report["offsets"]] == [("billing", 10)]
    assert report["problems"][0]["error"] == "GROUP_IS_ACTIVE"


def test_reset_says_whether_it_is_executed(run: Run, servers: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["reset", "billing", "--topic", "orders:0", "--to-latest"]
    for more in ([], ["--dry-run"]):
        status, report, _ = run(*words, *more)
        assert (status, report["executed"], report["offsets"][0]["result"]) == (0, False, "would be applied")
        found = report["notes"]
        assert found == ["0 records replayed, 6 skipped, counted in offsets", "nothing is changed yet: add --execute"]
    report = run(*words, "--execute")[1]
    assert (report["executed"], report["offsets"][0]["result"]) == (True, "applied")
    assert main(["groups", *words, "--bootstrap-server", servers]) == 0
    assert capsys.readouterr().err == "note: there is nothing to do: these offsets are committed already\n"


def test_a_reset_tells_what_it_means_as_a_plan_does(run: Run, servers: str) -> None:
    _, report, _ = run("reset", "billing", "--topic", "orders", "--to-datetime", utc_text(FIRST_MS + 7000))
    keys = ("partition", "committed_offset", "new_offset", "skipped", "replayed", "before_time", "after_time")
    assert [tuple(row[key] for key in keys) for row in report["offsets"]] == [
        (0, 4, 7, 3, 0, utc_text(FIRST_MS + 4000), utc_text(FIRST_MS + 7000)),
        (1, 12, 7, 0, 5, utc_text(FIRST_MS + 12_000), utc_text(FIRST_MS + 7000)),
        (2, None, 0, None, None, None, None),
    ]
    notes = report["notes"]
    assert f"to the first record from {utc_text(FIRST_MS + 7000)} on" in notes
    assert "5 records replayed, 3 skipped, counted in offsets" in notes
    assert (
        "1 partition without a committed offset before the change: a consumer reads 0 records there with "
        "auto.offset.reset=earliest, none with latest"
    ) in notes


def test_a_typing_error_makes_no_group(run: Run, servers: str) -> None:
    words = ["reset", "bililng", "--topic", "orders", "--to-earliest", "--execute"]
    status, report, _ = run(*words)
    assert (status, report["offsets"]) == (1, [])
    (problem,) = report["problems"]
    assert (problem["error"], problem["group"]) == ("GROUP_ID_NOT_FOUND", "bililng")
    assert problem["message"].startswith("there is no group bililng (--create makes it); did you mean 'billing'?")
    assert committed(servers, "bililng") == {}
    assert "there is no group bililng: it would be created" in run(*words[:-1], "--create")[1]["notes"]
    status, report, _ = run(*words, "--create")
    assert (status, len(report["offsets"]), len(committed(servers, "bililng"))) == (0, 3, 3)
    assert "there is no group bililng: it is created" in report["notes"]
    assert run("delete", "bililng", "--execute")[0] == 0


def test_a_deletion_that_was_refused_has_no_way_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GROUPKEEPER_JOURNAL", str(tmp_path / "journal.jsonl"))
    rules = RuleAuthorizer(allows_without_rules=True)
    rules.allow(Operation.READ, ResourceType.GROUP, "kept")  # and nothing else

    with BackgroundBroker(authorizer=rules) as broker:
        make_topic(broker.bootstrap_servers, "orders")
        for group_id in ("kept", "old"):
            commit(broker.bootstrap_servers, group_id, {TopicPartition("orders", 0): 0})
        for group_id, was_deleted in (("kept", False), ("old", True)):
            words = ["groups", "delete", group_id, "--execute", "--bootstrap-server", broker.bootstrap_servers]
            assert main([*words, "--output", "json"]) == (0 if was_deleted else 1)
            notes = json.loads(capsys.readouterr().out)["notes"]
            assert any("takes this back" in note for note in notes) == was_deleted


def test_a_group_without_offsets_is_told_from_one_that_there_is_not(run: Run) -> None:
    assert run("reset", "nope", "--all-topics", "--to-latest")[1]["problems"][0]["error"] == "GROUP_ID_NOT_FOUND"
    status, report, _ = run("reset", "nope", "--all-topics", "--to-latest", "--create", "--execute")
    assert (status, report["offsets"], report["problems"]) == (0, [], [])
    assert "nope has no committed offsets to reset" in report["notes"]


@pytest.mark.parametrize("pattern", ["orders", "ord*", "[o]rders", "ord*:0,1,2"])
def test_a_glob_means_what_the_topics_name_means(run: Run, servers: str, pattern: str) -> None:
    """One way to name partitions, also of those where nothing is committed yet."""
    places = [("orders", 0), ("orders", 1), ("orders", 2)]
    _, report, _ = run("reset", "billing", "--topic", pattern, "--to-latest")
    assert [(row["topic"], row["partition"]) for row in report["offsets"]] == places
    # Deleted is only what is committed.
    _, report, _ = run("delete-offsets", "billing", "--topic", pattern)
    assert [(row["topic"], row["partition"]) for row in report["deleted"]] == places[:2]


def test_a_glob_leaves_out_topics_without_offsets_of_the_group(run: Run) -> None:
    _, report, _ = run("reset", "billing", "--topic", "*", "--to-latest")
    assert {row["topic"] for row in report["offsets"]} == {"orders", "payments"}


def test_regular_expressions_are_for_topics_too(run: Run) -> None:
    _, report, _ = run("reset", "bill.*", "--topic", "pay.+", "--regex", "--to-latest")
    assert {(row["group"], row["topic"]) for row in report["offsets"]} == {("billing", "payments")}


@pytest.mark.parametrize(
    "words",
    [
        "reset billing zeta --topic orders:0 --to-offset 1",
        "reset * --topic orders:0 --to-offset 1 --state empty",
        "delete billing zeta",
        "delete --all-groups --state empty",
        "delete-offsets billing --topic orders",
    ],
)
def test_a_confirmed_number_is_always_compared(run: Run, servers: str, words: str) -> None:
    before = {group_id: committed(servers, group_id) for group_id in ("billing", "zeta")}
    for more in (["--execute"], []):
        status, report, _ = run(*words.split(), "--confirm", "7", *more)
        errors = [one["error"] for one in report["problems"]]
        assert (status, report["executed"], errors) == (1, False, ["NOT_CONFIRMED"])
    assert {group_id: committed(servers, group_id) for group_id in before} == before


@pytest.mark.parametrize("words", ["reset * --topic orders:0 --to-offset 1 --state empty", "delete [bz]*"])
def test_several_groups_by_a_pattern_are_confirmed(run: Run, servers: str, words: str) -> None:
    before = committed(servers, "billing")
    _, report, _ = run(*words.split())
    assert report["notes"][-1] == "nothing is changed yet: add --execute --confirm 2"
    status, report, _ = run(*words.split(), "--execute")
    assert (status, report["problems"][0]["error"]) == (1, "NOT_CONFIRMED")
    assert report["problems"][0]["message"].startswith("2 groups would be changed: add --confirm 2")
    assert committed(servers, "billing") == before
    status, report, _ = run(*words.split(), "--execute", "--confirm", "2")
    assert (status, report["executed"]) == (0, True)
    assert committed(servers, "billing") != before


def test_the_members_of_an_active_group_are_named_with_a_way_out(run: Run, servers: str) -> None:
    status, report, _ = run("reset", "app", "--topic", "orders:0", "--to-latest", "--property", "client.id=me")
    assert (status, report["problems"][0]["error"]) == (1, "GROUP_IS_ACTIVE")
    assert report["problems"][0]["message"] == "the group is active (Stable), held by client-of-app on /127.0.0.1"
    way_out = f"'groupkeeper apply FILE --execute --wait 5m --bootstrap-server {servers} --property client.id=me'"
    assert any("groupkeeper plan reset" in note and way_out in note for note in report["notes"])


def test_a_topic_that_there_is_not_is_told_from_its_neighbour(run: Run) -> None:
    for topic in ("order", "order:0"):
        status, report, _ = run("reset", "billing", "--topic", topic, "--to-latest")
        assert (status, report["problems"][0]["error"]) == (1, "UNKNOWN_TOPIC_OR_PARTITION")
        assert report["problems"][0]["message"].endswith("; did you mean 'orders'?")


def test_offsets_of_a_group_with_members_stay(run: Run, servers: str) -> None:
    before = committed(servers, "app")
    for more in ([], ["--execute"]):
        status, report, _ = run("delete-offsets", "app", "--topic", "orders", *more)
        assert (status, report["deleted"], report["problems"][0]["error"]) == (1, [], "GROUP_IS_ACTIVE")
    assert committed(servers, "app") == before


def test_reset_from_a_file(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "plan.csv"
    path.write_text("orders,0,3\n")
    assert run("reset", "billing", "--from-file", str(path))[1]["offsets"][0]["new_offset"] == 3
    path.write_text("other,orders,0,3\n")
    status, report, _ = run("reset", "billing", "--from-file", str(path))
    assert (status, report["problems"][0]["error"]) == (1, "NO_PLAN")
    assert report["problems"][0]["message"] == f"{path} has no line for group billing"
    path.write_text("billing,orders,0,3\nother,orders,0,4\n")
    status, report, _ = run("reset", "billing", "--from-file", str(path))
    assert (status, len(report["offsets"])) == (0, 1)
    assert f"{path}: lines of other groups are skipped: other" in report["notes"]


# K122-72: what is exported is what is read
@pytest.mark.parametrize("groups", [["billing"], ["billing", "zeta"]])
def test_reset_exports_what_it_reads(
    groups: list[str], servers: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    words = ["--bootstrap-server", servers]
    assert main(["groups", "reset", *groups, "--all-topics", "--to-earliest", "--export", *words]) == 0
    exported = capsys.readouterr().out
    front = "billing," if len(groups) > 1 else ""
    assert exported.startswith(f"{front}orders,0,0\n{front}orders,1,5\n")
    path = tmp_path / "plan.csv"
    path.write_text(exported)
    assert main(["groups", "reset", *groups, "--from-file", str(path), "--export", *words]) == 0
    assert capsys.readouterr().out == exported


@pytest.mark.parametrize("scope", ["--topic=nowhere", "--topic=orders:0 --topic=nowhere:1"])
def test_reset_names_the_topic_that_there_is_not(run: Run, scope: str) -> None:
    status, report, _ = run("reset", "billing", *scope.split(), "--to-latest")
    assert (status, report["offsets"]) == (1, [])
    (problem,) = report["problems"]
    assert (problem["group"], problem["topic"], problem["error"]) == (
        "billing",
        "nowhere",
        "UNKNOWN_TOPIC_OR_PARTITION",
    )


def test_nothing_to_show_is_said(servers: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--bootstrap-server", servers]
    assert main(["groups", "list", "--type", "consumer", *words]) == 0
    assert capsys.readouterr() == ("", "note: no groups in these states or of these types\n")
    assert main(["groups", "describe", "", *words]) == 1
    output, errors = capsys.readouterr()
    assert output == ""
    assert errors.startswith("error: '': ")


def test_delete_offsets_names_what_was_never_committed(run: Run, servers: str) -> None:
    words = ["delete-offsets", "billing", "--topic", "orders", "--topic", "payments:0"]
    before = committed(servers, "billing")
    status, report, _ = run(*words)
    assert (status, report["executed"]) == (1, False)
    assert {row["result"] for row in report["deleted"]} == {"would be deleted"}
    assert "nothing is changed yet: add --execute" in report["notes"]
    assert committed(servers, "billing") == before
    status, report, _ = run(*words, "--execute")
    assert (status, report["executed"], {row["result"] for row in report["deleted"]}) == (1, True, {"deleted"})
    assert [(row["partition"], row["deleted_offset"]) for row in report["deleted"]] == [(0, 4), (1, 12)]
    assert (report["problems"][0]["topic"], report["problems"][0]["partition"]) == ("payments", 0)
    assert report["problems"][0]["error"] == "NOTHING_TO_DELETE"
    assert list(committed(servers, "billing")) == [TopicPartition("payments", 1)]


def test_delete_offsets_of_a_group_that_does_not_exist(run: Run) -> None:
    status, report, _ = run("delete-offsets", "bililng", "--topic", "orders", "--execute")
    assert (status, report["deleted"]) == (1, [])
    (problem,) = report["problems"]
    # A similar name is not offered to who deletes.
    assert (problem["group"], problem["error"], problem["message"]) == (
        "bililng",
        "GROUP_ID_NOT_FOUND",
        "there is no group bililng",
    )


@pytest.mark.parametrize("executes", [False, True])
def test_delete_tells_what_becomes_of_each(run: Run, servers: str, executes: bool) -> None:
    status, report, _ = run("delete", "billing", "app", "bililng", *["--execute"] * executes)
    assert (status, report["executed"]) == (1, executes)
    result = "deleted" if executes else "would be deleted"
    assert report["deleted"] == [{"group": "billing", "offsets": 3, "result": result}]
    found = [(problem["group"], problem["error"]) for problem in report["problems"]]
    assert found == [("app", "NON_EMPTY_GROUP"), ("bililng", "GROUP_ID_NOT_FOUND")]
    assert "client-of-app on /127.0.0.1" in report["problems"][0]["message"]
    assert "did you mean" not in report["problems"][1]["message"]
    assert any("groupkeeper undo" in note for note in report["notes"]) == executes
    assert len(committed(servers, "billing")) == (0 if executes else 3)


UNREACHABLE = ["--bootstrap-server", "127.0.0.1:1", "--timeout", "300ms"]


def test_addresses_of_what_is_no_broker_do_not_hide_one(servers: str, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent, socket.create_server(("127.0.0.1", 0)) as web:

        def answer() -> None:
            with contextlib.suppress(OSError), web.accept()[0] as connection:
                connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        answering = threading.Thread(target=answer)
        answering.start()
        others = [f"127.0.0.1:{each.getsockname()[1]}" for each in (web, silent)]
        seeds = ",".join(["127.0.0.1:1", "no-such-host.invalid:9", *others, servers])
        try:
            assert main(["groups", "list", "--bootstrap-server", seeds]) == 0
        finally:
            web.shutdown(socket.SHUT_RDWR)  # if nobody connected
            answering.join()
        assert capsys.readouterr().err == ""


def test_an_unreachable_broker_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["groups", "list", *UNREACHABLE]) == 1
    output, errors = capsys.readouterr()
    assert output == ""
    assert errors.startswith("error: ")
    assert errors.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "keys"),
    [
        ("list", {"groups"}),
        ("describe g", {"offsets"}),
        ("describe g --view members", {"members"}),
        ("describe g --view state", {"groups"}),
        ("offsets g --sum topic", {"lag_by_topic"}),
        ("members g*", {"members"}),
        ("reset g --all-topics --to-latest --execute", {"offsets", "executed"}),
        ("delete-offsets g --topic t", {"deleted", "executed"}),
        ("delete g", {"deleted", "executed"}),
    ],
)
def test_an_unreachable_broker_is_a_problem_in_json(words: str, keys: set[str], groupkeeper: Any) -> None:
    status, report = groupkeeper("groups", *words.split(), *UNREACHABLE)
    assert (status, set(report)) == (1, keys | {"schema", "notes", "problems"})
    assert report["problems"][0]["error"] == "CONNECTION_FAILED"
    assert report.get("executed") in (None, False)


def test_waiting_for_a_broker_is_said() -> None:
    command = [COMMAND, "groups", "list", "--bootstrap-server", "127.0.0.1:1", "--timeout", "50s"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        said = process.stderr.readline()
        process.kill()
    assert said == "note: connection refused by 127.0.0.1:1; trying until 50 s have passed\n"
