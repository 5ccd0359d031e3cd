"""Protected contexts: whoever changes something there has to name the context once more."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cli.stages import INACTIVE, put_back

from groupkeeper.cli.framework import execution
from groupkeeper.cli.main import main

STAGE = INACTIVE
RESET = ["groups", "reset", "billing", "--topic", "orders", "--to-earliest", "--execute"]


@pytest.fixture(autouse=True)
def protected(
    servers: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[None]:
    """The brokers are the protected context prod."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("GROUPKEEPER_JOURNAL", str(tmp_path / "journal.jsonl"))
    assert main(["context", "add", "prod", "--bootstrap-server", servers, "--protected"]) == 0
    capsys.readouterr()
    yield
    asyncio.run(put_back(STAGE, servers))


REFUSED = "context prod is protected: add --confirm-context prod; nothing was changed"


@pytest.mark.parametrize(
    "words",
    [
        RESET,
        ["groups", "delete", "billing", "--execute"],
        ["groups", "delete", "*", "--execute", "--confirm", "2"],
        ["groups", "delete-offsets", "billing", "--topic", "orders", "--execute"],
    ],
)
def test_nothing_is_changed_without_its_name(groupkeeper: Any, servers: str, words: list[str]) -> None:
    status, report = groupkeeper(*words, "--context", "prod")
    assert (status, report["executed"], [one["message"] for one in report["problems"]]) == (1, False, [REFUSED])
    # The brokers are protected, whatever they are called.
    for address in (servers, servers.replace("127.0.0.1", "localhost")):
        status, report = groupkeeper(*words, "--bootstrap-server", address)
        assert (status, [one["message"] for one in report["problems"]]) == (1, [REFUSED])
    status, report = groupkeeper(*words, "--context", "prod", "--confirm-context", "dr")
    assert status == 1
    assert report["problems"][0]["message"].startswith(
        "argument --confirm-context: dr does not match: the context is prod"
    )
    assert {row["group"] for row in groupkeeper("groups", "list")[1]["groups"]} == {"billing", "zeta"}
    assert groupkeeper("groups", "offsets", "billing", "--topic", "orders")[1]["offsets"][0]["committed_offset"] == 4


def test_with_its_name_it_is_done_and_taken_back(groupkeeper: Any) -> None:
    status, report = groupkeeper(*RESET, "--confirm-context", "prod")
    assert (status, report["executed"], {row["result"] for row in report["offsets"]}) == (0, True, {"applied"})
    status, report = groupkeeper("undo", "--execute")
    assert (status, report["problems"][0]["message"]) == (1, REFUSED)
    assert groupkeeper("undo", "--execute", "--confirm-context", "prod")[0] == 0


def test_a_plan_is_made_and_compared_without_it(groupkeeper: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "plan.json")
    assert groupkeeper("plan", "reset", "billing", "--topic", "orders", "--to-latest", "--save", path)[0] == 0
    assert groupkeeper("apply", path)[0] == 0
    status, report = groupkeeper("apply", path, "--execute")
    assert (status, report["problems"][0]["message"]) == (1, REFUSED)
    assert groupkeeper("apply", path, "--execute", "--confirm-context", "prod")[0] == 0


@pytest.mark.parametrize(("typed", "status"), [("prod\n", 0), ("yes\n", 1), ("", 1)])
def test_at_a_terminal_it_is_asked_for_below_the_rows(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], typed: str, status: int
) -> None:
    async def answer() -> str:
        return typed

    monkeypatch.setattr(execution, "can_ask", lambda: True)
    monkeypatch.setattr(execution, "_typed", answer)
    assert main(RESET) == status
    output, errors = capsys.readouterr()
    assert "would be applied" in errors.partition("Context prod is protected. Type its name")[0]
    assert ("applied" in output) is (status == 0)


def test_the_protection_is_shown_and_goes(groupkeeper: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert [row["protected"] for row in groupkeeper("context", "list")[1]["contexts"]] == [True]
    assert {"name": "groupkeeper.protected", "value": "true"} in groupkeeper("context", "show", "prod")[1]["properties"]
    assert main(["context", "protect", "prod", "--off"]) == 0
    assert capsys.readouterr().out == "context prod is no longer protected\n"
    assert groupkeeper(*RESET)[0] == 0
    assert main(["context", "protect", "prod"]) == 0
    capsys.readouterr()
    assert groupkeeper(*RESET)[0] == 0  # it is so already
    assert groupkeeper(*RESET[:-2], "--to-latest", "--execute")[0] == 1


def test_another_context_than_the_one_meant_is_refused(
    groupkeeper: Any, servers: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["context", "protect", "prod", "--off"]) == 0
    capsys.readouterr()
    status, report = groupkeeper(*RESET, "--bootstrap-server", servers, "--confirm-context", "prod")
    assert status == 1
    assert report["problems"][0]["message"].endswith("prod does not match: no context is used; nothing was changed")
