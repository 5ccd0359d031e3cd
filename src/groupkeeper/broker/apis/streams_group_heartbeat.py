"""StreamsGroupHeartbeat (88): members of streams groups join, stay and leave; their internal topics are created
(KIP-1071).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from groupkeeper.broker.apis._access import may_cluster
from groupkeeper.broker.apis._groups import may, may_topic, without_streams_groups
from groupkeeper.broker.apis.create_topics import create_topic
from groupkeeper.broker.authorizer import Operation
from groupkeeper.broker.broker import Broker
from groupkeeper.broker.call import Call
from groupkeeper.broker.log.topic_names import require_valid_name
from groupkeeper.coordinator.refusals import refuse as refuse_request
from groupkeeper.coordinator.streams.topology import MissingTopic, StatusCode
from groupkeeper.protocol import errors
from groupkeeper.protocol.messages import CreatableTopic, CreatableTopicConfig, StreamsGroupHeartbeatResponse
from groupkeeper.protocol.messages.streams_group_heartbeat_request import StreamsGroupHeartbeatRequest, Topology
from groupkeeper.protocol.primitives import RootMessage


async def handle(broker: Broker, call: Call) -> RootMessage:
    request = call.message
    assert isinstance(request, StreamsGroupHeartbeatRequest)
    trouble = without_streams_groups(broker) or _trouble_of(broker, call, request)
    if trouble is not None:
        response = refuse_request(request, trouble)
    else:
        response = await broker.groups.ask(request.group_id, request, call)
    assert isinstance(response, StreamsGroupHeartbeatResponse)
    for status in response.status or ():
        if status.status_code == StatusCode.MISSING_INTERNAL_TOPICS:
            shard = broker.groups.shard_for_request(request.group_id, call.node)
            missing = shard.missing_topics_of(request.group_id)
            status.status_detail += _create(broker, call, missing)
    return response


def _trouble_of(broker: Broker, call: Call, request: StreamsGroupHeartbeatRequest) -> errors.KafkaError | None:
    """What refuses the request before its group is looked at, or None."""
    if not may(broker, call, Operation.READ, request.group_id):
        return errors.GroupAuthorizationFailed()
    names = [] if request.topology is None else _topics(request.topology)
    if prohibited := [name for name in names if broker.is_internal(name)]:
        return errors.StreamsInvalidTopology(
            f"Use of Kafka internal topics {','.join(prohibited)} in a Kafka Streams topology is prohibited."
        )
    if invalid := [name for name in names if not _is_valid(name)]:
        return errors.StreamsInvalidTopology(f"Topic names {','.join(invalid)} are not valid topic names.")
    if not all(may_topic(broker, call, Operation.DESCRIBE, name) for name in names):
        return errors.TopicAuthorizationFailed()
    return None


def _topics(topology: Topology) -> Iterable[str]:
    """All topics of a topology, each once."""
    names = {}
    for one in topology.subtopologies:
        internal = (*one.repartition_source_topics, *one.state_changelog_topics)
        made = (topic.name for topic in internal)
        names.update(dict.fromkeys((*one.source_topics, *one.repartition_sink_topics, *made)))
    return names


def _is_valid(name: str) -> bool:
    try:
        require_valid_name(name)
    except errors.InvalidTopicException:
        return False
    return True


def _create(broker: Broker, call: Call, missing: Sequence[MissingTopic]) -> str:
    """Creates internal topics, all or none unless one fails; returns what to say beside that they are missing:
    why they stay so.
    """
    if not may_cluster(broker, call, Operation.CREATE):
        hidden = [topic.name for topic in missing if not may_topic(broker, call, Operation.CREATE, topic.name)]
        if hidden:
            return f"; Unauthorized to CREATE on topics {', '.join(hidden)}."
    mutations = broker.quotas.mutations(call, strict_since=0)
    failures = []
    for topic in missing:
        configs = [CreatableTopicConfig(name, value) for name, value in topic.configs.items()]
        creatable = CreatableTopic(topic.name, topic.partition_count, topic.replication_factor, configs=configs)
        try:
            create_topic(broker, call, creatable, mutations, validate_only=False)
        except errors.TopicAlreadyExists:
            pass  # the coordinator will see it with the next heartbeat
        except errors.KafkaError as error:
            failures.append(f"{topic.name} ({error.message})")
    return f"; Creation failed: {', '.join(failures)}." if failures else ""
