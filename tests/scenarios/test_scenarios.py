"""Every scenario prints what its file says; `python -m tests.scenarios --rewrite FILE` writes what it really prints."""

import difflib

import pytest
from tests.scenarios.runner import Runner, Scenario, read_scenarios, run_step, scenario_files

SCENARIOS = [
    pytest.param(scenario, id=f"{path.stem}: {scenario.title}")
    for path in scenario_files()
    for scenario in read_scenarios(path)[1]
]


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_scenario(scenario: Scenario) -> None:
    runner = Runner()
    for step in scenario.steps:
        printed = run_step(runner, step)
        if printed != step.expected:
            diff = difflib.unified_diff(step.expected, printed, "expected", "printed", lineterm="", n=20)
            pytest.fail("\n".join([*step.lead, *step.commands, *diff]), pytrace=False)
