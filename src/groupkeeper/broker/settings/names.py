"""Names that Kafka 4.3.1 has for settings of brokers, also for those that it doesn't describe."""

from groupkeeper.broker.settings.kafka import WITHOUT_EFFECT

_FAMILIES = tuple(
    """
    conformance. controller. delegation.token. feature. follower. group.streams. kafka. listener.name.
    log.cleaner. log.flush. log.dir. max.connection metadata. metric quota. remote. replica. replication.quota.
    sasl. share.coordinator. socket. ssl. telemetry. transaction. unstable. alter.log.dirs.replication.
    add.partitions.to.txn. connection internal. zookeeper.
    """.split()
)

_SINGLE = frozenset(
    """
    controlled.shutdown.max.retries controlled.shutdown.retry.backoff.ms group.share.persister.class.name
    inter.broker.protocol.version leader.imbalance.per.broker.percentage log.message.format.version
    server.max.startup.time.ms unclean.leader.election.interval.ms
    """.split()
)


def is_known(name: str) -> bool:
    """Whether Kafka 4.3.1 (or a harness) has a setting of this name."""
    return name in WITHOUT_EFFECT or name in _SINGLE or name.startswith(_FAMILIES)
