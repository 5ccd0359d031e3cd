"""Rules in a file (TOML): limits for groups, how long they may be broken, and the webhooks to notify."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple

from groupkeeper.client.admin.types import GroupState
from groupkeeper.live.limits import GroupLimits
from groupkeeper.live.toml_tables import (
    BadTable,
    TomlTable,
    as_names,
    as_text,
    as_texts,
    given_secret,
    one_of,
    read_toml,
    secret_of,
)
from groupkeeper.live.waits import SHORT_MS
from groupkeeper.operations.selection import Choice, Names
from groupkeeper.operations.times import BadDuration, NoUnit, parse_length
from groupkeeper.rules.status import Status


class Template(StrEnum):
    """The format of a webhook's requests."""

    JSON = "json"
    SLACK = "slack"
    TEAMS = "teams"
    PAGERDUTY = "pagerduty"
    ALERTMANAGER = "alertmanager"
    MAIL = "mail"


class Webhook(NamedTuple):
    """A webhook."""

    name: str
    url: str
    template: Template
    repeat_ms: int | None
    """The interval at which a firing alert is sent again; None: never."""
    key: str = ""
    """PagerDuty's, a secret as the URL can be."""
    sender: str = ""
    """For mail, as the next one: the URL is then a mail server's."""
    recipients: tuple[str, ...] = ()


class AlertRule(NamedTuple):
    """A rule for alerts."""

    name: str
    limits: GroupLimits
    groups: Choice
    clusters: Names
    for_ms: int
    """How long a limit is broken before an alert fires."""
    resolve_ms: int
    """How long it is kept before the alert is resolved."""
    within_ms: int
    """For limits of rebalances."""
    severity: str
    owner: str
    command: str
    to: tuple[str, ...]
    """Names of webhooks."""
    is_of_cluster: bool = False
    """Whether it is broken when the cluster cannot be polled; it has no limits of groups then."""


class Silence(NamedTuple):
    """No alert of these rules, clusters and groups is sent between two times, in ms."""

    rules: Names
    clusters: Names
    groups: Names
    from_ms: int
    until_ms: int | None
    """None: without an end."""
    why: str

    def holds(self, now_ms: int) -> bool:
        """Whether the silence applies at this time."""
        return self.from_ms <= now_ms and (self.until_ms is None or now_ms < self.until_ms)


class Rules(NamedTuple):
    """The content of a file of rules."""

    rules: tuple[AlertRule, ...]
    silences: tuple[Silence, ...]
    webhooks: Mapping[str, Webhook]

    @property
    def short_ms(self) -> int:
        """The shortest limit for records that wait."""
        limits = [ms for each in self.rules for ms in (each.limits.max_time_lag_ms, each.limits.max_idle_ms)]
        return min(ms for ms in (*limits, SHORT_MS) if ms is not None)

    def with_polls(self, interval_ms: int) -> Rules:
        """The rules for polls at this interval: no alert is repeated more often."""
        webhooks = {
            name: each if each.repeat_ms is None else each._replace(repeat_ms=max(each.repeat_ms, interval_ms))
            for name, each in self.webhooks.items()
        }
        return self._replace(webhooks=webhooks)


_MAX_COUNTS = ("max_lag", "max_uncommitted", "max_lost", "max_rebalances", "max_dead_letters", "min_members")
_TIMES = {"max_time_lag": "max_time_lag_ms", "min_retention_margin": "min_margin_ms", "max_idle": "max_idle_ms"}
_REPEAT_MS = dict.fromkeys(Template, 4 * 3600_000) | {Template.ALERTMANAGER: 60_000}
_PAGERDUTY = "https://events.pagerduty.com/v2/enqueue"
_SCHEMES = dict.fromkeys(Template, ("http://", "https://")) | {Template.MAIL: ("smtp://", "smtps://")}


def read_rules(path: str) -> Rules:
    """The rules in a file. Raises BadTable, OSError."""
    return read_toml(path, lambda document: rules_of(document, Path(path).parent))


def rules_of(document: Mapping[str, Any], folder: Path) -> Rules:
    """The rules of a TOML document. Files that it names are relative to the folder. Raises BadTable."""
    top = TomlTable("the file", document)
    hooks = top.take("webhook", _tables_by_name, {})
    webhooks = {name: _webhook(TomlTable(f"webhook.{name}", table), name, folder) for name, table in hooks.items()}
    rules = top.tables("rule", lambda table: _rule(table, webhooks))
    silences = top.tables("silence", _silence)
    top.end()
    if not rules:
        raise BadTable("there is no [[rule]]")
    names = [rule.name for rule in rules]
    for name in names:
        if names.count(name) > 1:
            raise BadTable(f"two rules are called {name!r}")
    return Rules(tuple(rules), tuple(silences), webhooks)


def _rule(table: TomlTable, webhooks: Mapping[str, Webhook]) -> AlertRule:
    name = table.take("name", as_text)
    table.where = f"rule {name!r}"
    limits = GroupLimits(
        **{key: table.take(key, _count, None) for key in _MAX_COUNTS},
        **{field: table.take(key, _duration_ms, None) for key, field in _TIMES.items()},
        states=frozenset(table.take("states", _states, [])),
        statuses=frozenset(table.take("status", _statuses, [])),
    )
    is_of_cluster = table.take("cluster_unreachable", _truth, False)
    to = tuple(table.take("to", as_texts, list(webhooks)))
    rule = AlertRule(
        name,
        limits,
        Choice(table.take("groups", as_names, Names(())), table.take("except_groups", as_names, Names(()))),
        table.take("clusters", as_names, Names(())),
        table.take("for", _duration_ms, 0),
        table.take("resolve_after", _duration_ms, 0),
        table.take("within", _duration_ms, 600_000),
        table.take("severity", as_text, "warning"),
        table.take("owner", as_text, ""),
        table.take("command", as_text, ""),
        to,
        is_of_cluster,
    )
    table.end()
    if bool(limits) == is_of_cluster:
        raise BadTable(f"{table.where}: expected limits, or cluster_unreachable = true, and not both")
    for each in to:
        if each not in webhooks:
            is_url = "/" in each  # which is a secret
            raise BadTable(f"{table.where}: there is no [webhook.{'…' if is_url else each}]: to has names of webhooks")
    return rule


def _silence(table: TomlTable) -> Silence:
    silence = Silence(
        table.take("rules", as_names, Names(())),
        table.take("clusters", as_names, Names(())),
        table.take("groups", as_names, Names(())),
        table.take("from", _time_ms, 0),
        table.take("until", _time_ms, None),
        table.take("why", as_text),
    )
    table.end()
    return silence


def _webhook(table: TomlTable, name: str, folder: Path) -> Webhook:
    template = table.take("template", one_of(Template), Template.JSON)
    is_pagerduty, is_mail = template is Template.PAGERDUTY, template is Template.MAIL
    keys = ("url", "key") if is_pagerduty else ("url",)
    given = {key: given_secret(table, key) for key in keys}
    sender = table.take("from", as_text) if is_mail else ""
    recipients = tuple(table.take("mail_to", as_texts)) if is_mail else ()
    repeat_ms = table.take("repeat", _repeat_ms, _REPEAT_MS[template])
    table.end()
    if is_pagerduty:
        given["url"] = given["url"] or {"url": _PAGERDUTY}
    url, *key = (secret_of(table.where, key, given[key], folder) for key in keys)
    if not url.startswith(_SCHEMES[template]):  # which may be a secret
        raise BadTable(f"{table.where}: url gives no {' or '.join(_SCHEMES[template])} address")
    for each in (sender, *recipients) if is_mail else ():
        if "@" not in each or not each.isprintable() or "," in each:
            raise BadTable(f"{table.where}: {each!r} is no address of mail")
    return Webhook(name, url, template, repeat_ms or None, "".join(key), sender, recipients)


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
        raise ValueError("expected a number, at least 0")
    return value


def _duration_ms(value: Any) -> int:
    try:
        length = parse_length(str(value))
    except NoUnit:
        raise
    except BadDuration:
        raise ValueError(f'expected a duration, for example "10m", not {value!r}') from None
    if length.seconds < 0:
        raise ValueError(f"a duration cannot be negative: {value!r}")
    return length.whole_ms


def _repeat_ms(value: Any) -> int:
    """The interval of repetitions; 0: never."""
    return 0 if value == "never" else max(1000, _duration_ms(value))


def _statuses(value: Any) -> list[Status]:
    texts = as_texts(value)
    if set(texts) - set(Status):
        raise ValueError(f"expected some of {', '.join(Status)}")
    return [Status(text) for text in texts]


def _states(value: Any) -> list[GroupState]:
    states = [GroupState.parse(text) for text in as_texts(value)]
    if GroupState.UNKNOWN in states:
        raise ValueError(f"expected some of {', '.join(state for state in GroupState if state != GroupState.UNKNOWN)}")
    return states


def _time_ms(value: Any) -> int:
    if not isinstance(value, datetime):
        raise ValueError("expected a date and time, for example 2026-12-01T06:00:00Z")
    return int((value if value.tzinfo else value.replace(tzinfo=UTC)).timestamp() * 1000)
