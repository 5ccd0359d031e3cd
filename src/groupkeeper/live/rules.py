"""Rules in a file: which groups are to keep which limits, for how long they may not, and who is told. TOML."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple

from groupkeeper.client.admin.types import GroupState
from groupkeeper.live.limits import Limits
from groupkeeper.operations.selection import BadPattern, Choice, Names
from groupkeeper.operations.times import BadDuration, parse_length


class BadRules(ValueError):
    """The file is not what it is to be. The text says where and why."""


class Template(StrEnum):
    """In which form a webhook is told."""

    JSON = "json"
    SLACK = "slack"
    ALERTMANAGER = "alertmanager"


class Webhook(NamedTuple):
    """Whom to tell. ``repeat_ms``: what goes on is told again after so long; None: never."""

    name: str
    url: str
    template: Template
    repeat_ms: int | None


class Rule(NamedTuple):
    """``for_ms``: so long a limit is broken before anybody is told; ``resolve_ms``: and so long kept before that is.
    ``is_of_cluster``: no limit of groups, but that the cluster can be asked. ``within_ms``: for limits of rebalances.
    ``to``: names of webhooks.
    """

    name: str
    limits: Limits
    groups: Choice
    clusters: Names
    for_ms: int
    resolve_ms: int
    within_ms: int
    severity: str
    owner: str
    command: str
    to: tuple[str, ...]
    is_of_cluster: bool = False


class Silence(NamedTuple):
    """Nobody is told of these rules, clusters and groups between the two times, in ms; None: without an end."""

    rules: Names
    clusters: Names
    groups: Names
    from_ms: int
    until_ms: int | None
    why: str


class Rules(NamedTuple):
    """All of a file."""

    rules: tuple[Rule, ...]
    silences: tuple[Silence, ...]
    webhooks: Mapping[str, Webhook]


_MAX_COUNTS = ("max_lag", "max_uncommitted", "max_lost", "max_rebalances", "min_members")
_TIMES = {"max_time_lag": "max_time_lag_ms", "min_retention_margin": "min_margin_ms", "max_idle": "max_idle_ms"}
_REPEAT_MS = {Template.JSON: 4 * 3600_000, Template.SLACK: 4 * 3600_000, Template.ALERTMANAGER: 60_000}


def read_rules(path: str) -> Rules:
    """The rules in a file. Raises BadRules, OSError."""
    with open(path, "rb") as file:
        try:
            document = tomllib.load(file)
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
            raise BadRules(f"{path}: {problem}") from None
    try:
        return rules_of(document, Path(path).parent)
    except BadRules as problem:
        raise BadRules(f"{path}: {problem}") from None


def rules_of(document: Mapping[str, Any], folder: Path) -> Rules:
    """The rules of a TOML document. Files that it names are relative to the folder. Raises BadRules."""
    top = _Table("the file", document)
    hooks = top.take("webhook", _tables_by_name, {})
    webhooks = {name: _webhook(_Table(f"webhook.{name}", table), name, folder) for name, table in hooks.items()}
    rules = [
        _rule(_Table(f"rule {number}", table), webhooks)
        for number, table in enumerate(top.take("rule", _tables, []), 1)
    ]
    silences = [
        _silence(_Table(f"silence {number}", table)) for number, table in enumerate(top.take("silence", _tables, []), 1)
    ]
    top.end()
    if not rules:
        raise BadRules("there is no [[rule]]")
    names = [rule.name for rule in rules]
    for name in names:
        if names.count(name) > 1:
            raise BadRules(f"two rules are called {name!r}")
    return Rules(tuple(rules), tuple(silences), webhooks)


def _rule(table: _Table, webhooks: Mapping[str, Webhook]) -> Rule:
    name = table.take("name", _text)
    table.where = f"rule {name!r}"
    limits = Limits(
        **{key: table.take(key, _count, None) for key in _MAX_COUNTS},
        **{field: table.take(key, _duration_ms, None) for key, field in _TIMES.items()},
        states=frozenset(table.take("states", _states, [])),
    )
    is_of_cluster = table.take("cluster_unreachable", _truth, False)
    if bool(limits) == is_of_cluster:
        raise BadRules(f"{table.where}: expected limits, or cluster_unreachable = true, and not both")
    to = tuple(table.take("to", _texts, list(webhooks)))
    for each in to:
        if each not in webhooks:
            raise BadRules(f"{table.where}: there is no [webhook.{each}]")
    rule = Rule(
        name,
        limits,
        Choice(table.take("groups", _names, Names(())), table.take("except_groups", _names, Names(()))),
        table.take("clusters", _names, Names(())),
        table.take("for", _duration_ms, 0),
        table.take("resolve_after", _duration_ms, 0),
        table.take("within", _duration_ms, 600_000),
        table.take("severity", _text, "warning"),
        table.take("owner", _text, ""),
        table.take("command", _text, ""),
        to,
        is_of_cluster,
    )
    table.end()
    return rule


def _silence(table: _Table) -> Silence:
    silence = Silence(
        table.take("rules", _names, Names(())),
        table.take("clusters", _names, Names(())),
        table.take("groups", _names, Names(())),
        table.take("from", _time_ms, 0),
        table.take("until", _time_ms, None),
        table.take("why", _text),
    )
    table.end()
    return silence


def _webhook(table: _Table, name: str, folder: Path) -> Webhook:
    given = {key: table.take(key, _text, None) for key in ("url", "url_file", "url_variable")}
    told = [key for key, value in given.items() if value is not None]
    if len(told) != 1:
        raise BadRules(f"{table.where}: expected one of url, url_file, url_variable")
    value = given[told[0]]
    assert value is not None
    url = value
    if told == ["url_file"]:
        try:
            url = (folder / value).read_text("utf-8").strip()
        except OSError as problem:
            raise BadRules(f"{table.where}: cannot read {value!r}: {problem.strerror}") from None
    elif told == ["url_variable"]:
        url = os.environ.get(value, "").strip()
    if not url.startswith(("http://", "https://")):
        raise BadRules(f"{table.where}: {told[0]} gives no http:// or https:// address")  # which may be a secret
    template = table.take("template", _template, Template.JSON)
    repeat_ms = table.take("repeat", _repeat_ms, _REPEAT_MS[template])
    table.end()
    return Webhook(name, url, template, repeat_ms or None)


class _Table:
    """A table of the document, of which each key is taken once; what is left is a mistake."""

    def __init__(self, where: str, table: Mapping[str, Any]) -> None:
        self.where = where
        self._left = dict(table)

    def take(self, key: str, read: Callable[[Any], Any], *default: Any) -> Any:
        if key not in self._left:
            if not default:
                raise BadRules(f"{self.where}: {key} is missing")
            return default[0]
        value = self._left.pop(key)
        try:
            return read(value)
        except (BadDuration, BadPattern, TypeError, ValueError) as problem:
            raise BadRules(f"{self.where}: {key}: {problem}") from None

    def end(self) -> None:
        if self._left:
            raise BadRules(f"{self.where}: {next(iter(self._left))!r} is not known here")


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError("expected a text")
    return value


def _texts(value: Any) -> list[str]:
    if not isinstance(value, list):
        raise ValueError("expected a list of texts")
    return [_text(each) for each in value]


def _names(value: Any) -> Names:
    return Names(_texts(value))


def _tables(value: Any) -> Sequence[Mapping[str, Any]]:
    if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
        raise ValueError("expected tables in double brackets")
    return value


def _tables_by_name(value: Any) -> Mapping[str, Mapping[str, Any]]:
    if not isinstance(value, dict) or not all(isinstance(each, dict) for each in value.values()):
        raise ValueError("expected [webhook.NAME]")
    return value


def _truth(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError("expected true or false")
    return value


def _count(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ValueError("expected a number from 0 on")
    return value


def _duration_ms(value: Any) -> int:
    if not isinstance(value, str):
        raise ValueError('expected a duration, for example "10m"')
    length = parse_length(value)
    return length.seconds * 1000 + length.nanos // 10**6


def _repeat_ms(value: Any) -> int:
    """0: never."""
    return 0 if value == "never" else max(1000, _duration_ms(value))


def _states(value: Any) -> list[GroupState]:
    states = [GroupState.parse(text) for text in _texts(value)]
    if GroupState.UNKNOWN in states:
        raise ValueError(f"expected some of {', '.join(state for state in GroupState if state != GroupState.UNKNOWN)}")
    return states


def _template(value: Any) -> Template:
    try:
        return Template(value)
    except ValueError:
        raise ValueError(f"expected one of {', '.join(Template)}") from None


def _time_ms(value: Any) -> int:
    if not isinstance(value, datetime):
        raise ValueError("expected a date and time, for example 2026-12-01T06:00:00Z")
    return int((value if value.tzinfo else value.replace(tzinfo=UTC)).timestamp() * 1000)
