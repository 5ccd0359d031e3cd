"""`groupkeeper serve`, as it watches all clusters beside the traffic: its series, of partitions, topics and groups."""

import copy
import math
import random
import re
import secrets
import signal
import subprocess
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from prometheus_client.parser import text_string_to_metric_families
from tests.rig.asking import BIN, Answer, Desk, Difference, Verdict
from tests.rig.facts import DONE, now
from tests.rig.judges import sums
from tests.rig.judges import times as judge_times
from tests.rig.judges.members import CALM_NS, DEATH_NS
from tests.rig.judges.offsets import judge_missing
from tests.rig.truth import FOREVER, Truth

from groupkeeper.client.admin.types import Position

NAME = "exporter"
INTERVAL = "3s"
PATIENCE_S = 600.0
CHANGER, VIEWER = "ann", "bob"
"""Who may change everything, and who may only look."""
ROLES = f"""
[[role]]
users = ["{CHANGER}"]
may = "change"

[[role]]
users = ["{VIEWER}"]
may = "view"
"""

PARTITION_LAG = "groupkeeper_group_partition_lag"
PARTITION_SECONDS = "groupkeeper_group_partition_lag_seconds"
COMMITTED = "groupkeeper_group_partition_committed_offset"
LOG_START = "groupkeeper_partition_log_start_offset"
LOG_END = "groupkeeper_partition_log_end_offset"
LAG = "groupkeeper_group_lag"
SECONDS = "groupkeeper_group_lag_seconds"
ESTIMATED = "groupkeeper_group_lag_seconds_estimated_partitions"
UNKNOWN = "groupkeeper_group_lag_seconds_unknown_partitions"
MARGIN = "groupkeeper_group_retention_margin_seconds"
COMMIT_AGE = "groupkeeper_group_commit_age_seconds"
BY_STATUS = "groupkeeper_group_partitions_by_status"
INFO = "groupkeeper_group_info"
MEMBERS = "groupkeeper_group_members"
MEMBER_PARTITIONS = "groupkeeper_group_member_partitions"
TASKS = "groupkeeper_streams_group_tasks"
PROBLEM = "groupkeeper_group_problem"
BEGAN = "groupkeeper_collector_succeeded_timestamp_seconds"
MEASURED = "groupkeeper_collector_measured_timestamp_seconds"

Names = tuple[str, ...]
Series = dict[str, dict[Names, float]]
"""By metric and by the values of the labels after that of the cluster, in the order of the exporter's tables."""


class Serving:
    """The command, as it runs. `address`: where it answers; `tokens`: of who may change something, and of who may
    look.
    """

    def __init__(self, servers: Mapping[str, str], folder: Path, environment: Mapping[str, str]) -> None:
        named = (word for name, one in servers.items() for word in ("--bootstrap-server", f"{name}={one}"))
        self.tokens = {name: secrets.token_hex(16) for name in (CHANGER, VIEWER)}
        files = {"tokens": "".join(f"{name} {token}\n" for name, token in self.tokens.items()), "roles.toml": ROLES}
        for file, text in files.items():
            (folder / file).write_text(text)
        self._said = folder / "serve.log"
        with self._said.open("w") as said:
            self._child = subprocess.Popen(
                [str(BIN / "groupkeeper"), "serve", *named, "--port", "0", "--interval", INTERVAL, "--allow-changes",
                 "--series", "partitions,members", "--history", str(folder / "watched.sqlite"),
                 "--token-file", str(folder / "tokens"), "--roles", str(folder / "roles.toml")],
                stdin=subprocess.DEVNULL, stdout=said, stderr=subprocess.STDOUT, env=dict(environment),
            )  # fmt: skip
        deadline = time.monotonic() + PATIENCE_S
        while (found := re.search(r"at http://([^/\s]+)", self._said.read_text())) is None:
            assert self._child.poll() is None, self._said.read_text()
            assert time.monotonic() < deadline, self._said.read_text()
            time.sleep(0.05)
        self.address = found[1]

    def end(self) -> Iterator[Difference]:
        """SIGTERM, and what is wrong with how it ends."""
        self._child.send_signal(signal.SIGTERM)
        status = self._child.wait(PATIENCE_S)
        said = self._said.read_text()
        if status or "Traceback" in said:
            yield Difference(NAME, "all", f"ended with {status}: {said[-300:]}")

    def kill(self) -> None:
        self._child.kill()


def ask(desk: Desk, cluster: str, rng: random.Random, truth: Truth) -> Answer:
    """What a poll found that began after the question."""
    asked, deadline = now(), time.monotonic() + PATIENCE_S
    while True:
        text = get(desk, "/metrics")
        desk.watch.take(text)
        series = _read(text, cluster)
        began_s = series.get(BEGAN, {}).get((), 0.0)
        if began_s * 1e9 > asked and () in series.get(MEASURED, {}):
            return Answer(cluster, asked, now(), series, about={"to": "end", "by": "topic"})
        assert time.monotonic() < deadline, f"no poll of {cluster} since {asked}: {series.get(BEGAN)}"
        time.sleep(0.3)


def get(desk: Desk, path: str) -> str:
    """What is served to who may look."""
    request = urllib.request.Request(f"http://{desk.exporter}{path}")
    request.add_header("Authorization", f"Bearer {desk.view_token}")
    with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
        text: str = answer.read().decode()
    return text


def _read(text: str, cluster: str) -> Series:
    found: Series = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            labels = dict(sample.labels)
            if labels.pop("cluster", None) == cluster:
                found.setdefault(sample.name, {})[tuple(labels.values())] = sample.value
    return found


class Row(NamedTuple):
    """What is told of one partition of a group."""

    group: str
    topic: str
    partition: int
    committed: float | None
    lag: float | None
    seconds: float | None
    start: float | None
    end: float | None


def _rows(series: Series) -> list[Row]:
    places = sorted({*series.get(COMMITTED, {}), *series.get(PARTITION_LAG, {}), *series.get(PARTITION_SECONDS, {})})
    columns = [series.get(name, {}) for name in (COMMITTED, PARTITION_LAG, PARTITION_SECONDS)]
    logs = [series.get(name, {}) for name in (LOG_START, LOG_END)]
    return [
        Row(place[0], place[1], int(place[2]), *(each.get(place) for each in columns),
            *(each.get(place[1:]) for each in logs))
        for place in places
    ]  # fmt: skip


def judge(truth: Truth, answer: Answer) -> Verdict:
    verdict = Verdict()
    rows = _rows(answer.content)
    for row in rows:
        if truth.is_changing(answer.cluster, row.topic, answer.asked):
            verdict.leave(f"{NAME}: the topic was being changed")
            continue
        for text in (*_offsets(truth, answer, row), *_time(truth, answer, row, verdict)):
            where = f"{row.topic}-{row.partition}"
            verdict.differences.append(Difference(NAME, answer.cluster, f"{where} {text}", row.topic, row.group))
        verdict.comparisons += 4
    seen = {(row.group, row.topic, row.partition) for row in rows}
    judge_missing(truth, answer, seen, verdict, NAME, "series")
    _sums(truth, answer, verdict)
    _topics(truth, answer, rows, verdict)
    _groups(truth, answer, verdict)
    return verdict


def _is_shared(truth: Truth, cluster: str, group: str) -> bool:
    return any(key[:2] == (cluster, group) for key in truth.shared)


def _offsets(truth: Truth, answer: Answer, row: Row) -> Iterable[str]:
    log = truth.logs.get((answer.cluster, row.topic, row.partition))
    if log is None:
        if row.lag is not None or (answer.cluster, row.topic) not in truth.removed:
            yield f"has lag {row.lag}, truth: there is no such partition"
        return
    key = (answer.cluster, row.group, row.topic, row.partition)
    asked, answered = answer.asked, answer.answered
    for name, value, bounds in (
        ("log_end_offset", row.end, log.end(asked, answered)),
        ("log_start_offset", row.start, log.start(asked, answered)),
    ):
        if value is None or int(value) not in bounds:
            yield f"{name} {value}, truth {bounds}"
    if _is_shared(truth, answer.cluster, row.group):
        start, lag = truth.share(key, asked, answered)
        if row.committed is not None and row.committed > start.high:
            yield f"share group's start offset {row.committed}, truth {start}"
        if row.lag is not None and int(row.lag) not in lag:
            yield f"share group's lag {row.lag}, truth {lag}"
        return
    admissible = {None if one is None else one.offset for one in truth.committed(key, asked, answered)}
    if row.committed not in admissible:
        yield f"committed {row.committed}, truth {' or '.join(map(str, admissible))}"
    follows = None if row.committed is None or row.end is None else max(0, row.end - row.committed)
    if row.lag != follows:
        yield f"lag {row.lag} of {row.committed} and {row.end}"


def _time(truth: Truth, answer: Answer, row: Row, verdict: Verdict) -> Iterable[str]:
    """The time lag is the age of the next record, at the instant that is stated."""
    if not _is_timed(truth, answer, row, verdict):
        return
    assert row.committed is not None
    assert row.start is not None
    at = Position(row.topic, row.partition, int(max(row.committed, row.start)))
    measured_ms = answer.content[MEASURED][()] * 1000
    if row.lag == 0:
        admissible = {0.0}
    else:
        found = judge_times.waiting_at(truth, answer, at, round(measured_ms))
        admissible = {max(0.0, round(measured_ms) - one) / 1000 for one in found if isinstance(one, int)}
        admissible |= {0.0} if None in found else set()  # nothing but markers is before the end
    if not any(agrees(answer, row.seconds, one) for one in admissible):
        yield f"lag_seconds {row.seconds} at {at.offset}, truth {' or '.join(map(str, sorted(admissible)))}"


def agrees(answer: Answer, shown: float | None, other: float | None, spare: float = 0) -> bool:
    """Whether a number of the answer may be the other one, which may be less by `spare`. In an answer of pages times
    are floats, of which `step` tells by how much they may be larger than what is shown; counts are integers.
    """
    if shown is None or other is None:
        return shown is other
    low, high = sorted((shown, shown + math.copysign(_step(answer, shown), shown)))
    return round(other - spare, 3) <= round(high, 3) and round(low, 3) <= round(other, 3)


def _step(answer: Answer, shown: float) -> float:
    step: Callable[[float], float] = answer.about.get("step", lambda _: 0.0)
    return step(abs(shown)) if isinstance(shown, float) else 0.0


def _is_timed(truth: Truth, answer: Answer, row: Row, verdict: Verdict) -> bool:
    """Whether the time lag is known to be that of a record."""
    log = truth.logs.get((answer.cluster, row.topic, row.partition))
    if log is None or row.lag is None or row.committed is None or row.start is None:
        return False
    if answer.content.get(ESTIMATED, {}).get((row.group, row.topic)) or row.seconds is None:
        verdict.leave(f"{NAME}: the time lag is interpolated, or not known yet")
        return False
    if log.has_unplaced:
        verdict.leave(f"{NAME}: offsets of some records were never told")
        return False
    return True


def _sums(truth: Truth, answer: Answer, verdict: Verdict) -> None:
    """Of topics, as those of `groups offsets --sum topic` are judged."""
    series = answer.content

    def value(name: str, *labels: str) -> int | None:
        found = series.get(name, {}).get(labels)
        return None if found is None else int(found)

    rows = []
    for group, topic in sorted(series.get("groupkeeper_group_partitions", {})):
        lag = value(LAG, group, topic)
        lost = value("groupkeeper_group_lost", group, topic)
        rows.append({
            "group": group,
            "topic": topic,
            "partitions": value("groupkeeper_group_partitions", group, topic),
            "uncommitted_partitions": value(BY_STATUS, group, topic, "uncommitted") or 0,
            "unknown": value(UNKNOWN, group, topic) or 0 if lag is None else 0,
            "lag": lag,
            "max_lag": value("groupkeeper_group_max_lag", group, topic),
            "lost": 0 if lost is None and lag is not None else lost,
            "uncommitted": value("groupkeeper_group_uncommitted", group, topic) or 0,
        })  # fmt: skip
    judged = sums.judge(truth, replace(answer, content={"lag_by_topic": rows, "problems": []}))
    verdict.add(judged.renamed(sums.NAME, NAME))
    for labels in series.get(PROBLEM, {}):
        if truth.has_changed(answer.cluster, answer.asked):
            verdict.leave(f"{NAME}: a topic was being changed")
        elif labels[1] == "BEYOND_LOG_END" and sums.is_beyond(truth, answer, labels[0], surely=False):
            verdict.comparisons += 1
        else:
            verdict.differences.append(Difference(NAME, answer.cluster, f"problem {labels[1:]}", group=labels[0]))


def _topics(truth: Truth, answer: Answer, rows: Iterable[Row], verdict: Verdict) -> None:
    """What follows from the partitions, and since when commits stand still."""
    series = answer.content
    by_topic: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        by_topic.setdefault((row.group, row.topic), []).append(row)
    for (group, topic), some in by_topic.items():
        if truth.is_changing(answer.cluster, topic, answer.asked) or (group, topic) in series.get(UNKNOWN, {}):
            continue
        longest = max((row.seconds for row in some if row.seconds is not None), default=None)
        found = {name: series.get(name, {}).get((group, topic)) for name in (SECONDS, MARGIN, COMMIT_AGE)}
        texts = []
        if not agrees(answer, found[SECONDS], longest):
            texts.append(f"lag_seconds {found[SECONDS]}, of its partitions {longest}")
        made = truth.topics.get((answer.cluster, topic))
        kept_ms = int(made.settings.get("retention.ms", -1)) if made is not None else -1
        if kept_ms < 0 and found[MARGIN] is not None:
            texts.append(f"retention_margin {found[MARGIN]}, truth: its records are kept")
        elif kept_ms >= 0 and longest:
            margin, least = found[MARGIN], kept_ms / 1000 - longest
            # Of aborted records none is lost: then it is the margin of a later record, or there is none.
            is_later = _has_transactions(truth, answer.cluster, topic) and (margin is None or margin > least)
            if not is_later and not agrees(answer, margin, least, _step(answer, longest)):
                texts.append(f"retention_margin {margin}, truth {kept_ms / 1000} less {longest}")
        age_ms = _most_age_ms(truth, answer, group, topic)
        if age_ms is not None and found[COMMIT_AGE] is not None and found[COMMIT_AGE] * 1000 > age_ms + 1:
            texts.append(f"commit_age {found[COMMIT_AGE]}, truth at most {age_ms / 1000}")
        verdict.comparisons += 3
        verdict.differences += [Difference(NAME, answer.cluster, text, topic, group) for text in texts]


def _most_age_ms(truth: Truth, answer: Answer, group: str, topic: str) -> float | None:
    """Since the last commit by which the sum of what is committed has surely grown; None: no such commit is known."""
    latest = 0
    for key in truth.by_group.get((answer.cluster, group), ()):
        if key[2] != topic:
            continue
        commits = [one for one in truth.commits[key] if one.began < answer.answered]
        offsets = [one.offset for one in commits]
        if any(one.outcome != DONE for one in commits) or offsets != sorted(offsets) or min(offsets, default=0) < 0:
            return None  # it may have gone back, or not be done
        for before, after in pairwise(commits):
            if before.offset < after.offset and before.ended < after.began and after.ended <= answer.asked:
                latest = max(latest, after.began)
    return answer.content[MEASURED][()] * 1000 - latest / 1e6 if latest else None


def _groups(truth: Truth, answer: Answer, verdict: Verdict) -> None:
    series = answer.content
    states = {group: state for group, _, state, _ in series.get(INFO, {})}
    for where, group in sorted(truth.never):
        if where == answer.cluster:
            verdict.comparisons += 1
            if group in states:
                text = "is there, truth: a reader that never joins or commits"
                verdict.differences.append(Difference(NAME, where, text, group=group))
    for where, group in sorted(set(truth.by_group) | set(truth.assigned)):
        if where == answer.cluster and group in states:
            if not _is_calm(truth, answer, group):
                verdict.leave(f"{NAME}: the group was rebalancing")
                continue
            verdict.comparisons += 3
            for text in _members(truth, answer, group, states[group]):
                verdict.differences.append(Difference(NAME, where, text, group=group))


def _is_calm(truth: Truth, answer: Answer, group: str) -> bool:
    return truth.is_calm(answer.cluster, group, answer.asked - CALM_NS, answer.answered + CALM_NS, DEATH_NS)


def _members(truth: Truth, answer: Answer, group: str, state: str) -> Iterable[str]:
    members = truth.members(answer.cluster, group, answer.asked)
    count = answer.content.get(MEMBERS, {}).get((group,))
    if count != len(members):
        yield f"{count} members, truth {len(members)}"
    if state == "Reconciling":
        return  # librdkafka may put off for minutes what it is to give back
    if state != ("Stable" if members else "Empty"):
        yield f"state {state}, truth {'Stable' if members else 'Empty'}"
    wanted = {actor: len(one.places) for actor, one in members.items()}
    found: Counter[str] = Counter()
    for (of, _, client_id, _), partitions in answer.content.get(MEMBER_PARTITIONS, {}).items():
        if of == group:
            found[client_id] += int(partitions)
    if dict(found) != wanted:
        yield f"members' partitions {dict(found)}, truth {wanted}"
    tasks = answer.content.get(TASKS, {}).get((group, "active"))
    if tasks is not None and tasks != sum(wanted.values()):
        yield f"{tasks} active tasks, truth {sum(wanted.values())}"


def _has_transactions(truth: Truth, cluster: str, topic: str) -> bool:
    return any(log.transactions for place, log in truth.logs.items() if place[:2] == (cluster, topic))


def spoil(truth: Truth, answer: Answer, rng: random.Random) -> Answer | None:
    """One number that is wrong, or a series too few, of what can be judged."""
    series = copy.deepcopy(answer.content)
    rows = [row for row in _rows(series) if row.committed is not None and row.lag is not None
            and not truth.is_changing(answer.cluster, row.topic, answer.asked)
            and not _is_shared(truth, answer.cluster, row.group)]  # fmt: skip
    named = sorted(group for where, group in set(truth.by_group) | set(truth.assigned) if where == answer.cluster)
    calm = [group for group in named if (group,) in series.get(MEMBERS, {}) and _is_calm(truth, answer, group)]
    if not rows:
        return None
    row = rng.choice(rows)
    place = (row.group, row.topic, str(row.partition))
    match rng.randrange(6):
        case 0:
            series[PARTITION_LAG][place] += rng.choice([-1, 1])
        case 1:
            series[COMMITTED][place] += FOREVER
        case 2:
            series[LOG_END][place[1:]] += FOREVER
        case 3:
            timed = [each for each in rows if _is_timed(truth, answer, each, Verdict())]
            if not timed:
                return None
            late = rng.choice(timed)
            series[PARTITION_SECONDS][late.group, late.topic, str(late.partition)] += 0.001 + 2 * _step(
                answer, late.seconds or 0.0
            )
        case 4:
            if not calm:
                return None
            series[MEMBERS][rng.choice(calm),] += 1
        case _:
            key = (answer.cluster, row.group, row.topic, row.partition)
            if None in truth.committed(key, answer.asked, answer.answered):
                return None
            for name in (COMMITTED, PARTITION_LAG, PARTITION_SECONDS):
                series[name].pop(place, None)
    return replace(answer, content=series)
