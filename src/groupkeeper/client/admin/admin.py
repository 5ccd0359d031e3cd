"""Admin: every call that operating consumer groups needs, against any Kafka."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Self

from groupkeeper.client.addresses import parse_bootstrap_servers
from groupkeeper.client.admin.arguments import group, keyed, mapped, of_kind, several, several_each
from groupkeeper.client.admin.resources.access_calls import AccessCalls
from groupkeeper.client.admin.resources.calls import ResourceCalls
from groupkeeper.client.admin.types import All, NewTopic, OffsetAndMetadata, OffsetSpec, TopicPartition
from groupkeeper.client.batch import Batch
from groupkeeper.client.cluster import Cluster
from groupkeeper.client.security.choice import security_of
from groupkeeper.client.settings import Settings

if TYPE_CHECKING:
    from groupkeeper.client.admin.log_reader import Take
    from groupkeeper.client.admin.streams_types import StreamsGroupDescription
    from groupkeeper.client.admin.types import (
        ClassicGroupDescription,
        ClusterDescription,
        CommittedOffsets,
        ConsumerGroupDescription,
        CreatedTopic,
        FirstRecord,
        GroupListings,
        GroupState,
        GroupType,
        ListedOffset,
        MemberToRemove,
        Node,
        Position,
        ShareGroupDescription,
        SharePartitionOffset,
        TopicDescription,
        TopicListing,
    )
    from groupkeeper.client.security.tokens import TokenProvider


class Admin(ResourceCalls, AccessCalls):
    """An asynchronous admin client. Use it as ``async with Admin("host:9092") as admin: …``.

    ``bootstrap_servers`` is "host:port,host:port" ("[::1]:9092" for IPv6). ``properties`` are Kafka's client
    properties by their Java names (client.id, request.timeout.ms, default.api.timeout.ms, retry.backoff.ms …);
    an argument given here wins over a property; unknown names are ignored. Stores of certificates are read here, and
    what is wrong with them raises IllegalArgument. ``token_provider`` is called for tokens when sasl.mechanism is
    OAUTHBEARER.

    Entering connects to the first bootstrap server that answers. Every call takes ``timeout_ms``, the time for the
    whole call with all its retries (None: ``default_timeout_ms``). Calls raise ``ClientError`` (no usable response;
    ``CallTimedOut``, ``ConnectionFailed``, ``UnsupportedVersion`` …) or ``KafkaError`` (the broker refused) when
    nothing can be answered at all; calls on many keys return a ``Batch`` that has each key's result or failure. One
    thing where a collection is meant (``"billing"`` for ``["billing"]``) raises IllegalArgument.
    """

    def __init__(
        self,
        bootstrap_servers: str,
        *,
        client_id: str | None = None,
        request_timeout_ms: int | None = None,
        default_timeout_ms: int | None = None,
        properties: Mapping[str, str] = {},
        token_provider: TokenProvider | None = None,
    ) -> None:
        settings = Settings.of_properties(properties)
        if client_id is not None:
            settings.client_id = client_id
        if request_timeout_ms is not None:
            settings.request_timeout_ms = request_timeout_ms
        if default_timeout_ms is not None:
            settings.default_api_timeout_ms = default_timeout_ms
        security = security_of(properties, token_provider)
        self._cluster = Cluster(parse_bootstrap_servers(bootstrap_servers), settings, security)

    @classmethod
    async def connect(
        cls,
        bootstrap_servers: str,
        *,
        client_id: str | None = None,
        request_timeout_ms: int | None = None,
        default_timeout_ms: int | None = None,
        properties: Mapping[str, str] = {},
        token_provider: TokenProvider | None = None,
    ) -> Self:
        """A client that is connected: for the prompt, notebooks and objects that keep it. ``close`` ends it.

        The arguments are those of the class.
        """
        admin = cls(
            bootstrap_servers,
            client_id=client_id,
            request_timeout_ms=request_timeout_ms,
            default_timeout_ms=default_timeout_ms,
            properties=properties,
            token_provider=token_provider,
        )
        return await admin.__aenter__()

    @property
    def principal(self) -> str:
        """The client's principal at the brokers, `User:name`; empty: it doesn't authenticate, or the brokers derive the
        principal (tokens).
        """
        return self._cluster.principal

    async def __aenter__(self) -> Self:
        try:
            await self._cluster.connect(self._cluster.deadline("connect", None))
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close every connection. Calls that are under way fail with ClientClosed. Closing twice is harmless."""
        await self._cluster.close()

    async def list_groups(
        self,
        *,
        states: Iterable[GroupState | str] = (),
        types: Iterable[GroupType | str] = (),
        protocol_types: Iterable[str] | None = None,
        timeout_ms: int | None = None,
    ) -> GroupListings:
        """The groups of all brokers (KIP-518). Empty ``states`` or ``types``, None ``protocol_types``: all of them.

        Consumer groups are types Classic and Consumer with protocol types "" and "consumer", share groups
        are type Share. A broker that fails is in ``failed`` of the result: UnsupportedVersion when it is too old for a
        filter. A state that is a plain text is sent as it is: brokers know NotReady as ``not_ready`` only.
        """
        from groupkeeper.client.admin import group_list

        several(states, "states"), several(types, "types")
        if protocol_types is not None:
            several(protocol_types, "protocol_types")
        return await group_list.list_groups(self._cluster, states, types, protocol_types, timeout_ms)

    async def describe_classic_groups(
        self, group_ids: Iterable[str], *, include_authorized_operations: bool = False, timeout_ms: int | None = None
    ) -> Batch[str, ClassicGroupDescription]:
        """Describe groups of the classic protocol, of any protocol type.

        A group that doesn't exist fails with GroupIdNotFound, or is described as Dead by a broker before 4.0.
        """
        from groupkeeper.client.admin import group_descriptions

        return await group_descriptions.describe_classic_groups(
            self._cluster, several(group_ids, "group_ids"), include_authorized_operations, timeout_ms
        )

    async def describe_consumer_groups(
        self, group_ids: Iterable[str], *, include_authorized_operations: bool = False, timeout_ms: int | None = None
    ) -> Batch[str, ConsumerGroupDescription]:
        """Describe groups of consumers, of type Consumer or (by falling back to DescribeGroups) Classic.

        Fails per group: GroupIdNotFound (the first answer's message), IllegalArgument for a classic group of another
        protocol type, GroupAuthorizationFailed, TopicAuthorizationFailed.
        """
        from groupkeeper.client.admin import group_descriptions

        return await group_descriptions.describe_consumer_groups(
            self._cluster, several(group_ids, "group_ids"), include_authorized_operations, timeout_ms
        )

    async def list_consumer_group_offsets(
        self,
        groups: Mapping[str, Iterable[TopicPartition] | None],
        *,
        require_stable: bool = False,
        timeout_ms: int | None = None,
    ) -> Batch[str, Batch[TopicPartition, OffsetAndMetadata | None]]:
        """Committed offsets of many groups at once (KIP-88, KIP-709).

        None as a group's partitions: all that have a committed offset; an empty collection: none at all. A partition
        that was asked for and has no offset is ``None`` in the inner ``done``; one that the broker refused is
        in the inner ``failed``. A group that doesn't exist has no offsets, which is not an error.
        ``require_stable``: a partition with a pending transactional offset fails with UnstableOffsetCommit (KIP-447);
        brokers before 2.5 ignore it.
        """
        from groupkeeper.client.admin import offsets

        return await offsets.list_consumer_group_offsets(
            self._cluster, several_each(groups, "partitions"), require_stable, timeout_ms
        )

    async def list_committed_offsets(
        self, group_ids: Iterable[str], *, timeout_ms: int | None = None
    ) -> Batch[str, CommittedOffsets]:
        """All committed offsets of groups by column: for very many groups, where single offsets are rarely accessed."""
        from groupkeeper.client.admin import offsets

        return await offsets.list_committed_offsets(
            self._cluster, dict.fromkeys(several(group_ids, "group_ids")), require_stable=False, timeout_ms=timeout_ms
        )

    async def list_offsets(
        self, specs: Mapping[TopicPartition, OffsetSpec], *, read_committed: bool = False, timeout_ms: int | None = None
    ) -> Batch[TopicPartition, ListedOffset]:
        """Offsets of partitions by spec (earliest, latest, timestamp …), from each partition's leader.

        A timestamp later than every record's gives offset −1. Moved leaders are followed; a partition that stays
        without a leader fails with LeaderNotAvailable after 5 s, an unknown one with UnknownTopicOrPartition after
        1 s. ``read_committed``: latest is the last stable offset. UnsupportedVersion for specs that the broker doesn't
        support.
        """
        from groupkeeper.client.admin import log_offsets

        return await log_offsets.list_offsets(
            self._cluster, keyed(specs, TopicPartition, "specs", OffsetSpec), read_committed, timeout_ms
        )

    async def alter_consumer_group_offsets(
        self, group_id: str, offsets: Mapping[TopicPartition, OffsetAndMetadata], *, timeout_ms: int | None = None
    ) -> Batch[TopicPartition, None]:
        """Commit offsets for a group without members. If it has some, each partition fails with UnknownMemberId."""
        from groupkeeper.client.admin import offsets as offsets_

        return await offsets_.alter_consumer_group_offsets(
            self._cluster, group(group_id), keyed(offsets, TopicPartition, "offsets", OffsetAndMetadata), timeout_ms
        )

    async def delete_consumer_group_offsets(
        self, group_id: str, partitions: Iterable[TopicPartition], *, timeout_ms: int | None = None
    ) -> Batch[TopicPartition, None]:
        """Delete committed offsets (KIP-496): GroupSubscribedToTopic per partition of a topic that is in use.

        Raises the KafkaError of the whole group: GroupIdNotFound, NonEmptyGroup, InvalidGroupId,
        GroupAuthorizationFailed. UnsupportedVersion when the broker is older than 2.4.
        """
        from groupkeeper.client.admin import offsets

        return await offsets.delete_consumer_group_offsets(
            self._cluster, group(group_id), of_kind(partitions, TopicPartition, "partitions"), timeout_ms
        )

    async def alter_offsets_of_groups(
        self,
        offsets: Mapping[str, Mapping[TopicPartition, OffsetAndMetadata]],
        *,
        tell: Callable[[], None] | None = None,
        timeout_ms: int | None = None,
    ) -> Batch[str, Batch[TopicPartition, None]]:
        """``alter_consumer_group_offsets`` of many groups: one request for each, many under way at a time.

        ``tell`` is called whenever a group has its answer.
        """
        from groupkeeper.client.admin import many_groups

        for group_id, own in mapped(offsets, "offsets").items():
            keyed(own, TopicPartition, f"offsets[{group_id!r}]", OffsetAndMetadata)
        return await many_groups.alter_offsets_of_groups(self._cluster, offsets, tell, timeout_ms)

    async def delete_offsets_of_groups(
        self,
        partitions: Mapping[str, Iterable[TopicPartition]],
        *,
        tell: Callable[[], None] | None = None,
        timeout_ms: int | None = None,
    ) -> Batch[str, Batch[TopicPartition, None]]:
        """``delete_consumer_group_offsets`` of many groups: one request for each, many under way at a time.

        What that raises for the whole group is in the outer ``failed``.
        """
        from groupkeeper.client.admin import many_groups

        several_each(partitions, "partitions")
        return await many_groups.delete_offsets_of_groups(self._cluster, partitions, tell, timeout_ms)

    async def first_records(
        self, positions: Iterable[Position], *, read_committed: bool = False, timeout_ms: int | None = None
    ) -> Batch[Position, FirstRecord | None]:
        """The first records at or after offsets, read from the partitions' leaders (Fetch).

        None: the log was read to its end, and there is no such record, though there may be markers of transactions.
        Records of open and of aborted transactions count, as they do in a lookup by time (ListOffsets);
        ``read_committed``: they don't, and the log is read up to its last stable offset. Fails per
        position: OffsetOutOfRange, TopicAuthorizationFailed (this needs READ on the topic), UnknownTopicOrPartition,
        LeaderNotAvailable … ``timeout_ms`` is for each request: many positions in large batches take many.
        """
        from groupkeeper.client.admin import record_times
        from groupkeeper.client.admin.log_fetch import Isolation

        isolation = Isolation.COMMITTED if read_committed else Isolation.UNCOMMITTED
        return await record_times.first_records(self._cluster, several(positions, "positions"), isolation, timeout_ms)

    async def record_timestamps(
        self, positions: Iterable[Position], *, timeout_ms: int | None = None
    ) -> Batch[Position, int | None]:
        """Timestamps in ms of the records that ``first_records`` finds, with its failures.

        None: there is no such record. A record without a timestamp has −1.
        """
        found = await self.first_records(positions, timeout_ms=timeout_ms)
        times = {position: None if record is None else record.timestamp for position, record in found.done.items()}
        return Batch(times, found.failed)

    async def read_logs(
        self,
        ranges: Mapping[TopicPartition, tuple[int, int]],
        take: Take,
        *,
        max_bytes: int | None = None,
        timeout_ms: int | None = None,
    ) -> Batch[TopicPartition, None]:
        """Read partitions from the first offset of a range up to the second, which isn't read any more (Fetch).

        ``take`` is called with each piece: whole batches, the last one perhaps cut off, and batches beyond the range
        or before it. Aborted transactions and markers are among them. It tells the offset after the last whole batch.
        ``max_bytes``: of a piece, where no batch is larger; default: 1 MiB. Fails per partition, as
        ``record_timestamps``. ``timeout_ms`` is for each piece.
        """
        from groupkeeper.client.admin import log_reader

        return await log_reader.read_logs(self._cluster, mapped(ranges, "ranges"), take, max_bytes, timeout_ms)

    async def delete_consumer_groups(
        self, group_ids: Iterable[str], *, timeout_ms: int | None = None
    ) -> Batch[str, None]:
        """Delete groups with their offsets: NonEmptyGroup, GroupIdNotFound … per group."""
        from groupkeeper.client.admin import groups

        return await groups.delete_groups(
            self._cluster, "deleteConsumerGroups", several(group_ids, "group_ids"), timeout_ms
        )

    async def remove_members(
        self,
        group_id: str,
        members: Iterable[MemberToRemove] | All,
        *,
        reason: str | None = None,
        timeout_ms: int | None = None,
    ) -> Batch[MemberToRemove, None]:
        """Remove members from their group: the named ones, or all of them with ``ALL``.

        ``reason`` is sent to brokers from 3.2 on, cut to 255 characters. Removing a static member by its instance id
        needs a broker from 2.4 on.
        """
        from groupkeeper.client.admin import groups

        if not isinstance(members, All):
            several(members, "members")
        return await groups.remove_members(self._cluster, group(group_id), members, reason, timeout_ms)

    async def describe_streams_groups(
        self,
        group_ids: Iterable[str],
        *,
        include_authorized_operations: bool = False,
        include_topology: bool = False,
        timeout_ms: int | None = None,
    ) -> Batch[str, StreamsGroupDescription]:
        """Describe groups of Kafka Streams instances with their topics and tasks (KIP-1071).

        ``include_topology``: with the nodes of the application too, as far as the brokers keep them (Kafka 4.4).

        Fails per group: GroupIdNotFound, also for a group of another type, GroupAuthorizationFailed,
        TopicAuthorizationFailed; UnsupportedVersion when the broker is older than 4.1, or than 4.4 and
        ``include_topology`` is set.
        """
        from groupkeeper.client.admin import streams_groups

        return await streams_groups.describe_streams_groups(
            self._cluster, several(group_ids, "group_ids"), include_authorized_operations, include_topology, timeout_ms
        )

    async def describe_share_groups(
        self, group_ids: Iterable[str], *, include_authorized_operations: bool = False, timeout_ms: int | None = None
    ) -> Batch[str, ShareGroupDescription]:
        """Describe share groups (KIP-932).

        Fails per group: GroupIdNotFound, also for a group of another type, GroupAuthorizationFailed,
        TopicAuthorizationFailed; UnsupportedVersion when the broker is older than 4.1.
        """
        from groupkeeper.client.admin import share_groups

        return await share_groups.describe_share_groups(
            self._cluster, several(group_ids, "group_ids"), include_authorized_operations, timeout_ms
        )

    async def list_share_group_offsets(
        self, groups: Mapping[str, Iterable[TopicPartition] | None], *, timeout_ms: int | None = None
    ) -> Batch[str, Batch[TopicPartition, SharePartitionOffset | None]]:
        """How far share groups are in their partitions, many groups at once.

        None as a group's partitions: all that the group has ever subscribed to. ``None`` in the inner ``done``: the
        group has no start offset there, because no member has fetched the partition yet or it isn't the group's. A
        partition that the broker refused is in the inner ``failed``. A group that doesn't exist has no offsets.
        """
        from groupkeeper.client.admin import share_groups

        return await share_groups.list_share_group_offsets(
            self._cluster, several_each(groups, "partitions"), timeout_ms
        )

    async def alter_share_group_offsets(
        self, group_id: str, offsets: Mapping[TopicPartition, int], *, timeout_ms: int | None = None
    ) -> Batch[TopicPartition, None]:
        """Set the start offsets of a share group without members; the group is made when there is none.

        UnknownTopicOrPartition, TopicAuthorizationFailed per partition. Raises the KafkaError of the whole group:
        NonEmptyGroup, GroupIdNotFound for a group of another type, InvalidGroupId, GroupAuthorizationFailed.
        """
        from groupkeeper.client.admin import share_groups

        return await share_groups.alter_share_group_offsets(
            self._cluster, group(group_id), keyed(offsets, TopicPartition, "offsets", int), timeout_ms
        )

    async def delete_share_group_offsets(
        self, group_id: str, topics: Iterable[str], *, timeout_ms: int | None = None
    ) -> Batch[str, None]:
        """Delete a share group's offsets of whole topics; the group must have no members.

        UnknownTopicOrPartition per topic, also for a topic of which the group has no offsets. Raises the KafkaError of
        the whole group: GroupIdNotFound, NonEmptyGroup, InvalidGroupId, GroupAuthorizationFailed.
        """
        from groupkeeper.client.admin import share_groups

        return await share_groups.delete_share_group_offsets(
            self._cluster, group(group_id), several(topics, "topics"), timeout_ms
        )

    async def delete_share_groups(self, group_ids: Iterable[str], *, timeout_ms: int | None = None) -> Batch[str, None]:
        """Delete share groups with their offsets: NonEmptyGroup, GroupIdNotFound … per group.

        The brokers delete groups of other types by the same request, so name share groups only.
        """
        from groupkeeper.client.admin import groups

        return await groups.delete_groups(
            self._cluster, "deleteShareGroups", several(group_ids, "group_ids"), timeout_ms
        )

    async def find_coordinators(self, group_ids: Iterable[str], *, timeout_ms: int | None = None) -> Batch[str, Node]:
        """The coordinator of each group, always from a new lookup."""
        from groupkeeper.client.admin import coordinators

        return await coordinators.find_coordinators(self._cluster, several(group_ids, "group_ids"), timeout_ms)

    async def describe_topics(
        self,
        names: Iterable[str] | None = None,
        *,
        include_authorized_operations: bool = False,
        timeout_ms: int | None = None,
    ) -> Batch[str, TopicDescription]:
        """Describe topics by name, or all that the caller may see (None), internal ones included.

        Never creates a topic. Fails per topic: UnknownTopicOrPartition, TopicAuthorizationFailed, InvalidTopic.
        """
        from groupkeeper.client.admin import topics

        if names is not None:
            several(names, "names")
        return await topics.describe_topics(self._cluster, names, include_authorized_operations, timeout_ms)

    async def list_topics(self, *, include_internal: bool = False, timeout_ms: int | None = None) -> list[TopicListing]:
        """The topics that the caller may see, sorted by name."""
        from groupkeeper.client.admin import topics

        return await topics.list_topics(self._cluster, include_internal, timeout_ms)

    async def create_topics(
        self,
        topics: Iterable[NewTopic],
        *,
        if_missing: bool = False,
        validate_only: bool = False,
        timeout_ms: int | None = None,
    ) -> Batch[str, CreatedTopic]:
        """Create topics: TopicAlreadyExists, InvalidPartitions … per topic, with the broker's message.

        ``if_missing``: an existing topic is left unchanged, and is in ``done``, with ``is_new`` False.
        """
        from groupkeeper.client.admin import topics as topics_

        created = await topics_.create_topics(
            self._cluster, of_kind(topics, NewTopic, "topics"), validate_only, timeout_ms
        )
        return topics_.with_those_there(created) if if_missing else created

    async def delete_topics(
        self, names: Iterable[str], *, if_there: bool = False, timeout_ms: int | None = None
    ) -> Batch[str, None]:
        """Delete topics with their records: UnknownTopicOrPartition, TopicDeletionDisabled … per topic.

        ``if_there``: a missing topic is in ``done``, too.
        """
        from groupkeeper.client.admin import topics

        deleted = await topics.delete_topics(self._cluster, several(names, "names"), timeout_ms)
        return topics.with_those_gone(deleted) if if_there else deleted

    async def describe_cluster(
        self, *, include_authorized_operations: bool = False, timeout_ms: int | None = None
    ) -> ClusterDescription:
        """The cluster's id, controller and brokers."""
        from groupkeeper.client.admin import topics

        return await topics.describe_cluster(self._cluster, include_authorized_operations, timeout_ms)
