"""How tasks and micro-batches share what is to be read."""

import random

import pytest

from groupkeeper.pipeline.kafka.options import parse_options
from groupkeeper.pipeline.kafka.planning import Range, pack
from groupkeeper.pipeline.kafka.source import _limited as limited

GIVEN = {"kafka.bootstrap.servers": "h:1", "subscribe": "t"}


def random_ranges(rng: random.Random) -> list[Range]:
    most = rng.choice((1, 10, 1000, 10**7))
    return [
        Range(0, "c", "t", number, start := rng.randrange(most), start + rng.randrange(most + 1))
        for number in range(rng.choice((1, 2, 5, 40)))
    ]


def offsets_of(ranges: list[Range]) -> dict[int, list[tuple[int, int]]]:
    """By partition, with pieces that follow each other joined."""
    found: dict[int, list[tuple[int, int]]] = {}
    for each in sorted(each for each in ranges if each.size):
        own = found.setdefault(each.partition, [])
        if own and own[-1][1] == each.start:
            own[-1] = (own[-1][0], each.end)
        else:
            own.append((each.start, each.end))
    return found


@pytest.mark.parametrize("seed", range(200))
def test_tasks_have_every_offset_once_and_are_as_many_and_as_small_as_asked(seed: int) -> None:
    rng = random.Random(seed)
    ranges = random_ranges(rng)
    total = sum(each.size for each in ranges)
    least, most = rng.choice((None, 1, 3, 6, 50)), rng.choice((None, 100, 333, 10**6))
    if most is not None:
        most = max(most, total // 10_000)
    given = {name: str(value) for name, value in (("minPartitions", least), ("maxRecordsPerPartition", most)) if value}
    tasks = pack(ranges, parse_options(GIVEN | given))
    assert offsets_of([piece for task in tasks for piece in task]) == offsets_of(ranges)
    assert all(task for task in tasks)
    if least is not None:
        assert len(tasks) >= min(least, total)
    if most is not None:
        assert max((sum(piece.size for piece in task) for task in tasks), default=0) <= most


@pytest.mark.parametrize("seed", range(50))
def test_micro_batches_are_never_too_large_and_come_to_the_end(seed: int) -> None:
    rng = random.Random(seed)
    ranges = random_ranges(rng)[:5]
    start = {"c": {"t": {str(each.partition): each.start for each in ranges}}}
    latest = {"c": {"t": {str(each.partition): each.end for each in ranges}}}
    left = sum(each.size for each in ranges)
    limit = rng.choice((1, 7, 1000)) if left < 1000 else left // 7
    while start != latest:
        following = limited(start, latest, limit)
        passed = {key: following["c"]["t"][key] - at for key, at in start["c"]["t"].items()}
        assert min(passed.values()) >= 0
        assert sum(passed.values()) == min(limit, left)
        start, left = following, left - sum(passed.values())
    assert left == 0


def test_there_are_tasks_for_the_data_and_not_for_the_cores_of_the_driver() -> None:
    options = parse_options(GIVEN)
    tasks = pack([Range(0, "c", "t", number, 0, 5_000_000) for number in range(200)], options)
    assert len(tasks) == 1000
    assert max(sum(each.size for each in task) for task in tasks) <= 1_200_000
    assert len(pack([Range(0, "c", "t", number, 0, 10) for number in range(200)], options)) == 1
