"""Numbers, times and names as the report shows them."""

from __future__ import annotations

from datetime import UTC, datetime

from groupkeeper.rules.words import amount, counted, duration, margin, number, rate

__all__ = ["STALE", "ago", "amount", "clock", "counted", "days", "duration", "margin", "moment", "name", "number",
           "rate", "reason"]  # fmt: skip

_LONGEST = 90
_LONGEST_REASON = 600
"""The longest reason shown; those of the tables are shorter, as a topic's name has at most 249 characters."""

_TAIL = 20


STALE = {
    "idle": "not used for long",
    "topic_deleted": "its topic was deleted, or made again",
    "expiring": "about to expire",
    "below_log_start": "records were deleted unread",
}
"""Texts for the reasons of tables.STALE."""


def days(value: float | None) -> str:
    return "—" if value is None else f"{value:,.1f} d" if value < 10 else f"{value:,.0f} d"


def moment(time: datetime | None) -> str:
    """A date with its time, in UTC (stated on the page)."""
    return "—" if time is None else f"{time.astimezone(UTC):%Y-%m-%d %H:%M:%S}"


def clock(time: datetime, span_s: float) -> str:
    """The label of a time on an axis of `span_s` seconds."""
    if span_s < 1200:
        return f"{time.astimezone(UTC):%H:%M:%S}"
    return f"{time.astimezone(UTC):%H:%M}" if span_s < 86400 * 1.05 else f"{time.astimezone(UTC):%m-%d %H:%M}"


def ago(time: datetime | None, now: datetime | None) -> str:
    """How long before `now` the time was."""
    if time is None or now is None:
        return "—"
    return duration(max(0, int((now - time).total_seconds() * 1000)))


def reason(text: str) -> str:
    """A sentence with untrusted names; it may be longer than a name before it is shortened."""
    return name(text, _LONGEST_REASON)


def name(text: str | None, longest: int = _LONGEST) -> str:
    """An untrusted name on one line, without control characters for terminals or for text direction; very long ones are
    shortened in the middle.
    """
    if text is None:
        return "—"
    shown = text
    if len(text) > longest:
        shown = f"{text[: longest - _TAIL]}…{text[-_TAIL:]} ({len(text):,} characters)"
    if not shown.isprintable():
        escaped = (each.encode("unicode_escape", "surrogatepass").decode() for each in shown)
        shown = "".join(each if each.isprintable() else code for each, code in zip(shown, escaped, strict=True))
    return shown or "(empty)"
