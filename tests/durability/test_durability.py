"""The short form; the long one is `python -m tests.durability`."""

import os
from pathlib import Path

import pytest
from tests.conformance.brokers import kinds_under_test, new_broker
from tests.durability.run import PROPERTIES, Plan, run

KILLS = int(os.environ.get("DURABILITY_KILLS", "4"))
SEED = int(os.environ.get("DURABILITY_SEED", "1"))


@pytest.mark.slow
@pytest.mark.timeout(240 + 20 * KILLS)
@pytest.mark.parametrize("kind", kinds_under_test())
def test_kills_lose_nothing_and_repeat_nothing(kind: str, tmp_path: Path) -> None:
    # GR-03, GP-04, GO-23, K496-14
    broker = new_broker(kind, PROPERTIES)
    broker.start()
    try:
        report = run(broker, Plan(KILLS, SEED, longest_s=0.5), tmp_path)
    finally:
        broker.stop()
    assert report.kills == KILLS
    assert report.commits
    assert report.rebalances
