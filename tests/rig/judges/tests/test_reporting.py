"""The report's findings, lines and sections beside facts."""

from datetime import UTC, datetime
from typing import Any

import pytest
from tests.rig.asking import Answer, Verdict
from tests.rig.facts import DONE, Committed, Cut, Made, Produced
from tests.rig.judges.reporting import findings, lines, sections
from tests.rig.judges.reporting.resting import Resting
from tests.rig.truth import Truth

SECOND = 1_000_000_000
AT = 1_000_000 * SECOND
NOW = datetime.fromtimestamp(AT // SECOND, UTC).isoformat()


def resting() -> Resting:
    """Six records, of which two were removed before the group read them."""
    made = Truth()
    made.add([Made("c", "t", 1, {}, 0, 0)])
    made.add([Produced("c", "t", 0, at, AT // 1_000_000 - 7000, 10, "p", at, None, False, None, 1, 2)
              for at in range(6)])  # fmt: skip
    made.add([Cut("c", "t", 0, 2, 3, 4), Committed("c", "g", "t", 0, 0, -1, "", DONE, "a", 5, 6)])
    return Resting(made, Answer("all", AT, AT + 1, None), AT)


GROUP: dict[str, Any] = {"cluster": "c", "group_id": "g", "status": "losing", "unknown": 0, "measured_time": NOW}
FINDING: dict[str, Any] = {"cluster": "c", "group_id": "g", "kind": "standing", "unit": "records lost", "value": 2,
                           "partition": None, "time": NOW}  # fmt: skip


@pytest.mark.parametrize(
    ("found", "wrong"),
    [
        ([FINDING], ""),
        ([{**FINDING, "value": 3}], "truth 2 records were lost"),
        ([], "no finding"),
        ([FINDING, {**FINDING, "group_id": "well", "unit": "ms stopped", "value": 7}], "a finding"),
        ([FINDING, {**FINDING, "kind": "held", "partition": "t-0"}], "no transaction is open"),
        ([FINDING, {**FINDING, "unit": "ms left", "partition": "t-0"}], "its records are kept"),
        ([FINDING, {**FINDING, "kind": "slipping", "unit": "records/s more", "value": -1}], "it does not grow"),
        ([FINDING, {**FINDING, "kind": "storm", "unit": "rebalances in 10 min", "value": 11}], "truth 0 rebalances"),
    ],
)
def test_a_finding_is_so_by_the_facts(found: list[dict[str, Any]], wrong: str) -> None:
    texts = [
        text
        for _, _, text in findings.judge(
            resting(), {"groups": [GROUP, {**GROUP, "group_id": "well", "status": "ok"}], "findings": found}, Verdict()
        )
    ]
    assert bool(texts) is bool(wrong), texts
    assert not wrong or any(wrong in text for text in texts), texts


@pytest.mark.parametrize(("lag", "is_right"), [(6, True), (5, False), (7, False)])
def test_a_line_ends_at_the_lag_of_the_facts(lag: int, is_right: bool) -> None:
    line = {"cluster": "c", "group_id": "g", "measured_from": NOW, "points": [[NOW, lag]]}
    verdict = Verdict()
    texts = list(lines.judge(resting(), {"groups": [GROUP], "lag_lines": [line]}, verdict))
    assert not texts if is_right else texts
    assert verdict.comparisons == 1


def section(committed: str = "0", name: str = "c") -> str:
    table = (
        '<div aria-label="partitions"><table><thead><tr><th>status</th><th>partition</th><th>committed offset</th>'
        "<th>log end</th><th>lag</th></tr></thead><tbody><tr><td>losing</td><td>t-0</td>"
        f"<td>{committed}</td><td>6</td><td>6</td></tr></tbody></table></div>"
    )
    called = sections.called(name, "g")
    return f'<details class="card group" id="{called}"><dl><dt>lag</dt><dd>6</dd></dl>{table}</details>'


@pytest.mark.parametrize(
    ("html", "wrong"), [(section(), ""), (section("1"), "truth ('0', '6', '6')"), (section(name="other"), "no section")]
)
def test_a_section_has_the_partitions_of_the_facts(html: str, wrong: str) -> None:
    found = sections.judge(resting(), {"groups": [GROUP]}, sections.read(html), Verdict())
    texts = [text for _, _, text in found]
    assert [text for text in texts if wrong in text] == texts
    assert bool(texts) is bool(wrong)
