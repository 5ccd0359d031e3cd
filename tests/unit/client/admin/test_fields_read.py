"""What a broker answers, the client tells, and what it can be asked, the client asks, or leaves out knowingly."""

import ast
import re
from collections import defaultdict
from pathlib import Path

import pytest
from tools.protocol.generate import SCHEMAS
from tools.protocol.schema import Message, load

import groupkeeper.client.admin
from groupkeeper.client.versions import BELOW_NEWEST
from groupkeeper.protocol.index import APIS

FOLDER = Path(groupkeeper.client.admin.__file__).parent
SRC = FOLDER.parents[1]
NOT_OF_CLIENTS = ("broker", "coordinator", "protocol", "testing")
EVERYWHERE = {"throttle_time_ms", "topic_id"}
LEFT_OUT = {
    "OffsetFetchResponse": {"committed_offset", "committed_leader_epoch"},  # read by position, as they are many
    "DescribeLogDirsResponse": {"is_cordoned"},
    "StreamsGroupDescribeResponse": {"error_code", "error_message"},  # of a group: read with those of other types
    "CreateTopicsResponse": {"read_only", "config_source", "is_sensitive", "topic_config_error_code"},
    "DescribeClusterResponse": {"is_fenced", "endpoint_type"},
    "ShareGroupDescribeResponse": {"topic_partitions"},  # group_descriptions.py reads it
    "MetadataResponse": {"node_id"},  # of brokers: cluster.py reads it
}
"""Fields of answers that the module of a call doesn't name. Records are all that is read of Fetch and Produce."""
_FILTER = {*"resource_name_filter pattern_type_filter principal_filter host_filter operation permission_type".split()}
NOT_ASKED = {
    "ApiVersionsRequest": {"cluster_id", "node_id"},  # any node that answers at an address is right
    "DeleteAclsRequest": _FILTER,  # by `*`
    "DeleteTopicsRequest": {"topic_id"},  # by name
    "DescribeAclsRequest": _FILTER,  # by `*`
    "DescribeClusterRequest": {"endpoint_type", "include_fenced_brokers"},  # brokers that can be asked
    "FetchRequest": {
        *("cluster_id", "current_leader_epoch", "last_fetched_epoch", "log_start_offset", "rack_id"),  # of followers
        *("session_id", "session_epoch", "forgotten_topics_data", "topic", "partitions"),  # each request is complete
    },
    "InitProducerIdRequest": {"producer_id", "producer_epoch"},  # of producers that go on
    "ListOffsetsRequest": {"current_leader_epoch"},
    "MetadataRequest": {"topic_id"},  # by name
    "OffsetCommitRequest": {"generation_id_or_member_epoch", "group_instance_id", "member_id"},  # from outside
    "OffsetFetchRequest": {"member_id", "member_epoch"},
    "WriteTxnMarkersRequest": {"transaction_version"},
}
"""Fields of requests that the client leaves at their defaults, or gives out of a tuple."""


def fields(message: Message) -> dict[str, set[str]]:
    """The fields of the version that the client uses at most, by struct."""
    assert message.key is not None
    version = BELOW_NEWEST.get(message.key, APIS[message.key][2])
    return {
        struct.name: {one.name for one in struct.fields if one.versions.low <= version <= one.versions.high}
        for struct in message.structs.values()
    }


def answers() -> list[tuple[str, str]]:
    """Each response, and the module that names it."""
    found = [
        (name, str(path.relative_to(FOLDER)))
        for path in sorted(FOLDER.rglob("*.py"))
        for name in sorted(set(re.findall(r"\b[A-Z]\w+Response\b", path.read_text())))
    ]
    return [pair for pair in found if pair[0] not in ("FetchResponse", "ProduceResponse")]


def given() -> dict[str, set[str]]:
    """The arguments of functions and classes in code that asks brokers, by their last names."""
    structs = [struct for message in REQUESTS.values() for struct in message.structs.values()]
    found: dict[str, set[str]] = defaultdict(set)
    for path in sorted(SRC.rglob("*.py")):
        of_path = ast.walk(ast.parse(path.read_text())) if path.relative_to(SRC).parts[0] not in NOT_OF_CLIENTS else ()
        for node in of_path:
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute):
                name = node.func.id if isinstance(node.func, ast.Name) else node.func.attr
                found[name] |= {one.arg for one in node.keywords if one.arg is not None}
                for struct in structs:
                    if struct.name == name:
                        found[name] |= {one.name for one in struct.fields[: len(node.args)]}
    return found


MESSAGES = {message.name: message for message in load(SCHEMAS.read_text())}
REQUESTS = {name: message for name, message in MESSAGES.items() if message.kind == "request"}
GIVEN = given()


@pytest.mark.parametrize(("name", "module"), answers())
def test_each_field_of_an_answer_is_read_or_left_out(name: str, module: str) -> None:
    of_answer = set().union(*fields(MESSAGES[name]).values())
    unread = of_answer - set(re.findall(r"\.(\w+)", (FOLDER / module).read_text())) - EVERYWHERE
    assert unread == LEFT_OUT.get(name, set()), (
        f"client/admin/{module} reads these of {name} for types.py, or LEFT_OUT has them, and only them: {unread}"
    )


@pytest.mark.parametrize("name", [name for name in REQUESTS if name in GIVEN])
def test_each_field_of_a_request_is_given_or_left_out(name: str) -> None:
    left = set().union(*(names - GIVEN[struct] for struct, names in fields(REQUESTS[name]).items()))
    assert left == NOT_ASKED.get(name, set()), f"give these where {name} is made, or NOT_ASKED has them, and only them"


def test_each_version_below_the_newest_is_one() -> None:
    assert [key for key, version in BELOW_NEWEST.items() if version >= APIS[key][2]] == []
