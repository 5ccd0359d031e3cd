"""The reset plan of KIP-122's first version as JSON: written strictly, read leniently."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from groupkeeper.base_error import GroupkeeperError
from groupkeeper.client.admin.types import TopicPartition

VERSION = 1
_INT = range(2**31)
_LONG = range(-(2**63), 2**63)


class BadResetPlan(GroupkeeperError, ValueError):
    """The file is not a plan. The text has the mistake and its place."""


class ResetPlan(NamedTuple):
    """The offsets that a group is to have."""

    group_id: str
    offsets: dict[TopicPartition, int]


def write(plan: ResetPlan) -> str:
    """The plan's JSON: topics sorted by name, partitions ascending, a line for each partition."""
    by_topic: dict[str, list[str]] = {}
    for (topic, partition), offset in sorted(plan.offsets.items()):
        by_topic.setdefault(topic, []).append(f'        {{"partition": {partition}, "offset": {offset}}}')
    topics = [f"      {{{_text(topic)}: [\n" + ",\n".join(lines) + "\n      ]}" for topic, lines in by_topic.items()]
    listed = "[\n" + ",\n".join(topics) + "\n    ]" if topics else "[]"
    return (
        f'{{\n  "version": {VERSION},\n  "offsets": {{\n    "group_id": {_text(plan.group_id)},\n'
        f'    "topics": {listed}\n  }}\n}}\n'
    )


def read(text: str) -> ResetPlan:
    """The plan in a JSON text. Keys may be in any order, others are ignored, and `topics` may be one object.

    Raises BadResetPlan.
    """
    document = _object(_parsed(text), "the plan")
    version = _field(document, "version", "the plan")
    if type(version) is not int or version != VERSION:
        raise BadResetPlan(f"version is {_shown(version)}, and must be {VERSION}")
    offsets = _object(_field(document, "offsets", "the plan"), "offsets")
    group_id = _field(offsets, "group_id", "offsets")
    if not isinstance(group_id, str) or not group_id:
        raise BadResetPlan(f"offsets.group_id is {_shown(group_id)}, and must be the name of a group")
    plan = ResetPlan(group_id, {})
    for topic, entries in _topics(_field(offsets, "topics", "offsets")):
        if not topic:
            raise BadResetPlan("offsets.topics has a topic without a name")
        if not isinstance(entries, list):
            raise BadResetPlan(f"topic {topic}: {_shown(entries)} must be a list of partitions")
        for entry in entries:
            partition, offset = _entry(topic, entry)
            tp = TopicPartition(topic, partition)
            if tp in plan.offsets:
                raise BadResetPlan(f"topic {topic}: partition {partition} is listed twice")
            plan.offsets[tp] = offset
    return plan


class _Pairs(tuple[tuple[str, Any], ...]):
    """A JSON object with all its keys, also repeated ones."""


def _parsed(text: str) -> Any:
    try:
        return json.loads(text, object_pairs_hook=_Pairs, parse_constant=_no_constant)
    except RecursionError:
        raise BadResetPlan("not a plan: brackets are nested too deeply") from None
    except json.JSONDecodeError as error:
        raise BadResetPlan(f"not JSON: {error.msg} in line {error.lineno}, column {error.colno}") from None
    except ValueError as error:
        raise BadResetPlan(f"not JSON: {error}") from None


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not a number in JSON")


def _topics(topics: Any) -> Iterable[tuple[str, Any]]:
    if isinstance(topics, _Pairs):
        return topics
    if not isinstance(topics, list):
        raise BadResetPlan(f"offsets.topics is {_shown(topics)}, and must be a list of topics")
    return [pair for one in topics for pair in _pairs(one, "each of offsets.topics")]


def _entry(topic: str, entry: Any) -> tuple[int, int]:
    fields = _object(entry, f"topic {topic}: each partition")
    partition = _field(fields, "partition", f"topic {topic}: an entry")
    if type(partition) is not int or partition not in _INT:
        raise BadResetPlan(f"topic {topic}: partition is {_shown(partition)}, and must be a number from 0 on")
    offset = _field(fields, "offset", f"topic {topic}: partition {partition}")
    if type(offset) is not int or offset not in _LONG:
        raise BadResetPlan(
            f"topic {topic}: the offset of partition {partition} is {_shown(offset)}, and must be a number"
        )
    return partition, offset


def _pairs(value: Any, what: str) -> _Pairs:
    if not isinstance(value, _Pairs):
        raise BadResetPlan(f"{what} must be an object, and one is {_shown(value)}")
    return value


def _object(value: Any, what: str) -> Mapping[str, Any]:
    """The keys and values of an object; a repeated key is refused as ambiguous."""
    pairs = _pairs(value, what)
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise BadResetPlan(f"{what}: the field {twice} appears twice")
    return found


def _field(fields: Mapping[str, Any], name: str, where: str) -> Any:
    if name not in fields:
        raise BadResetPlan(f"{where} has no field {name}")
    return fields[name]


def _shown(value: Any) -> str:
    text = "an object" if isinstance(value, _Pairs) else json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 40 else text[:37] + "..."


def _text(name: str) -> str:
    return json.dumps(name, ensure_ascii=False)
