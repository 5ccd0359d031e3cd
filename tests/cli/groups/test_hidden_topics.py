"""Brokers leave out offsets of topics that one may not see, without a word: no command says that there are none."""

from collections.abc import Iterator
from typing import Any

import pytest
from tests.acts import commit, make_topic

from groupkeeper.broker.authorizer import Operation, ResourceType, RuleAuthorizer
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


@pytest.mark.usefixtures("blind")
@pytest.mark.parametrize(("words", "told"), COMMANDS.items())
def test_offsets_that_may_not_be_seen(run: Any, words: str, told: str) -> None:
    found = run(*words.split())[1]["notes"]
    assert HIDDEN in found
    assert [text for text in found if text.startswith(told)] == [
        text for text in found if text.startswith(f"{told} that you may see")
    ]


@pytest.mark.usefixtures("blind")
def test_a_clone_of_what_may_be_seen(run: Any) -> None:
    assert HIDDEN in run("plan", "clone", "jane", "copy")[1]["notes"]


@pytest.mark.parametrize("words", [*COMMANDS, "plan clone jane copy"])
def test_those_who_may_see_all_are_told_nothing_of_it(run: Any, words: str) -> None:
    more = ["--topic", "elsewhere*"] if "groups offsets" in words else []
    assert HIDDEN not in run(*words.split(), *more)[1]["notes"]
