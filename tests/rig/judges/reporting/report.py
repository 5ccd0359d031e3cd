"""`pipeline report` of the tables as they are: its figures are theirs, which are judged by the truth; its findings,
lines and sections are judged by the facts themselves.
"""

import copy
import json
import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.rig.asking import Answer, Desk, Difference, Verdict
from tests.rig.judges.pipeline import MS, Row, folder, ns_of, without_held
from tests.rig.judges.reporting import findings, lines, sections
from tests.rig.judges.reporting.resting import Resting, name_of
from tests.rig.truth import Truth

NAME = "report"


def ask(desk: Desk) -> Answer:
    """Neither Spark nor a cluster is asked."""
    answer = desk.run("all", "pipeline", "report", "--tables", str(folder(desk)), "--output", "json")
    content = json.loads(answer.content)
    html = Path(content["report"]).read_text() if content["report"] else ""
    return replace(answer, content=content, about={"sections": sections.read(html)})


def judge(truth: Truth, tables: Answer, answer: Answer) -> Verdict:
    """`tables`: those that were judged, made at the same rest."""
    verdict = _figures_are_the_tables(tables.content, answer)
    known, _ = without_held(truth, tables, Verdict())
    held = {name for name in truth.by_group if not any(key[:2] == name for key in known.commits)}
    resting = _resting(known, tables, answer)
    content = {**answer.content, "groups": [one for one in answer.content["groups"] if name_of(one) not in held]}
    for name in ("findings", "lag_lines"):
        content[name] = [one for one in answer.content[name] if name_of(one) not in held]
    for cluster, group, text in (
        *findings.judge(resting, content, verdict), *lines.judge(resting, content, verdict),
        *sections.judge(resting, content, answer.about["sections"], verdict),
    ):  # fmt: skip
        verdict.differences.append(Difference(NAME, cluster, f"report: {text}", group=group or None))
    return verdict


def _resting(truth: Truth, tables: Answer, answer: Answer) -> Resting:
    measured = {(row["cluster"], row["group_id"], row["topic"], row["partition"]): ns_of(row["measured_time"]) // MS
                for row in tables.content["lag"] if row["measured_time"] is not None}  # fmt: skip
    return Resting(truth, answer, tables.asked, measured)


def _figures_are_the_tables(tables: Mapping[str, list[Row]], answer: Answer) -> Verdict:
    verdict = Verdict()
    found = answer.content
    wanted = _figures(tables, datetime.fromisoformat(found["since"]))
    groups = {(one["cluster"], one["group_id"]): one for one in found["groups"]}
    clusters = {one["cluster"]: one for one in found["clusters"]}
    for name, figures in {**wanted["groups"], **wanted["clusters"]}.items():
        row = groups.get(name) if isinstance(name, tuple) else clusters.get(name)
        for column, value in figures.items():
            verdict.comparisons += 1
            if row is None or row[column] != value:
                text = f"report: {column} of {name} is {row[column] if row else 'not there'}, in the tables {value}"
                verdict.differences.append(Difference(NAME, str(name), text))
    rewinds = Counter(_place(one) for one in found["rewinds"])
    if rewinds != wanted["rewinds"]:
        text = f"report: rewinds {rewinds - wanted['rewinds']}, in the tables {wanted['rewinds'] - rewinds}"
        verdict.differences.append(Difference(NAME, "all", text))
    for name in groups.keys() - wanted["groups"].keys():
        verdict.differences.append(Difference(NAME, name[0], "report: a group that is in no table", group=name[1]))
    if answer.status or found["problems"] or found["missing"]:
        text = f"report: status {answer.status}, {found['problems']}, missing {found['missing']} {answer.errors[:300]}"
        verdict.differences.append(Difference(NAME, "all", text))
    return verdict


def _place(row: Mapping[str, Any]) -> tuple[str, str, str, int]:
    return (row["cluster"], row["group_id"], row["topic"], row["partition"])


def _figures(tables: Mapping[str, list[Row]], since: datetime) -> dict[str, Any]:
    """Rates and rewinds are of the time that the report is of: some commits of a story say that they were made days
    ago.
    """
    since_ns = int(since.timestamp()) * 1000 * MS
    rewinds = [row for row in tables["rewinds"] if row["rewind_time"].replace(tzinfo=UTC) >= since]
    groups: dict[tuple[str, str], dict[str, Any]] = {}
    for row in tables["groups"]:
        groups[row["cluster"], row["group_id"]] = {"members": row["members"], "partitions": row["partitions"],
                                                   "lag": None, "lag_ms": None}  # fmt: skip
    for row in tables["status"]:
        if row["topic"] is None and (row["cluster"], row["group_id"]) in groups:
            own = groups[row["cluster"], row["group_id"]]
            own |= {name: row[name] for name in ("status", "rule", "lag", "lag_ms")}
    shares: dict[tuple[str, str], list[int | None]] = defaultdict(list)
    for row in tables["share_offsets"]:
        shares[row["cluster"], row["group_id"]].append(row["lag"])
    for key, lags in shares.items():
        if key in groups:
            known = [lag for lag in lags if lag is not None]
            groups[key] |= {"lag": sum(known) if known else None, "partitions": len(lags)}
    clusters: dict[str, dict[str, Any]] = {}
    for name in {cluster for cluster, _ in groups}:
        own_groups = [one for (cluster, _), one in groups.items() if cluster == name]
        lags = [one["lag"] for one in own_groups if one["lag"] is not None]
        clusters[name] = {
            "groups": len(own_groups),
            "members": sum(one["members"] for one in own_groups),
            "lag": sum(lags) if lags else None,
            "lag_ms": max((one["lag_ms"] for one in own_groups if one["lag_ms"] is not None), default=None),
            "commits": sum(row["offset_commits"] or 0 for row in tables["rates"]
                           if row["cluster"] == name and row["group_id"] is None
                           and ns_of(row["minute"]) >= since_ns),
            "rewinds": sum(row["cluster"] == name for row in rewinds),
        }  # fmt: skip
    return {"groups": groups, "clusters": clusters, "rewinds": Counter(_place(row) for row in rewinds)}


def spoilt(truth: Truth, tables: Answer, answer: Answer, rng: random.Random) -> Iterable[Answer]:
    """With one thing wrong, in each way."""
    yield from _spoilt_figures(answer, rng)
    known, _ = without_held(truth, tables, Verdict())
    resting = _resting(known, tables, answer)
    for _, content in (*findings.spoilt(answer.content, rng), *lines.spoilt(resting, answer.content, rng)):
        yield replace(answer, content=content)
    for _, worse in sections.spoilt(resting, answer.content, answer.about["sections"], rng):
        yield replace(answer, about={"sections": worse})


def _spoilt_figures(answer: Answer, rng: random.Random) -> Iterable[Answer]:
    """With a figure that is off by one, of each kind."""
    for rows, column in (("groups", "members"), ("groups", "lag"), ("clusters", "commits"), ("clusters", "lag"),
                         ("clusters", "groups")):  # fmt: skip
        content = copy.deepcopy(answer.content)
        chosen = [row for row in content[rows] if row[column] is not None]
        if chosen:
            rng.choice(chosen)[column] += 1
            yield replace(answer, content=content)
    yield replace(answer, content={**answer.content, "groups": answer.content["groups"][1:]})
