"""Keys, order, matches and groups of rows, against the same by loops over Python's rows."""

import random
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from groupkeeper.pipeline.relations import (
    Groups,
    appended,
    earlier,
    in_order,
    is_known,
    keys,
    lists,
    matches,
    numbers,
    runs,
    tails,
    taken,
    time_of,
    times,
    together,
    unnested,
    values,
)
from groupkeeper.pipeline.tables.schema import TIME

_NAMES = ("cluster", "partition")


def _table(rows: list[tuple[str | None, int | None]]) -> pa.Table:
    columns = tuple(zip(*rows, strict=True)) or ((), ())
    return pa.table({"cluster": pa.array(columns[0], pa.string()), "partition": pa.array(columns[1], pa.int32())})


@pytest.fixture(params=range(8))
def pair(request: Any) -> tuple[list[Any], list[Any]]:
    chance = random.Random(request.param)

    def some(count: int) -> list[Any]:
        return [(chance.choice(["a", "b", "ab", None]), chance.choice([0, 1, None])) for _ in range(count)]

    return some(chance.choice([0, 1, 40])), some(chance.choice([0, 1, 40]))


def test_equal_keys_have_equal_numbers_in_all_tables(pair: tuple[list[Any], list[Any]]) -> None:
    first, second = pair
    numbered = np.concatenate(keys(_NAMES, _table(first), _table(second))).tolist()
    assert [one == other for one in numbered for other in numbered] == [
        one == other for one in first + second for other in first + second
    ]


def test_a_match_is_the_last_row_with_the_key(pair: tuple[list[Any], list[Any]]) -> None:
    first, second = pair
    of, others = keys(_NAMES, _table(first), _table(second))
    wanted = [max((at for at, row in enumerate(second) if row == own), default=-1) for own in first]
    assert matches(of, others).tolist() == wanted


def test_runs_know_their_rows_before_and_their_sums(pair: tuple[list[Any], list[Any]]) -> None:
    rows = sorted(pair[0] + pair[1], key=str)
    (key,) = keys(_NAMES, _table(rows))
    order = in_order(key, np.arange(len(key)))
    groups = Groups.sorted(key[order])
    own = [rows[at] for at in order]
    wanted = [each == (("a", 1)) or at % 3 == 0 for at, each in enumerate(own)]
    for is_before in (False, True):
        assert groups.last(np.array(wanted, bool), is_before=is_before).tolist() == [
            max((at for at in range(here + 1 - is_before) if wanted[at] and own[at] == own[here]), default=-1)
            for here in range(len(own))
        ]
    assert groups.before().tolist() == [at - 1 if at and own[at - 1] == own[at] else -1 for at in range(len(own))]
    assert groups.sum(np.arange(len(own))).tolist() == [
        sum(at for at, row in enumerate(own) if row == each) for each in dict.fromkeys(own)
    ]
    assert groups.sizes.tolist() == [own.count(each) for each in dict.fromkeys(own)]
    assert groups.ends.tolist() == [len(own) - 1 - own[::-1].index(each) for each in dict.fromkeys(own)]


def _placed(rows: list[tuple[str | None, int | None]], chance: random.Random) -> pa.Table:
    offsets = chance.sample(range(100), len(rows))
    return _table(rows).append_column("log_offset", pa.array(offsets, pa.int64()))


def test_runs_are_in_the_order_of_the_log(pair: tuple[list[Any], list[Any]]) -> None:
    rows = _placed(pair[0], random.Random(1)).to_pylist()
    order, groups = runs(_NAMES, _placed(pair[0], random.Random(1)))
    own = [[rows[at] for at in order[start : end + 1]] for start, end in zip(groups.starts, groups.ends, strict=True)]
    by_offset = sorted(rows, key=lambda row: row["log_offset"])
    expected = [[row for row in by_offset if (row["cluster"], row["partition"]) == key] for key in set(pair[0])]
    assert sorted(map(str, own)) == sorted(map(str, expected))


def test_an_earlier_row_is_the_last_one_before(pair: tuple[list[Any], list[Any]]) -> None:
    first, second = (_placed(rows, random.Random(number)) for number, rows in enumerate(pair))
    wanted = [
        max(
            ((other["log_offset"], at) for at, other in enumerate(second.to_pylist())
             if [other[name] for name in _NAMES] == [row[name] for name in _NAMES]
             and other["log_offset"] < row["log_offset"]),
            default=(0, -1),
        )[1]
        for row in first.to_pylist()
    ]  # fmt: skip
    assert earlier(_NAMES, first, second).tolist() == wanted


def test_nulls_are_taken_where_there_is_no_row() -> None:
    rows = _table([("a", 1), (None, 2)])
    assert taken(rows, np.array([1, -1, 0])).to_pylist() == [
        {"cluster": None, "partition": 2}, {"cluster": None, "partition": None}, {"cluster": "a", "partition": 1},
    ]  # fmt: skip


def test_numbers_and_values_tell_null_apart() -> None:
    column = pa.chunked_array([pa.array([3, None]), pa.array([0])])
    assert numbers(column, -7).tolist() == [3, -7, 0]
    assert is_known(column).tolist() == [True, False, True]
    assert values(column) == [3, None, 0]
    assert numbers(pa.array([5, None], TIME)).tolist() == [5, 0]
    assert values(pa.array([True, None])) == [True, None]
    assert values(pa.array(["x", None])) == ["x", None]


def test_lists_keep_their_last_elements() -> None:
    sizes, elements = np.array([3, 0, 2]), pa.array([1, 2, 3, 4, 5])
    is_kept = tails(sizes, 2)
    assert lists(sizes, elements).to_pylist() == [[1, 2, 3], [], [4, 5]]
    assert lists(np.minimum(sizes, 2), elements.filter(pa.array(is_kept))).to_pylist() == [[2, 3], [], [4, 5]]


def test_lists_are_appended_to_lists() -> None:
    found = appended(np.array([2, 0, 1]), np.array([1, 2, 3]), np.array([0, 2, 1]), np.array([7, 8, 9]))
    assert found.tolist() == [1, 2, 7, 8, 3, 9]


def test_each_element_of_a_list_is_a_row() -> None:
    rows = pa.table({"name": ["a", "b", "c", "d"], "own": pa.array([[1, 2], None, [], [3]], pa.list_(pa.int64()))})
    assert unnested(rows, "own").to_pylist() == [
        {"name": "a", "own": 1}, {"name": "a", "own": 2}, {"name": "d", "own": 3},
    ]  # fmt: skip


def test_times_that_no_calendar_has_are_null() -> None:
    milliseconds = pa.array([0, -1, None, 253_402_300_799_999, 253_402_300_800_000, 2**63 - 1], pa.int64())
    found = time_of(milliseconds)
    assert found.type == TIME
    assert found.is_valid().to_pylist() == [True, False, False, True, False, False]
    assert found[0].as_py() == datetime(1970, 1, 1, tzinfo=UTC)
    assert times(np.array([5, 6]), np.array([True, False])).equals(pa.array([5, None], TIME))


def test_parts_are_together_in_one_order_of_columns() -> None:
    first = _table([("a", 1)])
    assert together(first, first.select(["partition", "cluster"])).to_pylist() == first.to_pylist() * 2
