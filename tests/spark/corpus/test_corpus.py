"""The present code makes the recorded tables."""

from collections.abc import Mapping

import pytest
from pyspark.sql import SparkSession
from tests.spark.corpus.present_code import tables_of
from tests.spark.corpus.recorded import FOLDER, texts_of

pytestmark = pytest.mark.long

RECORD = "run `python -m tests.spark.corpus.recorded` if this is meant"
RECORDED = {path.stem: path.read_text() for path in sorted(FOLDER.glob("*.txt"))}


@pytest.fixture(scope="module")
def found(spark: SparkSession) -> Mapping[str, str]:
    return texts_of(tables_of(spark))


def test_the_same_tables(found: Mapping[str, str]) -> None:
    assert set(found) == set(RECORDED), RECORD


@pytest.mark.parametrize("name", RECORDED)
def test_the_same_rows(found: Mapping[str, str], name: str) -> None:
    assert found[name].splitlines() == RECORDED[name].splitlines(), RECORD


def test_the_corpus_has_what_tables_can_tell() -> None:
    status = RECORDED["status"]
    for word in ("ok", "unknown", "lagging", "rewound", "stalled", "stopped", "losing", "abandoned"):
        assert f'"status": "{word}"' in status, word
    for word in ("idle", "topic_deleted", "expiring", "below_log_start"):
        assert f'"reason": "{word}"' in RECORDED["stale"], word
