"""The notices that wait for one webhook, and when to send them. Pure: no clock and no network here.

Alerts don't wait for each other: each has its own order and its own times of retries. For each alert the
receiver gets only the notices that it lacks:

* a firing that comes while an earlier one waits replaces it;
* a resolution that comes while its firing was certainly not taken removes both;
* when it may have been taken, as there was no answer, both are sent, in this order;
* when it was taken, only the resolution is sent, and not a repetition that waits.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from groupkeeper.live.alerts import AlertKind, Key, Notice

AT_ONCE = 4
"""The most requests to one webhook at the same time."""

_FIRST_PAUSE_MS = 1000
_LONGEST_PAUSE_MS = 60_000
_LONGEST_HOLD_MS = 30_000
_LONGEST_RETRY_AFTER_MS = 3600_000
_GIVE_UP_MS = 24 * 3600_000
_MOST_WAITING = 1000
"""The most alerts with waiting notices: if a webhook takes none for long, the oldest are dropped."""

_MOST_MISSED = 10_000
_OUTCOMES = ("sent", "failed", "dropped", "superseded")


class NotSent(NamedTuple):
    """A failed request. `reason`: one of a few, for counting. `is_final`: the notice will never be taken.
    `may_be_taken`: it may have been, the answer is not certain. `retry_after_ms`: the pause that the answer asked
    for.
    """

    reason: str
    text: str
    is_final: bool = False
    may_be_taken: bool = False
    retry_after_ms: int | None = None


class _Waiting:
    """The notices of one alert, in order. `has`: the receiver knows that the alert fires; `may_have`: perhaps it
    does. `since_ms`: when the first notice came; `failures`: the first notice's failures in a row.
    """

    __slots__ = ("due_ms", "failures", "has", "is_under_way", "may_have", "notices", "since_ms")

    def __init__(self, has: bool, now_ms: int) -> None:
        self.notices: list[Notice] = []
        self.has = has
        self.may_have = has
        self.since_ms = now_ms
        self.due_ms = now_ms
        self.failures = 0
        self.is_under_way = False

    def add(self, notice: Notice) -> int:
        """Appends a notice; returns how many became unnecessary."""
        self.notices.append(notice)
        return self.settle()

    def settle(self) -> int:
        """Removes notices that the receiver no longer needs; returns how many. The first one may have been tried, and
        stays while it is under way.
        """
        before = len(self.notices)
        first = int(self.is_under_way)
        while self._shorten(first):
            pass
        return before - len(self.notices)

    def _shorten(self, first: int) -> bool:
        notices = self.notices
        for index in range(first, len(notices) - 1):
            kinds = notices[index].kind, notices[index + 1].kind
            if kinds == (AlertKind.FIRING, AlertKind.FIRING):
                is_repeat = notices[index].is_repeat and notices[index + 1].is_repeat
                notices[index : index + 2] = [notices[index + 1]._replace(is_repeat=is_repeat)]
                return True
            if kinds == (AlertKind.RESOLVED, AlertKind.RESOLVED):
                del notices[index + 1]
                return True
            if kinds == (AlertKind.FIRING, AlertKind.RESOLVED):
                has_firing = self._has_receiver_firing(index)
                if has_firing is not None:
                    del notices[index : index + (1 if has_firing else 2)]
                    return True
        return False

    def _has_receiver_firing(self, index: int) -> bool | None:
        """Whether the receiver was sent the firing alert before the firing at this index; None: perhaps."""
        if index:
            return self.notices[index - 1].kind is AlertKind.FIRING
        return self.has if self.has or not self.may_have else None

    def begin(self, now_ms: int) -> None:
        """Resets the state for a new first notice."""
        self.failures, self.since_ms, self.due_ms = 0, now_ms, now_ms


class Outbox:
    """The notices of one webhook.

    Attributes:
        counts: notices by outcome: sent, failed (given up), dropped (too many waited), superseded (by later ones of the
            same alert).
        failures: failed requests by reason.
        retries: requests that repeated a failed one.
    """

    def __init__(self, kept: Mapping[str, Any] | None = None, now_ms: int = 0) -> None:
        """`kept`: `state` before a restart."""
        self.counts: Counter[str] = Counter(dict.fromkeys(_OUTCOMES, 0))
        self.failures: Counter[str] = Counter()
        self.retries = 0
        self._waiting: dict[Key, _Waiting] = {}
        self._missed: dict[Key, None] = {}  # firing alerts that the receiver was not told of
        self._failing: set[Key] = set()  # alerts whose requests failed since one succeeded
        self._hold_ms = 0
        self._holds = 0
        self._under_way = 0
        for key, has, may_have, since_ms, notices in (kept or {}).get("waiting", ()):
            waiting = self._waiting[Key(*key)] = _Waiting(has, now_ms)
            waiting.may_have, waiting.since_ms = may_have, min(since_ms, now_ms)
            waiting.notices = [_notice_of(fields) for fields in notices]
        self._missed = {Key(*key): None for key in (kept or {}).get("missed", ())}

    def state(self) -> Mapping[str, Any]:
        """The state to keep for a restart, for JSON, with notices under way."""
        return {
            "waiting": [
                [key, each.has, each.may_have or each.is_under_way, each.since_ms, each.notices]
                for key, each in self._waiting.items()
            ],
            "missed": list(self._missed),
        }

    @property
    def pending(self) -> int:
        """Notices that wait or are under way."""
        return sum(len(each.notices) for each in self._waiting.values())

    def age_ms(self, now_ms: int) -> int:
        """How long the oldest notice has waited; 0: none waits."""
        return max((now_ms - each.since_ms for each in self._waiting.values()), default=0)

    @property
    def is_failing(self) -> bool:
        """Whether notices wait after failed requests."""
        return any(each.failures for each in self._waiting.values())

    def take(self, notice: Notice, now_ms: int) -> None:
        """Queues a notice."""
        key, is_missed = notice.key, notice.key in self._missed
        waiting = self._waiting.get(key)
        if waiting is None:
            self._missed.pop(key, None)
            if is_missed and notice.kind is AlertKind.RESOLVED:
                self.counts["superseded"] += 1
                return
            if is_missed:
                notice = notice._replace(is_repeat=False)
            self._make_room()
            waiting = _Waiting(not is_missed and (notice.kind is AlertKind.RESOLVED or notice.is_repeat), now_ms)
            self._waiting[key] = waiting
        self.counts["superseded"] += waiting.add(notice)
        self._leave_if_done(key)

    def _make_room(self) -> None:
        if len(self._waiting) < _MOST_WAITING:
            return
        idle = [key for key, each in self._waiting.items() if not each.is_under_way]
        # A receiver that was told of a firing alert should also be told of its end.
        oldest = next((key for key in idle if self._waiting[key].notices[-1].kind is AlertKind.FIRING), idle[0])
        self.counts["dropped"] += len(self._waiting[oldest].notices)
        self._miss(oldest)

    def _miss(self, key: Key) -> None:
        waiting = self._waiting.pop(key)
        self._failing.discard(key)
        if waiting.notices[-1].kind is AlertKind.FIRING and not waiting.may_have:
            self._missed[key] = None
            if len(self._missed) > _MOST_MISSED:
                del self._missed[next(iter(self._missed))]

    def next(self, now_ms: int) -> Notice | None:
        """A notice to send now, if there is one; `succeeded` or `failed` must follow."""
        if self._under_way >= self._most or now_ms < self._hold_ms:
            return None
        due = [(each.failures, each.due_ms, key) for key, each in self._ready() if each.due_ms <= now_ms]
        if not due:
            return None
        waiting = self._waiting[min(due)[-1]]
        waiting.is_under_way = True
        self._under_way += 1
        self.retries += waiting.failures > 0
        return waiting.notices[0]

    @property
    def _most(self) -> int:
        """The most requests at once; 1 if several alerts in a row failed, to try whether the webhook works."""
        return 1 if len(self._failing) >= AT_ONCE else AT_ONCE

    def _ready(self) -> Iterator[tuple[Key, _Waiting]]:
        return ((key, each) for key, each in self._waiting.items() if not each.is_under_way)

    def pause_ms(self, now_ms: int) -> int | None:
        """The time until `next` may have a notice without another call; None: never."""
        due_ms = min((each.due_ms for _, each in self._ready()), default=None)
        if due_ms is None or self._under_way >= self._most:
            return None
        return max(0, max(due_ms, self._hold_ms) - now_ms)

    def succeeded(self, key: Key, now_ms: int) -> None:
        """The receiver has taken the notice that was under way."""
        self.counts["sent"] += 1
        self._failing.clear()
        self._hold_ms = self._holds = 0
        waiting = self._came_back(key)
        waiting.has = waiting.may_have = waiting.notices.pop(0).kind is AlertKind.FIRING
        waiting.begin(now_ms)
        self._settle(key)

    def failed(self, key: Key, failure: NotSent, now_ms: int) -> bool:
        """The request of the notice that was under way failed. Returns whether the notice is given up."""
        self.failures[failure.reason] += 1
        waiting = self._came_back(key)
        waiting.may_have |= failure.may_be_taken
        if failure.is_final or now_ms - waiting.since_ms >= _GIVE_UP_MS:
            self.counts["failed"] += 1
            if len(waiting.notices) == 1:
                self._miss(key)
            else:
                self._skip(waiting, now_ms)
                self._settle(key)
            return True
        waiting.failures += 1
        pause_ms = _pause_ms(waiting.failures, _LONGEST_PAUSE_MS)
        asked_ms = min(failure.retry_after_ms or 0, _LONGEST_RETRY_AFTER_MS)
        waiting.due_ms = now_ms + max(pause_ms, asked_ms)
        self._failing.add(key)
        if len(self._failing) >= AT_ONCE:
            self._holds += 1
            self._hold_ms = now_ms + max(_pause_ms(self._holds, _LONGEST_HOLD_MS), asked_ms)
        self._settle(key)
        return False

    def _skip(self, waiting: _Waiting, now_ms: int) -> None:
        """Gives up the first notice, and the resolution of an alert that the receiver never heard of."""
        given_up = waiting.notices.pop(0)
        if given_up.kind is AlertKind.FIRING and not waiting.may_have and waiting.notices[0].kind is AlertKind.RESOLVED:
            del waiting.notices[0]
            self.counts["superseded"] += 1
        waiting.begin(now_ms)

    def _came_back(self, key: Key) -> _Waiting:
        self._under_way -= 1
        waiting = self._waiting[key]
        waiting.is_under_way = False
        return waiting

    def _settle(self, key: Key) -> None:
        self.counts["superseded"] += self._waiting[key].settle()
        self._leave_if_done(key)

    def _leave_if_done(self, key: Key) -> None:
        if not self._waiting[key].notices:
            del self._waiting[key]
            self._failing.discard(key)

    def hurry(self, now_ms: int) -> None:
        """Makes all notices due at once, as the program ends."""
        self._hold_ms = 0
        for each in self._waiting.values():
            each.due_ms = min(each.due_ms, now_ms)


def _pause_ms(failures: int, longest_ms: int) -> int:
    return min(_FIRST_PAUSE_MS << min(failures - 1, 16), longest_ms)


def _notice_of(fields: list[Any]) -> Notice:
    notice = Notice(*fields)
    return notice._replace(
        kind=AlertKind(notice.kind), key=Key(*notice.key), texts=tuple(notice.texts), to=tuple(notice.to)
    )
