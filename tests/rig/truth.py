"""What must be so, by the facts that the workers wrote down: bounds for any time between a question and its answer.

While traffic runs, a bound is an interval: what was acknowledged before the question is there, what was sent after
the answer is not. Once the workers rest, both ends are the same, and an answer is right or wrong.
"""

from bisect import bisect_left, bisect_right, insort
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import count
from typing import NamedTuple

from tests.rig.facts import (
    DONE,
    FAILED,
    Acknowledged,
    Assigned,
    Committed,
    Consumed,
    Cut,
    Fact,
    Joining,
    Left,
    Made,
    Produced,
    Reading,
    Removed,
    TransactionEnded,
    Trouble,
    Typed,
)

Place = tuple[str, str, int]
"""Cluster, topic and partition."""

Key = tuple[str, str, str, int]
"""Cluster, group, topic and partition."""

GroupFact = Committed | Acknowledged | Consumed | Reading | Typed | Joining | Assigned | Left | Trouble

FOREVER = 1 << 62
RETRY_NS = 300_000_000
"""Clients send a commit again no sooner (`actors.BACKOFF_MS`): after an error that passes, or a lost connection."""
CHANGE_NS = 10_000_000_000
"""So long after a topic was made or removed brokers and clients may still know it as it was."""


class Between(NamedTuple):
    """The first and the last value that may be."""

    low: int
    high: int

    def __contains__(self, value: object) -> bool:
        return isinstance(value, int) and self.low <= value <= self.high

    def __str__(self) -> str:
        return str(self.low) if self.low == self.high else f"{self.low} to {self.high}"


def tries(commit: Committed) -> int:
    """How often it was sent, at most."""
    return 1 + (commit.ended - commit.began) // RETRY_NS


@dataclass
class Log:
    """One partition. Records by offset; times of sending and of acknowledgement, each in order."""

    records: dict[int, Produced] = field(default_factory=dict)
    offsets: list[int] = field(default_factory=list)
    sent: list[int] = field(default_factory=list)
    acknowledged: list[tuple[int, int]] = field(default_factory=list)
    """When, and the offset after the record."""
    markers: list[tuple[int, int]] = field(default_factory=list)
    cuts: list[Cut] = field(default_factory=list)
    transactions: dict[str, list[Produced]] = field(default_factory=dict)
    has_unplaced: bool = False
    """Whether a record was sent whose offset was never told: it may be anywhere, or not be."""

    def add(self, record: Produced) -> None:
        insort(self.sent, record.began)
        if record.offset < 0:
            self.has_unplaced = True
            return
        self.records[record.offset] = record
        if self.offsets and record.offset < self.offsets[-1]:
            insort(self.offsets, record.offset)
        else:
            self.offsets.append(record.offset)
        insort(self.acknowledged, (record.ended, record.offset + 1))
        if record.transaction is not None:
            self.transactions.setdefault(record.transaction, []).append(record)

    def end(self, asked: int, answered: int) -> Between:
        """Offsets are given without gaps: as many as there are records and markers."""
        known = bisect_right(self.acknowledged, (asked, FOREVER))
        ended = sum(at <= asked for _, at in self.markers)
        low = max([known + ended, *(after for _, after in self.acknowledged[max(0, known - 200) : known])])
        begun = sum(at < answered for at, _ in self.markers)
        return Between(low, bisect_left(self.sent, answered) + begun)

    def start(self, asked: int, answered: int) -> Between:
        low = max((cut.log_start for cut in self.cuts if cut.ended <= asked), default=0)
        high = max((cut.log_start for cut in self.cuts if cut.began < answered), default=0)
        return Between(low, high)

    def next_record(self, offset: int) -> Produced | None:
        """The first record from the offset on."""
        index = bisect_left(self.offsets, offset)
        return self.records[self.offsets[index]] if index < len(self.offsets) else None

    def first_from_time(self, timestamp: int, start: int) -> Produced | None:
        """The first record with that time or a later one, from the offset `start` on."""
        for offset in self.offsets[bisect_left(self.offsets, start) :]:
            if self.records[offset].timestamp >= timestamp:
                return self.records[offset]
        return None


@dataclass
class Truth:
    """All facts so far."""

    logs: dict[Place, Log] = field(default_factory=dict)
    topics: dict[tuple[str, str], Made] = field(default_factory=dict)
    removed: dict[tuple[str, str], list[Removed]] = field(default_factory=lambda: defaultdict(list))
    changed: dict[tuple[str, str], int] = field(default_factory=dict)
    """Of topics that were removed, made again or grown: when last."""
    never: set[tuple[str, str]] = field(default_factory=set)
    """Names of groups that there must not be."""
    types: dict[tuple[str, str], str] = field(default_factory=dict)
    """Of groups whose members all speak one protocol."""
    joining: dict[tuple[str, str], list[Joining]] = field(default_factory=lambda: defaultdict(list))
    commits: dict[Key, list[Committed]] = field(default_factory=lambda: defaultdict(list))
    by_group: dict[tuple[str, str], set[Key]] = field(default_factory=lambda: defaultdict(set))
    shared: dict[Key, list[Acknowledged]] = field(default_factory=lambda: defaultdict(list))
    transactions: dict[tuple[str, str], TransactionEnded] = field(default_factory=dict)
    assigned: dict[tuple[str, str], list[Assigned]] = field(default_factory=lambda: defaultdict(list))
    left: dict[tuple[str, str], list[Left]] = field(default_factory=lambda: defaultdict(list))
    records: int = 0

    def add(self, facts: Iterable[Fact]) -> None:
        for fact in facts:
            match fact:
                case Made() | Removed():
                    self._add_topic(fact)
                case Produced() | TransactionEnded() | Cut():
                    self._add_to_log(fact)
                case _:
                    self._add_to_group(fact)

    def _add_topic(self, fact: Made | Removed) -> None:
        name = (fact.cluster, fact.topic)
        if isinstance(fact, Removed):
            self.removed[name].append(fact)
            made = self.topics.pop(name)
            for partition in range(made.partitions):
                del self.logs[fact.cluster, fact.topic, partition]
            self.changed[name] = fact.ended
            return
        before = self.topics.get(name)
        if before is not None or name in self.removed:
            self.changed[name] = fact.ended
        self.topics[name] = fact if before is None else before._replace(partitions=fact.partitions)
        for partition in range(fact.partitions):
            self.logs.setdefault((fact.cluster, fact.topic, partition), Log())

    def is_changing(self, cluster: str, topic: str, asked: int) -> bool:
        """Whether the topic became another one after the question, or so shortly before that not all know it."""
        return self.changed.get((cluster, topic), 0) > asked - CHANGE_NS

    def has_changed(self, cluster: str, asked: int) -> bool:
        """Whether any topic became another one after the question, or shortly before."""
        return any(self.is_changing(where, topic, asked) for where, topic in self.changed if where == cluster)

    def next_committed(self, place: Place, offset: int) -> Produced | None:
        """The first record from the offset on that was not aborted; those of open transactions count."""
        record = self.logs[place].next_record(offset)
        while record is not None and self.is_aborted(record):
            record = self.logs[place].next_record(record.offset + 1)
        return record

    def is_aborted(self, record: Produced) -> bool:
        if record.transaction is None:
            return False
        ended = self.transactions.get((record.cluster, record.transaction))
        return ended is not None and not ended.is_committed

    def _add_to_log(self, fact: Produced | TransactionEnded | Cut) -> None:
        match fact:
            case Produced():
                self.records += fact.offset >= 0
                self.logs[fact.cluster, fact.topic, fact.partition].add(fact)
            case TransactionEnded():
                self.transactions[fact.cluster, fact.transaction] = fact
                for topic, partition in fact.places:
                    self.logs[fact.cluster, topic, partition].markers.append((fact.began, fact.ended))
            case Cut():
                self.logs[fact.cluster, fact.topic, fact.partition].cuts.append(fact)

    def _add_to_group(self, fact: GroupFact) -> None:
        match fact:
            case Committed() if fact.outcome != FAILED or tries(fact) > 1:  # refused in the end, it may have been done
                key = (fact.cluster, fact.group, fact.topic, fact.partition)
                insort(self.commits[key], fact, key=lambda one: one.began)
                self.by_group[fact.cluster, fact.group].add(key)
            case Acknowledged():
                self.shared[fact.cluster, fact.group, fact.topic, fact.partition].append(fact)
            case Reading():
                self.never.add((fact.cluster, fact.group))
            case Typed():
                kind = self.types.setdefault((fact.cluster, fact.group), fact.kind)
                self.types[fact.cluster, fact.group] = kind if kind == fact.kind else ""
            case Joining():
                self.joining[fact.cluster, fact.group].append(fact)
            case Assigned():
                self.assigned[fact.cluster, fact.group].append(fact)
            case Left():
                self.left[fact.cluster, fact.group].append(fact)
            case _:
                pass

    def committed(self, key: Key, asked: int, answered: int) -> list[Committed | None]:
        """What may be committed: the last one before the question, and those under way; None: nothing."""
        before: Committed | None = None
        others: list[Committed | None] = []
        for commit in self.commits.get(key, ()):
            if commit.ended <= asked and commit.outcome == DONE:
                before, others = commit, [one for one in others if one is not None and one.ended > commit.began]
            elif commit.began < answered:
                others.append(commit)
        found = [None if one is None or one.offset < 0 else one for one in [before, *others]]
        return [*found, None] if (key[0], key[2]) in self.removed else found  # they go with the topic, some time

    def last_stable(self, place: Place, asked: int, answered: int) -> Between:
        """Where readers of committed records stop."""
        log = self.logs[place]
        low, high = log.end(asked, answered)
        for name, records in log.transactions.items():
            ended = self.transactions.get((place[0], name))
            first = min(record.offset for record in records)
            if records[0].began < answered and (ended is None or ended.ended > asked):
                low = min(low, first)
            if records[0].ended <= asked and (ended is None or ended.began >= answered):
                high = min(high, first)
        return Between(low, high)

    def share(self, key: Key, asked: int, answered: int) -> tuple[Between, Between]:
        """Of a share group that began at 0: where it starts, and how many records are not done."""
        sure = {at for one in self.shared.get(key, ()) if one.is_sure and one.ended <= asked for at in one.offsets}
        perhaps = {at for one in self.shared.get(key, ()) if one.began < answered for at in one.offsets}
        end = self.logs[key[0], key[2], key[3]].end(asked, answered)
        low, high = (next(at for at in count() if at not in done) for done in (sure, perhaps))
        return Between(low, high), Between(end.low - len(perhaps), end.high - len(sure))

    def is_compacted(self, record: Produced) -> bool:
        """Whether it may be gone, as its topic is compacted."""
        return self.is_compacted_topic(record.cluster, record.topic)

    def is_compacted_topic(self, cluster: str, topic: str) -> bool:
        made = self.topics.get((cluster, topic))
        return made is not None and "compact" in made.settings.get("cleanup.policy", "")

    def groups(self, cluster: str, answered: int) -> set[str]:
        """Those that have committed something, or have had members, before then."""
        found = {key[1] for key, commits in self.commits.items() if key[0] == cluster and commits[0].began < answered}
        return found | {group for (where, group), some in self.assigned.items()
                        if where == cluster and any(one.ended < answered for one in some)}  # fmt: skip

    def members(self, cluster: str, group: str, at: int) -> dict[str, Assigned]:
        """The last assignment of each member that has not left, by actor."""
        gone = {(one.actor, one.session) for one in self.left[cluster, group] if one.began <= at}
        last = {one.actor: one for one in self.assigned[cluster, group] if one.ended <= at}
        return {actor: one for actor, one in last.items() if (actor, one.session) not in gone}

    def topics_read(self, cluster: str, group: str, at: int) -> set[str]:
        """The topics of which members have partitions: of a calm group all that it reads."""
        return {topic for one in self.members(cluster, group, at).values() for topic, _ in one.places}

    def is_calm(self, cluster: str, group: str, since: int, until: int, death: int) -> bool:
        """Whether all who joined were assigned something by then, or nothing, and no member came, went or died."""
        name = (cluster, group)
        times = [one.ended for one in self.assigned[name]] + [one.ended for one in self.joining[name]]
        if any(since <= at <= until for at in times):
            return False
        if any(one.ended >= since and one.began <= until for one in self.left[name]):
            return False
        if any(one.is_dead and since - death <= one.ended <= until for one in self.left[name]):
            return False
        members = self.members(cluster, group, since)
        gone = {(one.actor, one.session) for one in self.left[name] if one.ended <= since}
        joining = [one for one in self.joining[name] if one.ended <= since]
        begun = {(one.actor, one.session) for one in joining} - gone
        is_again = any(one.ended > members[one.actor].ended for one in joining if one.actor in members)
        places = [place for one in members.values() for place in one.places]
        topics = {topic for topic, _ in places}
        return (
            not is_again
            and begun == {(actor, one.session) for actor, one in members.items()}
            and len(places) == len({tuple(place) for place in places})
            and not any(self.is_changing(cluster, topic, since) for topic in topics)
        )
