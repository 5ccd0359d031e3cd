"""Calls on groups: coordinators found, moved, loading, lost; one broken group never breaks the rest."""

import asyncio

import pytest
from tests.unit.client.scripted_broker import (
    Handler,
    HangUp,
    ScriptedBroker,
    Silence,
    admin_of,
    cluster_of,
    fast_admin,
    in_turn,
    scripted,
)

from groupkeeper.client.errors import CallTimedOut, ConnectionFailed, MissingResult, ResponseTooLarge, Unrepresentable
from groupkeeper.protocol import errors
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.primitives import RootMessage


def deletion(**code_by_group: int) -> Handler:
    """Answers DeleteGroups: 0 for every group, or the code given for it."""

    def handle(message: m.DeleteGroupsRequest, version: int) -> RootMessage:
        results = [m.DeletableGroupResult(group, code_by_group.get(group, 0)) for group in message.groups_names]
        return m.DeleteGroupsResponse(results=results)

    return handle


async def test_groups_go_to_their_coordinators_in_batches() -> None:
    handlers = {"DeleteGroups": deletion()}
    first, second = ScriptedBroker(1, handlers=handlers), ScriptedBroker(2, handlers=handlers)
    groups = [f"g{index}" for index in range(250)]
    first.coordinator_by_group.update({group: 1 + index % 2 for index, group in enumerate(groups)})
    async with admin_of(first, second) as admin:
        batch = await admin.delete_consumer_groups(groups)
    assert list(batch.all()) == groups
    assert first.count("FindCoordinator") + second.count("FindCoordinator") == 1  # KIP-699, K88-45
    assert [len(message.groups_names) for _, message in second.asked("DeleteGroups")] == [100, 25]  # type: ignore[attr-defined]


async def test_a_loading_coordinator_is_asked_again_in_place() -> None:
    # K88-43, K496-44, GD-05
    async with scripted({"DeleteGroups": in_turn(deletion(a=14), deletion(a=14), deletion())}) as (broker, admin):
        assert (await admin.delete_consumer_groups(["a", "b"])).all() == {"a": None, "b": None}
        assert broker.count("FindCoordinator") == 1
        asked = [list(message.groups_names) for _, message in broker.asked("DeleteGroups")]  # type: ignore[attr-defined]
        assert asked == [["a", "b"], ["a"], ["a"]]


@pytest.mark.parametrize("code", [15, 16])
async def test_a_moved_coordinator_is_looked_up_again(code: int) -> None:
    # K88-43, K496-44, GD-05
    async with (
        ScriptedBroker(1, handlers={"DeleteGroups": deletion(a=code)}) as first,
        ScriptedBroker(2, handlers={"DeleteGroups": deletion()}) as second,
    ):
        cluster_of(first, second)
        first.coordinator_by_group["b"] = 1
        finding = first._answer_find_coordinator
        moved = m.FindCoordinatorResponse(coordinators=[m.Coordinator("a", 2, second.host, second.port, 0, None)])
        first.handlers["FindCoordinator"] = in_turn(finding, moved)
        second.handlers["FindCoordinator"] = in_turn(moved)
        async with fast_admin(first.bootstrap_servers) as admin:
            assert (await admin.delete_consumer_groups(["a", "b"])).all() == {"a": None, "b": None}
    assert second.count("DeleteGroups") == 1


async def test_a_remembered_coordinator_may_be_wrong() -> None:
    first = ScriptedBroker(1, handlers={"DeleteGroups": in_turn(deletion(), deletion(a=16))})
    second = ScriptedBroker(2, handlers={"DeleteGroups": deletion()})
    async with admin_of(first, second) as admin:
        await admin.delete_consumer_groups(["a"])
        first.coordinator_by_group["a"] = 2
        assert (await admin.delete_consumer_groups(["a"])).all() == {"a": None}
    assert first.count("FindCoordinator") + second.count("FindCoordinator") == 2


async def test_retries_end_with_the_timeout() -> None:
    async with scripted({"DeleteGroups": deletion(a=16)}) as (_, admin):
        batch = await admin.delete_consumer_groups(["a", "b"], timeout_ms=2000)
    assert batch.done == {"b": None}
    failure = batch.failed["a"]
    assert isinstance(failure, CallTimedOut)
    assert isinstance(failure.__cause__, errors.NotCoordinator)
    assert "deleteConsumerGroups timed out after 2000 ms" in str(failure)


async def test_a_lost_connection_is_made_again() -> None:
    async with scripted({"DeleteGroups": in_turn(HangUp, HangUp, deletion())}) as (_, admin):
        assert (await admin.delete_consumer_groups(["a"])).all() == {"a": None}


async def test_a_dead_coordinator_fails_only_its_groups() -> None:
    handlers = {"DeleteGroups": deletion()}
    first, second = ScriptedBroker(1, handlers=handlers), ScriptedBroker(2)
    first.coordinator_by_group.update(a=1, b=2)
    async with admin_of(first, second) as admin:
        await second.stop()
        batch = await admin.delete_consumer_groups(["a", "b"], timeout_ms=2000)
    assert batch.done == {"a": None}
    failure = batch.failed["b"]
    assert isinstance(failure, CallTimedOut)
    assert isinstance(failure.__cause__, ConnectionFailed)


async def test_a_hanging_coordinator_fails_only_its_groups() -> None:
    first = ScriptedBroker(1, handlers={"DeleteGroups": deletion()})
    second = ScriptedBroker(2, handlers={"DeleteGroups": in_turn(Silence)})
    first.coordinator_by_group.update(a=1, b=2)
    async with admin_of(first, second, request_timeout_ms="500") as admin:
        batch = await admin.delete_consumer_groups(["a", "b"], timeout_ms=3000)
    assert batch.done == {"a": None}
    assert isinstance(batch.failed["b"], CallTimedOut)
    assert second.count("DeleteGroups") >= 2


async def test_a_hanging_coordinator_takes_no_place_from_others() -> None:
    first = ScriptedBroker(1, handlers={"DeleteGroups": in_turn(Silence)})
    second = ScriptedBroker(2, handlers={"DeleteGroups": deletion()})
    hanging = [f"a{index}" for index in range(2000)]
    answered = [f"b{index}" for index in range(2000)]
    first.coordinator_by_group.update(dict.fromkeys(hanging, 1) | dict.fromkeys(answered, 2))
    async with admin_of(first, second) as admin:
        batch = await admin.delete_consumer_groups(hanging + answered, timeout_ms=4000)
    assert list(batch.done) == answered
    assert list(batch.failed) == hanging


async def test_a_group_left_out_of_the_answer() -> None:
    results = [m.DeletableGroupResult("a", 0)]
    async with scripted({"DeleteGroups": in_turn(m.DeleteGroupsResponse(results=results))}) as (_, admin):
        batch = await admin.delete_consumer_groups(["a", "b"])
    assert batch.done == {"a": None}
    assert isinstance(batch.failed["b"], MissingResult)


async def test_repeated_groups_are_asked_once() -> None:
    async with scripted({"DeleteGroups": deletion()}) as (_, admin):
        assert list((await admin.delete_consumer_groups(["a", "b", "a"])).all()) == ["a", "b"]
        assert (await admin.delete_consumer_groups([])).all() == {}


async def test_coordinators_are_found_one_by_one_on_old_brokers() -> None:
    # K88-45: FindCoordinator below 4 takes one key.
    async with scripted({"DeleteGroups": deletion()}, ranges={"FindCoordinator": (0, 3)}) as (broker, admin):
        groups = [f"g{index}" for index in range(50)]
        assert list((await admin.delete_consumer_groups(groups)).all()) == groups
        found = {message.key for _, message in broker.asked("FindCoordinator")}  # type: ignore[attr-defined]
        assert found == set(groups)


async def test_lookups_that_fail() -> None:
    # GD-06
    def find(message: m.FindCoordinatorRequest, version: int) -> RootMessage:
        codes = {"secret": 30, "odd": 42}
        return m.FindCoordinatorResponse(
            coordinators=[
                m.Coordinator(key, 0, broker.host, broker.port, codes.get(key, 0)) for key in message.coordinator_keys
            ]
        )

    async with ScriptedBroker(handlers={"DeleteGroups": deletion()}) as broker:
        none_yet = m.FindCoordinatorResponse(
            coordinators=[m.Coordinator(key, -1, "", -1, 15) for key in ("secret", "odd", "fine")]
        )
        broker.handlers["FindCoordinator"] = in_turn(none_yet, find)
        async with fast_admin(broker.bootstrap_servers) as admin:
            batch = await admin.delete_consumer_groups(["secret", "odd", "fine"])
            assert batch.done == {"fine": None}
            assert batch.failed["secret"] == errors.GroupAuthorizationFailed(
                "FindCoordinator request for groupId `secret` failed due to authorization failure"
            )
            assert "`odd` failed due to an unexpected error" in str(batch.failed["odd"])
            coordinators = await admin.find_coordinators(["fine"])
            assert coordinators.all()["fine"].port == broker.port


async def test_no_coordinator_until_the_timeout() -> None:
    nowhere = m.FindCoordinatorResponse(coordinators=[m.Coordinator("a", -1, "", -1, 15)])
    async with scripted({"FindCoordinator": in_turn(nowhere)}) as (_, admin):
        failure = (await admin.delete_consumer_groups(["a"], timeout_ms=1500)).failed["a"]
    assert isinstance(failure.__cause__, errors.CoordinatorNotAvailable)


async def test_answers_that_are_too_large_are_asked_for_in_parts() -> None:
    def handle(message: m.DeleteGroupsRequest, version: int) -> RootMessage | bytes:
        if len(message.groups_names) > 3:
            return b"\x7f\xff\xff\xff"
        return deletion()(message, version)  # type: ignore[return-value]

    groups = [f"g{index}" for index in range(10)]
    async with scripted({"DeleteGroups": handle}) as (_, admin):
        assert list((await admin.delete_consumer_groups(groups)).all()) == groups
    async with scripted({"DeleteGroups": in_turn(lambda *_: b"\x7f\xff\xff\xff")}) as (_, admin):
        assert isinstance((await admin.delete_consumer_groups(["a"])).failed["a"], ResponseTooLarge)


async def test_a_name_without_a_form_on_the_wire_fails_alone() -> None:
    async with scripted({"DeleteGroups": deletion()}) as (_, admin):
        batch = await admin.delete_consumer_groups(["a", "\ud800", "b"])
        assert list(batch.done) == ["a", "b"]
        assert isinstance(batch.failed["\ud800"], Unrepresentable)
        with pytest.raises(Unrepresentable):
            await admin.describe_topics(["\ud800"])


async def test_cancelling_a_batch_leaves_nothing_behind() -> None:
    async with scripted({"DeleteGroups": in_turn(Silence)}) as (broker, admin):
        before = asyncio.all_tasks()
        call = asyncio.create_task(admin.delete_consumer_groups([f"g{index}" for index in range(2000)]))
        await broker.until("DeleteGroups", 4)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert {task for task in asyncio.all_tasks() - before if "_accept" not in repr(task)} == set()
