"""Brokers leave out offsets of topics that one may not see, without a word: no command says that there are none."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from tests.cli.offsets import commit
from tests.copies import make_topic

from groupkeeper.broker.authorizer import Operation, ResourceType, RuleAuthorizer
from groupkeeper.cli.main import main
from groupkeeper.client.admin.types import TopicPartition
from groupkeeper.operations.topics import HIDDEN
from groupkeeper.testing.background import BackgroundBroker

COMMANDS = {
    "groups offsets jane": "group jane has no committed offsets",
    "groups reset jane --all-topics --to-earliest": "jane has no committed offsets",
    "plan reset jane --all-topics --to-earliest": "jane has no committed offsets",
}


@pytest.fixture(scope="module")
def servers(authorizer: RuleAuthorizer) -> Iterator[str]:
    """A broker with the group jane, who has an offset, and the group empty, which has had one."""
    with BackgroundBroker(authorizer=authorizer) as broker:
        make_topic(broker.bootstrap_servers, "orders")
        commit(broker.bootstrap_servers, "jane", {TopicPartition("orders", 0): 0})
        yield broker.bootstrap_servers


@pytest.fixture
def blind(authorizer: RuleAuthorizer) -> Iterator[None]:
    before = authorizer.rules
    authorizer.deny(Operation.DESCRIBE, ResourceType.TOPIC)
    yield
    authorizer.rules = before


def notes(servers: str, command: str, capsys: pytest.CaptureFixture[str]) -> Any:
    main([*command.split(), "--bootstrap-server", servers, "--output", "json"])
    return json.loads(capsys.readouterr().out)["notes"]


@pytest.mark.usefixtures("blind")
@pytest.mark.parametrize("command", COMMANDS)
def test_offsets_that_may_not_be_seen(servers: str, command: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = notes(servers, command, capsys)
    assert HIDDEN in found
    assert [text for text in found if text.startswith(COMMANDS[command])] == [
        text for text in found if text.startswith(f"{COMMANDS[command]} that may be seen")
    ]


@pytest.mark.usefixtures("blind")
def test_a_clone_of_what_may_be_seen(servers: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert HIDDEN in notes(servers, "plan clone jane copy", capsys)


@pytest.mark.parametrize("command", [*COMMANDS, "plan clone jane copy"])
def test_those_who_may_see_all_are_told_nothing_of_it(
    servers: str, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    found = notes(servers, f"{command} --topic elsewhere*" if "groups offsets" in command else command, capsys)
    assert HIDDEN not in found
