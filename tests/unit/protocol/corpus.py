"""The corpus of what Apache Kafka's Java serialisers write (made by tools/protocol/corpus), and messages as Apache's
JSON.
"""

import base64
import lzma
from functools import cache
from pathlib import Path
from typing import Any

from tools.protocol import generate
from tools.protocol.schema import Field, Message, Struct, load, snake

from groupkeeper.protocol.framing import message_class
from groupkeeper.protocol.primitives import Message as MessageValue
from groupkeeper.protocol.primitives import RootMessage

CORPUS = Path(__file__).with_name("corpus.txt.xz")


@cache
def lines(kind: str) -> list[list[str]]:
    """The fields of every line of that kind, without the kind."""
    text = lzma.decompress(CORPUS.read_bytes()).decode()
    return [line.split("\t")[1:] for line in text.split("\n") if line.startswith(kind + "\t")]


@cache
def schemas() -> dict[str, Message]:
    return {message.name: message for message in load(generate.SCHEMAS.read_text())}


def classes() -> dict[str, type[RootMessage]]:
    return {name: message_class(name) for name in schemas()}


def differences(value: MessageValue, node: dict[str, Any], message: Message, struct: Struct) -> list[str]:
    """Where `value` is not what Apache's JSON of the struct says; a field that the JSON leaves out must have its
    default.
    """
    found = []
    by_name = {snake(name.removesuffix("SizeInBytes")): part for name, part in node.items()}
    default = type(value)()
    for item in struct.fields:
        mine = getattr(value, item.name)
        if item.name.replace("_", "") in {name.replace("_", "") for name in by_name}:
            part = next(v for k, v in by_name.items() if k.replace("_", "") == item.name.replace("_", ""))
            found += [f"{item.name}{text}" for text in _compare(mine, part, message, item)]
        elif mine != getattr(default, item.name) and (mine or getattr(default, item.name)):
            found.append(f"{item.name}: {mine!r} is not in the JSON")
    if len(by_name) > len(struct.fields):
        found.append(f"{sorted(by_name)} are more than the fields")
    return found


def _compare(mine: Any, part: Any, message: Message, item: Field) -> list[str]:
    if mine is None or part is None:
        return [] if mine is None and part is None else [f": {mine!r} is not {part!r}"]
    if item.is_array:
        if len(mine) != len(part):
            return [f": {len(mine)} elements, not {len(part)}"]
        pairs = enumerate(zip(mine, part, strict=True))
        return [f"[{i}]{text}" for i, (one, other) in pairs for text in _compare_one(one, other, message, item)]
    return _compare_one(mine, part, message, item)


def _compare_one(mine: Any, part: Any, message: Message, item: Field) -> list[str]:
    if item.struct_name is not None:
        return ["." + text for text in differences(mine, part, message, message.structs[item.struct_name])]
    match item.element:
        case "bytes":
            part = base64.b64decode(part)
        case "uuid":
            part = base64.urlsafe_b64decode(part + "==")
        case "records":
            mine = len(mine)
    return [] if mine == part and type(mine) is type(part) else [f": {mine!r} is not {part!r}"]
