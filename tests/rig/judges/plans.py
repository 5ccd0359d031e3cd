"""Plans of groups without members: what a reset plans and applies, and that undo gives back what was, byte for byte."""

import copy
import json
import random
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import kafka
from tests.rig.asking import Answer, Desk, Difference, Verdict
from tests.rig.facts import DONE, Committed, Notebook, now
from tests.rig.truth import Key, Log, Truth

NAME = "plans"
BY = "rig plans"

Commit = tuple[int, str, int]
"""Offset, metadata, leader epoch (-1: none)."""

Place = tuple[str, int]


def read_commits(servers: str, group: str) -> dict[Place, Commit]:
    """As another client reads them."""
    admin = kafka.KafkaAdminClient(bootstrap_servers=servers)
    try:
        found = admin.list_group_offsets({group: None})[group]
        return {
            (place.topic, place.partition): (one.offset, one.metadata or "", _epoch(one.leader_epoch))
            for place, one in found.items()
            if one.offset >= 0
        }
    finally:
        admin.close()


def list_groups(servers: str) -> set[str]:
    """As another client lists them."""
    admin = kafka.KafkaAdminClient(bootstrap_servers=servers)
    try:
        return {group["group_id"] for group in admin.list_groups()}
    finally:
        admin.close()


def _epoch(epoch: int | None) -> int:
    return -1 if epoch is None else epoch


def literal(name: str) -> str:
    """A name as an argument that takes globs."""
    return re.sub(r"([*?\[])", r"[\1]", name)


def idle_groups(truth: Truth, cluster: str) -> list[str]:
    """Groups that never had members, so that nobody is in them now, and of which it is known what they committed."""
    return sorted(
        group
        for (where, group), keys in truth.by_group.items()
        if where == cluster and not truth.assigned.get((where, group)) and all(_lasts(truth, key) for key in keys)
        and _is_settled(truth, keys)
    )  # fmt: skip


def _is_settled(truth: Truth, keys: Iterable[Key]) -> bool:
    """Whether each offset is known, and one is there: a commit that got no answer may have been made or not."""
    found = [truth.committed(key, at := now(), at) for key in keys]
    return all(len(some) == 1 for some in found) and any(some[0] is not None for some in found)


def _lasts(truth: Truth, key: Key) -> bool:
    """Whether the topic stays what it is while everything rests."""
    made = truth.topics.get((key[0], key[2]))
    return made is not None and "retention.ms" not in made.settings and (key[0], key[2]) not in truth.removed


def act(desk: Desk, cluster: str, rng: random.Random, truth: Truth, notebook: Notebook) -> Verdict:
    """Resets a group by a plan and takes that back, while everything rests. What is left is written down."""
    verdict = Verdict()
    groups = idle_groups(truth, cluster)
    if not groups:
        verdict.leave("plans: no group without members")
        return verdict
    group = rng.choice(groups)
    scenario = Scenario(NAME, desk, cluster, group, verdict, notebook)
    before = read_commits(desk.servers[cluster], group)
    scenario.same("what is committed", {place: one[:2] for place, one in before.items()}, _truth(truth, cluster, group))
    made = desk.ask(cluster, "plan", "reset", "--all-topics", *_target(truth, cluster, group, rng),
                    "--save", str(desk.folder / "plan.json"), "--", literal(group))  # fmt: skip
    found = judge_reset(truth, made, group, before)
    verdict.add(found)
    if not found.differences:
        for worse in spoilt(truth, made, rng):
            verdict.seeded += 1
            if not judge_reset(truth, worse, group, before).differences:
                verdict.missed.append(f"{NAME}: a seeded defect in a plan of {group}")
    planned = {
        (one["topic"], one["partition"]): _commit(one["after"])
        for one in json.loads((desk.folder / "plan.json").read_text())["groups"][0]["partitions"]
    }
    scenario.change("apply", str(desk.folder / "plan.json"), "--execute", "--confirm", "1")
    applied = read_commits(desk.servers[cluster], group)
    scenario.same("applied", applied, {**before, **planned})
    scenario.write_down(before, applied)
    if rng.random() < 0.8 and applied != before:
        scenario.take_back(truth, before, applied, rng)
    return verdict


class Scenario:
    """One group that is changed, and what was different on the way."""

    def __init__(self, judge: str, desk: Desk, cluster: str, group: str, verdict: Verdict, notebook: Notebook) -> None:
        self.judge = judge
        self.desk = desk
        self.cluster = cluster
        self.group = group
        self.verdict = verdict
        self.notebook = notebook
        self.changed = (0, 0)

    def differ(self, text: str) -> None:
        self.verdict.differences.append(Difference(self.judge, self.cluster, text, group=self.group))

    def same(self, what: str, found: Mapping[Place, Any], wanted: Mapping[Place, Any]) -> None:
        self.verdict.comparisons += len(wanted)
        for place in sorted(found.keys() | wanted.keys()):
            if found.get(place) != wanted.get(place):
                self.differ(f"{what}: {place} is {found.get(place)}, truth {wanted.get(place)}")

    def is_there(self, wanted: bool) -> None:
        """Whether the group is listed, as another client sees it."""
        self.verdict.comparisons += 1
        if (self.group in list_groups(self.desk.servers[self.cluster])) != wanted:
            self.differ("the group is not listed, truth it is" if wanted else "the group is listed, truth it is not")

    def change(self, *words: str) -> None:
        answer = self.desk.ask(self.cluster, *words)
        self.changed = (answer.asked, answer.answered)
        if answer.status or answer.content["problems"]:
            self.differ(f"{words[0]} ended with {answer.status}: {answer.content['problems']} {answer.errors[:300]}")

    def take_back(
        self, truth: Truth, before: Mapping[Place, Commit], applied: Mapping[Place, Commit], rng: random.Random
    ) -> None:
        """Where the log does not hold what was committed before, undo refuses all, unless told what to do then."""
        changes = json.loads(self.desk.run(self.cluster, "history", "--output", "json").content)["changes"]
        last = max(changes, key=lambda change: change["time"])["id"]
        at = now()
        logs = {place: truth.logs[(self.cluster, *place)] for place in before}
        inside = {place: min(max(one[0], logs[place].start(at, at).low), logs[place].end(at, at).low)
                  for place, one in before.items()}  # fmt: skip
        moved = {place for place, one in before.items() if applied.get(place) != one}
        outside = {place for place in moved if inside[place] != before[place][0]}
        wanted, otherwise = dict(before), rng.choice(["skip", "clamp"]) if outside != moved else "clamp"
        if outside:
            refused = self.desk.ask(self.cluster, "undo", last, "--execute", "--confirm", "1")
            named = {(one["topic"], one["partition"]) for one in refused.content["problems"]}
            if named != outside or not refused.status:
                self.differ(f"undo of offsets outside of the log names {sorted(named)}, truth {sorted(outside)}")
            self.same("refused", read_commits(self.desk.servers[self.cluster], self.group), applied)
            clamped = {place: (inside[place], before[place][1], -1) for place in outside}
            for place in clamped.keys() & applied.keys():
                if applied[place][:2] == clamped[place][:2]:  # it is there already: there is nothing to undo
                    clamped[place] = applied[place]
            left = {place: one for place, one in before.items() if place not in outside} | {
                place: applied[place] for place in outside if place in applied
            }
            wanted = {**before, **clamped} if otherwise == "clamp" else left
        self.change("undo", last, "--execute", "--confirm", "1", "--if-out-of-range", otherwise)
        undone = read_commits(self.desk.servers[self.cluster], self.group)
        self.same("undone", undone, wanted)
        self.write_down(applied, undone)

    def write_down(self, before: Mapping[Place, Commit], after: Mapping[Place, Commit]) -> None:
        """Facts of our own: what the change did."""
        began, ended = self.changed
        for place in sorted(before.keys() | after.keys()):
            if before.get(place) != after.get(place):
                offset, metadata, epoch = after.get(place, (-1, "", -1))
                self.notebook.write(
                    Committed(self.cluster, self.group, *place, offset, epoch, metadata, DONE, BY, began, ended)
                )
        self.notebook.flush()


def _truth(truth: Truth, cluster: str, group: str) -> dict[Place, tuple[int, str]]:
    at = now()
    last = {key[2:]: truth.committed(key, at, at)[0] for key in truth.by_group[cluster, group]}
    return {place: (one.offset, one.metadata) for place, one in last.items() if one is not None}


def _commit(fields: dict[str, Any] | None) -> Commit:
    if fields is None:
        return (-1, "", -1)
    return (fields["offset"], fields.get("metadata", ""), fields.get("leader_epoch", -1))


def _target(truth: Truth, cluster: str, group: str, rng: random.Random) -> list[str]:
    """Where to: as words of the command."""
    logs = [truth.logs[cluster, key[2], key[3]] for key in truth.by_group[cluster, group]]
    filled = [log for log in logs if log.offsets]
    match rng.randrange(6):
        case 0:
            return ["--to-earliest"]
        case 1:
            return ["--to-latest"]
        case 2:
            return ["--shift-by", str(rng.choice([-7, -1, 3, 1000]))]
        case 3:
            return ["--to-offset", str(rng.randrange(200))]
        case 4 if filled:
            log = rng.choice(filled)
            at = log.records[rng.choice(log.offsets)].timestamp
            return ["--to-datetime", f"{datetime.fromtimestamp(at / 1000, UTC):%Y-%m-%dT%H:%M:%S}.{at % 1000:03d}Z"]
        case _:
            return ["--to-current"]


def judge_reset(truth: Truth, answer: Answer, group: str, before: Mapping[Place, Commit]) -> Verdict:
    """The rows of a plan, made while everything rests."""
    verdict = Verdict()
    rows = {(row["topic"], row["partition"]): row for row in answer.content["changes"]}
    words = answer.about["line"]
    untold = untold_times(answer)
    for place, commit in sorted(before.items()):
        log = truth.logs[(answer.cluster, *place)]
        if log.has_unplaced:
            verdict.leave(f"{NAME}: offsets of some records were never told")
            continue
        verdict.comparisons += 7
        row = rows.get(place)
        wanted = plan_row(log, answer, words, commit[0])
        if truth.is_compacted_topic(answer.cluster, place[0]):
            verdict.leave(f"{NAME}: times of a compacted topic")
            wanted = {name: value for name, value in wanted.items() if not name.endswith("_time")}
            if words[3] == "--to-datetime":
                continue
        if row is None:
            found = f"no row, truth {wanted}"
        else:
            if untold and any(row[name] is None for name in wanted if name.endswith("_time")):
                verdict.leave(f"{NAME}: the plan said why the time of a record is unknown")
                untold -= 1
                wanted = {name: value for name, value in wanted.items() if not name.endswith("_time")}
            wrong = [f"{name} {row[name]}, truth {value}" for name, value in wanted.items()
                     if (_ms(row[name]) if name.endswith("_time") else row[name]) != value]  # fmt: skip
            found = ", ".join(wrong)
        if found:
            text = f"plan reset {' '.join(words[3:5])} of {place[0]}-{place[1]}: {found}"
            verdict.differences.append(Difference(NAME, answer.cluster, text, place[0], group))
    for problem in answer.content["problems"]:
        verdict.differences.append(Difference(NAME, answer.cluster, f"plan reset: {problem}", group=group))
    return verdict


def untold_times(answer: Answer) -> int:
    """How many times of records the command said that it could not get, each with its reason. Under load a broker may
    not answer within the command's time; a plan is right without them.
    """
    said = "\n".join(answer.content["notes"])
    if re.search("the times of records are (not known|left out): ", said):
        return len(answer.content["changes"])
    counts = re.findall(r"([\d,]+) records? without a known time, for example", said)
    return sum(int(each.replace(",", "")) for each in counts)


def plan_row(log: Log, answer: Answer, words: list[str], before: int) -> dict[str, int | None]:
    """What a plan must say of a partition, by the words of the command and the offset before."""
    start, end = log.start(answer.asked, answer.answered).high, log.end(answer.asked, answer.answered).low
    after = min(max(_asked_for(log, words, before, start, end), start), end)
    moved = after - min(max(before, start), end)
    return {
        "before": before, "after": after, "log_start_offset": start, "log_end_offset": end,
        "skipped": max(0, moved), "replayed": max(0, -moved),
        "after_time": _time_at(log, after), "before_time": _time_at(log, before) if start <= before <= end else None,
    }  # fmt: skip


def _asked_for(log: Log, words: list[str], before: int, start: int, end: int) -> int:
    option, value = words[3], words[4]
    match option:
        case "--to-earliest":
            return start
        case "--to-latest":
            return end
        case "--to-current":
            return before
        case "--shift-by":
            return before + int(value)
        case "--to-offset":
            return int(value)
        case _:
            record = log.first_from_time(_ms(value) or 0, start)
            return end if record is None else record.offset


def _time_at(log: Log, offset: int) -> int | None:
    record = log.next_record(offset)
    return None if record is None else record.timestamp


def _ms(text: str | None) -> int | None:
    return None if text is None else round(datetime.fromisoformat(text).timestamp() * 1000)


def spoilt(truth: Truth, answer: Answer, rng: random.Random) -> Iterable[Answer]:
    """The answer with one thing wrong, in each way."""
    for name in ("before", "after", "skipped", "replayed", "after_time"):
        content = copy.deepcopy(answer.content)
        rows = [row for row in content["changes"] if row[name] is not None
                and not truth.is_compacted_topic(answer.cluster, row["topic"])]  # fmt: skip
        if rows:
            row = rng.choice(rows)
            row[name] = "2001-01-01T00:00:00Z" if name == "after_time" else row[name] + 1
            yield replace(answer, content=content)
