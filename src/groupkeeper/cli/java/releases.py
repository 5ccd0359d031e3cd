"""The releases of Kafka whose official tools the drop-in commands equal, and all that those print differently.

The newest one's output is printed. The variable GROUPKEEPER_KAFKA_TOOLS names the other one, for scripts that parse its
output. Exactly two are kept. Of the options that only the newer tools have, those that any broker
can serve work in both.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import NamedTuple

VARIABLE = "GROUPKEEPER_KAFKA_TOOLS"


class UnknownRelease(ValueError):
    """The variable names a release whose output isn't kept."""


class Release(NamedTuple):
    """The output of the official tools of one release."""

    version: str
    purposes: Mapping[str, str]
    """Each tool's description."""
    end: str
    """The end of some sentences."""
    resetter: str
    """The logger of offsets moved into the log."""
    bare_questions: bool
    """Whether kafka-share-groups shows a failure without Java's classes around it, and why a reset was refused."""
    unknown_share_group: str
    """The class of the failure if a share group does not exist."""
    share_scopes: tuple[str, ...]
    """The options that kafka-share-groups lists if a reset has no scope."""
    share_scenarios: tuple[str, ...]
    """The scenarios that the tool lists if a reset has no target."""
    undeletable_topics: tuple[tuple[str, ...], str]
    """The options that its --delete refuses, and how it names them."""
    streams_views: tuple[str, ...]
    """The options of kafka-streams-groups --describe."""
    streams_scopes: str
    """The scopes of the tool's --reset-offsets."""
    has_assignor: bool
    """Whether its --state has that column."""
    names_filters: bool
    """Whether a filter of ListGroups that a broker lacks is named as the protocol does."""
    lacks: frozenset[str]
    """Options that its tools don't recognize."""


_KAFKA_4_4 = Release(
    "4.4.0",
    {
        f"kafka-{kind}-groups": f"This tool helps to list, describe, delete and manage the offsets of {kind} groups."
        for kind in ("consumer", "share", "streams")
    },
    ".",
    "org.apache.kafka.tools.GroupOffsetsResetter",
    True,
    "org.apache.kafka.common.errors.GroupIdNotFoundException",
    ("all-topics", "from-file", "topic"),
    ("from-file", "to-current", "to-datetime", "to-earliest", "to-latest", "to-offset"),
    (("topic", "all-topics"), "options [topic] or [all-topics]."),
    ("members", "offsets", "state", "topology"),
    "--all-input-topics, --input-topic",
    True,
    True,
    frozenset(),
)

_KAFKA_4_3 = Release(
    "4.3.1",
    {
        "kafka-consumer-groups": "This tool helps to list all consumer groups, describe a consumer group, delete "
        "consumer group info, or reset consumer group offsets.",
        "kafka-share-groups": "This tool helps to list, describe, reset and delete share groups.",
        "kafka-streams-groups": "This tool helps to list, or describe streams groups.",
    },
    "",
    "org.apache.kafka.tools.OffsetsUtils",
    False,
    "java.lang.IllegalArgumentException",
    ("all-topics", "topic"),
    ("to-datetime", "to-earliest", "to-latest"),
    (("topic",), "option: [topic]"),
    ("members", "offsets", "state"),
    "--all-topics, --topic",
    False,
    False,
    frozenset(["topology"]),
)

RELEASES = {release.version: release for release in (_KAFKA_4_4, _KAFKA_4_3)}


def release() -> Release:
    """The release whose output is printed. Raises UnknownRelease."""
    wanted = os.environ.get(VARIABLE)
    if not wanted:
        return _KAFKA_4_4
    if wanted not in RELEASES:
        names = " or ".join(RELEASES)
        raise UnknownRelease(f"{VARIABLE} is {wanted}, and must be {names}: the release whose output is printed")
    return RELEASES[wanted]
