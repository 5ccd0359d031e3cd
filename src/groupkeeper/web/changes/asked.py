"""What a form asks for: a change of one group, as it was typed, and the command that would do the same."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

from groupkeeper.client.admin.types import TopicPartition
from groupkeeper.operations.errors import BadTopicArgument
from groupkeeper.operations.plans.making import ALL_COMMITTED, Otherwise, Policies, Topics
from groupkeeper.operations.reset import (
    Scenario,
    ShiftBy,
    ToCurrent,
    ToEarliest,
    ToLatest,
    ToOffset,
    ToTime,
    parse_topic_argument,
)
from groupkeeper.operations.selection import Names
from groupkeeper.operations.times import BadDatetime, BadDuration, parse_iso_datetime, parse_length

_LONGEST_NUMBER = 18

Form = Mapping[str, Sequence[str]]
"""The fields of a form with their values."""


class BadForm(ValueError):
    """A field has what cannot be done. The text says which and why."""


class Deed(StrEnum):
    """What is to become of a group."""

    RESET = "reset"
    DELETE_OFFSETS = "delete-offsets"
    DELETE = "delete"


class Asked(NamedTuple):
    """``topics``: which partitions. ``scenario``: where to; None: nowhere, something is deleted. ``command``: what
    does the same in a shell.
    """

    deed: Deed
    group_id: str
    topics: Topics
    scenario: Scenario | None
    policies: Policies
    command: tuple[str, ...]


def first(form: Form, name: str) -> str:
    """The value of a field, "" when it isn't there."""
    return next(iter(form.get(name, ())), "")


def asked_of(form: Form, cluster: str, group_id: str) -> Asked:
    """What a form asks for. Raises BadForm."""
    deed = _one_of(Deed, "deed", first(form, "deed"))
    topics, names = (ALL_COMMITTED, []) if deed is Deed.DELETE else _topics(form, deed)
    scenario, where = (None, []) if deed is not Deed.RESET else _scenario(form)
    policies, how = (Policies(), []) if deed is not Deed.RESET else _policies(form)
    told = ["plan", "reset"] if deed is Deed.RESET else ["groups", str(deed)]
    group = group_id if deed is Deed.DELETE_OFFSETS else Names(()).quoted(group_id)  # the others take globs
    command = ("groupkeeper", *told, group, *names, *where, *how, "--context", cluster)
    return Asked(deed, group_id, topics, scenario, policies, command)


def _one_of(known: type[Deed], name: str, text: str) -> Deed:
    try:
        return known(text)
    except ValueError:
        raise BadForm(f"{name}: {text!r} is none of {', '.join(known)}") from None


def _topics(form: Form, deed: Deed) -> tuple[Topics, list[str]]:
    """Which partitions, and how the command says so."""
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
            topic, numbers = parse_topic_argument(text)
        except BadTopicArgument as problem:
            raise BadForm(str(problem)) from None
        if numbers is None:
            names.append(topic)
        else:
            partitions += (TopicPartition(topic, number) for number in numbers)
    partitions = [place for place in partitions if place.topic not in names]
    said = [word for text in dict.fromkeys(typed) for word in ("--topic", text)]
    return Topics(names, partitions), said


def _scenario(form: Form) -> tuple[Scenario, list[str]]:
    """Where to, and how the command says so."""
    to = first(form, "to")
    if to not in _SCENARIOS:
        raise BadForm("where to: nothing is chosen")
    read, field = _SCENARIOS[to]
    return read(first(form, field).strip())


def _plain(scenario: Scenario, option: str) -> Callable[[str], tuple[Scenario, list[str]]]:
    return lambda _: (scenario, [option])


def _from_time(text: str) -> tuple[Scenario, list[str]]:
    try:
        then_ms = parse_iso_datetime(text)
    except BadDatetime:
        raise BadForm(f"time: {text!r} is no date and time; for example 2026-01-31T23:59:59, in UTC") from None
    if then_ms < 0:
        raise BadForm(f"time: {text!r} is before 1970: no record has such a timestamp")
    return ToTime(then_ms), ["--to-datetime", text]


def _from_duration(text: str) -> tuple[Scenario, list[str]]:
    try:
        then_ms = parse_length(text).before_ms(time.time_ns())
    except BadDuration:
        raise BadForm(f"how long ago: {text!r} is no duration; for example 7d, 12h or 1d2h30m") from None
    if then_ms < 0:
        raise BadForm(f"how long ago: {text!r} ago is before 1970: no record has such a timestamp")
    return ToTime(then_ms), ["--by-duration", text]


def _to_offset(text: str) -> tuple[Scenario, list[str]]:
    number = _number("offset", text)
    if number < 0:
        raise BadForm("offset: expected a number from 0 on")
    return ToOffset(number), ["--to-offset", str(number)]


def _shift(text: str) -> tuple[Scenario, list[str]]:
    number = _number("shift", text)
    return ShiftBy(number), [f"--shift-by={number}"]


def _number(name: str, text: str) -> int:
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not (digits.isascii() and digits.isdecimal() and len(digits) <= _LONGEST_NUMBER):
        raise BadForm(f"{name}: {text!r} is no number")
    return int(text)


_SCENARIOS: Mapping[str, tuple[Callable[[str], tuple[Scenario, list[str]]], str]] = {
    "earliest": (_plain(ToEarliest(), "--to-earliest"), ""),
    "latest": (_plain(ToLatest(), "--to-latest"), ""),
    "current": (_plain(ToCurrent(), "--to-current"), ""),
    "time": (_from_time, "time"),
    "ago": (_from_duration, "ago"),
    "offset": (_to_offset, "offset"),
    "shift": (_shift, "shift"),
}


def _policies(form: Form) -> tuple[Policies, list[str]]:
    """What to do where it cannot be done as asked, and how the command says so."""
    no_record = first(form, "if-no-record") or "end"
    out_of_range = first(form, "if-out-of-range") or "clamp"
    if no_record not in ("end", "skip", "fail") or out_of_range not in ("clamp", "skip", "fail"):
        raise BadForm("where it cannot be done as asked: that is no choice")
    said = ["--if-no-record", no_record] if no_record != "end" else []
    said += ["--if-out-of-range", out_of_range] if out_of_range != "clamp" else []
    return Policies(Otherwise(no_record), Otherwise(out_of_range)), said
