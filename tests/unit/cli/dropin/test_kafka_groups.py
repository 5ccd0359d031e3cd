"""Which groups kafka-groups shows."""

import pytest

from groupkeeper.cli.dropin.kafka_groups import TABLE, check, is_wanted
from groupkeeper.cli.dropin.options import OptionProblem, UsageProblem
from groupkeeper.client.admin.types import GroupListing, GroupType

GROUPS = [
    GroupListing("simple", "", None, GroupType.CLASSIC),
    GroupListing("classic", "consumer", None, GroupType.CLASSIC),
    GroupListing("connect", "connect", None, GroupType.CLASSIC),
    GroupListing("consumer", "consumer", None, GroupType.CONSUMER),
    GroupListing("share", "share", None, GroupType.SHARE),
    GroupListing("streams", "streams", None, GroupType.STREAMS),
    GroupListing("of-an-old-broker", "consumer", None, None),
]


def shown(*arguments: str) -> list[str]:
    options = TABLE.parse(["--bootstrap-server", "h:1", "--list", *arguments])
    check(options)
    text = options.text("group-type")
    kind = None if text is None else GroupType.parse(text)
    return [group.group_id for group in GROUPS if is_wanted(group, options, kind, options.text("protocol"))]


@pytest.mark.parametrize(
    ("arguments", "group_ids"),
    [
        ("", [group.group_id for group in GROUPS]),
        ("--consumer", ["simple", "classic", "consumer", "of-an-old-broker"]),
        ("--share", ["share"]),
        ("--streams", ["streams"]),
        ("--group-type CLASSIC", ["simple", "classic", "connect"]),
        ("--group-type classic --protocol consumer", ["classic"]),
        ("--protocol consumer", ["classic", "consumer", "of-an-old-broker"]),
        ("--protocol=", ["simple"]),
    ],
)
def test_filters(arguments: str, group_ids: list[str]) -> None:
    assert shown(*arguments.split()) == group_ids


def test_filters_that_exclude_each_other() -> None:
    with pytest.raises(UsageProblem, match=r'^Option "\[consumer\]" can\'t be used with option "\[group-type\]"$'):
        shown("--consumer", "--share", "--group-type", "classic")
    with pytest.raises(OptionProblem):
        shown("--group-type", "mystery")
