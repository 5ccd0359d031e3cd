"""docs/admin.md: its examples run, in order, and it has every call."""

import ast
import asyncio
import inspect
import re
import sys
from pathlib import Path

import pytest
from tests.apache_kafka import require
from tools.apache_kafka import ApacheKafka

from groupkeeper import Admin, Broker
from groupkeeper.client import connection
from groupkeeper.protocol.framing import decode_response
from groupkeeper.protocol.primitives import Message, RootMessage

GUIDE = (Path(__file__).resolve().parents[2] / "docs" / "admin.md").read_text()
EXAMPLES = re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL)
CALLS = [name for name, _ in inspect.getmembers(Admin, inspect.iscoroutinefunction) if not name.startswith("_")]
ADDRESS = "localhost:9092"
SETTINGS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}
NEED_NO_LOOK = {
    "CreatableTopicResult.topic_config_error_code",  # why an answer lacks configs
    "FindCoordinatorResponse.error_code",  # of older versions, like those of OffsetFetch
    "MetadataResponsePartition.error_code",  # its leader is unknown, too
    "MetadataResponseTopic.error_code",  # list_topics tells names only
    "OffsetFetchResponse.error_code",
    "OffsetFetchResponsePartition.error_code",
}
"""Errors in answers that calls do not read."""


def test_every_call_has_an_example() -> None:
    code = "".join(EXAMPLES)
    assert [name for name in CALLS if f"admin.{name}(" not in code.lower()] == []


async def run(servers: str) -> None:
    """The examples, in their order and with the names of those before."""
    names: dict[str, object] = {}
    assert ADDRESS in EXAMPLES[0]
    for text in EXAMPLES:
        program = text.replace(ADDRESS, servers)
        running = eval(compile(program, "docs/admin.md", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT), names)
        if running is not None:
            await running


async def test_the_examples_run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """And the client reads each error code of their answers."""
    unread: dict[tuple[object, str], object] = {}
    known: set[tuple[object, str]] = set()

    def note(one: object) -> None:
        for each in one if isinstance(one, list | tuple) else ():
            note(each)
        for name in one.__slots__ if isinstance(one, Message) else ():
            note(getattr(one, name))
            if name.endswith("error_code"):
                unread.pop((type(one), name), None)
                unread[id(one), name] = one

    def decoded(kind: type[RootMessage], frame: bytes, version: int) -> tuple[int, RootMessage]:
        structs = [one for one in vars(sys.modules[kind.__module__]).values() if hasattr(one, "__slots__")]
        new = {(one, name) for one in structs for name in one.__slots__ if name.endswith("error_code")} - known
        unread.update((each, each[0]) for each in new)
        known.update(new)
        header, answer = decode_response(kind, frame, version)
        note(answer)
        return header, answer

    def reading(one: Message, name: str) -> object:
        unread.pop((id(one), name), None)
        return object.__getattribute__(one, name)

    monkeypatch.setattr(connection, "decode_response", decoded)
    monkeypatch.setattr(Message, "__getattribute__", reading)
    async with Broker() as broker, asyncio.timeout(50):
        await run(broker.bootstrap_servers)
    printed = capsys.readouterr().out
    assert "by hand" in printed
    assert "GroupIdNotFound" in printed
    found = {f"{(one if isinstance(one, type) else type(one)).__name__}.{name}" for (_, name), one in unread.items()}
    assert found == NEED_NO_LOOK, (
        "a call of Admin raises each error code of an answer or puts it into Batch.failed, and its example in "
        f"docs/admin.md gets such a row; NEED_NO_LOOK has what it does not read: {found ^ NEED_NO_LOOK}"
    )


@pytest.mark.conformance
@pytest.mark.timeout(240)
async def test_the_examples_run_on_apache_kafka(capsys: pytest.CaptureFixture[str]) -> None:
    require()
    with ApacheKafka(SETTINGS) as broker:
        await run(broker.bootstrap_servers)
    printed = capsys.readouterr().out
    assert "by hand" in printed
    assert "GroupIdNotFound" in printed
