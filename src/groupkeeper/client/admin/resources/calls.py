"""The calls of Admin on what a cluster has beside groups."""

from __future__ import annotations

from typing import TYPE_CHECKING

from groupkeeper.client.admin.arguments import mapped, mapped_each, several

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from groupkeeper.client.admin.resources.types import Config, ConfigResource, ListChange, NewPartitions
    from groupkeeper.client.batch import Batch
    from groupkeeper.client.cluster import Cluster
    from groupkeeper.client.topology import TopicPartition


class ResourceCalls:
    """What Admin can ask of topics, brokers and rights, beside groups."""

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

        ``names`` None: all of them; a name that the broker doesn't have is left out. Of sensitive ones the value is
        None. A broker's configs are asked of the broker itself. Fails per resource: UnknownTopicOrPartition,
        TopicAuthorizationFailed, GroupAuthorizationFailed, ClusterAuthorizationFailed (this needs DESCRIBE_CONFIGS),
        InvalidRequest for a type that the broker doesn't know, IllegalArgument for a broker that isn't there.
        """
        from groupkeeper.client.admin.resources import configs

        if names is not None:
            several(names, "names")
        return await configs.describe_configs(
            self._cluster, several(resources, "resources"), names, include_synonyms, include_documentation, timeout_ms
        )

    async def alter_configs(
        self,
        changes: Mapping[ConfigResource, Mapping[str, str | ListChange | None]],
        *,
        validate_only: bool = False,
        timeout_ms: int | None = None,
    ) -> Batch[ConfigResource, None]:
        """Change configs by name (KIP-339); those that aren't named stay as they are.

        A text sets the value, None takes back what was set, so that the default holds again, and a ``ListChange`` adds
        items to a list or takes some out. All changes of a resource are made, or none; brokers follow within moments.
        ``validate_only``: nothing is changed, the broker only says whether it would. Fails per resource:
        InvalidConfig, UnknownTopicOrPartition, TopicAuthorizationFailed, ClusterAuthorizationFailed (this needs
        ALTER_CONFIGS) … Raises UnsupportedVersion when the brokers are older than 2.3.
        """
        from groupkeeper.client.admin.resources import configs

        return await configs.alter_configs(self._cluster, mapped_each(changes, "changes"), validate_only, timeout_ms)

    async def broker_settings(self, names: Iterable[str], *, timeout_ms: int | None = None) -> dict[str, str]:
        """Values of configs of one broker by name; those that it doesn't tell are left out.

        For more of them, or of all brokers, see ``describe_configs``. Raises ClusterAuthorizationFailed without
        DESCRIBE_CONFIGS on the cluster.
        """
        from groupkeeper.client.admin.resources import configs

        return await configs.broker_settings(self._cluster, several(names, "names"), timeout_ms)

    async def topic_settings(
        self, topics: Iterable[str], names: Iterable[str], *, timeout_ms: int | None = None
    ) -> Batch[str, dict[str, str]]:
        """Values of configs of topics by name, defaults included; those that the broker doesn't tell are left out.

        Fails per topic: UnknownTopicOrPartition, TopicAuthorizationFailed (this needs DESCRIBE_CONFIGS on it).
        """
        from groupkeeper.client.admin.resources import configs

        return await configs.topic_settings(
            self._cluster, several(topics, "topics"), several(names, "names"), timeout_ms
        )

    async def create_partitions(
        self,
        totals: Mapping[str, int | NewPartitions],
        *,
        validate_only: bool = False,
        timeout_ms: int | None = None,
    ) -> Batch[str, None]:
        """Give topics more partitions: ``{"orders": 12}`` is how many it has then, not how many are added.

        Records with keys go to other partitions from then on. Fails per topic: InvalidPartitions when it has as many
        already, UnknownTopicOrPartition, TopicAuthorizationFailed (this needs ALTER on it), InvalidReplicaAssignment.
        """
        from groupkeeper.client.admin.resources import partitions

        return await partitions.create_partitions(self._cluster, mapped(totals, "totals"), validate_only, timeout_ms)

    async def delete_records(
        self, before: Mapping[TopicPartition, int | None], *, timeout_ms: int | None = None
    ) -> Batch[TopicPartition, int]:
        """Delete the records before an offset of each partition, for good; None: all that are in it now.

        The result is the log start offset after that. Fails per partition: OffsetOutOfRange beyond the high watermark,
        PolicyViolation for a compacted topic, UnknownTopicOrPartition, TopicAuthorizationFailed (this needs DELETE).
        """
        from groupkeeper.client.admin.resources import partitions

        return await partitions.delete_records(self._cluster, mapped(before, "before"), timeout_ms)
