"""Share sessions (KIP-932): the partitions that a member of a share group fetches, and the order of its requests.

A session ends when its member closes it or its connection is lost; the member's acquired records are then released.
"""

from __future__ import annotations

import asyncio
from logging import getLogger

from groupkeeper.broker.network.long_requests import each_in_turns
from groupkeeper.protocol import errors
from groupkeeper.protocol.errors import KafkaError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from groupkeeper.broker.shares.leader import SharePartitions

    TopicIdPartition = tuple[bytes, int]

_log = getLogger("groupkeeper.broker")

FIRST_EPOCH = 0
FINAL_EPOCH = -1
_LAST_EPOCH = 2**31 - 1


class ShareSession:
    """A member's session.

    Attributes:
        epoch: the epoch that the next request must have.
        topics: by topic id and partition: the topic's name when it was added, None if the id was unknown.
        unanswered: partitions that were added later or had an error: the next response includes them, even without
            records.
        is_over: whether the session has ended, or the member has begun another session.
    """

    def __init__(self, group_id: str, member_id: str, node: int, task: asyncio.Task[Any] | None = None) -> None:
        """`task` serves the connection to a node on which the session began, until that connection ends."""
        self.group_id = group_id
        self.member_id = member_id
        self.node = node
        self.epoch = FIRST_EPOCH + 1
        self.topics: dict[TopicIdPartition, str | None] = {}
        self.unanswered: set[TopicIdPartition] = set()
        self.is_over = False
        self.task = task

    def add(self, tp: TopicIdPartition, name: str | None) -> bool:
        """Adds a partition; returns whether it is new."""
        is_new = tp not in self.topics
        if self.topics.get(tp) is None:
            self.topics[tp] = name
        return is_new

    def forget(self, tp: TopicIdPartition) -> None:
        """Removes a partition."""
        self.topics.pop(tp, None)
        self.unanswered.discard(tp)

    def advance(self) -> None:
        """Advances the epoch after a request in the right order."""
        self.epoch = 1 if self.epoch == _LAST_EPOCH else self.epoch + 1


class ShareSessions:
    """The sessions of all members. `partitions`: the share-partitions that they fetch from."""

    def __init__(self, partitions: SharePartitions) -> None:
        self.partitions = partitions
        self._sessions: dict[tuple[str, str, int], ShareSession] = {}
        self._ending: set[ShareSession] = set()
        self._sessions_of_task: dict[asyncio.Task[Any], set[ShareSession]] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    def begin(self, group_id: str, member_id: str, node: int) -> ShareSession:
        """A new session, which replaces an earlier one of the member on the node. Raises `ShareSessionLimitReached`."""
        earlier = self._sessions.get((group_id, member_id, node))
        if earlier is not None:
            self._remove(earlier)
        if len(self._sessions) >= self.partitions.broker.config.group_share_max_share_sessions:
            raise errors.ShareSessionLimitReached
        task = asyncio.current_task()
        session = self._sessions[group_id, member_id, node] = ShareSession(group_id, member_id, node, task)
        if task is not None:
            if task not in self._sessions_of_task:
                self._sessions_of_task[task] = set()
                task.add_done_callback(self._connection_ended)
            self._sessions_of_task[task].add(session)
        return session

    def require(self, group_id: str, member_id: str, node: int, epoch: int) -> ShareSession:
        """The session of a request to a node with an epoch; FINAL_EPOCH is always valid.

        Raises `ShareSessionNotFound`, `InvalidShareSessionEpoch`.
        """
        session = self._sessions.get((group_id, member_id, node))
        if session is None:
            raise errors.ShareSessionNotFound
        if epoch not in (FINAL_EPOCH, session.epoch):
            raise errors.InvalidShareSessionEpoch
        return session

    async def end(self, session: ShareSession) -> None:
        """Ends a session and releases the records that its member has acquired."""
        if self._remove(session):
            self._ending.add(session)
            await self._release(session)

    def _remove(self, session: ShareSession) -> bool:
        """Removes a session; returns whether it still existed, as the member may have begun another one."""
        key = session.group_id, session.member_id, session.node
        is_there = self._sessions.get(key) is session
        if is_there:
            del self._sessions[key]
            session.is_over = True
            if session.task in self._sessions_of_task:
                self._sessions_of_task[session.task].discard(session)
        return is_there

    async def _release(self, session: ShareSession) -> None:
        try:
            await self._give_back(session)
        finally:
            self._ending.discard(session)
        if not self._has_sessions(session.group_id):
            await self.partitions.settle(session.group_id)
        if not self._has_sessions(session.group_id):  # another session may have begun
            self.partitions.drop_group(session.group_id)

    def _has_sessions(self, group_id: str) -> bool:
        """Whether a group has sessions, or ending sessions that still have to release their records."""
        return any(one.group_id == group_id for one in (*self._sessions.values(), *self._ending))

    async def _give_back(self, session: ShareSession) -> None:
        async def release(tp: TopicIdPartition) -> None:
            led = self.partitions.get(session.group_id, *tp)
            if led is not None:
                try:
                    await led.release(session.member_id)
                except KafkaError as error:
                    _log.warning(
                        "records acquired by %s stay locked until their locks expire: %s",
                        session.member_id,
                        error.message,
                    )

        await each_in_turns(self.partitions.broker, list(session.topics), release)

    def _connection_ended(self, task: asyncio.Task[Any]) -> None:
        for session in self._sessions_of_task.pop(task):
            if self._remove(session) and not self.partitions.is_stopped:
                self._ending.add(session)
                self.partitions.spawn(self._release(session))
