"""The pipeline's tables: once while traffic runs, by the times that its rows state, and once at rest."""

import random
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from itertools import groupby, pairwise, takewhile
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from tests.rig import lake
from tests.rig.actors.sleeping import log_partition_of
from tests.rig.asking import Answer, Desk, Difference, Verdict
from tests.rig.clusters import SETTINGS
from tests.rig.facts import DONE, Committed
from tests.rig.truth import Key, Truth, tries

NAME = "pipeline"
SLACK_NS = 1_500_000_000
"""A row's measured_time is of a request that took its time, at most so long before or after."""

MS = 1_000_000
HELD_MS = 60_000
"""Commits that are unread for so long make lag unknown."""

MINUTE_NS = 60_000 * MS

Row = dict[str, Any]
Tables = Mapping[str, list[Row]]


def ask(desk: Desk, clusters: Iterable[str], *words: str) -> Answer:
    """Brings the tables up to date; `words` are the command and more options."""
    servers = [word for one in clusters for word in ("--bootstrap-server", f"{one}={desk.servers[one]}")]
    chosen = ("--table-format", desk.lake) if desk.lake and words[0] == "snapshot" else ()
    return desk.run("all", "pipeline", *words, "--tables", str(folder(desk)), *chosen, *servers,
                    "--conf", "spark.sql.shuffle.partitions=2")  # fmt: skip


def folder(desk: Desk) -> Path:
    return desk.folder / "tables"


def read(desk: Desk, name: str) -> list[Row]:
    rows: list[Row] = pq.read_table(folder(desk) / name).to_pylist()
    return rows


def look(desk: Desk, answer: Answer, names: Iterable[str]) -> Answer:
    """The answer with the rows of tables instead of its text; of a lake where the run has one."""
    about = {"text": answer.content}
    rows = lake.read(desk.lake, folder(desk), names, desk.environment) if desk.lake else {
        name: read(desk, name) for name in names
    }  # fmt: skip
    return Answer("all", answer.asked, answer.answered, rows, answer.status, answer.errors, about)


def judge_running(truth: Truth, answer: Answer) -> Verdict:
    """Lag at the time that each row states, while traffic runs."""
    verdict = _began(answer)
    truth, answer = without_held(truth, answer, verdict)
    for row in _lasting(truth, answer.content["lag"]):
        verdict.comparisons += 3
        for text in _lag_row(truth, row, SLACK_NS):
            verdict.differences.append(_difference(f"lag while traffic runs: {text}", row))
    found = {_key(row) for row in answer.content["lag"]}
    for key in _kept(truth).keys() - found:
        verdict.comparisons += 1
        if None not in truth.committed(key, answer.asked - SLACK_NS, answer.answered):
            text = f"lag while traffic runs: no row of {key[2]}-{key[3]}"
            verdict.differences.append(Difference(NAME, key[0], text, key[2], key[1]))
    return verdict


def judge_resting(truth: Truth, answer: Answer) -> Verdict:
    """All tables, exactly."""
    verdict = _began(answer)
    truth, answer = without_held(truth, answer, verdict)
    tables = answer.content
    for row in _lasting(truth, tables["lag"]):
        verdict.comparisons += 6
        for text in [*_lag_row(truth, row, 0), *_age(truth, row, answer.answered)]:
            verdict.differences.append(_difference(f"lag: {text}", row))
    lags = {_key(row): row["committed_offset"] for row in _lasting(truth, tables["lag"])}
    offsets = {key: {one and one[0] for one in some} for key, some in _committed(truth, answer.asked).items()}
    _same("lag at", lags, offsets, verdict)
    _compare_commits(truth, tables, verdict)
    _compare_current(truth, tables, answer, verdict)
    _compare_rewinds(truth, tables, verdict)
    _compare_rates(truth, tables, verdict)
    _compare_members(truth, tables, verdict)
    return verdict


def without_held(truth: Truth, answer: Answer, verdict: Verdict) -> tuple[Truth, Answer]:
    """Without groups whose partition of the offsets topic an open transaction has held back for long: their lag is
    null, and the reason is given.
    """
    held = {(row["cluster"], row["log_partition"]): row["problem"] for row in answer.content.get("freshness", ())
            if row["behind_ms"] is not None and row["behind_ms"] >= HELD_MS}  # fmt: skip

    def is_read(cluster: str, group: str | None) -> bool:
        return group is None or (cluster, _log_partition(group)) not in held

    for row in answer.content["lag"]:
        if not is_read(row["cluster"], row["group_id"]):
            verdict.leave(f"{NAME}: an open transaction holds back the group's commits")
            problem = held[row["cluster"], _log_partition(row["group_id"])]
            if (row["lag"], row["lag_ms"], row["problem"]) != (None, None, problem) or not problem:
                text = f"lag {row['lag']}, {row['lag_ms']} ms, problem {row['problem']!r}, truth: null, {problem!r}"
                verdict.differences.append(_difference(text, row))
    content = {name: [row for row in rows if "group_id" not in row or is_read(row["cluster"], row["group_id"])]
               for name, rows in answer.content.items()}  # fmt: skip
    commits = defaultdict(list, {key: some for key, some in truth.commits.items() if is_read(*key[:2])})
    assigned = defaultdict(list, {name: some for name, some in truth.assigned.items() if is_read(*name)})
    return replace(truth, commits=commits, assigned=assigned), replace(answer, content=content)


def _log_partition(group: str) -> int:
    return log_partition_of(group, int(SETTINGS["offsets.topic.num.partitions"]))


def judge_as_of(truth: Truth, answer: Answer, at: int) -> Verdict:
    """The offsets of a moment at which all rested."""
    verdict = _began(answer)
    found = {
        _key(row): (row["committed_offset"], row["metadata"] or "")
        for row in _lasting(truth, answer.content["offsets_as_of"])
    }
    _same("as of", found, _committed(truth, at), verdict)
    return verdict


def _began(answer: Answer) -> Verdict:
    verdict = Verdict()
    if answer.status:
        text = f"status {answer.status}: {answer.errors[-600:]}"
        verdict.differences.append(Difference(NAME, "all", text))
    return verdict


def _difference(text: str, row: Mapping[str, Any]) -> Difference:
    return Difference(NAME, row["cluster"], text, row.get("topic"), row["group_id"])


def _key(row: Mapping[str, Any]) -> Key:
    return (row["cluster"], row["group_id"], row["topic"], row["partition"])


def _lasting(truth: Truth, rows: Iterable[Row]) -> list[Row]:
    """Without topics that were removed, of which groups may or may not have offsets."""
    return [row for row in rows if (row["cluster"], row["topic"]) not in truth.removed]


def _found(truth: Truth, rows: Iterable[Row]) -> dict[Key, object]:
    return {_key(row): (row["committed_offset"], row["metadata"] or "") for row in _lasting(truth, rows)}


def _kept(truth: Truth) -> dict[Key, list[Committed]]:
    return {key: some for key, some in truth.commits.items() if (key[0], key[2]) not in truth.removed}


def ns_of(time: datetime) -> int:
    """Of a table's time, which is in microseconds of UTC."""
    gap = time.replace(tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)
    return ((gap.days * 86_400 + gap.seconds) * 1_000_000 + gap.microseconds) * 1000


def _lag_row(truth: Truth, row: Row, slack: int) -> Iterable[str]:
    where = f"{row['topic']}-{row['partition']}"
    if row["measured_time"] is None:
        yield f"{where} was not measured"
        return
    at = ns_of(row["measured_time"])
    asked, answered = at - slack, at + slack
    log = truth.logs[row["cluster"], row["topic"], row["partition"]]
    commits = [None if one is None else one.offset for one in truth.committed(_key(row), asked, answered)]
    if row["committed_offset"] not in commits:
        yield f"{where} committed_offset {row['committed_offset']}, truth {commits} at {row['measured_time']}"
    if row["log_end_offset"] not in log.end(asked, answered):
        yield f"{where} log_end_offset {row['log_end_offset']}, truth {log.end(asked, answered)}"
    stable = truth.last_stable((row["cluster"], row["topic"], row["partition"]), asked, answered)
    if row["last_stable_offset"] not in stable:
        yield f"{where} last_stable_offset {row['last_stable_offset']}, truth {stable}"
    lag = max(0, row["log_end_offset"] - max(0, row["committed_offset"]))
    if row["lag"] != lag:
        yield f"{where} lag {row['lag']}, truth {lag}"


def _age(truth: Truth, row: Row, answered: int) -> Iterable[str]:
    """How long the oldest record to read has waited, to the millisecond."""
    where = f"{row['topic']}-{row['partition']} at {row['committed_offset']}"
    log = truth.logs[row["cluster"], row["topic"], row["partition"]]
    if log.has_unplaced:
        return
    at = ns_of(row["measured_time"])
    starts, offset = log.start(at, answered), max(0, row["committed_offset"])
    first = log.next_record(offset)
    if first is not None and truth.is_compacted(first):
        return
    if offset < starts.high and row["lag_basis"] != "exact":
        return  # what was lost tells no time, and the row says that it is not exact
    # Where the log began when the record was read is known within bounds only.
    begins = range(max(offset, starts.low), max(offset, starts.high) + 1)
    records = [log.next_record(begin) for begin in begins]
    wanted = {0 if record is None else max(0, at // MS - record.timestamp) for record in records}
    is_wanted = row["lag_ms"] is not None and any(abs(row["lag_ms"] - one) <= 1 for one in wanted)
    if row["lag_basis"] != "exact" or not is_wanted:
        yield f"{where} lag_ms {row['lag_ms']} {row['lag_basis']}, truth {' or '.join(map(str, sorted(wanted)))} exact"
    if row["last_stable_offset"] != row["log_end_offset"]:
        return
    left = [truth.next_committed((row["cluster"], row["topic"], row["partition"]), begin) for begin in begins]
    if any(record is not None and truth.is_compacted(record) for record in left):
        return
    wanted = {0 if record is None else max(0, at // MS - record.timestamp) for record in left}
    if row["committed_lag_ms"] is None or not any(abs(row["committed_lag_ms"] - one) <= 1 for one in wanted):
        yield f"{where} committed_lag_ms {row['committed_lag_ms']}, truth {' or '.join(map(str, sorted(wanted)))}"


def _same(what: str, found: Mapping[Key, object], wanted: Mapping[Key, set[Any]], verdict: Verdict) -> None:
    verdict.comparisons += len(wanted)
    for key in sorted(found.keys() | wanted.keys()):
        possible = wanted.get(key, {None})
        if found.get(key) not in possible:
            text = f"{what}: {key[2]}-{key[3]} is {found.get(key)}, truth {' or '.join(sorted(map(str, possible)))}"
            verdict.differences.append(Difference(NAME, key[0], text, key[2], key[1]))


def _committed(truth: Truth, at: int) -> dict[Key, set[tuple[int, str] | None]]:
    """What may be committed at a moment of rest; None: nothing. More than one: the outcome of a commit is unknown."""
    return {key: {one and (one.offset, one.metadata) for one in truth.committed(key, at, at)} for key in _kept(truth)}


def _compare_current(truth: Truth, tables: Tables, answer: Answer, verdict: Verdict) -> None:
    found = {
        _key(row): (row["committed_offset"], row["metadata"] or "")
        for row in _lasting(truth, tables["current_offsets"])
    }
    _same("current_offsets", found, _committed(truth, answer.asked), verdict)


def _compare_commits(truth: Truth, tables: Tables, verdict: Verdict) -> None:
    """Every commit once, in order, at a time between its beginning and its end."""
    found: dict[Key, list[Row]] = defaultdict(list)
    for row in sorted(_lasting(truth, tables["commits"]), key=lambda row: row["log_offset"]):
        found[_key(row)].append(row)
    for key, commits in _kept(truth).items():
        verdict.comparisons += len(commits)
        rows = found.pop(key, [])
        text = _sequence(commits, rows)
        if text:
            verdict.differences.append(
                Difference(NAME, key[0], f"commits of {key[2]}-{key[3]}: {text}", key[2], key[1])
            )
    for key in found:
        verdict.differences.append(Difference(NAME, key[0], f"commits of {key[2]}: truth none", key[2], key[1]))


def _sequence(commits: list[Committed], rows: list[Row]) -> str:
    """What is wrong with the rows. A commit that took long may be there more than once, and a request that its client
    has given up may be carried out later. Acknowledged commits come in order; of the others, whose outcome is unknown,
    each may be anywhere in its time, and takes no row that an acknowledged one may need.
    """
    sure = [number for number, commit in enumerate(commits) if commit.outcome == DONE]
    unsure = [number for number, commit in enumerate(commits) if commit.outcome != DONE]
    found: Counter[int] = Counter()
    late: list[Row] = []
    first = 0
    for row in rows:
        fitting = [number for number in _begun(commits, sure[first:], row) if _is_of(row, commits[number])]
        fitting += [number for number in _begun(commits, unsure, row) if _is_of(row, commits[number])]
        free = [number for number in fitting if not found[number]]
        free += [number for number in fitting if found[number] < tries(commits[number])]
        if not free:
            late.append(row)
            continue
        found[free[0]] += 1
        if commits[free[0]].outcome == DONE:
            first = bisect_left(sure, free[0])
    for number, commit in enumerate(commits):
        if commit.outcome == DONE and not found[number]:
            return f"truth {commit.offset} between {commit.began} and {commit.ended} ns, which is not there"
    for row in late:
        given_up = (number for number, commit in enumerate(commits) if _is_late(row, commit, found[number]))
        which = next(given_up, None)
        if which is None:
            return f"{row['committed_offset']} at {row['commit_time']}, truth none"
        found[which] += 1
    return ""


def _begun(commits: list[Committed], numbers: Iterable[int], row: Row) -> Iterable[int]:
    """The numbers of commits that had begun when the row was written."""
    at = ns_of(row["commit_time"] or row["log_time"]) // MS
    return takewhile(lambda number: commits[number].times[0] // MS <= at, numbers)


def _is_of(row: Row, commit: Committed) -> bool:
    return row["committed_offset"] == (None if commit.offset < 0 else commit.offset) and _is_then(row, commit)


def _is_late(row: Row, commit: Committed, found: int) -> bool:
    at = ns_of(row["commit_time"] or row["log_time"]) // MS
    return found < tries(commit) > 1 and row["committed_offset"] == commit.offset and commit.times[0] // MS <= at


def _is_then(row: Row, commit: Committed) -> bool:
    at = row["commit_time"] or row["log_time"]
    began, ended = commit.times
    return began // MS <= ns_of(at) // MS <= ended // MS


def _compare_rewinds(truth: Truth, tables: Tables, verdict: Verdict) -> None:
    wanted: Counter[tuple[Key, int, int]] = Counter()
    uncertain = _uncertain_turns(truth, tables)
    for key, commits in _kept(truth).items():
        if key in uncertain:
            verdict.leave(f"{NAME}: rewinds where a commit was refused or sent again")
            continue
        known = [one.offset for one in commits if one.offset >= 0]
        wanted.update((key, one, other) for one, other in pairwise(known) if other < one)
    found = Counter((_key(row), row["from_offset"], row["to_offset"]) for row in _lasting(truth, tables["rewinds"])
                    if row["direction"] == "back" and _key(row) not in uncertain)  # fmt: skip
    verdict.comparisons += wanted.total()
    for key, before, after in (wanted - found) + (found - wanted):
        counts = f"{found[key, before, after]}, truth {wanted[key, before, after]}"
        text = f"rewinds of {key[2]}-{key[3]} from {before} to {after}: {counts}"
        verdict.differences.append(Difference(NAME, key[0], text, key[2], key[1]))


def _uncertain_turns(truth: Truth, tables: Tables) -> set[Key]:
    """Where a commit that was refused or sent again may not be there, or twice."""
    rows: dict[Key, list[int]] = defaultdict(list)
    for row in sorted(tables["commits"], key=lambda row: row["log_offset"]):
        if row["committed_offset"] is not None:
            rows[_key(row)].append(row["committed_offset"])
    return {
        key for key, commits in _kept(truth).items()
        if _has_unsure(commits) and _turns(one.offset for one in commits if one.offset >= 0) != _turns(rows[key])
    }  # fmt: skip


def _has_unsure(commits: Iterable[Committed]) -> bool:
    return any(one.outcome != DONE or tries(one) > 1 for one in commits)


def _turns(offsets: Iterable[int]) -> list[int]:
    """Without what was committed again at once."""
    return [offset for offset, _ in groupby(offsets)]


def _compare_rates(truth: Truth, tables: Tables, verdict: Verdict) -> None:
    """Commits by minute; one that was under way at its turn may count in either."""
    surely: Counter[tuple[str, str, int]] = Counter()
    perhaps: Counter[tuple[str, str, int]] = Counter()
    for key, commits in truth.commits.items():
        for one in commits:
            if one.offset >= 0:
                minutes = {at // MINUTE_NS for at in one.times}
                surely.update((*key[:2], minute) for minute in minutes if len(minutes) == 1 and one.outcome == DONE)
                for turn in minutes:
                    perhaps[key[0], key[1], turn] += tries(one)
    found = {(row["cluster"], row["group_id"], ns_of(row["minute"]) // MINUTE_NS): row["offset_commits"]
             for row in tables["rates"] if row["group_id"] is not None}  # fmt: skip
    for minute in perhaps.keys() | found.keys():
        verdict.comparisons += 1
        count = found.get(minute, 0)
        if not surely[minute] <= count <= perhaps[minute]:
            text = f"rates: {count} commits in minute {minute[2]}, truth {surely[minute]} to {perhaps[minute]}"
            verdict.differences.append(Difference(NAME, minute[0], text, group=minute[1]))


def _compare_members(truth: Truth, tables: Tables, verdict: Verdict) -> None:
    """Each session of a member that was assigned anything has joined.

    Where a group was not seen to be created (its first generation was not written), neither was who joined it first.
    """
    created = _created(tables)
    joined = Counter((row["cluster"], row["group_id"], row["client_id"])
                     for row in tables["group_events"] if row["event"] == "joined")  # fmt: skip
    for (cluster, group), some in truth.assigned.items():
        sessions = {(one.actor, one.session) for one in some if one.places}
        for actor, count in Counter(actor for actor, _ in sessions).items():
            verdict.comparisons += 1
            if joined[cluster, group, actor] < count - ((cluster, group) not in created):
                text = f"group_events: {actor} has joined {joined[cluster, group, actor]} times, truth {count}"
                verdict.differences.append(Difference(NAME, cluster, text, group=group))


def _created(tables: Tables) -> set[tuple[str, str]]:
    return {(row["cluster"], row["group_id"]) for row in tables.get("group_events", ()) if row["event"] == "created"}


def _worked(truth: Truth) -> set[tuple[str, str, str]]:
    """Who was assigned anything, in which group."""
    return {(*name, one.actor) for name, some in truth.assigned.items() for one in some if one.places}


def spoilt(truth: Truth, answer: Answer, rng: random.Random) -> Iterable[Answer]:
    """The tables with one thing wrong, in each way."""
    for name, column in (("lag", "lag"), ("lag", "lag_ms"), ("lag", "log_end_offset"), ("commits", "committed_offset"),
                         ("current_offsets", "committed_offset"), ("rewinds", "to_offset"), ("rates", "offset_commits"),
                         ("group_events", "event")):  # fmt: skip
        rows = answer.content.get(name, [])
        if "topic" in next(iter(rows), {}):
            rows = _lasting(truth, rows)
        if name == "rewinds" and rows:
            uncertain = _uncertain_turns(truth, answer.content)
            rows = [row for row in rows if row["direction"] == "back" and _key(row) not in uncertain]
        chosen = [row for row in rows if row[column] is not None and row.get("lag_basis", "exact") == "exact"
                  and row["group_id"] is not None and row[column] != ""]  # fmt: skip
        if name == "group_events":
            created, worked = _created(answer.content), _worked(truth)
            chosen = [row for row in chosen if row["event"] == "joined" and (row["cluster"], row["group_id"]) in created
                      and (row["cluster"], row["group_id"], row["client_id"]) in worked]  # fmt: skip
        if not chosen:
            continue
        wrong = rng.choice(chosen)
        if column == "lag_ms" and "commits" not in answer.content:
            continue  # while traffic runs, ages are not judged
        value = "spoilt" if column == "event" else wrong[column] + 100_000

        def is_wrong(row: Row, wrong: Row = wrong, name: str = name) -> bool:
            """Of a member's events all, as it may have joined again."""
            return row is wrong or (name == "group_events" and row["client_id"] == wrong["client_id"])

        whole = [{**row, column: value} if is_wrong(row) else row for row in answer.content[name]]
        yield Answer("all", answer.asked, answer.answered, {**answer.content, name: whole}, answer.status)


RESTING = ("lag", "commits", "current_offsets", "rewinds", "rates", "group_events", "groups", "stale", "status",
           "freshness", "share_offsets")  # fmt: skip
