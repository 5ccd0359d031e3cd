"""Values of options of `groupkeeper`: each is parsed, or refused with an example, before a request is sent."""

from __future__ import annotations

import re
import sys
import time
from argparse import ArgumentTypeError
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar

from groupkeeper.client.addresses import parse_bootstrap_servers
from groupkeeper.client.admin.types import GroupState, GroupType, TopicPartition
from groupkeeper.client.errors import InvalidAddress
from groupkeeper.config_providers import Unresolved, resolved
from groupkeeper.java_numbers import INT_MAX
from groupkeeper.java_properties import BadEscape, name_in, read_properties
from groupkeeper.operations.times import BadDatetime, BadDuration, Duration, NoUnit, parse_iso_datetime, parse_length

T = TypeVar("T", bound=str)
Parse = TypeVar("Parse", bound=Callable[[str], object])

_TOPIC = re.compile(r"[^:]+(:[0-9]+(,[0-9]+)*)?")
_CHECKPOINT = re.compile(r"(?:([^:=/]+):)?([^:=/]*)=(.+)", re.DOTALL)


def called(name: str) -> Callable[[Parse], Parse]:
    """What the help calls the values that a function parses."""

    def with_name(parse: Parse) -> Parse:
        parse.metavar = name  # type: ignore[attr-defined]
        return parse

    return with_name


class PlanFile(NamedTuple):
    """A reset plan read from a file."""

    path: str
    text: str


class NamedCheckpoint(NamedTuple):
    """The path of a query's checkpoint, with a name and a cluster; None: the folder's name, and the only cluster."""

    cluster: str | None
    name: str | None
    path: str


@called("HOST:PORT[,...]")
def servers(text: str) -> str:
    """host:port,…"""
    try:
        parse_bootstrap_servers(text)
    except InvalidAddress as problem:
        raise ArgumentTypeError(str(problem)) from None
    return text


@called("FILE")
def properties(path: str) -> dict[str, str]:
    """The properties in a file, with the values that they refer to."""
    try:
        return resolved(read_properties(path))
    except OSError as problem:
        raise ArgumentTypeError(f"cannot read {path!r}: {problem.strerror}") from None
    except BadEscape as problem:
        raise ArgumentTypeError(f"{path!r} is not a file of properties: {problem}") from None
    except Unresolved as problem:
        raise ArgumentTypeError(str(problem)) from None


@called("NAME=VALUE")
def client_property(text: str) -> tuple[str, str]:
    """`NAME=VALUE`"""
    name, separator, value = text.partition("=")
    if not separator or not name.strip():
        quoted = f"{name_in(text)!r}: " if name_in(text) else ""
        raise ArgumentTypeError(f"{quoted}expected NAME=VALUE, for example security.protocol=SASL_SSL")
    return name.strip(), value.strip()


@called("NAME")
def secret_name(text: str) -> str:
    """The name of a property whose value the command asks for."""
    if name_in(text) != text:
        raise ArgumentTypeError(
            "expected the NAME of a property, such as sasl.jaas.config: the command asks for its value"
        )
    return text


_MOST_MS = 100 * 365 * 24 * 3600 * 1000


@called("DURATION")
def span_ms(text: str) -> int:
    """A duration of at least 1 ms, in milliseconds."""
    length_ms = _length_ms(text)
    if length_ms is None or not 1 <= length_ms <= _MOST_MS:
        raise ArgumentTypeError(f"{text!r}: {_why_not(length_ms)}, for example 500ms, 30s, 5m, 1h30m, 7d or PT5M")
    return int(length_ms)


@called("DURATION")
def span_s(text: str) -> float:
    """A duration of at least 1 ms, in seconds."""
    return span_ms(text) / 1000


@called("DURATION")
def wait_s(text: str) -> float:
    """A duration in seconds; 0: don't wait."""
    return 0.0 if text == "0" else span_s(text)


@called("DURATION")
def hours(text: str) -> float:
    """A duration in hours; 0: none."""
    return 0.0 if text == "0" else span_ms(text) / 3_600_000


def _length_ms(text: str) -> float | None:
    """A duration in ms, with a sign before it if it is negative; None: it is no duration."""
    sign, size = (-1, text[1:]) if text.startswith("-") else (1, text)
    try:
        length = parse_length(size)
    except NoUnit as problem:
        raise ArgumentTypeError(f"{text!r}: {problem}") from None
    except BadDuration:
        return None
    return sign * (length.seconds * 1000 + length.nanos / 10**6)


def _why_not(length_ms: float | None) -> str:
    if length_ms is None:
        return "expected a duration"
    if length_ms < 0:
        return "a duration cannot be negative"
    return "a duration must be at least 1ms" if length_ms < 1 else "a duration can be 36500d (100 years) at most"


class ListOf(Generic[T]):
    """Names separated by commas, each in any case."""

    def __init__(self, names: Iterable[T], kind: str, example: str, hints: Mapping[str, str] = {}) -> None:
        """`kind`: what the help calls one of them. `hints`: texts about names that are not among `names`."""
        self.names = tuple(names)
        self.metavar = f"{kind}[,{kind}]"
        self._by_text = {_plain(name): name for name in self.names}
        self._example = example
        self._hints = hints

    def __call__(self, text: str) -> list[T]:
        parts = [_plain(part) for part in text.split(",")]
        if not set(parts) <= self._by_text.keys():
            hint = "".join(hint for name, hint in self._hints.items() if name in parts)
            raise ArgumentTypeError(f"{text!r}: expected some of {self}, for example {self._example}{hint}")
        return [self._by_text[part] for part in dict.fromkeys(parts)]

    def __str__(self) -> str:
        return ", ".join(self.names)


def _plain(name: str) -> str:
    return name.strip().lower().replace("-", "_")


_OF_SHARE_GROUPS = {GroupType.SHARE.lower(): "; 'kafka-share-groups' changes share groups"}
_LISTED_STATES = [state for state in GroupState if state is not GroupState.UNKNOWN]
_TYPES = (GroupType.CLASSIC, GroupType.CONSUMER)

states = ListOf([state for state in _LISTED_STATES if state is not GroupState.NOT_READY], "STATE", "Stable,Empty")
types = ListOf(_TYPES, "TYPE", "Consumer", _OF_SHARE_GROUPS)
# Share and streams groups are listed and described; filters of groups to change do not select them.
listed_states = ListOf(_LISTED_STATES, "STATE", "Stable,Empty")
listed_types = ListOf((*_TYPES, GroupType.SHARE, GroupType.STREAMS), "TYPE", "Consumer", _OF_SHARE_GROUPS)


@called("TOPIC[:PARTITION,...]")
def topic(text: str) -> str:
    """`orders` or `orders:0,1`."""
    example = "expected a topic or TOPIC:PARTITION[,PARTITION...], for example orders or orders:0,1"
    if not _TOPIC.fullmatch(text):
        raise ArgumentTypeError(f"{text!r}: {example}")
    numbers = text.partition(":")[2]
    if numbers and any(int(number) > INT_MAX for number in numbers.split(",")):
        raise ArgumentTypeError(f"{text!r}: the highest partition number is {INT_MAX}")
    return text


@called("TOPIC:PARTITION")
def partition(text: str) -> TopicPartition:
    """`orders:0`"""
    name, _, number = topic(text).partition(":")
    if not number or "," in number:
        raise ArgumentTypeError(f"{text!r}: expected TOPIC:PARTITION, for example orders:0")
    return TopicPartition(name, int(number))


@called("DATETIME")
def datetime_ms(text: str) -> int:
    """A point in time, in milliseconds since 1970."""
    try:
        then_ms = parse_iso_datetime(text)
    except BadDatetime:
        example = "for example 2026-01-31T23:59:59, 2026-01-31T23:59:59.123Z or 2026-01-31T23:59:59+01:00"
        raise ArgumentTypeError(
            f"{text!r}: expected an ISO 8601 date and time (UTC without a zone), {example}"
        ) from None
    if then_ms < 0:
        raise ArgumentTypeError(f"{text!r} is before 1970: no record has such a timestamp")
    return then_ms


@called("DURATION")
def duration(text: str) -> Duration:
    """A duration back from now."""
    if (_length_ms(text) or 0) < 0:
        raise ArgumentTypeError(f"{text!r}: a duration back from now cannot be negative, for example 7d or PT12H")
    try:
        parsed = parse_length(text)
        then_ms = parsed.before_ms(time.time_ns())
    except BadDuration:
        example = "for example 7d, 12h or 1d2h30m, or as ISO 8601 has it: P7D, PT12H, P1DT2H30M"
        raise ArgumentTypeError(f"{text!r}: expected a duration in days and smaller units, {example}") from None
    if then_ms < 0:
        raise ArgumentTypeError(f"{text!r} ago is before 1970: no record has such a timestamp")
    return parsed


@called("DURATION")
def age_ms(text: str) -> int:
    """A duration back from now, in milliseconds."""
    return duration(text).whole_ms


def text_of(path: str, *, is_standard_input: bool = False) -> str:
    """The text of a file."""
    try:
        content = sys.stdin.buffer.read() if is_standard_input else Path(path).read_bytes()
        return content.decode("utf-8-sig")
    except OSError as problem:
        raise ArgumentTypeError(f"cannot read {path!r}: {problem.strerror}") from None
    except UnicodeDecodeError as problem:
        raise ArgumentTypeError(f"{path!r} is not UTF-8 text: byte {problem.start + 1}") from None


@called("FILE")
def plan_file(path: str) -> PlanFile:
    """The text of a reset plan. Whose lines they are depends on the requested groups: it isn't read further here."""
    text = text_of(path)
    if "\0" in text:
        raise ArgumentTypeError(f"{path!r} is not text: it contains zero bytes")
    if not text.strip():
        raise ArgumentTypeError(f"{path!r} is empty: expected lines of topic,partition,offset")
    return PlanFile(path, text)


@called("[[CLUSTER:][NAME]=]PATH")
def checkpoint(text: str) -> NamedCheckpoint:
    """`[[CLUSTER:][NAME]=]PATH`; what has a `/` before its `=` is a path."""
    found = _CHECKPOINT.fullmatch(text)
    cluster, name, path = found.groups() if found else (None, None, text)
    if not path.strip() or text.startswith("="):
        raise ArgumentTypeError(f"{text!r}: expected the folder that is a query's checkpointLocation")
    return NamedCheckpoint(cluster, name or None, path)


def between(least: int, most: int | None = None, kind: str = "number") -> Callable[[str], int]:
    """Parses a whole number from `least` to `most`, None: to any. `kind`: what the number is."""
    expected = f"{kind}, at least {least}" if most is None else f"{kind} from {least} to {most}"

    @called("N")
    def parse(text: str) -> int:
        if text.isascii() and text.isdecimal() and least <= int(text) and (most is None or int(text) <= most):
            return int(text)
        raise ArgumentTypeError(f"{text!r}: expected a {expected}")

    return parse


number = between(0)
count = between(1)
port = between(0, 65535, "port")
"""A port to listen on; 0: any free port."""
