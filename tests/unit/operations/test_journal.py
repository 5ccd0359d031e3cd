"""The journal: what is written is read, nothing is lost by crashes or by several writers, and no secret is kept."""

import json
import multiprocessing
import resource
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from groupkeeper.client.admin.types import Batch, OffsetAndMetadata, TopicPartition
from groupkeeper.client.errors import CallTimedOut
from groupkeeper.operations.plans.changes import ApplyResult, Head, Lost, Pair
from groupkeeper.operations.plans.journal import Journal, JournalUnreadable, JournalUnwritable, default_path
from groupkeeper.operations.plans.model import Change, GroupPlan, Plan
from groupkeeper.operations.plans.recorder import Recorder, judged, without_secrets
from groupkeeper.operations.selection import Names
from groupkeeper.protocol.errors import RequestTimedOut, UnknownMemberId

HEAD = Head(
    "20261121T093416-4f2a", 1_700_000_000_123, "cluster", "reset", "anna", "desk", ("groupkeeper", "apply", "p"),
    principal="User:anna",
)  # fmt: skip
PLACE = TopicPartition("orders", 0)
PAIRS: dict[TopicPartition, Pair] = {
    PLACE: (OffsetAndMetadata(5, 3, "note ☃"), OffsetAndMetadata(0)),
    TopicPartition("orders", 1): (None, OffsetAndMetadata(7)),
    TopicPartition("orders", 2): (OffsetAndMetadata(1), None),
}


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal(tmp_path / "deep" / "journal.jsonl")


def test_each_line_tells_everything(journal: Journal) -> None:
    journal.begin(HEAD, [("g", PAIRS)])
    (line,) = map(json.loads, journal.path.read_text().splitlines())
    assert (line["cluster_id"], line["group"], line["user"], line["host"]) == ("cluster", "g", "anna", "desk")
    assert (line["time"], line["command"]) == ("2023-11-14T22:13:20.123Z", ["groupkeeper", "apply", "p"])
    assert line["offsets"][0] == ["orders", 0, [5, 3, "note ☃"], [0, None, ""]]


def test_only_the_owner_may_read_it(journal: Journal) -> None:
    journal.begin(HEAD, [("g", PAIRS)])
    assert stat.S_IMODE(journal.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(journal.path.parent.stat().st_mode) == 0o700


def test_no_journal_is_an_empty_one(journal: Journal) -> None:
    assert journal.summaries() == ([], 0)
    assert journal.load("x") is None


@pytest.mark.parametrize("kept", [1, 40, -2, -1])
def test_a_writer_killed_within_a_line_spoils_only_that_line(journal: Journal, kept: int) -> None:
    journal.begin(HEAD, [("g", PAIRS)])
    whole = journal.path.read_bytes()
    journal.path.write_bytes(whole + whole[:kept])
    other = HEAD._replace(id="later")
    journal.begin(other, [("h", PAIRS)])
    journal.end("later", 5, 1, ApplyResult.APPLIED)
    summaries, broken = journal.summaries()
    found = [(one.head.id, one.result) for one in summaries]
    assert found == [(HEAD.id, ApplyResult.UNFINISHED), ("later", ApplyResult.APPLIED)]
    assert broken == (0 if kept == -1 else 1)


ODD: dict[str, dict[str, object]] = {
    "an id that is no text": {"id": ["x"]},
    "an id that is a number": {"id": 5},
    "a time that is none": {"time": "today"},
    "a time that is a number": {"time": 5},
    "a command that is none": {"command": 5},
    "a command of numbers": {"command": [5]},
    "a group that is no text": {"group": {}},
    "offsets that are none": {"offsets": 5},
    "offsets by name": {"offsets": {"orders": 5}},
    "an offset too few": {"offsets": [["orders", 0, None]]},
    "a commit that is a number": {"offsets": [["orders", 0, 5, None]]},
    "a commit too long": {"offsets": [["orders", 0, [5, 0, "", 1], None]]},
    "a commit of texts": {"offsets": [["orders", 0, ["5", 0, ""], None]]},
    "a partition that is a text": {"offsets": [["orders", "0", None, None]]},
    "undoes a number": {"undoes": 5},
    "another event": {"event": ["change"]},
    "groups that are none": {"event": "outcome", "groups": "1", "result": "applied", "lost": []},
    "a result of a later version": {"event": "outcome", "groups": 1, "result": "postponed", "lost": []},
    "lost without its fields": {"event": "outcome", "groups": 1, "result": "applied", "lost": [{"group_id": "g"}]},
    "lost that is a text": {"event": "outcome", "groups": 1, "result": "applied", "lost": ["g"]},
}


@pytest.mark.parametrize("odd", ODD.values(), ids=ODD)
def test_an_odd_line_is_counted_and_spoils_no_other(journal: Journal, odd: dict[str, object]) -> None:
    journal.begin(HEAD, [("g", PAIRS)])
    line = json.loads(journal.path.read_text())
    with journal.path.open("a") as file:
        file.write(json.dumps({**line, **odd}) + "\n")
    journal.end(HEAD.id, 5, 1, ApplyResult.APPLIED)
    (summary,), broken = journal.summaries()
    assert (summary.head, len(summary.groups), summary.result, broken) == (HEAD, 1, ApplyResult.APPLIED, 1)
    recorded = journal.load(HEAD.id)
    assert recorded is not None
    assert recorded.groups == {"g": PAIRS}
    # Unless the id itself is odd, a part of this change may be missing: it is counted.
    assert recorded.broken == (0 if "id" in odd else 1)


OTHERS = ['{"v": 2, "event": "change"}', '{"v": 1, "event": "outcome", "id": "x"}', "not JSON", "[]"]
"""Of later versions, and of others."""


@pytest.mark.parametrize("text", [*OTHERS, "[" * 100_000, '{"v": 1', "\udc80", '"v"', "5", "null", "{}"])
def test_what_is_no_line_of_a_journal_is_counted(journal: Journal, text: str) -> None:
    journal.begin(HEAD, [("g", PAIRS)])
    with journal.path.open("ab") as file:
        file.write(text.encode(errors="surrogateescape") + b"\n")
    (summary,), broken = journal.summaries()
    assert (summary.head, broken) == (HEAD, 1)


def test_fields_of_later_versions_are_passed_over(journal: Journal) -> None:
    lost = Lost("g", "orders", 0, "UNKNOWN_MEMBER_ID", "no")
    journal.begin(HEAD, [("g", PAIRS)])
    journal.end(HEAD.id, 5, 1, ApplyResult.PARTLY, [lost])
    change, outcome = map(json.loads, journal.path.read_text().splitlines())
    outcome["lost"][0]["since"] = 5
    journal.path.write_text("".join(json.dumps({**line, "more": 1}) + "\n" for line in (change, outcome)))
    recorded = journal.load(HEAD.id)
    assert recorded is not None
    assert (recorded.groups, recorded.lost, recorded.broken) == ({"g": PAIRS}, (lost,), 0)


def test_changes_of_one_group(journal: Journal) -> None:
    journal.begin(HEAD, [("g", PAIRS), ("h", PAIRS)])
    journal.begin(HEAD._replace(id="other"), [("h", PAIRS)])
    assert [one.head.id for one in journal.summaries(Names(["g"]))[0]] == [HEAD.id]
    assert len(journal.summaries(Names(["h"]))[0]) == 2
    assert len(journal.summaries(Names(["g*", "[h]"]))[0]) == 2
    assert journal.summaries(Names(["i"]))[0] == []


def _write(path: str, name: str, count: int) -> None:
    journal = Journal(Path(path))
    for number in range(count):
        head = HEAD._replace(id=f"{name}-{number}")
        journal.begin(head, [(f"group-{group}", PAIRS) for group in range(50)])
        journal.end(head.id, 5, 50, ApplyResult.APPLIED)


@pytest.mark.slow
def test_several_writers_at_once(journal: Journal) -> None:
    spawn = multiprocessing.get_context("spawn")
    writers = [spawn.Process(target=_write, args=(str(journal.path), name, 20)) for name in "abc"]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(50)
        assert writer.exitcode == 0
    summaries, broken = journal.summaries()
    assert (len(summaries), broken) == (60, 0)
    assert {(len(one.groups), one.result) for one in summaries} == {(50, ApplyResult.APPLIED)}


# A program that writes what it is about to do, says so, and is killed before it has done it.
CRASH = """
import sys, time
from pathlib import Path
from tests.unit.operations.test_journal import HEAD, PAIRS, Journal
Journal(Path(sys.argv[1])).begin(HEAD, [("g", PAIRS)])
print("written", flush=True)
time.sleep(60)
"""


@pytest.mark.slow
def test_what_was_written_survives_a_kill(journal: Journal) -> None:
    root = Path(__file__).resolve().parents[3]
    child = subprocess.Popen([sys.executable, "-c", CRASH, str(journal.path)], stdout=subprocess.PIPE, cwd=root)
    assert child.stdout is not None
    with child.stdout:
        assert child.stdout.readline() == b"written\n"
        child.kill()
        child.wait()
    recorded = journal.load(HEAD.id)
    assert recorded is not None
    assert (recorded.result, recorded.groups) == (ApplyResult.UNFINISHED, {"g": PAIRS})


def test_what_cannot_be_written_or_read_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(JournalUnwritable, match="file/journal"):
        Journal(tmp_path / "file" / "journal").begin(HEAD, [("g", PAIRS)])
    with pytest.raises(JournalUnreadable, match=str(tmp_path)):
        Journal(tmp_path).summaries()


def test_a_disk_that_is_full_leaves_no_part_of_a_change(journal: Journal) -> None:
    journal.begin(HEAD, [("g", PAIRS)])
    before = journal.path.read_bytes()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 5000, limits[1]))
    try:
        with pytest.raises(JournalUnwritable, match="too large"):
            journal.begin(HEAD._replace(id="later"), ((f"group-{number}", PAIRS) for number in range(2000)))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert journal.path.read_bytes() == before


def test_offsets_that_stay_as_they_are_move_nothing(journal: Journal) -> None:
    journal.begin(HEAD, [("g", {PLACE: (OffsetAndMetadata(5), OffsetAndMetadata(5))})])
    journal.begin(HEAD._replace(id="later"), [("g", PAIRS)])
    assert [one.moves for one in journal.summaries()[0]] == [False, True]


def test_an_answer_that_never_came_is_not_a_refusal() -> None:
    assert judged(Batch({}, {"g": CallTimedOut("late")}))[0] is ApplyResult.PARTLY
    assert judged(Batch({"g": Batch({}, {PLACE: RequestTimedOut()})}))[0] is ApplyResult.PARTLY


def test_a_recorder_goes_on_without_a_journal_or_stops(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    nowhere = Journal(tmp_path / "file" / "journal")
    plan = Plan("cluster", (GroupPlan("g", {PLACE: Change(None, OffsetAndMetadata(1))}),))
    told: list[str] = []
    lenient = Recorder(nowhere, ["tool"], told.append)
    assert (lenient.begin(plan, "User:alice"), lenient.begin(plan, ""), len(told)) == (None, None, 1)
    lenient.end(None, ApplyResult.APPLIED)
    strict = Recorder(nowhere, ["tool"], None)
    with pytest.raises(JournalUnwritable):
        strict.begin(plan, "User:alice")
    assert strict.id == ""  # nothing was done


def test_an_outcome_that_cannot_be_written_is_no_failure_of_the_change(journal: Journal) -> None:
    plan = Plan("cluster", (GroupPlan("g", {PLACE: Change(None, OffsetAndMetadata(1))}),))
    recorder = Recorder(journal, ["tool"], None)
    begun = recorder.begin(plan, "User:alice")
    journal.path.unlink()
    journal.path.mkdir()
    recorder.end(begun, ApplyResult.APPLIED)
    assert str(journal.path) in recorder.failure


def test_how_outcomes_are_judged() -> None:
    failure = UnknownMemberId()
    done, refused = Batch[TopicPartition, None]({PLACE: None}), Batch[TopicPartition, None]({}, {PLACE: failure})
    assert judged(Batch({"g": done})) == (ApplyResult.APPLIED, [])
    assert judged(Batch({"g": done, "h": refused}))[0] is ApplyResult.PARTLY
    assert judged(Batch({"deleted": Batch()}, {"h": failure}))[0] is ApplyResult.PARTLY
    result, lost = judged(Batch({"g": refused}, {"h": failure}))
    assert result is ApplyResult.REFUSED
    found = [(one.group_id, one.topic, one.error) for one in lost]
    assert found == [("h", None, "UNKNOWN_MEMBER_ID"), ("g", "orders", "UNKNOWN_MEMBER_ID")]


@pytest.mark.parametrize(
    ("words", "kept"),
    [
        (["--group", "g", "--command-config", "my.properties"], ["--group", "g", "--command-config", "my.properties"]),
        (["--password", "hush", "--group", "g"], ["--password", "***", "--group", "g"]),
        (["--password=hush"], ["--password=***"]),
        (["--property", "sasl.jaas.config=x y z"], ["--property", "sasl.jaas.config=***"]),
        (["--property=ssl.keystore.password=hush"], ["--property=***"]),
        (["ssl.key.password=hush=hush"], ["ssl.key.password=***"]),
        (["--secret", "--group", "g"], ["--secret", "--group", "g"]),
        (["--topic", "a=b"], ["--topic", "a=b"]),
    ],
)
def test_secrets_are_not_kept(words: list[str], kept: list[str]) -> None:
    assert list(without_secrets(words)) == kept


def test_where_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "/state")
    monkeypatch.setattr(sys, "platform", "linux")
    assert default_path() == Path("/state/groupkeeper/journal.jsonl")
    for ignored in ("", "relative"):
        monkeypatch.setenv("XDG_STATE_HOME", ignored)
        assert default_path() == Path.home() / ".local/state/groupkeeper/journal.jsonl"
    monkeypatch.setattr(sys, "platform", "darwin")
    assert default_path() == Path.home() / "Library/Application Support/groupkeeper/journal.jsonl"


def test_a_user_without_a_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.delenv("HOME")
    monkeypatch.setattr("pwd.getpwuid", _no_such_user)
    nowhere = Journal(default_path())
    with pytest.raises(JournalUnwritable, match="no home directory"):
        nowhere.begin(HEAD, [("g", PAIRS)])
    with pytest.raises(JournalUnreadable, match="no home directory"):
        nowhere.summaries()


def _no_such_user(uid: int) -> None:
    raise KeyError(uid)
