"""A journal in a topic: what is written is read from elsewhere, undone once, and nothing is changed without it."""

import asyncio
import json
import socket
import time
from pathlib import Path
from typing import Any

import pytest
from tests.acts import ask
from tests.team_journal import JOURNAL_ACLS, Login, Scene, as_user, check_two_machines, check_two_users

from groupkeeper.cli.dropin import kafka_consumer_groups
from groupkeeper.cli.framework.journals import journal_in
from groupkeeper.cli.main import main
from groupkeeper.client.admin import Admin
from groupkeeper.client.admin.producer import produce
from groupkeeper.client.admin.types import NewTopic, OffsetAndMetadata, TopicPartition
from groupkeeper.operations.plans.changes import NOWHERE, ApplyResult, Head, KnownChanges, Pair
from groupkeeper.operations.plans.journal import BeingUndone, JournalUnreadable, JournalUnwritable
from groupkeeper.operations.plans.model import Change, GroupPlan, Kind, Plan
from groupkeeper.operations.plans.recorder import Recorder, commit
from groupkeeper.operations.plans.topic_journal import CLAIM_MS, TopicJournal
from groupkeeper.pipeline.present.changes import read_changes
from groupkeeper.protocol.record import Record
from groupkeeper.protocol.record_batch import write_batch
from groupkeeper.testing.background import BackgroundBroker

BROKER: dict[str, Any] = {}
NOW_MS = time.time_ns() // 10**6
PLACE = TopicPartition("orders", 0)
PAIRS: dict[TopicPartition, Pair] = {PLACE: (OffsetAndMetadata(5, 3, "note ☃"), OffsetAndMetadata(0))}


@pytest.fixture
def journal(servers: str, request: pytest.FixtureRequest) -> TopicJournal:
    return journal_in(f"kafka://{servers}/{request.node.name}")


def head(change_id: str, *, undoes: str | None = None, user: str = "anna", time_ms: int = NOW_MS) -> Head:
    return Head(change_id, time_ms, "cluster", "undo" if undoes else "reset", user, "desk", ("groupkeeper",), undoes)


def put(servers: str, topic: str, key: str, value: bytes) -> None:
    batch = write_batch([Record(key.encode(), value, (), NOW_MS)])
    ask(servers, lambda admin: produce(admin._cluster, TopicPartition(topic, 0), batch))


def test_one_machine_is_killed_and_the_other_takes_the_change_back(
    servers: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    scene = Scene(Login(servers))
    asyncio.run(scene.set_up())
    check_two_machines(scene, scene.root, scene.root, 1, tmp_path, monkeypatch, capsys)


def test_two_users_with_the_acls_that_are_documented(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    names = ["anna", "bob", *(one.lower() for one in JOURNAL_ACLS)]
    users = {name: f"{name}-secret" for name in ("root", *names)}
    authorizer = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
    settings = {"super.users": "User:root", "authorizer.class.name": authorizer}
    with BackgroundBroker(users=users, properties=settings) as broker:
        logins = {name: as_user(broker.bootstrap_servers, name) for name in users}
        check_two_users(logins.pop("root"), logins, tmp_path, monkeypatch, capsys)


def test_what_is_written_is_read(servers: str, journal: TopicJournal) -> None:
    assert (journal.summaries(), journal.load("x")) == (([], 0), None)
    many = {TopicPartition(f"orders-{number:06}", 0): pair for number in range(30_000) for pair in PAIRS.values()}
    journal.begin(head("one"), [("g", PAIRS), ("large", many)])
    journal.end("one", NOW_MS, 2, ApplyResult.APPLIED)
    recorded = journal.load("one")
    assert recorded is not None
    assert (recorded.head, recorded.groups) == (head("one"), {"g": PAIRS, "large": many})
    (summary,), broken = journal.summaries()
    assert (summary.result, summary.partition_count, broken) == (ApplyResult.APPLIED, 30_001, 0)
    rows, notes = read_changes([journal], {"prod": "cluster"})
    assert (len(rows), notes) == (30_001, [])


def test_a_text_counts_once_and_as_a_whole(servers: str, journal: TopicJournal) -> None:
    """A writer was killed between two records; another one sent a record again, as its answer was lost."""
    topic = journal.name.rpartition("/")[2]
    journal.begin(head("one"), [("g", PAIRS)])
    texts: list[bytes] = []
    journal._visit(lambda text, span=NOWHERE: texts.append(text))
    (text,) = texts
    other = text.replace(b'"one"', b'"two"')
    put(servers, topic, "two/t/0/2", other[:9])
    assert [one.head.id for one in journal.summaries()[0]] == ["one"]
    for _ in range(2):
        put(servers, topic, "two/t/1/2", other[9:])
    put(servers, topic, "no key of a journal", b"?")
    assert [(one.head.id, one.groups) for one in journal.summaries()[0]] == [("one", ("g",)), ("two", ("g",))]


def test_two_who_undo_the_same_change_are_told(journal: TopicJournal) -> None:
    journal.begin(head("undo-1", undoes="change"), [("g", PAIRS)])
    journal.begin(head("undo-2", undoes="another"), [("g", PAIRS)])
    journal.begin(head("undo-g2", undoes="change"), [("g2", PAIRS)])  # the rest of the same change
    with pytest.raises(BeingUndone, match=r"is being undone by anna on desk since .* \(undo-1\)"):
        journal.begin(head("undo-3", undoes="change", user="bob"), [("g", PAIRS)])
    results = {one.head.id: one.result for one in journal.summaries()[0]}
    assert results["undo-3"] is ApplyResult.REFUSED
    with pytest.raises(BeingUndone):  # the clocks of machines do not count
        journal.begin(head("undo-4", undoes="change", time_ms=NOW_MS + CLAIM_MS), [("g", PAIRS)])
    journal.end("undo-1", NOW_MS, 1, ApplyResult.PARTLY)  # the same command may be run again
    journal.begin(head("undo-5", undoes="change"), [("g", PAIRS)])
    journal.end("undo-5", NOW_MS, 1, ApplyResult.APPLIED)
    with pytest.raises(BeingUndone, match=r"change was undone by anna on desk at .* \(undo-5\)$"):
        journal.begin(head("undo-6", undoes="change"), [("g", PAIRS)])


def test_an_undo_that_was_killed_keeps_others_off_for_a_time_and_a_long_one_as_long_as_it_takes(
    servers: str, journal: TopicJournal
) -> None:
    claim_ms = 2000
    mine, other = (TopicJournal(journal.name, lambda: Admin(servers), claim_ms) for _ in range(2))
    change = Change(*PAIRS[PLACE])
    plan = Plan("cluster", (GroupPlan("g", {PLACE: change}),), Kind.UNDO, undoes="change")
    refused = 0

    def undo(number: int) -> bool:
        time.sleep(0.02)
        try:
            other.begin(head(f"other-{number}", undoes="change"), [("g", PAIRS)])
        except BeingUndone:
            return False
        return True

    class Slow(Admin):
        async def alter_offsets_of_groups(self, *_: Any, **__: Any) -> Any:
            nonlocal refused
            since_s = time.monotonic()
            while time.monotonic() - since_s < 2 * claim_ms / 1000:
                assert not await asyncio.to_thread(undo, refused)
                refused += 1
            raise asyncio.CancelledError  # killed: no outcome is written

    async def run() -> None:
        async with Slow(servers) as admin:
            await commit(admin, plan, Recorder(mine, (), None))

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(run())
    assert refused > 0
    killed_s = time.monotonic()
    attempt = refused
    while not undo(attempt):
        attempt += 1
        assert time.monotonic() - killed_s < 30
    assert time.monotonic() - killed_s > claim_ms / 1000 / 2


def test_what_is_new_is_read_with_one_connection(servers: str, journal: TopicJournal) -> None:
    opened = 0

    def open_admin() -> Admin:
        nonlocal opened
        opened += 1
        return Admin(servers)

    async def follow() -> None:
        followed, known = TopicJournal(journal.name, open_admin), KnownChanges(2, 3)
        assert not await followed.catch_up(known)
        for change_id, names in {"one": ["a"], "two": ["a", "b"], "three": ["c"]}.items():
            await asyncio.to_thread(journal.begin, head(change_id), [(name, PAIRS) for name in names])
        assert await followed.catch_up(known)
        assert not await followed.catch_up(known)
        await asyncio.to_thread(journal.end, "three", NOW_MS, 1, ApplyResult.APPLIED)
        assert await followed.catch_up(known)
        found = [(each.head.id, each.result) for each in known.summaries()]
        assert (found, known.left_out) == ([("two", ApplyResult.UNFINISHED), ("three", ApplyResult.APPLIED)], 1)
        for change_id in ("one", "three"):  # also one that is left out
            recorded = await followed.loaded(change_id, known)
            assert recorded is not None
            assert list(recorded.groups.values()) == [PAIRS]
        await asyncio.to_thread(journal.begin, head("four"), [(name, PAIRS) for name in "abcdef"])
        await followed.catch_up(known)
        assert [each.head.id for each in known.summaries()] == ["four"]  # the latest one is always kept
        assert opened == 1
        async with Admin(servers) as admin:
            (await admin.delete_topics([journal.name.rpartition("/")[2]])).all()
        await asyncio.to_thread(journal.begin, head("new"), [("a", PAIRS)])
        await followed.catch_up(known)
        assert [each.head.id for each in known.summaries()] == ["new"]
        await followed.close()

    asyncio.run(follow())


@pytest.mark.parametrize(
    ("topic", "why"),
    [(NewTopic("two", 2, 1, configs={"cleanup.policy": "compact"}), "2 partitions; a journal has one"),
     (NewTopic("short", 1, 1), "cleanup.policy=delete, and would lose changes: kafka-configs --alter "),
     (NewTopic("clocks", 1, 1, configs={"cleanup.policy": "compact"}), "message.timestamp.type=CreateTime, and ")],
    ids=["partitions", "policy", "clocks"],
)  # fmt: skip
def test_an_unfit_topic_is_refused(servers: str, topic: NewTopic, why: str) -> None:
    async def make(admin: Admin) -> None:
        (await admin.create_topics([topic])).all()

    ask(servers, make)
    with pytest.raises(JournalUnwritable, match=why):
        journal_in(f"kafka://{servers}/{topic.name}").begin(head("one"), [("g", PAIRS)])


@pytest.mark.parametrize("where", ["kafka://127.0.0.1:{port}/journal", "kafka://no-such-context/journal", "kafka://x"])
def test_nothing_is_changed_without_it(
    servers: str, where: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def commit(admin: Admin) -> None:
        await admin.create_topics([NewTopic("orders", 1, 1)], if_missing=True)
        (await admin.alter_consumer_group_offsets("g", {PLACE: OffsetAndMetadata(0, None, "kept")})).all()

    async def committed(admin: Admin) -> OffsetAndMetadata | None:
        return (await admin.list_consumer_group_offsets({"g": [PLACE]})).result("g").all()[PLACE]

    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    monkeypatch.setattr("groupkeeper.cli.framework.journals.PATIENCE_MS", 200)
    monkeypatch.setenv("GROUPKEEPER_JOURNAL", where.format(port=port))
    ask(servers, commit)
    put(servers, "orders", "a record", b"to skip")
    for words in (
        "groups reset g --topic orders --to-latest",
        "groups delete-offsets g --topic orders",
        "groups delete g",
    ):
        assert main([*words.split(), "--execute", "--bootstrap-server", servers, "--output", "json"]) == 1
        (problem,) = json.loads(capsys.readouterr().out)["problems"]
        assert problem["message"].startswith("nothing was changed, as the journal cannot be written: "), words
    official = "kafka-consumer-groups --group g --topic orders"
    for words in (f"{official} --reset-offsets --to-latest --execute", f"{official} --delete-offsets",
                  "kafka-consumer-groups --group g --delete"):  # fmt: skip
        kafka_consumer_groups.main(
            [*words.split()[1:], "--bootstrap-server", servers]
        )  # its status is the official one
        assert "nothing was changed, as the journal cannot be written: " in "".join(capsys.readouterr()), words
    kept = ask(servers, committed)
    assert kept is not None
    assert kept.metadata == "kept"
    assert main(["history", "--output", "json"]) == 1
    (problem,) = json.loads(capsys.readouterr().out)["problems"]
    assert problem["message"].startswith(f"cannot read the journal {where.format(port=port)}: ")
    with pytest.raises(JournalUnreadable):
        TopicJournal(where, lambda: Admin(f"127.0.0.1:{port}", default_timeout_ms=500)).changes()
