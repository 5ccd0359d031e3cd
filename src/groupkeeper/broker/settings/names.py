"""The names of broker settings in Kafka 4.4.0, including those that Kafka doesn't describe."""

from groupkeeper.broker.settings.kafka import KEPT_AS_TEXT
from groupkeeper.security.mechanisms.mechanism import JAAS_FILE

METADATA_LEVELS = {
    name: level
    for level, name in enumerate(
        """
        3.3-IV3 3.4-IV0 3.5-IV0 3.5-IV1 3.5-IV2 3.6-IV0 3.6-IV1 3.6-IV2 3.7-IV0 3.7-IV1 3.7-IV2 3.7-IV3 3.7-IV4
        3.8-IV0 3.9-IV0 4.0-IV0 4.0-IV1 4.0-IV2 4.0-IV3 4.1-IV0 4.1-IV1 4.2-IV0 4.2-IV1 4.3-IV0
        4.4-IV0 4.4-IV1 4.4-IV2
        """.split(),
        7,
    )
}
"""Levels of the feature metadata.version by their names."""

_FAMILIES = tuple(
    """
    conformance. config.providers. controller. delegation.token. feature. follower. group.streams. kafka. listener.name.
    log.cleaner. log.flush. log.dir. max.connection metadata. metric quota. remote. replica. replication.quota.
    sasl. share.coordinator. socket. ssl. telemetry. transaction. unstable. alter.log.dirs.replication.
    add.partitions.to.txn. connection internal. zookeeper.
    """.split()
)

_PLUG_INS = (
    "principal.builder.class", "ssl.engine.factory.class", "sasl.server.callback.handler.class",
    "client.quota.callback.class", "alter.config.policy.class.name", "create.topic.policy.class.name",
)  # fmt: skip

_SINGLE = frozenset(
    """
    controlled.shutdown.max.retries controlled.shutdown.retry.backoff.ms group.share.dlq.manager.class.name
    group.share.persister.class.name inter.broker.protocol.version leader.imbalance.per.broker.percentage
    log.message.format.version server.max.startup.time.ms unclean.leader.election.interval.ms
    """.split()
)


def is_known(name: str) -> bool:
    """Whether Kafka 4.4.0 (or a harness) has a setting of this name."""
    return name == JAAS_FILE or name in KEPT_AS_TEXT or name in _SINGLE or name.startswith(_FAMILIES)


def is_plug_in(name: str, text: str) -> bool:
    """Whether a setting names custom Java code that Kafka would run. Authentication or authorization could depend on
    that code.
    """
    return name.endswith(_PLUG_INS) and bool(text) and not text.startswith("org.apache.kafka.")
