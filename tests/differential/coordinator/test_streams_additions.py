"""What Kafka 4.4.0 adds to streams groups, there and on our broker: descriptions of topologies (KIP-1331), who is asked
for them, what is refused, what is shown, and what the log says of them; tags that clients must have. And
UnregisterController, which came with the same release.
"""

from typing import Any

import pytest
from tests.differential.coordinator.log import PARTITIONS, LogTail
from tests.differential.coordinator.test_streams_groups import PROPERTIES, Side
from tests.differential.pair import Asked, both

from groupkeeper.protocol import messages as m
from groupkeeper.protocol.messages import streams_group_heartbeat_request as asking
from groupkeeper.protocol.messages.streams_group_topology_description_update_request import TopologyDescription
from groupkeeper.protocol.messages.streams_group_topology_description_update_request import (
    TopologyDescriptionGlobalStore as GlobalStore,
)
from groupkeeper.protocol.messages.streams_group_topology_description_update_request import (
    TopologyDescriptionNode as Node,
)
from groupkeeper.protocol.messages.streams_group_topology_description_update_request import (
    TopologyDescriptionSubtopology as Subtopology,
)

pytestmark = [pytest.mark.conformance, pytest.mark.timeout(180)]

KEPT = {
    **PROPERTIES,
    "offsets.topic.num.partitions": str(PARTITIONS),
    "group.streams.topology.description.plugin.class": (
        "org.apache.kafka.server.streams.InMemoryTopologyDescriptionPlugin"
    ),
}
SOURCE = Node("in", 1, ["t", "u", "t"], "x", ["x"], ["count", "out", "count"])
COUNT = Node("count", 2, ["x"], "x", ["words", "words"], [])
OUT = Node("out", 3, ["x"], "o", ["x"], [])
GIVEN = TopologyDescription([Subtopology("0", [SOURCE, COUNT, OUT])], [GlobalStore(SOURCE, COUNT)])
ODD = TopologyDescription([Subtopology("0", [Node("x", 9)])])
SWAPPED = TopologyDescription([], [GlobalStore(COUNT, SOURCE)])


class DescribingSide(Side):
    """A side whose members know of descriptions."""

    def asks(self, member_id: str, epoch: int, version: int = 1) -> object:
        topology = self.topology("plain", 3) if epoch == 0 else None
        answer = self._beat("g", member_id, epoch, topology, version)
        self.epochs["g", member_id] = answer.member_epoch
        return answer.member_epoch, answer.topology_description_required

    def tell(self, description: TopologyDescription, member_id: str, epoch: int, group: str = "g") -> object:
        group_id = f"{self.program}-{group}" if group.strip() else group
        return self.said(
            self.pool.ask(m.StreamsGroupTopologyDescriptionUpdateRequest(group_id, member_id, epoch, description), 0)
        )

    def shown(self, *groups: str, is_asked: bool = True) -> object:
        group_ids = [f"{self.program}-{group}" for group in groups]
        answer = self.pool.ask(m.StreamsGroupDescribeRequest(group_ids, include_topology_description=is_asked), 1)
        return self.said(
            [
                (one.topology_description_status, repr(one.topology_description), one.error_message)
                for one in answer.groups
            ]
        )

    def tagged(self, member_id: str, epoch: int, *tags: str) -> object:
        topology = self.topology("plain", 0) if epoch == 0 else None
        given = [asking.KeyValue(tag, "x") for tag in tags]
        return self.said(self._beat("g", member_id, epoch, topology, 1, client_tags=given))

    def logged(self) -> list[object]:
        """What records of the group say of descriptions, and which settings they tell."""
        records = LogTail(self.pool).read([f"{self.program}-g"], at_least=1, seconds=20)
        values: list[Any] = [
            getattr(record, "value", None) for record, _ in records if isinstance(record.key, m.StreamsGroupMetadataKey)
        ]
        return [
            (
                *(one.stored_description_topology_epoch, one.failed_description_topology_epoch),
                [(each.key, each.value) for each in one.last_assignment_configs or ()],
            )
            for one in values
            if one is not None
        ]


STEPS: list[tuple[object, ...]] = [
    ("shown", "g"),
    ("tell", GIVEN, "m", 3),
    ("asks", "m", 0, 0),
    ("asks", "m", 2),
    ("asks", "m", 2),
    ("asks", "n", 0),
    ("shown", "g", "nope"),
    ("logged",),
    ("tell", GIVEN, " ", 3),
    ("tell", GIVEN, "m", 3, " "),
    ("tell", GIVEN, "q", 3),
    ("tell", GIVEN, "m", 2),
    ("tell", GIVEN, "m", 4),
    ("tell", ODD, "m", 3),
    ("tell", SWAPPED, "m", 3),
    ("logged",),
    ("shown", "g"),
    ("tell", GIVEN, "m", 3),
    ("logged",),
    ("shown", "g"),
    ("tell", TopologyDescription([], []), "n", 3),
    ("shown", "g"),
    ("logged",),
    ("leave", "g", "m"),
    ("leave", "g", "n"),
    ("shown", "g"),
    ("logged",),
    ("asks", "m", 0),
    ("leave", "g", "m"),
    ("delete", "g"),
    ("asks", "m", 0),
    ("shown", "g"),
]


def test_the_same_descriptions() -> None:
    with both(DescribingSide, KEPT) as sides:
        for side in sides:
            side.begin("d")
        for step in STEPS:
            mine, theirs = (side.take(step) for side in sides)
            assert mine == theirs, step


def test_the_same_tags() -> None:
    with both(DescribingSide, {**KEPT, "group.streams.rack.aware.assignment.tags": "zone, rack"}) as sides:
        for side in sides:
            side.begin("t")
        for step in (
            ("tagged", "m", 0),
            ("tagged", "m", 2, "rack"),
            ("tagged", "n", 0, "zone", "rack", "more"),
            ("logged",),
        ):
            mine, theirs = (side.take(step) for side in sides)
            assert mine == theirs, step
            assert step != ("tagged", "m", 0) or "[zone, rack]" in repr(mine)


def test_without_a_plug_in_and_the_same_controllers() -> None:
    request = m.StreamsGroupTopologyDescriptionUpdateRequest("g", "m", 0, GIVEN)
    with both(Asked, {}) as sides:
        for asked in (request, *(m.UnregisterControllerRequest(number) for number in (-1, 0, 1, 2, 3000))):
            mine, theirs = (side.pool.ask(asked, 0) for side in sides)
            assert repr(mine) == repr(theirs), asked
