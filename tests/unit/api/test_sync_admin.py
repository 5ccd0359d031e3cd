"""SyncAdmin: calls that wait, from any thread, beside a running loop, and to the end."""

import asyncio
import inspect
import os
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import get_type_hints

import pytest
from tests.acts import make_topic

from groupkeeper import Admin, OffsetAndMetadata, OffsetSpec, SyncAdmin, TopicPartition
from groupkeeper.errors import (
    CallTimedOut,
    ClientClosed,
    ConnectionFailed,
    GroupIdNotFound,
    IllegalArgument,
    UnknownTopicOrPartition,
)
from groupkeeper.testing.background import BackgroundBroker

PLACE = TopicPartition("orders", 0)


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    with BackgroundBroker() as broker:
        make_topic(broker.bootstrap_servers, "orders")
        yield broker.bootstrap_servers


def threads() -> list[str]:
    return [each.name for each in threading.enumerate() if each.name == "groupkeeper-admin"]


def test_calls_have_their_results_and_errors(servers: str) -> None:
    before = len(threads())
    with SyncAdmin(servers, client_id="sync") as admin:
        assert [topic.name for topic in admin.list_topics()] == ["orders"]
        admin.alter_consumer_group_offsets("billing", {PLACE: OffsetAndMetadata(3)}).all()
        assert admin.list_consumer_group_offsets({"billing": None}).done["billing"].all()[PLACE] == OffsetAndMetadata(3)
        assert isinstance(admin.describe_topics(["nothere"]).failed["nothere"], UnknownTopicOrPartition)
        with pytest.raises(GroupIdNotFound):
            admin.delete_consumer_group_offsets("nobody", [PLACE])
        with pytest.raises(IllegalArgument, match="must be a collection"):
            admin.delete_topics("orders")
        assert admin.principal == ""
        assert len(threads()) == before + 1
    assert len(threads()) == before


async def test_it_works_where_a_loop_runs_already(servers: str) -> None:
    admin = SyncAdmin.connect(servers)
    assert admin.lag(["nobody"]).failed.keys() == {"nobody"}
    admin.close()
    admin.close()
    with pytest.raises(ClientClosed, match="the client isn't connected"):
        admin.list_topics()


def test_several_threads_use_one_client(servers: str) -> None:
    with SyncAdmin(servers) as admin, ThreadPoolExecutor(8) as pool:
        ends = list(pool.map(lambda _: admin.list_offsets({PLACE: OffsetSpec.latest()}).all()[PLACE].offset, range(40)))
    assert ends == [0] * 40


def test_closing_ends_the_calls_of_other_threads() -> None:
    with BackgroundBroker() as broker, ThreadPoolExecutor(1) as pool:
        admin = SyncAdmin.connect(broker.bootstrap_servers, properties={"retry.backoff.ms": "20"})
        fault = broker.faults.delay("ListGroups", 30_000)
        running = pool.submit(admin.list_groups)
        fault.wait_for_hits()
        admin.close()
        with pytest.raises(ClientClosed):
            running.result(30).all()


def test_no_broker() -> None:
    before = len(threads())
    with pytest.raises((ConnectionFailed, CallTimedOut)):
        SyncAdmin.connect("127.0.0.1:1", default_timeout_ms=200)
    assert len(threads()) == before


def test_a_function_that_a_call_is_given_must_not_call(servers: str) -> None:
    offsets = {"billing": {PLACE: OffsetAndMetadata(1)}}
    with SyncAdmin(servers) as admin, pytest.raises(ExceptionGroup) as failure:
        admin.alter_offsets_of_groups(offsets, tell=lambda: print(admin.list_topics()))
    assert failure.group_contains(RuntimeError, match="must not make another call of the same client")


def test_it_has_every_call_with_its_types_and_documentation() -> None:
    calls = dict(inspect.getmembers(Admin, inspect.iscoroutinefunction))
    names = {name for name in calls if name[0] != "_"}
    assert {name for name, _ in inspect.getmembers(SyncAdmin, inspect.isroutine) if name[0] != "_"} == names
    for name in names - {"connect", "close"}:
        here = getattr(SyncAdmin, name)
        assert str(inspect.signature(here)) == str(inspect.signature(calls[name]))
        assert inspect.getdoc(here) == inspect.getdoc(calls[name])
    assert get_type_hints(SyncAdmin.close)["return"] is type(None)


def test_another_loop_and_a_forked_process_are_told_so_at_once(servers: str) -> None:
    admin = Admin(servers)

    async def ask() -> int:
        return len(await admin.list_topics())

    assert asyncio.run(ask()) == 1
    with pytest.raises(IllegalArgument, match="listTopics: this client belongs to another event loop"):
        asyncio.run(ask())
    asyncio.run(admin.close())

    with SyncAdmin(servers) as blocking:
        read, write = os.pipe()
        if (child := os.fork()) == 0:
            try:
                blocking.list_topics()
            except IllegalArgument as error:
                os.write(write, str(error).encode())
            blocking.close()
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        assert os.read(read, 200) == b"this client belongs to the parent process: make one in each process"
        assert [topic.name for topic in blocking.list_topics()] == ["orders"]


def test_an_address_that_the_broker_advertises_is_named_as_such() -> None:
    advertised = {"advertised.listeners": "PLAINTEXT://no-such-host.invalid:9092"}
    with BackgroundBroker(properties=advertised) as broker:
        port = broker.bootstrap_servers.rpartition(":")[2]
        with SyncAdmin(f"127.0.0.1:{port}") as admin:
            (failure,) = admin.list_groups(timeout_ms=500).failed.values()
    assert "no-such-host.invalid cannot be resolved" in str(failure)
    assert "(broker 1 advertises this address: see advertised.listeners)" in str(failure)
