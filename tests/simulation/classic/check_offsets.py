"""Checkers of committed offsets: a plain dictionary beside the coordinator."""

from dataclasses import dataclass

from tests.simulation.observation import Checker, Facts

from groupkeeper.coordinator.kernel.result import GroupCall, Record
from groupkeeper.coordinator.kernel.timers import OffsetExpiration, TimerKey
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.consumer_protocol import decode_subscribed_topics
from groupkeeper.protocol.errors import NONE
from groupkeeper.protocol.offsets_topic import Tombstone
from groupkeeper.protocol.primitives import Message


@dataclass(frozen=True, slots=True)
class Committed:
    """What somebody was told is stored. `expire_ms` is None unless the commit named its retention."""

    offset: int
    leader_epoch: int
    metadata: str
    commit_ms: int
    expire_ms: int | None


class Offsets(Checker):  # K88-10, K496-10, GD-03, GO-10, GO-11, GO-71, GO-72, GO-76, GR-09
    """An acknowledged commit is what fetches return until it is overwritten, deleted or expired by the rules, a refused
    one never is, and what is acknowledged is in the log.
    """

    def __init__(self, facts: Facts, retention_ms: int) -> None:
        super().__init__(facts)
        self._retention_ms = retention_ms
        self._groups: dict[str, dict[tuple[str, int], Committed]] = {}

    def on_answer(self, call: GroupCall, response: Message, *, was_parked: bool) -> None:
        match response:
            case m.OffsetCommitResponse():
                assert isinstance(call.request, m.OffsetCommitRequest)
                self._note_commit(call.request, response)
            case m.OffsetDeleteResponse():
                assert isinstance(call.request, m.OffsetDeleteRequest)
                self._note_deletion(call.request.group_id, response)
            case m.DeleteGroupsResponse():
                for one in response.results:
                    if one.error_code == NONE:
                        self._groups.pop(one.group_id, None)
            case m.OffsetFetchResponse():
                assert isinstance(call.request, m.OffsetFetchRequest)
                self._compare(call.request, response)

    def _note_commit(self, request: m.OffsetCommitRequest, response: m.OffsetCommitResponse) -> None:
        if [topic.name for topic in response.topics] != [topic.name for topic in request.topics]:
            self.fail(request.group_id, f"{request} is answered {response}")
        group = self._groups.setdefault(request.group_id, {})
        for topic, answer in zip(request.topics, response.topics, strict=True):
            for partition, outcome in zip(topic.partitions, answer.partitions, strict=True):
                if outcome.error_code != NONE:
                    continue
                retention_ms = request.retention_time_ms
                committed = Committed(
                    partition.committed_offset,
                    # The record with an expire time has no place for it (GR-01).
                    partition.committed_leader_epoch,
                    partition.committed_metadata or "",
                    self.facts.now_ms,
                    None if retention_ms == -1 else self.facts.now_ms + retention_ms,
                )
                group[topic.name, partition.partition_index] = committed
                stored = self.facts.offset_values.get((request.group_id, topic.name, partition.partition_index))
                if stored is None or stored.offset != committed.offset:
                    self.fail(request.group_id, f"acknowledged, but the log has {stored}: {request}")

    def _note_deletion(self, group_id: str, response: m.OffsetDeleteResponse) -> None:
        group = self._groups.get(group_id, {})
        for topic in response.topics if response.error_code == NONE else ():
            for partition in topic.partitions:
                if partition.error_code == NONE:
                    group.pop((topic.name, partition.partition_index), None)
                    if (group_id, topic.name, partition.partition_index) in self.facts.offset_values:
                        self.fail(group_id, f"{topic.name}/{partition.partition_index} is deleted, but in the log")

    def _compare(self, request: m.OffsetFetchRequest, response: m.OffsetFetchResponse) -> None:
        for asked, answer in zip(request.groups, response.groups, strict=True):
            if asked.topics is not None:
                continue
            told = {
                (topic.name, one.partition_index): (one.committed_offset, one.committed_leader_epoch, one.metadata)
                for topic in answer.topics
                for one in topic.partitions
            }
            known = {
                place: (committed.offset, committed.leader_epoch, committed.metadata)
                for place, committed in self._groups.get(asked.group_id, {}).items()
            }
            if told != known or answer.error_code != NONE or answer.group_id != asked.group_id:
                self.fail(asked.group_id, f"a fetch gives {told}, committed was {known}")

    def on_topic_deleted(self, topic: str) -> None:
        for group in self._groups.values():
            for place in [place for place in group if place[0] == topic]:
                del group[place]

    def on_record(self, record: Record, cause: GroupCall | TimerKey | None) -> None:
        key = record.key
        if isinstance(cause, OffsetExpiration) and isinstance(key, m.OffsetCommitKey) and isinstance(record, Tombstone):
            committed = self._groups.get(key.group, {}).pop((key.topic, key.partition), None)
            if committed is None or not self._has_expired(key, committed):
                self.fail(key.group, f"{key} expires at {self.facts.now_ms}, committed was {committed}")

    def _has_expired(self, key: m.OffsetCommitKey, committed: Committed) -> bool:
        """The table of GO-71, by what the log says of the group."""
        now_ms, value = self.facts.now_ms, self.facts.group_values.get(key.group)
        base_ms = committed.commit_ms
        if value is not None and value.members:
            try:
                subscribed = {
                    topic for member in value.members for topic in decode_subscribed_topics(member.subscription)
                }
            except ValueError:
                return False
            if key.topic in subscribed:
                return False
        elif value is not None and value.protocol_type:
            base_ms = value.current_state_timestamp
        return now_ms >= (base_ms + self._retention_ms if committed.expire_ms is None else committed.expire_ms)

    def remaining(self) -> dict[str, dict[tuple[str, int], Committed]]:
        """Offsets that should be there."""
        return {group_id: group for group_id, group in self._groups.items() if group}
