"""How groups are, as the pipeline's tables `status` and `stale` say at rest."""

import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any

from tests.rig.asking import Answer, Difference, Verdict
from tests.rig.facts import DONE, Committed
from tests.rig.judges.members import CALM_NS, DEATH_NS
from tests.rig.judges.pipeline import MS, Row, ns_of
from tests.rig.truth import Between, Key, Truth

NAME = "status"
ORDER = ("ok", "abandoned", "unknown", "unstable", "lagging", "rewound", "stalled", "stopped", "losing")
"""From best to worst: a group is as its worst partition."""

LAGGING_MS, EMPTY_PATIENCE_MS, PATIENCE_MS, MOST_PATIENCE_MS = 300_000, 60_000, 600_000, 10_800_000
REBALANCES, REBALANCES_NS = 10, 600_000 * MS
MOST_REBALANCES = 4
"""So many a member that comes or goes, or a topic that grows, brings at most: cooperative ones take several rounds."""
DAY_MS = 86_400_000


def judge(truth: Truth, answer: Answer) -> Verdict:
    """The tables `status` and `stale`, made while everything rests. Rows of `lag` are judged elsewhere."""
    verdict = Verdict()
    tables = answer.content
    lags = {_key(row): row for row in tables["lag"]}
    rows = {_key(row): row for row in tables["status"]}
    groups: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for key in sorted(lags):
        groups[key[:2]].append(lags[key])
        _compare_partition(truth, answer, lags[key], rows.get(key), verdict)
    extra = [key for key in rows if key not in lags and key[2] is not None]
    verdict.differences += [_difference(key, "a status without a lag") for key in extra]
    for name, some in groups.items():
        _compare_group(truth, answer, [rows.get(_key(row)) for row in some], rows.get((*name, None, None)), verdict)
    _compare_stale(truth, answer, verdict)
    return verdict


def _key(row: Mapping[str, Any]) -> tuple[Any, Any, Any, Any]:
    return (row["cluster"], row["group_id"], row["topic"], row["partition"])


def _difference(key: tuple[Any, Any, Any, Any], text: str) -> Difference:
    return Difference(NAME, key[0], f"{key[2]}-{key[3]}: {text}" if key[2] else text, key[2], key[1])


def _compare_partition(truth: Truth, answer: Answer, lag: Row, row: Row | None, verdict: Verdict) -> None:
    key = _key(lag)
    if key[:1] + key[2:3] in truth.removed:
        verdict.leave(f"{NAME}: a topic that was removed")
        return
    if row is None:
        verdict.differences.append(_difference(key, "no status"))
        return
    verdict.comparisons += 3
    wanted = _statuses(truth, answer, lag)
    if row["status"] not in wanted:
        text = f"{row['status']} ({row['rule']}), truth {' or '.join(sorted(wanted))}"
        verdict.differences.append(_difference(key, text))
    if (row["lag"], row["lag_ms"]) != (lag["lag"], lag["lag_ms"]):
        text = f"lag {row['lag']} and {row['lag_ms']} ms, in the table of lag {lag['lag']} and {lag['lag_ms']} ms"
        verdict.differences.append(_difference(key, text))
    if not row["rule"] or (row["status"] == "unknown" and (lag["problem"] or "") not in row["rule"]):
        verdict.differences.append(_difference(key, f"{row['status']}, and the reason is {row['rule']!r}"))


def _statuses(truth: Truth, answer: Answer, lag: Row) -> set[str]:
    """What the status of a partition may be, of which the lag is right."""
    if lag["lag"] is None:
        return {"unknown"} if lag["problem"] else {"a reason why the lag is unknown"}
    key: Key = _key(lag)
    at = ns_of(lag["measured_time"])
    log = truth.logs[key[0], key[2], key[3]]
    found = truth.committed(key, at, at)
    offset, start = lag["committed_offset"], log.start(at, answer.answered)
    is_left = all(one is not None and _since(at // MS, one).low > DAY_MS for one in found)  # it loses nothing any more
    if 0 <= offset < start.low and not is_left:
        return {"losing"} if _may_be_read(truth, answer, key) else {"losing", "abandoned"}
    waiting = _statuses_in_the_log(truth, answer, lag, found)
    if lag["lag"] and waiting != {"unknown"} and (is_left or not _may_be_read(truth, answer, key)):
        waiting |= {"abandoned"}  # a group that is not calm may not have said which topics it reads
    return waiting | {"losing"} if 0 <= offset < start.high else waiting


def _may_be_read(truth: Truth, answer: Answer, key: Key) -> bool:
    """Whether a member may read the topic."""
    read = truth.topics_read(*key[:2], answer.asked)
    return not read or key[2] in read


def _statuses_in_the_log(truth: Truth, answer: Answer, lag: Row, committed: list[Committed | None]) -> set[str]:
    if lag["committed_offset"] > lag["log_end_offset"]:
        return {"unknown"} if lag["problem"] else {"a reason why what is read is unknown"}
    if lag["lag"] == 0 or (lag["lag_ms"] == 0 and not lag["is_waiting"]):
        return {"ok"}
    if lag["lag_ms"] == 0:  # the record's time is ahead: it waits since it was found
        return set(ORDER) - {"losing", "unknown", "unstable"}
    if lag["lag_ms"] is None:
        return {"unknown"} if lag["problem"] else {"a reason why the age is unknown"}
    if (waits_ms := _waits_ms(lag)) == 0:
        return {"ok"}  # what is left was aborted
    key: Key = _key(lag)
    at_ms = ns_of(lag["measured_time"]) // MS
    commits = [one for one in truth.commits[key] if one.offset >= 0 and one.began < answer.asked]
    if any(one.outcome != DONE for one in commits) or committed[0] is None:
        return set(ORDER) - {"losing", "unknown", "unstable"}  # it may have been made or not
    since_commit = _since(at_ms, commits[-1])
    moves = [later for one, later in pairwise(commits) if later.offset != one.offset] or commits[:1]
    since_move = _since(at_ms, moves[-1])
    patience = _patience(truth, answer, key[:2])
    quiet, stuck = (Between(min(waits_ms, one.low), min(waits_ms, one.high)) for one in
                    (since_commit, since_move))  # fmt: skip
    surely_not = {name for name, one in (("stopped", quiet), ("stalled", stuck)) if one.high < patience.low}
    if quiet.low >= patience.high:
        return {"stopped"}
    if stuck.low >= patience.high:
        return {"stalled", "stopped"} - surely_not
    return ({"stopped", "stalled"} - surely_not) | {_on_the_way(lag, [one.offset for one in commits])}


def _since(at_ms: int, commit: Committed) -> Between:
    """How long ago it was made, in ms."""
    began, ended = commit.times
    return Between(at_ms - ended // MS, at_ms - began // MS)


def _on_the_way(lag: Row, offsets: list[int]) -> str:
    """Of a group that moves: whether it is behind where it has been, or late."""
    had_been = max((one for one, later in pairwise(offsets) if later < one <= lag["log_end_offset"]), default=0)
    if lag["committed_offset"] < had_been:
        return "rewound"
    waits_ms, margin_ms = _waits_ms(lag), lag["retention_margin_ms"]
    is_half_gone = margin_ms is not None and margin_ms < waits_ms
    return "lagging" if waits_ms >= LAGGING_MS or is_half_gone else "ok"


def _waits_ms(lag: Row) -> int:
    """How long a record has waited that was not aborted; those of an open transaction count where there is no other."""
    committed_ms = lag["committed_lag_ms"]
    is_stable = lag["last_stable_offset"] == lag["log_end_offset"]
    return int(lag["lag_ms"] if committed_ms is None or (not committed_ms and not is_stable) else committed_ms)


def _patience(truth: Truth, answer: Answer, name: tuple[str, str]) -> Between:
    """How long a group may be silent: a group that commits seldom is given more, up to three hours."""
    if not truth.joining.get(name) and not truth.assigned.get(name):
        return Between(PATIENCE_MS, MOST_PATIENCE_MS)
    if not truth.is_calm(*name, answer.asked - CALM_NS, answer.answered + CALM_NS, DEATH_NS):
        return Between(EMPTY_PATIENCE_MS, MOST_PATIENCE_MS)
    if truth.members(*name, answer.asked):
        return Between(PATIENCE_MS, MOST_PATIENCE_MS)
    return Between(EMPTY_PATIENCE_MS, EMPTY_PATIENCE_MS)


def _compare_group(truth: Truth, answer: Answer, parts: list[Row | None], row: Row | None, verdict: Verdict) -> None:
    """A group is as its worst partition, unless it rebalances all the time and nothing is worse."""
    known = [one for one in parts if one is not None]
    if not known:
        return
    key = (known[0]["cluster"], known[0]["group_id"], None, None)
    if row is None:
        verdict.differences.append(_difference(key, "no status of the group"))
        return
    verdict.comparisons += 3
    worst = max((one["status"] for one in known), key=ORDER.index)
    wanted = {worst}
    if worst == "abandoned":  # of a group with members only the topics that they read count
        wanted.add("ok")
    if ORDER.index(worst) < ORDER.index("unstable"):
        least, most = rebalances(truth, answer, key[:2])
        wanted = {"unstable"} if least >= REBALANCES else wanted | {"unstable"} if most >= REBALANCES else wanted
    if row["status"] not in wanted:
        text = f"the group is {row['status']} ({row['rule']}), truth {' or '.join(sorted(wanted))}"
        verdict.differences.append(_difference(key, text))
    lags, ages = ([one[name] for one in known if one[name] is not None] for name in ("lag", "lag_ms"))
    sums = (sum(lags) if lags else None, max(ages, default=None))
    if (row["lag"], row["lag_ms"]) != sums or not row["rule"]:
        text = f"the group's lag is {row['lag']} and {row['lag_ms']} ms ({row['rule']!r}), truth {sums}"
        verdict.differences.append(_difference(key, text))


def rebalances(truth: Truth, answer: Answer, name: tuple[str, str]) -> Between:
    """In the last ten minutes: each session of one member came with one; who comes or goes brings some."""
    since, sure = answer.asked - REBALANCES_NS, answer.answered - REBALANCES_NS
    sessions = Counter(
        actor for actor, _ in {(one.actor, one.session) for one in truth.assigned.get(name, ())
                               if one.places and sure < one.ended < answer.asked}
    )  # fmt: skip
    joined = sum(one.ended > since for one in truth.joining.get(name, ()))
    left = sum(one.ended > since for one in truth.left.get(name, ()))
    grown = len(truth.changed) if joined or left else 0
    return Between(max(sessions.values(), default=0), MOST_REBALANCES * (joined + left) + grown)


def _compare_stale(truth: Truth, answer: Answer, verdict: Verdict) -> None:
    """Offsets below the log's start, with what was lost; nothing else is stale in a run that is so short."""
    lost = {_key(row): row["lost"] for row in answer.content["stale"] if row["reason"] == "below_log_start"}
    for lag in answer.content["lag"]:
        key = _key(lag)
        if (key[0], key[2]) in truth.removed or lag["measured_time"] is None:
            continue
        at = ns_of(lag["measured_time"])
        start = truth.logs[key[0], key[2], key[3]].start(at, answer.answered)
        bounds = Between(*(max(0, one - max(0, lag["committed_offset"])) for one in start))
        verdict.comparisons += 1
        if lost.pop(key, 0) not in bounds:
            verdict.differences.append(_difference(key, f"stale, or not: truth {bounds} records were lost"))
    for row in answer.content["stale"]:
        key = _key(row)
        name = (key[0], key[2])
        last = max((one.times[1] for one in truth.commits.get(key, ())), default=answer.answered)
        is_old = answer.asked - last > DAY_MS * MS
        is_right = name in truth.removed if row["reason"] == "topic_deleted" else is_old or name in truth.removed
        if row["reason"] != "below_log_start" and not is_right:
            verdict.differences.append(_difference(key, f"stale: {row['reason']}, truth it is of now"))


def spoilt(truth: Truth, answer: Answer, rng: random.Random) -> Iterable[Answer]:
    """The tables with one thing wrong, in each way: each status that is not so, and rows too few."""
    content = answer.content
    known = {_key(row) for row in content["lag"] if row["lag"] is not None and row["lag_ms"] is not None}
    known = {key for key in known if (key[0], key[2]) not in truth.removed}
    rows = [row for row in content["status"] if row["topic"] is not None and _key(row) in known]
    for wrong in ("unknown", "losing", "rule", "lag", "row", "stale", "expiring"):
        changed = {name: list(content[name]) for name in content}
        if wrong in ("stale", "expiring"):
            found = [row for row in content["stale"] if row["reason"] == "below_log_start"]
            if wrong == "stale" and found:
                changed["stale"].remove(rng.choice(found))
            elif wrong == "expiring" and rows:
                gone = {"reason": "expiring", "lost": None}
                changed["stale"].append({**{name: rng.choice(rows)[name] for name in _PLACE}, **gone})
            else:
                continue
        elif rows := [row for row in rows if row["status"] != wrong]:
            row = rng.choice(rows)
            changed["status"].remove(row)
            if wrong != "row":
                value = {"rule": "", "lag": -1}.get(wrong, wrong)
                changed["status"].append({**row, "status" if wrong in ORDER else wrong: value})
        yield replace(answer, content=changed)


_PLACE = ("cluster", "group_id", "topic", "partition")
