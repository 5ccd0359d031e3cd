"""The smallest story of a simulation that still breaks the same rule."""

from collections.abc import Callable
from dataclasses import fields, replace
from functools import partial
from typing import Any

from tests.simulation.classic.plan import Plan
from tests.simulation.life import Outcome


def smallest(outcome: Outcome, run: Callable[[Any, int], Outcome], *, attempts: int = 20) -> Outcome:
    """A simpler plan that breaks the same rule: without most faults, with fewer clients, in fewer steps."""
    assert outcome.violation is not None
    best, checker = outcome, outcome.violation.checker
    faults = [one.name for one in fields(outcome.plan) if isinstance(getattr(outcome.plan, one.name), float)]
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


def plan_text(plan: Plan) -> str:
    """What makes up a plan, in one line."""
    return " ".join(f"{field.name}={getattr(plan, field.name)}" for field in fields(plan))
