"""The progress of share groups: replays the topic of their state as the share coordinators do."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from groupkeeper.coordinator.share_state.coordinator import ShareStateCoordinator, ShareStateSettings
from groupkeeper.coordinator.share_state.state import SharePartitionKey, ShareState
from groupkeeper.pipeline.kafka.instants import Instant, LogEnds
from groupkeeper.pipeline.kafka.options import EARLIEST, LATEST, ClusterOptions, ReadOptions, Start
from groupkeeper.pipeline.kafka.planning import plan_or_raise
from groupkeeper.pipeline.kafka.source import read_ranges
from groupkeeper.pipeline.runtime.coroutines import beside_loops, result_of
from groupkeeper.protocol.codec import MalformedMessage
from groupkeeper.protocol.share_state_topic import decode_share_state

SHARE_STATE_TOPIC = "__share_group_state"
_NOTHING: Mapping[SharePartitionKey, ShareState] = MappingProxyType({})


def read_share_states(cluster: ClusterOptions, instant: Instant) -> Mapping[SharePartitionKey, ShareState]:
    """The states of all share groups of a cluster at the instant; empty if there is no such topic. Records that cannot
    be decoded are skipped. Raises SourceError.
    """
    ends = {
        (place.topic, place.partition): log.log_end_offset
        for place, log in instant.logs.items()
        if place.topic == SHARE_STATE_TOPIC and isinstance(log, LogEnds)
    }
    if not ends:
        return _NOTHING
    chosen = cluster._replace(
        topics=None,
        pattern=None,
        partitions={SHARE_STATE_TOPIC: tuple(sorted(number for _, number in ends))},
        start=Start(EARLIEST),
        end=Start(LATEST, offset_by_partition=ends),
    )
    options = ReadOptions((chosen,))
    ranges = result_of(plan_or_raise(options))
    records: list[tuple[int, int, bytes | None, bytes | None]] = []
    for batch in beside_loops(lambda: list(read_ranges(ranges, options))):
        columns = (batch[name].to_pylist() for name in ("partition", "offset", "key", "value"))
        records += zip(*columns, strict=True)
    replayed = ShareStateCoordinator(ShareStateSettings())
    for _, offset, key, value in sorted(records, key=lambda each: each[:2]):
        try:
            record = None if key is None else decode_share_state(key, value)
        except MalformedMessage:
            continue
        if record is not None:
            replayed.replay(record, offset)
    return replayed.states
