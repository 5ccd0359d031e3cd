"""What is read on after a change, and what the journal says of it: each defect is a difference."""

import pytest
from tests.rig.facts import Produced
from tests.rig.judges.changing import journal, reading
from tests.rig.judges.changing.journal import Change, Told
from tests.rig.judges.changing.reading import Figures, Read
from tests.rig.truth import Log


def log() -> Log:
    """Records at 0 to 3, a marker at 4, records at 5 and 6."""
    made = Log()
    for offset in (0, 1, 2, 3, 5, 6):
        made.add(Produced("c", "t", 0, offset, 1000, 10, "p", offset, None, False, None, 1, 2))
    made.markers.append((1, 2))
    return made


def reads(first: int) -> list[Read]:
    return [Read(at, f"p {at}") for at in (0, 1, 2, 3, 5, 6) if at >= first]


@pytest.mark.parametrize(
    ("found", "before", "after", "said", "wrong"),
    [
        (reads(2), 2, 2, Figures(0, 0), ""),
        (reads(1), 5, 1, Figures(0, 4), ""),  # the marker at 4 is one of the offsets
        (reads(1), 5, 1, Figures(0, 3), "read again"),
        (reads(5), 1, 5, Figures(4, 0), ""),
        (reads(5), 1, 5, Figures(3, 0), "skipped"),
        ([], 2, 7, Figures(5, 0), ""),
        ([], 2, 7, Figures(4, 0), "skipped"),
        (reads(2), None, 2, Figures(), ""),
        (reads(3), 2, 2, Figures(0, 0), "from 2 on"),
        ([Read(2, "p 3"), *reads(3)], 2, 2, Figures(0, 0), "from 2 on"),
    ],
)
def test_what_is_read_on(found: list[Read], before: int | None, after: int, said: Figures, wrong: str) -> None:
    texts = list(reading.differences(log(), found, before, after, said))
    assert bool(texts) is bool(wrong), texts
    assert not wrong or any(wrong in text for text in texts)


def test_each_defect_of_a_reading_is_found() -> None:
    for _, worse in [*reading.spoilt(reads(1), lambda size: 0), *reading.spoilt([], lambda size: 0)]:
        assert list(reading.differences(log(), worse, None, 1 if worse[0].identity != "nobody 7" else 7, Figures()))


def test_a_consumer_begins_at_the_oldest_record_where_the_log_lacks_its_offset() -> None:
    assert [reading.position(log(), offset, 5) for offset in (3, 7, 8, None)] == [3, 7, 0, 0]


def told() -> Told:
    row = {"what": "reset", "by": "ann", "result": "applied", "cluster": "c", "undone by": "", "names": "g",
           "partitions": "2"}  # fmt: skip
    lines = [{"topic": "t", "partition": "0", "before": "1,234", "after": "5"},
             {"topic": "t", "partition": "1", "before": "none", "after": "deleted"}]  # fmt: skip
    return Told(row, lines, "By ann")


CHANGE = Change("1", "reset", "ann", "c", "g", {("t", 0): (1234, 5), ("t", 1): (None, None)})


def test_the_journal_is_compared_with_what_others_read() -> None:
    assert not list(journal.differences(told(), CHANGE))
    missing = Change("1", "reset", "ann", "c", "g", {("t", 0): (1234, 6), ("t", 2): (1, 2)})
    texts = list(journal.differences(told(), missing))
    assert [text for text in texts if "('t', 0)" in text]
    assert [text for text in texts if "('t', 2) is missing" in text]
    assert [text for text in texts if "they were not changed" in text]


@pytest.mark.parametrize("number", range(8))
def test_each_defect_of_the_journal_is_found(number: int) -> None:
    what, worse = list(journal.spoilt(told()))[number]
    assert list(journal.differences(worse, CHANGE)), what
