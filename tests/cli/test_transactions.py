"""`groupkeeper transactions list|describe|abort` on the embedded broker: one that is open, and one that hangs."""

import asyncio
import json
import time
from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import KafkaException, Producer
from tests.acts import begin_transaction, make_topic
from tests.times_and_transactions import STRAY, write_stray

from groupkeeper.cli.main import main
from groupkeeper.client.admin import Admin
from groupkeeper.client.admin.types import TopicPartition
from groupkeeper.operations import transactions
from groupkeeper.protocol.errors import UnknownTopicOrPartition
from groupkeeper.testing.background import BackgroundBroker

BROKER = {"properties": {"transaction.partition.verification.enable": "false"}}
"""What a broker with this verification refuses, a late batch of an old client leaves."""
TIMEOUT_MS = 600_000
HOUR_MS = 3_600_000

Run = Callable[..., tuple[int, Any]]


@pytest.fixture
def producer(servers: str, request: pytest.FixtureRequest) -> Producer:
    """Has written two records of an open transaction to a topic with the test's name, which is also its id."""
    name = request.node.name
    make_topic(servers, name)
    return begin_transaction(servers, name, name, [b"x"] * 2, **{"transaction.timeout.ms": TIMEOUT_MS})


def stray(servers: str, topic: str, age_ms: int) -> None:
    make_topic(servers, topic)
    write_stray(servers, topic, int(time.time() * 1000) - age_ms)


def test_an_open_transaction_is_listed_described_and_aborted(run: Run, producer: Producer) -> None:
    name = "test_an_open_transaction_is_listed_described_and_aborted"
    status, listed = run("transactions", "list", "--topic", name)
    assert (status, listed["schema"]) == (0, "transactions/1")
    (row,) = listed["transactions"]
    expected = {"transactional_id": name, "standing": "open", "state": "Ongoing", "timeout_ms": TIMEOUT_MS}
    assert expected.items() <= row.items()
    assert (row["partitions"], row["held_offsets"]) == (1, 2)
    assert 0 <= row["open_ms"] < TIMEOUT_MS
    assert run("transactions", "list", "--older-than", "1h")[1]["transactions"] == []
    assert run("transactions", "list", "--topic", name, "--hanging")[1]["notes"] == ["no transaction hangs"]
    (place,) = run("transactions", "describe", name)[1]["partitions"]
    assert (place["topic"], place["partition"], place["first_offset"], place["held_offsets"]) == (name, 0, 0, 2)

    status, would_be = run("transactions", "abort", name)
    assert (status, would_be["executed"]) == (0, False)
    (row,) = would_be["aborted"]
    assert (row["way"], row["result"], row["first_offset"]) == ("coordinator", "would be aborted", 0)
    assert "nothing is changed yet: add --execute" in would_be["notes"]
    assert len(run("transactions", "describe", name)[1]["partitions"]) == 1

    status, done = run("transactions", "abort", name, "--execute")
    assert (status, done["executed"], done["aborted"][0]["result"]) == (0, True, "aborted")
    assert run("transactions", "list", "--topic", name)[1]["transactions"] == []
    with pytest.raises(KafkaException):
        producer.commit_transaction(20)  # it was fenced
    (ended,) = [
        row for row in run("transactions", "list", "--all")[1]["transactions"] if row["transactional_id"] == name
    ]
    assert (ended["standing"], ended["open_ms"], ended["started_time"]) == ("ended", None, None)
    status, again = run("transactions", "abort", name, "--execute")
    assert (status, [each["error"] for each in again["problems"]]) == (1, ["NOTHING_TO_ABORT"])


def test_one_that_no_coordinator_has_hangs_when_it_is_old(run: Run, servers: str) -> None:
    stray(servers, "hangs", HOUR_MS)
    (row,) = run("transactions", "list", "--topic", "hangs", "--hanging")[1]["transactions"]
    assert (row["transactional_id"], row["producer_id"], row["standing"]) == (None, STRAY, "hanging")
    assert (row["state"], row["partitions"], row["held_offsets"]) == (None, 1, 2)
    assert row["open_ms"] >= HOUR_MS
    (place,) = run("transactions", "describe", "--topic", "hangs")[1]["partitions"]
    assert (place["producer_id"], place["first_offset"], place["held_offsets"]) == (STRAY, 0, 2)

    wrong = run("transactions", "abort", "--partition", "hangs:0", "--producer-id", "1")[1]["problems"]
    assert [each["error"] for each in wrong] == ["NOTHING_TO_ABORT"]
    assert run("transactions", "abort", "--partition", "hangs:0", "--force")[1]["aborted"][0]["way"] == "marker"
    status, done = run("transactions", "abort", "--partition", "hangs:0", "--force", "--execute")
    assert (status, done["aborted"][0]["result"]) == (0, "aborted")
    assert run("transactions", "list", "--topic", "hangs")[1]["transactions"] == []

    change = run("history")[1]["changes"][-1]
    assert (change["kind"], change["result"], change["partitions"]) == ("abort-transaction", "applied", 1)
    name = f"producer {STRAY} in hangs-0"
    assert (change["names"], change["groups"]) == (name, 0)
    assert change not in run("history", "--group", "*")[1]["changes"]
    (place,) = run("history", change["id"])[1]["changes"]
    assert (place["group"], place["transaction"], place["topic"]) == (None, name, "hangs")
    status, undone = run("undo", change["id"], "--execute")
    assert (status, undone["problems"][0]["error"]) == (1, "OPERATION_REFUSED")
    assert "cannot be taken back" in undone["problems"][0]["message"]


def test_what_is_another_transaction_after_the_prompt_is_not_aborted(servers: str, producer: Producer) -> None:
    """One that no coordinator shows and that goes on lives: its id is hidden. One of a coordinator may be the next."""
    name = "test_what_is_another_transaction_after_the_prompt_is_not_aborted"
    tp = TopicPartition("goes-on", 0)

    async def aborted_as_of_an_earlier_look() -> None:
        async with Admin(servers) as admin:
            planned = await transactions.plan_of_hanging(admin, tp, None, 0, is_forced=True)
            state = planned.partitions[tp]
            assert state is not None
            earlier = planned._replace(partitions={tp: state._replace(last_timestamp=state.last_timestamp - 1)})
            with pytest.raises(transactions.MayStillEnd, match="so nothing was aborted"):
                await transactions.abort(admin, earlier, None)
            gone = planned._replace(partitions={TopicPartition("no-such-topic", 0): state})
            with pytest.raises(UnknownTopicOrPartition):  # not: it has ended
                await transactions.abort(admin, gone, None)
            assert await transactions.abort(admin, planned, None) == planned
            with pytest.raises(transactions.MayStillEnd):  # it has ended
                await transactions.abort(admin, planned, None)

            known = await transactions.plan_of_known(admin, name)
            producer.abort_transaction(20)
            producer.begin_transaction()
            producer.produce(name, b"y")
            assert producer.flush(20) == 0
            with pytest.raises(transactions.MayStillEnd, match="so nothing was aborted"):
                await transactions.abort(admin, known, None)
            producer.commit_transaction(20)
            with pytest.raises(transactions.NothingToAbort):
                await transactions.abort(admin, known, None)

    stray(servers, "goes-on", HOUR_MS)
    asyncio.run(aborted_as_of_an_earlier_look())


def test_coordinators_are_asked_after_partitions(servers: str) -> None:
    """Asked before, they would not yet have a transaction that begins in between, and it would seem to hang."""

    class Observed(Admin):
        asked: list[str]

        async def describe_producers(self, *args: Any, **more: Any) -> Any:
            self.asked.append("partitions")
            answer = await super().describe_producers(*args, **more)
            self.asked.append("told")
            return answer

        async def list_transactions(self, *args: Any, **more: Any) -> Any:
            self.asked.append("coordinators")
            return await super().list_transactions(*args, **more)

    async def asked() -> list[str]:
        async with Observed(servers) as admin:
            admin.asked = []
            await transactions.open_in(admin, [TopicPartition("asked", 0)])
            return admin.asked

    make_topic(servers, "asked")
    assert asyncio.run(asked()) == ["partitions", "told", "coordinators"]


def test_what_is_held_is_null_where_it_is_not_known(capsys: pytest.CaptureFixture[str]) -> None:
    with BackgroundBroker() as broker:
        servers = broker.bootstrap_servers
        for topic in ("seen", "other"):
            make_topic(servers, topic)
        producer = begin_transaction(servers, "both", "seen", [b"x"])
        producer.produce("other", b"x")
        assert producer.flush(20) == 0
        for words, held in (([], 2), (["--topic", "seen"], None)):
            assert main(["transactions", "list", *words, "--bootstrap-server", servers, "--output", "json"]) == 0
            (row,) = json.loads(capsys.readouterr().out)["transactions"]
            assert (row["partitions"], row["held_offsets"]) == (2, held)
        producer.abort_transaction(20)


def test_one_that_no_coordinator_shows_is_aborted_by_force_only(run: Run, servers: str, producer: Producer) -> None:
    """Its transactional id may be hidden, and its records may have any times."""
    for topic, age_ms, standing in (("young", 60_000, "unclaimed"), ("old", HOUR_MS, "hanging")):
        stray(servers, topic, age_ms)
        (row,) = run("transactions", "list", "--topic", topic)[1]["transactions"]
        assert row["standing"] == standing
        status, refused = run("transactions", "abort", "--partition", f"{topic}:0", "--execute")
        (problem,) = refused["problems"]
        assert (status, problem["error"], problem["topic"], problem["partition"]) == (1, "MAY_STILL_END", topic, 0)
        assert "DESCRIBE on all transactional ids" in problem["message"]
        assert problem["message"].endswith("abort it with --force")
    assert run("transactions", "abort", "--partition", "young:0", "--force", "--execute")[0] == 0
    # A coordinator has this one: it is named by its id.
    name = "test_one_that_no_coordinator_shows_is_aborted_by_force_only"
    message = run("transactions", "abort", "--partition", f"{name}:0", "--force", "--execute")[1]["problems"][0][
        "message"
    ]
    assert message.endswith(f"abort it by its transactional id, {name}")
    producer.abort_transaction(20)


def test_ids_and_topics_are_completed(servers: str, producer: Producer, capsys: pytest.CaptureFixture[str]) -> None:
    name = "test_ids_and_topics_are_completed"
    for words in (["abort", "test_ids"], ["abort", "--partition", "test_ids"], ["list", "--topic", "test_ids"]):
        main(["__complete", "transactions", words[0], "--bootstrap-server", servers, *words[1:]])
        assert capsys.readouterr().out.splitlines() == [name]


def test_what_is_not_there_is_told(run: Run) -> None:
    status, answer = run("transactions", "describe", "no-such-id")
    assert (status, answer["problems"][0]["error"]) == (1, "TRANSACTIONAL_ID_NOT_FOUND")
    assert answer["problems"][0]["message"].startswith("no-such-id: ")
    status, answer = run("transactions", "list", "--topic", "no-such-topic")
    assert (status, answer["problems"][0]["topic"]) == (1, "no-such-topic")
