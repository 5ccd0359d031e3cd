"""Logs of whole simulations: any compaction of them gives the same groups and offsets (GR-06)."""

from copy import copy
from functools import cache

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.memory_shell import LogRecord, MemoryLog, replayed
from tests.simulation.classic.check_coordinator import frozen
from tests.simulation.classic.plan import Plan
from tests.simulation.classic.run import Run

from groupkeeper.coordinator.coordinator import Coordinator
from groupkeeper.coordinator.kernel.result import Call
from groupkeeper.protocol import messages as m


@cache
def log_of(seed: int) -> MemoryLog:
    one = Run(Plan.of_seed(seed))
    for _ in range(2_000):
        one.world.step()
    return one.world.shell.log


def answers(log: MemoryLog) -> dict[str, object]:
    """Groups by id with what is said of them; groups that hold nothing aside, as no compacted log has them (GR-05)."""
    coordinator: Coordinator = replayed(log, Plan(0).settings())
    listed = coordinator.handle(Call(0, m.ListGroupsRequest(), 5), 0).response
    assert isinstance(listed, m.ListGroupsResponse)
    said: dict[str, object] = {}
    for group in listed.groups:
        described = coordinator.handle(Call(0, m.DescribeGroupsRequest([group.group_id]), 6), 0).response
        asked = m.OffsetFetchRequest(groups=[m.OffsetFetchRequestGroup(group.group_id, topics=None)])
        fetched = coordinator.handle(Call(0, asked, 9), 0).response
        assert fetched is not None
        has_offsets = bool(fetched.groups[0].topics)  # type: ignore[union-attr]
        if has_offsets or group.protocol_type:
            said[group.group_id] = (frozen(group), frozen(described), _sorted(frozen(fetched)))
    return said


def _sorted(value: object) -> object:
    return tuple(sorted(map(_sorted, value), key=repr)) if isinstance(value, tuple) else value


@settings(max_examples=60)
@given(
    seed=st.integers(1, 12),
    length=st.floats(0, 1),
    bounds=st.tuples(st.floats(0, 1), st.floats(0, 1)).map(sorted),
    keeps_tombstones=st.booleans(),
)
def test_compacted_logs_say_the_same(seed: int, length: float, bounds: list[float], keeps_tombstones: bool) -> None:
    log = copy(log_of(seed))
    log.end_offset = int(log.end_offset * length)
    log.entries = [entry for entry in log.entries if entry.offset < log.end_offset]
    before = answers(log)
    count = len(log.entries)
    log.compact(
        stop_offset=int(bounds[0] * log.end_offset),
        to_offset=int(bounds[1] * log.end_offset),
        keep_tombstones=keeps_tombstones,
    )
    assert len(log.entries) <= count
    assert answers(log) == before
    log.compact(keep_tombstones=False)
    assert answers(log) == before
    keys = [entry.key for entry in log.entries if isinstance(entry, LogRecord)]
    assert len(keys) == len(set(keys))
