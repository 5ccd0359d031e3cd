"""What the report says of groups that have committed nothing."""

from pathlib import Path

import pytest
from tests.fleet_tables import fleet, write

from groupkeeper.pipeline.report.reading import read_report


@pytest.mark.parametrize(
    ("group_type", "assigned", "wanted"),
    [
        ("classic", [[0, 1], [2]], ("unknown", "no committed offsets: 3 not committed of 3 assigned")),
        ("consumer", [[0], []], ("unknown", "no committed offsets: 1 not committed of 1 assigned")),
        ("classic", [[], []], ("ok", "no committed offsets")),  # none is assigned
        ("classic", [None, None], ("ok", "no committed offsets")),  # a group of Kafka Connect
        ("streams", [None, None], ("unknown", "no committed offsets, and its assigned tasks are not known")),
        ("streams", [], ("ok", "no committed offsets")),
    ],
)
def test_assigned_uncommitted_partitionss_are_unknown(
    tmp_path: Path, group_type: str, assigned: list[list[int] | None], wanted: tuple[str, str]
) -> None:
    rows = fleet(3)
    names = {"cluster": "east", "group_id": "newcomer", "group_type": group_type}
    rows["groups"].append({**names, "members": len(assigned), "partitions": 0})
    rows["members"] = [
        {**names, "member_id": str(number), "assigned": [{"topic": "orders", "partitions": each}] if each else each}
        for number, each in enumerate(assigned)
    ]
    report = read_report(str(write(tmp_path / "t", rows)), hours=24, top=3)
    assert [(each.status, each.rule) for each in report.groups if each.group_id == "newcomer"] == [wanted]
