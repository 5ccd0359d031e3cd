"""Bugs are data: the files `bugs*.txt` of the simulations have of each a title, where it is, who must find it, and the
lines that it takes out (`-`) and puts in (`+`).
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from tests.simulation.mutation import mutated

HERE = Path(__file__).parent
HEAD = re.compile(r"(\S+)\.py(?:, found by (.+?))?(?:, where (.+?))?(?:, seed (\d+))?")


@dataclass(frozen=True, slots=True)
class Bug:
    """`old`, which is once in the source of `module`, becomes `new`."""

    title: str
    module: str
    old: str
    new: str
    found_by: tuple[str, ...]
    """Names of checkers, one of which finds it; none: any may."""
    plan: dict[str, float | str]
    """What a plan must be like for the bug to show before long."""
    seed: int
    """The first whose run has found it, where that took many: it is tried before the others."""


def bugs_of(file: str) -> list[Bug]:
    """Those of a file below this folder."""
    parts = (HERE / file).read_text(encoding="utf-8").strip().split("\n\n")
    return [_bug(part.split("\n")) for part in parts if not part.startswith("# ")]


def _bug(lines: list[str]) -> Bug:
    title, head, *rest = lines
    old, new = ("\n".join(line[1:] for line in rest if line[0] == sign) for sign in "-+")
    found = HEAD.fullmatch(head)
    assert found is not None, head
    path, finders, plan, seed = found.groups(default="")
    names = tuple(finders.split(" or ")) if finders else ()
    return Bug(title, f"groupkeeper.{path.replace('/', '.')}", old, new, names, dict(_settings(plan)), int(seed or 1))


def _settings(plan: str) -> Iterator[tuple[str, float | str]]:
    for name, _, value in (one.partition("=") for one in plan.split()):
        yield name, value if value.isalpha() else float(value) if "." in value else int(value)


def finder(bug: Bug, runner: str, plans: str, steps: int, seeds: Iterable[int]) -> str | None:
    """Name of the checker that finds the bug first; None when no run does. `plans` names the runner's class of them."""
    with mutated(bug.module, bug.old, bug.new, runner) as mutant:
        for seed in (bug.seed, *seeds):
            plan = replace(getattr(mutant, plans).of_seed(seed), **bug.plan)
            violation = mutant.run(plan, steps).violation
            if violation is not None:
                return str(violation.checker)
    return None
