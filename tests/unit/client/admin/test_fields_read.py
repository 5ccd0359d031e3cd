"""What a broker answers, the client tells, or leaves out knowingly."""

import re
import sys
from pathlib import Path

import pytest

import groupkeeper.client.admin
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.primitives import Message

FOLDER = Path(groupkeeper.client.admin.__file__).parent
EVERYWHERE = {"throttle_time_ms", "topic_id"}
LEFT_OUT = {
    "OffsetFetchResponse": {"committed_offset", "committed_leader_epoch"},  # read by position, as they are many
    "DescribeLogDirsResponse": {"is_cordoned"},
    "InitProducerIdResponse": {"ongoing_txn_producer_id", "ongoing_txn_producer_epoch"},
    "StreamsGroupDescribeResponse": {"error_code", "error_message"},  # of a group: read with those of other types
    "CreateTopicsResponse": {"read_only", "config_source", "is_sensitive", "topic_config_error_code"},
    "DescribeClusterResponse": {"is_fenced", "endpoint_type"},
    "ShareGroupDescribeResponse": {"topic_partitions"},  # group_descriptions.py reads it
    "MetadataResponse": {"node_id"},  # of brokers: cluster.py reads it
}
"""Fields that the module of a call doesn't name. Records are all that is read of Fetch and Produce."""


def answers() -> list[tuple[str, str]]:
    """Each response, and the module that names it."""
    found = [
        (name, str(path.relative_to(FOLDER)))
        for path in sorted(FOLDER.rglob("*.py"))
        for name in sorted(set(re.findall(r"\b[A-Z]\w+Response\b", path.read_text())))
    ]
    return [pair for pair in found if pair[0] not in ("FetchResponse", "ProduceResponse")]


@pytest.mark.parametrize(("name", "module"), answers())
def test_each_field_of_an_answer_is_read_or_left_out(name: str, module: str) -> None:
    structs = vars(sys.modules[getattr(m, name).__module__]).values()
    fields = {field for one in structs if isinstance(one, type) and issubclass(one, Message) for field in one.__slots__}
    unread = (
        fields - set(re.findall(r"\.(\w+)", (FOLDER / module).read_text())) - EVERYWHERE - LEFT_OUT.get(name, set())
    )
    assert not unread, f"client/admin/{module} reads these of {name} for types.py, or LEFT_OUT has them: {unread}"
