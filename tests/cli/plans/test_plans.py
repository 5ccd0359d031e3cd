"""`groupkeeper plan reset`, `apply`, `history` and `undo` on the embedded broker, and the journal of all commands."""

import asyncio
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.acts import commit, committed
from tests.cli.stages import BOTH, FIRST_MS, SETTINGS, Live, Stage, put_back, set_up

from groupkeeper.cli.dropin import kafka_consumer_groups
from groupkeeper.cli.main import main
from groupkeeper.client.admin import Admin
from groupkeeper.client.admin.types import ALL, NewTopic, OffsetAndMetadata, OffsetSpec, TopicPartition
from groupkeeper.operations.errors import GroupIsActive
from groupkeeper.operations.plans import document, recorder
from groupkeeper.operations.plans.changes import ApplyResult
from groupkeeper.operations.plans.execution import apply_plan, wait_until_inactive
from groupkeeper.operations.plans.journal import Journal
from groupkeeper.operations.plans.model import Change, GroupPlan, Plan
from groupkeeper.operations.times import utc_text
from groupkeeper.testing.background import BackgroundBroker

WITH_APACHE = True
STAGE = BOTH
ORDERS = [TopicPartition("orders", number) for number in range(3)]

Offsets = dict[TopicPartition, OffsetAndMetadata]
Run = Callable[..., tuple[int, Any, str]]


@pytest.fixture
def run(servers: str, journal: Journal, capsys: pytest.CaptureFixture[str]) -> Iterator[Run]:
    """Runs a command with --output json: its status, what it printed, and standard error."""

    def call(*words: str, asks: bool = True) -> tuple[int, Any, str]:
        where = ["--bootstrap-server", servers] if asks else []
        status = main([*words, *where, "--output", "json"])
        output, errors = capsys.readouterr()
        return status, json.loads(output) if output else None, errors

    yield call
    asyncio.run(put_back(STAGE, servers))


@pytest.fixture
def plan(tmp_path: Path, run: Run) -> str:
    """A plan that takes billing to the beginning of orders."""
    path = str(tmp_path / "plan.json")
    assert run("plan", "reset", "billing", "--topic", "orders", "--to-earliest", "--save", path)[0] == 0
    return path


def results(journal: Journal) -> list[tuple[str, ApplyResult]]:
    summaries, broken = journal.summaries()
    assert broken == 0
    return [(summary.head.kind, summary.result) for summary in summaries]


def errors_of(report: Any) -> list[tuple[str, str | None, str | None, int | None]]:
    return [(one["error"], one["group"], one["topic"], one["partition"]) for one in report["problems"]]


def test_a_plan_says_what_it_means_and_changes_nothing(run: Run, servers: str) -> None:
    before = committed(servers, "billing")
    status, report, _ = run("plan", "reset", "billing", "--topic", "orders", "--to-earliest")
    assert status == 0
    first, second, third = report["changes"]
    assert first == {
        "group": "billing",
        "topic": "orders",
        "partition": 0,
        "before": 4,
        "after": 0,
        "skipped": 0,
        "replayed": 4,
        "before_time": utc_text(FIRST_MS + 4000),
        "after_time": utc_text(FIRST_MS),
        "log_start_offset": 0,
        "log_end_offset": 10,
        "state": "Empty",
        "certainty": None,
        "why": "the oldest record",
    }
    assert (second["before"], second["after"], second["replayed"]) == (12, 5, 7)
    assert second["after_time"] == utc_text(FIRST_MS + 5000)
    assert (third["before"], third["after"], third["skipped"], third["after_time"]) == (None, 0, None, None)
    assert committed(servers, "billing") == before


def test_apply_then_undo_brings_back_exactly_what_was(run: Run, servers: str, plan: str, journal: Journal) -> None:
    before = committed(servers, "billing")
    status, report, _ = run("apply", plan, "--execute")
    assert (status, [row["result"] for row in report["changes"]]) == (0, ["applied"] * 3)
    now = committed(servers, "billing")
    assert [now[tp].offset for tp in ORDERS] == [0, 5, 0]
    assert now[ORDERS[1]].metadata == "note"
    assert now[TopicPartition("payments", 1)] == before[TopicPartition("payments", 1)]
    # Once more: nothing is left to do, and nothing is written down.
    assert {row["result"] for row in run("apply", plan, "--execute")[1]["changes"]} == {"already"}
    assert results(journal) == [("reset", ApplyResult.APPLIED)]

    status, report, _ = run("undo", "--execute")
    assert (status, [row["after"] for row in report["changes"]]) == (0, [4, 12, None])
    assert committed(servers, "billing") == before
    (reset, undo), _ = journal.summaries()
    assert reset.undone_by == undo.head.id
    status, report, _ = run("undo", "--execute")
    assert (status, errors_of(report)) == (1, [("NOTHING_TO_UNDO", None, None, None)])
    # The undo can be taken back by its id.
    assert run("undo", "--execute", undo.head.id)[0] == 0
    assert committed(servers, "billing") == now


@pytest.mark.parametrize("is_dry_run", [False, True])
def test_a_stale_plan_is_refused_and_says_what_moved(
    run: Run, servers: str, plan: str, journal: Journal, is_dry_run: bool
) -> None:
    commit(servers, "billing", {ORDERS[0]: 7})
    before = committed(servers, "billing")
    status, report, _ = run("apply", plan, "--dry-run" if is_dry_run else "--execute")
    assert (status, errors_of(report)) == (1, [("STALE_PLAN", "billing", "orders", 0)])
    message = report["problems"][0]["message"]
    assert message == "it was committed at 4 when the plan was made, and is committed at 7 now"
    assert (committed(servers, "billing"), results(journal)) == (before, [])


def test_a_plan_for_a_topic_that_changed_is_stale(run: Run, servers: str, journal: Journal, tmp_path: Path) -> None:
    path = str(tmp_path / "plan.json")
    topic, tp = "short-lived", TopicPartition("short-lived", 0)

    async def make(partitions: int) -> None:
        async with Admin(servers) as admin:
            if topic in {one.name for one in await admin.list_topics()}:
                (await admin.delete_topics([topic])).all()
            (await admin.create_topics([NewTopic(topic, partitions, 1)])).all()
            ends = {TopicPartition(topic, one): OffsetSpec.latest() for one in range(partitions)}
            while (await admin.list_offsets(ends)).failed:  # it retries for a second; leaders are not known at once
                pass

    asyncio.run(make(1))
    commit(servers, "billing", {tp: 0})
    assert run("plan", "reset", "billing", "--topic", topic, "--to-offset", "0", "--save", path)[0] == 0
    written = json.loads(Path(path).read_text())
    written["groups"][0]["partitions"][0]["after"] = {"offset": 3}
    Path(path).write_text(json.dumps(written))
    status, report, _ = run("apply", path, "--execute")
    assert (status, report["problems"][0]["message"]) == (1, "the log ends at 0 now, before the planned offset 3")
    asyncio.run(make(2))
    status, report, _ = run("apply", path, "--execute")
    assert (status, errors_of(report)) == (1, [("STALE_PLAN", "billing", topic, None)])
    assert "was deleted and recreated" in report["problems"][0]["message"]
    assert results(journal) == []


def test_an_active_group_is_refused_by_the_names_of_its_members(
    run: Run, tmp_path: Path, servers: str, journal: Journal
) -> None:
    path = str(tmp_path / "plan.json")
    assert run("plan", "reset", "app", "--topic", "orders:0", "--to-latest", "--save", path)[0] == 0
    before = committed(servers, "app")
    status, report, errors = run("apply", path, "--execute", "--wait", "1s")
    assert (status, errors_of(report)) == (1, [("GROUP_IS_ACTIVE", "app", None, None)])
    assert "client-of-app on /127.0.0.1" in report["problems"][0]["message"]
    assert errors.startswith("note: waiting for app: the group is active")
    assert (committed(servers, "app"), results(journal)) == (before, [])


async def test_waiting_ends_when_the_members_are_gone(servers: str, tmp_path: Path) -> None:
    group_id = "waited-for"
    told: list[tuple[list[str], float]] = []
    await set_up(Stage("live", live=[Live(group_id, "worker", ["orders"], {"orders": [0]})]), servers, tmp_path)
    plan = Plan(None, (GroupPlan(group_id, {ORDERS[0]: Change(None, OffsetAndMetadata(3))}),))
    async with Admin(servers) as admin, asyncio.TaskGroup() as tasks:

        def tell(active: Sequence[GroupIsActive], left_s: float) -> None:
            if not told:
                tasks.create_task(admin.remove_members(group_id, ALL))
            told.append(([str(one) for one in active], left_s))

        await wait_until_inactive(admin, plan, 30, tell)
        applied = await apply_plan(admin, plan, None)
        found = await asyncio.to_thread(committed, servers, group_id)
        (await admin.delete_consumer_groups([group_id])).all()
    assert told[0][0] == ["the group is active (Stable), held by worker on /127.0.0.1"]
    assert (len(applied.done), applied.troubles, found[ORDERS[0]].offset) == (1, (), 3)


def test_several_groups_are_confirmed_and_those_that_do_not_fit_left_out(
    run: Run, tmp_path: Path, servers: str, journal: Journal
) -> None:
    path = str(tmp_path / "plan.json")
    status, report, _ = run("plan", "reset", "*", "--topic", "order?:0", "--to-offset", "6", "--save", path)
    assert (status, {row["group"] for row in report["changes"]}) == (0, {"app", "billing", "zeta"})
    assert {(row["topic"], row["partition"]) for row in report["changes"]} == {("orders", 0)}
    for words, said in (
        (["--execute"], "3 groups would be changed: add --confirm 3"),
        (["--confirm", "2"], "the number of groups is 3, not 2"),
        (["--execute", "--confirm", "2", "--wait", "5m"], "the number of groups is 3, not 2"),
    ):
        status, report, _ = run("apply", path, *words)
        assert (status, errors_of(report)) == (1, [("NOT_CONFIRMED", None, None, None)])
        assert said in report["problems"][0]["message"]
        assert report["executed"] is False
    assert run("apply", path, "--execute", "--confirm", "3")[0] == 1
    assert results(journal) == []
    status, report, _ = run("apply", path, "--execute", "--confirm", "3", "--skip-refused")
    assert (status, errors_of(report)) == (1, [("GROUP_IS_ACTIVE", "app", None, None)])
    found = [(row["group"], row["after"], row["result"]) for row in report["changes"]]
    assert found == [("billing", 6, "applied"), ("zeta", 6, "applied")]
    assert committed(servers, "app")[ORDERS[0]].offset == 4


@pytest.mark.parametrize(
    ("words", "after"),
    [
        (["--to-datetime", "2030-01-01"], {0: 10, 1: 20, 2: 0}),
        (["--to-datetime", utc_text(FIRST_MS + 15_000)], {0: 10, 1: 15, 2: 0}),
        (["--to-datetime", utc_text(FIRST_MS + 15_000), "--if-no-record", "skip"], {1: 15}),
        (["--to-datetime", utc_text(FIRST_MS + 15_000), "--if-no-record", "fail"], None),
        (["--to-offset", "3"], {0: 3, 1: 5, 2: 0}),
        (["--to-offset", "3", "--if-out-of-range", "skip"], {0: 3}),
        (["--to-offset", "3", "--if-out-of-range", "fail"], None),
    ],
)
def test_policies(run: Run, tmp_path: Path, words: Sequence[str], after: dict[int, int] | None) -> None:
    path = tmp_path / "plan.json"
    status, report, _ = run("plan", "reset", "billing", "--topic", "orders", *words, "--save", str(path))
    assert path.exists() == (after is not None)
    if after is None:
        assert status == 1
        assert {one["error"] for one in report["problems"]} <= {"NO_SUCH_TIME", "OUT_OF_RANGE"}
    else:
        assert (status, {row["partition"]: row["after"] for row in report["changes"]}) == (0, after)


def test_what_is_wrong_with_one_partition_or_group_leaves_the_others(run: Run) -> None:
    words = ["--topic", "orders:0", "--topic", "orders:9", "--topic", "nope", "--to-earliest"]
    status, report, _ = run("plan", "reset", "billing", *words)
    assert (status, [row["partition"] for row in report["changes"]]) == (1, [0])
    found = sorted(errors_of(report), key=str)
    assert found == [("PARTITIONS_MISSING", "billing", "orders", 9), ("UNKNOWN_TOPIC_OR_PARTITION", None, "nope", None)]


def test_a_group_is_made_only_when_that_is_said(run: Run, servers: str, tmp_path: Path, journal: Journal) -> None:
    path = tmp_path / "plan.json"
    words = ["plan", "reset", "bililng", "--topic", "orders", "--to-latest", "--save", str(path)]
    status, report, _ = run(*words)
    assert (status, report["changes"], path.exists()) == (1, [], False)
    assert errors_of(report) == [("GROUP_ID_NOT_FOUND", "bililng", None, None)]
    wanted = "there is no group bililng (--create plans for it); did you mean 'billing'?"
    assert report["problems"][0]["message"] == wanted
    status, report, _ = run(*words, "--create")
    assert (status, len(report["changes"])) == (0, 3)
    assert "there is no group bililng: it is created when the plan is applied with --create" in report["notes"]
    assert any(f"groupkeeper apply {path} --execute --create " in note for note in report["notes"])
    for more in ([], ["--execute"]):
        status, report, _ = run("apply", str(path), *more)
        assert (status, report["changes"]) == (1, [])
        assert errors_of(report) == [("GROUP_ID_NOT_FOUND", "bililng", None, None)]
    assert (committed(servers, "bililng"), results(journal)) == ({}, [])
    assert run("apply", str(path), "--execute", "--create")[0] == 0
    assert len(committed(servers, "bililng")) == 3
    # Applied once more it is as planned already: nothing is made.
    assert run("apply", str(path), "--execute")[0] == 0
    assert run("undo", "--execute")[0] == 0
    assert committed(servers, "bililng") == {}


@pytest.mark.parametrize("command", ["apply", "undo"])
def test_nothing_is_done_without_execute(run: Run, servers: str, plan: str, journal: Journal, command: str) -> None:
    if command == "undo":
        assert run("apply", plan, "--execute")[0] == 0
    words = ["apply", plan] if command == "apply" else ["undo"]
    before, written = committed(servers, "billing"), results(journal)
    for more in ([], ["--dry-run"], ["--confirm", "1"]):
        status, report, _ = run(*words, *more)
        assert (status, report["executed"]) == (0, False)
        assert {row["result"] for row in report["changes"]} == {"would be applied"}
        assert report["notes"][-1] == "nothing is changed yet: add --execute"
    assert (committed(servers, "billing"), results(journal)) == (before, written)
    status, report, _ = run(*words, "--execute")
    assert (status, report["executed"], committed(servers, "billing") == before) == (0, True, False)


def test_an_undo_says_what_who_when_and_where(run: Run, servers: str, plan: str, journal: Journal) -> None:
    assert run("apply", plan, "--execute")[0] == 0
    (summary,), _ = journal.summaries()
    head = summary.head
    assert head.cluster_id
    said = run("undo")[1]["notes"][0]
    assert said.startswith(f"this undoes {head.id}, reset by {head.user} on {head.host} at ")
    assert (
        f"{utc_text(head.time_ms)} on cluster {head.cluster_id}, made with: groupkeeper apply {plan} --execute " in said
    )
    assert run("history", asks=False)[1]["changes"][0]["cluster_id"] == head.cluster_id


def test_the_number_of_groups_of_an_undo_is_compared(run: Run, servers: str, plan: str, journal: Journal) -> None:
    assert run("apply", plan, "--execute")[0] == 0
    before = committed(servers, "billing")
    for more in ([], ["--execute"]):
        status, report, _ = run("undo", "--confirm", "7", *more)
        assert (status, errors_of(report)) == (1, [("NOT_CONFIRMED", None, None, None)])
        assert "the number of groups is 1, not 7" in report["problems"][0]["message"]
    assert (committed(servers, "billing"), results(journal)) == (before, [("reset", ApplyResult.APPLIED)])


def test_what_a_plan_means_is_summed_up(run: Run) -> None:
    notes = run("plan", "reset", "billing", "--topic", "orders", "--to-earliest")[1]["notes"]
    assert "11 records replayed, 0 skipped, counted in offsets" in notes
    assert any(
        note.startswith("1 partition without a committed offset before the change: a consumer") for note in notes
    )
    notes = run("plan", "delete-offsets", "billing", "--topic", "orders")[1]["notes"]
    afterwards = "2 partitions without a committed offset after the change: a consumer reads 25 records there with"
    assert any(note.startswith(afterwards) for note in notes)


def test_a_glob_is_the_topic(run: Run) -> None:
    for pattern in ("orders", "ord*", "ord*:0,1,2"):
        report = run("plan", "reset", "billing", "--topic", pattern, "--to-earliest")[1]
        assert [(row["topic"], row["partition"]) for row in report["changes"]] == [tuple(tp) for tp in ORDERS]


@pytest.mark.parametrize("has_file", [False, True])
def test_plans_pass_through_files_and_pipes(
    servers: str, run: Run, tmp_path: Path, has_file: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    offsets = tmp_path / "offsets.csv"
    offsets.write_text("orders,0,7\norders,1,9\n")
    path = str(tmp_path / "plan.json") if has_file else "-"
    words = ["plan", "reset", "billing", "--from-file", str(offsets), "--save", path, "--bootstrap-server", servers]
    assert main(words) == 0
    text = Path(path).read_text() if has_file else capsys.readouterr().out
    assert {
        tp: change.after.offset for tp, change in document.read(text).groups[0].changes.items() if change.after
    } == {ORDERS[0]: 7, ORDERS[1]: 9}
    assert "".join(document.write(document.read(text))) == text


def test_many_groups_are_committed_in_calls_with_a_time_limit_each(
    run: Run, servers: str, tmp_path: Path, journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorder, "_GROUPS_PER_CALL", 2)
    names = [f"one-of-many-{number}" for number in range(5)]
    path = str(tmp_path / "plan.json")
    assert run("plan", "reset", *names, "--topic", "orders:0", "--to-offset", "6", "--create", "--save", path)[0] == 0
    status, report, _ = run("apply", path, "--execute", "--create", "--confirm", "5")
    assert (status, [row["group"] for row in report["changes"]]) == (0, names)
    assert {committed(servers, name)[ORDERS[0]].offset for name in names} == {6}
    assert run("undo", "--execute", "--confirm", "5")[0] == 0
    assert [committed(servers, name) for name in names] == [{}] * 5


def test_lines_of_other_groups_are_named(run: Run, tmp_path: Path) -> None:
    offsets = tmp_path / "offsets.csv"
    offsets.write_text("billing,orders,0,7\n" + "".join(f"other-{number},orders,0,1\n" for number in range(7)))
    status, report, _ = run("plan", "reset", "billing", "--from-file", str(offsets))
    assert (status, [row["group"] for row in report["changes"]]) == (0, ["billing"])
    others = "other-0, other-1, other-2, other-3, other-4 and 2 more"
    assert f"{offsets}: lines of other groups are skipped: {others}" in report["notes"]


def test_official_commands_do_the_same(run: Run, servers: str, plan: str, capsys: pytest.CaptureFixture[str]) -> None:
    import shlex

    where = ["--bootstrap-server", servers]
    assert main(["apply", plan, "--show-command", *where]) == 0
    exact = capsys.readouterr().out
    assert main(["plan", "reset", "billing", "--topic", "orders", "--to-earliest", "--show-command", *where]) == 0
    short = capsys.readouterr().out
    assert short.count("\n") == 1
    for lines in (exact, short):
        for line in lines.splitlines():
            tool, *words = shlex.split(line)
            assert (tool, kafka_consumer_groups.main(words)) == ("kafka-consumer-groups", 0)
        assert [committed(servers, "billing")[tp].offset for tp in ORDERS] == [0, 5, 0]
        asyncio.run(put_back(STAGE, servers))
    capsys.readouterr()


def test_every_way_to_change_offsets_is_journalled(
    run: Run, servers: str, journal: Journal, capsys: pytest.CaptureFixture[str]
) -> None:
    billing, zeta = committed(servers, "billing"), committed(servers, "zeta")

    def drop_in(*words: str) -> None:
        assert kafka_consumer_groups.main(["--bootstrap-server", servers, *words]) == 0
        capsys.readouterr()

    drop_in("--reset-offsets", "--group", "billing", "--all-topics", "--to-latest", "--execute")
    drop_in("--reset-offsets", "--group", "billing", "--all-topics", "--to-latest")  # a dry run
    assert run("groups", "reset", "billing", "--all-topics", "--shift-by", "-1", "--execute")[0] == 0
    drop_in("--delete-offsets", "--group", "billing", "--topic", "orders")
    drop_in("--delete-offsets", "--group", "billing", "--topic", "orders")  # nothing goes
    drop_in("--delete", "--group", "zeta")
    assert run("groups", "delete-offsets", "billing", "--topic", "payments", "--execute")[0] == 0
    run("groups", "delete", "billing", "--execute")  # without any offset: nothing to bring back
    kinds = ["reset", "reset", "delete-offsets", "delete-groups", "delete-offsets"]
    assert results(journal) == [(kind, ApplyResult.APPLIED) for kind in kinds]
    assert run("undo", "--execute")[0] == 0
    # One of zeta's offsets was beyond the log: a plan never commits such a one.
    status, report, _ = run("undo", "--execute")
    assert (status, errors_of(report)) == (1, [("STALE_PLAN", "zeta", "a-topic-with-a-long-name", 0)])
    assert "--if-out-of-range clamp" in report["notes"][-1]
    status, report, _ = run("undo", "--if-out-of-range", "clamp")
    assert (status, [row["after"] for row in report["changes"]]) == (0, [3, 9])
    for _ in kinds[1:]:
        assert run("undo", "--execute", "--if-out-of-range", "exact")[0] == 0
    assert committed(servers, "zeta") == zeta
    # The drop-in drops metadata and epochs, and what it did is undone too.
    assert committed(servers, "billing") == billing


def test_where_nothing_is_left_to_take_back_there_is_nothing_to_confirm(run: Run, journal: Journal) -> None:
    assert run("groups", "delete-offsets", "zeta", "--topic", "a-topic-with-a-long-name", "--execute")[0] == 0
    status, report, _ = run("undo", "--execute", "--if-out-of-range", "skip", "--confirm", "1")
    said = "there was nothing to do; no earlier change is left to undo"
    assert (status, report["changes"], report["notes"][-1]) == (0, [], said)


def test_an_undo_counts_what_it_changes_and_takes_the_number_of_the_plan_too(run: Run, servers: str) -> None:
    before = {group_id: committed(servers, group_id)[ORDERS[0]].offset for group_id in ("billing", "zeta")}
    assert run(*"groups reset [bz]* --topic orders:0 --to-offset 0 --execute --confirm 2".split())[0] == 0
    commit(servers, "billing", {ORDERS[0]: before["billing"]})  # it is back already
    assert run("undo")[1]["notes"][1].startswith(f"0 records replayed, {before['zeta']} skipped")
    assert [run("undo", "--execute", "--confirm", number)[0] for number in "32"] == [1, 0]
    assert {group_id: committed(servers, group_id)[ORDERS[0]].offset for group_id in before} == before


def test_history(run: Run, plan: str, journal: Journal) -> None:
    assert run("history", asks=False)[1]["changes"] == []
    assert run("apply", plan, "--execute")[0] == 0
    status, report, _ = run("history", asks=False)
    (row,) = report["changes"]
    assert (status, row["kind"], row["groups"], row["partitions"], row["names"]) == (0, "reset", 1, 3, "billing")
    assert (row["result"], row["undone_by"]) == ("applied", None)
    assert row["command"].startswith(f"groupkeeper apply {plan} ")
    changes = run("history", row["id"], asks=False)[1]["changes"]
    found = [(one["partition"], one["before"], one["after"], one["error"]) for one in changes]
    assert found == [(0, 4, 0, None), (1, 12, 5, None), (2, None, 0, None)]
    assert run("history", "--group", "zeta", asks=False)[1]["changes"] == []
    assert len(run("history", "--group", "zeta", "--group", "bill*", asks=False)[1]["changes"]) == 1
    status, report, _ = run("history", "nope", asks=False)
    assert (status, report["problems"][0]["error"]) == (1, "NO_SUCH_CHANGE")


def test_a_change_that_was_interrupted_is_explained_and_can_be_undone(
    run: Run, servers: str, plan: str, journal: Journal
) -> None:
    assert run("apply", plan, "--execute")[0] == 0
    # As if the command had been killed after one of its commits: no outcome, the last line half written.
    lines = journal.path.read_bytes().splitlines(keepends=True)
    journal.path.write_bytes(lines[0] + lines[1][:20])
    asyncio.run(put_back(STAGE, servers))
    before = committed(servers, "billing")
    commit(servers, "billing", {ORDERS[0]: 0})
    (summary,), broken = journal.summaries()
    assert (summary.result, broken) == (ApplyResult.UNFINISHED, 1)
    notes = run("history", asks=False)[1]["notes"]
    assert any("no outcome is recorded" in note for note in notes)
    status, report, _ = run("undo", "--execute")
    assert (status, [row["result"] for row in report["changes"]]) == (0, ["applied", "already", "already"])
    assert committed(servers, "billing") == before
    assert [one.result for one in journal.summaries()[0]] == [ApplyResult.UNFINISHED, ApplyResult.APPLIED]


def test_without_a_journal(
    run: Run, servers: str, plan: str, journal: Journal, capsys: pytest.CaptureFixture[str]
) -> None:
    journal.path.parent.write_text("a file where the directory should be")
    before = committed(servers, "billing")
    status, report, _ = run("apply", plan, "--execute")
    assert (status, errors_of(report)) == (1, [("NOT_JOURNALLED", None, None, None)])
    assert committed(servers, "billing") == before
    status, report, _ = run("groups", "reset", "billing", "--topic", "orders:0", "--to-latest", "--execute")
    assert status == 0
    assert sum("not journalled" in note for note in report["notes"]) == 1
    # The drop-in says nothing of it.
    words = ["--bootstrap-server", servers, "--reset-offsets", "--group", "billing", "--topic", "orders:0"]
    assert kafka_consumer_groups.main([*words, "--to-offset", "4", "--execute"]) == 0
    output, errors = capsys.readouterr()
    assert (output.count("billing"), errors) == (1, "")
    assert run("apply", plan, "--execute", "--no-journal")[0] == 0


def test_turned_off(run: Run, plan: str, journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GROUPKEEPER_JOURNAL", "off")
    assert run("apply", plan, "--execute")[0] == 0
    assert not journal.path.exists()
    with pytest.raises(SystemExit):
        run("history", asks=False)


def test_a_plan_of_another_cluster_is_refused(run: Run, plan: str) -> None:
    with BackgroundBroker(properties=SETTINGS) as other:
        status = main(["apply", plan, "--bootstrap-server", other.bootstrap_servers, "--output", "json"])
    assert status == 1


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (lambda plan: plan.update(format="other"), "not a plan of groupkeeper"),
        (lambda plan: plan.update(version=2), "version 2"),
        (lambda plan: plan.update(extra=1), "the field extra"),
        (lambda plan: plan.pop("groups"), "no groups"),
        (lambda plan: plan.update(kind="wish"), 'kind is "wish"'),
        (lambda plan: plan["groups"].append(plan["groups"][0]), "group billing is listed twice"),
        (
            lambda plan: plan["groups"][0]["partitions"].append(plan["groups"][0]["partitions"][0]),
            "orders-0 is listed twice",
        ),
        (lambda plan: plan["groups"][0]["partitions"][0].update(after=5), "orders-0: after must be null or an object"),
        (lambda plan: plan["groups"][0]["partitions"][0].update(partition=-1), "partition is -1"),
        (lambda plan: plan["groups"][0]["partitions"][0]["before"].update(offset="4"), 'offset is "4"'),
        (lambda plan: plan["groups"][0]["partitions"][0]["before"].update(ofset=4), "the field ofset"),
        (lambda plan: plan["groups"][0]["partitions"][0].pop("why"), "orders-0 has no why"),
        (lambda plan: plan.update(made="today"), "made is"),
    ],
)
def test_plan_files_are_read_strictly(
    run: Run, plan: str, capsys: pytest.CaptureFixture[str], change: Callable[[Any], object], fault: str
) -> None:
    written = json.loads(Path(plan).read_text())
    change(written)
    Path(plan).write_text(json.dumps(written))
    with pytest.raises(SystemExit) as ended:
        run("apply", plan, "--execute")
    assert ended.value.code == 2
    assert fault in capsys.readouterr().err


def test_one_command_is_one_change(run: Run, journal: Journal, servers: str) -> None:
    before = {group_id: committed(servers, group_id) for group_id in ("billing", "zeta")}
    words = ["--topic", "orders:0", "--to-latest", "--execute"]
    assert run("groups", "reset", "billing", "zeta", *words)[0] == 0
    (summary,), _ = journal.summaries()
    assert (summary.groups, summary.result) == (("billing", "zeta"), ApplyResult.APPLIED)
    assert run("undo", "--execute", "--confirm", "2")[0] == 0
    assert {group_id: committed(servers, group_id) for group_id in before} == before
