"""Calls that a broker is too old for: the error names the API and the Kafka that brought it."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from tests.unit.client.scripted_broker import KEY_BY_NAME, scripted

from groupkeeper.client.admin import Admin
from groupkeeper.client.admin.resources.access_types import QuotaEntity, ScramMechanism, ScramRemoval
from groupkeeper.client.admin.resources.types import ConfigResource, ProducerState
from groupkeeper.client.admin.types import TopicPartition
from groupkeeper.client.errors import UnsupportedVersion

PLACE = TopicPartition("t", 0)
CALLS: dict[str, tuple[str, Callable[[Admin], Awaitable[Any]]]] = {
    "IncrementalAlterConfigs": ("2.3", lambda admin: admin.alter_configs({ConfigResource.topic("t"): {}})),
    "DescribeClientQuotas": ("2.6", lambda admin: admin.describe_client_quotas()),
    "AlterClientQuotas": ("2.6", lambda admin: admin.alter_client_quotas({QuotaEntity(user="a"): {}})),
    "DescribeUserScramCredentials": ("2.7", lambda admin: admin.describe_scram_users()),
    "AlterUserScramCredentials": (
        "2.7",
        lambda admin: admin.alter_scram_users({"a": ScramRemoval(ScramMechanism.SCRAM_SHA_256)}),
    ),
    "DescribeProducers": ("2.8", lambda admin: admin.describe_producers([PLACE])),
    "WriteTxnMarkers": ("2.8", lambda admin: admin.abort_transaction(PLACE, ProducerState(1, 0))),
    "DescribeTransactions": ("3.0", lambda admin: admin.describe_transactions(["t"])),
    "ListTransactions": ("3.0", lambda admin: admin.list_transactions()),
}


@pytest.mark.parametrize("api", CALLS)
async def test_a_broker_that_lacks_the_api(api: str) -> None:
    release, call = CALLS[api]
    constant = "".join(f"_{sign}" if sign.isupper() else sign.upper() for sign in api).lstrip("_")
    assert api in KEY_BY_NAME
    async with scripted(ranges={api: None}) as (broker, admin):
        broker.topics = {"t": [0]}
        with pytest.raises(UnsupportedVersion) as refused:
            (await call(admin)).all()
    assert str(refused.value) == f"The node does not support {constant}. Kafka has it from {release} on."
