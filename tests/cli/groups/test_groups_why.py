"""`groupkeeper groups why`: each cause on the embedded broker, with the command that helps."""

import json
import re
import shlex
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from tests import acts
from tests.acts import commit, make_topic
from tests.patience import until
from tests.times_and_transactions import STRAY, write_stray

from groupkeeper.cli.framework.commands import parse
from groupkeeper.cli.main import main

PATIENCE_S = 30
PROPERTIES = {"transaction.partition.verification.enable": "false", "group.initial.rebalance.delay.ms": "0"}
BROKER = {"properties": PROPERTIES}

Why = Callable[..., Any]


@pytest.fixture
def why(servers: str, capsys: pytest.CaptureFixture[str]) -> Why:
    """The report about a group; each command in it is one."""

    def call(group: str, *words: str, status: int = 0) -> Any:
        interval = [] if "--interval" in words else ["--interval", "100ms"]
        typed = ["groups", "why", "--bootstrap-server", servers, "--output", "json", *interval, *words]
        assert main([*typed, "--", group]) == status
        found = json.loads(capsys.readouterr().out)
        for fact in found["facts"]:
            program, *rest = shlex.split(fact["command"])
            assert program == "groupkeeper"
            parse(rest)
        return found

    return call


def filled(servers: str, topic: str, **config: str) -> str:
    make_topic(servers, topic, **config)
    producer = Producer({"bootstrap.servers": servers})
    for number in range(5):
        producer.produce(topic, b"secret %d" % number, b"key-%d" % number, headers={"trace": "t1", "bin": b"\x00\xff"})
    assert producer.flush(PATIENCE_S) == 0
    return topic


@pytest.fixture
def member(servers: str) -> Iterator[Callable[[str, str], Consumer]]:
    """Makes a member that has its partition, and never commits."""
    consumers: list[Consumer] = []

    def join(group: str, topic: str) -> Consumer:
        consumers.append(acts.member(servers, group, topic, client={"client.id": "reader"}))
        return consumers[-1]

    yield join
    for consumer in consumers:
        consumer.close()


def test_no_members(servers: str, why: Why, member: Callable[[str, str], Consumer]) -> None:
    consumer = member("-left", filled(servers, "left"))
    consumer.commit(offsets=[TopicPartition("left", 0, 2)], asynchronous=False)
    consumer.close()
    found = why("-left")
    (fact,) = found["facts"]
    assert (found["cause"], fact["cause"], fact["topic"]) == ("no_members", "no_members", None)
    assert fact["fact"].startswith("the group has no members, and 3 records wait")
    assert fact["command"].endswith("-- -left")
    commit(servers, "-left", {("left", 0): 5})
    done = why("-left")
    assert (done["cause"], done["facts"], done["notes"][0][:14]) == (None, [], "nothing waits ")


def test_a_program_that_only_commits_needs_no_members(servers: str, why: Why) -> None:
    commit(servers, "flink", {(filled(servers, "checkpoints"), 0): 2})
    (fact,) = why("flink")["facts"]
    assert (fact["cause"], fact["topic"], fact["offset"]) == ("stuck", "checkpoints", 2)


def test_a_topic_that_no_member_reads_any_more_comes_last(
    servers: str, why: Why, member: Callable[[str, str], Consumer]
) -> None:
    commit(servers, "moved", {(filled(servers, "old-topic"), 0): 1})
    offsets = [TopicPartition("new-topic", 0, 3)]
    member("moved", filled(servers, "new-topic")).commit(offsets=offsets, asynchronous=False)
    found = why("moved")
    told = [(fact["cause"], fact["topic"]) for fact in found["facts"]]
    assert told == [("stuck", "new-topic"), ("unread", "old-topic")]
    assert found["facts"][1]["fact"] == "4 records wait, and no member reads the topic"


def test_the_record_that_is_stuck(servers: str, why: Why, member: Callable[[str, str], Consumer]) -> None:
    commit(servers, "stuck", {(filled(servers, "poison"), 0): 3})
    member("stuck", "poison")
    found = why("stuck")
    (fact,) = found["facts"]
    assert (fact["cause"], fact["topic"], fact["partition"], fact["offset"]) == ("stuck", "poison", 0, 3)
    assert "offset 3 does not move, and 2 records wait; its member is reader on " in fact["fact"]
    assert (fact["record_offset"], fact["record_key"], fact["record_key_size"]) == (3, "key-3", 5)
    assert (fact["record_value_size"], fact["record_value"]) == (8, None)
    assert fact["record_headers"] == "trace=t1, bin=0x00ff"
    assert "secret" not in json.dumps(found)
    assert "groups why --interval 5m" in fact["command"]  # a look of 100 ms is no proof
    assert why("stuck", "--show-value")["facts"][0]["record_value"] == "secret 3"


def test_nothing_is_committed(servers: str, why: Why, member: Callable[[str, str], Consumer]) -> None:
    filled(servers, "unread")
    member("never", "unread")
    (fact,) = why("never")["facts"]
    assert (fact["cause"], fact["offset"]) == ("never_committed", None)
    assert "nothing is committed, and the log has 5 records; its member is reader on " in fact["fact"]


def test_an_offset_that_the_log_has_not(servers: str, why: Why, member: Callable[[str, str], Consumer]) -> None:
    filled(servers, "short")
    consumer = member("ahead", "short")
    consumer.commit(offsets=[TopicPartition("short", 0, 9)], asynchronous=False)
    (fact,) = why("ahead")["facts"]
    assert (fact["cause"], fact["offset"]) == ("out_of_range", 9)


def test_an_open_transaction(servers: str, why: Why, member: Callable[[str, str], Consumer]) -> None:
    make_topic(servers, "held")
    make_topic(servers, "new")
    producer = Producer({"bootstrap.servers": servers, "transactional.id": "tx", "transaction.timeout.ms": 600_000})
    producer.init_transactions(PATIENCE_S)
    for is_first in (True, False):
        producer.begin_transaction()
        producer.produce("held", b"x")
        assert producer.flush(PATIENCE_S) == 0
        if is_first:
            producer.commit_transaction(PATIENCE_S)
    producer.produce("new", b"x")
    assert producer.flush(PATIENCE_S) == 0
    commit(servers, "waits", {("held", 0): 1})  # before the marker of the first
    member("waits", "held")
    (fact,) = why("waits")["facts"]
    assert (fact["cause"], fact["transactional_id"], fact["offset"]) == ("open_transaction", "tx", 1)
    assert "keeps consumers of committed records at offset 2: tx of producer " in fact["fact"]
    assert fact["fact"].endswith("its coordinator aborts it after 10 min")
    member("begins", "new")
    (fact,) = why("begins")["facts"]
    assert (fact["cause"], fact["transactional_id"], fact["offset"]) == ("open_transaction", "tx", None)
    producer.abort_transaction(PATIENCE_S)
    until(lambda: why("waits")["cause"] is None)  # a marker, an aborted record and a marker are left
    found = why("waits")
    assert (found["facts"], found["notes"][0][:14]) == ([], "nothing waits ")
    producer.begin_transaction()
    producer.produce("held", b"y", b"good")
    producer.commit_transaction(PATIENCE_S)
    (fact,) = why("waits")["facts"]
    assert (fact["cause"], fact["offset"], fact["record_offset"], fact["record_key"]) == ("stuck", 1, 4, "good")


def test_a_hanging_transaction_is_told_after_missing_members(
    servers: str, why: Why, member: Callable[[str, str], Consumer]
) -> None:
    make_topic(servers, "hangs")
    write_stray(servers, "hangs", int(time.time() * 1000) - 3_600_000)
    consumer = member("hung", "hangs")
    consumer.commit(offsets=[TopicPartition("hangs", 0, 0)], asynchronous=False)
    consumer.close()
    first, second = why("hung")["facts"]
    assert (first["cause"], second["cause"]) == ("no_members", "open_transaction")
    assert second["producer_id"] == STRAY
    assert second["fact"].endswith("(hanging); no coordinator has it: nothing will end it")
    assert "transactions abort --partition hangs:0" in second["command"]


@contextmanager
def meanwhile(act: Callable[[threading.Event], None]) -> Iterator[None]:
    """Acts in a thread beside the block, whose end sets the event."""
    is_over = threading.Event()
    acting = threading.Thread(target=act, args=(is_over,))
    acting.start()
    try:
        yield
    finally:
        is_over.set()
        acting.join()


def test_more_is_written_than_read(servers: str, why: Why, member: Callable[[str, str], Consumer]) -> None:
    filled(servers, "busy")
    consumer = member("slow", "busy")
    consumer.commit(offsets=[TopicPartition("busy", 0, 1)], asynchronous=False)
    producer = Producer({"bootstrap.servers": servers})

    def write(is_over: threading.Event) -> None:
        offset = 1
        while not is_over.wait(0.02):
            for _ in range(50):
                producer.produce("busy", b"x")
            producer.flush(PATIENCE_S)
            offset += 1
            consumer.commit(offsets=[TopicPartition("busy", 0, offset)], asynchronous=False)

    with meanwhile(write):
        found = why("slow", "--interval", "1s")
    (fact,) = found["facts"]
    assert (fact["cause"], fact["topic"]) == ("slow", None)
    assert fact["fact"].endswith("the group does not catch up")


def test_a_group_that_moves_is_told_so(servers: str, why: Why) -> None:
    make_topic(servers, "flows")
    producer = Producer({"bootstrap.servers": servers})
    for _ in range(2000):
        producer.produce("flows", b"x")
    assert producer.flush(PATIENCE_S) == 0
    commit(servers, "moves", {("flows", 0): 1})

    def read(is_over: threading.Event) -> None:
        for offset in range(2, 1000):
            if is_over.wait(0.02):
                return
            commit(servers, "moves", {("flows", 0): offset})

    with meanwhile(read):
        found = why("moves", "--interval", "1s")
    assert (found["cause"], found["facts"]) == (None, [])
    assert re.fullmatch(r"it moves: [\d,]+ records wait; .*/s read and 0/s written within 1 s", found["notes"][0])


def test_a_group_that_rebalances_between_the_looks(
    servers: str, why: Why, member: Callable[[str, str], Consumer]
) -> None:
    member("churning", filled(servers, "churn"))
    more = list[Consumer]()

    def join(is_over: threading.Event) -> None:
        while not is_over.is_set():
            more.append(Consumer({"bootstrap.servers": servers, "group.id": "churning"}))
            more[-1].subscribe(["churn"])
            for consumer in more:
                consumer.poll(0.05)

    try:
        with meanwhile(join):
            found = why("churning", "--interval", "1s")
    finally:
        with ThreadPoolExecutor(len(more)) as closing:  # one by one, each would wait for the others' rebalance
            list(closing.map(Consumer.close, more))
    assert found["cause"] == "rebalancing"


def test_a_group_that_is_not_there_is_told(why: Why) -> None:
    found = why("no-such-group", status=1)
    assert [each["error"] for each in found["problems"]] == ["GROUP_ID_NOT_FOUND"]
