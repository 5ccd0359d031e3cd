"""SyncGroup, Heartbeat, LeaveGroup and the sessions of classic groups."""

from __future__ import annotations

import pytest
from tests.unit.coordinator.driver import INITIAL_DELAY_MS, REBALANCE_MS, SESSION_MS, Driver

from groupkeeper.coordinator.kernel.result import Meter
from groupkeeper.protocol.errors import (
    NONE,
    CoordinatorNotAvailable,
    FencedInstanceId,
    IllegalGeneration,
    InconsistentGroupProtocol,
    InvalidGroupId,
    NotCoordinator,
    RebalanceInProgress,
    UnknownMemberId,
)
from groupkeeper.protocol.messages.group_metadata_value import GroupMetadataValue
from groupkeeper.protocol.messages.leave_group_request import LeaveGroupRequest, MemberIdentity
from groupkeeper.protocol.offsets_topic import Entry


@pytest.fixture
def driver() -> Driver:
    return Driver()


def completing(driver: Driver, count: int = 2) -> list[str]:
    """A group whose members have their generation and no assignment yet; the first id leads."""
    ids = [driver.new_id() for _ in range(count)]
    replies = [driver.join(one) for one in ids]
    driver.advance(2 * INITIAL_DELAY_MS)
    assert replies[0].joined.leader == ids[0]
    driver.drain_records()
    return ids


class TestSync:
    def test_followers_wait_for_the_leader(self, driver: Driver) -> None:  # GC-15
        leader_id, follower_id = completing(driver)
        follower = driver.sync(follower_id)
        assert follower.is_parked
        leader = driver.sync(leader_id, assignments={leader_id: b"L", follower_id: b"F"})
        assert leader.synced.assignment == b"L"
        assert follower.synced.assignment == b"F"
        assert (follower.synced.protocol_type, follower.synced.protocol_name) == ("consumer", "range")
        assert driver.state() == "Stable"

    def test_assignment_is_in_the_log(self, driver: Driver) -> None:  # GC-15, GR-01
        leader_id, follower_id = completing(driver)
        driver.sync(leader_id, assignments={leader_id: b"L"})
        (record,) = driver.drain_records()
        assert isinstance(record, Entry)
        assert isinstance(record.value, GroupMetadataValue)
        assert (record.value.generation, record.value.protocol, record.value.leader) == (1, "range", leader_id)
        assignments = {member.member_id: member.assignment for member in record.value.members}
        assert assignments == {leader_id: b"L", follower_id: b""}
        assert driver.shell.marks[Meter.GROUP_COMPLETED_REBALANCE] == 1  # K496-60

    def test_failed_append_fails_everybody_and_rebalances(self, driver: Driver) -> None:  # GC-15, GR-09
        leader_id, follower_id = completing(driver)
        follower = driver.sync(follower_id)
        driver.shell.refuse_append = lambda records: CoordinatorNotAvailable()
        leader = driver.sync(leader_id, assignments={leader_id: b"L"})
        assert leader.error_code == follower.error_code == CoordinatorNotAvailable.code
        assert driver.state() == "PreparingRebalance"
        assert driver.shell.marks[Meter.GROUP_COMPLETED_REBALANCE] == 0

    def test_errors(self, driver: Driver) -> None:  # GC-14
        assert driver.sync("x", 1, group_id="").error_code == InvalidGroupId.code
        assert driver.sync("x", 1, group_id="unknown").error_code == UnknownMemberId.code
        leader_id, _ = completing(driver)
        assert driver.sync("x").error_code == UnknownMemberId.code
        assert driver.sync(leader_id, instance_id="i").error_code == UnknownMemberId.code
        assert driver.sync(leader_id, 2).error_code == IllegalGeneration.code
        assert driver.sync(leader_id, protocol_type="connect").error_code == InconsistentGroupProtocol.code
        assert driver.sync(leader_id, protocol_name="sticky").error_code == InconsistentGroupProtocol.code
        assert driver.sync(leader_id, protocol_type=None, protocol_name=None).error_code == NONE

    def test_while_joining(self, driver: Driver) -> None:  # state table of 6.2
        leader_id, follower_id = driver.stable_group(2)
        driver.join(leader_id)
        assert driver.sync(follower_id).error_code == RebalanceInProgress.code

    def test_duplicate_in_stable_gets_the_same_answer(self, driver: Driver) -> None:  # state table of 6.2
        leader_id, follower_id = driver.stable_group(2)
        driver.drain_records()
        for one in (leader_id, follower_id):
            first, second = driver.sync(one), driver.sync(one, assignments={one: b"another"})
            assert first.synced == second.synced
        assert driver.drain_records() == []

    def test_duplicate_while_parked_gets_the_same_answer(self, driver: Driver) -> None:  # GC-15
        leader_id, follower_id = completing(driver)
        first, again = driver.sync(follower_id), driver.sync(follower_id)
        driver.sync(leader_id, assignments={follower_id: b"F"})
        assert first.synced == again.synced
        assert first.synced.assignment == b"F"

    def test_new_rebalance_answers_parked_syncs(self, driver: Driver) -> None:  # GC-17
        _, follower_id = completing(driver)
        parked = driver.sync(follower_id)
        driver.join(instance_id="new")
        assert parked.error_code == RebalanceInProgress.code
        assert parked.synced.assignment == b""

    def test_new_rebalance_takes_assignments_away(self, driver: Driver) -> None:  # GC-17, GD-21
        (member_id,) = driver.stable_group()
        driver.join(member_id)
        assert driver.state() == "CompletingRebalance"
        assert driver.group().roster.members[member_id].assignment == member_id.encode()
        driver.new_id()
        driver.join(member_id, topics=["other"])
        assert driver.state() == "PreparingRebalance"
        assert driver.group().roster.members[member_id].assignment == b""

    def test_members_that_do_not_sync_are_removed(self, driver: Driver) -> None:  # GC-16
        leader_id, follower_id = completing(driver)
        follower = driver.sync(follower_id)
        for _ in range(REBALANCE_MS // 5_000):
            assert driver.heartbeat(leader_id) == NONE
            driver.advance(5_000)
        assert follower.error_code == RebalanceInProgress.code
        assert list(driver.group().roster.members) == [follower_id]
        assert driver.state() == "PreparingRebalance"

    def test_members_that_do_not_sync_are_removed_from_a_stable_group(self, driver: Driver) -> None:  # GC-16
        leader_id, follower_id = completing(driver)
        driver.sync(leader_id)
        assert driver.state() == "Stable"
        for _ in range(REBALANCE_MS // 5_000):
            driver.heartbeat(leader_id, 1)
            driver.heartbeat(follower_id, 1)
            driver.advance(5_000)
        assert driver.state() == "PreparingRebalance"
        assert list(driver.group().roster.members) == [leader_id]

    def test_nothing_happens_once_everybody_has_synced(self, driver: Driver) -> None:  # GC-16
        ids = driver.stable_group(2)
        for _ in range(REBALANCE_MS // 5_000 + 2):
            assert [driver.heartbeat(one) for one in ids] == [NONE, NONE]
            driver.advance(5_000)
        assert driver.state() == "Stable"


class TestHeartbeat:
    def test_errors(self, driver: Driver) -> None:  # GC-18
        assert driver.heartbeat("x", 1, group_id="") == InvalidGroupId.code
        assert driver.heartbeat("x", 1, group_id="unknown") == UnknownMemberId.code
        (member_id,) = driver.stable_group()
        assert driver.heartbeat(member_id, 0) == IllegalGeneration.code
        assert driver.heartbeat("x") == UnknownMemberId.code
        assert driver.heartbeat(driver.new_id()) == UnknownMemberId.code

    def test_by_state(self, driver: Driver) -> None:  # state table of 6.2
        leader_id, follower_id = completing(driver)
        assert driver.heartbeat(follower_id) == NONE
        driver.sync(leader_id)
        assert driver.heartbeat(follower_id) == NONE
        driver.join(leader_id)
        assert driver.heartbeat(follower_id) == RebalanceInProgress.code

    def test_keeps_the_session(self, driver: Driver) -> None:  # GC-19
        ids = driver.stable_group(2)
        for _ in range(10):
            driver.advance(SESSION_MS - 1)
            assert [driver.heartbeat(one) for one in ids] == [NONE, NONE]

    def test_keeps_the_session_during_a_rebalance(self, driver: Driver) -> None:  # state table of 6.2
        leader_id, follower_id = driver.stable_group(2)
        driver.join(leader_id)
        for _ in range(4):
            driver.advance(SESSION_MS - 1)
            assert driver.heartbeat(follower_id) == RebalanceInProgress.code


class TestSession:
    def test_silent_member_is_removed(self, driver: Driver) -> None:  # GC-19
        leader_id, follower_id = driver.stable_group(2)
        driver.advance(SESSION_MS - 1)
        assert driver.heartbeat(leader_id) == NONE
        driver.advance(1)
        assert driver.state() == "PreparingRebalance"
        assert list(driver.group().roster.members) == [leader_id]
        assert driver.heartbeat(follower_id) == UnknownMemberId.code

    def test_group_of_silent_members_becomes_empty(self, driver: Driver) -> None:  # GC-13, GC-19
        driver.stable_group(3)
        driver.advance(SESSION_MS + REBALANCE_MS)
        assert driver.state() == "Empty"

    def test_parked_members_are_not_expired(self, driver: Driver) -> None:  # GC-19
        leader_id, follower_id = driver.stable_group(2)
        reply = driver.join(follower_id, topics=["other"])
        for _ in range(8):
            driver.advance(SESSION_MS // 2)
            driver.heartbeat(leader_id)
        assert reply.is_parked
        assert follower_id in driver.group().roster.members

    def test_parked_sync_is_not_expired_and_starts_a_session(self, driver: Driver) -> None:  # GC-19
        leader_id, follower_id = completing(driver)
        driver.sync(follower_id)
        for _ in range(4):
            driver.advance(SESSION_MS // 2)
            driver.heartbeat(leader_id)
        driver.sync(leader_id)
        driver.advance(SESSION_MS - 1)
        assert driver.heartbeat(follower_id) == NONE

    def test_parked_join_of_a_newcomer_expires_after_five_minutes(self, driver: Driver) -> None:  # GC-19
        leader = driver.join(instance_id="a", session_ms=600_000, rebalance_ms=1_000_000)
        driver.advance(2 * INITIAL_DELAY_MS)
        driver.sync(leader.joined.member_id)
        newcomer = driver.join(instance_id="b", rebalance_ms=1_000_000)
        driver.advance(299_999)
        assert newcomer.is_parked
        driver.advance(1)
        assert newcomer.error_code == UnknownMemberId.code
        assert newcomer.joined.member_id == ""

    def test_sessions_start_afresh_after_loading(self, driver: Driver) -> None:  # GP-04, GC-27
        (member_id,) = driver.stable_group()
        driver.advance(SESSION_MS - 1)
        rebuilt = driver.rebuilt()
        rebuilt.advance(SESSION_MS - 1)
        assert rebuilt.heartbeat(member_id) == NONE
        rebuilt.advance(SESSION_MS)
        assert rebuilt.state() == "Empty"

    def test_expiry_is_tried_again_when_the_log_fails(self, driver: Driver) -> None:  # GR-09
        driver.stable_group()
        driver.shell.refuse_append = lambda records: CoordinatorNotAvailable()
        driver.advance(SESSION_MS)
        assert driver.state() == "Stable"
        driver.shell.refuse_append = lambda records: None
        driver.advance(1_000)
        assert driver.state() == "Empty"


class TestLeave:
    def test_unknown_group_and_member(self, driver: Driver) -> None:  # GC-24, GC-25
        assert driver.leave("x", "y", group_id="unknown") == [UnknownMemberId.code] * 2
        empty_id = driver.send(LeaveGroupRequest("", members=[MemberIdentity("x")]), 5)
        assert empty_id.error_code == InvalidGroupId.code
        (member_id,) = driver.stable_group()
        assert driver.leave("x", member_id) == [UnknownMemberId.code, NONE]

    def test_others_rebalance(self, driver: Driver) -> None:  # state table of 6.2
        leader_id, follower_id = driver.stable_group(2)
        assert driver.leave(leader_id) == [NONE]
        assert driver.state() == "PreparingRebalance"
        assert driver.heartbeat(follower_id) == RebalanceInProgress.code
        assert driver.join(follower_id).joined.leader == follower_id

    def test_during_the_join_phase_ends_it(self, driver: Driver) -> None:  # GC-10
        leader_id, follower_id = driver.stable_group(2)
        reply = driver.join(leader_id)
        driver.leave(follower_id)
        assert reply.joined.generation_id == 2

    def test_several_members_at_once(self, driver: Driver) -> None:  # GC-24
        ids = driver.stable_group(3)
        assert driver.leave(*ids) == [NONE] * 3
        assert driver.state() == "Empty"
        assert driver.group().roster.generation == 2

    def test_by_instance_id(self, driver: Driver) -> None:  # GC-24, GC-31
        reply = driver.join(instance_id="i")
        driver.advance(2 * INITIAL_DELAY_MS)
        member_id = reply.joined.member_id
        assert driver.leave(MemberIdentity("", "z")) == [UnknownMemberId.code]
        assert driver.leave(MemberIdentity("")) == [UnknownMemberId.code]
        assert driver.leave(MemberIdentity("other", "i")) == [FencedInstanceId.code]
        assert driver.leave(MemberIdentity(member_id, "z")) == [UnknownMemberId.code]
        assert driver.leave(MemberIdentity("", "i")) == [NONE]
        assert driver.state() == "Empty"

    def test_parked_calls_of_the_leaving_member_are_answered(self, driver: Driver) -> None:  # GC-19
        leader_id, follower_id = completing(driver)
        sync = driver.sync(follower_id)
        driver.leave(follower_id)
        assert sync.error_code == UnknownMemberId.code
        join = driver.join(leader_id, topics=["other"])
        assert join.joined.generation_id == 2

    def test_repeated_leave(self, driver: Driver) -> None:  # GC-24
        (member_id,) = driver.stable_group()
        driver.leave(member_id)
        driver.drain_records()
        assert driver.leave(member_id) == [UnknownMemberId.code]
        assert driver.drain_records() == []


def test_unloading_answers_parked_calls(driver: Driver) -> None:  # GC-28, GP-05
    leader_id, _ = driver.stable_group(2)
    parked_join = driver.join(leader_id)
    _, follower_id = (driver.new_id(group_id="h") for _ in range(2))
    driver.leave(_, group_id="h")
    driver.join(follower_id, group_id="h")
    other = driver.join(group_id="h", instance_id="i")
    driver.advance(2 * INITIAL_DELAY_MS)
    parked_sync = driver.sync(other.joined.member_id, group_id="h", instance_id="i")
    assert parked_sync.is_parked
    driver.shell.unload()
    assert parked_join.error_code == parked_sync.error_code == NotCoordinator.code
