"""Commands that go by times of records, where records may not be read: what is not known is said, and nothing done."""

from typing import Any

import pytest
from tests.cli.stages import SETTINGS, Stage

from groupkeeper.broker.authorizer import Operation, ResourceType, RuleAuthorizer
from groupkeeper.client.admin.types import OffsetAndMetadata
from groupkeeper.testing.background import BackgroundBroker

STAGE = Stage(
    "unread",
    {"orders": [3, 3], "open": [3], "east.orders": [3, 3], "east.open": [3]},
    commits={
        "jane": {("orders", 0): OffsetAndMetadata(1), ("orders", 1): OffsetAndMetadata(3)},
        "both": {("orders", 0): OffsetAndMetadata(1), ("open", 0): OffsetAndMetadata(1)},
    },
)


BROKER = {"properties": SETTINGS, "authorizer": RuleAuthorizer(allows_without_rules=True)}


@pytest.fixture(scope="module")
def servers(broker: BackgroundBroker) -> str:
    assert isinstance(broker.authorizer, RuleAuthorizer)
    broker.authorizer.allow(Operation.DESCRIBE, ResourceType.TOPIC, "orders")
    return broker.bootstrap_servers


def test_a_clone_leaves_out_what_it_cannot_translate(run: Any) -> None:
    status, report = run("plan", "clone", "both", "copy", "--topic-prefix", "east.")
    assert (status, [(row["topic"], row["after"], row["skipped"]) for row in report["changes"]]) == (
        1,
        [("east.open", 1, 0)],
    )
    assert [(each["topic"], each["message"]) for each in report["problems"]] == [
        (
            "east.orders",
            "the source's record at offset 1 could not be read: the ACL READ on topic orders is missing in its cluster",
        )
    ]


def test_a_plan_says_why_it_has_no_times(run: Any) -> None:
    _, report = run("plan", "reset", "jane", "--all-topics", "--to-earliest")
    assert {row["after_time"] for row in report["changes"]} == {None}
    (note,) = [each for each in report["notes"] if each.startswith("3 records without a known time, for example ")]
    assert "TopicAuthorizationFailed" in note


def test_a_sweep_leaves_groups_alone_whose_age_is_not_known(run: Any) -> None:
    """The records of `open` are years old; those of `orders` may be new."""
    status, report = run("plan", "sweep", "jane", "both", "--idle", "P1D", "--age-of", "records")
    assert (status, report["changes"]) == (0, [])
    assert any(each.startswith("2 records without a known time") for each in report["notes"])
    assert any(each.startswith("both: the age of some of its offsets is not known") for each in report["notes"])
