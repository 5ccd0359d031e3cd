"""docs/admin.md: its examples run, in order, and it has every call."""

import ast
import asyncio
import inspect
import re
from pathlib import Path

import pytest
from tests.apache_kafka import require
from tools.apache_kafka import ApacheKafka

from groupkeeper import Admin, Broker

GUIDE = (Path(__file__).resolve().parents[2] / "docs" / "admin.md").read_text()
EXAMPLES = re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL)
CALLS = [name for name, _ in inspect.getmembers(Admin, inspect.iscoroutinefunction) if not name.startswith("_")]
ADDRESS = "localhost:9092"
SETTINGS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}


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


async def test_the_examples_run(capsys: pytest.CaptureFixture[str]) -> None:
    async with Broker() as broker, asyncio.timeout(50):
        await run(broker.bootstrap_servers)
    printed = capsys.readouterr().out
    assert "by hand" in printed
    assert "GroupIdNotFound" in printed


@pytest.mark.conformance
@pytest.mark.timeout(240)
async def test_the_examples_run_on_apache_kafka(capsys: pytest.CaptureFixture[str]) -> None:
    require()
    with ApacheKafka(SETTINGS) as broker:
        await run(broker.bootstrap_servers)
    printed = capsys.readouterr().out
    assert "by hand" in printed
    assert "GroupIdNotFound" in printed
