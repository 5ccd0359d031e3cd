"""Subscriptions by regular expression. The coordinator stores the expressions in use and the topics that they matched;
its driver does the matching.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final, NamedTuple

from groupkeeper.coordinator.consumer import records as consumer_records
from groupkeeper.coordinator.consumer.group import ConsumerGroup, ConsumerMember, ResolvedRegex
from groupkeeper.coordinator.consumer.step import Step
from groupkeeper.coordinator.kernel.result import GroupCall, RegexLookup, Result
from groupkeeper.coordinator.kernel.settings import Settings
from groupkeeper.coordinator.state import StateView
from groupkeeper.protocol.errors import InvalidRegularExpression

_LEAST_INTERVAL_MS: Final = 10_000


class SubscriptionChange(NamedTuple):
    """The effect of a member's subscription on the group: whether the subscription changed, and whether the change
    affects the member's subscribed topics at once.
    """

    has_changed: bool
    must_bump: bool


def follow_subscription(
    step: Step, call: GroupCall, known: ConsumerMember | None, updated: ConsumerMember
) -> SubscriptionChange:
    """Stores a member as it is now; `known` is None for a new member. Requests a lookup of the topics of regular
    expressions when due.

    Raises `InvalidRegularExpression`.
    """
    before = known or ConsumerMember(updated.member_id)
    if known is None or updated != before:
        step.write(consumer_records.member_record(step.group.group_id, updated))
    has_new_names = updated.subscribed_topic_names != before.subscribed_topic_names
    has_new_regex = updated.subscribed_topic_regex != before.subscribed_topic_regex
    must_bump = has_new_regex and _change_regex(
        step, call, before.subscribed_topic_regex, updated.subscribed_topic_regex
    )
    _look_up_if_due(step, call)
    return SubscriptionChange(has_new_names or has_new_regex, has_new_names or must_bump)


def _change_regex(step: Step, call: GroupCall, before: str, after: str) -> bool:
    """Whether the change takes effect at once. `step` has the new member."""
    counts = step.group.regex_counts
    if after and counts.get(after) == 1 and call.regex_error is not None:
        raise InvalidRegularExpression(
            f"SubscribedTopicRegex `{after}` is not a valid regular expression: {call.regex_error}."
        )
    if before and before not in counts:
        step.write(consumer_records.regex_tombstone(step.group.group_id, before))
    return not after or after in step.group.resolved


def _look_up_if_due(step: Step, call: GroupCall) -> None:
    group = step.group
    if not group.regex_counts or group.soft.is_resolving:
        return
    # Removing an expression in favour of another one does not shorten the interval for this heartbeat.
    latest_ms = max((one.time_ms for one in step.logged.resolved.values()), default=None)
    if latest_ms is not None and latest_ms <= step.now_ms <= latest_ms + _LEAST_INTERVAL_MS:
        return
    version = max((one.version for one in group.resolved.values()), default=-1)
    is_due = (
        latest_ms is None
        or not group.regex_counts.keys() <= group.resolved.keys()
        or version < step.topics.version_with_new_topics
        or step.now_ms > latest_ms + step.settings.group_consumer_regex_refresh_interval_ms
    )
    if is_due:
        step.ask(RegexLookup(group.group_id, frozenset(group.regex_counts), call.call_id))
        step.soft = replace(step.soft, is_resolving=True)


def regexes_resolved(
    state: StateView,
    settings: Settings,
    group_id: str,
    topics_by_regex: Mapping[str, frozenset[str]] | None,
    now_ms: int,
) -> Result:
    """Stores the topics that regular expressions match, and raises the group epoch if they changed. None: the lookup
    failed; a later heartbeat may request it again.
    """
    group, image = state.find(group_id, ConsumerGroup), state.topics
    if group is None:
        return Result()
    step = Step(group, settings, image, now_ms)
    has_other_topics = False
    for regex, topics in sorted((topics_by_regex or {}).items()):
        if regex not in group.regex_counts:
            continue
        resolved = ResolvedRegex(topics, image.version, now_ms)
        before = group.resolved.get(regex)
        if before is None:
            # The target of a member that matches nothing now may still contain topics of its earlier subscription.
            has_other_topics |= bool(topics) or _has_targets(group, regex)
        else:
            has_other_topics |= topics != before.topics
        step.write(consumer_records.regex_record(group.group_id, regex, resolved))
    if has_other_topics:
        step.refresh(must_bump=True)
    step.soft = replace(step.soft, is_resolving=False)
    return step.result(None)


def _has_targets(group: ConsumerGroup, regex: str) -> bool:
    return any(
        group.targets.get(member.member_id)
        for member in group.members.values()
        if member.subscribed_topic_regex == regex
    )
