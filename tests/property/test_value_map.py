"""A mapping whose changed copies are cheap, beside a dict."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groupkeeper.coordinator.kernel.value_map import ValueMap

KEYS = st.integers(0, 40)
CHANGES = st.lists(
    st.one_of(st.dictionaries(KEYS, st.none() | st.integers(), max_size=5), st.lists(KEYS, max_size=3).map(tuple)),
    max_size=60,
)


@given(st.dictionaries(KEYS, st.integers()), CHANGES)
def test_it_is_as_a_dict(first: dict[int, int | None], changes: list[dict[int, int | None] | tuple[int, ...]]) -> None:
    ours: ValueMap[int, int | None] = ValueMap(first)
    states = [(ours, dict(first))]
    no: Any = "no"
    for change in changes:
        ours, theirs = states[-1][0], dict(states[-1][1])
        if isinstance(change, dict):
            theirs.update(change)
            states.append((ours.having(change), theirs))
        else:
            for key in change:
                theirs.pop(key, None)
            states.append((ours.without(*change), theirs))
    for ours, theirs in reversed(states):  # no copy has changed another one
        assert (len(ours), list(ours), bool(ours)) == (len(theirs), list(theirs), bool(theirs))
        assert [ours.get(key, no) for key in range(41)] == [theirs.get(key, no) for key in range(41)]
        assert [key in ours for key in range(41)] == [key in theirs for key in range(41)]
        assert (list(ours.items()), list(ours.values())) == (list(theirs.items()), list(theirs.values()))
        assert ours == ValueMap(theirs)
        assert repr(ours) == f"ValueMap({theirs})"


def test_what_was_removed_is_not_there() -> None:
    with pytest.raises(KeyError, match="7"):
        ValueMap(dict.fromkeys(range(100))).without(7)[7]
