"""About when a record was written, by the ends of its log at earlier looks."""

import random

from groupkeeper.client.admin.types import TopicPartition
from groupkeeper.live.waits import EndsSeen

PLACE = TopicPartition("orders", 0)


def test_between_two_looks_a_record_was_written() -> None:
    seen = EndsSeen()
    for end, at_ms in [(10, 1000), (20, 2000), (20, 5000), (30, 6000)]:
        seen.note(PLACE, end, at_ms)
    written = {offset: seen.written_ms(PLACE, offset) for offset in (9, 10, 15, 19, 20, 25, 29, 30)}
    assert written == {9: None, 10: 1000, 15: 1500, 19: 1900, 20: 5000, 25: 5500, 29: 5900, 30: None}
    assert seen.written_ms(TopicPartition("orders", 1), 15) is None


def test_a_log_that_has_become_shorter_is_another_one() -> None:
    seen = EndsSeen()
    for end, at_ms in [(10, 1000), (20, 2000), (5, 3000), (15, 4000)]:
        seen.note(PLACE, end, at_ms)
    assert seen.written_ms(PLACE, 12) == 3700


def test_memory_is_bounded_and_new_looks_are_the_closest() -> None:
    seen = EndsSeen()
    for number in range(10_000):
        seen.note(PLACE, number * 10, number * 1000)
    ends, times = seen._points[PLACE]
    assert len(ends) == len(times) <= 24
    # Records were written evenly, so that any two points give the same answer.
    chosen = random.Random(1).sample(range(99_990), 50)
    assert all(abs((seen.written_ms(PLACE, offset) or 0) - offset * 100) <= 1 for offset in chosen)
    assert list(ends)[-5:] == [99_950, 99_960, 99_970, 99_980, 99_990]
    seen.keep(set())
    assert seen.written_ms(PLACE, 99_985) is None
