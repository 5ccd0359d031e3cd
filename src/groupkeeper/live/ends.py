"""Where logs ended at earlier looks: between two of them a record was written, which tells about when."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Collection

from groupkeeper.client.admin.types import TopicPartition

_MOST_POINTS = 24
"""Of a partition: a day of looks is thinned to these, the newer ones lying closer together."""


class EndsSeen:
    """The ends of logs with their times. Memory is bounded by the number of partitions."""

    def __init__(self) -> None:
        self._points: dict[TopicPartition, tuple[array[int], array[int]]] = {}

    def note(self, topic_partition: TopicPartition, end: int, at_ms: int, *, is_new: bool = False) -> bool:
        """The log ended so at that time. ``is_new``: it is of another topic of that name than before. A log that has
        become shorter counts as a new one, too: returns whether it is new.
        """
        ends, times = self._points.setdefault(topic_partition, (array("q"), array("q")))
        is_new = is_new or (bool(ends) and end < ends[-1])
        if is_new or (ends and at_ms < times[-1]):
            del ends[:], times[:]
        if len(ends) > 1 and ends[-2] == end:  # a log at rest: only how long matters
            times[-1] = at_ms
            return is_new
        ends.append(end)
        times.append(at_ms)
        if len(ends) > _MOST_POINTS:
            del ends[1 : _MOST_POINTS // 2 : 2], times[1 : _MOST_POINTS // 2 : 2]
        return is_new

    def written_ms(self, topic_partition: TopicPartition, offset: int) -> int | None:
        """About when the record with this offset was written; None: before the first look, or not yet."""
        ends, times = self._points.get(topic_partition, (array("q"), array("q")))
        after = bisect_right(ends, offset)
        if not 0 < after < len(ends):
            return None
        first, last = ends[after - 1], ends[after]
        return times[after - 1] + (times[after] - times[after - 1]) * (offset - first) // (last - first)

    def seen_ms(self, topic_partition: TopicPartition, offset: int) -> int | None:
        """The first look that found the log longer than this offset: the record was written before; None: none did."""
        ends, times = self._points.get(topic_partition, (array("q"), array("q")))
        after = bisect_right(ends, offset)
        return times[after] if after < len(ends) else None

    def keep(self, places: Collection[TopicPartition]) -> None:
        """Remove all others."""
        if len(self._points) > len(places):
            self._points = {
                topic_partition: points for topic_partition, points in self._points.items() if topic_partition in places
            }
