"""Finding a cluster by its bootstrap servers, and staying connected to it."""

import asyncio
import socket

import pytest
from tests.unit.client.scripted_broker import HangUp, ScriptedBroker, Silence, admin_of, fast_admin, in_turn, scripted

from groupkeeper.client.admin import Admin
from groupkeeper.client.errors import (
    BrokersNotFound,
    CallTimedOut,
    ClientClosed,
    ClientError,
    ConnectionFailed,
    IllegalArgument,
    InvalidAddress,
    NotABroker,
    UnexpectedResponse,
    UnresolvableName,
    UnsupportedSecurity,
)
from groupkeeper.operations.problems import problem_of
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.errors import KafkaError
from groupkeeper.protocol.messages.describe_groups_response import DescribedGroup
from groupkeeper.protocol.primitives import RootMessage

LISTING = {"ListGroups": in_turn(m.ListGroupsResponse(groups=[m.ListedGroup("g")]))}


async def refused_port() -> int:
    broker = ScriptedBroker()
    await broker.start()
    await broker.stop()
    return broker.port


async def test_the_next_bootstrap_server_is_tried() -> None:
    port = await refused_port()
    async with (
        ScriptedBroker(handlers=LISTING) as broker,
        fast_admin(f"127.0.0.1:{port},no-such-host.invalid:1,{broker.bootstrap_servers}") as admin,
    ):
        assert list((await admin.list_groups()).groups) == ["g"]


async def test_a_slow_bootstrap_server_does_not_hold_up_the_next() -> None:
    async with (
        ScriptedBroker(handlers={"ApiVersions": in_turn(Silence)}) as silent,
        ScriptedBroker(handlers=LISTING) as broker,
    ):
        started = asyncio.get_running_loop().time()
        slow = {"default_api_timeout_ms": "120000", "request_timeout_ms": "60000"}
        async with fast_admin(f"{silent.bootstrap_servers},{broker.bootstrap_servers}", **slow) as admin:
            assert asyncio.get_running_loop().time() - started < 30
            assert list((await admin.list_groups()).groups) == ["g"]


async def test_all_refused_names_each_server() -> None:
    ports = await refused_port(), await refused_port()
    with pytest.raises(ConnectionFailed) as caught:
        async with fast_admin(f"127.0.0.1:{ports[0]},127.0.0.1:{ports[1]}", default_api_timeout_ms="500"):
            pass
    assert f"127.0.0.1:{ports[0]}: connection refused" in str(caught.value)
    assert f"127.0.0.1:{ports[1]}: connection refused" in str(caught.value)


async def test_what_waiting_cannot_change_fails_at_once() -> None:
    with pytest.raises(UnresolvableName, match=r"no-such-host\.invalid:9092: the name .* cannot be resolved"):
        async with fast_admin("no-such-host.invalid:9092", default_api_timeout_ms="60000"):
            pass
    async with ScriptedBroker(handlers={"ApiVersions": in_turn(lambda *_: b"HTTP/1.1 400")}) as broker:
        with pytest.raises(UnexpectedResponse, match="HTTP server"):
            async with fast_admin(broker.bootstrap_servers, default_api_timeout_ms="60000"):
                pass


def test_bad_arguments_are_refused_before_connecting() -> None:
    with pytest.raises(InvalidAddress):
        Admin("nonsense")
    with pytest.raises(IllegalArgument, match=r"request.timeout.ms=soon: a number of milliseconds is needed"):
        Admin("a:1", properties={"request.timeout.ms": "soon"})
    with pytest.raises(UnsupportedSecurity, match=r"sasl.mechanism=GSSAPI .* is not supported"):
        Admin("a:1", properties={"security.protocol": "SASL_SSL"})
    Admin("a:1", properties={"some.unknown.setting": "1", "security.protocol": "plaintext"})


def has_ipv6() -> bool:
    try:
        with socket.create_server(("::1", 0), family=socket.AF_INET6):
            return True
    except OSError:
        return False


@pytest.mark.parametrize(
    "host", ["localhost", pytest.param("::1", marks=pytest.mark.skipif(not has_ipv6(), reason="no IPv6"))]
)
async def test_names_and_ipv6(host: str) -> None:
    async with ScriptedBroker(host=host, handlers=LISTING) as broker, fast_admin(broker.bootstrap_servers) as admin:
        assert list((await admin.list_groups()).groups) == ["g"]


def test_on_uvloop() -> None:
    uvloop = pytest.importorskip("uvloop")

    async def listing() -> list[str]:
        async with scripted(LISTING) as (_, admin):
            return list((await admin.list_groups()).groups)

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        assert runner.run(listing()) == ["g"]


async def test_one_connection_is_enough_for_a_small_call() -> None:
    async with scripted(LISTING) as (broker, admin):
        await admin.list_groups()
        assert broker.connections == 1
        assert [each.api for each in broker.seen] == ["ApiVersions", "Metadata", "ListGroups"]


async def test_another_broker_is_asked_when_one_is_gone() -> None:
    first, second = ScriptedBroker(1, handlers=LISTING), ScriptedBroker(2, handlers=LISTING)
    async with admin_of(first, second) as admin:
        await admin.list_groups()
        second.peers = [second]
        await first.stop()
        assert (await admin.describe_topics()).done == {}
        assert list((await admin.list_groups()).groups) == ["g"]
        assert second.count("ListGroups") == 2


async def test_calls_under_way_follow_a_broker_that_moves() -> None:
    deleted = m.DeleteGroupsResponse(results=[m.DeletableGroupResult("g")])
    bootstrap = ScriptedBroker(1, handlers=LISTING)
    before = ScriptedBroker(2, handlers={"DeleteGroups": in_turn(Silence)})
    after = ScriptedBroker(2, handlers={**LISTING, "DeleteGroups": in_turn(deleted)})
    bootstrap.coordinator_by_group["g"] = 2
    async with after, admin_of(bootstrap, before) as admin:
        deleting = asyncio.create_task(admin.delete_consumer_groups(["g"]))
        await before.until("DeleteGroups")
        bootstrap.peers = before.peers = [bootstrap, after]
        await admin.list_groups()
        assert (await deleting).all() == {"g": None}


async def test_a_coordinator_that_metadata_left_out_is_found() -> None:
    first, second = ScriptedBroker(1, handlers=LISTING), ScriptedBroker(2, handlers=LISTING)
    first.coordinator_by_group["g"] = 2
    async with admin_of(first, second) as admin:
        await admin.list_groups()
        both = first.peers
        first.peers = [first]
        await admin.list_groups()
        first.peers = both
        assert (await admin.find_coordinators(["g"])).all()["g"].id == 2


async def test_a_broker_may_answer_after_metadata_left_it_out() -> None:
    described = asyncio.Event()

    async def describe(message: RootMessage, version: int) -> RootMessage:
        await described.wait()
        return m.DescribeGroupsResponse(groups=[DescribedGroup(group_id="g", group_state="Empty")])

    only_classic = {"ConsumerGroupDescribe": None}
    first = ScriptedBroker(1, handlers=LISTING)
    second = ScriptedBroker(2, handlers={**LISTING, "DescribeGroups": describe}, ranges=only_classic)
    first.coordinator_by_group["g"] = 2
    async with admin_of(first, second) as admin:
        describing = asyncio.create_task(admin.describe_consumer_groups(["g"]))
        await second.until("DescribeGroups")
        first.peers = second.peers = [first]
        await admin.list_groups()
        described.set()
        assert (await describing).all()["g"].coordinator.id == 2


async def test_old_connections_of_a_moved_broker_are_closed() -> None:
    first = ScriptedBroker(1, handlers=LISTING)
    old = ScriptedBroker(2, handlers=LISTING)
    new = ScriptedBroker(2, handlers=LISTING)
    async with new, admin_of(first, old) as admin:
        await admin.list_groups()
        first.peers = [first, new]
        await admin.list_groups()
        await admin.list_groups()
        assert (old.count("ListGroups"), new.count("ListGroups")) == (1, 2)
        await old.until_no_connection()


async def test_arguments_win_over_properties() -> None:
    async with ScriptedBroker(handlers=LISTING) as broker:
        properties = {"client.id": "from-properties", "request.timeout.ms": "1"}
        async with Admin(
            broker.bootstrap_servers,
            client_id="from-argument",
            request_timeout_ms=5000,
            default_timeout_ms=5000,
            properties=properties,
        ) as admin:
            await admin.list_groups()
        assert {each.client_id for each in broker.seen} == {"from-argument"}
        async with Admin(broker.bootstrap_servers, properties={"client.id": "from-properties"}):
            assert broker.seen[-1].client_id == "from-properties"


async def test_a_call_is_retried_on_a_new_connection() -> None:
    broker = ScriptedBroker(handlers=LISTING)
    broker.handlers["Metadata"] = in_turn(HangUp, broker.handlers["Metadata"])
    async with admin_of(broker) as admin:
        assert list((await admin.list_groups()).groups) == ["g"]
        assert broker.connections == 2


async def test_a_call_that_cannot_be_answered_ends_with_its_timeout() -> None:
    async with scripted({"Metadata": in_turn(HangUp)}) as (_, admin):
        with pytest.raises(CallTimedOut, match="describeTopics timed out after 1500 ms") as caught:
            await admin.describe_topics(timeout_ms=1500)
        assert isinstance(caught.value.__cause__, ConnectionFailed)
        with pytest.raises(BrokersNotFound, match="Failed to find brokers to send ListGroups"):  # K518-33
            await admin.list_groups(timeout_ms=50)


async def test_cancelling_leaves_nothing_behind() -> None:
    async with ScriptedBroker(handlers={"ListGroups": in_turn(Silence)}) as broker:
        before = asyncio.all_tasks()
        async with fast_admin(broker.bootstrap_servers) as admin:
            call = asyncio.create_task(admin.list_groups())
            await broker.until("ListGroups")
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            assert {task for task in asyncio.all_tasks() - before if "_accept" not in repr(task)} == set()


async def test_cancelling_while_connecting_leaves_nothing_behind() -> None:
    async with ScriptedBroker(handlers={"ApiVersions": in_turn(Silence)}) as broker:
        entering = asyncio.create_task(fast_admin(broker.bootstrap_servers).__aenter__())
        await broker.until("ApiVersions")
        entering.cancel()
        with pytest.raises(asyncio.CancelledError):
            await entering


async def test_closing_ends_calls_under_way() -> None:
    async with ScriptedBroker(handlers={"Metadata": in_turn(Silence)}) as broker:
        admin = await fast_admin(broker.bootstrap_servers).__aenter__()
        call = asyncio.create_task(admin.describe_topics())
        await broker.until("Metadata")
        await admin.close()
        with pytest.raises(ClientClosed):
            await call
        with pytest.raises(ClientClosed):
            await admin.list_groups()
        await admin.close()


async def test_the_oldest_metadata() -> None:
    # Version 0 has no controller and no "no topics": the brokers are learnt all the same.
    async with scripted(LISTING, ranges={"Metadata": (0, 0), "DescribeCluster": None}) as (broker, admin):
        cluster = await admin.describe_cluster()
        assert [node.port for node in cluster.nodes] == [broker.port]
        assert (cluster.cluster_id, cluster.controller) == (None, None)


def test_failures_are_two_families() -> None:
    assert not issubclass(KafkaError, ClientError)
    assert not issubclass(ClientError, KafkaError)


async def test_a_controller_is_told_from_a_broker() -> None:
    """Metadata is what each broker has, of any release; controllers have none for clients."""
    async with scripted(ranges={"Metadata": None}) as (_, admin):
        with pytest.raises(BrokersNotFound) as caught:
            await admin.list_groups()
    assert isinstance(caught.value.__cause__, NotABroker)
    problem = problem_of(caught.value)
    assert problem.error == "NOT_A_BROKER"
    assert problem.message == (
        "this is the address of a KRaft controller, which serves no clients: give a broker's address"
    )
