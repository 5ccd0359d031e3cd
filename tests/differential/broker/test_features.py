"""Levels of features on Apache Kafka 4.4.0 and on our broker: what ApiVersions tells of them, and UpdateFeatures."""

from typing import Any

import pytest
from tests.differential.pair import Asked, require_soon_alike

from groupkeeper.protocol import messages as m

pytestmark = [pytest.mark.conformance, pytest.mark.timeout(180)]

UPGRADE, SAFE, UNSAFE = 1, 2, 3
NAMES = ("metadata.version", "kraft.version", "group.version", "share.version", "streams.version",
         "transaction.version", "eligible.leader.replicas.version", "nope")  # fmt: skip
Step = tuple[str, int, int]
"""Feature, level, kind of change."""
TRIALS: list[Step] = [
    (name, level, kind)
    for name in NAMES
    for level in (-1, 0, 1, 2, 3, 6, 7, 20, 25, 28, 29, 30, 31, 32, 33, 34, 99)
    for kind in (0, UPGRADE, SAFE, UNSAFE, 4)
]
CHANGES: list[Step] = [
    ("transaction.version", 1, SAFE),
    ("transaction.version", 0, UNSAFE),
    ("transaction.version", 2, UPGRADE),
    ("group.version", 0, SAFE),
    ("group.version", 1, UPGRADE),
    ("streams.version", 0, UNSAFE),
    ("share.version", 0, SAFE),
    ("share.version", 1, SAFE),
    ("share.version", 1, UPGRADE),
    ("share.version", 2, UPGRADE),
    ("share.version", 1, SAFE),
    ("share.version", 2, UPGRADE),
    ("metadata.version", 33, UPGRADE),
    ("metadata.version", 32, SAFE),
]


class Side(Asked):
    def told(self, version: int = 4) -> tuple[dict[str, tuple[int, int]], dict[str, tuple[int, int]]]:
        """Supported and finalized levels, by name."""
        answer: Any = self.pool.ask(m.ApiVersionsRequest("test", "1"), version)
        supported = {one.name: (one.min_version, one.max_version) for one in answer.supported_features}
        finalized = {one.name: (one.min_version_level, one.max_version_level) for one in answer.finalized_features}
        return supported, finalized

    def change(self, *steps: Step, is_trial: bool = False, version: int = 2) -> object:
        updates = [m.FeatureUpdateKey(name, level, False, kind) for name, level, kind in steps]
        answer: Any = self.pool.ask(m.UpdateFeaturesRequest(30_000, updates, is_trial), version)
        results = [(one.feature, one.error_code, one.error_message) for one in answer.results]
        return answer.error_code, answer.error_message, results


def test_the_same_features_are_told(sides: tuple[Side, Side]) -> None:
    for version in (3, 4):
        left, right = (side.told(version) for side in sides)
        assert left == right, version
    assert sides[0].told()[1]["metadata.version"] == (33, 33)


def test_the_same_changes_are_refused(sides: tuple[Side, Side]) -> None:
    for trial in TRIALS:
        left, right = (side.change(trial, is_trial=True) for side in sides)
        assert left == right, trial


def test_the_same_changes_are_made(sides: tuple[Side, Side]) -> None:
    more: list[list[Step]] = [
        [("streams.version", 1, UPGRADE), ("nope", 1, UPGRADE)],
        [("streams.version", 1, UPGRADE), ("group.version", 0, SAFE)],
        [],
    ]
    for several in [*([change] for change in CHANGES), *more]:
        left, right = (side.change(*several) for side in sides)
        assert left == right, several
        require_soon_alike(sides, Side.told, several)
