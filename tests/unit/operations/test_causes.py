"""Which partitions that stand still are told, and what helps."""

from tests.unit.live.views import described, member, row

from groupkeeper.client.admin.types import TopicPartition
from groupkeeper.operations.causes.facts import Fact, GroupAtInstant, _rates, facts_of
from groupkeeper.rules.causes import Pace

PLACES = [TopicPartition("t", each) for each in range(4)]
GROUP = described("g", member("reader", *PLACES[:3]), member("other", PLACES[3]))
STANDS, MOVES = Pace(0, 0, True), Pace(10, 10, True)


def stuck(*stands: int, apart_ms: int = 300_000) -> list[Fact]:
    """What is told of the partitions that stand still, of which the first three are one member's."""
    rows = [row("t", each, 40)._replace(member=GROUP.members[each == 3]) for each in range(4)]
    rates = {tp: STANDS if tp.partition in stands else MOVES for tp in PLACES}
    return facts_of("g", GroupAtInstant(GROUP, rows, 0, rates=rates, apart_ms=apart_ms))


def test_a_record_is_skipped_only_where_one_of_several_partitions_of_a_member_stands_still() -> None:
    (fact,) = stuck(1)
    assert fact.words == ("plan", "reset", "--topic", "t:1", "--shift-by", "1")


def test_a_member_that_hangs_is_told_once() -> None:
    (some,) = stuck(0, 1)
    assert "2 of 3 of this member stand still: restart the member" in some.text
    (whole,) = stuck(0, 1, 2)
    assert "all 3 partitions of this member stand still" in whole.text
    (only,) = stuck(3)
    assert "it is the only partition of this member: restart the member" in only.text
    assert {fact.words for fact in (some, whole, only)} == {("groups", "members")}


def test_where_nothing_moves_no_record_is_skipped() -> None:
    assert {fact.words for fact in stuck(0, 1, 2, 3)} == {("groups", "members")}


def test_two_looks_that_are_close_prove_nothing() -> None:
    assert [fact.words for fact in stuck(0, 1, apart_ms=5_000)] == [("groups", "why", "--interval", "5m")] * 2


def test_an_end_that_one_look_does_not_know_is_not_0() -> None:
    known, unknown = row("t", 0, 40), row("t", 0, 40, None)
    assert _rates([known], [known], 1000) == {PLACES[0]: Pace(0, 0, True)}
    assert _rates([unknown], [known], 1000) == _rates([known], [unknown], 1000) == {}
    never = row("t", 0, None, 100)._replace(log_start_offset=None)
    assert facts_of("g", GroupAtInstant(GROUP, [never], 0)) == []  # the log may be empty


def test_records_that_were_removed_or_are_done_ahead_do_not_wait() -> None:
    known = GroupAtInstant(GROUP, [], 0)
    assert known.waiting(row("t", 0, 40)._replace(log_start_offset=90)) == 10
    assert known.waiting(row("t", 0, 40)._replace(lag=7, done_ahead=53)) == 7  # of a share group
