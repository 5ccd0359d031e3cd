"""Further copies of records behind a place."""

import pytest

from groupkeeper.operations.plans.clones.matcher import Trace
from groupkeeper.operations.plans.clones.repeated_copies import Tail, tail_of
from groupkeeper.operations.plans.log_walk import Kept


def trace(*numbers: int, begin: int = 0, later_ms: int = 0, aborted: frozenset[int] = frozenset()) -> Trace:
    """Of records by their numbers; 100 and more are others'. `later_ms`: copies got times of their own."""
    records = [
        Kept(begin + at, 1000 + number + later_ms, False, number in aborted, b"%d" % number)
        for at, number in enumerate(numbers)
    ]
    return Trace(begin, begin + len(numbers), records, is_from_start=False, is_to_end=True)


SOURCE = trace(*range(60))


@pytest.mark.parametrize("later_ms", [0, 5])
def test_copies_behind_a_place_are_counted(later_ms: int) -> None:
    tail = tail_of(SOURCE, trace(*range(40, 60), *range(45, 60), 100, begin=300, later_ms=later_ms))
    assert tail.read_again(50, 310) == 5  # 45 to 49, once more
    assert tail.read_again(50, 300) == 15
    assert tail.read_again(45, 305) == 0
    assert tail.read_again(60, 320) == 15
    assert not tail.is_all_again(320)  # there is a record of another


def test_nothing_but_copies() -> None:
    tail = tail_of(SOURCE, trace(*range(45, 60), begin=320))
    assert tail.is_all_again(320)
    assert not tail.is_all_again(319)  # what is before was not looked at
    assert not Tail().is_all_again(0)


def test_a_few_records_without_their_times_are_no_copies() -> None:
    """They may be the same by chance; with their times they are not."""
    few = (50, 51, 52)
    assert tail_of(SOURCE, trace(*few, begin=300, later_ms=5)).read_again(60, 300) == 0
    assert tail_of(SOURCE, trace(*few, begin=300)).read_again(60, 300) == 3


def test_some_copies_have_their_times_and_some_have_not() -> None:
    kept, stamped = trace(*range(40, 50), begin=300), trace(*range(40, 55), begin=310, later_ms=5)
    both = kept._replace(end=stamped.end, records=[*kept.records, *stamped.records])
    assert tail_of(SOURCE, both).read_again(50, 310) == 10


def test_aborted_records_are_no_copies_and_have_none() -> None:
    source = trace(*range(60), aborted=frozenset({58}))
    tail = tail_of(source, trace(57, 58, 59, begin=300, aborted=frozenset({57})))
    assert tail.read_again(60, 300) == 1
