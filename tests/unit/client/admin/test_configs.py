"""Configs, as far as it takes several brokers, or old ones."""

import pytest
from tests.unit.client.scripted_broker import HangUp, ScriptedBroker, admin_of, in_turn, scripted

from groupkeeper.client.admin.resources.types import Config, ConfigResource, ConfigSource, ConfigType
from groupkeeper.client.errors import IllegalArgument
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.primitives import RootMessage


def told(message: m.DescribeConfigsRequest, version: int) -> RootMessage:
    """Each resource has a config with its own name as value."""

    def result(of: m.DescribeConfigsResource) -> m.DescribeConfigsResult:
        config = m.DescribeConfigsResourceResult("a", of.resource_name, config_source=77, config_type=77)
        return m.DescribeConfigsResult(0, None, of.resource_type, of.resource_name, [config])

    return m.DescribeConfigsResponse(results=[result(each) for each in message.resources])


async def test_each_broker_is_asked_for_its_own_configs() -> None:
    first = ScriptedBroker(1, handlers={"DescribeConfigs": told})
    second = ScriptedBroker(2, handlers={"DescribeConfigs": in_turn(HangUp, told)})
    async with admin_of(first, second) as admin:
        brokers = [ConfigResource.broker(2), ConfigResource.broker_logger(1), ConfigResource.broker(1)]
        described = await admin.describe_configs([*brokers, ConfigResource.topic("t")])
    assert described.failed == {}
    assert list(described.done) == [*brokers, ConfigResource.topic("t")]
    assert described.done[brokers[0]]["a"] == Config("a", "2", ConfigSource.UNKNOWN, type=ConfigType.UNKNOWN)
    asked = [resource for _, each in second.asked("DescribeConfigs") for resource in each.resources]  # type: ignore[attr-defined]
    assert {(each.resource_type, each.resource_name) for each in asked} == {(4, "2")}


async def test_what_names_no_broker_is_refused() -> None:
    async with scripted() as (_, admin):
        with pytest.raises(IllegalArgument, match="a broker is named by its id, not 'one'"):
            await admin.describe_configs([ConfigResource.broker(0)._replace(name="one")])
