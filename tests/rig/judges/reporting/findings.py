"""What the report says is to be acted on: each finding must be so, and no group that waits or loses may be missing."""

import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tests.rig.asking import Verdict
from tests.rig.judges.reporting.resting import Resting, name_of, place_of
from tests.rig.judges.status import REBALANCES, rebalances
from tests.rig.truth import Between

NAME = "report"
Row = Mapping[str, Any]
Wrong = tuple[str, str, str]
"""Cluster, group, and what is wrong."""

TOLD = ("losing", "stopped", "stalled", "rewound", "lagging")
"""Statuses, which are judged in the tables, of groups that need attention."""
URGENT = ("expiring", "standing", "behind", "rest")
"""The findings that they lead to."""


def judge(resting: Resting, content: Row, verdict: Verdict) -> Iterator[Wrong]:
    """The findings of a report of now."""
    findings: Sequence[Row] = content["findings"]
    for finding in findings:
        verdict.comparisons += 2
        verdict.counts[f"findings of the report: {finding['kind']}"] += 1
        for text in _judge(resting, finding, content, verdict):
            yield (*name_of(finding), f"finding {finding['kind']} {finding['value']} {finding['unit']}: {text}")
    wanted = {name_of(group) for group in content["groups"] if group["status"] in TOLD}
    unknown = {name_of(group) for group in content["groups"] if group["status"] == "unknown"}
    found = {name_of(one) for one in findings if one["kind"] in URGENT}
    verdict.comparisons += len(wanted)
    for name in sorted((wanted ^ found) - unknown):
        yield *name, f"{'no' if name in wanted else 'a'} finding, truth {'one' if name in wanted else 'none'}"
    stormy = {name_of(one) for one in findings if one["kind"] in ("storm", "calmed")}
    for group in content["groups"]:
        least, _ = rebalances(resting.truth, resting.answer, name_of(group))
        if least >= REBALANCES and name_of(group) not in stormy:
            yield *name_of(group), f"no finding of a storm, truth {least} rebalances at least"


def _judge(resting: Resting, finding: Row, content: Row, verdict: Verdict) -> Iterator[str]:
    cluster, group = name_of(finding)
    keys = resting.keys(cluster, group)
    match finding["kind"]:
        case "held":
            yield from _held(resting, finding)
        case "storm" | "calmed":
            bounds = rebalances(resting.truth, resting.answer, (cluster, group))
            if round(finding["value"]) not in bounds:
                yield f"truth {bounds} rebalances"
        case _ if finding["unit"] == "records lost":
            if keys is None:
                verdict.leave(f"{NAME}: a finding of a group whose topics were changed")
                return
            if any(resting.offset(key) == -1 for key in keys):
                verdict.leave(f"{NAME}: a finding of a group of which a commit's outcome is not known")
                return
            lost = [resting.lost(key) for key in keys]
            bounds = Between(sum(one.low for one in lost), sum(one.high for one in lost))
            if finding["value"] not in bounds:
                yield f"truth {bounds} records were lost"
        case _ if finding["unit"] == "ms left":
            yield from _overtaken(resting, finding, verdict)
        case "standing" | "behind" | "rest" if finding["value"] is not None:
            yield from _waiting(resting, finding, content, verdict)
        case _ if finding["unit"] == "records/s more":
            if finding["value"] <= 0:
                yield "it does not grow"
        case _:
            verdict.leave(f"{NAME}: a finding of kind {finding['kind']} in {finding['unit']}")


def _held(resting: Resting, finding: Row) -> Iterator[str]:
    """By a transaction that nobody has ended."""
    place = (finding["cluster"], *place_of(finding["partition"]))
    log = resting.truth.logs.get(place)
    still = [] if log is None else [
        min(record.offset for record in records) for name, records in log.transactions.items()
        if (place[0], name) not in resting.truth.transactions
    ]  # fmt: skip
    if log is not None and log.has_unplaced:
        return
    if log is None or not still:
        yield "truth: no transaction is open there"
        return
    held = log.end(resting.at, resting.at).low - min(still)
    if finding["value"] != held:
        yield f"truth {held} offsets from the first of its records on"


def _overtaken(resting: Resting, finding: Row, verdict: Verdict) -> Iterator[str]:
    """Of a partition, by how much longer its oldest record is kept."""
    cluster, group = name_of(finding)
    key = (cluster, group, *place_of(finding["partition"]))
    if resting.keys(cluster, group) is None or key not in resting.truth.commits:
        verdict.leave(f"{NAME}: a finding of a group whose topics were changed")
        return
    kept_ms = resting.retention_ms(key)
    if kept_ms < 0:
        yield "truth: its records are kept"
        return
    # Behind aborted records there may be an open transaction: then these count, too.
    ages = [resting.age_ms(key), resting.age_ms(key, is_aborted_too=False)]
    left = sorted(max(0, kept_ms - age) for age in ages if age is not None)
    if len(left) < len(ages):
        return  # one of them is not known to the millisecond
    if left[0] - 1 > finding["value"]:
        yield f"truth {left[0]} ms are left at least"
    elif finding["value"] > left[-1] + 1:
        verdict.leave(f"{NAME}: a finding of time that is left of a group that may read until then")


def _waiting(resting: Resting, finding: Row, content: Row, verdict: Verdict) -> Iterator[str]:
    """As long as the record that waits longest in the partition that it is about."""
    cluster, group = name_of(finding)
    (row,) = (one for one in content["groups"] if name_of(one) == (cluster, group))
    keys = resting.keys(cluster, group)
    ages = [resting.age_ms(key) for key in keys or () if resting.offset(key) is not None]
    if row["unknown"] or None in ages or not ages:
        verdict.leave(f"{NAME}: a finding of a group of which it is not known how long records have waited")
        return
    longest = max(age for age in ages if age is not None)
    if finding["partition"] is not None:
        longest = resting.age_ms((cluster, group, *place_of(finding["partition"]))) or 0
    if abs(finding["value"] - longest) > 1:
        yield f"truth {longest} ms"


def spoilt(content: Row, rng: random.Random) -> Iterator[tuple[str, dict[str, Any]]]:
    """With one finding that is not so, or too few, in each way."""
    findings: list[Row] = list(content["findings"])
    for unit in ("records lost", "ms stopped", "offsets held"):
        own = [one for one in findings if one["unit"] == unit and one["kind"] != "stale" and one["value"] is not None]
        if not own:
            continue
        one = rng.choice(own)
        others = [other for other in findings if other is not one]
        worse = {**one, "value": one["value"] + 1_000_000_000}
        if unit != "ms stopped":  # of some groups it is not known how long records have waited
            yield f"another value of a finding in {unit}", {**content, "findings": [*others, worse]}
        if one["kind"] in URGENT:
            yield f"a finding in {unit} too few", {**content, "findings": others}
    quiet = [one for one in content["groups"] if one["status"] == "ok"]
    if quiet:
        name = rng.choice(quiet)
        made = {"kind": "standing", "cluster": name["cluster"], "group_id": name["group_id"], "partition": None,
                "value": 7, "unit": "ms stopped", "time": None, "note": "", "command": []}  # fmt: skip
        yield "a finding too many", {**content, "findings": [*findings, made]}
