"""Clones of a group to another cluster: no unread record is skipped, and no more are replayed, than the plan says.

A record is known by its producer and number, in both clusters. It is unread when the source's group has not passed it.
What a plan calls exact must be: the group goes on in the copy with the record that it would have read next, after the
last one that it has read. What it calls bounded must be within the bound.
"""

import copy
import random
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from tests.rig.asking import Answer, Desk, Difference, Verdict
from tests.rig.facts import Produced
from tests.rig.judges.plans import literal
from tests.rig.story import Committer, Producer, Story
from tests.rig.truth import Log, Truth

NAME = "clone"
EXACT = ("identity", "header", "content")
CERTAINTIES = (*EXACT, "bounded", "time")

Identity = tuple[str, int]


class Copied(NamedTuple):
    """The group that is cloned, and how its topic is mirrored."""

    source: str
    group: str
    topic: str
    shape: str

    @property
    def about(self) -> dict[str, str]:
        """As an answer has it."""
        return self._asdict()


def mirrored(story: Story) -> list[tuple[Committer, Producer]]:
    """Groups without members that commit for a mirrored topic, in its own cluster, with who writes it."""
    mirrors = {actor.topic: actor for actor in story.actors if isinstance(actor, Producer) and actor.mirror is not None}
    return [(actor, mirrors[actor.topics[0]]) for actor in story.actors
            if isinstance(actor, Committer) and actor.topics[0] in mirrors
            and actor.cluster == mirrors[actor.topics[0]].cluster]  # fmt: skip


def act(desk: Desk, story: Story, rng: random.Random, truth: Truth) -> Verdict:
    """Plans the clone of one group of a mirrored topic, while everything rests."""
    verdict = Verdict()
    for committer, writer in mirrored(story):
        assert writer.mirror is not None
        if not truth.by_group.get((committer.cluster, committer.group)):
            verdict.leave("clone: nothing committed yet")
            continue
        answer = desk.ask(
            writer.mirror.cluster, "plan", "clone", literal(committer.group), f"{committer.group}-copy", "--all-topics",
            "--from-bootstrap-server", desk.servers[committer.cluster],
        )  # fmt: skip
        shape = f"{writer.topic} times={writer.times} {writer.mirror}"
        answer = replace(answer, about=Copied(committer.cluster, committer.group, writer.topic, shape).about)
        found = judge(truth, answer)
        verdict.add(found)
        if not found.differences:
            for what, worse in spoilt(truth, answer, rng):
                verdict.seeded += 1
                if not judge(truth, worse).differences:
                    verdict.missed.append(f"{NAME}: {what} in a clone of {committer.group}")
    return verdict


def judge(truth: Truth, answer: Answer) -> Verdict:
    verdict = Verdict()
    source, group, topic = answer.about["source"], answer.about["group"], answer.about["topic"]
    commits = {
        key[3]: one.offset
        for key in truth.by_group[source, group]
        if key[2] == topic and (one := truth.committed(key, answer.asked, answer.answered)[0]) is not None
    }
    rows = {row["partition"]: row for row in answer.content["changes"]}
    excused = {(one["topic"], one["partition"]) for one in answer.content["problems"]}
    for partition in sorted(commits):
        verdict.comparisons += 4
        row = rows.get(partition)
        if row is None:
            text = f"no row of {topic}-{partition}" if not {(topic, partition), (topic, None)} & excused else ""
        else:
            text = _wrong(truth, answer, row, commits)
            verdict.counts[f"partitions cloned: {row['certainty']}"] += 1
        if text:
            verdict.differences.append(
                Difference(NAME, answer.cluster, f"{text} [{answer.about['shape']}]", topic, group)
            )
    return verdict


def _wrong(truth: Truth, answer: Answer, row: Mapping[str, Any], commits: Mapping[int, int]) -> str:
    """What the row says too little of, or \"\"."""
    topic, partition, after = row["topic"], row["partition"], row["after"]
    moved = _moved(truth, answer, truth.logs[answer.cluster, topic, partition], after, commits)
    said_skips, said_replays = row["skipped"] or 0, row["replayed"] or 0
    where = f"{topic}-{partition} {commits[partition]} -> {after} ({row['certainty']}: {row['why']!r})"
    for what, records, said in (("skips", moved.skipped, said_skips), ("replays", moved.replayed, said_replays)):
        if len(records) > said:
            return f"{where} {what} {len(records)} records (first {records[0].offset}), said {said}"
    if row["certainty"] not in CERTAINTIES:
        return f"{where} does not say how sure it is"
    if row["certainty"] in EXACT and (said_skips or said_replays or moved.foreign):
        said = f"said to skip {said_skips} and replay {said_replays}"
        return f"{where} is not exact: {said}, {len(moved.foreign)} records that the source never had are read first"
    if row["certainty"] == "bounded" and row["replayed"] is None:
        return f"{where} is bounded, and no bound is said"
    return ""


class Moved(NamedTuple):
    """Records of the target: unread ones before the offset; read ones from there on; and from there up to the first
    unread one those that the source never had.
    """

    skipped: list[Produced]
    replayed: list[Produced]
    foreign: list[Produced]


def _moved(truth: Truth, answer: Answer, target: Log, after: int, commits: Mapping[int, int]) -> Moved:
    places: dict[Identity, tuple[int, int]] = {}
    for partition in commits:
        log = truth.logs[answer.about["source"], answer.about["topic"], partition]
        places |= {(one.producer, one.number): (partition, one.offset) for one in log.records.values()}
    start = target.start(answer.asked, answer.answered).low
    moved = Moved([], [], [])
    has_gone_on = False
    for offset in target.offsets:
        record = target.records[offset]
        found = places.get((record.producer, record.number))
        if offset < start:
            continue
        if found is None:
            if offset >= after and not has_gone_on:
                moved.foreign.append(record)
            continue
        is_unread = found[1] >= commits[found[0]]
        has_gone_on = has_gone_on or (is_unread and offset >= after)
        if is_unread and offset < after:
            moved.skipped.append(record)
        if not is_unread and offset >= after:
            moved.replayed.append(record)
    return moved._replace(foreign=moved.foreign if has_gone_on else [])


def spoilt(truth: Truth, answer: Answer, rng: random.Random) -> Iterable[tuple[str, Answer]]:
    """Plans that skip and that replay without a word, that are exact by their word only, and that give none."""
    about = answer.about
    commits = {key[3]: one.offset for key in truth.by_group[about["source"], about["group"]]
               if (one := truth.committed(key, answer.asked, answer.answered)[0]) is not None}  # fmt: skip
    rows = [row for row in answer.content["changes"] if row["partition"] in commits]

    def moved(row: Mapping[str, Any], after: int) -> Moved:
        return _moved(truth, answer, truth.logs[answer.cluster, about["topic"], row["partition"]], after, commits)

    def near(row: Mapping[str, Any], way: int) -> int:
        """The offset of the record before, or behind the next one."""
        at = row["after"] + way
        offsets = truth.logs[answer.cluster, about["topic"], row["partition"]].offsets
        return next((one for one in (offsets if way > 0 else offsets[::-1]) if (one - at) * way >= 0), at)

    silent = {"skipped": 0, "replayed": 0}
    exact = silent | {"certainty": "content"}
    ways: list[tuple[str, Any]] = [
        ("all is read again without a word", lambda row: {**silent, "after": 0}),
        ("all is skipped without a word", lambda row: {**silent, "after": row["log_end_offset"]}),
        ("an exact place is one record early", lambda row: {**exact, "after": near(row, -1)}),
        ("an exact place is one record late", lambda row: {**exact, "after": near(row, 1)}),
        ("a place that is not exact is called so", lambda row: exact),
    ]
    for what, change in ways:
        wrong = [(row, change(row)) for row in rows]
        wrong = [(row, worse) for row, worse in wrong if any(moved(row, worse.get("after", row["after"]))[:2])]
        if wrong:
            yield what, _with(answer, *rng.choice(wrong))
    if rows:
        yield "no certainty", _with(answer, rng.choice(rows), {"certainty": None})
        yield "an exact place with a bound", _with(answer, rng.choice(rows), {"certainty": "content", "replayed": 1})


def _with(answer: Answer, row: Mapping[str, Any], worse: Mapping[str, Any]) -> Answer:
    content = copy.deepcopy(answer.content)
    (one,) = (each for each in content["changes"] if each["partition"] == row["partition"])
    one.update(worse)
    return replace(answer, content=content)
