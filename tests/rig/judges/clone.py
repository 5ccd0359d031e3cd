"""Clones of a group to another cluster: no unread record is skipped, and no more are replayed, than the plan says.

A record is known by its producer and number, in both clusters. It is unread when the source's group has not passed it.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from tests.rig.asking import Answer, Desk, Difference, Verdict
from tests.rig.facts import Produced
from tests.rig.judges.plans import literal
from tests.rig.story import Committer, Producer, Story
from tests.rig.truth import Log, Truth

NAME = "clone"

Identity = tuple[str, int]


def act(desk: Desk, story: Story, rng: random.Random, truth: Truth) -> Verdict:
    """Plans the clone of one group of a mirrored topic, while everything rests."""
    verdict = Verdict()
    mirrors = {actor.topic: actor for actor in story.actors if isinstance(actor, Producer) and actor.mirror is not None}
    groups = [actor for actor in story.actors if isinstance(actor, Committer) and actor.topics[0] in mirrors
              and actor.cluster == mirrors[actor.topics[0]].cluster]  # fmt: skip
    for committer in groups:
        writer = mirrors[committer.topics[0]]
        assert writer.mirror is not None
        if not truth.by_group.get((committer.cluster, committer.group)):
            verdict.leave("clone: nothing committed yet")
            continue
        answer = desk.ask(
            writer.mirror.cluster, "plan", "clone", literal(committer.group), f"{committer.group}-copy", "--all-topics",
            "--from-bootstrap-server", desk.servers[committer.cluster],
        )  # fmt: skip
        about = {"source": committer.cluster, "group": committer.group, "topic": writer.topic,
                 "shape": f"{writer.topic} times={writer.times} {writer.mirror}"}  # fmt: skip
        answer = replace(answer, about=about)
        found = judge(truth, answer)
        verdict.add(found)
        if not found.differences:
            for worse in spoilt(truth, answer, rng):
                verdict.seeded += 1
                if not judge(truth, worse).differences:
                    verdict.missed.append(f"{NAME}: a clone of {committer.group} that skips or replays without a word")
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
        verdict.comparisons += 3
        row = rows.get(partition)
        if row is None:
            text = f"no row of {topic}-{partition}" if not {(topic, partition), (topic, None)} & excused else ""
        else:
            text = _wrong(truth, answer, row, commits)
        if text:
            verdict.differences.append(
                Difference(NAME, answer.cluster, f"{text} [{answer.about['shape']}]", topic, group)
            )
    return verdict


def _wrong(truth: Truth, answer: Answer, row: Mapping[str, Any], commits: Mapping[int, int]) -> str:
    """What the row says too little of, or \"\"."""
    topic, partition, after = row["topic"], row["partition"], row["after"]
    target = truth.logs[answer.cluster, topic, partition]
    skipped, replayed = _moved(truth, answer, target, after, commits)
    said_skips, said_replays = row["skipped"] or 0, row["replayed"] or 0
    where = f"{topic}-{partition} {commits[partition]} -> {after} ({row['why']!r})"
    if len(skipped) > said_skips:
        return f"{where} skips {len(skipped)} unread records (first {skipped[0].offset}), said {said_skips}"
    if len(replayed) > said_replays:
        return f"{where} replays {len(replayed)} records (first {replayed[0].offset}), said {said_replays}"
    return ""


def _moved(
    truth: Truth, answer: Answer, target: Log, after: int, commits: Mapping[int, int]
) -> tuple[list[Produced], list[Produced]]:
    """Unread records before the offset, and read ones from there on, of those that came from the source."""
    places: dict[Identity, tuple[int, int]] = {}
    for partition in commits:
        log = truth.logs[answer.about["source"], answer.about["topic"], partition]
        places |= {(one.producer, one.number): (partition, one.offset) for one in log.records.values()}
    start = target.start(answer.asked, answer.answered).low
    skipped, replayed = [], []
    for offset in target.offsets:
        record = target.records[offset]
        found = places.get((record.producer, record.number))
        if found is None or offset < start:
            continue
        is_unread = found[1] >= commits[found[0]]
        if is_unread and offset < after:
            skipped.append(record)
        if not is_unread and offset >= after:
            replayed.append(record)
    return skipped, replayed


def spoilt(truth: Truth, answer: Answer, rng: random.Random) -> Iterable[Answer]:
    """Plans that skip, and that replay, without a word."""
    source, topic = answer.about["source"], answer.about["topic"]
    for row in answer.content["changes"]:
        commits = {key[3]: one.offset for key in truth.by_group[source, answer.about["group"]]
                   if (one := truth.committed(key, answer.asked, answer.answered)[0]) is not None}  # fmt: skip
        target = truth.logs[answer.cluster, topic, row["partition"]]
        for wrong in (0, row["latest"]):
            if any(_moved(truth, answer, target, wrong, commits)):
                content = copy.deepcopy(answer.content)
                (one,) = (each for each in content["changes"] if each["partition"] == row["partition"])
                one |= {"after": wrong, "skipped": 0, "replayed": 0}
                yield replace(answer, content=content)
                return
