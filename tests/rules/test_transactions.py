"""How transactions stand, with and without a coordinator that shows them."""

import pytest

from groupkeeper.rules.transactions import (
    LONGEST_MS,
    SLACK_MS,
    Standing,
    describe_transaction,
    standing_of_known,
    standing_of_unknown,
)


@pytest.mark.parametrize(
    ("state", "open_ms", "expected"),
    [
        ("Ongoing", 0, Standing.OPEN),
        ("Ongoing", 60_000 + SLACK_MS, Standing.OPEN),
        ("Ongoing", 60_001 + SLACK_MS, Standing.LATE),
        ("Ongoing", None, Standing.OPEN),
        ("PrepareAbort", 10**9, Standing.ENDING),
        ("PrepareCommit", 0, Standing.ENDING),
        ("PrepareEpochFence", 0, Standing.ENDING),
        ("CompleteCommit", 10**9, Standing.ENDED),
        ("Empty", None, Standing.ENDED),
    ],
)
def test_one_that_a_coordinator_has(state: str, open_ms: int | None, expected: Standing) -> None:
    assert standing_of_known(state, open_ms, 60_000) is expected


def test_one_that_no_coordinator_shows_hangs_when_none_could_be_so_old() -> None:
    assert standing_of_unknown(LONGEST_MS, is_asked=True) is Standing.UNCLAIMED
    assert standing_of_unknown(LONGEST_MS + 1, is_asked=True) is Standing.HANGING
    assert standing_of_unknown(LONGEST_MS + 1, 2 * LONGEST_MS, is_asked=True) is Standing.UNCLAIMED
    assert standing_of_unknown(None, is_asked=True) is Standing.UNCLAIMED
    assert standing_of_unknown(10**9, None, is_asked=True) is Standing.UNCLAIMED
    assert standing_of_unknown(10**9, is_asked=False) is Standing.UNKNOWN


def test_the_text_says_how_it_will_end() -> None:
    assert describe_transaction("t", Standing.OPEN, 60_000, 90_000) == (
        "t, open for 1 min (open); its coordinator aborts it after 1 min 30 s"
    )
    assert describe_transaction("t", Standing.ENDING, 60_000, 90_000) == "t, open for 1 min (ending)"
    assert describe_transaction("t", Standing.HANGING, 60_000, None).endswith(
        "; no coordinator has it: nothing will end it"
    )
