"""JoinGroup of classic groups: ids, protocols, the two phases of a rebalance."""

from __future__ import annotations

import pytest
from tests.unit.coordinator.driver import INITIAL_DELAY_MS, REBALANCE_MS, SESSION_MS, Driver, subscription

from groupkeeper.coordinator.kernel.settings import Settings
from groupkeeper.protocol.errors import (
    NONE,
    FencedInstanceId,
    GroupMaxSizeReached,
    InconsistentGroupProtocol,
    InvalidGroupId,
    InvalidSessionTimeout,
    MemberIdRequired,
    NetworkException,
    RebalanceInProgress,
    UnknownMemberId,
    UnknownServerError,
)
from groupkeeper.protocol.messages.group_metadata_key import GroupMetadataKey
from groupkeeper.protocol.messages.group_metadata_value import GroupMetadataValue
from groupkeeper.protocol.offsets_topic import Entry


@pytest.fixture
def driver() -> Driver:
    return Driver()


def test_checks_before_the_group_is_looked_at(driver: Driver) -> None:  # GC-01
    assert driver.join(group_id="").error_code == InvalidGroupId.code
    for session_ms in (5_999, 1_800_001):
        reply = driver.join("a", session_ms=session_ms)
        assert reply.error_code == InvalidSessionTimeout.code
        assert reply.joined.member_id == "a"
        assert reply.joined.protocol_name is None  # GC-12
    assert driver.drain_records() == []


def test_a_member_id_needs_a_group(driver: Driver) -> None:  # GC-03
    assert driver.join("a").error_code == UnknownMemberId.code
    assert driver.state() == "Dead"


def test_first_join_is_told_its_id(driver: Driver) -> None:  # GC-04, GC-05
    reply = driver.join()
    assert reply.error_code == MemberIdRequired.code
    assert reply.joined.member_id.startswith("c-")
    assert driver.state() == "Empty"


def test_first_join_makes_the_group_durable(driver: Driver) -> None:  # GC-29
    driver.join()
    (record,) = driver.drain_records()
    assert isinstance(record, Entry)
    assert record.key == GroupMetadataKey("g")
    assert record.value == GroupMetadataValue("", 0, None, None, driver.shell.now_ms, ())
    assert driver.rebuilt().state() == "Empty"


def test_failed_first_append_leaves_no_group(driver: Driver) -> None:  # GC-29, GR-09
    driver.shell.refuse_append = lambda records: NetworkException()
    assert driver.join().error_code == NetworkException.code
    assert driver.state() == "Dead"
    assert [timer for timer in driver.shell.deadlines if hasattr(timer, "member_id")] == []


def test_static_members_and_old_versions_need_no_second_join(driver: Driver) -> None:  # GC-04, GC-05
    static = driver.join(instance_id="i")
    old = driver.join(version=3)
    driver.advance(2 * INITIAL_DELAY_MS)
    assert static.joined.member_id.startswith("i-")
    assert static.joined.generation_id == 1
    assert old.joined.member_id.startswith("c-")
    assert old.joined.generation_id == 1


def test_pending_id_expires(driver: Driver) -> None:  # GC-05
    member_id = driver.new_id()
    driver.advance(SESSION_MS)
    assert driver.join(member_id).error_code == UnknownMemberId.code


def test_pending_id_is_not_a_static_member(driver: Driver) -> None:
    member_id = driver.new_id()
    assert driver.join(member_id, instance_id="i").error_code == UnknownServerError.code


def test_join_phase_waits_for_pending_ids(driver: Driver) -> None:  # GC-05
    (member_id,) = driver.stable_group()
    other_id = driver.new_id()
    reply = driver.join(member_id)
    assert reply.is_parked
    other = driver.join(other_id)
    assert reply.joined.generation_id == other.joined.generation_id == 2


def test_join_phase_ends_when_the_pending_id_leaves_or_expires(driver: Driver) -> None:  # GC-05, GC-24
    (member_id,) = driver.stable_group()
    pending_id = driver.new_id()
    first = driver.join(member_id)
    assert driver.leave(pending_id) == [NONE]
    assert first.joined.generation_id == 2
    driver.sync(member_id)
    driver.new_id(session_ms=6_000)
    second = driver.join(member_id)
    driver.advance(6_000)
    assert second.joined.generation_id == 3


@pytest.mark.parametrize(
    ("protocol_type", "protocols"),
    [("", {"range": b""}), ("consumer", {})],
)
def test_empty_group_needs_a_protocol(driver: Driver, protocol_type: str, protocols: dict[str, bytes]) -> None:  # GC-06
    reply = driver.join(protocol_type=protocol_type, protocols=protocols)
    assert reply.error_code == InconsistentGroupProtocol.code
    assert driver.state() == "Empty"  # GC-29: refused, but the group is there
    assert driver.rebuilt().state() == "Empty"


@pytest.mark.parametrize(
    ("protocol_type", "protocols"),
    [("connect", {"range": b""}), ("consumer", {"sticky": b""}), ("consumer", {})],
)
def test_group_with_members_needs_a_common_protocol(
    driver: Driver, protocol_type: str, protocols: dict[str, bytes]
) -> None:  # GC-06
    driver.stable_group()
    reply = driver.join(protocol_type=protocol_type, protocols=protocols)
    assert reply.error_code == InconsistentGroupProtocol.code
    assert reply.joined.member_id == ""
    assert driver.state() == "Stable"


def test_most_preferred_common_protocol_wins(driver: Driver) -> None:  # GC-07
    offers = [("range", "roundrobin", "own"), ("roundrobin", "range"), ("roundrobin", "range")]
    replies = [
        driver.join(instance_id=str(number), protocols=dict.fromkeys(names, b"")) for number, names in enumerate(offers)
    ]
    driver.advance(2 * INITIAL_DELAY_MS)
    assert {reply.joined.protocol_name for reply in replies} == {"roundrobin"}
    assert {reply.joined.protocol_type for reply in replies} == {"consumer"}  # GC-11


def test_only_the_leader_gets_the_members(driver: Driver) -> None:  # GC-11
    leader = driver.join(instance_id="a", protocols={"range": b"metadata of a"})
    follower = driver.join(instance_id="b", protocols={"range": b"metadata of b"})
    driver.advance(2 * INITIAL_DELAY_MS)
    members = {(one.group_instance_id, one.metadata) for one in leader.joined.members}
    assert members == {("a", b"metadata of a"), ("b", b"metadata of b")}
    assert list(follower.joined.members) == []
    assert leader.joined.leader == follower.joined.leader == leader.joined.member_id


def test_initial_delay_is_extended_by_newcomers(driver: Driver) -> None:  # GC-09
    first = driver.join(instance_id="a")
    driver.advance(INITIAL_DELAY_MS - 1)
    second = driver.join(instance_id="b")
    driver.advance(1)
    assert first.is_parked
    driver.advance(INITIAL_DELAY_MS - 1)
    assert first.is_parked
    driver.advance(1)
    assert first.joined.generation_id == second.joined.generation_id == 1


def test_initial_delay_ends_with_the_rebalance_timeout(driver: Driver) -> None:  # GC-09
    first = driver.join(instance_id="0", rebalance_ms=7_000)
    for number in range(1, 7):
        driver.advance(1_000)
        driver.join(instance_id=str(number), rebalance_ms=7_000)
        assert first.is_parked
    driver.advance(1_000)
    assert first.joined.generation_id == 1


def test_initial_phase_never_ends_early(driver: Driver) -> None:  # GC-09
    reply = driver.join(instance_id="a")
    assert reply.is_parked
    driver.advance(INITIAL_DELAY_MS - 1)
    assert reply.is_parked


def test_rebalance_timeout_defaults_to_the_session(driver: Driver) -> None:  # GC-02
    member_ids = [driver.join(version=0, session_ms=6_000, rebalance_ms=-1) for _ in range(2)]
    driver.advance(2 * INITIAL_DELAY_MS)
    leader_id = member_ids[0].joined.member_id
    assert driver.group().roster.members[leader_id].rebalance_timeout_ms == 6_000


def test_join_phase_ends_when_everybody_has_rejoined(driver: Driver) -> None:  # GC-10
    first_id, second_id = driver.stable_group(2)
    first = driver.join(first_id)
    assert driver.state() == "PreparingRebalance"
    assert first.is_parked
    second = driver.join(second_id)
    assert first.joined.generation_id == second.joined.generation_id == 2
    assert driver.state() == "CompletingRebalance"


def test_dynamic_members_that_do_not_rejoin_are_removed(driver: Driver) -> None:  # GC-10
    first_id, second_id = driver.stable_group(2)
    reply = driver.join(second_id, topics=["other"])
    for _ in range(REBALANCE_MS // 5_000):
        assert reply.is_parked
        assert driver.heartbeat(first_id) == RebalanceInProgress.code
        driver.advance(5_000)
    assert reply.joined.leader == second_id  # the leader did not rejoin
    assert [one.member_id for one in reply.joined.members] == [second_id]
    assert driver.heartbeat(first_id, 2) == UnknownMemberId.code


def test_static_members_survive_a_join_phase_without_them(driver: Driver) -> None:  # GC-10, GC-23
    first = driver.join(instance_id="a", session_ms=300_000)
    driver.join(instance_id="b", session_ms=300_000)
    driver.advance(2 * INITIAL_DELAY_MS)
    leader_id = first.joined.member_id
    driver.sync(leader_id)
    driver.advance(1)
    again = driver.join(leader_id, instance_id="a", session_ms=300_000)
    driver.advance(REBALANCE_MS)
    assert again.joined.generation_id == 2
    assert {one.group_instance_id for one in again.joined.members} == {"a", "b"}


def test_join_phase_without_anybody_starts_over(driver: Driver) -> None:  # GC-10
    replies = [driver.join(instance_id=name, session_ms=300_000, rebalance_ms=10_000) for name in "ab"]
    driver.advance(2 * INITIAL_DELAY_MS)
    ids = [reply.joined.member_id for reply in replies]
    for one in ids:
        driver.sync(one)
    pending_id = driver.new_id(rebalance_ms=10_000)
    newcomer = driver.join(pending_id, rebalance_ms=10_000)
    assert driver.leave(pending_id) == [NONE]
    assert newcomer.error_code == UnknownMemberId.code
    driver.advance(50_000)
    assert driver.state() == "PreparingRebalance"
    again = driver.join(ids[1], instance_id="b", session_ms=300_000, rebalance_ms=10_000)
    driver.advance(10_000)
    assert again.joined.generation_id == 2
    assert again.joined.leader == ids[1]


def test_group_becomes_empty_with_a_record(driver: Driver) -> None:  # GC-13
    (member_id,) = driver.stable_group()
    driver.drain_records()
    assert driver.leave(member_id) == [NONE]
    assert driver.state() == "Empty"
    (record,) = driver.drain_records()
    assert isinstance(record, Entry)
    assert record.value == GroupMetadataValue("consumer", 2, None, None, driver.shell.now_ms, ())


def test_empty_group_refuses_known_ids(driver: Driver) -> None:
    (member_id,) = driver.stable_group()
    driver.leave(member_id)
    assert driver.join(member_id).error_code == UnknownMemberId.code
    assert driver.heartbeat(member_id) == UnknownMemberId.code
    assert driver.sync(member_id).error_code == UnknownMemberId.code


class TestDuplicates:
    """A repeated JoinGroup gets the answer of the first one and adds no record, in every state of the member."""

    def test_while_parked(self, driver: Driver) -> None:  # GC-10
        first_id, second_id = driver.stable_group(2)
        driver.drain_records()
        first, again = driver.join(first_id), driver.join(first_id)
        assert first.is_parked
        assert again.is_parked
        driver.join(second_id)
        assert first.joined == again.joined
        assert driver.drain_records() == []

    def test_while_parked_in_the_first_rebalance(self, driver: Driver) -> None:  # GC-09
        member_id = driver.new_id()
        first, again = driver.join(member_id), driver.join(member_id)
        driver.advance(2 * INITIAL_DELAY_MS)
        assert first.joined == again.joined
        assert len(first.joined.members) == 1

    def test_completing(self, driver: Driver) -> None:  # GC state table
        ids = driver.stable_group(2)
        replies = [driver.join(one) for one in ids]
        driver.drain_records()
        assert [driver.join(one).joined for one in ids] == [reply.joined for reply in replies]
        assert driver.state() == "CompletingRebalance"
        assert driver.drain_records() == []

    def test_stable_follower(self, driver: Driver) -> None:  # GC state table
        _, follower_id = driver.stable_group(2)
        driver.drain_records()
        reply = driver.join(follower_id)
        assert reply.joined.generation_id == 1
        assert reply.joined.leader != follower_id
        assert driver.state() == "Stable"
        assert driver.drain_records() == []


def test_stable_leader_rejoining_starts_a_rebalance(driver: Driver) -> None:  # GC state table
    leader_id, _ = driver.stable_group(2)
    assert driver.join(leader_id).is_parked
    assert driver.state() == "PreparingRebalance"


def test_changed_metadata_starts_a_rebalance(driver: Driver) -> None:  # GC state table
    leader_id, follower_id = driver.stable_group(2)
    assert driver.join(follower_id, topics=["other"]).is_parked
    assert driver.state() == "PreparingRebalance"
    driver.join(leader_id)
    assert driver.state() == "CompletingRebalance"
    assert driver.join(follower_id, topics=["another"]).is_parked
    assert driver.state() == "PreparingRebalance"


def test_member_of_a_rebuilt_group_rejoins_with_more_protocols_than_stored(driver: Driver) -> None:  # GR-04
    protocols = {"range": subscription(["t"]), "roundrobin": subscription(["t"])}
    first = driver.join(instance_id="a", protocols=protocols)
    driver.join(instance_id="b", protocols=protocols)
    driver.advance(2 * INITIAL_DELAY_MS)
    driver.sync(first.joined.member_id)
    rebuilt = driver.rebuilt()
    assert rebuilt.join(first.joined.member_id, instance_id="a", protocols=protocols).is_parked
    assert rebuilt.state() == "PreparingRebalance"


class TestSizeLimit:  # GC-08
    @pytest.fixture
    def driver(self) -> Driver:
        return Driver(Settings(group_max_size=2))

    def test_full_group_refuses_newcomers(self, driver: Driver) -> None:
        driver.stable_group(2)
        reply = driver.join()
        assert reply.error_code == GroupMaxSizeReached.code
        assert reply.joined.member_id == ""
        assert driver.state() == "Stable"

    def test_full_group_keeps_its_members(self, driver: Driver) -> None:
        first_id, second_id = driver.stable_group(2)
        assert driver.join(first_id).is_parked
        assert driver.join(second_id).joined.generation_id == 2
        assert driver.join(second_id).joined.generation_id == 2

    def test_while_joining_those_waiting_count(self, driver: Driver) -> None:
        first_id, second_id = driver.stable_group(2)
        assert driver.join(first_id).is_parked
        newcomer = driver.join(instance_id="new")
        assert newcomer.is_parked
        excess = driver.join(second_id)
        assert excess.error_code == GroupMaxSizeReached.code
        assert excess.joined.member_id == ""
        assert second_id not in driver.group().roster.members

    def test_a_waiting_member_may_repeat_itself(self, driver: Driver) -> None:
        first_id, _ = driver.stable_group(2)
        driver.join(first_id)
        driver.join(instance_id="new")
        assert driver.join(first_id).is_parked

    def test_larger_group_rebalances_after_loading(self) -> None:  # GC-27
        driver = Driver()
        driver.stable_group(3)
        driver.shell.settings = Settings(group_max_size=2)
        assert driver.rebuilt().state() == "PreparingRebalance"


class TestStaticMembers:
    def pair(self, driver: Driver, version: int = 9) -> tuple[str, str]:
        replies = [driver.join(instance_id=name, version=version) for name in "ab"]
        driver.advance(2 * INITIAL_DELAY_MS)
        leader_id, follower_id = (reply.joined.member_id for reply in replies)
        driver.sync(leader_id, assignments={leader_id: b"of a", follower_id: b"of b"})
        driver.sync(follower_id)
        driver.drain_records()
        return leader_id, follower_id

    def test_restarted_follower_keeps_the_generation(self, driver: Driver) -> None:  # GC-20
        leader_id, follower_id = self.pair(driver)
        reply = driver.join(instance_id="b")
        new_id = reply.joined.member_id
        assert new_id != follower_id
        assert reply.joined.generation_id == 1
        assert reply.joined.leader == leader_id
        assert not reply.joined.skip_assignment
        assert driver.state() == "Stable"
        assert driver.sync(new_id, instance_id="b").synced.assignment == b"of b"
        (record,) = driver.drain_records()
        assert isinstance(record, Entry)
        assert isinstance(record.value, GroupMetadataValue)
        assert {member.member_id for member in record.value.members} == {leader_id, new_id}

    def test_restarted_leader_is_told_to_skip_the_assignment(self, driver: Driver) -> None:  # GC-21
        _, follower_id = self.pair(driver)
        reply = driver.join(instance_id="a")
        assert reply.joined.leader == reply.joined.member_id
        assert reply.joined.skip_assignment
        assert {one.member_id for one in reply.joined.members} == {reply.joined.member_id, follower_id}
        assert driver.sync(reply.joined.member_id, instance_id="a").synced.assignment == b"of a"

    def test_restarted_leader_of_older_versions_follows(self, driver: Driver) -> None:  # GC-21
        leader_id, _ = self.pair(driver)
        reply = driver.join(instance_id="a", version=8)
        assert reply.joined.leader == leader_id
        assert reply.joined.member_id != leader_id
        assert list(reply.joined.members) == []
        assert not reply.joined.skip_assignment
        assert driver.group().roster.leader_id == reply.joined.member_id

    def test_restarted_follower_comes_back_with_other_topics(self, driver: Driver) -> None:  # GR-03, GC-20
        self.pair(driver)
        driver.join(instance_id="b", topics=["other"])
        assert driver.state() == "Stable"
        assert driver.group().roster.subscribed_topics == {"t", "other"}
        assert driver.rebuilt().group().roster.subscribed_topics == {"t", "other"}

    def test_old_owner_is_fenced(self, driver: Driver) -> None:  # GC-14, GC-20
        _, follower_id = self.pair(driver)
        new_id = driver.join(instance_id="b").joined.member_id
        assert driver.heartbeat(follower_id, instance_id="b") == FencedInstanceId.code
        assert driver.join(follower_id, instance_id="b").error_code == FencedInstanceId.code
        assert driver.heartbeat(follower_id) == UnknownMemberId.code
        assert driver.heartbeat(new_id, instance_id="b") == NONE

    def test_failed_append_keeps_the_old_owner(self, driver: Driver) -> None:  # GR-09
        _, follower_id = self.pair(driver)
        driver.shell.refuse_append = lambda records: UnknownServerError()
        assert driver.join(instance_id="b").error_code == UnknownServerError.code
        assert driver.heartbeat(follower_id, instance_id="b") == NONE

    def test_other_protocol_rebalances(self, driver: Driver) -> None:  # GC-22
        both = {"range": subscription(["t"]), "sticky": subscription(["t"])}
        replies = [driver.join(instance_id=name, protocols=both) for name in "ab"]
        driver.advance(2 * INITIAL_DELAY_MS)
        for reply in replies:
            driver.sync(reply.joined.member_id)
        reply = driver.join(instance_id="b", protocols={"sticky": subscription(["t"])})
        assert reply.is_parked
        assert driver.state() == "PreparingRebalance"

    def test_while_completing_rebalances(self, driver: Driver) -> None:  # GC-20, GC-22
        replies = [driver.join(instance_id=name) for name in "ab"]
        driver.advance(2 * INITIAL_DELAY_MS)
        leader_id, follower_id = (reply.joined.member_id for reply in replies)
        parked = driver.sync(follower_id, instance_id="b")
        assert driver.join(instance_id="b").is_parked
        assert parked.error_code == FencedInstanceId.code
        assert parked.synced.assignment == b""
        assert driver.state() == "PreparingRebalance"
        assert driver.sync(leader_id, instance_id="a").error_code == RebalanceInProgress.code

    def test_while_joining_takes_the_place(self, driver: Driver) -> None:  # GC-20
        leader_id, follower_id = self.pair(driver)
        old = driver.join(follower_id, instance_id="b", topics=["other"])
        assert old.is_parked
        new = driver.join(instance_id="b")
        assert old.error_code == FencedInstanceId.code
        assert old.joined.member_id == follower_id
        assert new.is_parked
        driver.join(leader_id, instance_id="a")
        assert new.joined.generation_id == 2

    def test_unknown_instance(self, driver: Driver) -> None:  # GC-14
        leader_id, _ = self.pair(driver)
        assert driver.heartbeat(leader_id, instance_id="z") == UnknownMemberId.code
        assert driver.join(leader_id, instance_id="z").error_code == UnknownMemberId.code
