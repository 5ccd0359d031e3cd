"""Names of Kafka 4.3.1's broker settings that this broker accepts without acting on them."""

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
    alter.config.policy.class.name auto.leader.rebalance.enable background.threads
    broker.heartbeat.interval.ms broker.id broker.session.timeout.ms client.quota.callback.class
    config.providers cordoned.log.dirs create.topic.policy.class.name
    delete.records.purgatory.purge.interval.requests early.start.listeners
    fetch.purgatory.purge.interval.requests group.share.persister.class.name
    initial.broker.registration.timeout.ms leader.imbalance.check.interval.seconds
    leader.imbalance.per.broker.percentage
    num.io.threads num.network.threads num.recovery.threads.per.data.dir num.replica.alter.log.dirs.threads
    num.replica.fetchers principal.builder.class process.roles
    producer.purgatory.purge.interval.requests queued.max.request.bytes queued.max.requests request.timeout.ms
    security.inter.broker.protocol security.providers server.max.startup.time.ms
    share.fetch.purgatory.purge.interval.requests unclean.leader.election.interval.ms
    controlled.shutdown.enable controlled.shutdown.max.retries
    controlled.shutdown.retry.backoff.ms inter.broker.protocol.version log.message.format.version
    """.split()
)


def is_known(name: str) -> bool:
    """Whether Kafka 4.3.1 (or a harness) has a setting of this name."""
    return name in _SINGLE or name.startswith(_FAMILIES)
