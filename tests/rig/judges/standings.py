"""How a group is, as the pages of `groupkeeper serve` say it: by how long records wait, and commits stand still."""

import math
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

from tests.rig.asking import Answer, Verdict
from tests.rig.facts import DONE, Committed
from tests.rig.judges import sums
from tests.rig.judges.members import CALM_NS, DEATH_NS
from tests.rig.judges.times import waiting_at
from tests.rig.judges.trends import Poll
from tests.rig.truth import Between, Key, Log, Truth

from groupkeeper.client.admin.types import Position

STATUSES = ("ok", "abandoned", "unknown", "unstable", "lagging", "stopped", "losing")
LAGGING_MS, EMPTY_PATIENCE_MS, PATIENCE_MS, MOST_PATIENCE_MS = 300_000, 60_000, 600_000, 10_800_000
GAPS = 3
"""A group may take this many of its usual gaps between moves."""
REBALANCES_NS = 600_000_000_000
POLL_MS = 15_000
"""What is new is found by a poll, at the latest after so long, on a busy machine."""
MS = 1_000_000


class _Part(NamedTuple):
    """Of one partition: whether records were lost, how long the next one has waited, how long commits have stood still
    meanwhile, and after how long half of the topic's retention has passed.
    """

    is_lost: bool
    may_be_lost: bool
    half_ms: float
    wait_ms: Between
    stood_ms: Between


def admissible(truth: Truth, answer: Answer, group: str, polls: Sequence[Poll]) -> set[str] | None:
    """What the status may be; None: the facts do not tell. `polls`: those up to the one that is judged."""
    name = (answer.cluster, group)
    all_parts = sums.parts_of(truth, answer, group, Verdict())
    if not all_parts:
        return None
    keys = _read(truth, answer, name)
    parts = [_part(truth, answer, key, polls) for key in keys]
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return None
    if any(part.is_lost for part in known):
        return {"losing"}
    found = {"losing"} if any(part.may_be_lost for part in known) else set[str]()
    wait = Between(*(max((one[at] for one in (part.wait_ms for part in known)), default=0) for at in (0, 1)))
    stood = Between(*(max((one[at] for one in (part.stood_ms for part in known)), default=0) for at in (0, 1)))
    patience = _patience_ms(truth, answer, name, polls)
    if stood.high >= patience.low:
        found.add("stopped")
    if stood.low >= patience.high:
        return found
    if wait.high >= LAGGING_MS or any(part.wait_ms.high >= part.half_ms for part in known):
        found.add("lagging")
    if wait.low >= LAGGING_MS or any(part.wait_ms.low > part.half_ms for part in known):
        return found
    if not truth.is_calm(*name, answer.asked - REBALANCES_NS, answer.answered, DEATH_NS):
        found.add("unstable")
    is_beyond = sums.is_beyond(truth, answer, group, surely=True)
    if is_beyond or sums.is_beyond(truth, answer, group, surely=False):
        found.add("unknown")
    # Where nothing is committed, it isn't known how many of the records wait. Aborted ones and markers don't.
    without = [place for place, part in all_parts.items() if part.uncommitted is not None and part.uncommitted.high > 0]
    if without:
        found.add("unknown")
    return found if is_beyond or any(_surely_has_records(truth, answer, *one) for one in without) else found | {"ok"}


def _surely_has_records(truth: Truth, answer: Answer, topic: str, partition: int) -> bool:
    """Whether there is a record in the log that was not aborted."""
    place = (answer.cluster, topic, partition)
    record = truth.next_committed(place, truth.logs[place].start(answer.asked, answer.answered).high)
    return record is not None and record.ended <= answer.asked


def _read(truth: Truth, answer: Answer, name: tuple[str, str]) -> set[Key]:
    """Partitions with commits, without topics that no member reads any more."""
    keys = truth.by_group.get(name, set())
    read = truth.topics_read(*name, answer.asked)
    return {key for key in keys if key[2] in read} if read else keys


def _part(truth: Truth, answer: Answer, key: Key, polls: Sequence[Poll]) -> _Part | None:
    (cluster, _, topic, partition), measured_ms = key, polls[-1].measured // MS
    if (cluster, topic) in truth.removed or truth.is_changing(cluster, topic, answer.asked):
        return None
    log = truth.logs[cluster, topic, partition]
    if log.has_unplaced or truth.is_compacted_topic(cluster, topic):
        return None
    start = log.start(answer.asked, answer.answered)
    kept_ms = int(truth.topics[cluster, topic].settings.get("retention.ms", -1))
    commits = [None if one is None else one.offset for one in truth.committed(key, answer.asked, answer.answered)]
    waits = [_wait(truth, answer, log, topic, partition, offset, measured_ms) for offset in commits]
    wait = Between(min(one.low for one in waits), max(one.high for one in waits))
    is_below = all(offset is not None and offset < start.low for offset in commits)
    may_be_below = any(offset is not None and offset < start.high for offset in commits)
    still = _still_ms(truth, answer, key, polls)
    # What is read is followed from when there was something to read on, whatever time the record has.
    nexts = [None if offset is None else log.next_record(offset) for offset in commits]
    there_ms = min(0 if one is None else max(0, measured_ms - one.ended // MS - POLL_MS) for one in nexts)
    stood = Between(min(wait.low, still.low, there_ms), min(wait.high, still.high))
    return _Part(is_below, may_be_below, kept_ms / 2 if kept_ms >= 0 else math.inf, wait, stood)


def _wait(
    truth: Truth, answer: Answer, log: Log, topic: str, partition: int, offset: int | None, measured_ms: int
) -> Between:
    """How long the next record has waited; 0: there is none."""
    if offset is None:
        return Between(0, 0)
    start, end = log.start(answer.asked, answer.answered), log.end(answer.asked, answer.answered)
    at = min(max(offset, start.low), end.high)
    found = waiting_at(truth, answer, Position(topic, partition, at), measured_ms)
    ages = [max(0, measured_ms - one) for one in found if isinstance(one, int)]
    ages += [0] if None in found or not ages or offset >= end.low else []
    return Between(min(ages), max(ages))


def _still_ms(truth: Truth, answer: Answer, key: Key, polls: Sequence[Poll]) -> Between:
    """Since when polls have found what is committed now, at least and at most."""
    first_ms, measured_ms = polls[0].began // MS, polls[-1].measured // MS
    commits = [one for one in truth.commits[key] if one.began < answer.answered]
    is_sure = all(one.outcome == DONE for one in commits)
    least = max([first_ms, *(one.began // MS for one in _changes(commits, polls, _surely_looked))])
    most = max([first_ms, *(one.ended // MS for one in _changes(commits, polls, _perhaps_looked))])
    return Between(max(0, measured_ms - most - POLL_MS) if is_sure else 0,
                   max(0, measured_ms - (least if is_sure else first_ms)))  # fmt: skip


Look = Callable[[Sequence[Poll], Committed, Committed], bool]


def _changes(commits: Iterable[Committed], polls: Sequence[Poll], look: Look) -> list[Committed]:
    """Commits of another offset than the one before, also the first. An offset that went and came back is no change for
    polls, where none looked in between.
    """
    found: list[Committed] = []
    places: dict[int, int] = {}
    for one in commits:
        away = places.get(one.offset, len(found)) + 1
        is_back = away <= len(found) and found[away - 1].offset == one.offset
        if is_back and (away == len(found) or not look(polls, found[away], one)):
            del found[away:]
        else:
            places[one.offset] = len(found)
            found.append(one)
    return found


def _surely_looked(polls: Sequence[Poll], away: Committed, back: Committed) -> bool:
    """Whether a poll began and ended after the offset went, and before it came back."""
    at = bisect_left(polls, away.ended, key=lambda poll: poll.began)
    return away.outcome == DONE and at < len(polls) and polls[at].measured <= back.began


def _perhaps_looked(polls: Sequence[Poll], away: Committed, back: Committed) -> bool:
    """Whether a poll may have looked then, also one that was not seen."""
    at = bisect_left(polls, away.began, key=lambda poll: poll.measured)
    if at == len(polls):
        return False
    is_next = polls[at].number == (polls[at - 1].number if at else 0) + 1
    return polls[at].began <= back.ended or not is_next


def _patience_ms(truth: Truth, answer: Answer, name: tuple[str, str], polls: Sequence[Poll]) -> Between:
    """How long a group may stand still: less without members, unless it never has any and only commits; longer where
    its moves are far apart.
    """
    moves = sorted(one.began for key in truth.by_group.get(name, ())
                   for one in _changes(truth.commits[key], polls, _surely_looked))  # fmt: skip
    gaps_ms = [(later - one) // MS + POLL_MS for one, later in pairwise(moves)]
    most_ms = min(max(GAPS * max(gaps_ms, default=0), PATIENCE_MS), MOST_PATIENCE_MS)
    if not truth.joining.get(name) and not truth.assigned.get(name):
        return Between(PATIENCE_MS, most_ms)
    if not truth.is_calm(*name, answer.asked - CALM_NS, answer.answered + CALM_NS, DEATH_NS):
        return Between(EMPTY_PATIENCE_MS, most_ms)
    if truth.members(*name, answer.asked):
        return Between(PATIENCE_MS, most_ms)
    return Between(EMPTY_PATIENCE_MS, EMPTY_PATIENCE_MS)
