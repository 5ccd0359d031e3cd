"""What a plan of a clone calls exact must be, by the producer's numbers of the records."""

import pytest
from tests.rig.asking import Answer
from tests.rig.facts import DONE, Committed, Made, Produced
from tests.rig.judges.clone import judge
from tests.rig.truth import Truth


def record(cluster: str, offset: int, number: int) -> Produced:
    return Produced(cluster, "t", 0, offset, 1000, 10, "p", number, None, False, None, 1, 2)


def truth() -> Truth:
    """A copy begins with two records of something else; the group has read two of four."""
    made = Truth()
    made.add([Made("c", "t", 1, {}, 0, 0), Made("d", "t", 1, {}, 0, 0)])
    made.add([record("c", number, number) for number in range(4)])
    made.add([record("d", at, number) for at, number in enumerate((-1, -2, 0, 1, 2, 3))])
    made.add([Committed("c", "g", "t", 0, 2, -1, "", DONE, "a", 5, 6)])
    return made


@pytest.mark.parametrize(
    ("after", "skipped", "replayed", "certainty", "wrong"),
    [
        (4, 0, 0, "content", ""),
        (5, 0, 0, "content", "skips 1 records"),
        (5, 1, 0, "content", "is not exact"),
        (5, 1, 0, "time", ""),
        (3, 0, 0, "bounded", "replays 1 records"),
        (3, 0, 1, "bounded", ""),
        (3, 0, 1, "identity", "is not exact"),
        (0, 0, 2, "bounded", ""),
        (4, 0, None, "bounded", "no bound is said"),
        (4, 0, 0, None, "does not say how sure"),
    ],
)
def test_a_place_in_the_copy(after: int, skipped: int, replayed: int | None, certainty: str | None, wrong: str) -> None:
    row = {"topic": "t", "partition": 0, "after": after, "log_end_offset": 6, "skipped": skipped, "replayed": replayed,
           "certainty": certainty, "why": "as it is"}  # fmt: skip
    about = {"source": "c", "group": "g", "topic": "t", "shape": ""}
    verdict = judge(truth(), Answer("d", 10, 11, {"changes": [row], "problems": []}, about=about))
    assert [one.text for one in verdict.differences if wrong not in one.text] == []
    assert bool(verdict.differences) is bool(wrong)


def test_what_the_source_never_had_is_not_read_first_from_an_exact_place() -> None:
    made = truth()
    made.add([Committed("c", "g", "t", 0, 0, -1, "", DONE, "a", 7, 8)])
    row = {
        "topic": "t",
        "partition": 0,
        "log_end_offset": 6,
        "skipped": 0,
        "replayed": 0,
        "why": "",
        "certainty": "identity",
    }
    about = {"source": "c", "group": "g", "topic": "t", "shape": ""}
    early, right = (
        judge(made, Answer("d", 10, 11, {"changes": [{**row, "after": after}], "problems": []}, about=about))
        for after in (0, 2)
    )
    assert "2 records that the source never had" in early.differences[0].text
    assert not right.differences
