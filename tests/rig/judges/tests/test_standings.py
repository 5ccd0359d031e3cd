"""What the status and the trend of a group may be, by facts."""

import pytest
from tests.rig.asking import Answer
from tests.rig.facts import DONE, Assigned, Committed, Joining, Left, Made, Produced, TransactionEnded
from tests.rig.judges.standings import admissible
from tests.rig.judges.trends import Poll, Trends
from tests.rig.truth import Truth

SECOND = 1_000_000_000
NOW = 1_000_000 * SECOND
POLLS = [Poll(number, at, at) for number in range(1, 1002) if (at := NOW - (1001 - number) * 5 * SECOND)]
"""Every five seconds until now."""


def truth(
    offset: int, *, age_s: int, committed_s: int, partitions: int = 1, retention_ms: int = -1, joins: bool = False,
    leaves: bool = False, before_s: tuple[int, ...] = (),
) -> Truth:  # fmt: skip
    """Two records of an age, and a group that has committed an offset so long ago, and others so long before."""
    made = Truth()
    settings = {"retention.ms": str(retention_ms)} if retention_ms >= 0 else {}
    made.add([Made("c", "t", partitions, settings, 0, 0)])
    at_ms = (NOW - age_s * SECOND) // 1_000_000
    made.add([Produced("c", "t", partition, at, at_ms, 10, "p", at, None, False, None, 1, 2)
              for partition in range(partitions) for at in range(2)])  # fmt: skip
    for number, ago_s in enumerate((*before_s, committed_s)):
        then, at = NOW - ago_s * SECOND, offset if ago_s == committed_s else offset + 1 + number
        made.add([Committed("c", "g", "t", 0, at, -1, "", DONE, "a", then, then + 1)])
    if joins:
        made.add([Joining("c", "g", "a", 1, 1), Assigned("c", "g", "a", 1, [("t", 0)], 2)])
    if leaves:
        made.add([Left("c", "g", "a", 1, False, 3, 4)])
    return made


@pytest.mark.parametrize(
    ("made", "wanted"),
    [
        (truth(2, age_s=900, committed_s=900), {"ok"}),
        (truth(1, age_s=10, committed_s=900), {"ok"}),
        (truth(3, age_s=10, committed_s=900), {"unknown"}),  # past the end of the log
        (truth(1, age_s=900, committed_s=10), {"lagging"}),
        (truth(1, age_s=900, committed_s=610), {"lagging", "stopped"}),  # a poll may have found it just now
        (truth(0, age_s=900, committed_s=610), {"lagging", "stopped"}),  # the first commit, of the first offset
        (truth(1, age_s=900, committed_s=900), {"stopped"}),
        (truth(1, age_s=900, committed_s=300), {"lagging"}),  # it never has members, and may take ten minutes
        (truth(1, age_s=900, committed_s=300, joins=True), {"lagging"}),
        (truth(1, age_s=900, committed_s=300, joins=True, leaves=True), {"stopped"}),  # its members have left
        (truth(1, age_s=900, committed_s=900, before_s=(3300, 2100)), {"lagging", "stopped"}),  # twenty minutes apart
        (truth(1, age_s=10, committed_s=10, retention_ms=5000), {"lagging"}),  # its segment may keep it
    ],
)
def test_a_status_follows_from_facts(made: Truth, wanted: set[str]) -> None:
    answer = Answer("c", NOW, NOW + 1, None, about={"to": "end", "by": "topic"})
    assert admissible(made, answer, "g", POLLS) == wanted


@pytest.mark.parametrize(
    ("back_ns", "left_out", "wanted"),
    [
        (SECOND, None, {"stopped"}),  # deleted and restored between two polls: none has found that
        (6 * SECOND, None, {"lagging"}),  # a poll has found that nothing was committed
        (7 * SECOND // 2, None, {"lagging", "stopped"}),  # one looked while it was restored
        (SECOND, 2, {"lagging", "stopped"}),  # a poll may have, which was not seen
    ],
)
def test_an_offset_that_went_and_came_back_is_news_where_a_poll_looked(
    back_ns: int, left_out: int | None, wanted: set[str]
) -> None:
    made = truth(1, age_s=900, committed_s=900)
    went = NOW - 300 * SECOND + SECOND
    made.add([Committed("c", "g", "t", 0, offset, -1, "", DONE, "b", at, at + SECOND // 2)
              for offset, at in ((-1, went), (1, went + back_ns))])  # fmt: skip
    number = next(poll.number for poll in POLLS if poll.began > went)
    polls = [poll for poll in POLLS if left_out is None or poll.number not in range(number, number + left_out)]
    answer = Answer("c", NOW, NOW + 1, None, about={"to": "end", "by": "topic"})
    assert admissible(made, answer, "g", polls) == wanted


def test_moves_that_no_poll_has_found_make_no_gap_shorter() -> None:
    """What went on and back between two polls is no move of the group: its moves are then ten minutes apart."""
    made = truth(1, age_s=3500, committed_s=900, before_s=(3300, 2700, 2100, 1500))
    answer = Answer("c", NOW, NOW + 1, None, about={"to": "end", "by": "topic"})
    assert admissible(made, answer, "g", POLLS) == {"lagging", "stopped"}
    for went_s in range(3200, 900, -100):
        before = max((one for one in made.commits["c", "g", "t", 0] if one.began < NOW - went_s * SECOND),
                     key=lambda one: one.began)  # fmt: skip
        for number, offset in enumerate((9, before.offset)):
            at = NOW - went_s * SECOND + (1 + number) * SECOND
            made.add([Committed("c", "g", "t", 0, offset, -1, "", DONE, "b", at, at + 1)])
    assert admissible(made, answer, "g", POLLS) == {"lagging", "stopped"}


@pytest.mark.parametrize(("is_committed", "wanted"), [(True, {"unknown"}), (False, {"unknown", "ok"})])
def test_aborted_records_need_no_commit(is_committed: bool, wanted: set[str]) -> None:
    """Not yet known to be aborted, they make a group unknown."""
    made = truth(2, age_s=900, committed_s=900)
    made.add([Made("c", "paid", 1, {}, 0, 0), Joining("c", "g", "a", 1, 1)])
    made.add([Assigned("c", "g", "a", 1, [("t", 0), ("paid", 0)], 2)])
    made.add([Produced("c", "paid", 0, 0, 1, 10, "p", 0, None, False, "w 1", 1, 2)])
    made.add([TransactionEnded("c", "w 1", is_committed, [("paid", 0)], 1, 2)])
    answer = Answer("c", NOW, NOW + 1, None, about={"to": "end", "by": "topic"})
    assert admissible(made, answer, "g", POLLS) == wanted


def test_nothing_is_said_of_groups_that_facts_do_not_know() -> None:
    answer = Answer("c", NOW, NOW + 1, None, about={"to": "end", "by": "topic"})
    assert admissible(truth(1, age_s=1, committed_s=1), answer, "other", POLLS) is None


def test_a_trend_lies_within_what_facts_say_of_each_poll() -> None:
    made = Truth()
    made.add([Made("c", "t", 1, {}, 0, 0), Committed("c", "g", "t", 0, 0, -1, "", DONE, "a", 1, 2)])
    # 20 records in each of five seconds, then none.
    made.add([Produced("c", "t", 0, at, 1, 10, "p", at, None, False, None, NOW + at * SECOND // 20,
                       NOW + at * SECOND // 20 + 1) for at in range(100)])  # fmt: skip
    polls = [Poll(number, at, at) for number in range(1, 11) if (at := NOW + number * 3 * SECOND)]
    growing = Trends(made).of("c", "g", polls[:2])
    assert growing is not None
    assert growing.has(40 / 3)
    assert growing.sort == "surely growing"
    assert not growing.has(-40 / 3)
    late = Trends(made).of("c", "g", polls)
    assert late is not None
    assert late.low <= 40 / 3 * 0.7**8 <= late.high
    assert Trends(made).of("c", "g", [polls[0], polls[2]]) is None


def test_a_trend_from_a_commit_that_was_perhaps_seen_is_not_known() -> None:
    """If the first poll found the commit, what was written since is growth; if it did not, nothing is."""
    made = Truth()
    made.add([Made("c", "t", 1, {}, 0, 0)])
    began = NOW - 3 * SECOND
    made.add([Committed("c", "g", "t", 0, 0, -1, "", DONE, "a", began, NOW + SECOND)])
    made.add([Produced("c", "t", 0, at, 0, 10, "p", at, None, False, None, NOW + SECOND, NOW + 2 * SECOND)
              for at in range(40)])  # fmt: skip
    polls = [Poll(number, NOW + at * SECOND, NOW + at * SECOND) for number, at in enumerate((0, 3, 6), 1)]
    assert Trends(made).of("c", "g", polls) is None
    sure = [Poll(1, began - SECOND, began - SECOND), *(poll._replace(number=poll.number + 1) for poll in polls[1:])]
    known = Trends(made).of("c", "g", [one._replace(number=number) for number, one in enumerate(sure, 1)])
    assert known is not None
    assert (known.low, known.high) == (0, 0)


def test_the_lag_of_a_first_commit_is_no_growth() -> None:
    made = Truth()
    made.add([Made("c", "t", 2, {}, 0, 0), Committed("c", "g", "t", 0, 0, -1, "", DONE, "a", 1, 2)])
    made.add([Produced("c", "t", 1, at, 1, 10, "p", at, None, False, None, 1, 2) for at in range(50)])
    made.add([Committed("c", "g", "t", 1, 0, -1, "", DONE, "a", NOW + SECOND, NOW + SECOND)])
    polls = [Poll(number, NOW + at * SECOND, NOW + at * SECOND) for number, at in enumerate((0, 3), 1)]
    assert Trends(made).of("c", "g", polls) == (0, 0)
