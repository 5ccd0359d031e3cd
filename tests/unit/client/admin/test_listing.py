"""list_groups: all brokers merged, filters, old versions."""

import asyncio

import pytest
from tests.unit.client.scripted_broker import HangUp, ScriptedBroker, Silence, admin_of, in_turn, newest, scripted

from groupkeeper.client.admin.types import GroupListing, GroupState, GroupType
from groupkeeper.client.errors import CallTimedOut, UnsupportedVersion
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.errors import CoordinatorLoadInProgress, UnknownServerError
from groupkeeper.protocol.primitives import RootMessage

GROUPS = [
    m.ListedGroup("simple", "", "Empty", "Classic"),
    m.ListedGroup("workers", "connect", "Stable", "classic"),
    m.ListedGroup("readers", "consumer", "Stable", "Classic"),
    m.ListedGroup("modern", "consumer", "Reconciling", "Consumer"),
    m.ListedGroup("shared", "share", "Empty", "Share"),
    m.ListedGroup("future", "x", "Dancing", "Quantum"),
]


def answer(message: m.ListGroupsRequest, version: int) -> RootMessage:
    if version >= 5:
        return m.ListGroupsResponse(groups=GROUPS)
    groups = [m.ListedGroup(each.group_id, each.protocol_type, each.group_state) for each in GROUPS]
    if version < 4:
        groups = [m.ListedGroup(each.group_id, each.protocol_type) for each in groups]
    return m.ListGroupsResponse(groups=groups)


async def test_listings_are_typed() -> None:
    # K518-31, K518-35
    async with scripted({"ListGroups": answer}) as (_, admin):
        groups = (await admin.list_groups()).all()
    assert groups["simple"] == GroupListing("simple", "", GroupState.EMPTY, GroupType.CLASSIC)
    assert groups["simple"].is_simple
    assert not groups["readers"].is_simple
    assert not groups["shared"].is_simple
    assert groups["workers"].group_type is GroupType.CLASSIC
    assert groups["future"] == GroupListing("future", "x", GroupState.UNKNOWN, GroupType.UNKNOWN)
    assert str(groups["modern"].group_state) == "Reconciling"


async def test_filters_are_sent_as_names() -> None:
    # K518-30, K518-34
    async with scripted({"ListGroups": answer}) as (broker, admin):
        await admin.list_groups(states=[GroupState.STABLE, "Empty"], types=[GroupType.CONSUMER])
        assert broker.asked("ListGroups") == [newest(m.ListGroupsRequest(["Stable", "Empty"], ["Consumer"]))]


async def test_protocol_types_are_filtered_here() -> None:
    # K518-32
    async with scripted({"ListGroups": answer}) as (_, admin):
        listings = await admin.list_groups(types=["Classic", "Consumer"], protocol_types=["", "consumer"])
        assert list(listings.groups) == ["simple", "readers", "modern"]


async def test_brokers_are_merged_and_failures_kept_apart() -> None:
    # K518-33
    one = {"ListGroups": in_turn(m.ListGroupsResponse(groups=[m.ListedGroup("a"), m.ListedGroup("b")]))}
    groups = [m.ListedGroup("c")]
    two = {"ListGroups": in_turn(m.ListGroupsResponse(error_code=14), m.ListGroupsResponse(groups=groups))}
    three = {"ListGroups": in_turn(m.ListGroupsResponse(error_code=-1))}
    four = {"ListGroups": in_turn(HangUp)}
    first = ScriptedBroker(1, handlers=one)
    second = ScriptedBroker(2, handlers=two)
    third = ScriptedBroker(3, handlers=three)
    fourth = ScriptedBroker(4, handlers=four)
    async with admin_of(first, second, third, fourth) as admin:
        listings = await admin.list_groups(timeout_ms=3000)
    assert list(listings.groups) == ["a", "b", "c"]
    failed = {node.id: failure for node, failure in listings.failed.items()}
    assert failed[3] == UnknownServerError()
    assert isinstance(failed[4], CallTimedOut)
    with pytest.raises(UnknownServerError):
        listings.all()


async def test_loading_is_waited_for_until_the_timeout() -> None:
    # K518-33, K518-65
    async with scripted({"ListGroups": in_turn(m.ListGroupsResponse(error_code=14))}) as (broker, admin):
        [failure] = (await admin.list_groups(timeout_ms=1500)).failed.values()
        assert broker.count("ListGroups") > 1
    assert isinstance(failure.__cause__, CoordinatorLoadInProgress)


async def test_a_hanging_broker_does_not_take_the_others_away() -> None:
    first = ScriptedBroker(1, handlers={"ListGroups": answer})
    second = ScriptedBroker(2, handlers={"ListGroups": in_turn(Silence)})
    async with admin_of(first, second) as admin:
        listings = await admin.list_groups(timeout_ms=2000)
    assert len(listings.groups) == len(GROUPS)
    assert [node.id for node in listings.failed] == [2]


async def test_a_broker_that_moves_is_asked_at_its_new_address() -> None:
    stays = ScriptedBroker(1, handlers={"ListGroups": answer})
    left = ScriptedBroker(2, handlers={"ListGroups": in_turn(HangUp)})
    came = ScriptedBroker(2, handlers={"ListGroups": answer})
    async with came, admin_of(stays, left) as admin:
        listing = asyncio.create_task(admin.list_groups())
        await left.until("ListGroups", 2)
        stays.peers = left.peers = [stays, came]
        assert (await listing).failed == {}
    assert came.count("ListGroups") == 1


async def test_states_need_version_4() -> None:
    # K518-60, E2E-06
    async with scripted({"ListGroups": answer}, ranges={"ListGroups": (0, 3)}) as (broker, admin):
        [failure] = (await admin.list_groups(states=["Stable"])).failed.values()
        assert isinstance(failure, UnsupportedVersion)
        assert str(failure) == (
            "The broker only supports ListGroups v3, but we need v4 or newer to request groups by states."
        )
        assert broker.count("ListGroups") == 0
        # K518-62: without a filter any version works, and the state is not known.
        groups = (await admin.list_groups()).all()
        assert groups["readers"] == GroupListing("readers", "consumer", None, None)


@pytest.mark.parametrize("types", [["Classic"], ["Classic", "Consumer"], ["consumer", "classic"]])
async def test_types_of_old_brokers_are_classic(types: list[str]) -> None:
    # K518-61
    async with scripted({"ListGroups": answer}, ranges={"ListGroups": (0, 4)}) as (broker, admin):
        groups = (await admin.list_groups(types=types, states=["Stable"])).all()
        assert groups["readers"] == GroupListing("readers", "consumer", GroupState.STABLE, None)
        assert broker.asked("ListGroups") == [(4, m.ListGroupsRequest(["Stable"], []))]


async def test_other_types_need_version_5() -> None:
    # K518-61
    async with scripted({"ListGroups": answer}, ranges={"ListGroups": (0, 4)}) as (_, admin):
        [failure] = (await admin.list_groups(types=["Consumer", GroupType.SHARE])).failed.values()
    assert str(failure) == (
        "The broker only supports ListGroups v4, but we need v5 or newer to request groups by type. "
        "Requested group types: [Consumer, Share]."
    )


async def test_groups_that_are_gone_are_forgotten() -> None:
    """A client that runs for weeks would otherwise remember every group that there ever was."""
    listings = [m.ListGroupsResponse(groups=[m.ListedGroup(name, "", "Empty", "Classic")]) for name in ("a", "b", "c")]
    failing = m.ListGroupsResponse(error_code=-1)
    handlers = {"ListGroups": in_turn(listings[0], listings[1], failing, listings[2], listings[2])}
    async with scripted(handlers) as (_, admin):
        remembered = []
        for states in ((), (), (), ("Empty",), ()):
            await admin.list_groups(states=states)
            remembered.append((sorted(admin._cluster.coordinators), sorted(admin._cluster.classic_groups)))
    # After a failure, or of some states only, it isn't known which are gone.
    names = [["a"], ["b"], ["b"], ["b", "c"], ["c"]]
    assert remembered == [(each, each) for each in names]
