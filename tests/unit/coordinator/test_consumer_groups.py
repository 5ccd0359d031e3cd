"""Consumer groups: what the language of the scenarios cannot say."""

from collections.abc import Callable
from typing import Any, ClassVar

from tests.memory_shell import NO_PRODUCER
from tests.unit.coordinator.consumer_driver import GROUP, Cluster, Consumer, settle

from groupkeeper.coordinator.classic.group import ClassicGroup
from groupkeeper.coordinator.consumer import records as consumer_records
from groupkeeper.coordinator.consumer.conversion import upgrade
from groupkeeper.coordinator.consumer.group import ConsumerGroup, ConsumerMember
from groupkeeper.coordinator.kernel.settings import Settings
from groupkeeper.protocol import errors
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.consumer_protocol import ConsumerProtocolSubscription, encode_subscription
from groupkeeper.protocol.errors import NONE
from groupkeeper.protocol.messages.consumer_group_describe_response import DescribedGroup
from groupkeeper.protocol.messages.join_group_request import JoinGroupRequestProtocol
from groupkeeper.protocol.offsets_topic import Entry


def _described(cluster: Cluster) -> DescribedGroup:
    (group,) = cluster.ask(m.ConsumerGroupDescribeRequest([GROUP])).groups
    return group


def test_null_leaves_a_member_as_it_is() -> None:
    # GN-01, GN-09
    cluster = Cluster({"t": 1})
    a = Consumer(cluster, "a")
    a.join("t", regex="u.*", assignor="range", timeout_ms=12_000)
    before = cluster.group.members["a"]
    assert (before.subscribed_topic_names, before.subscribed_topic_regex) == (("t",), "u.*")
    assert (before.server_assignor, before.rebalance_timeout_ms) == ("range", 12_000)
    a.beat()
    assert cluster.group.members["a"] == before
    a.beat(names=[], regex="", timeout_ms=5_000)
    after = cluster.group.members["a"]
    assert (after.subscribed_topic_names, after.subscribed_topic_regex) == ((), "")
    assert (after.server_assignor, after.rebalance_timeout_ms) == ("range", 5_000)


def test_an_assignor_that_is_not_there_leaves_the_last_assignment() -> None:
    # GN-25: another broker wrote the member
    cluster = Cluster({"t": 2})
    a = Consumer(cluster, "a")
    a.join("t")
    settle(a)
    stranger = ConsumerMember("z", subscribed_topic_names=("t",), server_assignor="sticky", rebalance_timeout_ms=1000)
    cluster.shell.write_transactional(consumer_records.member_record(GROUP, stranger), NO_PRODUCER)
    cluster.set_topics({"t": 3})
    answer = a.beat()
    assert answer.error_code == errors.UnknownServerError.code
    assert answer.error_message == (
        "Failed to compute a new target assignment for epoch 3: there is no assignor sticky."
    )
    assert not cluster.records
    assert (a.owned, cluster.group.assignment_epoch) == ({"t": {0, 1}}, 2)


def test_members_are_alike_by_names_or_by_one_pattern() -> None:
    # GN-24
    cluster = Cluster({"t": 2, "u": 2})
    a, b = Consumer(cluster, "a"), Consumer(cluster, "b")
    a.join("t", "u")
    b.join("u", "t")
    assert cluster.group.is_homogeneous
    b.beat(names=["t"])
    assert not cluster.group.is_homogeneous
    a.beat(names=[], regex="t")
    b.beat(names=[], regex="t")
    assert cluster.group.is_homogeneous
    b.beat(names=["t"])
    assert not cluster.group.is_homogeneous
    b.beat(names=[], regex="u")
    assert not cluster.group.is_homogeneous


def test_describe_shows_epochs_and_assignments() -> None:
    # K1099-10, K1099-11, K1099-12, K1099-13, K1099-14, K1099-15, K1099-16
    cluster = Cluster({"t": 4})
    a, b = Consumer(cluster, "a"), Consumer(cluster, "b")
    a.join("t")
    b.join("t")
    a.beat()
    request = m.ConsumerGroupDescribeRequest([GROUP, "other", ""])
    group, missing, empty = cluster.ask(request).groups
    assert (group.group_state, group.group_epoch, group.assignment_epoch) == ("Reconciling", 3, 3)
    assert group.assignor_name == "uniform"
    first = group.members[1]
    assert first.assignment.topic_partitions[0].partitions == [0, 1, 2, 3]
    assert first.target_assignment.topic_partitions[0].partitions == [0, 1]
    assert (first.member_epoch, first.member_type, first.client_host) == (2, 1, "/host")
    assert (missing.error_code, missing.error_message) == (errors.GroupIdNotFound.code, "Group other not found.")
    assert empty.group_id == ""
    cluster.set_topics({})
    (group,) = cluster.ask(m.ConsumerGroupDescribeRequest([GROUP])).groups
    assert not group.members[0].assignment.topic_partitions


def test_what_old_versions_kept_of_the_topics_is_removed() -> None:
    # GR-11
    cluster = Cluster({"t": 1})
    value = m.ConsumerGroupPartitionMetadataValue()
    cluster.shell.coordinator.replay(Entry(m.ConsumerGroupPartitionMetadataKey(GROUP), value))
    a, b = Consumer(cluster, "a"), Consumer(cluster, "b")
    a.join("t")
    assert cluster.written().count("-PartitionMetadata") == 1
    b.join("t")
    assert "-PartitionMetadata" not in cluster.written()


def test_a_description_is_of_one_moment() -> None:
    # K1099-17: epochs, members and assignments are those of the log, however far a call has come that was refused
    cluster = Cluster({"t": 2})
    a, b = Consumer(cluster, "a"), Consumer(cluster, "b")
    a.join("t")
    before = _described(cluster)
    cluster.shell.refuse_append = lambda records: errors.NotCoordinator()
    assert b.join("t").error_code != NONE
    assert _described(cluster) == before
    cluster.shell.load()
    assert _described(cluster) == before


class ReadSettings(Settings):
    """Stores the names of the groups' settings that are read."""

    found: ClassVar[set[str]] = set()

    def __getattribute__(self, name: str) -> Any:
        if name in Settings.__dataclass_fields__:
            self.found.add(name)
        return super().__getattribute__(name)


def read_in(act: Callable[[], object]) -> set[str]:
    ReadSettings.found.clear()
    act()
    return ReadSettings.found - NO_RULES


def of_consumer_groups(names: set[str]) -> set[str]:
    return {name for name in names if name.startswith("group_consumer_")}


NO_RULES = {
    *(f"group_consumer_{what}_ms" for what in ("heartbeat_interval", "session_timeout", "assignment_interval")),
    "group_consumer_assignors",  # the default; only members of the new protocol ask for another one
    "group_consumer_migration_policy",  # of members of the classic protocol
}
"""Settings of consumer groups that refuse no member, or only members of one protocol."""
OF_CLASSIC_GROUPS = {"group_initial_rebalance_delay_ms", "new_member_join_timeout_ms"}
"""Settings that JoinGroup reads of classic groups only."""


def test_a_rule_holds_however_a_member_comes_into_the_group() -> None:
    """By a heartbeat, by JoinGroup, or with the classic group that becomes a consumer group."""
    cluster = Cluster({"t": 1}, ReadSettings(group_initial_rebalance_delay_ms=0))
    subscription = encode_subscription(ConsumerProtocolSubscription(["t"]))
    join = m.JoinGroupRequest(GROUP, 10_000, 60_000, protocol_type="consumer")
    join.protocols = [JoinGroupRequestProtocol("range", subscription)]
    shell = cluster.shell
    by_first = read_in(lambda: cluster.ask(join, version=3))
    classic = shell.coordinator.state.groups[GROUP]
    assert isinstance(classic, ClassicGroup)
    settings = shell.coordinator.settings_of(GROUP)
    upgrading = of_consumer_groups(read_in(lambda: upgrade(classic, settings, shell.topics, shell.now_ms)))
    Consumer(cluster, "a").join("t")
    assert isinstance(shell.coordinator.state.groups[GROUP], ConsumerGroup)
    by_heartbeat = of_consumer_groups(read_in(lambda: Consumer(cluster, "b").join("t")))
    by_classic = read_in(lambda: cluster.ask(join, version=3))
    assert len(cluster.group.members) == 4
    assert by_first - by_classic == OF_CLASSIC_GROUPS, "a rule of JoinGroup stands in consumer/classic_protocol.py, too"
    assert by_heartbeat == of_consumer_groups(by_classic) == upgrading != set(), (
        "a rule for members of a consumer group stands in heartbeat.py, classic_protocol.py and `_check_upgrade` of "
        "conversion.py in coordinator/consumer/, one for subscriptions in `follow_subscription` of regex.py and in "
        "`upgrade`: call one function there. A setting that refuses no member, or only members of one protocol, is "
        "among NO_RULES here"
    )
