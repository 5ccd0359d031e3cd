"""Every scenario prints what its file says; `python -m tests.scenarios --rewrite FILE` writes what it really prints."""

import difflib
import re
from pathlib import Path
from typing import Any

import pytest
from tests.memory_shell import MemoryShell
from tests.scenarios import texts
from tests.scenarios.runner import Runner, Scenario, read_scenarios, run_step, scenario_files

from groupkeeper.broker.api_table import TABLE
from groupkeeper.coordinator.classic.group import ClassicGroup
from groupkeeper.coordinator.kernel.result import Call, Result
from groupkeeper.protocol.framing import encode_response
from groupkeeper.protocol.primitives import Message, RootMessage

SCENARIOS = [
    pytest.param(scenario, id=f"{path.stem}: {scenario.title}")
    for path in scenario_files()
    for scenario in read_scenarios(path)[1]
]

STEP = Path(__file__).resolve().parents[2] / "src/groupkeeper/coordinator/classic/step.py"
"""Its docstring has the table of transitions."""

UNFILLED = {
    *("throttle_time_ms", "authorized_operations", "topology_description", "topology_description_status"),  # by brokers
    *("rack_id", "user_endpoint", "task_offsets", "task_end_offsets", "topology_epoch", "epoch", "replication_factor"),
    *("is_classic", "acceptable_recovery_lag_legacy", "topology_description_required"),
    *("ListGroupsResponse.error_code", "DeletableGroupResult.error_message", "TxnOffsetCommitResponseTopic.topic_id"),
    *("OffsetFetchResponse.error_code", "OffsetFetchResponse.topics"),  # before version 8
}
"""Fields that have their defaults in the answers of all scenarios."""


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_scenario(scenario: Scenario) -> None:
    runner = Runner()
    for step in scenario.steps:
        printed = run_step(runner, step)
        if printed != step.expected:
            diff = difflib.unified_diff(step.expected, printed, "expected", "printed", lineterm="", n=20)
            pytest.fail("\n".join([*step.lead, *step.commands, *diff]), pytrace=False)


def run_all() -> None:
    for path in scenario_files():
        for scenario in read_scenarios(path)[1]:
            runner = Runner()
            for step in scenario.steps:
                run_step(runner, step)


def test_each_field_of_an_answer_is_filled_in_some_scenario(monkeypatch: pytest.MonkeyPatch) -> None:
    fields: dict[str, bool] = {}
    texts_of = texts.answer_lines

    def answer_lines(who: str, response: Message) -> list[str]:
        look_at(response)
        return texts_of(who, response)

    def look_at(value: object) -> None:
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, Message):
                default = type(one)()
                for name in one.__slots__:
                    found = getattr(one, name)
                    key = f"{type(one).__name__}.{name}"
                    fields[key] = fields.get(key, False) or name in UNFILLED or found != getattr(default, name)
                    look_at(found)

    monkeypatch.setattr(texts, "answer_lines", answer_lines)
    run_all()
    unfilled = {key for key, is_filled in fields.items() if not is_filled} - UNFILLED
    assert not unfilled, f"no scenario has values of these: fill them where the answer is made, and show it: {unfilled}"


def test_answers_fit_the_version_before_the_newest(monkeypatch: pytest.MonkeyPatch) -> None:
    send = Runner.send

    def older(request: Message) -> int:
        api = TABLE[request.API_KEY]  # type: ignore[attr-defined]
        return max(api.lowest, api.highest - 1)

    def send_older(runner: Runner, who: str, request: RootMessage, version: int | None = None, **more: Any) -> None:
        send(runner, who, request, older(request) if version is None else version, **more)

    def encode(runner: Runner, call_id: int, response: Message) -> None:
        call = runner._calls[call_id][1]
        if isinstance(response, RootMessage) and call.version == older(call.request):
            encode_response(1, response, call.version)  # a field that it lacks: UnsupportedField
        on_answered(runner, call_id, response)

    on_answered = Runner._on_answered
    monkeypatch.setattr(Runner, "send", send_older)
    monkeypatch.setattr(Runner, "_on_answered", encode)
    run_all()


def test_classic_groups_change_states_as_their_table_says(monkeypatch: pytest.MonkeyPatch) -> None:
    table = re.findall(r"^ {4}(no group|\w+) +> (no group|\w+) +(.+)$", STEP.read_text(encoding="utf-8"), re.MULTILINE)
    seen: dict[tuple[str, str], set[str]] = {}
    carry_out = MemoryShell.carry_out

    def states(shell: MemoryShell) -> dict[str, str]:
        groups = shell.coordinator.state.groups.items()
        return {group_id: group.state.value if isinstance(group, ClassicGroup) else "" for group_id, group in groups}

    def observed(shell: MemoryShell, result: Result, cause: Any) -> bool:
        before = states(shell)
        is_written = carry_out(shell, result, cause)
        after = states(shell)
        name = type(cause.request if isinstance(cause, Call) else cause).__name__.removesuffix("Request")
        for group_id in before.keys() | after.keys():
            change = before.get(group_id, "no group"), after.get(group_id, "no group")
            if change[0] != change[1] and all(change):
                seen.setdefault(change, set()).add("start" if cause is None else name)
        return is_written

    monkeypatch.setattr(MemoryShell, "carry_out", observed)
    run_all()
    assert {(before, after): set(causes.split(", ")) for before, after, causes in table} == seen
