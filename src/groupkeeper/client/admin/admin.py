"""Admin: every call that operating consumer groups needs, against any Kafka."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from groupkeeper.client.addresses import parse_bootstrap_servers
from groupkeeper.client.admin.arguments import mapped, several
from groupkeeper.client.admin.groups import GroupCalls
from groupkeeper.client.admin.log_offsets import LogOffsetCalls
from groupkeeper.client.admin.offsets import OffsetCalls
from groupkeeper.client.admin.resources.access import AccessCalls
from groupkeeper.client.admin.resources.configs import ConfigCalls
from groupkeeper.client.admin.resources.partitions import PartitionCalls
from groupkeeper.client.admin.resources.transactions import TransactionCalls
from groupkeeper.client.admin.share_groups import ShareGroupCalls
from groupkeeper.client.admin.topics import TopicCalls
from groupkeeper.client.admin.types import TopicPartition
from groupkeeper.client.batch import Batch
from groupkeeper.client.cluster import Cluster
from groupkeeper.client.security.choice import security_of
from groupkeeper.client.settings import Settings

if TYPE_CHECKING:
    from groupkeeper.client.admin.log_fetch import Take
    from groupkeeper.client.admin.streams_types import StreamsGroupDescription
    from groupkeeper.client.admin.types import FirstRecord, Position
    from groupkeeper.client.security.tokens import TokenProvider


class Admin(
    GroupCalls, OffsetCalls, ShareGroupCalls, TopicCalls, LogOffsetCalls,
    ConfigCalls, PartitionCalls, TransactionCalls, AccessCalls,
):  # fmt: skip
    """The base of `groupkeeper.Admin`, which explains it, without the calls that take several of these."""

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
        given: dict[str, Any] = {
            "client_id": client_id,
            "request_timeout_ms": request_timeout_ms,
            "default_api_timeout_ms": default_timeout_ms,
        }
        given = {name: value for name, value in given.items() if value is not None}
        settings = Settings.of_properties(properties)._replace(**given)
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
        """Returns a connected client, for the prompt, notebooks and long-lived objects; `close` ends it. The
        arguments are those of the class.
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
        """Close every connection. Calls in progress fail with ClientClosed. Closing twice is harmless."""
        await self._cluster.close()

    async def first_records(
        self, positions: Iterable[Position], *, read_committed: bool = False, timeout_ms: int | None = None
    ) -> Batch[Position, FirstRecord | None]:
        """The first records at or after offsets, read from the partitions' leaders (Fetch).

        None: the log was read to its end, and there is no such record, though there may be markers of transactions.
        Records of open and aborted transactions count, as in a lookup by time (ListOffsets); with `read_committed`
        they don't, and the log is read up to its last stable offset. Fails per position: OffsetOutOfRange,
        TopicAuthorizationFailed (this needs READ on the topic), UnknownTopicOrPartition, LeaderNotAvailable …
        `timeout_ms` is for each request: many positions in large batches take many.
        """
        from groupkeeper.client.admin import record_times
        from groupkeeper.client.admin.log_fetch import Isolation

        isolation = Isolation.COMMITTED if read_committed else Isolation.UNCOMMITTED
        return await record_times.first_records(self._cluster, several(positions, "positions"), isolation, timeout_ms)

    async def record_timestamps(
        self, positions: Iterable[Position], *, timeout_ms: int | None = None
    ) -> Batch[Position, int | None]:
        """Timestamps in ms of the records that `first_records` finds, with its failures.

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
        """Read partitions from a range's first offset up to its second, exclusive (Fetch). `take` is called with each
        piece: batches, the last one possibly incomplete, also some outside the range, also aborted transactions and
        markers. It returns the offset after the last whole batch. `max_bytes`: size of a piece, unless a batch is
        larger; default: 1 MiB. Fails per partition, as `record_timestamps`. `timeout_ms` is for each piece.
        """
        from groupkeeper.client.admin.log_fetch import read_logs

        return await read_logs(self._cluster, mapped(ranges, "ranges"), take, max_bytes, timeout_ms)

    async def describe_streams_groups(
        self,
        group_ids: Iterable[str],
        *,
        include_authorized_operations: bool = False,
        include_topology: bool = False,
        timeout_ms: int | None = None,
    ) -> Batch[str, StreamsGroupDescription]:
        """Describe groups of Kafka Streams instances with their topics and tasks (KIP-1071).

        `include_topology`: also the nodes of the application, if the brokers store them (Kafka 4.4).

        Fails per group: GroupIdNotFound, also for a group of another type, GroupAuthorizationFailed,
        TopicAuthorizationFailed; UnsupportedVersion when the broker is older than 4.1, or than 4.4 and
        `include_topology` is set.
        """
        from groupkeeper.client.admin import streams_groups

        return await streams_groups.describe_streams_groups(
            self._cluster, several(group_ids, "group_ids"), include_authorized_operations, include_topology, timeout_ms
        )
