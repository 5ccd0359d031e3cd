"""The change of one group that a form requests, and the equivalent command."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from typing import NamedTuple

from groupkeeper.client.admin.types import TopicPartition
from groupkeeper.operations.errors import BadTopicArgument
from groupkeeper.operations.plans import reset
from groupkeeper.operations.plans.builder import ALL_COMMITTED, Otherwise, PlanTopics, Policies
from groupkeeper.operations.plans.sweeps import Criteria
from groupkeeper.operations.selection import BadGroupPattern, Names
from groupkeeper.operations.times import BadDatetime, BadDuration, Duration, NoUnit, parse_iso_datetime, parse_length
from groupkeeper.shell import Ways, command, option, options_from, tool, way_to

_LONGEST_NUMBER = 18

Form = Mapping[str, Sequence[str]]
"""The fields of a form with their values."""


class BadForm(ValueError):
    """A field is invalid. The text has the field and the reason."""


class Deed(StrEnum):
    """The kind of change of a group."""

    RESET = "reset"
    DELETE_OFFSETS = "delete-offsets"
    DELETE = "delete"
    CLONE = "clone"


class Target(NamedTuple):
    """The group that gets offsets, and its cluster; `prefix`: stands before the names of its topics there."""

    cluster: str
    group_id: str
    prefix: str = ""


class ChangeRequest(NamedTuple):
    """A requested change."""

    deed: Deed
    group_id: str
    topics: PlanTopics
    """The topics, with the partitions, to change."""
    scenario: reset.Scenario | None
    """Where a reset goes; None: no reset."""
    policies: Policies
    command: tuple[str, ...]
    """Does the same in a shell."""
    target: Target | None = None
    """The target of a clone; None: no clone."""
    is_of_share_group: bool = False
    """Whether start offsets are set, not committed ones."""


class Swept(NamedTuple):
    """A sweep: which offsets of which groups to delete or keep. `options`: those of the equivalent command."""

    groups: Names
    criteria: Criteria
    options: tuple[str, ...]


def first(form: Form, name: str) -> str:
    """The value of a field, "" when it isn't there."""
    return next(iter(form.get(name, ())), "")


def change_request_of(form: Form, cluster: str, group_id: str, ways: Ways, *, is_share: bool = False) -> ChangeRequest:
    """The change that a form requests. `ways`: for the command. Raises BadForm."""
    deed = _one_of(Deed, "deed", first(form, "deed"))
    if is_share:
        return _of_share_group(form, deed, cluster, group_id, ways)
    topics, names = (ALL_COMMITTED, []) if deed is Deed.DELETE else _topics(form, deed)
    scenario, where = (None, []) if deed is not Deed.RESET else _scenario(form)
    policies, how = _policies(form) if deed in (Deed.RESET, Deed.CLONE) else (Policies(), [])
    if deed is Deed.CLONE:
        target, where = _target(form, cluster, group_id, ways)
        verb = ["plan", "clone", *names, *how, *where]
        words = command(way_to(target.cluster, ways), verb, (group_id, target.group_id))
        return ChangeRequest(deed, group_id, topics, None, policies, words, target)
    verb = ["plan", "reset"] if deed is Deed.RESET else ["groups", str(deed)]
    group = group_id if deed is Deed.DELETE_OFFSETS else Names(()).quoted(group_id)  # the others take globs
    words = command(way_to(cluster, ways), [*verb, *names, *where, *how], (group,))
    return ChangeRequest(deed, group_id, topics, scenario, policies, words)


SHARE_SCENARIOS = ("earliest", "latest", "time", "ago")
"""The targets of a share group's reset: those that kafka-share-groups has."""


def _of_share_group(form: Form, deed: Deed, cluster: str, group_id: str, ways: Ways) -> ChangeRequest:
    if deed is not Deed.RESET:
        raise BadForm(
            f"deed: {deed} is not possible for a share group here; the page on which it is changed names the tool"
        )
    if first(form, "to") not in ("", *SHARE_SCENARIOS):
        raise BadForm(f"where to: a share group can be reset to {', '.join(SHARE_SCENARIOS)}")
    topics, names = _topics(form, deed)
    scenario, where = _scenario(form)
    if isinstance(scenario, reset.ToTime):
        then = datetime.fromtimestamp(scenario.timestamp_ms / 1000, UTC).replace(tzinfo=None)
        where = ["--to-datetime", then.isoformat(timespec="milliseconds")]
    verb = ["--reset-offsets", *option("--group", group_id), *names, *where, "--dry-run"]
    words = tool(way_to(cluster, ways), "kafka-share-groups", verb)
    return ChangeRequest(deed, group_id, topics, scenario, Policies(), words, is_of_share_group=True)


def _target(form: Form, cluster: str, group_id: str, ways: Ways) -> tuple[Target, list[str]]:
    """The target group, and its arguments of the command."""
    target = Target(first(form, "to-cluster") or cluster, first(form, "to-group") or group_id, first(form, "prefix"))
    if target == Target(cluster, group_id):
        raise BadForm("which group: a group cannot be cloned to itself; name another one, or another cluster")
    options = option("--topic-prefix", target.prefix) if target.prefix else []
    options += options_from(way_to(cluster, ways)) if target.cluster != cluster else []
    return target, options


def swept_of(form: Form) -> Swept:
    """The sweep that a form requests. Raises BadForm."""
    pattern = first(form, "groups").strip()
    try:
        groups = Names([pattern] if pattern else [])
    except BadGroupPattern as problem:
        raise BadForm(f"which groups: {problem}") from None
    idle, expiring = (_age_ms(name, first(form, name).strip()) for name in ("idle", "expiring"))
    missing = bool(first(form, "missing"))
    if idle is None and expiring is None and not missing:
        raise BadForm("what to sweep: nothing is chosen")
    options = ["--idle", first(form, "idle").strip()] if idle is not None else []
    options += ["--missing-topics"] if missing else []
    options += ["--expiring", first(form, "expiring").strip()] if expiring is not None else []
    return Swept(groups, Criteria(idle, missing, expiring), tuple(options))


def _age_ms(name: str, text: str) -> int | None:
    if not text:
        return None
    age_ms = _length(name, text, "30d or 12h", lambda length: length.whole_ms)
    if age_ms <= 0:
        raise BadForm(f"{name}: expected a duration longer than 0")
    return age_ms


def _length(name: str, text: str, example: str, in_ms: Callable[[Duration], int]) -> int:
    try:
        return in_ms(parse_length(text))
    except NoUnit as problem:
        raise BadForm(f"{name}: {text!r}: {problem}") from None
    except BadDuration:
        raise BadForm(f"{name}: {text!r} is not a duration; for example {example}") from None


def _one_of(known: type[Deed], name: str, text: str) -> Deed:
    try:
        return known(text)
    except ValueError:
        raise BadForm(f"{name}: {text!r}: expected one of {', '.join(known)}") from None


def _topics(form: Form, deed: Deed) -> tuple[PlanTopics, list[str]]:
    """The partitions, and their arguments of the command."""
    more = (text.strip(",") for text in first(form, "more").split())
    typed = [*form.get("topic", ()), *(text for text in more if text)]
    if first(form, "scope") != "some":
        return ALL_COMMITTED, ["--topic", "*"] if deed is Deed.DELETE_OFFSETS else ["--all-topics"]
    if not typed:
        raise BadForm("no topic is chosen: choose some, or all partitions with a committed offset")
    names: list[str] = []
    partitions: list[TopicPartition] = []
    for text in dict.fromkeys(typed):
        try:
            topic, numbers = reset.parse_topic_argument(text)
        except BadTopicArgument as problem:
            raise BadForm(str(problem)) from None
        if numbers is None:
            names.append(topic)
        else:
            partitions += (TopicPartition(topic, number) for number in numbers)
    partitions = [tp for tp in partitions if tp.topic not in names]
    options = [word for text in dict.fromkeys(typed) for word in option("--topic", text)]
    return PlanTopics(names, partitions), options


def _scenario(form: Form) -> tuple[reset.Scenario, list[str]]:
    """The scenario, and its arguments of the command."""
    to = first(form, "to")
    if to not in _SCENARIOS:
        raise BadForm("where to: nothing is chosen")
    read, field = _SCENARIOS[to]
    value = first(form, field).strip()
    if field and not value:
        raise BadForm(f"{field}: required with to={to}")
    return read(value)


def _plain(scenario: reset.Scenario, option: str) -> Callable[[str], tuple[reset.Scenario, list[str]]]:
    return lambda _: (scenario, [option])


def _from_time(text: str) -> tuple[reset.Scenario, list[str]]:
    try:
        then_ms = parse_iso_datetime(text)
    except BadDatetime:
        raise BadForm(f"time: {text!r} is not a date and time; for example 2026-01-31T23:59:59, in UTC") from None
    if then_ms < 0:
        raise BadForm(f"time: {text!r} is before 1970: no record has such a timestamp")
    return reset.ToTime(then_ms), ["--to-datetime", text]


def _from_duration(text: str) -> tuple[reset.Scenario, list[str]]:
    now_ns = time.time_ns()
    then_ms = _length("how long ago", text, "7d, 12h or 1d2h30m", lambda length: length.before_ms(now_ns))
    if then_ms < 0:
        raise BadForm(f"how long ago: {text!r} ago is before 1970: no record has such a timestamp")
    return reset.ToTime(then_ms), ["--by-duration", text]


def _to_offset(text: str) -> tuple[reset.Scenario, list[str]]:
    number = _number("offset", text)
    if number < 0:
        raise BadForm("offset: expected a number, at least 0")
    return reset.ToOffset(number), ["--to-offset", str(number)]


def _shift(text: str) -> tuple[reset.Scenario, list[str]]:
    number = _number("shift", text)
    return reset.ShiftBy(number), [f"--shift-by={number}"]


def _number(name: str, text: str) -> int:
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not (digits.isascii() and digits.isdecimal() and len(digits) <= _LONGEST_NUMBER):
        raise BadForm(f"{name}: {text!r} is not a number")
    return int(text)


_SCENARIOS: Mapping[str, tuple[Callable[[str], tuple[reset.Scenario, list[str]]], str]] = {
    "earliest": (_plain(reset.ToEarliest(), "--to-earliest"), ""),
    "latest": (_plain(reset.ToLatest(), "--to-latest"), ""),
    "current": (_plain(reset.ToCurrent(), "--to-current"), ""),
    "time": (_from_time, "time"),
    "ago": (_from_duration, "ago"),
    "offset": (_to_offset, "offset"),
    "shift": (_shift, "shift"),
}


def _policies(form: Form) -> tuple[Policies, list[str]]:
    """The policies for partitions where the scenario doesn't fit, and their arguments of the command."""
    no_record = first(form, "if-no-record") or "end"
    out_of_range = first(form, "if-out-of-range") or "clamp"
    if no_record not in ("end", "skip", "fail") or out_of_range not in ("clamp", "skip", "fail"):
        raise BadForm("where the offset does not fit: expected one of the choices")
    options = ["--if-no-record", no_record] if no_record != "end" else []
    options += ["--if-out-of-range", out_of_range] if out_of_range != "clamp" else []
    return Policies(Otherwise(no_record), Otherwise(out_of_range)), options
