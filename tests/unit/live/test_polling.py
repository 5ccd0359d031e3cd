"""A look at a cluster of which some brokers fail."""

import asyncio
import time

import pytest
from tests.unit.client.scripted_broker import Handler, ScriptedBroker, admin_of, in_turn
from tests.unit.client.test_log_offsets import listed
from tests.unit.operations.test_lag import committed, described

from groupkeeper.client.admin import Admin
from groupkeeper.client.admin.types import GroupState
from groupkeeper.live.cluster_poll import Polled, Unlisted, WantedGroups, poll
from groupkeeper.live.model import Polls
from groupkeeper.live.standings import Following
from groupkeeper.live.waits import Waits
from groupkeeper.operations.lag import lag_at_an_instant
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.errors import CoordinatorNotAvailable
from groupkeeper.protocol.primitives import RootMessage

WANTED = WantedGroups(reads_records=False)
REFUSES = m.ListGroupsResponse(error_code=15)


def lists(*names: str) -> RootMessage:
    return m.ListGroupsResponse(groups=[m.ListedGroup(name, "consumer", "Empty", "Consumer") for name in names])


def broker(node_id: int, *listings: RootMessage) -> ScriptedBroker:
    handlers: dict[str, Handler] = {
        "ListGroups": in_turn(*listings),
        "ConsumerGroupDescribe": described,
        "OffsetFetch": committed({"t": [4]}),
        "ListOffsets": listed(10),
    }
    return ScriptedBroker(node_id, handlers=handlers, ranges={"DescribeCluster": None, "DescribeConfigs": None})


async def look(admin: Admin, following: Following) -> Polled:
    return await poll(admin, "prod", WANTED, following, Unlisted(), Waits(reads_records=False), Polls(), within_s=10)


async def test_groups_of_a_broker_that_lists_none_are_asked_for_by_name() -> None:
    first, second = broker(1, lists("a")), broker(2, lists("b"), REFUSES)
    first.topics["t"] = [1]
    first.coordinator_by_group.update(a=1, b=2)
    async with admin_of(first, second, default_api_timeout_ms="2000") as admin:
        following = Following()
        await look(admin, following)
        first.coordinator_by_group["b"] = 1  # it has moved, and its new coordinator isn't asked what it has
        found = await look(admin, following)
    assert list(found.snapshot.groups) == ["a", "b"]
    assert [group.lag.lag for group in found.snapshot.groups.values()] == [6, 6]
    assert found.snapshot.groups["b"].group_state is GroupState.EMPTY
    assert [(problem.error, problem.broker) for problem in found.snapshot.problems] == [("CALL_TIMED_OUT", 2)]


async def test_an_offset_past_the_end_is_a_problem_and_not_nothing_to_read() -> None:
    only = broker(1, lists("a"))
    only.topics["t"] = [1]
    only.handlers["ListOffsets"] = listed(3)
    async with admin_of(only) as admin:
        found = await look(admin, Following())
    group = found.snapshot.groups["a"]
    assert (group.lag.lag, group.lag.beyond, group.lag.is_least) == (0, 1, True)
    [problem] = group.problems
    assert (problem.error, problem.topic, problem.partition) == ("BEYOND_LOG_END", "t", 0)
    assert problem.message.startswith("the committed offset, 4, is past the end of the log, 3: ")


async def test_a_cluster_of_which_no_broker_lists_its_groups_is_not_known() -> None:
    async with admin_of(broker(1, REFUSES), default_api_timeout_ms="300") as admin:
        with pytest.raises(Exception, match="listGroups") as refused:
            await look(admin, Following())
        assert isinstance(refused.value.__cause__, CoordinatorNotAvailable)


async def test_the_instant_is_when_the_ends_are_asked_for() -> None:
    """What was acknowledged by then is before them; a slow answer to what is asked before must not make it earlier."""
    asked_ms: dict[int, float] = {}

    async def slowly(message: m.ListOffsetsRequest, version: int) -> RootMessage:
        [kind] = {each.timestamp for topic in message.topics for each in topic.partitions}
        asked_ms[kind] = time.time() * 1000
        await asyncio.sleep(0.05)
        answer = listed(10)(message, version)
        assert isinstance(answer, RootMessage)
        return answer

    only = broker(1, lists("a"))
    only.handlers["ListOffsets"] = slowly
    only.topics["t"] = [1]
    async with admin_of(only) as admin:
        measured_ms, lag = await lag_at_an_instant(admin, ["a"])
    earliest, latest = -2, -1
    assert lag.rows["a"][0].lag == 6
    assert asked_ms[earliest] + 49 <= measured_ms <= asked_ms[latest] + 1
