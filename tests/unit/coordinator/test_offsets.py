"""OffsetCommit, OffsetFetch, OffsetDelete, pending offsets of transactions."""

from __future__ import annotations

import pytest
from tests.unit.coordinator.consumer_driver import Cluster
from tests.unit.coordinator.driver import INITIAL_DELAY_MS, SESSION_MS, Driver, is_tombstone

from groupkeeper.coordinator.kernel.result import Meter
from groupkeeper.protocol.errors import (
    NONE,
    CoordinatorNotAvailable,
    FencedInstanceId,
    GroupIdNotFound,
    GroupSubscribedToTopic,
    IllegalGeneration,
    InvalidGroupId,
    NonEmptyGroup,
    OffsetMetadataTooLarge,
    RebalanceInProgress,
    UnknownMemberId,
    UnstableOffsetCommit,
)
from groupkeeper.protocol.messages.offset_commit_key import OffsetCommitKey
from groupkeeper.protocol.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from groupkeeper.protocol.messages.offset_commit_response import OffsetCommitResponse
from groupkeeper.protocol.messages.offset_commit_value import OffsetCommitValue
from groupkeeper.protocol.messages.offset_delete_response import OffsetDeleteResponse
from groupkeeper.protocol.messages.offset_fetch_request import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from groupkeeper.protocol.messages.offset_fetch_response import OffsetFetchResponse
from groupkeeper.protocol.messages.share_group_heartbeat_request import ShareGroupHeartbeatRequest
from groupkeeper.protocol.messages.share_group_heartbeat_response import ShareGroupHeartbeatResponse
from groupkeeper.protocol.messages.txn_offset_commit_request import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from groupkeeper.protocol.messages.txn_offset_commit_response import TxnOffsetCommitResponse
from groupkeeper.protocol.offsets_topic import Entry, Tombstone
from groupkeeper.protocol.primitives import ZERO_UUID

T0, T1, U0 = ("t", 0), ("t", 1), ("u", 0)
ID_1, ID_2 = bytes([1] * 16), bytes([2] * 16)


@pytest.fixture
def driver() -> Driver:
    return Driver()


class TestCommit:
    def test_without_group_makes_a_simple_one(self, driver: Driver) -> None:  # GO-03, GR-05
        assert driver.commit({T0: 7}) == {T0: NONE}
        assert driver.state() == "Empty"
        assert driver.group().roster.protocol_type is None
        assert driver.fetch() == {T0: (7, NONE)}

    def test_empty_group_id_is_a_group(self, driver: Driver) -> None:  # GO-03, K88-33
        assert driver.commit({T0: 7}, group_id="") == {T0: NONE}
        assert driver.fetch(group_id="") == {T0: (7, NONE)}

    @pytest.mark.parametrize(
        ("version", "error"), [(9, GroupIdNotFound), (8, IllegalGeneration), (2, IllegalGeneration)]
    )
    def test_generation_needs_a_group(self, driver: Driver, version: int, error: type) -> None:  # GO-03
        assert driver.commit({T0: 7, T1: 8}, generation=0, version=version) == {T0: error.code, T1: error.code}
        assert driver.drain_records() == []

    def test_record(self, driver: Driver) -> None:  # GO-10, GR-01, K88-06
        driver.commit({T0: 7}, metadata=None, topic_id=ID_1)
        (record,) = driver.drain_records()
        value = OffsetCommitValue(7, 5, "", driver.shell.now_ms, -1, ID_1)
        assert record == Entry(OffsetCommitKey("g", "t", 0), value)

    def test_record_with_retention(self, driver: Driver) -> None:  # GO-10, GO-72
        driver.commit({T0: 7}, retention_ms=1_000, version=4)
        (record,) = driver.drain_records()
        assert isinstance(record, Entry)
        assert isinstance(record.value, OffsetCommitValue)
        assert record.value.expire_timestamp == driver.shell.now_ms + 1_000

    def test_member_of_the_generation(self, driver: Driver) -> None:  # GO-04
        (member_id,) = driver.stable_group()
        assert driver.commit({T0: 7}, member_id=member_id, generation=1) == {T0: NONE}
        assert driver.shell.marks[Meter.OFFSET_COMMIT] == 1  # K496-60

    def test_refusals_in_a_group_with_members(self, driver: Driver) -> None:  # GO-04
        reply = driver.join(instance_id="i")
        driver.advance(2 * INITIAL_DELAY_MS)
        member_id = reply.joined.member_id
        driver.sync(member_id)

        def code(member_id: str, generation: int, instance_id: str | None = None) -> int:
            return driver.commit({T0: 7}, member_id=member_id, generation=generation, instance_id=instance_id)[T0]

        assert code("", -1) == UnknownMemberId.code
        assert code("x", -1) == UnknownMemberId.code
        assert code("x", 1) == UnknownMemberId.code
        assert code(member_id, 1, "z") == UnknownMemberId.code
        assert code("x", 1, "i") == FencedInstanceId.code
        assert code(member_id, 2) == IllegalGeneration.code
        assert code(member_id, -1) == IllegalGeneration.code
        assert code(member_id, 1, "i") == NONE
        assert driver.fetch() == {T0: (7, NONE)}

    def test_empty_group_refuses_generations(self, driver: Driver) -> None:  # GO-04
        driver.commit({T0: 7})
        assert driver.commit({T0: 8}, member_id="x", generation=0) == {T0: UnknownMemberId.code}
        assert driver.commit({T0: 8}, member_id="x") == {T0: NONE}

    def test_by_state(self, driver: Driver) -> None:  # GO-04, state table of 6.2
        leader_id, follower_id = driver.stable_group(2)
        driver.join(leader_id)
        assert driver.state() == "PreparingRebalance"
        assert driver.commit({T0: 1}, member_id=follower_id, generation=1) == {T0: NONE}
        driver.join(follower_id)
        assert driver.state() == "CompletingRebalance"
        assert driver.commit({T0: 2}, member_id=follower_id, generation=2) == {T0: RebalanceInProgress.code}
        assert driver.commit({T0: 2}, member_id=follower_id, generation=1) == {T0: IllegalGeneration.code}
        assert driver.fetch() == {T0: (1, NONE)}

    def test_renews_the_session(self, driver: Driver) -> None:  # GO-05, GC-19
        (member_id,) = driver.stable_group()
        for offset in range(5):
            driver.advance(SESSION_MS - 1)
            assert driver.commit({T0: offset}, member_id=member_id, generation=1) == {T0: NONE}

    def test_metadata_is_measured_in_utf16_units(self, driver: Driver) -> None:  # GO-09
        def code(metadata: str) -> int:
            return driver.commit({T0: 1}, metadata=metadata)[T0]

        assert code("x" * 4096) == NONE
        assert code("é" * 4096) == NONE
        assert code("😀" * 2048) == NONE
        assert code("x" * 4097) == code("😀" * 2049) == OffsetMetadataTooLarge.code

    def test_too_large_metadata_stores_the_rest(self, driver: Driver) -> None:  # GO-09, K496-61
        driver.commit({T0: 1}, metadata="x" * 5_000)
        assert driver.fetch() == {}
        assert driver.shell.marks[Meter.OFFSET_COMMIT] == 0
        assert driver.state() == "Dead"

    def test_negative_offsets_are_stored(self, driver: Driver) -> None:  # GO-10
        assert driver.commit({T0: -1}) == {T0: NONE}
        assert driver.fetch() == {T0: (-1, NONE)}

    def test_failed_append_stores_nothing(self, driver: Driver) -> None:  # GR-09, GO-11
        driver.commit({T0: 1})
        driver.shell.refuse_append = lambda records: CoordinatorNotAvailable()
        assert driver.commit({T0: 2, T1: 2}) == {T0: CoordinatorNotAvailable.code, T1: CoordinatorNotAvailable.code}
        assert driver.fetch() == {T0: (1, NONE)}
        assert driver.shell.marks[Meter.OFFSET_COMMIT] == 1


class TestFetch:
    def test_all(self, driver: Driver) -> None:  # K88-10
        driver.stable_group()
        driver.shell.load()
        (member_id,) = driver.group().roster.members
        driver.commit({T0: 1, U0: 3}, member_id=member_id, generation=1)
        assert driver.fetch() == {T0: (1, NONE), U0: (3, NONE)}

    def test_unknown_group(self, driver: Driver) -> None:  # K88-11, K88-12, K88-14
        assert driver.fetch() == {}
        assert driver.fetch([]) == {}
        assert driver.fetch([U0, T1]) == {U0: (-1, NONE), T1: (-1, NONE)}

    def test_named_partitions_in_their_order(self, driver: Driver) -> None:  # K88-05, K88-13
        driver.commit({T0: 1, U0: 3})
        asked = [U0, T1, T0]
        answered = driver.fetch(asked)
        assert list(answered) == asked
        assert answered == {U0: (3, NONE), T1: (-1, NONE), T0: (1, NONE)}

    def test_contents(self, driver: Driver) -> None:  # K88-05, K88-06
        driver.commit({T0: 1}, metadata="text")
        driver.commit({T1: 1}, metadata=None)
        topics = [OffsetFetchRequestTopics("t", partition_indexes=[0, 1, 2])]
        request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup("g", topics=topics)])
        (group,) = driver.send(request, 9).of(OffsetFetchResponse).groups
        partitions = group.topics[0].partitions
        assert [(one.committed_leader_epoch, one.metadata) for one in partitions] == [(5, "text"), (5, ""), (-1, "")]

    def test_several_groups(self, driver: Driver) -> None:  # GO-30
        driver.commit({T0: 1}, group_id="a")
        groups = [OffsetFetchRequestGroup(one, topics=None) for one in "ab"]
        answers = driver.send(OffsetFetchRequest(groups=groups), 9).of(OffsetFetchResponse).groups
        assert [(one.group_id, one.error_code, len(one.topics)) for one in answers] == [("a", 0, 1), ("b", 0, 0)]

    def test_classic_groups_ignore_member_and_epoch(self, driver: Driver) -> None:  # GO-31
        driver.commit({T0: 1})
        request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup("g", "nobody", 7, None)])
        (group,) = driver.send(request, 9).of(OffsetFetchResponse).groups
        assert group.error_code == NONE
        assert len(group.topics) == 1

    def test_recreated_topic(self, driver: Driver) -> None:  # GO-32, GO-33
        driver.commit({T0: 1}, topic_id=ID_1)
        driver.commit({T1: 1})
        assert driver.fetch([T0, T1], topic_id=ID_1) == {T0: (1, NONE), T1: (1, NONE)}
        assert driver.fetch([T0, T1], topic_id=ID_2) == {T0: (-1, NONE), T1: (1, NONE)}
        assert driver.fetch([T0, T1]) == {T0: (1, NONE), T1: (1, NONE)}


class TestDelete:
    def code(self, response: OffsetDeleteResponse) -> dict[tuple[str, int], int]:
        assert response.error_code == NONE
        return {
            (topic.name, partition.partition_index): partition.error_code
            for topic in response.topics
            for partition in topic.partitions
        }

    def test_group_errors(self, driver: Driver) -> None:  # K496-18, K496-19
        assert driver.delete_offsets(T0, group_id="").error_code == InvalidGroupId.code
        answer = driver.delete_offsets(T0)
        assert answer.error_code == GroupIdNotFound.code
        assert list(answer.topics) == []

    def test_offsets_nobody_uses(self, driver: Driver) -> None:  # K496-10, K496-13, K496-20
        driver.commit({T0: 1, T1: 1})
        driver.drain_records()
        assert self.code(driver.delete_offsets(T0)) == {T0: NONE}
        assert driver.drain_records() == [Tombstone(OffsetCommitKey("g", "t", 0))]
        assert driver.fetch([T0, T1]) == {T0: (-1, NONE), T1: (1, NONE)}
        assert driver.fetch() == {T1: (1, NONE)}
        driver.delete_offsets(T1)
        assert driver.state() == "Empty"
        assert driver.shell.marks[Meter.OFFSET_DELETION] == 2

    def test_nothing_to_delete(self, driver: Driver) -> None:  # K496-12, K496-21
        driver.commit({T0: 1})
        driver.drain_records()
        assert self.code(driver.delete_offsets(T1, U0)) == {T1: NONE, U0: NONE}
        assert self.code(driver.delete_offsets()) == {}
        assert driver.drain_records() == []
        assert driver.shell.marks[Meter.OFFSET_DELETION] == 0

    def test_subscribed_topics_are_kept(self, driver: Driver) -> None:  # K496-11, K496-15
        (member_id,) = driver.stable_group(topics=["t"])
        driver.commit({T0: 1, U0: 1}, member_id=member_id, generation=1)
        expected = {T0: GroupSubscribedToTopic.code, U0: NONE}
        assert self.code(driver.delete_offsets(T0, U0)) == expected
        assert driver.fetch() == {T0: (1, NONE)}

    def test_subscriptions_end_with_the_last_member(self, driver: Driver) -> None:  # K496-15
        (member_id,) = driver.stable_group(topics=["t"])
        driver.commit({T0: 1}, member_id=member_id, generation=1)
        driver.leave(member_id)
        assert self.code(driver.delete_offsets(T0)) == {T0: NONE}

    def test_subscriptions_survive_loading(self, driver: Driver) -> None:  # GR-03, K496-15
        driver.stable_group(topics=["t"])
        assert self.code(driver.rebuilt().delete_offsets(T0, U0)) == {T0: GroupSubscribedToTopic.code, U0: NONE}

    @pytest.mark.parametrize("metadata", [b"", b"\0", b"\xff\xff", b"\0\1\0\0\0\5"])
    def test_unknown_subscriptions_protect_every_topic(self, driver: Driver, metadata: bytes) -> None:  # K496-15, GC-30
        driver.commit({T0: 1})
        driver.join(instance_id="i", protocols={"range": metadata})
        driver.advance(2 * INITIAL_DELAY_MS)
        assert driver.state() == "CompletingRebalance"
        assert self.code(driver.delete_offsets(T0)) == {T0: GroupSubscribedToTopic.code}

    def test_later_subscription_versions_are_read(self, driver: Driver) -> None:  # GC-30
        metadata = b"\0\x09" + b"\0\0\0\1\0\1t" + b"\xff\xff\xff\xff" + b"something newer"
        driver.join(instance_id="i", protocols={"range": metadata})
        driver.advance(2 * INITIAL_DELAY_MS)
        assert driver.group().roster.subscribed_topics == {"t"}

    def test_first_rebalance_protects_every_topic(self, driver: Driver) -> None:  # K496-15
        driver.commit({T0: 1})
        driver.join(instance_id="i")
        assert driver.state() == "PreparingRebalance"
        assert self.code(driver.delete_offsets(U0)) == {U0: GroupSubscribedToTopic.code}

    def test_other_protocol_types(self, driver: Driver) -> None:  # K496-17
        driver.join(instance_id="i", protocol_type="connect")
        assert driver.delete_offsets(T0).error_code == NonEmptyGroup.code
        driver.advance(2 * INITIAL_DELAY_MS)
        assert driver.delete_offsets(T0).error_code == NonEmptyGroup.code
        (member_id,) = driver.group().roster.members
        driver.leave(member_id)
        assert driver.delete_offsets(T0).error_code == NONE


class TestPendingOffsets:
    """Offsets of open transactions, as their records say; the request that writes them comes with transactions."""

    def pending(self, driver: Driver, producer_id: int, offset: int) -> None:
        value = OffsetCommitValue(offset, -1, "", driver.shell.now_ms)
        driver.shell.write_transactional(Entry(OffsetCommitKey("g", "t", 0), value), producer_id)

    def test_unstable_until_the_marker(self, driver: Driver) -> None:  # GO-23, GO-40, GO-41
        driver.commit({T0: 1, T1: 1})
        self.pending(driver, 1, 5)
        assert driver.fetch() == {T0: (1, NONE), T1: (1, NONE)}
        assert driver.fetch([T0, T1], require_stable=True) == {T0: (-1, UnstableOffsetCommit.code), T1: (1, NONE)}
        assert driver.fetch(require_stable=True) == {T0: (-1, UnstableOffsetCommit.code), T1: (1, NONE)}
        driver.shell.end_transaction(1, is_commit=True)
        assert driver.fetch(require_stable=True) == {T0: (5, NONE), T1: (1, NONE)}

    def test_only_pending(self, driver: Driver) -> None:  # GO-40, GR-05
        self.pending(driver, 1, 5)
        assert driver.fetch(require_stable=True) == {}
        assert driver.fetch([T0], require_stable=True) == {T0: (-1, UnstableOffsetCommit.code)}
        assert driver.fetch([T0]) == {T0: (-1, NONE)}
        assert driver.state() == "Empty"

    def test_abort(self, driver: Driver) -> None:  # GO-23
        driver.commit({T0: 1})
        self.pending(driver, 1, 5)
        driver.shell.end_transaction(1, is_commit=False)
        assert driver.fetch(require_stable=True) == {T0: (1, NONE)}

    def test_newer_plain_commit_stays(self, driver: Driver) -> None:  # GO-23, GR-06
        self.pending(driver, 1, 5)
        driver.commit({T0: 9})
        driver.shell.end_transaction(1, is_commit=True)
        assert driver.fetch() == {T0: (9, NONE)}

    def test_deleted_offsets_do_not_come_back(self, driver: Driver) -> None:  # K496-14
        self.pending(driver, 1, 5)
        driver.drain_records()
        driver.delete_offsets(T0)
        assert [is_tombstone(record) for record in driver.drain_records()] == [True]
        assert driver.shell.marks[Meter.OFFSET_DELETION] == 0
        driver.shell.end_transaction(1, is_commit=True)
        assert driver.fetch(require_stable=True) == {}

    def test_marker_of_an_unknown_producer(self, driver: Driver) -> None:  # GR-07
        driver.commit({T0: 1})
        driver.shell.end_transaction(7, is_commit=True)
        assert driver.fetch() == {T0: (1, NONE)}

    def test_two_producers(self, driver: Driver) -> None:  # GO-23
        self.pending(driver, 1, 5)
        self.pending(driver, 2, 6)
        driver.shell.end_transaction(1, is_commit=True)
        assert driver.fetch([T0], require_stable=True) == {T0: (-1, UnstableOffsetCommit.code)}
        driver.shell.end_transaction(2, is_commit=False)
        assert driver.fetch([T0], require_stable=True) == {T0: (5, NONE)}

    def test_rebuilt(self, driver: Driver) -> None:  # GR-03
        driver.commit({T0: 1})
        self.pending(driver, 1, 5)
        rebuilt = driver.rebuilt()
        assert rebuilt.fetch([T0], require_stable=True) == {T0: (-1, UnstableOffsetCommit.code)}
        rebuilt.shell.end_transaction(1, is_commit=True)
        assert rebuilt.fetch() == {T0: (5, NONE)}


def test_transactional_offsets_are_counted_when_they_are_accepted() -> None:
    # K496-62, GO-24
    cluster = Cluster({"t": 1})
    topic = TxnOffsetCommitRequestTopic("t", partitions=[TxnOffsetCommitRequestPartition(0, 5, -1, "")])
    request = TxnOffsetCommitRequest("tx", "g", 7, 0, topics=[topic])
    cluster.ask(request, TxnOffsetCommitResponse, version=5)
    assert cluster.shell.marks[Meter.OFFSET_COMMIT] == 1
    (record,) = cluster.records
    assert isinstance(record, Entry)
    assert isinstance(record.value, OffsetCommitValue)
    assert record.value.topic_id == ZERO_UUID
    cluster.shell.coordinator.replay_end_transaction(7, is_commit=True)
    assert cluster.shell.marks[Meter.OFFSET_COMMIT] == 1


@pytest.mark.parametrize("member_id", ["", "m"])
def test_a_share_group_commits_nothing(member_id: str) -> None:
    # GO-08
    cluster = Cluster({"t": 1})
    join = ShareGroupHeartbeatRequest("g", "m", 0, subscribed_topic_names=["t"])
    assert cluster.ask(join, ShareGroupHeartbeatResponse).error_code == NONE
    topic = OffsetCommitRequestTopic("t", partitions=[OffsetCommitRequestPartition(0, 7)])
    commit = OffsetCommitRequest("g", 1 if member_id else -1, member_id, topics=[topic])
    answer = cluster.ask(commit, OffsetCommitResponse, version=9)
    assert answer.topics[0].partitions[0].error_code == GroupIdNotFound.code
    partition = TxnOffsetCommitRequestPartition(0, 7)
    in_transaction = TxnOffsetCommitRequest(
        "x", "g", 1, 0, topics=[TxnOffsetCommitRequestTopic("t", partitions=[partition])]
    )
    refused = cluster.ask(in_transaction, TxnOffsetCommitResponse, version=3)
    assert refused.topics[0].partitions[0].error_code == GroupIdNotFound.code
    assert cluster.records == []
