"""The page of firing alerts and silences."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from groupkeeper.html import markup
from groupkeeper.html.markup import PageColumn
from groupkeeper.live.alerts import FiringAlert
from groupkeeper.live.rules import Silence
from groupkeeper.operations.selection import Names
from groupkeeper.rules import words
from groupkeeper.rules.urgency import URGENCY_RANKS, Urgency
from groupkeeper.web.access.people import Person
from groupkeeper.web.access.roles import Role
from groupkeeper.web.pages import parts
from groupkeeper.web.pages.judged import Firing
from groupkeeper.web.pages.parts import ANONYMOUS, Viewer

_MOST = 500


class AlertsNow(NamedTuple):
    """The current alerts. `firing`: the earliest first. `silences`: past and future ones, too."""

    firing: Sequence[FiringAlert] = ()
    silences: Sequence[Silence] = ()

    def by_group(self) -> Firing:
        """The rules with firing alerts by cluster and group, for lists of groups."""
        found: dict[tuple[str, str], list[str]] = {}
        for alert in self.firing:
            found.setdefault(alert.key[1:], []).append(alert.key.rule)
        return found

    def seen_by(self, person: Person) -> AlertsNow:
        """The alerts that a user may see. Only users who see all may see silences."""
        if person.rights.sees_all:
            return self
        rights = person.rights
        firing = [
            alert
            for alert in self.firing
            if (rights.may(Role.VIEW, *alert.key[1:]) if alert.key.group else rights.sees(alert.key.cluster))
        ]
        return AlertsNow(firing, ())


_COLUMNS: Sequence[PageColumn[tuple[FiringAlert, int]]] = [
    PageColumn("severity", lambda of: markup.text(of[0].severity)),
    PageColumn("rule", lambda of: markup.text(of[0].key.rule), "label"),
    PageColumn("group", lambda of: parts.group_link(*of[0].key[1:]) if of[0].key.group else "—", "name"),
    PageColumn("cluster", lambda of: parts.cluster_link(of[0].key.cluster), "label"),
    PageColumn("since",
               lambda of: f"{words.moment(of[0].since_ms)} <small>{words.ago(of[1] - of[0].since_ms)}</small>", "t"),
    PageColumn("why", lambda of: markup.sentence("; ".join(of[0].texts)), "why"),
    PageColumn("owner", lambda of: markup.text(of[0].owner or None), "label"),
    PageColumn("notices", lambda of: _notices(of[0]), "label"),
]  # fmt: skip
_SILENCES: Sequence[PageColumn[tuple[Silence, int]]] = [
    PageColumn("now", lambda of: _now(*of)),
    PageColumn("rules", lambda of: _names(of[0].rules), "name"),
    PageColumn("clusters", lambda of: _names(of[0].clusters), "name"),
    PageColumn("groups", lambda of: _names(of[0].groups), "name"),
    PageColumn("from", lambda of: words.moment(of[0].from_ms or None), "t"),
    PageColumn("until", lambda of: words.moment(of[0].until_ms), "t"),
    PageColumn("why", lambda of: markup.sentence(of[0].why), "why"),
]


def alerts_page(
    alerts: AlertsNow,
    now_ms: int,
    viewer: Viewer = ANONYMOUS,
    note: str = "",
    urgencies: Mapping[tuple[str, str], Urgency] = MappingProxyType({}),
) -> str:
    """The page of `alerts`, those that the viewer may see. `urgencies`: by cluster and group; alerts of groups with
    `left` are folded.
    """
    left = [each for each in alerts.firing if urgencies.get(each.key[1:]) is Urgency.LEFT]
    others = [each for each in alerts.firing if urgencies.get(each.key[1:]) is not Urgency.LEFT]
    others.sort(key=lambda each: URGENCY_RANKS.get(urgencies.get(each.key[1:], Urgency.EXPIRING), 0))
    body = note + (
        _table(others, now_ms, "firing alerts") if others else '<p class="soft">No alert fires.</p>' if not left else ""
    )
    if left:
        title = f"{words.counted(len(left), 'alert')} of groups without members"
        body += (
            f'<details id="left" class="card"><summary><b>{title}</b></summary>{_table(left, now_ms, title)}</details>'
        )
    if alerts.silences:
        rows = [(each, now_ms) for each in alerts.silences]
        body += f"<h2>Silences</h2>{markup.table(_SILENCES, rows, 'silences', untitled=('now', 'why'))}"
    return parts.page("Alerts", parts.live("alerts", body), [("Consumer groups", "/")], viewer, follows=parts.EVERY)


def _table(firing: Sequence[FiringAlert], now_ms: int, caption: str) -> str:
    rows = [(each, now_ms) for each in firing]
    return markup.table(_COLUMNS, rows, caption, untitled=("group", "why"), most=_MOST)


def _notices(alert: FiringAlert) -> str:
    to = ", ".join(map(markup.text, alert.to))
    return "silenced" if alert.is_silenced else f"sent to {to}" if to else "no webhook"


def _now(silence: Silence, now_ms: int) -> str:
    is_over = silence.until_ms is not None and silence.until_ms <= now_ms
    return "holds" if silence.holds(now_ms) else "over" if is_over else "to come"


def _names(names: Names) -> str:
    typed: Iterable[str] = (*names.exact, *names.patterns)
    return ", ".join(map(markup.text, typed)) or "all"
