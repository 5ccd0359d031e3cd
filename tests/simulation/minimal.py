"""The smallest story of a simulation that still breaks the same rule."""

from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from functools import partial
from typing import Any, Protocol, TypeVar

from tests.simulation.observation import Violation


class Outcome(Protocol):
    """What came of a run."""

    @property
    def plan(self) -> Any: ...
    @property
    def steps(self) -> int: ...
    @property
    def violation(self) -> Violation | None: ...


One = TypeVar("One", bound=Outcome)


def smallest(outcome: One, run: Callable[[Any, int], One], faults: Sequence[str], *, attempts: int = 20) -> One:
    """A simpler plan that breaks the same rule: without most faults, with fewer clients, in fewer steps."""
    assert outcome.violation is not None
    best, checker = outcome, outcome.violation.checker
    simpler_plans: list[Callable[[Any], Any]] = [partial(replace, **{fault: 0.0}) for fault in faults]
    simpler_plans += [partial(replace, client_count=count) for count in (4, 3, 2)]
    simpler_plans.append(partial(replace, group_count=1))
    for simplify in simpler_plans:
        for seed in range(best.plan.seed, best.plan.seed + attempts):
            simpler = run(replace(simplify(best.plan), seed=seed), best.steps)
            if simpler.violation is not None and simpler.violation.checker == checker:
                best = simpler
                break
    while best.steps > 50:
        shorter = run(best.plan, best.steps // 2)
        if shorter.violation is None or shorter.violation.checker != checker:
            break
        best = shorter
    return best


def plan_text(plan: Any) -> str:
    """What makes up a plan, in one line."""
    return " ".join(f"{field.name}={getattr(plan, field.name)}" for field in fields(plan))
