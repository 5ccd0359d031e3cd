"""Subscriptions by regular expression: the core knows which are in use and what they matched; matching is the shell's
(GN-19, GN-20).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from groupkeeper.coordinator import consumer_records
from groupkeeper.coordinator.consumer_group import (
    ConsumerChange,
    ConsumerGroup,
    ConsumerMember,
    ConsumerSoft,
    ResolvedRegex,
)
from groupkeeper.coordinator.consumer_step import Step
from groupkeeper.coordinator.result import Call, RegexLookup, Result
from groupkeeper.coordinator.settings import Settings
from groupkeeper.coordinator.topics_image import TopicsImage
from groupkeeper.protocol.errors import InvalidRegularExpression

_LEAST_INTERVAL_MS: Final = 10_000


class RegexOutcome(NamedTuple):
    """What a member's regular expression means for the group: whether it is another one than before, and whether that
    changes what the member subscribes to right now.
    """

    has_changed: bool
    must_bump: bool


def follow_regex(step: Step, settings: Settings, call: Call, old: ConsumerMember, new: ConsumerMember) -> RegexOutcome:
    """Takes over a changed regular expression, and asks for its topics when it is time. `step` has the new member.

    Raises `InvalidRegularExpression`.
    """
    before, after = old.subscribed_topic_regex, new.subscribed_topic_regex
    has_changed = before != after
    must_bump = False
    if has_changed:
        counts = step.group.regex_counts
        if after and counts.get(after) == 1 and call.regex_trouble is not None:
            raise InvalidRegularExpression(
                f"SubscribedTopicRegex `{after}` is not a valid regular expression: {call.regex_trouble}."
            )
        if before and before not in counts:
            step.write(consumer_records.regex_tombstone(step.group.group_id, before))
        must_bump = not after or after in step.group.resolved
    _look_up_if_due(step, settings, call)
    return RegexOutcome(has_changed, must_bump)


def _look_up_if_due(step: Step, settings: Settings, call: Call) -> None:
    group = step.group
    if not group.regex_counts or group.soft.is_resolving:
        return
    latest_ms = max((one.time_ms for one in group.resolved.values()), default=None)
    if latest_ms is not None and latest_ms <= step.now_ms <= latest_ms + _LEAST_INTERVAL_MS:
        return
    version = max((one.version for one in group.resolved.values()), default=-1)
    is_due = (
        latest_ms is None
        or not group.regex_counts.keys() <= group.resolved.keys()
        or version < step.topics.version_with_new_topics
        or step.now_ms > latest_ms + settings.group_consumer_regex_refresh_interval_ms
    )
    if is_due:
        step.look_up(RegexLookup(group.group_id, frozenset(group.regex_counts), call.call_id))


def regexes_resolved(
    group: ConsumerGroup,
    settings: Settings,
    image: TopicsImage,
    topics_by_regex: Mapping[str, frozenset[str]] | None,
    now_ms: int,
) -> Result:
    """Takes over what regular expressions match; None when it couldn't be found out. Other topics than before raise the
    group epoch.
    """
    step = Step(group, settings, image, now_ms)
    has_other_topics = False
    for regex, topics in sorted((topics_by_regex or {}).items()):
        if regex not in group.regex_counts:
            continue
        resolved = ResolvedRegex(topics, image.version, now_ms)
        before = group.resolved.get(regex)
        has_other_topics |= topics != (frozenset() if before is None else before.topics)
        step.write(consumer_records.regex_record(group.group_id, regex, resolved))
    if has_other_topics:
        step.refresh(must_bump=True)
    return step.end_lookup()


def lookup_failed(group: ConsumerGroup) -> Result:
    """The outcome of a lookup could not be stored: another heartbeat may ask again."""
    soft = ConsumerSoft(group.soft.checked_version)
    return Result(soft=(ConsumerChange(group.group_id, soft),))
