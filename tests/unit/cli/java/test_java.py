"""What Java does, as far as the official tools show it."""

import pytest

from groupkeeper.cli.java import values as java
from groupkeeper.cli.java.releases import VARIABLE
from groupkeeper.client.admin.types import TopicPartition
from groupkeeper.client.errors import BrokersNotFound, CallTimedOut, IllegalArgument, UnsupportedVersion
from groupkeeper.java_numbers import INT_MAX, parse_number
from groupkeeper.protocol.errors import GroupAuthorizationFailed, GroupIdNotFound, NonEmptyGroup

MANY = pytest.param("9" * 5000, id="thousands of digits")


@pytest.mark.parametrize(
    ("text", "number"),
    [("0", 0), ("+7", 7), ("-7", -7), ("007", 7), ("٥", 5), ("2147483647", 2**31 - 1), ("-2147483648", -(2**31))],
)
def test_numbers(text: str, number: int) -> None:
    assert parse_number(text, INT_MAX) == number


@pytest.mark.parametrize(
    "text", ["", "+", "-", " 1", "1 ", "1_0", "1.0", "0x1", "1L", "2147483648", "-2147483649", MANY]
)
def test_not_numbers(text: str) -> None:
    assert parse_number(text, INT_MAX) is None


def test_narrowing_and_overflow() -> None:
    assert java.to_int(3_000_000_000) == -1_294_967_296
    assert java.to_long(2**63 - 1 + 5) == -(2**63) + 4


@pytest.mark.parametrize(
    ("text", "parts"), [("", [""]), (",", []), ("a,,", ["a"]), (",a", ["", "a"]), ("a,,b", ["a", "", "b"])]
)
def test_split(text: str, parts: list[str]) -> None:
    assert java.split(text, ",") == parts


def test_width_is_in_utf16_units() -> None:
    assert java.width("café-東京") == 7
    assert java.width("🙂") == 2


def test_hash_order_decides_which_group_comes_first() -> None:
    assert java.group_order(["nope", "zip"])[0] == "zip"
    assert java.group_order(["g", "h"]) == ["h", "g"]
    assert java.group_order(["h", "g", "aged", "g"]) == ["h", "aged", "g"]
    # The same place in a small table: the order of a large one decides.
    assert java.group_order(["empty-b", "streams-app", "nope"]) == ["empty-b", "nope", "streams-app"]
    assert java.group_order(["completing", "was-consumer"]) == ["was-consumer", "completing"]
    partitions = [TopicPartition("orders", n) for n in (2, 1, 0)]
    assert java.partition_order(partitions) == partitions[::-1]


def test_topics_are_described_in_hash_order() -> None:
    # As kafka-get-offsets told what it skipped.
    assert java.topic_order(["backwards", "orders", "payments"]) == ["orders", "backwards", "payments"]
    assert java.asked_topics(["nothere", "ord.*"]) == ["ord.*", "nothere"]
    topics = ["a.topic_with-a-very-long-name", "backwards", "orders", "payments"]
    assert java.topic_order(topics) == ["orders", "a.topic_with-a-very-long-name", "backwards", "payments"]


def test_texts_of_errors() -> None:
    error = NonEmptyGroup()
    assert java.described(error).startswith("org.apache.kafka.common.errors.GroupNotEmptyException: The group")
    assert java.wrapped(GroupIdNotFound("Group g not found.")) == (
        "java.util.concurrent.ExecutionException: "
        "org.apache.kafka.common.errors.GroupIdNotFoundException: Group g not found."
    )
    assert java.described(IllegalArgument("no")) == "java.lang.IllegalArgumentException: no"
    assert java.described(BrokersNotFound("Failed to find brokers to send ListGroups: refused")) == (
        "org.apache.kafka.common.KafkaException: Failed to find brokers to send ListGroups"
    )
    refused = GroupAuthorizationFailed("FindCoordinator request for groupId `a`b` failed due to authorization failure")
    assert java.message(refused) == (
        "FindCoordinator request for groupId `CoordinatorKey(idValue='a`b', type=GROUP)` failed due to "
        "authorization failure"
    )
    assert java.kafka_name(CallTimedOut("late")) == "REQUEST_TIMED_OUT"


@pytest.mark.parametrize(
    ("by", "least", "wanted"),
    [
        ("states.", 4, "StatesFilter"),
        ("type. Requested group types: [Consumer].", 5, "Consumer"),
        ("type. Requested group types: [Consumer, Share].", 5, "Consumer,Share"),
    ],
)
def test_a_filter_that_the_broker_lacks(monkeypatch: pytest.MonkeyPatch, by: str, least: int, wanted: str) -> None:
    before = f"on b:1: The broker only supports ListGroups v3, but we need v{least} or newer to request groups by {by}"
    assert java.message(UnsupportedVersion(before)) == (
        f"on b:1: The cluster does not support [{wanted}] in LIST_GROUPS API version 3. "
        f"Upgrade the cluster to LIST_GROUPS API version >= {least} to enable [{wanted}]."
    )
    monkeypatch.setenv(VARIABLE, "4.3.1")
    assert java.message(UnsupportedVersion(before)) == before
