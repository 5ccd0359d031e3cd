"""The project's compact description of Kafka's messages, and its reader and writer.

One message is one heading line and one indented line per field (nesting by two blanks)::

    request OffsetFetchRequest key 9 versions 1-10 flexible 6+
      group_id string 0-7
      topics []OffsetFetchRequestTopic 0-7 nullable 2-7
        name string 0-7

Attributes after the versions: `nullable V`, `default X`, `ignorable`, `tag N V` (tagged in versions V),
`inflexible` (the field keeps the old encoding in flexible versions), `later` (it came to a struct that was here, so
that its argument is behind those of the others). A struct used several times is written below its first use only.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

NEVER = 32767
"""Highest version number of the protocol; also stands for "no flexible version"."""

FIXED_FORMATS = {
    "int8": "b",
    "int16": "h",
    "uint16": "H",
    "int32": "i",
    "uint32": "I",
    "int64": "q",
    "float64": "d",
    "bool": "?",
    "uuid": "16s",
}
SIMPLE_TYPES = frozenset(FIXED_FORMATS) | {"string", "bytes", "records"}


@dataclass(frozen=True)
class Versions:
    """A closed range of versions; empty when `low > high`."""

    low: int
    high: int

    @classmethod
    def parse(cls, text: str | None) -> Versions:
        if text is None or text == "none":
            return EMPTY
        if text.endswith("+"):
            return cls(int(text[:-1]), NEVER)
        low, _, high = text.partition("-")
        return cls(int(low), int(high or low))

    def __str__(self) -> str:
        if self.low > self.high:
            return "none"
        if self.high == NEVER:
            return f"{self.low}+"
        return str(self.low) if self.low == self.high else f"{self.low}-{self.high}"

    def __and__(self, other: Versions) -> Versions:
        low, high = max(self.low, other.low), min(self.high, other.high)
        return Versions(low, high) if low <= high else EMPTY

    def __bool__(self) -> bool:
        return self.low <= self.high

    def covers(self, other: Versions) -> bool:
        return not other or (self.low <= other.low and other.high <= self.high)


EMPTY = Versions(1, 0)
ALL = Versions(0, NEVER)


@dataclass(frozen=True)
class Field:
    """One field of a struct. `default` is its text in the schema; None means the type's own default."""

    name: str
    type: str
    versions: Versions
    nullable: Versions = EMPTY
    default: str | None = None
    ignorable: bool = False
    tag: int | None = None
    tagged: Versions = EMPTY
    inflexible: bool = False
    later: bool = False

    @property
    def is_array(self) -> bool:
        return self.type.startswith("[]")

    @property
    def element(self) -> str:
        return self.type.removeprefix("[]")

    @property
    def struct_name(self) -> str | None:
        """Name of the struct this field holds (one, or an array of them), or None for a simple type."""
        return None if self.element in SIMPLE_TYPES else self.element


@dataclass
class Struct:
    name: str
    fields: list[Field] = field(default_factory=list)
    """In the order of their bytes."""

    @property
    def arguments(self) -> list[Field]:
        """The fields in the order of the constructor's arguments."""
        return sorted(self.fields, key=lambda each: each.later)


@dataclass
class Message:
    """A request, response, header, coordinator record key or value, or other data struct."""

    kind: str
    name: str
    key: int | None
    versions: Versions
    flexible: Versions
    unstable: bool = False
    structs: dict[str, Struct] = field(default_factory=dict)

    @property
    def root(self) -> Struct:
        return self.structs[self.name]


def snake(name: str) -> str:
    """`OffsetFetchRequest` → `offset_fetch_request`."""
    name = name.replace("KRaft", "Kraft")
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


def dump(messages: Iterable[Message]) -> str:
    """The description of `messages` as text."""
    lines: list[str] = []
    for message in messages:
        key = "" if message.key is None else f" key {message.key}"
        unstable = " unstable" if message.unstable else ""
        lines.append(
            f"{message.kind} {message.name}{key} versions {message.versions} flexible {message.flexible}{unstable}"
        )
        _dump_struct(message, message.name, 1, set(), lines)
        lines.append("")
    return "\n".join(lines)


def _dump_struct(message: Message, name: str, depth: int, done: set[str], lines: list[str]) -> None:
    done.add(name)
    for item in message.structs[name].fields:
        text = f"{item.name} {item.type} {item.versions}"
        if item.nullable:
            text += f" nullable {item.nullable}"
        if item.default is not None:
            text += f" default {item.default}"
        if item.ignorable:
            text += " ignorable"
        if item.tag is not None:
            text += f" tag {item.tag} {item.tagged}"
        if item.inflexible:
            text += " inflexible"
        if item.later:
            text += " later"
        lines.append("  " * depth + text)
        if item.struct_name is not None and item.struct_name not in done:
            _dump_struct(message, item.struct_name, depth + 1, done, lines)


def load(text: str) -> Iterator[Message]:
    """The messages that `text` describes, in its order."""
    message: Message | None = None
    path: list[Struct] = []
    for line in text.splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        words = line.split()
        depth = (len(line) - len(line.lstrip())) // 2
        if depth == 0:
            if message is not None:
                yield message
            message = _heading(words)
            path = [message.root]
            continue
        assert message is not None, line
        item = _field(words)
        del path[depth:]
        path[-1].fields.append(item)
        if item.struct_name is not None:
            path.append(message.structs.setdefault(item.struct_name, Struct(item.struct_name)))
    if message is not None:
        yield message


def _heading(words: list[str]) -> Message:
    kind, name, *rest = words
    attributes = {rest[i]: rest[i + 1] for i in range(0, len(rest) - len(rest) % 2, 2)}
    return Message(
        kind,
        name,
        int(attributes["key"]) if "key" in attributes else None,
        Versions.parse(attributes["versions"]),
        Versions.parse(attributes["flexible"]),
        rest[-1] == "unstable",
        {name: Struct(name)},
    )


def _field(words: list[str]) -> Field:
    result = Field(words[0], words[1], Versions.parse(words[2]))
    rest = iter(words[3:])
    for word in rest:
        match word:
            case "nullable":
                result = replace(result, nullable=Versions.parse(next(rest)))
            case "default":
                result = replace(result, default=next(rest))
            case "ignorable":
                result = replace(result, ignorable=True)
            case "tag":
                result = replace(result, tag=int(next(rest)), tagged=Versions.parse(next(rest)))
            case "inflexible":
                result = replace(result, inflexible=True)
            case "later":
                result = replace(result, later=True)
            case _:
                raise ValueError(f"unknown attribute {word!r} of field {words[0]}")
    return result
