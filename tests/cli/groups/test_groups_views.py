"""`groupkeeper groups list|offsets|members|delete` on the embedded broker: which rows, in which order."""

import asyncio
import csv
import io
import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from tests.acts import begin_transaction
from tests.cli.stages import BOTH, Live, Stage, put_back
from tests.unit.cli.framework.test_schemas import OF_OPTIONS
from tests.unit.client.scripted_broker import ScriptedBroker
from tests.unit.operations.test_lag import committed
from tools.cli_reference import leaves

from groupkeeper.cli.framework.commands import parser
from groupkeeper.cli.groups.schemas import GROUP_SUMS, GROUPS, MEMBERS, OFFSETS, STATES, TOPIC_SUMS, TOPOLOGY
from groupkeeper.cli.main import main
from groupkeeper.client.admin.types import OffsetAndMetadata
from groupkeeper.operations.selection import Names
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.messages.consumer_group_describe_response import DescribedGroup
from groupkeeper.protocol.messages.describe_groups_response import DescribedGroup as DescribedClassicGroup
from groupkeeper.protocol.messages.share_group_describe_response import DescribedGroup as DescribedShareGroup
from groupkeeper.protocol.messages.streams_group_describe_response import DescribedGroup as DescribedStreamsGroup

ODD = ["-x", "a*b", "two\nlines", "quo'te\"s", "東京", "", "x" * 300, "esc\x1b[31m", "odd[1]"]

STAGE = Stage(
    "views",
    BOTH.records,
    BOTH.starts,
    {
        **BOTH.commits,
        "behind": {("orders", 1): OffsetAndMetadata(2, 0, "note")},
        "caught-up": {("orders", 2): OffsetAndMetadata(0)},
        **{group_id: {("orders", 0): OffsetAndMetadata(1)} for group_id in ODD},
    },
    [*BOTH.live, Live("stale", "client-of-stale", ["orders"], {"gone": [0], "orders": [7, 0]})],
)
"""One group commits below a log's start; another has a member who is assigned what there is not."""

REPORTS = {
    "list": GROUPS,
    "describe": OFFSETS,
    "describe --view members": MEMBERS,
    "describe --view state": STATES,
    "describe --view topology": TOPOLOGY,
    "describe --sum group": GROUP_SUMS,
    "describe --sum topic": TOPIC_SUMS,
    "members": MEMBERS,
    "offsets": OFFSETS,
    "offsets --sum group": GROUP_SUMS,
    "offsets --sum topic": TOPIC_SUMS,
}
UNTOLD = {
    OFFSETS.report: {"done_ahead", "last_stable_offset"},
    STATES.report: {"group_epoch", "target_epoch", "dead_letter_queue", "dead_letters"},
    MEMBERS.report: {"instance_id", "epoch", "target_assignment", "rack_id", "upgraded"},
}
"""What the classic groups of STAGE do not have: tests/unit/operations/test_group_rows.py shows it."""
GIVEN = {"--min-lag": "1", "--status": "ok", **dict(option.split("=") for option in OF_OPTIONS if "=" in option)}
"""Values of options that take neither a name nor one of a few words."""
HOW = "(CONTRIBUTING.md, 'To add a column of a command')"

Run = Callable[..., tuple[int, Any]]


@pytest.fixture
def run(servers: str, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs a command with --output json: its status, and what it printed."""

    def call(*words: str) -> tuple[int, Any]:
        action, *rest = words
        status = main(["groups", action, "--bootstrap-server", servers, "--output", "json", *rest])
        return status, json.loads(capsys.readouterr().out)

    return call


def listed(run: Run, *words: str) -> list[str]:
    return [row["group"] for row in run("list", *words)[1]["groups"]]


def test_list_takes_names_globs_and_regular_expressions(run: Run) -> None:
    assert set(ODD) < set(listed(run))
    assert listed(run, "b*") == ["behind", "billing"]
    assert listed(run, "a[*]b", "zeta") == ["a*b", "zeta"]
    assert listed(run, "--regex", "b.*|z.*") == ["behind", "billing", "zeta"]
    assert listed(run, "--sort", "state", "--top", "1", "b*", "app") == ["behind"]
    assert listed(run, "--state", "stable", "*") == ["app", "stale"]


@pytest.mark.parametrize("group_id", [group_id for group_id in ODD if group_id])
def test_odd_groups_are_found_by_their_names(run: Run, group_id: str) -> None:
    name = Names([]).quoted(group_id)
    status, report = run("offsets", "--", name)
    assert (status, {row["group"] for row in report["offsets"]}) == (0, {group_id})
    assert run("members", "--", name)[0] == 0


@pytest.mark.parametrize("words", ["list", "describe", "describe --view state", "offsets --sum group"])
def test_the_status_of_groups_and_why(run: Run, words: str) -> None:
    command, *more = words.split()

    def told(*options: str) -> dict[str, tuple[str | None, str | None, str | None]]:
        status, report = run(command, "app", "behind", "zeta", "stale", *more, *options)
        key = {"list": "groups", "describe --view state": "groups", "describe": "offsets"}.get(words, "lag_by_group")
        assert status == 0
        return {row["group"]: (row["group_status"], row["reason"], row["not_judged"]) for row in report[key]}

    found = told("--with-status")
    assert found["behind"][:2] == ("losing", "orders-1: 3 records removed before the group read them")
    assert (found["stale"][0], found["app"][0]) == ("unknown", "lagging")
    assert (found["app"][1] or "").startswith("orders-0: the next record has waited for ")
    unseen = "since when the committed offset stands is not known"
    stalled = "stalled: whether the group commits the same offset is not known"
    assert found["app"][2] == f"{stalled}; stopped: {unseen}"
    assert set(told().values()) == {(None, None, None)}


def options_of(command: str) -> dict[str, Any]:
    """By name, those that another view of the report may lack."""
    [found] = [each for each in leaves(parser()) if each.prog == f"groupkeeper groups {command}"]
    return {each.option_strings[-1]: each for each in found._actions if each.option_strings}


def test_each_report_is_tried() -> None:
    names = [each.prog.split()[-1] for each in leaves(parser()) if each.prog.startswith("groupkeeper groups ")]
    reports = {name: options for name in names if "--sort" in (options := options_of(name))}
    views = {
        f"{name} {option} {choice}"
        for name, options in reports.items()
        for option in ("--view", "--sum")
        if option in options
        for choice in options[option].choices
        if choice != options[option].default
    }
    assert REPORTS.keys() == reports.keys() | views


@pytest.mark.parametrize("view", options_of("describe")["--view"].choices)
def test_a_view_refuses_the_options_of_others(capsys: pytest.CaptureFixture[str], view: str) -> None:
    own = options_of("offsets" if view == "offsets" else "members")
    schema = REPORTS["describe" if view == "offsets" else f"describe --view {view}"]
    for option, action in options_of("describe").items():
        filled = {name for each, names in OF_OPTIONS.items() if each.partition("=")[0] == option for name in names}
        if option == "--view" or option in own or filled & {column.name for column in schema.columns}:
            continue
        value = [] if action.nargs == 0 else [[*(action.choices or ())][-1] if action.choices else GIVEN[option]]
        server = ["--bootstrap-server", "127.0.0.1:1", "--timeout", "100ms"]
        with suppress(SystemExit):
            main(["groups", "describe", "g", "--view", view, option, *value, *server])
        said = capsys.readouterr().err
        assert f"argument {option}: not allowed with --view {view}" in said, "a view refuses what it takes no notice of"


@pytest.mark.parametrize("words", [each for each, schema in REPORTS.items() if schema is not TOPOLOGY])
def test_rows_have_the_columns_of_their_schema(
    run: Run, servers: str, capsys: pytest.CaptureFixture[str], words: str
) -> None:
    """In its order, as programs read them by place (CSV) and name; and what an option fills when it is asked."""
    schema = REPORTS[words]
    action, *more = words.split()
    names = [column.name for column in schema.columns]

    def rows(*options: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = run(action, "*", *more, *options)[1][schema.kind]
        return found

    def in_table(*options: str) -> set[str]:
        main(["groups", action, "*", *more, *options, "--bootstrap-server", servers])
        return set(capsys.readouterr().out.partition("\n")[0].lower().replace("-", "_").split())

    unasked = rows()
    assert list(unasked[0]) == names, (
        f'group_rows.py gives a row its columns in the order of schemas.py, behind "cluster": None, too {HOW}'
    )
    told = {name for row in unasked for name, value in row.items() if value is not None}
    for option, filled in OF_OPTIONS.items():
        columns = [each.name for each in schema.columns if each.name in filled and not each.in_table]
        asked, plain, wide = (rows(option), in_table(), in_table(option)) if columns else ([], set(), set())
        for name in columns:
            assert all(row[name] is None for row in unasked), f"{name} is not None without {option} {HOW}"
            assert any(row[name] is not None for row in asked), (
                f"{option} fills {name} in no row {HOW}, or STAGE has nothing that it could tell"
            )
            assert name not in plain, f"tables show {name} without {option}: in_table=False in schemas.py"
            assert name in wide, f"tables lack {name} with {option}: with_columns of the command"
        told.update(columns)
    assert set(names) - told == UNTOLD.get(schema.report, set()), (
        f"no row has a value of a column {HOW}, or STAGE has nothing to show in it: then it is in UNTOLD"
    )


def test_a_group_without_a_name_is_one_like_others(run: Run) -> None:
    status, report = run("offsets", "")
    assert (status, [(row["group"], row["lag"]) for row in report["offsets"]]) == (0, [("", 9), ("", None)])
    assert run("describe", "", "--view", "state")[0] == run("members", "")[0] == 0
    assert run("delete", "")[1]["deleted"] == [{"group": "", "offsets": 1, "result": "would be deleted"}]


def test_a_group_that_there_is_not_is_told_from_its_neighbour(run: Run) -> None:
    for action in ("list", "offsets", "members", "describe"):
        status, report = run(action, "billng")
        [problem] = report["problems"]
        assert (status, problem["error"]) == (1, "GROUP_ID_NOT_FOUND")
        assert problem["message"] == "Group billng not found; did you mean 'billing'?"


def test_a_pattern_without_a_match_is_no_failure(run: Run) -> None:
    for action in ("list", "offsets", "members", "delete"):
        status, report = run(action, "nothing-*")
        assert (status, report["notes"]) == (0, ["no group matches 'nothing-*'"])


def test_a_pattern_that_is_the_name_of_a_group_means_that_group(run: Run) -> None:
    note = "'odd[1]' is the name of a group, and only that group is meant; --regex makes it a pattern"
    for action in ("list", "offsets", "members", "delete"):
        assert note in run(action, "odd[1]")[1]["notes"]
    assert listed(run, "odd[1]") == listed(run, "odd[[]1]") == ["odd[1]"]
    assert listed(run, "odd[1]", "--state", "Stable") == []


def offsets(report: Any) -> list[tuple[Any, ...]]:
    keys = ("group", "topic", "partition", "lag", "lost", "status")
    return [tuple(row[key] for key in keys) for row in report["offsets"]]


def test_offsets_say_what_they_mean(run: Run) -> None:
    status, report = run("offsets", "app", "behind", "stale", "zeta")
    assert status == 0
    assert offsets(report) == [
        ("app", "orders", 0, 6, 0, "ok"),
        ("app", "orders", 1, None, None, "uncommitted"),
        ("app", "orders", 2, 0, 0, "ok"),
        ("behind", "orders", 1, 18, 3, "below_log_start"),
        ("stale", "gone", 0, None, None, "deleted"),
        ("stale", "orders", 0, None, None, "uncommitted"),
        ("stale", "orders", 7, None, None, "deleted"),
        ("zeta", "a-topic-with-a-long-name", 0, 0, 0, "beyond_log_end"),
        ("zeta", "orders", 0, 1, 0, "ok"),
        ("zeta", "orders", 1, None, None, "uncommitted"),  # it has records, and perhaps was added since
    ]
    row = report["offsets"][3]
    assert (row["committed_offset"], row["log_start_offset"], row["log_end_offset"]) == (2, 5, 20)
    assert (row["leader_epoch"], row["metadata"], row["last_stable_offset"]) == (0, "note", None)
    assert "topic gone, or some of its partitions, no longer exists" in report["notes"]


def test_topics_can_be_chosen(run: Run) -> None:
    assert [row["topic"] for row in run("offsets", "billing", "--topic", "pay*")[1]["offsets"]] == ["payments"]
    assert len(run("offsets", "billing", "--topic", "payments", "--topic", "orders")[1]["offsets"]) == 3
    assert [row["group"] for row in run("members", "*", "--topic", "gone")[1]["members"]] == ["stale"]
    status, report = run("offsets", "billing", "--topic", "order")
    [problem] = report["problems"]
    assert (status, problem["topic"], "did you mean 'orders'?" in problem["message"]) == (1, "order", True)


def test_sums(run: Run) -> None:
    rows = run("offsets", "app", "billing", "stale", "--sum", "group")[1]["lag_by_group"]
    keys = ("group", "partitions", "uncommitted_partitions", "unknown", "lag", "max_lag", "lost")
    found = [tuple(row[key] for key in keys) for row in rows]
    assert found == [("app", 3, 1, 0, 6, 6, 0), ("billing", 3, 0, 0, 14, 8, 0), ("stale", 3, 3, 0, None, None, None)]
    alone = [row for row in run("offsets", "app")[1]["offsets"] if row["status"] == "uncommitted"]
    backlog = sum(row["log_end_offset"] - row["log_start_offset"] for row in alone)
    assert [row["uncommitted"] for row in rows[:2]] == [backlog, 0]
    assert backlog > 0
    rows = run("describe", "billing", "--sum", "topic", "--sort", "lag")[1]["lag_by_topic"]
    assert [(row["topic"], row["lag"]) for row in rows] == [("orders", 14), ("payments", 0)]


def test_the_greatest_lag_comes_first_and_none_last(run: Run) -> None:
    rows = offsets(run("offsets", "app", "b*", "--sort", "lag")[1])
    assert [row[3] for row in rows] == [18, 8, 6, 6, 0, 0, None]
    assert offsets(run("offsets", "app", "b*", "--sort", "lag", "--top", "2")[1]) == rows[:2]
    assert [row[0] for row in offsets(run("offsets", "app", "b*", "--top", "2")[1])] == ["app", "app"]


def test_members_can_be_sorted(run: Run) -> None:
    rows = run("members", "app", "stale", "--sort", "partitions")[1]["members"]
    assert [(row["group"], row["partitions"]) for row in rows] == [("stale", 3), ("app", 2)]


def test_csv_has_the_same_columns_and_rows(
    run: Run, servers: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    for words in (["list"], ["offsets", "*"], ["members", "*"], ["describe", "*", "--view", "state"]):
        report = run(*words)[1]
        rows = next(value for key, value in report.items() if key not in ("schema", "notes", "problems"))
        main(["groups", *words, "--bootstrap-server", servers, "--output", "csv"])
        found = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
        assert [list(row) for row in found] == [list(row) for row in rows]
        assert [row["group"] for row in found] == [row["group"] for row in rows]


# What is deleted by a pattern is shown first.
def test_delete_by_a_pattern_is_a_rehearsal(run: Run, servers: str, tmp_path: Path) -> None:
    try:
        status, report = run("delete", "b*")
        assert (status, report["executed"]) == (0, False)
        assert [row["group"] for row in report["deleted"]] == ["behind", "billing"]
        assert report["notes"] == ["nothing is changed yet: add --execute --confirm 2"]
        assert listed(run, "b*") == ["behind", "billing"]
        status, report = run("delete", "b*", "app", "--execute", "--confirm", "2")
        assert (status, report["executed"], len(report["deleted"])) == (1, True, 2)
        assert [(each["group"], each["error"]) for each in report["problems"]] == [("app", "NON_EMPTY_GROUP")]
        assert listed(run, "b*") == []
        assert run("delete", "zeta", "--execute")[1]["executed"] is True
    finally:
        asyncio.run(put_back(STAGE, servers))


@pytest.fixture
def transaction(servers: str) -> Iterator[None]:
    """Two records at the end of a log, of a transaction that is open."""
    producer = begin_transaction(servers, "open", "payments", [b""] * 2, 1)
    yield
    producer.abort_transaction(20)


# What waits for a transaction is behind the end, and not behind the last stable offset.
def test_lag_up_to_the_last_stable_offset(run: Run, transaction: None) -> None:
    rows = run("offsets", "billing", "--lag-to", "lso")[1]["offsets"]
    found = [(row["log_end_offset"], row["last_stable_offset"], row["lag"]) for row in rows]
    assert found == [(10, 10, 6), (20, 20, 8), (7, 5, 0)]
    rows = run("offsets", "billing", "--lag-to", "end")[1]["offsets"]
    assert [(row["last_stable_offset"], row["lag"]) for row in rows] == [(None, 6), (None, 8), (None, 2)]


@pytest.mark.parametrize(("typed", "status"), [("go*", 0), ("gone", 1)])
async def test_a_group_that_goes_away_meanwhile_is_a_problem_if_it_was_named(
    typed: str, status: int, capsys: pytest.CaptureFixture[str]
) -> None:
    listed_groups = [m.ListedGroup("gone", "consumer", "Empty", "Classic")]
    handlers = {
        "ListGroups": lambda *_: m.ListGroupsResponse(groups=listed_groups),
        "ConsumerGroupDescribe": lambda *_: m.ConsumerGroupDescribeResponse(groups=[DescribedGroup(69, None, "gone")]),
        "DescribeGroups": lambda *_: m.DescribeGroupsResponse(groups=[DescribedClassicGroup(69, "no", "gone")]),
        "ShareGroupDescribe": lambda *_: m.ShareGroupDescribeResponse(groups=[DescribedShareGroup(69, None, "gone")]),
        "StreamsGroupDescribe": lambda *_: m.StreamsGroupDescribeResponse(
            groups=[DescribedStreamsGroup(69, None, "gone")]
        ),
        "OffsetFetch": committed({}),
    }
    async with ScriptedBroker(handlers=handlers) as broker:
        for action in ("offsets", "members"):
            words = ["groups", action, typed, "--bootstrap-server", broker.bootstrap_servers, "--output", "json"]
            assert await asyncio.to_thread(main, words) == status
            problems = json.loads(capsys.readouterr().out)["problems"]
            assert [each["error"] for each in problems] == ["GROUP_ID_NOT_FOUND"] * status
