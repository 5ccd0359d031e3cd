"""Each field of a request or an answer is used at both ends, in the newest version that they use, or is listed here.

A field counts as used where a module that names the message reads, or gives to a struct of it, a field of that name.
"""

import ast
import re
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tools.protocol.generate import SCHEMAS
from tools.protocol.schema import Message, load, snake

import groupkeeper
from groupkeeper.broker.api_table import TABLE
from groupkeeper.client.versions import BELOW_NEWEST
from groupkeeper.protocol.index import APIS

NOT_ASKED = {
    "ApiVersionsRequest": "cluster_id node_id",  # whoever answers at an address is right
    "DescribeClusterRequest": "endpoint_type include_fenced_brokers",
    "FetchRequest": "cluster_id current_leader_epoch forgotten_topics_data last_fetched_epoch log_start_offset "
    "partitions rack_id session_epoch session_id topic",  # no follower, and no session
    "InitProducerIdRequest": "producer_epoch producer_id",
    "ListOffsetsRequest": "current_leader_epoch",
    "OffsetCommitRequest": "generation_id_or_member_epoch group_instance_id member_id",  # from outside of the group
    "OffsetFetchRequest": "member_epoch member_id",
    "WriteTxnMarkersRequest": "transaction_version",
}
"""What the client leaves at its default in requests."""

NOT_TOLD = {
    "ApiVersionsResponse": "error_code finalized_features finalized_features_epoch max_version_level min_version_level "
    "name supported_features zk_migration_ready",
    "CreateTopicsResponse": "config_source is_sensitive read_only topic_config_error_code",
    "DescribeClusterResponse": "endpoint_type is_fenced",
    "DescribeLogDirsResponse": "is_cordoned",
    "FetchResponse": "current_leader diverging_epoch end_offset epoch leader_epoch leader_id log_start_offset "
    "preferred_read_replica session_id snapshot_id",
    "OffsetFetchResponse": "committed_leader_epoch committed_offset metadata",  # read by position, as they are many
    "ProduceResponse": "batch_index batch_index_error_message current_leader host leader_epoch leader_id "
    "log_append_time_ms log_start_offset node_endpoints node_id port rack record_errors",
    "StreamsGroupDescribeResponse": "error_code error_message",  # read with those of other types
}
"""What the client does not read of answers. Of a call without a result (`Batch[…, None]`) it reads errors only."""

NOT_READ = {
    "AddRaftVoterRequest": "ack_when_committed host listeners name port timeout_ms voter_directory_id voter_id",
    **dict.fromkeys(
        "AlterPartitionReassignmentsRequest CreatePartitionsRequest CreateTopicsRequest DeleteRecordsRequest "
        "DeleteTopicsRequest ElectLeadersRequest ListPartitionReassignmentsRequest UpdateFeaturesRequest".split(),
        "timeout_ms",  # it is done at once
    ),
    "DescribeClusterRequest": "include_fenced_brokers",
    "FetchRequest": "cluster_id replica_directory_id replica_epoch",  # of Apache Kafka's followers
    "JoinGroupRequest": "reason",
    "LeaveGroupRequest": "reason",
    "ListOffsetsRequest": "replica_id timeout_ms",
    "OffsetForLeaderEpochRequest": "replica_id",
    "RemoveRaftVoterRequest": "voter_directory_id voter_id",
    "StreamsGroupHeartbeatRequest": "offset task_end_offsets task_offsets",
    "UnregisterControllerRequest": "controller_id",
}
"""What the broker takes no notice of in requests: texts for a log, and what other kinds of clusters do."""

NOT_ANSWERED = {
    "ApiVersionsResponse": "zk_migration_ready",
    "DescribeClusterResponse": "endpoint_type",
    "DescribeLogDirsResponse": "is_cordoned",
    "DescribeQuorumResponse": "high_watermark log_end_offset observers replica_directory_id",
    "FetchResponse": "end_offset snapshot_id",
    "StreamsGroupDescribeResponse": "is_classic offset partition subtopology_id task_end_offsets task_offsets",
}
"""What the broker leaves at its default in answers."""

MADE = {
    "classic_groups": "LeaveGroupRequest",  # in the newest form, of versions below 3
    "offset_fetch": "OffsetFetchRequestGroup OffsetFetchRequestTopic OffsetFetchRequestTopics",  # below 8, and of names
}
"""The structs of requests that modules of `apis` make."""

OF_CLIENT = {"throttle_time_ms", "topic_id"}
"""What the client needs nowhere: it knows topics by name."""

OF_SERVER = {"throttle_time_ms", "error_code", "error_message"}
"""What every answer of the broker has from elsewhere."""


@dataclass(frozen=True)
class Source:
    """A module that names messages, as classes or modules: which fields it reads, and gives.

    Attributes:
        given: by the name of what is called, or "" for attributes that are set; `*` is anything.
        counts: how many arguments have no name, at most.
    """

    path: Path
    messages: set[str]
    read: set[str]
    given: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    counts: dict[str, int] = field(default_factory=lambda: defaultdict(int))

    @property
    def is_of_broker(self) -> bool:
        return self.path.parts[0] in ("broker", "coordinator")


def source_of(path: Path) -> Source:
    text = path.read_text()
    messages = {*re.findall(r"\b(?:[A-Z]\w+?(?:Request|Response)|[a-z_]+_(?:request|response)\b)", text)}
    source = Source(path.relative_to(FOLDER), messages, {*re.findall(r"\.(\w+)", text)})
    for node in ast.walk(ast.parse(text)) if messages else ():
        passed: list[ast.expr] = []
        if isinstance(node, ast.Call):
            name = name_of(node.func)
            source.counts[name] = max(source.counts[name], len(node.args))
            source.given[name].update(one.arg or "*" for one in node.keywords)
            source.given[name].update("*" for one in node.args if isinstance(one, ast.Starred))
            if name not in ("isinstance", "cast"):
                passed = [*node.args, *(one.value for one in node.keywords)]
        elif isinstance(node, ast.Assign):
            source.given[""].update(one.attr for one in node.targets if isinstance(one, ast.Attribute))
            passed = [node.value]
        for one in passed:  # a class that is called under another name
            source.given[name_of(one)].add("*")
    return source


def name_of(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


FOLDER = Path(groupkeeper.__file__).parent
SOURCES = [source_of(path) for path in sorted(FOLDER.rglob("*.py")) if path.relative_to(FOLDER).parts[0] != "protocol"]
MESSAGES = {one.name: one for one in load(SCHEMAS.read_text()) if one.kind in ("request", "response")}


def named_in(message: Message, *, of_broker: bool) -> list[Source]:
    names = {message.name, snake(message.name)}
    return [source for source in SOURCES if source.is_of_broker == of_broker and source.messages & names]


def left(name: str, version: int, *, of_broker: bool) -> set[str]:
    """The fields that one end does not use: which the broker reads in requests, and the client gives to them."""
    message = MESSAGES[name]
    found: set[str] = set()
    for struct in message.structs.values():
        fields = {one.name for one in struct.fields if one.versions.low <= version <= one.versions.high}
        for source in named_in(message, of_broker=of_broker):
            if of_broker == (message.kind == "request"):
                fields -= source.read
            elif "*" in source.given[struct.name]:
                fields.clear()
            else:
                fields -= source.given[struct.name] | source.given[""]
                fields -= {one.name for one in struct.arguments[: source.counts[struct.name]]}
        found |= fields
    return found


@pytest.mark.parametrize("name", [name for name, one in MESSAGES.items() if named_in(one, of_broker=False)])
def test_the_client_uses_each_field(name: str) -> None:
    key = MESSAGES[name].key
    assert key is not None
    unused = left(name, BELOW_NEWEST.get(key, APIS[key][2]), of_broker=False) - OF_CLIENT
    assert unused == {*(NOT_ASKED | NOT_TOLD).get(name, "").split()}, (
        "src/groupkeeper/client gives these to the request or reads them of the answer, else NOT_ASKED or NOT_TOLD has "
        f"them, and only them: {unused}"
    )


@pytest.mark.parametrize("name", [name for name, one in MESSAGES.items() if one.key in TABLE])
def test_the_broker_uses_each_field(name: str) -> None:
    key = MESSAGES[name].key
    assert key is not None
    unused = left(name, TABLE[key].highest, of_broker=True) - (OF_SERVER if name.endswith("Response") else set())
    assert unused == {*(NOT_READ | NOT_ANSWERED).get(name, "").split()}, (
        "the code that answers reads these of the request or gives them to the answer, else NOT_READ or NOT_ANSWERED "
        f"has them, and only them: {unused}"
    )


def test_requests_are_passed_on_not_made_again() -> None:
    requests = [one for one in MESSAGES.values() if one.kind == "request"]
    structs = {struct for request in requests for struct in request.structs if struct.startswith(request.name)}
    apis = [source for source in SOURCES if source.path.match("broker/apis/*")]
    made = {source.path.stem: source.counts.keys() & structs for source in apis}
    assert {name: " ".join(sorted(some)) for name, some in made.items() if some} == MADE, (
        "a coordinator gets the request itself, or a `copy` of it with other lists: a new one lacks newer fields"
    )


def test_each_version_below_the_newest_is_one() -> None:
    assert [key for key, version in BELOW_NEWEST.items() if version >= APIS[key][2]] == []
