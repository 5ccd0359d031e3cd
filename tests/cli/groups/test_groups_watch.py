"""`groupkeeper groups watch` as its own process, while a group forms, rebalances and loses its broker."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from tests.differential.wire import CLIENT_ID, Pool

from groupkeeper.protocol import messages as m
from groupkeeper.protocol.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    encode_assignment,
    encode_subscription,
)
from groupkeeper.protocol.messages.consumer_protocol_assignment import TopicPartition as AssignedTopic
from groupkeeper.testing.background import BackgroundBroker

COMMAND = str(Path(sys.executable).with_name("groupkeeper"))


@contextmanager
def watching(servers: str | None, *words: str) -> Iterator[subprocess.Popen[str]]:
    where = [] if servers is None else ["--bootstrap-server", servers]
    command = [COMMAND, "groups", "watch", *where, "--interval", "20ms", *words]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def until(process: subprocess.Popen[str], *wanted: tuple[Any, ...]) -> None:
    """Reads lines of JSON until all that is wanted was said: (change, member, before, after)."""
    assert process.stdout is not None
    missing = list(wanted)
    while missing:
        line = process.stdout.readline()
        assert line, f"ended before {missing}: {process.communicate()[1]}"
        row = json.loads(line)
        assert row["schema"] == "watch/1"
        told = (row["change"], row["member_id"], row["before"], row["after"])
        if told in missing:
            missing.remove(told)


def end(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=30)
    assert (process.returncode, errors.replace("note: waiting for group g\n", "")) == (0, ""), output


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BackgroundBroker]:
    settings = {
        "group.consumer.assignment.interval.ms": "0",
        "group.consumer.min.assignment.interval.ms": "0",
        "group.initial.rebalance.delay.ms": "0",
    }
    with BackgroundBroker(directory=tmp_path, properties=settings) as running:
        yield running


@pytest.fixture
def pool(broker: BackgroundBroker) -> Iterator[Pool]:
    """Connections to the broker, which has a topic t, and the coordinator of g."""
    pool = Pool(broker.bootstrap_servers)
    pool.ask(m.CreateTopicsRequest([m.CreatableTopic("t", 2, 1)]), 7)
    pool.ask(m.FindCoordinatorRequest(coordinator_keys=["g"]), 4)
    yield pool
    pool.close()


def places(*partitions: int) -> list[dict[str, Any]]:
    return [{"topic": "t", "partition": index} for index in partitions]


def test_a_rebalance_is_seen_live(broker: BackgroundBroker, pool: Pool) -> None:
    def beat(member_id: str, epoch: int, *, full: bool = False) -> m.ConsumerGroupHeartbeatResponse:
        request = m.ConsumerGroupHeartbeatRequest("g", member_id, epoch)
        if full:
            request.rebalance_timeout_ms, request.subscribed_topic_names, request.topic_partitions = 60_000, ["t"], []
        answer = pool.ask(request, 1)
        assert answer.error_code == 0
        return answer

    with watching(broker.bootstrap_servers, "g", "--output", "json") as process:
        assert process.stderr is not None
        assert process.stderr.readline() == "note: waiting for group g\n"
        beat("a", 0, full=True)
        until(
            process,
            ("type", None, None, "Consumer"),
            ("state", None, None, "Stable"),
            ("group_epoch", None, None, 2),
            ("member_joined", "a", None, places(0, 1)),
            ("upgraded", "a", None, True),
        )
        beat("b", 0, full=True)
        until(process, ("state", None, "Stable", "Reconciling"), ("target_assignment", "b", None, places(1)))
        beat("a", -1)
        until(process, ("member_left", "a", places(0, 1), None), ("group_epoch", None, 3, 4))
        beat("b", 3)
        until(process, ("assignment", "b", [], places(0, 1)), ("member_epoch", "b", 3, 4))
        beat("b", -1)
        until(process, ("state", None, "Stable", "Empty"))
        end(process)


def test_a_migration_is_seen_live(broker: BackgroundBroker, pool: Pool) -> None:
    # GM-03, GM-07, GM-08
    said = encode_subscription(ConsumerProtocolSubscription(["t"]), 1)

    def join(member_id: str) -> m.JoinGroupResponse:
        """Answered at once: there is no other classic member to wait for."""
        protocols = [m.JoinGroupRequestProtocol("range", said)]
        answer = pool.ask(m.JoinGroupRequest("g", 30_000, 30_000, member_id, "i", "consumer", protocols), 9)
        assert answer.error_code == 0
        return answer

    def sync(joined: m.JoinGroupResponse, *partitions: int) -> None:
        given = encode_assignment(ConsumerProtocolAssignment([AssignedTopic("t", partitions)]), 1)
        assignments = [m.SyncGroupRequestAssignment(joined.member_id, given)]
        pool.ask(
            m.SyncGroupRequest("g", joined.generation_id, joined.member_id, "i", "consumer", "range", assignments), 5
        )

    old = join("").member_id
    sync(join(old), 0, 1)
    with watching(broker.bootstrap_servers, "g", "--output", "json") as process:
        until(process, ("type", None, None, "Classic"), ("member_present", old, None, places(0, 1)))
        new = m.ConsumerGroupHeartbeatRequest("g", "new", 0, None, None, 60_000, ["t"], None, None, [])
        pool.ask(new, 1)
        until(
            process,
            ("type", None, "Classic", "Consumer"),
            ("upgraded", old, None, False),
            ("target_assignment", old, None, places(0)),
            ("upgraded", "new", None, True),
        )
        sync(join(old))
        until(process, ("assignment", old, places(0, 1), places(0)))
        pool.ask(m.ConsumerGroupHeartbeatRequest("g", "new", -1), 1)
        until(
            process,
            ("type", None, "Consumer", "Classic"),
            ("member_left", "new", [], None),
            ("upgraded", old, False, None),
        )
        end(process)


def test_the_table_has_the_same(broker: BackgroundBroker, pool: Pool) -> None:
    request = m.ConsumerGroupHeartbeatRequest("g", "a", 0, None, None, 60_000, ["t"], topic_partitions=[])
    pool.ask(request, 1)
    with watching(broker.bootstrap_servers, "g*") as process:
        assert process.stdout is not None
        head = process.stdout.readline().split()
        assert head == ["TIME", "GROUP", "CHANGE", "MEMBER-ID", "CLIENT-ID", "BEFORE", "AFTER", "INITIAL"]
        lines = [process.stdout.readline().split()[1:] for _ in range(9)]
        assert lines[0] == ["g", "type", "-", "-", "-", "Consumer", "yes"]
        assert lines[5] == ["g", "member_present", "a", CLIENT_ID, "-", "t:0,1", "yes"]
        end(process)


# What the first look finds is no change: only what comes later is one.
def test_the_first_look_is_marked(broker: BackgroundBroker, pool: Pool) -> None:
    pool.ask(m.ConsumerGroupHeartbeatRequest("g", "a", 0, None, None, 60_000, ["t"], topic_partitions=[]), 1)
    with watching(broker.bootstrap_servers, "g*", "--output", "json") as process:
        assert process.stdout is not None
        first = [json.loads(process.stdout.readline()) for _ in range(9)]
        assert {row["initial"] for row in first} == {True}
        assert [row["member_id"] for row in first if row["change"] == "member_present"] == ["a"]
        pool.ask(m.ConsumerGroupHeartbeatRequest("g", "b", 0, None, None, 60_000, ["t"], topic_partitions=[]), 1)
        row = json.loads(process.stdout.readline())
        assert row["initial"] is False
        while row["change"] != "member_joined":
            row = json.loads(process.stdout.readline())
        assert (row["member_id"], row["initial"]) == ("b", False)
        # A group that is made later has changes only.
        pool.ask(m.FindCoordinatorRequest(coordinator_keys=["g2"]), 4)
        pool.ask(m.ConsumerGroupHeartbeatRequest("g2", "c", 0, None, None, 60_000, ["t"], topic_partitions=[]), 1)
        while row["group"] != "g2" or row["change"] != "member_joined":
            row = json.loads(process.stdout.readline())
            assert row["initial"] is False
        end(process)


def test_a_broker_that_goes_is_a_change(tmp_path: Path) -> None:
    with BackgroundBroker(directory=tmp_path) as broker:
        servers, port = broker.bootstrap_servers, int(broker.bootstrap_servers.rpartition(":")[2])
        pool = Pool(servers)
        pool.ask(m.FindCoordinatorRequest(coordinator_keys=["g"]), 4)
        pool.ask(m.ConsumerGroupHeartbeatRequest("g", "a", 0, None, None, 60_000, [], topic_partitions=[]), 1)
        pool.close()
        with watching(servers, "g", "--output", "json", "--timeout", "2s") as process:
            until(process, ("state", None, None, "Stable"))
            broker.stop()
            assert process.stdout is not None
            row = json.loads(process.stdout.readline())
            while row["change"] != "problem":
                row = json.loads(process.stdout.readline())
            assert (row["before"], bool(row["after"])) == (None, True)
            with BackgroundBroker(port=port, directory=tmp_path):
                while not (row["change"] == "problem" and row["after"] is None):
                    row = json.loads(process.stdout.readline())
                process.send_signal(signal.SIGINT)
                _, errors = process.communicate(timeout=30)
        gone, back = errors.splitlines()
        assert gone.startswith("note: no group can be described: ")
        assert (back, process.returncode) == ("note: the groups can be described again", 0)


def test_a_broker_that_is_late_is_told_before_time_is_out(tmp_path: Path) -> None:
    with BackgroundBroker(directory=tmp_path) as broker:
        servers, port = broker.bootstrap_servers, int(broker.bootstrap_servers.rpartition(":")[2])
        with watching(servers, "g", "--timeout", "10m") as process:
            assert process.stderr is not None
            assert process.stderr.readline() == "note: waiting for group g\n"
            broker.stop()
            assert process.stderr.readline() == "note: no reply for 5 s; waiting\n"
            with BackgroundBroker(port=port, directory=tmp_path):
                end(process)


# As a shell without job control starts what it puts in the background.
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_end_it_in_the_background_too(broker: BackgroundBroker, number: signal.Signals) -> None:
    command = f"{COMMAND} groups watch absent --bootstrap-server {broker.bootstrap_servers} & echo $!; wait $!"
    with subprocess.Popen(
        ["sh", "-c", command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as shell:
        try:
            assert shell.stdout is not None
            assert shell.stderr is not None
            child = int(shell.stdout.readline())
            assert shell.stderr.readline() == "note: waiting for group absent\n"
            os.kill(child, number)
            _, errors = shell.communicate(timeout=60)
            assert (shell.returncode, errors) == (0, "")
        finally:
            with suppress(ProcessLookupError):
                os.killpg(shell.pid, signal.SIGKILL)


def test_a_share_group_is_followed(broker: BackgroundBroker, pool: Pool) -> None:
    def beat(epoch: int) -> int:
        request = m.ShareGroupHeartbeatRequest("g", "a", epoch, None, ["t"] if epoch == 0 else None)
        answer = pool.ask(request, 1)
        assert answer.error_code == 0
        return answer.member_epoch

    epoch = beat(0)
    with watching(broker.bootstrap_servers, "g*", "--output", "json") as process:
        until(process, ("type", None, None, "Share"), ("state", None, None, "Stable"))
        until(process, ("member_present", "a", None, []))
        deadline = time.monotonic() + 30
        while epoch < 3 and time.monotonic() < deadline:
            epoch = beat(epoch)
        until(process, ("assignment", "a", [], places(0, 1)))
        beat(-1)
        until(process, ("member_left", "a", places(0, 1), None), ("state", None, "Stable", "Empty"))
        end(process)
