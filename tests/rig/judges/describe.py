"""`kafka-consumer-groups --describe`, our form of the official tool."""

import random
import re
from dataclasses import replace

from tests.rig.asking import Answer, Desk, Difference, Verdict
from tests.rig.truth import Truth

NAME = "describe"
_GONE = "UnknownTopicOrPartitionException|Consumer group '.*' does not exist"
"""With the last topic that a group has offsets of, the group is gone, too."""


def ask(desk: Desk, cluster: str, rng: random.Random, truth: Truth) -> Answer:
    return desk.run(cluster, "--bootstrap-server", desk.servers[cluster], "--describe", "--all-groups",
                    command="kafka-consumer-groups")  # fmt: skip


def judge(truth: Truth, answer: Answer) -> Verdict:
    """Columns are separated by blanks, so groups whose names have some are not told apart: those are left out."""
    verdict = Verdict()
    plain = {group for group in truth.groups(answer.cluster, answer.answered) if not set(group) & set(" \t")}
    for line in answer.content.splitlines():
        words = line.split()
        if len(words) != 9 or words[0] not in plain:
            continue
        group, topic, partition, current, end, lag = words[:6]
        log = truth.logs.get((answer.cluster, topic, int(partition)))
        if log is None or truth.is_changing(answer.cluster, topic, answer.asked):
            verdict.leave(f"{NAME}: the topic was being changed")
            continue
        key = (answer.cluster, group, topic, int(partition))
        commits = truth.committed(key, answer.asked, answer.answered)
        admissible = ["-" if one is None else str(one.offset) for one in commits]
        verdict.comparisons += 3
        wrong = []
        if current not in admissible:
            wrong.append(f"CURRENT-OFFSET {current}, truth {' or '.join(admissible)}")
        bounds = log.end(answer.asked, answer.answered)
        if not end.isdecimal() or int(end) not in bounds:
            wrong.append(f"LOG-END-OFFSET {end}, truth {bounds}")
        elif lag != ("-" if current == "-" else str(int(end) - int(current))):
            wrong.append(f"LAG {lag} of {current} and {end}")
        verdict.differences += [Difference(NAME, answer.cluster, f"{topic}-{partition} {one}", topic, group)
                                for one in wrong]  # fmt: skip
    said = answer.content + answer.errors
    if answer.status or "Error" in said:
        errors = [line for line in said.splitlines() if "Error" in line] or [said[-300:]]
        text = f"status {answer.status}: {' / '.join(errors)[:600]}"
        if re.search(_GONE, text) and truth.has_changed(answer.cluster, answer.asked):
            verdict.leave(f"{NAME}: the topic was being changed")  # the official command ends with it, too
        else:
            verdict.differences.append(Difference(NAME, answer.cluster, text))
    return verdict


def spoil(truth: Truth, answer: Answer, rng: random.Random) -> Answer | None:
    lines = answer.content.splitlines()

    def is_judged(words: list[str]) -> bool:
        return not truth.is_changing(answer.cluster, words[1], answer.asked)

    split = [line.split() for line in lines]
    rows = [index for index, words in enumerate(split)
            if len(words) == 9 and words[5].isdecimal() and is_judged(words)]  # fmt: skip
    if not rows:
        return None
    index = rng.choice(rows)
    words = lines[index].split()
    words[5] = str(int(words[5]) + 1)
    lines[index] = " ".join(words)
    return replace(answer, content="\n".join(lines))
