"""Nonsense in valid and invalid frames: nobody else notices, and no handler fails."""

import ast
import asyncio
import random
import re
import struct
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from tests.broker.conftest import Connect, Start

from groupkeeper.broker import Broker
from groupkeeper.broker.api_table import TABLE
from groupkeeper.protocol import messages
from groupkeeper.protocol.framing import encode_request, request_class
from groupkeeper.protocol.messages.metadata_request import MetadataRequest
from groupkeeper.protocol.primitives import Message, RootMessage
from groupkeeper.protocol.record_batch import Record, write_batch

BATCH = write_batch([Record(b"k", b"v", timestamp=1)])
INTERESTING = [0, 1, -1, 2, 5, 127, 128, 2**31 - 1, -(2**31), 2**15 - 1]


TEXTS = ["", "t", "g", "nope", "consumer", "range", "\u00e4" * 40]
ELEMENT = re.compile(r"Sequence\[(\w+)\]")


@cache
def annotations(kind: type[Message]) -> dict[str, str]:
    """Of the parameters, from the source: a compiled class has none."""
    source = Path(messages.__path__[0], f"{kind.__module__.rpartition('.')[2]}.py").read_text()
    (found,) = (one for one in ast.parse(source).body if isinstance(one, ast.ClassDef) and one.name == kind.__name__)
    makers = (one for one in found.body if isinstance(one, ast.FunctionDef) and one.name == "__init__")
    return {one.arg: ast.unparse(one.annotation) for make in makers for one in make.args.args if one.annotation}


def filled(kind: Any, chance: random.Random) -> Message:
    """A message whose numbers, texts, bytes and lists are drawn, whether that makes sense or not."""
    message: Message = kind()
    module = sys.modules[kind.__module__]
    for name, annotation in annotations(kind).items():
        element = ELEMENT.search(annotation)
        value: object = None
        if element is not None:
            inner = getattr(module, element[1], None)
            count = chance.choice([0, 1, 1, 2])
            value = [filled(inner, chance) if inner else drawn(element[1], chance) for _ in range(count)]
        elif annotation.split(" ")[0] in ("int", "str", "bytes", "bool"):
            value = drawn(annotation.split(" ")[0], chance)
        elif annotation != "None" and annotation in vars(module):
            value = filled(getattr(module, annotation), chance)
        if value is not None and name in kind.__slots__ and chance.random() < 0.8:
            setattr(message, name, value)
    return message


def drawn(kind: str, chance: random.Random) -> object:
    if kind == "int":
        return chance.choice(INTERESTING)
    if kind == "bool":
        return chance.random() < 0.5
    if kind == "str":
        return chance.choice(TEXTS)
    return chance.choice([b"", b"x", bytes(16), BATCH])


def frames(chance: random.Random) -> list[bytes]:
    """Requests of every API and version, of which each is also sent with single bytes changed, and cut off."""
    made = []
    for key, api in TABLE.items():
        for version in range(api.lowest, api.highest + 1):
            for _ in range(4):
                request = filled(request_class(key), chance)
                assert isinstance(request, RootMessage)
                try:
                    frame = encode_request(7, "abuse", request, version)
                except ValueError:  # something of it has no place in this version
                    frame = encode_request(7, "abuse", request_class(key)(), version)
                made.append(frame)
                changed = bytearray(frame)
                for _ in range(chance.randint(1, 3)):
                    if len(frame) > 19:
                        changed[chance.randrange(18, len(frame))] = chance.randrange(256)
                made.append(bytes(changed))
                body = frame[4 : chance.randrange(4, len(frame) + 1)]
                made.append(struct.pack(">i", len(body)) + body)
    chance.shuffle(made)
    return made


@pytest.mark.parametrize("seed", range(3))
async def test_no_request_makes_a_handler_fail(
    start: Start, connect: Connect, caplog: pytest.LogCaptureFixture, seed: int
) -> None:
    broker = await start(properties={"group.initial.rebalance.delay.ms": "0", "offsets.topic.num.partitions": "2"})
    broker.topics.create("t", 2)
    victim = await connect(broker)
    chance = random.Random(seed)
    for part in range(0, len(made := frames(chance)), 20):
        for frame in made[part : part + 20]:
            wire = await connect(broker)
            wire.writer.write(frame)
            wire.writer.write_eof()
        answer = await asyncio.wait_for(victim.call(MetadataRequest([]), 12), 10)
        assert answer.brokers
    # Whoever waits (a Fetch, a JoinGroup) is given up a second after its client has left.
    while len(broker.server.connections) > 1:
        await victim.call(MetadataRequest([]), 12)
    failures = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
    assert failures == []


async def test_random_bytes(broker: Broker, connect: Connect) -> None:
    chance = random.Random(1)
    victim = await connect(broker)
    for _ in range(100):
        wire = await connect(broker)
        wire.writer.write(chance.randbytes(chance.randrange(1, 2000)))
        wire.writer.write_eof()
        await victim.call(MetadataRequest([]), 12)


async def test_many_connections(broker: Broker, connect: Connect) -> None:
    wires = [await connect(broker) for _ in range(300)]
    answers = await asyncio.gather(*(wire.call(MetadataRequest([]), 12) for wire in wires))
    assert len(answers) == len(broker.server.connections) == 300
