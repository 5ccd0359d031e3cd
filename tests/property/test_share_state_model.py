"""Share state against a model that knows every offset by itself, and against its own log."""

import itertools
from contextlib import suppress

from hypothesis import given
from hypothesis import strategies as st
from tests.unit.coordinator.share_state_driver import Store

from groupkeeper.coordinator.share_state.state import StateBatch, combine_batches
from groupkeeper.protocol.errors import FencedLeaderEpoch

_BATCH = st.builds(
    lambda first, length, state, count: StateBatch(first, first + length, state, count),
    st.integers(0, 40),
    st.integers(0, 12),
    st.sampled_from([0, 2, 4]),
    st.integers(1, 3),
)
_BATCHES = st.lists(_BATCH, max_size=8).map(tuple)


def by_offset(batches: tuple[StateBatch, ...], start_offset: int) -> dict[int, tuple[int, int]]:
    """Deliveries and state of each offset; the highest of several."""
    known: dict[int, tuple[int, int]] = {}
    for batch in batches:
        for offset in range(max(batch.first_offset, start_offset), batch.last_offset + 1):
            rank = batch.delivery_count, batch.delivery_state
            known[offset] = max(known.get(offset, rank), rank)
    return known


@given(stored=_BATCHES, added=_BATCHES, start_offset=st.integers(-1, 30))
def test_combining_is_the_highest_of_every_offset(
    stored: tuple[StateBatch, ...], added: tuple[StateBatch, ...], start_offset: int
) -> None:  # GS-11
    combined = combine_batches(combine_batches((), stored, -1), added, start_offset)
    assert by_offset(combined, -1) == by_offset(stored + added, start_offset)
    for one, following in itertools.pairwise(combined):
        assert one.first_offset <= one.last_offset < following.first_offset
        is_neighbour = one.last_offset + 1 == following.first_offset
        assert not is_neighbour or one[2:] != following[2:], "neighbours that are alike stayed apart"


_OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.just("initialize"), st.integers(0, 3), st.integers(-1, 20)),
        st.tuples(st.just("write"), st.integers(-1, 30), _BATCHES),
        st.tuples(st.just("read"), st.integers(0, 5)),
        st.tuples(st.just("delete")),
        st.tuples(st.just("cold")),
    ),
    max_size=40,
)


@given(
    limit=st.integers(0, 3), partitions=st.lists(st.integers(0, 2), min_size=40, max_size=40), operations=_OPERATIONS
)
def test_the_log_gives_the_live_state(limit: int, partitions: list[int], operations: list[tuple[object, ...]]) -> None:
    # GS-14: from the start of the log, and from what pruning leaves of it
    store = Store(updates_per_snapshot=limit)
    for partition, (name, *details) in zip(partitions, operations, strict=False):
        store.now_ms += 400_000
        one = store.at(partition)
        one.now_ms = store.now_ms
        is_known = one.key in store.coordinator.states
        if name == "initialize" and isinstance(details[0], int) and isinstance(details[1], int):
            if not is_known or details[0] >= one.state.state_epoch:
                one.initialize(details[0], details[1])
        elif name == "write" and is_known:
            start_offset, added = details
            assert isinstance(start_offset, int)
            assert isinstance(added, tuple)
            with suppress(FencedLeaderEpoch):  # a leader of before the partition was initialized again
                one.write(start_offset=start_offset, added=added)
        elif name == "read" and is_known and isinstance(details[0], int):
            with suppress(FencedLeaderEpoch):
                one.read(details[0])
        elif name == "delete":
            one.delete()
        elif name == "cold":
            one.snapshot_cold()
    assert store.rebuilt() == store.coordinator.states
    assert store.rebuilt(max(store.coordinator.redundant_offset, 0)) == store.coordinator.states
