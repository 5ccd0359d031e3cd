"""`groups watch` beside the traffic from its beginning to its end: each member that stays is seen to come and to go."""

import json
import signal
import subprocess
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from tests.rig.asking import BIN, Answer, Difference, Verdict
from tests.rig.facts import now
from tests.rig.judges.exporter import PATIENCE_S
from tests.rig.truth import Truth

NAME = "watch"
STAY_NS = 20_000_000_000
"""Who stays so long is seen, though a look takes its time on a busy machine."""


class Watching:
    """The command, as it runs."""

    def __init__(self, cluster: str, servers: str, folder: Path, environment: Mapping[str, str]) -> None:
        self.cluster = cluster
        self._path = folder / f"watch-{cluster}.jsonl"
        self._began = now()
        with self._path.open("w") as out:
            self._child = subprocess.Popen(
                [str(BIN / "groupkeeper"), "groups", "watch", "--all-groups", "--output", "json",
                 "--bootstrap-server", servers],
                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # ignored in the background of a shell
                stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.PIPE, text=True, env=dict(environment),
            )  # fmt: skip

    def end(self) -> Answer:
        """Ctrl-C, and what it has printed."""
        ended = now()
        self._child.send_signal(signal.SIGINT)
        _, errors = self._child.communicate(timeout=PATIENCE_S)
        rows = [json.loads(line) for line in self._path.read_text().splitlines()]
        return Answer(self.cluster, self._began, ended, rows, self._child.returncode, errors)

    def kill(self) -> None:
        self._child.kill()


def judge(truth: Truth, answer: Answer) -> Verdict:
    verdict = Verdict()
    if answer.status:
        text = f"ended with {answer.status}: {answer.errors[-300:]}"
        verdict.differences.append(Difference(NAME, answer.cluster, text))
    seen: Counter[tuple[str, str, str]] = Counter()
    for row in answer.content:
        change = "came" if row["change"] in ("member_joined", "member_present") else row["change"]
        seen[row["group"], row["client_id"] or "", change] += 1
    for (cluster, group), joining in truth.joining.items():
        if cluster == answer.cluster:
            for actor in sorted({one.actor for one in joining}):
                for text in _member(truth, answer, group, actor, seen):
                    verdict.differences.append(Difference(NAME, cluster, text, group=group))
                verdict.comparisons += 3
    return verdict


def _member(
    truth: Truth, answer: Answer, group: str, actor: str, seen: Mapping[tuple[str, str, str], int]
) -> Iterable[str]:
    name = (answer.cluster, group)
    # A client that a busy machine lets be fenced joins again in its session, and writes that down.
    joined = sum(one.actor == actor for one in truth.joining[name])
    since: dict[int, int] = {}
    for one in truth.assigned[name]:
        if one.actor == actor:
            since.setdefault(one.session, one.ended)
    left = {one.session: one for one in truth.left[name] if one.actor == actor}
    until = {session: left[session].began if session in left else answer.answered for session in since}
    stayed = {session for session in since
              if min(until[session], answer.answered) - max(since[session], answer.asked) > STAY_NS}  # fmt: skip
    said = {one.session for one in left.values() if not one.is_dead and one.ended < answer.answered - STAY_NS}
    gone = stayed & said
    came, went = seen.get((group, actor, "came"), 0), seen.get((group, actor, "member_left"), 0)
    if came < len(stayed):
        yield f"{actor} was seen to come {came} times, truth at least {len(stayed)}"
    if went < len(gone):
        yield f"{actor} was seen to go {went} times, truth at least {len(gone)}"
    if not any(one.is_dead for one in left.values()) and came > 3 * joined + 3:
        yield f"{actor} was seen to come {came} times, truth {joined}"


def spoilt(truth: Truth, answer: Answer) -> Answer | None:
    """Without the coming of somebody who stays."""
    for (cluster, group), some in truth.assigned.items():
        for one in some:
            is_early = cluster == answer.cluster and max(one.ended, answer.asked) < answer.answered - 2 * STAY_NS
            if is_early and not truth.left[cluster, group]:
                rows = [row for row in answer.content if row["group"] != group]
                return replace(answer, content=rows)
    return None
