"""Plans as files: JSON that people review and may edit, and that is read strictly (docs/plans.md has the schema)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from groupkeeper.base_error import GroupkeeperError
from groupkeeper.client.admin.types import OffsetAndMetadata, TopicPartition
from groupkeeper.operations.plans.model import Change, GroupPlan, Kind, Plan, PlannedTopic
from groupkeeper.operations.times import BadDatetime, parse_iso_datetime, utc_text

FORMAT = "groupkeeper-plan"
VERSION = 1

_KINDS = (Kind.RESET, Kind.UNDO, Kind.DELETE, Kind.CLONE, Kind.SWEEP, Kind.SHARE_CLONE)
"""The kinds of plans in files; other kinds are only in the journal."""

_INT = range(2**31)
_LONG = range(2**63)

PLAN_KEYS = frozenset(
    ["format", "version", "kind", "cluster_id", "made", "command", "undoes", "principal", "settles", "topics", "groups"]
)
GROUP_KEYS = frozenset(["group", "state", "partitions"])
CHANGE_KEYS = frozenset(
    "topic partition before after log_start_offset log_end_offset before_time after_time skipped replayed why".split()
)
COMMIT_KEYS = frozenset(["offset", "leader_epoch", "metadata"])
TOPIC_KEYS = frozenset(["id", "partitions"])


class BadPlanFile(GroupkeeperError, ValueError):
    """The file is not a plan. The text has the mistake and its place."""


def write(plan: Plan) -> Iterator[str]:
    """The text of a plan in pieces, a line for each partition."""
    head = {
        "format": FORMAT,
        "version": VERSION,
        "kind": str(plan.kind),
        "cluster_id": plan.cluster_id,
        "made": utc_text(plan.made_ms),
        "command": list(plan.command),
        "undoes": plan.undoes,
        **({"principal": plan.principal} if plan.principal else {}),
        **({"settles": True} if plan.settles else {}),
        "topics": {name: {"id": topic.topic_id, "partitions": topic.partitions} for name, topic in plan.topics.items()},
    }
    yield "{\n" + "".join(f'  "{key}": {json.dumps(value)},\n' for key, value in head.items()) + '  "groups": ['
    front = "\n"
    for group in plan.groups:
        rows = ",\n".join([f"      {_dump(_row(tp, change))}" for tp, change in group.changes.items()])
        start = f'    {{"group": {_dump(group.group_id)}, "state": {_dump(group.state)}, "partitions": ['
        yield f"{front}{start}\n{rows}\n    ]}}" if rows else f"{front}{start}]}}"
        front = ",\n"
    yield ("\n  " if plan.groups else "") + "]\n}\n"


def read(text: str) -> Plan:
    """The plan in a text. Keys that it doesn't have are refused, values of other types too. Raises BadPlanFile.

    `skipped` and `replayed` are for people: they are not read.
    """
    try:
        document = json.loads(text, object_pairs_hook=_PlanReader().value)
    except RecursionError:
        raise BadPlanFile("not a plan: brackets are nested too deeply") from None
    except json.JSONDecodeError as error:
        raise BadPlanFile(f"not JSON: {error.msg} in line {error.lineno}, column {error.colno}") from None
    except BadPlanFile:
        raise
    except ValueError:
        raise BadPlanFile("a number in the plan has thousands of digits") from None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise BadPlanFile(f'not a plan of groupkeeper: it has no "format": "{FORMAT}"')
    if document.get("version") != VERSION:
        raise BadPlanFile(
            f"the plan has version {_shown(document.get('version'))}; this groupkeeper reads version {VERSION}"
        )
    _check_keys({"principal": "", "settles": False, **document}, PLAN_KEYS, "the plan")
    settles = document.get("settles", False)
    if not isinstance(settles, bool):
        raise BadPlanFile(f"the plan: settles must be true or false, not {_shown(settles)}")
    return Plan(
        _text(document, "cluster_id", "the plan", may_be_null=True),
        _groups(document["groups"]),
        _kind(document["kind"]),
        _time(document, "made", "the plan") or 0,
        _command(document["command"]),
        _topics(document["topics"]),
        _text(document, "undoes", "the plan", may_be_null=True),
        _text(document, "principal", "the plan", default="") or "",
        settles,
    )


def _row(tp: TopicPartition, change: Change) -> dict[str, object]:
    return {
        "topic": tp.topic,
        "partition": tp.partition,
        "before": _commit(change.before),
        "after": _commit(change.after),
        "log_start_offset": change.log_start_offset,
        "log_end_offset": change.log_end_offset,
        "before_time": None if change.before_ms is None else utc_text(change.before_ms),
        "after_time": None if change.after_ms is None else utc_text(change.after_ms),
        "skipped": change.skipped,
        "replayed": change.replayed,
        "why": change.why,
        **({"certainty": change.certainty} if change.certainty else {}),
    }


def _commit(commit: OffsetAndMetadata | None) -> dict[str, object] | None:
    if commit is None:
        return None
    epoch = {} if commit.leader_epoch is None else {"leader_epoch": commit.leader_epoch}
    return {"offset": commit.offset, **epoch, **({"metadata": commit.metadata} if commit.metadata else {})}


_dump = json.JSONEncoder(ensure_ascii=False).encode


class _PlanReader:
    """Makes our values of JSON's objects as soon as each is read, so that a large plan isn't in memory twice."""

    def __init__(self) -> None:
        self._tps: dict[tuple[str, int], TopicPartition] = {}
        self._texts: dict[str, str] = {}
        self._times: dict[str, int] = {}

    def value(self, pairs: list[tuple[str, Any]]) -> Any:
        fields = dict(pairs)
        if len(fields) < len(pairs):
            keys = [key for key, _ in pairs]
            raise BadPlanFile(
                f"the field {next(key for key in keys if keys.count(key) > 1)} appears twice in one object"
            )
        # The object of the topics has objects for values: a topic may have one of these names.
        if "offset" in fields:
            offset = fields["offset"]
            is_plain = len(fields) == 1 and type(offset) is int and offset in _LONG
            return OffsetAndMetadata(offset) if is_plain else fields
        if "topic" in fields and not isinstance(fields["topic"], dict):
            return self._change(fields)
        if "group" in fields and not isinstance(fields["group"], dict):
            return self._group(fields)
        return fields

    def _change(self, fields: Mapping[str, Any]) -> tuple[TopicPartition, Change]:
        topic = _text(fields, "topic", "a partition")
        if not topic:
            raise BadPlanFile("a partition has a topic without a name")
        partition = _number(fields, "partition", f"topic {topic}", _INT)
        assert partition is not None
        tp = self._tps.get((topic, partition))
        if tp is None:
            tp = self._tps[topic, partition] = TopicPartition(topic, partition)
        if fields.keys() != CHANGE_KEYS:
            _check_keys({"certainty": "", **fields}, CHANGE_KEYS | {"certainty"}, str(tp))
        try:
            why = _text(fields, "why", "") or ""
            return tp, Change(
                _committed(fields, "before", ""),
                _committed(fields, "after", ""),
                _number(fields, "log_start_offset", "", _LONG, may_be_null=True),
                _number(fields, "log_end_offset", "", _LONG, may_be_null=True),
                self._time(fields, "before_time"),
                self._time(fields, "after_time"),
                self._texts.setdefault(why, why),
                certainty=_text(fields, "certainty", "", default="") or "",
            )
        except BadPlanFile as problem:
            raise BadPlanFile(f"{tp}{problem}") from None

    def _time(self, fields: Mapping[str, Any], name: str) -> int | None:
        text = fields[name]
        if type(text) is str and text in self._times:
            return self._times[text]
        time_ms = _time(fields, name, "")
        if time_ms is not None:
            self._times[text] = time_ms
        return time_ms

    def _group(self, fields: Mapping[str, Any]) -> GroupPlan:
        group_id = _text(fields, "group", "a group")
        if not group_id:
            raise BadPlanFile("a group has no name")
        where = f"group {group_id}"
        _check_keys(fields, GROUP_KEYS, where)
        rows = fields["partitions"]
        if not isinstance(rows, list) or not all(isinstance(row, tuple) for row in rows):
            raise BadPlanFile(f"{where}: partitions must be a list of partitions")
        changes: dict[TopicPartition, Change] = dict(rows)
        if len(changes) < len(rows):
            tps = [tp for tp, _ in rows]
            twice = next(tp for tp in tps if tps.count(tp) > 1)
            raise BadPlanFile(f"{where}: {twice} is listed twice")
        return GroupPlan(group_id, changes, (), _text(fields, "state", where) or "")


def _groups(groups: Any) -> tuple[GroupPlan, ...]:
    if not isinstance(groups, list) or not all(isinstance(group, GroupPlan) for group in groups):
        raise BadPlanFile('groups must be a list of objects like {"group": "billing", "state": "", "partitions": []}')
    ids = [group.group_id for group in groups]
    if len(set(ids)) < len(ids):
        raise BadPlanFile(f"group {next(one for one in ids if ids.count(one) > 1)} is listed twice")
    return tuple(groups)


def _topics(topics: Any) -> dict[str, PlannedTopic]:
    if not isinstance(topics, dict):
        raise BadPlanFile("topics must be an object")
    found = {}
    for name, fields in topics.items():
        where = f"topic {name}"
        if not isinstance(fields, dict):
            raise BadPlanFile(f"{where} must be an object")
        _check_keys(fields, TOPIC_KEYS, where)
        partitions = _number(fields, "partitions", where, _INT, may_be_null=True)
        found[name] = PlannedTopic(_text(fields, "id", where, may_be_null=True), partitions)
    return found


def _kind(kind: Any) -> Kind:
    if kind not in _KINDS:
        raise BadPlanFile(f"kind is {_shown(kind)}, and must be one of {', '.join(_KINDS)}")
    return Kind(kind)


def _command(words: Any) -> tuple[str, ...]:
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise BadPlanFile("command must be a list of words")
    return tuple(words)


def _committed(fields: Mapping[str, Any], name: str, where: str) -> OffsetAndMetadata | None:
    value = fields[name]
    if value is None or isinstance(value, OffsetAndMetadata):
        return value
    where = f"{where}: {name}"
    if not isinstance(value, dict) or "offset" not in value:
        raise BadPlanFile(f'{where} must be null or an object like {{"offset": 5}}')
    _check_known(value, COMMIT_KEYS, where)
    offset = _number(value, "offset", where, _LONG)
    epoch = _number(value, "leader_epoch", where, _INT, may_be_null=True)
    assert offset is not None
    return OffsetAndMetadata(offset, epoch, _text(value, "metadata", where, default="") or "")


def _number(
    fields: Mapping[str, Any], name: str, where: str, allowed: range, *, may_be_null: bool = False
) -> int | None:
    value = fields.get(name)
    if value is None and may_be_null:
        return None
    if type(value) is not int or value not in allowed:
        raise BadPlanFile(f"{where}: {name} is {_shown(value)}, and must be a number from 0 to {allowed[-1]}")
    return value


def _text(
    fields: Mapping[str, Any], name: str, where: str, *, may_be_null: bool = False, default: str | None = None
) -> str | None:
    value = fields.get(name, default)
    if value is None and may_be_null:
        return None
    if not isinstance(value, str):
        raise BadPlanFile(f"{where}: {name} is {_shown(value)}, and must be a text")
    return value


def _time(fields: Mapping[str, Any], name: str, where: str) -> int | None:
    text = _text(fields, name, where, may_be_null=True)
    try:
        return None if text is None else parse_iso_datetime(text)
    except BadDatetime:
        raise BadPlanFile(
            f"{where}: {name} is {_shown(text)}, and must be a time like 2026-01-31T23:59:59.000Z"
        ) from None


def _check_keys(fields: Mapping[str, Any], keys: frozenset[str], where: str) -> None:
    _check_known(fields, keys, where)
    missing = sorted(keys - fields.keys())
    if missing:
        raise BadPlanFile(f"{where} has no {missing[0]}")


def _check_known(fields: Iterable[str], keys: frozenset[str], where: str) -> None:
    unknown = sorted(set(fields) - keys)
    if unknown:
        raise BadPlanFile(f"{where} has the field {unknown[0]}, which no plan has")


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 60 else text[:57] + "..."
