"""Expiration, deleted topics and groups; list and describe; loading."""

from __future__ import annotations

import pytest
from tests.unit.coordinator.driver import INITIAL_DELAY_MS, SESSION_MS, Driver

from groupkeeper.coordinator.kernel.result import Meter
from groupkeeper.coordinator.kernel.settings import Settings
from groupkeeper.protocol.errors import NONE, CoordinatorNotAvailable, GroupIdNotFound, InvalidGroupId, NonEmptyGroup
from groupkeeper.protocol.messages.consumer_group_describe_request import ConsumerGroupDescribeRequest
from groupkeeper.protocol.messages.consumer_group_describe_response import ConsumerGroupDescribeResponse
from groupkeeper.protocol.messages.describe_groups_request import DescribeGroupsRequest
from groupkeeper.protocol.messages.describe_groups_response import DescribedGroup, DescribeGroupsResponse
from groupkeeper.protocol.messages.group_metadata_key import GroupMetadataKey
from groupkeeper.protocol.messages.list_groups_request import ListGroupsRequest
from groupkeeper.protocol.messages.list_groups_response import ListedGroup, ListGroupsResponse
from groupkeeper.protocol.messages.offset_commit_key import OffsetCommitKey
from groupkeeper.protocol.messages.offset_commit_value import OffsetCommitValue
from groupkeeper.protocol.offsets_topic import Entry, Tombstone

T0, T1, U0 = ("t", 0), ("t", 1), ("u", 0)
HOUR = 3_600_000
ID_1, ID_2 = bytes([1] * 16), bytes([2] * 16)


@pytest.fixture
def driver() -> Driver:
    return Driver(Settings(offsets_retention_ms=HOUR, offsets_retention_check_interval_ms=60_000))


def heartbeats(driver: Driver, member_id: str, duration_ms: int) -> None:
    for _ in range(duration_ms // 5_000):
        assert driver.heartbeat(member_id) == NONE
        driver.advance(5_000)


class TestExpiration:
    def test_simple_group(self, driver: Driver) -> None:  # GO-70, GO-71, GO-74
        driver.commit({T0: 1})
        driver.advance(HOUR // 2)
        driver.commit({U0: 1})
        driver.advance(HOUR // 2 + 60_000)
        assert driver.fetch() == {U0: (1, NONE)}
        assert driver.state() == "Empty"
        driver.advance(HOUR // 2)
        assert driver.state() == "Dead"
        assert driver.shell.marks[Meter.OFFSET_EXPIRATION] == 2  # K496-60, K496-X5

    def test_just_before(self, driver: Driver) -> None:  # GO-71
        driver.commit({T0: 1})
        driver.advance(HOUR - 1)
        assert driver.fetch() == {T0: (1, NONE)}

    def test_empty_group_counts_from_when_it_became_empty(self, driver: Driver) -> None:  # GO-71, GO-75
        (member_id,) = driver.stable_group()
        driver.commit({T0: 1}, member_id=member_id, generation=1)
        heartbeats(driver, member_id, 2 * HOUR)
        driver.leave(member_id)
        driver.advance(HOUR - 1)
        assert driver.fetch() == {T0: (1, NONE)}
        driver.advance(60_000)
        assert driver.state() == "Dead"

    def test_empty_group_of_old_records_counts_from_the_commit(self, driver: Driver) -> None:  # GO-71
        from groupkeeper.protocol.messages.group_metadata_value import GroupMetadataValue

        value = GroupMetadataValue("consumer", 3, None, None, -1, ())
        driver.shell.log.append(Entry(GroupMetadataKey("g"), value))
        now_ms = driver.shell.now_ms
        driver.shell.log.append(Entry(OffsetCommitKey("g", "t", 0), OffsetCommitValue(1, -1, "", now_ms - HOUR)))
        driver.shell.log.append(Entry(OffsetCommitKey("g", "t", 1), OffsetCommitValue(1, -1, "", now_ms)))
        rebuilt = driver.rebuilt()
        rebuilt.advance(60_000)
        assert rebuilt.fetch() == {T1: (1, NONE)}

    def test_stable_group_loses_only_topics_nobody_subscribes_to(self, driver: Driver) -> None:  # GO-71
        (member_id,) = driver.stable_group(topics=["t"])
        driver.commit({T0: 1, U0: 1}, member_id=member_id, generation=1)
        heartbeats(driver, member_id, HOUR + 120_000)
        assert driver.fetch() == {T0: (1, NONE)}
        assert driver.state() == "Stable"

    def test_group_with_members_of_another_type_loses_nothing(self, driver: Driver) -> None:  # GO-71
        reply = driver.join(instance_id="i", protocol_type="connect")
        driver.advance(2 * INITIAL_DELAY_MS)
        member_id = reply.joined.member_id
        driver.sync(member_id, protocol_type=None, protocol_name=None)
        driver.commit({T0: 1}, member_id=member_id, generation=1)
        heartbeats(driver, member_id, HOUR + 120_000)
        assert driver.fetch() == {T0: (1, NONE)}

    def test_rebalancing_group_loses_nothing(self, driver: Driver) -> None:  # GO-71
        first_id, second_id = driver.stable_group(2)
        driver.commit({U0: 1}, member_id=first_id, generation=1)
        heartbeats_until = HOUR - 60_000
        for _ in range(heartbeats_until // 5_000):
            driver.heartbeat(first_id)
            driver.heartbeat(second_id)
            driver.advance(5_000)
        driver.join(first_id, rebalance_ms=HOUR)
        for _ in range(180_000 // 5_000):
            driver.heartbeat(second_id)
            driver.advance(5_000)
        assert driver.state() == "PreparingRebalance"
        assert driver.fetch() == {U0: (1, NONE)}

    def test_own_retention(self, driver: Driver) -> None:  # GO-72
        driver.commit({T0: 1}, retention_ms=2 * HOUR, version=4)
        driver.commit({T1: 1}, retention_ms=1_000, version=4)
        driver.advance(60_000)
        assert driver.fetch() == {T0: (1, NONE)}
        driver.advance(HOUR + 60_000)
        assert driver.fetch() == {T0: (1, NONE)}
        driver.advance(HOUR)
        assert driver.state() == "Dead"

    def test_pending_offsets_keep_offset_and_group(self, driver: Driver) -> None:  # GO-73, GO-74
        driver.commit({T0: 1})
        value = OffsetCommitValue(5, -1, "", driver.shell.now_ms)
        driver.shell.write_transactional(Entry(OffsetCommitKey("g", "t", 0), value), 1)
        driver.advance(2 * HOUR)
        assert driver.fetch() == {T0: (1, NONE)}
        driver.shell.end_transaction(1, is_commit=False)
        driver.advance(60_000)
        assert driver.state() == "Dead"

    def test_group_without_offsets_goes_at_the_next_pass(self, driver: Driver) -> None:  # GO-74
        (member_id,) = driver.stable_group()
        driver.leave(member_id)
        driver.drain_records()
        driver.advance(60_000)
        assert driver.state() == "Dead"
        assert driver.drain_records() == [Tombstone(GroupMetadataKey("g"))]

    def test_the_last_deleted_offset_leaves_the_group_until_the_next_pass(self, driver: Driver) -> None:  # GD-07
        driver.commit({T0: 1})
        driver.delete_offsets(T0)
        assert driver.state() == "Empty"
        assert driver.fetch() == {}
        driver.advance(60_000)
        assert driver.state() == "Dead"

    def test_failed_pass_is_made_up_for(self, driver: Driver) -> None:  # GR-09
        driver.commit({T0: 1})
        driver.shell.refuse_append = lambda records: CoordinatorNotAvailable()
        driver.advance(HOUR)
        assert driver.fetch() == {T0: (1, NONE)}
        driver.shell.refuse_append = lambda records: None
        driver.advance(60_000)
        assert driver.state() == "Dead"


def test_deleted_topics_take_their_offsets_along(driver: Driver) -> None:  # GO-76
    driver.commit({T0: 1, U0: 1}, topic_id=ID_1)
    driver.commit({T1: 1}, topic_id=ID_2)
    driver.commit({T0: 1}, group_id="h")
    value = OffsetCommitValue(5, -1, "", driver.shell.now_ms)
    driver.shell.write_transactional(Entry(OffsetCommitKey("h", "t", 9), value), 1)
    driver.shell.remove_topics({"t": ID_1})
    assert driver.fetch() == {U0: (1, NONE), T1: (1, NONE)}
    assert driver.fetch(group_id="h") == {}
    driver.shell.end_transaction(1, is_commit=True)
    assert driver.fetch(group_id="h") == {}
    assert driver.shell.marks[Meter.OFFSET_DELETION] == 0  # K496-61


class TestDeleteGroups:
    def test_outcomes(self, driver: Driver) -> None:  # GD-01, GD-02, GD-03
        driver.commit({T0: 1, U0: 1}, group_id="simple")
        (member_id,) = driver.stable_group(group_id="stable")
        driver.new_id(group_id="pending")
        driver.drain_records()
        codes = driver.delete_groups("simple", "stable", "unknown", "pending", "")
        assert codes == [NONE, NonEmptyGroup.code, GroupIdNotFound.code, NONE, GroupIdNotFound.code]
        assert driver.drain_records() == [
            Tombstone(OffsetCommitKey("simple", "t", 0)),
            Tombstone(OffsetCommitKey("simple", "u", 0)),
            Tombstone(GroupMetadataKey("simple")),
            Tombstone(GroupMetadataKey("pending")),
        ]
        assert driver.fetch(group_id="simple") == {}
        assert driver.state("simple") == driver.state("pending") == "Dead"
        assert driver.heartbeat(member_id, group_id="stable") == NONE
        assert driver.shell.marks[Meter.OFFSET_DELETION] == 0  # K496-61

    def test_rebalancing(self, driver: Driver) -> None:  # GD-02
        driver.join(instance_id="i")
        assert driver.delete_groups("g") == [NonEmptyGroup.code]
        driver.advance(2 * INITIAL_DELAY_MS)
        assert driver.delete_groups("g") == [NonEmptyGroup.code]

    def test_pending_offsets_go_too(self, driver: Driver) -> None:  # GD-03
        value = OffsetCommitValue(5, -1, "", driver.shell.now_ms)
        driver.shell.write_transactional(Entry(OffsetCommitKey("g", "t", 0), value), 1)
        assert driver.delete_groups("g") == [NONE]
        driver.shell.end_transaction(1, is_commit=True)
        assert driver.fetch() == {}


class TestList:
    def listed(self, driver: Driver, states: tuple[str, ...] = (), types: tuple[str, ...] = ()) -> set[tuple[str, ...]]:
        response = driver.send(ListGroupsRequest(states, types), 5).of(ListGroupsResponse)
        assert response.error_code == NONE
        return {(one.group_id, one.protocol_type, one.group_state, one.group_type) for one in response.groups}

    def test_filters(self, driver: Driver) -> None:  # K518-03, K518-10 … K518-16
        driver.commit({T0: 1}, group_id="simple")
        driver.stable_group(group_id="stable")
        driver.join(group_id="preparing", instance_id="i", protocol_type="connect")
        simple = ("simple", "", "Empty", "classic")
        stable = ("stable", "consumer", "Stable", "classic")
        preparing = ("preparing", "connect", "PreparingRebalance", "classic")
        assert self.listed(driver) == {simple, stable, preparing}
        assert self.listed(driver, ("Stable",)) == {stable}
        assert self.listed(driver, (" stAble", "EMPTY ")) == {stable, simple}
        assert self.listed(driver, ("Unknown",)) == set()
        assert self.listed(driver, ("Stable", "Unknown")) == {stable}
        assert self.listed(driver, (), ("Classic",)) == {simple, stable, preparing}
        assert self.listed(driver, (), ("consumer", "share", " classic")) == set()
        assert self.listed(driver, ("Empty",), ("CLASSIC",)) == {simple}
        assert self.listed(driver, ("Empty",), ("Consumer",)) == set()

    def test_every_field_of_the_message_is_filled(self, driver: Driver) -> None:
        driver.stable_group()
        (group,) = driver.send(ListGroupsRequest(), ListGroupsRequest.MAX_VERSION).of(ListGroupsResponse).groups
        assert [name for name in group.__slots__ if getattr(group, name) == getattr(ListedGroup(), name)] == []


class TestDescribe:
    def described(self, driver: Driver, group_id: str = "g", version: int = 6) -> DescribedGroup:
        (group,) = driver.send(DescribeGroupsRequest([group_id]), version).of(DescribeGroupsResponse).groups
        return group

    def test_stable(self, driver: Driver) -> None:  # GD-20, GD-21
        (member_id,) = driver.stable_group()
        group = self.described(driver)
        assert (group.error_code, group.group_state) == (NONE, "Stable")
        assert (group.protocol_type, group.protocol_data) == ("consumer", "range")
        (member,) = group.members
        assert (member.member_id, member.client_id, member.client_host) == (member_id, "c", "/127.0.0.1")
        assert member.member_assignment == member_id.encode()
        assert member.member_metadata != b""

    def test_rebalancing(self, driver: Driver) -> None:  # GD-21
        leader_id, _ = driver.stable_group(2)
        driver.join(leader_id)
        group = self.described(driver)
        assert (group.group_state, group.protocol_type, group.protocol_data) == ("PreparingRebalance", "consumer", "")
        assert {member.member_assignment for member in group.members} == {
            one.encode() for one in driver.group().roster.members
        }
        assert {member.member_metadata for member in group.members} == {b""}

    def test_simple(self, driver: Driver) -> None:  # GD-20
        driver.commit({T0: 1})
        group = self.described(driver)
        assert (group.error_code, group.group_state, group.protocol_type) == (NONE, "Empty", "")
        assert list(group.members) == []

    @pytest.mark.parametrize(("version", "code", "message"), [(6, 69, "Group g not found."), (5, 0, None)])
    def test_unknown(self, driver: Driver, version: int, code: int, message: str | None) -> None:  # GD-22
        group = self.described(driver, version=version)
        assert (group.error_code, group.error_message, group.group_state) == (code, message, "Dead")

    def test_consumer_group_describe(self, driver: Driver) -> None:  # K1099-14, K1099-15
        driver.commit({T0: 1})
        response = driver.send(ConsumerGroupDescribeRequest(["g", "unknown", ""]), 1).of(ConsumerGroupDescribeResponse)
        answers = [(one.group_id, one.error_code, one.error_message) for one in response.groups]
        assert answers == [
            ("g", GroupIdNotFound.code, "Group g is not a consumer group."),
            ("unknown", GroupIdNotFound.code, "Group unknown not found."),
            ("", InvalidGroupId.code, None),
        ]


class TestLoading:
    def test_stable_group_is_the_same(self, driver: Driver) -> None:  # GR-03, GR-04
        leader_id, follower_id = driver.stable_group(2)
        driver.commit({T0: 1}, member_id=leader_id, generation=1)
        rebuilt = driver.rebuilt()
        assert rebuilt.group().stored == driver.group().stored
        assert rebuilt.group().roster.subscribed_topics == driver.group().roster.subscribed_topics
        assert rebuilt.fetch() == driver.fetch()
        assert rebuilt.sync(follower_id).synced == driver.sync(follower_id).synced
        assert rebuilt.heartbeat(leader_id) == NONE

    def test_rebalance_in_progress_is_forgotten(self, driver: Driver) -> None:  # GR-04
        leader_id, _ = driver.stable_group(2)
        driver.join(leader_id)
        rebuilt = driver.rebuilt()
        assert rebuilt.state() == "Stable"
        assert rebuilt.group().roster.generation == 1

    def test_group_stays_empty_after_loading(self, driver: Driver) -> None:  # GR-04
        (member_id,) = driver.stable_group()
        driver.leave(member_id)
        rebuilt = driver.rebuilt()
        assert rebuilt.state() == "Empty"
        assert rebuilt.group() == driver.group()

    def test_rebalance_timeout_of_old_records(self, driver: Driver) -> None:  # GR-04
        from groupkeeper.protocol.messages.group_metadata_value import GroupMetadataValue, MemberMetadata

        member = MemberMetadata("m", None, "c", "/h", -1, SESSION_MS, b"", b"A")
        driver.shell.log.append(
            Entry(GroupMetadataKey("g"), GroupMetadataValue("consumer", 3, "range", "m", -1, [member]))
        )
        rebuilt = driver.rebuilt()
        assert rebuilt.group().roster.members["m"].rebalance_timeout_ms == SESSION_MS
        assert rebuilt.sync("m", 3).synced.assignment == b"A"

    def test_compaction_changes_nothing(self, driver: Driver) -> None:  # GR-06
        (member_id,) = driver.stable_group()
        for offset in range(3):
            driver.commit({T0: offset, T1: offset}, member_id=member_id, generation=1)
        driver.leave(member_id)
        driver.delete_offsets(T1)
        driver.commit({T0: 1}, group_id="gone")
        driver.delete_groups("gone")
        rebuilt = driver.rebuilt()
        driver.shell.log.compact(keep_tombstones=False)
        compacted = driver.rebuilt()
        assert compacted.group() == rebuilt.group() == driver.group()
        assert compacted.fetch() == rebuilt.fetch() == {T0: (2, NONE)}
        assert compacted.state("gone") == "Dead"

    def test_tombstones_of_unknown_groups_are_ignored(self, driver: Driver) -> None:  # GR-05, GR-06
        driver.shell.log.append(Tombstone(GroupMetadataKey("g")))
        driver.shell.log.append(Tombstone(OffsetCommitKey("g", "t", 0)))
        assert driver.rebuilt().state() == "Dead"
