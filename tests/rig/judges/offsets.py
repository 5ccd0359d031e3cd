"""Committed offsets, ends of logs, lag and status, as `groupkeeper groups offsets` shows them."""

import copy
import random
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from tests.rig.asking import Answer, Desk, Difference, Verdict
from tests.rig.truth import FOREVER, Truth

NAME = "offsets"
TO_LAST_STABLE = "--lag-to"


def ask(desk: Desk, cluster: str, rng: random.Random, truth: Truth) -> Answer:
    target = rng.choice(["end", "lso"])
    answer = desk.ask(cluster, "groups", "offsets", "--all-groups", TO_LAST_STABLE, target)
    return replace(answer, about={"to": target})


def judge(truth: Truth, answer: Answer) -> Verdict:
    verdict = Verdict()
    seen: set[tuple[str, str, int]] = set()
    for row in answer.content["offsets"]:
        seen.add((row["group"], row["topic"], row["partition"]))
        if truth.is_changing(answer.cluster, row["topic"], answer.asked):
            verdict.leave(f"{NAME}: the topic was being changed")
            continue
        is_shared = any(key[:2] == (answer.cluster, row["group"]) for key in truth.shared)
        for text in (_share_row if is_shared else _row)(truth, answer, row):
            verdict.differences.append(Difference(NAME, answer.cluster, text, row["topic"], row["group"]))
        verdict.comparisons += 6
    for problem in answer.content["problems"]:
        verdict.differences.append(Difference(NAME, answer.cluster, f"problem {problem}", group=problem.get("group")))
    judge_missing(truth, answer, seen, verdict, NAME, "row")
    return verdict


def judge_missing(
    truth: Truth, answer: Answer, seen: set[tuple[str, str, int]], verdict: Verdict, name: str, what: str
) -> None:
    """What is committed, and the answer says nothing of."""
    for key, commits in truth.commits.items():
        if key[0] != answer.cluster or key[1:] in seen or truth.is_changing(key[0], key[2], answer.asked):
            continue
        verdict.comparisons += 1
        if None not in truth.committed(key, answer.asked, answer.answered):
            text = f"no {what} of {key[2]}-{key[3]}, of which {commits[0].offset} was committed"
            verdict.differences.append(Difference(name, answer.cluster, text, key[2], key[1]))


def _row(truth: Truth, answer: Answer, row: dict[str, Any]) -> Iterable[str]:
    """What is wrong with one row."""
    place = (answer.cluster, row["topic"], row["partition"])
    where = f"{row['topic']}-{row['partition']}"
    log = truth.logs.get(place)
    if log is None:
        if (row["status"], row["lag"]) != ("deleted", None) or (answer.cluster, row["topic"]) not in truth.removed:
            yield f"{where} is {row['status']} with lag {row['lag']}, truth: there is no such partition"
        return
    asked, answered = answer.asked, answer.answered
    commits = truth.committed((answer.cluster, row["group"], row["topic"], row["partition"]), asked, answered)
    found = None if row["committed_offset"] is None else (row["committed_offset"], row["metadata"] or "")
    admissible = [None if one is None else (one.offset, one.metadata) for one in commits]
    if found not in admissible:
        yield f"{where} committed {_brief(found)}, truth {' or '.join(_brief(one) for one in admissible)}"
    end, start = log.end(asked, answered), log.start(asked, answered)
    if row["log_end_offset"] not in end:
        yield f"{where} log_end_offset {row['log_end_offset']}, truth {end}"
    if row["log_start_offset"] not in start:
        yield f"{where} log_start_offset {row['log_start_offset']}, truth {start}"
    target = row["log_end_offset"]
    if answer.about["to"] == "lso":
        stable = truth.last_stable(place, asked, answered)
        target = row["last_stable_offset"]
        if target not in stable:
            yield f"{where} last_stable_offset {target}, truth {stable}"
    yield from _conclusions(where, row, target)


def _share_row(truth: Truth, answer: Answer, row: dict[str, Any]) -> Iterable[str]:
    where = f"{row['topic']}-{row['partition']}"
    key = (answer.cluster, row["group"], row["topic"], row["partition"])
    start, lag = truth.share(key, answer.asked, answer.answered)
    end = truth.logs[answer.cluster, row["topic"], row["partition"]].end(answer.asked, answer.answered)
    if row["log_end_offset"] not in end:
        yield f"{where} log_end_offset {row['log_end_offset']}, truth {end}"
    if row["committed_offset"] is None and start.low == 0:
        return
    # Kafka stores the start offset with the next change after the one that moves it; `done_ahead` tells by how much.
    if row["committed_offset"] > start.high or row["committed_offset"] + row["done_ahead"] < start.low:
        yield f"{where} share group's start offset {row['committed_offset']}, {row['done_ahead']} done, truth {start}"
    if row["lag"] not in lag:
        yield f"{where} share group's lag {row['lag']}, truth {lag}"


def _conclusions(where: str, row: dict[str, Any], target: int) -> Iterable[str]:
    """Lag, losses and status follow from the numbers in the row."""
    current, start, end = row["committed_offset"], row["log_start_offset"], row["log_end_offset"]
    if current is None:
        wanted: tuple[Any, ...] = (None, None, "uncommitted")
    else:
        status = "beyond_log_end" if current > end else "below_log_start" if current < start else "ok"
        wanted = (max(0, target - current), max(0, start - current), status)
    found = (row["lag"], row["lost"], row["status"])
    if found != wanted:
        yield f"{where} lag, lost, status are {found}, truth {wanted}"


def _brief(commit: tuple[int, str] | None) -> str:
    return "nothing" if commit is None else f"{commit[0]} {commit[1][:30]!r}"


def spoil(truth: Truth, answer: Answer, rng: random.Random) -> Answer | None:
    """The answer with one thing wrong."""
    content = copy.deepcopy(answer.content)
    rows = [
        row
        for row in content["offsets"]
        if row["committed_offset"] is not None and row["lag"] is not None and row["done_ahead"] is None
        and not truth.is_changing(answer.cluster, row["topic"], answer.asked)
    ]  # fmt: skip
    if not rows:
        return None
    row = rng.choice(rows)
    match rng.randrange(6):
        case 0:
            row["lag"] += rng.choice([-1, 1])
        case 1:
            row["committed_offset"] += FOREVER
        case 2:
            row["log_end_offset"] = -1
        case 3:
            row["status"] = "no_leader"
        case 4:
            row["metadata"] = "spoilt"
        case _:
            key = (answer.cluster, row["group"], row["topic"], row["partition"])
            if None in truth.committed(key, answer.asked, answer.answered):
                return None  # the first commit was under way
            content["offsets"].remove(row)
    return replace(answer, content=content)
