"""Every scenario prints what its file says; `python -m tests.scenarios --rewrite FILE` writes what it really prints."""

import difflib
import re
from collections.abc import Callable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar

import pytest
from tests.memory_shell import MemoryShell
from tests.scenarios import texts
from tests.scenarios.runner import Runner, Scenario, read_scenarios, run_step, scenario_files

from groupkeeper.broker.api_table import TABLE
from groupkeeper.coordinator.classic.group import ClassicGroup
from groupkeeper.coordinator.kernel.result import GroupCall, Result
from groupkeeper.coordinator.kernel.value_map import ValueMap
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

NOT_BY_MEMBER, NOT_OF_EACH = {"pending", "initializing_since"}, {"unsynced"}
"""Tables of soft state that are not by member id (but by ids given out, topics), and those of some members only."""

REWRITE = "If this is meant: python -m tests.scenarios --rewrite"

T = TypeVar("T")


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_scenario(scenario: Scenario) -> None:
    runner = Runner()
    for step in scenario.steps:
        printed = run_step(runner, step)
        if printed != step.expected:
            diff = difflib.unified_diff(step.expected, printed, "expected", "printed", lineterm="", n=20)
            pytest.fail("\n".join([*step.lead, *step.commands, *diff, REWRITE]), pytrace=False)


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

    def state_of(group: Any) -> str:
        return group.state.value if isinstance(group, ClassicGroup) else ""

    def look(cause: Any, before: str | None, after: str | None) -> None:
        name = type(cause.request if isinstance(cause, GroupCall) else cause).__name__.removesuffix("Request")
        change = "no group" if before is None else before, "no group" if after is None else after
        if change[0] != change[1] and all(change):
            seen.setdefault(change, set()).add("start" if cause is None else name)

    observe(monkeypatch, state_of, look)
    assert {(before, after): set(causes.split(", ")) for before, after, causes in table} == seen


def test_what_the_log_lacks_of_members_comes_and_goes_with_them(monkeypatch: pytest.MonkeyPatch) -> None:
    def kept(group: Any) -> tuple[Any, set[str], dict[str, set[str]]]:
        members = group.roster.members if isinstance(group, ClassicGroup) else group.members
        tables = {one.name: getattr(group.soft, one.name) for one in fields(group.soft)}
        by_member = {name: {*table} for name, table in tables.items() if isinstance(table, Mapping | ValueMap)}
        return group.group_type, {*members}, by_member

    def look(cause: Any, before: Any, after: Any) -> None:
        _, known, had = before or ("", set(), {})
        group_type, members, by_member = after or ("", set(), {})
        for name in by_member.keys() - NOT_BY_MEMBER:
            gone, owed = by_member[name] - members, members - (known - had.get(name, set())) - by_member[name]
            assert not gone, (
                f"{group_type} groups keep `{name}` of a member that left, or was replaced by another: {cause}"
            )
            assert not owed or name in NOT_OF_EACH, (
                f"{group_type} groups have no `{name}` of a member that joined or took over: {cause}"
            )

    observe(monkeypatch, kept, look)


def observe(monkeypatch: pytest.MonkeyPatch, state_of: Callable[[Any], T], look: Callable[..., None]) -> None:
    """Runs all scenarios; `look` gets each cause of a change, with a group's state before and after it, or None."""
    carry_out = MemoryShell.carry_out

    def states(shell: MemoryShell) -> dict[str, T]:
        return {group_id: state_of(group) for group_id, group in shell.coordinator.state.groups.items()}

    def observed(shell: MemoryShell, result: Result, cause: Any) -> bool:
        before = states(shell)
        is_written = carry_out(shell, result, cause)
        after = states(shell)
        for group_id in before.keys() | after.keys():
            look(cause, before.get(group_id), after.get(group_id))
        return is_written

    monkeypatch.setattr(MemoryShell, "carry_out", observed)
    run_all()
