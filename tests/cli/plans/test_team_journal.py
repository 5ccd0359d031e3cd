"""A journal in a topic: what is written is read from elsewhere, undone once, and nothing is changed without it."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.team_journal import check_two_machines

from groupkeeper.cli.dropin import kafka_consumer_groups
from groupkeeper.cli.main import main
from groupkeeper.client.admin import Admin
from groupkeeper.client.admin.producing import produce
from groupkeeper.client.admin.types import NewTopic, OffsetAndMetadata, TopicPartition
from groupkeeper.operations.plans.journal import (
    ApplyResult,
    BeingUndone,
    Head,
    JournalUnreadable,
    JournalUnwritable,
    Pair,
)
from groupkeeper.operations.plans.topic_journal import CLAIM_MS, TopicJournal, of_servers
from groupkeeper.pipeline.present.changes import read_changes
from groupkeeper.protocol.record import Record
from groupkeeper.protocol.record_batch import write_batch
from groupkeeper.testing.background import BackgroundBroker

NOW_MS = time.time_ns() // 10**6
PLACE = TopicPartition("orders", 0)
PAIRS: dict[TopicPartition, Pair] = {PLACE: (OffsetAndMetadata(5, 3, "note ☃"), OffsetAndMetadata(0))}


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    with BackgroundBroker() as broker:
        yield broker.bootstrap_servers


@pytest.fixture
def journal(servers: str, request: pytest.FixtureRequest) -> TopicJournal:
    return of_servers(f"kafka://{servers}/{request.node.name}")


def head(change_id: str, *, undoes: str | None = None, user: str = "anna", time_ms: int = NOW_MS) -> Head:
    return Head(change_id, time_ms, "cluster", "undo" if undoes else "reset", user, "desk", ("groupkeeper",), undoes)


def on_admin(servers: str, work: Callable[[Admin], Any]) -> Any:
    async def run() -> Any:
        async with Admin(servers) as admin:
            return await work(admin)

    return asyncio.run(run())


def put(servers: str, topic: str, key: str, value: bytes) -> None:
    batch = write_batch([Record(key.encode(), value, (), NOW_MS)])
    on_admin(servers, lambda admin: produce(admin._cluster, TopicPartition(topic, 0), batch))


def test_one_machine_is_killed_and_the_other_takes_the_change_back(
    servers: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    check_two_machines(servers, 1, monkeypatch, capsys)


def test_what_is_written_is_read(servers: str, journal: TopicJournal) -> None:
    assert (journal.summaries(), journal.load("x"), journal.stamp()) == (([], 0), None, 0)
    many = {TopicPartition(f"orders-{number:06}", 0): pair for number in range(30_000) for pair in PAIRS.values()}
    journal.begin(head("one"), [("g", PAIRS), ("large", many)])
    stamp = journal.stamp()
    journal.end("one", NOW_MS, 2, ApplyResult.APPLIED)
    assert journal.stamp() != stamp
    recorded = journal.load("one")
    assert recorded is not None
    assert (recorded.head, recorded.groups) == (head("one"), {"g": PAIRS, "large": many})
    (summary,), broken = journal.summaries()
    assert (summary.result, summary.partition_count, broken) == (ApplyResult.APPLIED, 30_001, 0)
    rows, notes = read_changes([journal.name], {"prod": "cluster"})
    assert (len(rows), notes) == (30_001, [])


def test_a_text_counts_once_and_as_a_whole(servers: str, journal: TopicJournal) -> None:
    """A writer was killed between two records; another one sent a record again, as its answer was lost."""
    topic = journal.name.rpartition("/")[2]
    journal.begin(head("one"), [("g", PAIRS)])
    (text,) = journal._texts()
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
    with pytest.raises(BeingUndone, match=r"by anna on desk since .* \(undo-1, unfinished\)"):
        journal.begin(head("undo-3", undoes="change", user="bob"), [("g", PAIRS)])
    results = {one.head.id: one.result for one in journal.summaries()[0]}
    assert results["undo-3"] is ApplyResult.REFUSED
    journal.end("undo-1", NOW_MS, 1, ApplyResult.PARTLY)  # the same command may be run again
    journal.begin(head("undo-4", undoes="change"), [("g", PAIRS)])
    journal.begin(head("undo-5", undoes="change", time_ms=NOW_MS + CLAIM_MS), [("g", PAIRS)])  # that one was killed


@pytest.mark.parametrize(
    ("topic", "why"),
    [(NewTopic("two", 2, 1, configs={"cleanup.policy": "compact"}), "2 partitions; a journal has one"),
     (NewTopic("short", 1, 1), "cleanup.policy=delete, and would lose changes: kafka-configs --alter ")],
    ids=["partitions", "policy"],
)  # fmt: skip
def test_an_unfit_topic_is_refused(servers: str, topic: NewTopic, why: str) -> None:
    async def make(admin: Admin) -> None:
        (await admin.create_topics([topic])).all()

    on_admin(servers, make)
    with pytest.raises(JournalUnwritable, match=why):
        of_servers(f"kafka://{servers}/{topic.name}").begin(head("one"), [("g", PAIRS)])


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
    monkeypatch.setattr("groupkeeper.cli.framework.journalling.PATIENCE_MS", 500)
    monkeypatch.setenv("GROUPKEEPER_JOURNAL", where.format(port=port))
    on_admin(servers, commit)
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
    assert on_admin(servers, committed).metadata == "kept"
    assert main(["history", "--output", "json"]) == 1
    (problem,) = json.loads(capsys.readouterr().out)["problems"]
    assert problem["message"].startswith(f"cannot read the journal {where.format(port=port)}: ")
    with pytest.raises(JournalUnreadable):
        TopicJournal(where, lambda: Admin(f"127.0.0.1:{port}", default_timeout_ms=500)).changes()
