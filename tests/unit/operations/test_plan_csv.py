"""Reset plans as CSV (K122-72, K122-80)."""

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groupkeeper.client.admin.types import TopicPartition
from groupkeeper.operations.plan_csv import BadPlan, NegativeOffset, read, write

T0, T1 = TopicPartition("orders", 0), TopicPartition("orders", 1)


def test_a_long_line_needs_no_memory_for_each_letter() -> None:
    """As where a quote that is not closed swallows a file without ends of lines."""
    text = 'g,"' + "a" * 100_000
    tracemalloc.start()
    with pytest.raises(BadPlan, match="a quote is not closed"):
        read(text)
    assert tracemalloc.get_traced_memory()[1] < 1_000_000
    tracemalloc.stop()


def test_three_fields_are_of_the_only_group() -> None:
    assert read("orders,0,2\norders,1,8\n", "g") == {"g": {T0: 2, T1: 8}}
    assert read("orders,0,2\r\norders,1,8\r\n\n\n", "g") == {"g": {T0: 2, T1: 8}}


def test_four_fields_name_their_group() -> None:
    assert read("g,orders,0,2\nh,orders,1,8", "g") == {"g": {T0: 2}, "h": {T1: 8}}
    assert read("g,orders,0,2\ng,orders,0,3\n") == {"g": {T0: 3}}


def test_quotes_and_blanks() -> None:
    assert read('"a,""b" , 0, +2 ', "g") == {"g": {TopicPartition('a,"b', 0): 2}}
    assert read(" orders,0,2", "g") == {"g": {TopicPartition(" orders", 0): 2}}
    assert read('or"ders,0,2', "g") == {"g": {TopicPartition('or"ders', 0): 2}}


@pytest.mark.parametrize(
    "text",
    [
        "orders,zero,1",
        "orders,0",
        "orders,0,",
        "g,orders,0,1,9",
        "orders,0,2.0",
        "orders,0,1_0",
        "orders,0,1e1",
        "orders,0,99999999999999999999",
        "orders,99999999999,2",
        '"orders,0,2',
        '"orders"x,0,2',
        "orders,0,2\n\norders,1,3",
    ],
)
def test_lines_that_are_no_plan(text: str) -> None:
    with pytest.raises(BadPlan, match="line"):
        read(text, "g")


@pytest.mark.parametrize("text", ["g,orders,0,{}", "g,orders,{},1", "orders,0,{}"])
@pytest.mark.parametrize("fill_gaps", [False, True])
def test_a_number_of_thousands_of_digits_has_the_wrong_size(text: str, fill_gaps: bool) -> None:
    with pytest.raises(BadPlan, match="is not a number of the right size"):
        read(text.format("9" * 5000), None if text[0] == "g" else "g", fill_gaps=fill_gaps)


# What the official tool makes of gaps: a defect that the drop-in command keeps.
def test_gaps_are_filled_when_asked_to() -> None:
    assert read("orders,1", "g", fill_gaps=True) == {"g": {T1: 0}}
    assert read("orders,,null,", "g", fill_gaps=True) == {"g": {T0: 0}}
    assert read("orders,zero,1", "g", fill_gaps=True) == {"orders": {TopicPartition("zero", 1): 0}}
    assert read("\n", "g", fill_gaps=True) == {}
    with pytest.raises(BadPlan):
        read("", "g", fill_gaps=True)


def test_nothing_is_no_plan_for_anybody() -> None:
    assert read("", "g") == {}


def test_negative_offsets_are_a_kind_of_their_own() -> None:
    with pytest.raises(NegativeOffset):
        read("orders,0,-5", "g")


def test_writing_quotes_what_would_be_misread() -> None:
    plans = [("a,b", {TopicPartition("l" * 25, 1): 0}), ('q"', {T0: 5}), ("back\\slash", {T0: 1})]
    assert write(plans, with_group=True) == (
        '"a,b",' + '"' + "l" * 25 + '",1,0\n' + '"q""",orders,0,5\n"back\\slash",orders,0,1\n'
    )
    assert write([("g", {T0: 5, T1: 6})], with_group=False) == "orders,0,5\norders,1,6\n"


names = st.text(st.characters(exclude_characters="\r\n", exclude_categories=["Cs"]), min_size=1, max_size=30)
offsets = st.dictionaries(
    st.builds(TopicPartition, names, st.integers(0, 2**31 - 1)), st.integers(0, 2**63 - 1), min_size=1
)


@given(plans=st.dictionaries(names, offsets, min_size=1, max_size=3))
def test_what_is_written_reads_back(plans: dict[str, dict[TopicPartition, int]]) -> None:
    assert read(write(plans.items(), with_group=True)) == plans
