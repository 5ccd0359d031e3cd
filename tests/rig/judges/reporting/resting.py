"""What the facts say of a group at rest: what the report's parts have in common."""

from collections.abc import Mapping
from typing import NamedTuple

from tests.rig.asking import Answer
from tests.rig.truth import Between, Key, Truth

MS = 1_000_000


class Resting(NamedTuple):
    """`at`: a time of the rest, at which logs and commits stand still. `answer`: the report's; of retention alone
    it is not known when it removed what. `measured_ms`: when the table of lag says that each place was measured.
    """

    truth: Truth
    answer: Answer
    at: int
    measured_ms: Mapping[Key, int] = {}

    def keys(self, cluster: str, group: str) -> list[Key] | None:
        """Of all that a group has committed; None: some topic of it was made again, or goes away, or it is shared."""
        truth = self.truth
        found = sorted(truth.by_group.get((cluster, group), ()))
        if any((cluster, key[2]) in truth.removed or truth.is_changing(cluster, key[2], self.at) for key in found):
            return None
        return None if any(key[:2] == (cluster, group) for key in truth.shared) else found

    def offset(self, key: Key) -> int | None:
        """The committed offset, None: nothing is committed, -1: it is not known."""
        some = self.truth.committed(key, self.at, self.at)
        if len(some) > 1:
            return -1
        return None if some[0] is None else some[0].offset

    def end(self, key: Key) -> int:
        return self.truth.logs[key[0], key[2], key[3]].end(self.at, self.at).low

    def lost(self, key: Key) -> Between:
        """How many offsets the log has lost from the committed one on."""
        offset = self.offset(key)
        if offset is None:
            return Between(0, 0)
        start = self.truth.logs[key[0], key[2], key[3]].start(self.at, self.answer.answered)
        return Between(*(max(0, one - max(0, offset)) for one in start))

    def age_ms(self, key: Key, *, is_aborted_too: bool = True) -> int | None:
        """How long the next record has waited; None: not known to the millisecond."""
        log, offset = self.truth.logs[key[0], key[2], key[3]], self.offset(key)
        start = log.start(self.at, self.answer.answered)
        measured_ms = self.measured_ms.get(key)
        if log.has_unplaced or measured_ms is None or self.truth.is_compacted_topic(key[0], key[2]):
            return None
        if offset is None or offset < start.high:
            return None
        place = key[0], key[2], key[3]
        record = log.next_record(offset) if is_aborted_too else self.truth.next_committed(place, offset)
        return 0 if record is None else max(0, measured_ms - record.timestamp)

    def retention_ms(self, key: Key) -> int:
        """How long records are kept; -1: for ever."""
        return int(self.truth.topics[key[0], key[2]].settings.get("retention.ms", -1))


def place_of(text: str) -> tuple[str, int]:
    """A topic's name and a partition's number."""
    topic, _, number = text.rpartition("-")
    return topic, int(number)


def name_of(row: Mapping[str, str]) -> tuple[str, str]:
    return row["cluster"], row["group_id"]
