"""Admin for programs: the client's calls, and calls that take several of these."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, NamedTuple

from groupkeeper.client.admin import Admin as Client
from groupkeeper.client.admin.arguments import several
from groupkeeper.client.admin.types import Batch, Failure
from groupkeeper.client.errors import CallTimedOut

if TYPE_CHECKING:
    from collections.abc import Iterable

    from groupkeeper.operations.groups import AnyGroup
    from groupkeeper.operations.lag import PartitionLag


class GroupLag(NamedTuple):
    """The progress of a group. `partitions`: those with an offset, or assigned to a member, in order.

    `group`: its description; None: unknown, `failure` has the reason, and `partitions` all data that could be
    found.
    """

    group_id: str
    partitions: tuple[PartitionLag, ...]
    group: AnyGroup | None = None
    failure: Failure | None = None

    @property
    def total(self) -> int | None:
        """The known lag of all partitions together; None: unknown for all of them."""
        known = [each.lag for each in self.partitions if each.lag is not None]
        return sum(known) if known else None


class GroupLags(Batch[str, GroupLag]):
    """The groups by id, as in every Batch; a class of its own, so that even an empty table of it has columns."""

    __slots__ = ()


class Admin(Client):
    """An asynchronous admin client. Use it as `async with Admin("host:9092") as admin: …`, or `connect` it.

    `bootstrap_servers` is "host:port,host:port" ("[::1]:9092" for IPv6). `properties` are Kafka's client properties
    by their Java names (security.protocol, request.timeout.ms …); an argument wins over a property, and names that this
    client doesn't know are ignored. Certificate stores are read here; an unusable one raises IllegalArgument.
    `token_provider` is called for tokens when sasl.mechanism is OAUTHBEARER.

    Entering connects to the first bootstrap server that answers. Every call takes `timeout_ms`, the time for the
    whole call with all its retries (None: `default_timeout_ms`). Calls raise `ClientError` (could not ask:
    `CallTimedOut`, `ConnectionFailed`, `UnsupportedVersion` …) or `KafkaError` (the broker refused) when nothing can be
    answered at all; calls on many keys return a `Batch` that has each key's result or failure. A single value instead
    of a collection (`"billing"` for `["billing"]`) raises IllegalArgument.
    """

    async def lag(
        self,
        group_ids: Iterable[str] | None = None,
        *,
        topics: Iterable[str] = (),
        read_committed: bool = False,
        timeout_ms: int | None = None,
    ) -> GroupLags:
        """The progress of groups of every type: committed offsets, log starts and ends, and the lag between.

        `group_ids` None: all groups. `topics`: only those, by name or glob; empty: all. `read_committed`: the lag
        ends at the last stable offset. Each partition has a `status` that explains its numbers: uncommitted,
        below_log_start, deleted … Fails per group of which nothing is known: GroupIdNotFound, GroupAuthorizationFailed.
        `timeout_ms` is for everything together; None: each request has the default timeout.
        """
        from groupkeeper.operations.lag import GroupsLag, lag_at_an_instant
        from groupkeeper.operations.selection import Names

        async def ask() -> tuple[list[str], GroupsLag]:
            wanted = await self._with_offsets() if group_ids is None else several(group_ids, "group_ids")
            names = Names(several(topics, "topics"))
            found = await lag_at_an_instant(self, wanted, topics=names, to_last_stable=read_committed)
            return wanted, found[1]

        try:
            async with asyncio.timeout(None if timeout_ms is None else timeout_ms / 1000):
                wanted, found = await ask()
        except TimeoutError:
            raise CallTimedOut(f"lag timed out after {timeout_ms} ms") from None
        batch = GroupLags()
        for group_id in wanted:
            rows, failure = found.rows.get(group_id, []), found.failed.get(group_id)
            if failure is not None and not rows:
                batch.failed[group_id] = failure
            else:
                batch.done[group_id] = GroupLag(group_id, tuple(rows), found.descriptions.get(group_id), failure)
        return batch

    async def _with_offsets(self) -> list[str]:
        """All groups whose type has offsets; of classic groups, those of consumers."""
        from groupkeeper.operations.selection import CONSUMER_PROTOCOLS, SHARE_PROTOCOL, STREAMS_PROTOCOL

        protocols = (*CONSUMER_PROTOCOLS, SHARE_PROTOCOL, STREAMS_PROTOCOL)
        return sorted((await self.list_groups(protocol_types=protocols)).all())
