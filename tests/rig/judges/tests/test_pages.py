"""The CSV beside the pages: what is unknown there, and what isn't."""

import pytest
from tests.rig.asking import Answer
from tests.rig.judges.exporter import INFO, SECONDS, UNKNOWN, Series
from tests.rig.judges.pages import Seen, _csv

NONE = dict.fromkeys(("lag", "retention_margin_s", "members", "rebalances"), "")


@pytest.mark.parametrize(
    ("seconds", "unknown", "shown", "is_same"),
    [
        ({"t": 0.0, "u": 0.0}, 0, "0.0", True),
        (
            {"t": 0.0},
            1,
            "",
            True,
        ),  # a new partition, of which no record was read yet, beside one that is read to its end
        ({"t": 0.0}, 1, "0.0", False),
        ({"t": 0.0}, 0, "", False),
        ({"t": 3.0}, 1, "3.0", True),
        ({"t": 3.0}, 1, "", False),
        ({}, 1, "", True),
    ],
)
def test_time_lag_of_a_group(seconds: dict[str, float], unknown: int, shown: str, is_same: bool) -> None:
    series: Series = {
        INFO: {("g", "Classic", "Stable", ""): 1.0},
        SECONDS: {("g", topic): value for topic, value in seconds.items()},
        UNKNOWN: {("g", "u"): float(unknown)} if unknown else {},
    }
    row = {"group": "g", "type": "Classic", "state": "Stable", "time_lag_s": shown, **NONE}
    found = list(_csv(Answer("c", 0, 0, None), Seen(series, [row], {}, [], {})))
    assert any(found) is not is_same, found
