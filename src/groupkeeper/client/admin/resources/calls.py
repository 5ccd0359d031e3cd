"""The calls of Admin on resources other than groups."""

from __future__ import annotations

from typing import TYPE_CHECKING

from groupkeeper.client.admin.arguments import keyed, mapped, mapped_each, of_kind, one_of, several
from groupkeeper.client.topology import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from groupkeeper.client.admin.resources.types import (
        Config,
        ConfigResource,
        FencedProducer,
        ListChange,
        LogDir,
        NewPartitions,
        ProducerState,
        TransactionDescription,
        TransactionListings,
        TransactionState,
    )
    from groupkeeper.client.batch import Batch
    from groupkeeper.client.cluster import Cluster


class ResourceCalls:
    """Calls of Admin on configs, partitions, log directories and transactions."""

    _cluster: Cluster

    async def describe_configs(
        self,
        resources: Iterable[ConfigResource],
        *,
        names: Iterable[str] | None = None,
        include_synonyms: bool = False,
        include_documentation: bool = False,
        timeout_ms: int | None = None,
    ) -> Batch[ConfigResource, dict[str, Config]]:
        """Configs by name of topics, brokers, groups …, defaults included.

        ``names`` None: all configs; a name that the broker doesn't have is left out. Sensitive configs have the value
        None. A broker's configs are requested from that broker. Fails per resource: UnknownTopicOrPartition,
        TopicAuthorizationFailed, GroupAuthorizationFailed, ClusterAuthorizationFailed (this needs DESCRIBE_CONFIGS),
        InvalidRequest for a type that the broker doesn't support, IllegalArgument for a broker that doesn't exist.
        """
        from groupkeeper.client.admin.resources import configs
        from groupkeeper.client.admin.resources.types import ConfigResource

        if names is not None:
            several(names, "names")
        wanted = of_kind(resources, ConfigResource, "resources")
        return await configs.describe_configs(
            self._cluster, wanted, names, include_synonyms, include_documentation, timeout_ms
        )

    async def alter_configs(
        self,
        changes: Mapping[ConfigResource, Mapping[str, str | ListChange | None]],
        *,
        validate_only: bool = False,
        timeout_ms: int | None = None,
    ) -> Batch[ConfigResource, None]:
        """Change configs by name (KIP-339); configs that aren't named are unchanged.

        A text sets the value, None restores the default, and a ``ListChange`` adds items to a list or removes some. A
        resource gets all of its changes or none; brokers apply them within moments. ``validate_only``: the broker only
        validates the changes and makes none. Fails per resource: InvalidConfig, UnknownTopicOrPartition,
        TopicAuthorizationFailed, ClusterAuthorizationFailed (this needs ALTER_CONFIGS) … Raises UnsupportedVersion when
        the brokers are older than 2.3.
        """
        from groupkeeper.client.admin.resources import configs
        from groupkeeper.client.admin.resources.types import ConfigResource

        keyed(mapped_each(changes, "changes"), ConfigResource, "changes")
        return await configs.alter_configs(self._cluster, changes, validate_only, timeout_ms)

    async def broker_settings(self, names: Iterable[str], *, timeout_ms: int | None = None) -> dict[str, str]:
        """Values of configs of one broker by name; configs that are not in its response are left out.

        For details, or for every broker, see ``describe_configs``. Raises ClusterAuthorizationFailed without
        DESCRIBE_CONFIGS on the cluster.
        """
        from groupkeeper.client.admin.resources import configs

        return await configs.broker_settings(self._cluster, several(names, "names"), timeout_ms)

    async def topic_settings(
        self, topics: Iterable[str], names: Iterable[str], *, timeout_ms: int | None = None
    ) -> Batch[str, dict[str, str]]:
        """Values of configs of topics by name, defaults included; configs that are not in the response are left out.

        Fails per topic: UnknownTopicOrPartition, TopicAuthorizationFailed (this needs DESCRIBE_CONFIGS on it).
        """
        from groupkeeper.client.admin.resources import configs

        return await configs.topic_settings(
            self._cluster, several(topics, "topics"), several(names, "names"), timeout_ms
        )

    async def create_partitions(
        self, totals: Mapping[str, int | NewPartitions], *, validate_only: bool = False, timeout_ms: int | None = None
    ) -> Batch[str, None]:
        """Give topics more partitions: ``{"orders": 12}`` is the new total.

        Records with keys go to other partitions from then on. Fails per topic: InvalidPartitions when the topic has as
        many already, UnknownTopicOrPartition, TopicAuthorizationFailed (this needs ALTER on it),
        InvalidReplicaAssignment.
        """
        from groupkeeper.client.admin.resources import partitions
        from groupkeeper.client.admin.resources.types import NewPartitions

        for total in mapped(totals, "totals").values():
            one_of(total, (int, NewPartitions), "totals")
        return await partitions.create_partitions(self._cluster, totals, validate_only, timeout_ms)

    async def delete_records(
        self, before: Mapping[TopicPartition, int | None], *, timeout_ms: int | None = None
    ) -> Batch[TopicPartition, int]:
        """Delete the records before an offset of each partition, for good; None: all present records. The result is the
        new log start offset. Fails per partition: OffsetOutOfRange beyond the high watermark, PolicyViolation for a
        compacted topic, UnknownTopicOrPartition, TopicAuthorizationFailed (this needs DELETE).
        """
        from groupkeeper.client.admin.resources import partitions

        return await partitions.delete_records(self._cluster, keyed(before, TopicPartition, "before"), timeout_ms)

    async def describe_log_dirs(
        self,
        broker_ids: Iterable[int] | None = None,
        *,
        partitions: Iterable[TopicPartition] | None = None,
        timeout_ms: int | None = None,
    ) -> Batch[int, dict[str, LogDir]]:
        """The log directories of brokers by path, with their replicas and sizes; None: all brokers. ``partitions``:
        only replicas of these; None: all. Fails per broker: ClusterAuthorizationFailed (this needs DESCRIBE on the
        cluster; without it, brokers before 3.2 return nothing), IllegalArgument for a broker that doesn't exist.
        """
        from groupkeeper.client.admin.resources import log_dirs

        if broker_ids is not None:
            several(broker_ids, "broker_ids")
        if partitions is not None:
            partitions = of_kind(partitions, TopicPartition, "partitions")
        return await log_dirs.describe_log_dirs(self._cluster, broker_ids, partitions, timeout_ms)

    async def list_transactions(
        self,
        *,
        states: Iterable[TransactionState | str] = (),
        producer_ids: Iterable[int] = (),
        min_duration_ms: int | None = None,
        transactional_id_pattern: str | None = None,
        timeout_ms: int | None = None,
    ) -> TransactionListings:
        """The transactional ids of all brokers (KIP-664). Empty ``states`` or ``producer_ids``: any.
        ``min_duration_ms``: only transactions open for longer (Kafka 3.8). ``transactional_id_pattern``: a regular
        expression that the whole id matches (Kafka 4.1). Ids that the caller may not see (DESCRIBE) are left out. A
        broker that fails is in ``failed`` of the result: UnsupportedVersion when it is older than 3.0, or too old for a
        filter.
        """
        from groupkeeper.client.admin.resources import transactions

        several(states, "states"), several(producer_ids, "producer_ids")
        return await transactions.list_transactions(
            self._cluster, states, producer_ids, min_duration_ms, transactional_id_pattern, timeout_ms
        )

    async def describe_transactions(
        self, transactional_ids: Iterable[str], *, timeout_ms: int | None = None
    ) -> Batch[str, TransactionDescription]:
        """The state of transactional ids, from their coordinators, with the partitions of open transactions.

        Fails per id: TransactionalIdNotFound, TransactionalIdAuthorizationFailed, UnsupportedVersion before 3.0.
        """
        from groupkeeper.client.admin.resources import transactions

        wanted = several(transactional_ids, "transactional_ids")
        return await transactions.describe_transactions(self._cluster, wanted, timeout_ms)

    async def fence_producers(
        self, transactional_ids: Iterable[str], *, timeout_ms: int | None = None
    ) -> Batch[str, FencedProducer]:
        """Abort the open transaction of each id, and fence its current producer.

        Fails per id: TransactionalIdAuthorizationFailed (this needs WRITE on it), ClusterAuthorizationFailed.
        """
        from groupkeeper.client.admin.resources import transactions

        wanted = several(transactional_ids, "transactional_ids")
        return await transactions.fence_producers(self._cluster, wanted, timeout_ms)

    async def describe_producers(
        self, partitions: Iterable[TopicPartition], *, timeout_ms: int | None = None
    ) -> Batch[TopicPartition, tuple[ProducerState, ...]]:
        """The producer state of partitions, with the start offsets of open transactions.

        Fails per partition: UnknownTopicOrPartition, TopicAuthorizationFailed (this needs READ on the topic),
        UnsupportedVersion before 2.8.
        """
        from groupkeeper.client.admin.resources import transactions

        return await transactions.describe_producers(
            self._cluster, of_kind(partitions, TopicPartition, "partitions"), timeout_ms
        )

    async def abort_transaction(
        self, partition: TopicPartition, producer: ProducerState, *, timeout_ms: int | None = None
    ) -> None:
        """Abort a transaction in one partition without its coordinator: for a hanging transaction, which no coordinator
        ends.

        ``producer`` comes from ``describe_producers``. For a transaction that its coordinator has, see
        ``fence_producers``. Raises InvalidProducerEpoch, TransactionCoordinatorFenced, InvalidTxnState,
        UnknownTopicOrPartition, ClusterAuthorizationFailed (this needs CLUSTER_ACTION), UnsupportedVersion.
        """
        from groupkeeper.client.admin.resources import transactions
        from groupkeeper.client.admin.resources.types import ProducerState

        one_of(partition, TopicPartition, "partition"), one_of(producer, ProducerState, "producer")
        await transactions.abort_transaction(self._cluster, partition, producer, timeout_ms)
