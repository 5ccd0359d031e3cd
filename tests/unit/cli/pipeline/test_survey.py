"""What is said of what there is to read, before it is read."""

from typing import Any

import pytest

from groupkeeper.cli.pipeline import family
from groupkeeper.cli.pipeline.watch import Screen
from groupkeeper.pipeline.kafka.planning import Range, ReadPlan

PLAN = ReadPlan([Range(0, "a", "__consumer_offsets", 0, 5, 100), Range(0, "a", "__consumer_offsets", 1, 0, 7)], {}, {})


async def planned(*_: object) -> ReadPlan:
    return PLAN


@pytest.mark.parametrize(
    ("known", "said"),
    [
        ({}, "102 records"),
        ({"b": {0: 100}}, "102 records"),
        ({"a": {0: 99}}, "8 new records"),
        ({"a": {0: 3, 1: 7}}, "95 new records"),
        ({"a": {0: 100, 1: 7}}, "0 new records"),
    ],
)
def test_only_what_the_tables_lack_is_counted(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], known: dict[str, dict[int, int]], said: str
) -> None:
    monkeypatch.setattr(family, "_planned", planned)
    options: Any = None
    assert family._survey(options, Screen(), known, has_end=True) == PLAN
    assert capsys.readouterr().err == f"asking the clusters\ncluster a: 2 partitions, {said} at most\n"
