"""Offsets of simple groups against a plain dictionary: any order of commits, transactions, deletions, expiration and
restarts with or without compaction.
"""

from dataclasses import dataclass, field

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from tests.memory_shell import MemoryShell, Observer

from groupkeeper.coordinator.kernel.result import Call
from groupkeeper.coordinator.kernel.settings import Settings
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.errors import NONE, GroupIdNotFound, UnstableOffsetCommit
from groupkeeper.protocol.messages import offset_commit_request, offset_delete_request, offset_fetch_request
from groupkeeper.protocol.primitives import Message

PASS_MS = 60_000
RETENTION_MS = 300_000
GROUPS = ("g", "h")
TOPICS = ("t1", "t2")
PARTITIONS = (0,)

# Mostly the same place, so that what happens to it adds up.
groups, topics, partitions = st.sampled_from("gggh"), st.sampled_from(("t1", "t1", "t2")), st.sampled_from(PARTITIONS)
producers = st.sampled_from((1, 2))
offsets = st.integers(0, 1_000)
metadata = st.sampled_from((None, "", "note"))
topic_ids = st.sampled_from((0, 7, 8))


@dataclass(frozen=True)
class Stored:
    """An offset as somebody committed it. `expire_ms` is None unless the commit named its retention."""

    order: int
    offset: int
    leader_epoch: int
    metadata: str
    commit_ms: int
    expire_ms: int | None = None
    topic_id: int = 0


@dataclass
class Place:
    """What is known of one partition of one group."""

    committed: Stored | None = None
    pending: dict[int, Stored] = field(default_factory=dict)


class OffsetsModel(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.answers: list[Message] = []
        self.shell = MemoryShell(
            Settings(offsets_retention_ms=RETENTION_MS, offsets_retention_check_interval_ms=PASS_MS),
            observer=Observer(answered=lambda _, response: self.answers.append(response)),
        )
        self.places: dict[tuple[str, str, int], Place] = {}
        self.existing: set[str] = set()
        self.was_compacted = False
        self.order = 0
        self.next_pass_ms = self.shell.now_ms + PASS_MS

    def ask(self, request: Message, version: int) -> Message:
        self.order += 1
        self.shell.call(Call(self.order, request, version, "c", "/127.0.0.1"))
        return self.answers.pop()

    def place(self, group: str, topic: str, partition: int) -> Place:
        return self.places.setdefault((group, topic, partition), Place())

    def held(self, group: str) -> list[Place]:
        return [one for key, one in self.places.items() if key[0] == group and (one.committed or one.pending)]

    @rule(
        group=groups,
        topic=topics,
        partition=partitions,
        offset=offsets,
        text=metadata,
        epoch=st.sampled_from((-1, 5)),
        topic_id=topic_ids,
    )
    def commit(
        self, group: str, topic: str, partition: int, offset: int, text: str | None, epoch: int, topic_id: int
    ) -> None:
        self._commit(group, topic, partition, Stored(0, offset, epoch, text or "", 0, None, topic_id), text, -1)

    @rule(group=groups, topic=topics, partition=partitions, offset=offsets, retention_ms=st.sampled_from((0, 90_000)))
    def commit_with_retention(self, group: str, topic: str, partition: int, offset: int, retention_ms: int) -> None:
        stored = Stored(0, offset, -1, "", 0, self.shell.now_ms + retention_ms)
        self._commit(group, topic, partition, stored, "", retention_ms)

    def _commit(
        self, group: str, topic: str, partition: int, stored: Stored, text: str | None, retention_ms: int
    ) -> None:
        one = offset_commit_request.OffsetCommitRequestPartition(partition, stored.offset, stored.leader_epoch, text)
        topic_id = stored.topic_id.to_bytes(16, "big")
        asked = [offset_commit_request.OffsetCommitRequestTopic(topic, topic_id, [one])]
        request = offset_commit_request.OffsetCommitRequest(group, retention_time_ms=retention_ms, topics=asked)
        answer = self.ask(request, 4 if retention_ms >= 0 else 10)
        assert isinstance(answer, m.OffsetCommitResponse)
        assert answer.topics[0].partitions[0].error_code == NONE
        self.existing.add(group)
        self.place(group, topic, partition).committed = Stored(
            self.order,
            stored.offset,
            stored.leader_epoch,
            stored.metadata,
            self.shell.now_ms,
            stored.expire_ms,
            stored.topic_id,
        )

    @rule(group=groups, topic=topics, partition=partitions, offset=offsets, producer=producers)
    def commit_in_transaction(
        self, group: str, topic: str, partition: int, offset: int, producer: int
    ) -> None:  # GO-23
        one = m.TxnOffsetCommitRequestPartition(partition, offset, 3, None)
        request = m.TxnOffsetCommitRequest(
            "transaction", group, producer, 0, topics=[m.TxnOffsetCommitRequestTopic(topic, partitions=[one])]
        )
        self.ask(request, 3)
        self.existing.add(group)
        stored = Stored(self.order, offset, 3, "", self.shell.now_ms)
        self.place(group, topic, partition).pending[producer] = stored

    @rule(producer=producers, is_commit=st.booleans())
    def end_transaction(self, producer: int, is_commit: bool) -> None:  # GO-23, GR-07
        self.shell.end_transaction(producer, is_commit=is_commit)
        for one in self.places.values():
            stored = one.pending.pop(producer, None)
            if stored is not None and is_commit and (one.committed is None or one.committed.order < stored.order):
                one.committed = stored

    @rule(group=groups, topic=topics, partition=partitions, offset=offsets, producer=producers, is_commit=st.booleans())
    def overtake_transaction(
        self, group: str, topic: str, partition: int, offset: int, producer: int, is_commit: bool
    ) -> None:  # GO-23
        self.commit_in_transaction(group, topic, partition, offset, producer)
        self._commit(group, topic, partition, Stored(0, offset + 1, -1, "", 0), None, -1)
        self.end_transaction(producer, is_commit)

    @rule(group=groups, topic=topics)
    def delete_offsets(self, group: str, topic: str) -> None:  # K496-10, K496-14
        asked = [offset_delete_request.OffsetDeleteRequestPartition(partition) for partition in PARTITIONS]
        request = offset_delete_request.OffsetDeleteRequest(
            group, [offset_delete_request.OffsetDeleteRequestTopic(topic, asked)]
        )
        answer = self.ask(request, 0)
        assert isinstance(answer, m.OffsetDeleteResponse)
        if self.held(group):
            assert answer.error_code == NONE
        elif group not in self.existing:
            assert answer.error_code == GroupIdNotFound.code
        for partition in PARTITIONS:
            self.places.pop((group, topic, partition), None)

    @rule(group=groups)
    def delete_group(self, group: str) -> None:  # GD-03
        answer = self.ask(m.DeleteGroupsRequest([group]), 2)
        assert isinstance(answer, m.DeleteGroupsResponse)
        if self.held(group):
            assert answer.results[0].error_code == NONE
        elif group not in self.existing:
            assert answer.results[0].error_code == GroupIdNotFound.code
        self._forget(group)

    def _forget(self, group: str) -> None:
        self.existing.discard(group)
        self.places = {key: one for key, one in self.places.items() if key[0] != group}

    @rule(topic=topics, topic_id=st.sampled_from((7, 8)))
    def delete_topic(self, topic: str, topic_id: int) -> None:  # GO-76
        self.shell.remove_topics({topic: topic_id.to_bytes(16, "big")})
        for key, one in list(self.places.items()):
            ids = {stored.topic_id for stored in (one.committed, *one.pending.values()) if stored is not None}
            if key[1] == topic and ids & {0, topic_id}:
                del self.places[key]

    @rule(wait_ms=st.sampled_from((1, 59_999, 60_000, 200_000, 300_000)))
    def wait(self, wait_ms: int) -> None:  # GO-70 … GO-74
        end_ms = self.shell.now_ms + wait_ms
        self.shell.advance_to(end_ms)
        while self.next_pass_ms <= end_ms:
            self._pass(self.next_pass_ms)
            self.next_pass_ms += PASS_MS

    def _pass(self, now_ms: int) -> None:
        for one in self.places.values():
            stored = one.committed
            if stored is None or one.pending:
                continue
            base_ms = stored.commit_ms + RETENTION_MS if stored.expire_ms is None else stored.expire_ms
            if now_ms >= base_ms:
                one.committed = None
        for group in list(self.existing):
            if not self.held(group):
                self._forget(group)

    @rule(compacts=st.booleans(), stop_share=st.integers(1, 4), keeps_tombstones=st.booleans())
    def restart(self, compacts: bool, stop_share: int, keeps_tombstones: bool) -> None:  # GR-03, GR-06
        if compacts:
            self.was_compacted = True
            log = self.shell.log
            log.compact(stop_offset=log.end_offset * stop_share // 4, keep_tombstones=keeps_tombstones)
        self.shell.load()
        self.next_pass_ms = self.shell.now_ms + PASS_MS

    @invariant()
    def fetches_agree(self) -> None:  # K88-10, K88-13, GO-40, GO-41
        for group in GROUPS:
            expected = {
                key[1:]: (one.committed.offset, one.committed.leader_epoch, one.committed.metadata, NONE)
                for key, one in self.places.items()
                if key[0] == group and one.committed is not None
            }
            assert self._fetch(group, None, is_stable=False) == expected
            every = [(topic, partition) for topic in TOPICS for partition in PARTITIONS]
            nothing = (-1, -1, "", NONE)
            assert self._fetch(group, every, is_stable=False) == {key: expected.get(key, nothing) for key in every}
            unstable = {key[1:] for key, one in self.places.items() if key[0] == group and one.pending}
            refused = (-1, -1, "", UnstableOffsetCommit.code)
            stable = {key: refused if key in unstable else value for key, value in expected.items()}
            assert self._fetch(group, None, is_stable=True) == stable
            asked = {key: refused if key in unstable else expected.get(key, nothing) for key in every}
            assert self._fetch(group, every, is_stable=True) == asked

    def _fetch(
        self, group: str, places: list[tuple[str, int]] | None, *, is_stable: bool
    ) -> dict[tuple[str, int], tuple[int, int, str | None, int]]:
        asked = None
        if places is not None:
            asked = [
                offset_fetch_request.OffsetFetchRequestTopics(
                    topic, partition_indexes=[partition for name, partition in places if name == topic]
                )
                for topic in TOPICS
            ]
        request = offset_fetch_request.OffsetFetchRequest(
            groups=[offset_fetch_request.OffsetFetchRequestGroup(group, topics=asked)], require_stable=is_stable
        )
        answer = self.ask(request, 9)
        assert isinstance(answer, m.OffsetFetchResponse)
        return {
            (topic.name, one.partition_index): (
                one.committed_offset,
                one.committed_leader_epoch,
                one.metadata,
                one.error_code,
            )
            for topic in answer.groups[0].topics
            for one in topic.partitions
        }

    @invariant()
    def lists_agree(self) -> None:  # GR-05, GD-07
        answer = self.ask(m.ListGroupsRequest(), 5)
        assert isinstance(answer, m.ListGroupsResponse)
        listed = {group.group_id for group in answer.groups}
        if self.was_compacted:
            # A group whose offsets are all deleted is in no compacted log.
            assert {group for group in GROUPS if self.held(group)} <= listed <= self.existing
            self.existing = listed
        else:
            assert listed == self.existing


OffsetsModel.TestCase.settings = settings(
    max_examples=200, stateful_step_count=30, suppress_health_check=list(HealthCheck)
)
test_offsets_model = OffsetsModel.TestCase
