"""The uniform assignor: all members get equally many partitions, and keep their partitions if possible.

Equal input gives equal output: members and topics are processed in the order of their ids.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from heapq import heapify, heappop, heappush, heapreplace
from itertools import islice
from typing import TypeAlias

from groupkeeper.coordinator.assignors.spec import GroupSpec, TargetAssignment

_Partition: TypeAlias = tuple[bytes, int]


def assign(spec: GroupSpec) -> dict[str, TargetAssignment]:
    """The target assignment of every member, by member id."""
    if not spec.members:
        return {}
    return _assign_alike(spec) if spec.is_homogeneous else _Balance(spec).assign()


def _assign_alike(spec: GroupSpec) -> dict[str, TargetAssignment]:
    """All members subscribe to the same topics: sizes differ by at most one, with as few moves as possible."""
    quota, extras = divmod(sum(spec.partition_counts.values()), len(spec.members))
    is_free = _all_free(spec)
    kept: dict[str, TargetAssignment] = {}
    sizes: dict[str, int] = {}
    for member_id in sorted(spec.members):
        own = _take(spec.members[member_id].target, is_free)
        size = sum(map(len, own.values()))
        has_extra = size > quota and extras > 0
        extras -= has_extra
        limit = quota + has_extra
        if size > limit:
            own, size = _give_back(own, size - limit, is_free), limit
        kept[member_id], sizes[member_id] = own, size
    free = _still_free(is_free)
    for member_id, size in sizes.items():
        count = quota - size
        if count >= 0 and extras:
            count, extras = count + 1, extras - 1
        if count > 0:
            own, more = kept[member_id], _by_topic(islice(free, count))
            kept[member_id] = {**own, **{one: own.get(one, frozenset()) | more[one] for one in more}}
    return kept


def _all_free(spec: GroupSpec) -> dict[bytes, bytearray]:
    """By topic id, 1 for each partition; 0 is for those that a member has."""
    return {topic_id: bytearray(b"\1") * count for topic_id, count in spec.partition_counts.items()}


def _take(target: TargetAssignment, is_free: Mapping[bytes, bytearray]) -> TargetAssignment:
    """Takes the partitions of a target that still exist and are free."""
    own: dict[bytes, frozenset[int]] = {}
    for topic_id, some in target.items():
        flags = is_free.get(topic_id, b"")
        valid = [one for one in some if one < len(flags) and flags[one]]
        for one in valid:
            is_free[topic_id][one] = 0
        if valid:
            own[topic_id] = some if len(valid) == len(some) else frozenset(valid)
    return own


def _give_back(own: TargetAssignment, count: int, is_free: Mapping[bytes, bytearray]) -> TargetAssignment:
    """The remaining partitions without the last partitions of the last topics."""
    rest = dict(own)
    for topic_id in sorted(own, reverse=True):
        ordered = sorted(own[topic_id])
        stays = max(len(ordered) - count, 0)
        for one in ordered[stays:]:
            is_free[topic_id][one] = 1
        count -= len(ordered) - stays
        rest[topic_id] = frozenset(ordered[:stays])
        if not stays:
            del rest[topic_id]
        if not count:
            break
    return rest


def _still_free(is_free: Mapping[bytes, bytearray]) -> Iterator[_Partition]:
    for topic_id in sorted(is_free):
        found = is_free[topic_id].find(1)
        while found >= 0:
            yield topic_id, found
            found = is_free[topic_id].find(1, found + 1)


def _by_topic(partitions: Iterable[_Partition]) -> dict[bytes, frozenset[int]]:
    by_topic: dict[bytes, list[int]] = {}
    for topic_id, partition in partitions:
        by_topic.setdefault(topic_id, []).append(partition)
    return {topic_id: frozenset(numbers) for topic_id, numbers in by_topic.items()}


class _Balance:
    """Members subscribe to different topics. Starts from the partitions that members keep, gives free partitions to the
    least loaded members, then moves partitions of one topic from a member to another with at least two fewer
    partitions, until no topic allows such a move.

    Every move makes the sum of squared loads smaller, so it ends.
    """

    def __init__(self, spec: GroupSpec) -> None:
        self._is_free = _all_free(spec)
        self._subscribers: dict[bytes, list[str]] = {topic_id: [] for topic_id in spec.partition_counts}
        self._owned: dict[str, dict[bytes, list[int]]] = {}
        self._load: dict[str, int] = {}
        for member_id in sorted(spec.members):
            member = spec.members[member_id]
            for topic_id in member.topic_ids:
                if topic_id in self._subscribers:
                    self._subscribers[topic_id].append(member_id)
            subscribed = {topic_id: some for topic_id, some in member.target.items() if topic_id in member.topic_ids}
            own = _take(subscribed, self._is_free)
            self._load[member_id] = sum(map(len, own.values()))
            self._owned[member_id] = {topic_id: sorted(some) for topic_id, some in own.items()}

    def assign(self) -> dict[str, TargetAssignment]:
        # Topics with few subscribers first: their partitions have the fewest candidates.
        order = sorted(
            (topic_id for topic_id, members in self._subscribers.items() if members),
            key=lambda topic_id: (len(self._subscribers[topic_id]), topic_id),
        )
        for topic_id in order:
            self._hand_out(topic_id)
        unsettled = True
        while unsettled:
            unsettled = False
            for topic_id in order:
                unsettled |= self._even_out(topic_id)
        return {
            member_id: {topic_id: frozenset(some) for topic_id, some in owned.items() if some}
            for member_id, owned in self._owned.items()
        }

    def _hand_out(self, topic_id: bytes) -> None:
        free = [partition for partition, is_free in enumerate(self._is_free[topic_id]) if is_free]
        if not free:
            return
        by_load = [(self._load[member_id], member_id) for member_id in self._subscribers[topic_id]]
        heapify(by_load)
        for partition in free:
            load, member_id = by_load[0]
            self._owned[member_id].setdefault(topic_id, []).append(partition)
            self._load[member_id] = load + 1
            heapreplace(by_load, (load + 1, member_id))

    def _even_out(self, topic_id: bytes) -> bool:
        """Moves partitions of one topic while that improves the balance; returns whether any was moved."""
        members = self._subscribers[topic_id]
        givers = [(-self._load[member_id], member_id) for member_id in members if self._owned[member_id].get(topic_id)]
        if not givers or -min(givers)[0] - min(self._load[member_id] for member_id in members) < 2:
            return False
        takers = [(self._load[member_id], member_id) for member_id in members]
        heapify(givers)
        heapify(takers)
        while givers and -givers[0][0] - takers[0][0] > 1:
            giver_load, giver_id = -givers[0][0], givers[0][1]
            taker_load, taker_id = takers[0]
            partition = self._owned[giver_id][topic_id].pop()
            self._owned[taker_id].setdefault(topic_id, []).append(partition)
            self._load[giver_id], self._load[taker_id] = giver_load - 1, taker_load + 1
            heapreplace(takers, (taker_load + 1, taker_id))
            if self._owned[giver_id][topic_id]:
                heapreplace(givers, (1 - giver_load, giver_id))
            else:
                heappop(givers)
            heappush(takers, (giver_load - 1, giver_id))
            while takers[0][0] != self._load[takers[0][1]]:
                heappop(takers)
        return True
