"""Reads the files of cases."""

import re
from pathlib import Path
from typing import Any, NamedTuple

from groupkeeper.rules.status import Facts

FOLDER = Path(__file__).parent
_MS = {"s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_NAMES = {"committed": "committed_offset", "lag": "lag", "lost": "lost", "in-log": "in_log", "waits": "waits_ms",
          "margin": "margin_ms", "still": "still_ms", "quiet": "quiet_ms", "had-been": "offset_before_rewind",
          "members": "members", "idle": "idle_ms", "gap": "usual_gap_ms"}  # fmt: skip
_FLAGS: dict[str, dict[str, Any]] = {
          "no-commit": {}, "beyond": {"is_beyond": True}, "unread": {"is_read": False}, "simple": {"is_simple": True},
          "nothing-waits": {"is_waiting": False, "waits_ms": 0}}  # fmt: skip
_OF_GROUP = ("members", "idle_ms", "usual_gap_ms", "is_simple")


class Case(NamedTuple):
    """`partitions`: the facts of each; `lately`: rebalances; `name`: the line, under its heading."""

    name: str
    partitions: tuple[Facts, ...]
    lately: int | None
    verdict: str


def ms(text: str) -> int:
    """90s, 2h59m, -1s"""
    size = sum(int(number) * _MS[unit] for number, unit in re.findall(r"(\d+)([smhd])", text))
    return -size if text.startswith("-") else size


def cases(name: str = "status.txt") -> list[Case]:
    """Those of a file."""
    found, title = [], ""
    for line in (FOLDER / name).read_text("utf-8").splitlines():
        if line.startswith("==="):
            title = line[3:].strip()
        elif line and not line.startswith("#"):
            facts, verdict = line.split(" -> ")
            found.append(_case(f"{title}: {facts}", facts, verdict))
    return found


def _case(name: str, text: str, verdict: str) -> Case:
    parts: list[dict[str, Any]] = [{}]
    lately = None
    for word in text.split():
        key, _, value = word.partition("=")
        if word == "partition":
            parts.append({})
        elif key == "rebalances":
            lately = int(value)
        elif value:
            field = _NAMES[key]
            parts[-1][field] = ms(value) if field.endswith("_ms") else int(value)
        else:
            parts[-1] |= _FLAGS[key]
    of_group = {field: one[field] for one in parts for field in _OF_GROUP if field in one}
    for one in parts:
        if "waits_ms" in one:
            one.setdefault("is_waiting", True)
        one |= of_group
    return Case(name, tuple(Facts(**one) for one in parts), lately, verdict)
