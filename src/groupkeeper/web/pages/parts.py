"""The building blocks of all pages. Names of groups and topics are untrusted input: always escape them with `text`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import NamedTuple
from urllib.parse import urlencode

from groupkeeper.client.admin.types import OffsetAndMetadata
from groupkeeper.html.look import STYLE as REPORT_STYLE
from groupkeeper.html.markup import sentence, text
from groupkeeper.live.model import ClusterSnapshot, GroupView, WaitSum
from groupkeeper.operations.lag import LagSum
from groupkeeper.operations.problems import Problem
from groupkeeper.rules import words
from groupkeeper.web.access.people import NOBODY, Person

STYLE = (
    REPORT_STYLE
    + """\
form{display:flex;flex-wrap:wrap;gap:8px 12px;align-items:end;margin:0 0 12px}
label{display:grid;gap:2px;font-size:13px;color:var(--soft)}
input,select,button{font:inherit;font-size:14px;color:inherit;background:var(--card);border:1px solid var(--line);
border-radius:6px;padding:6px 9px}
button{cursor:pointer}
:focus-visible{outline:2px solid var(--accent);outline-offset:2px}
th a{color:inherit;text-decoration:none}
th a:hover{text-decoration:underline}
.banner{margin-bottom:14px}
.banner,.problems,.soft,.note,.card li{overflow-wrap:anywhere}
.card+.problems{margin-top:12px}
.history{margin-top:14px}
.old{border-left:4px dashed var(--unknown);padding-left:12px}
.who button{padding:2px 8px}
.numbers dd{white-space:normal;overflow-wrap:anywhere}
.card>.because{margin-bottom:14px}
.card>.numbers+.note{margin:14px 0 0}
.card>.note:last-child{margin-bottom:0}
.numbers small{font-size:14px;font-weight:400}
.crumbs{margin:0 0 14px;font-size:14px}
.problems{margin:0 0 12px;padding:0 0 0 18px}
.skip{position:absolute;left:-9999px}
button.main{background:var(--accent);border-color:var(--accent);color:var(--page);font-weight:600}
button:disabled{cursor:not-allowed;opacity:.55}
form.tall{display:block}
form.tall label,.who form{display:inline}
form.tall .within label,form.tall fieldset>label{display:grid;margin-top:8px}
form.tall input[type=text]{max-width:100%}
fieldset{border:1px solid var(--line);border-radius:6px;margin:0 0 12px;padding:8px 12px;min-width:0}
.choice{display:flex;flex-wrap:wrap;gap:4px 8px;align-items:center;min-height:34px}
.choice label{font-size:15px;color:var(--ink);min-width:0;max-width:calc(100% - 34px)}
.within{padding:0 0 4px 26px}
.actions{display:flex;flex-wrap:wrap;gap:8px 16px;align-items:end;margin:14px 0 0}
.actions form{margin:0}
.top{display:flex;flex-wrap:wrap;gap:4px 16px;justify-content:space-between}
.who{margin:0 0 14px auto;align-items:center;color:var(--soft);overflow-wrap:anywhere}
.who form[role=search]{display:flex;flex-wrap:nowrap;gap:6px;margin:0;min-width:0;align-items:stretch}
.who input{min-width:0;width:20ch}
.needs code,details code,li>code{user-select:all}
.needs{margin:0;padding:0;list-style:none;background:var(--card);border:1px solid var(--line);border-radius:8px}
.needs>li{display:grid;grid-template-columns:104px minmax(0,1.15fr) minmax(0,1fr);gap:4px 18px;padding:9px 18px;
border-top:1px solid var(--line)}
.needs>li:first-child{border-top:0}
.wide th,.wide td{padding:7px 8px}
.wide .why:not(:empty){min-width:17ch}
.wide .label{min-width:9ch;overflow-wrap:anywhere}
.needs p{margin:0;overflow-wrap:anywhere}
.needs .because{margin-top:2px}
.needs .next{grid-column:2/4;font-size:13px}
.next a{margin-left:12px}
.needs code{font-size:12.5px}
.judged .soft{display:block;font-size:12.5px}
.about .name{font-weight:600;font-size:16px}
.alert{margin-left:8px;padding:1px 8px;border:1px solid var(--stopped);border-radius:10px;color:var(--stopped);
display:inline-block;max-width:calc(100% - 8px);overflow-wrap:anywhere;font-size:12.5px;font-weight:600;
text-decoration:none}
.figures{display:grid;grid-template-columns:6fr 10fr 9fr 9fr 11fr;gap:4px 12px;margin:0;padding:0;list-style:none;
align-content:start;font-size:14px;font-variant-numeric:tabular-nums}
.figures span{display:block;font-size:12.5px;color:var(--soft)}
.figures b{font-weight:600}
#live-fleet h2{font-size:16px;margin:18px 0 6px}
details.card{margin-top:14px}
details.card>p,details.card>ul{margin:10px 0}
.prose{max-width:76ch}
.words{display:grid;grid-template-columns:minmax(0,22ch) minmax(0,76ch);gap:8px 20px;margin:0 0 12px}
.words dt{font-weight:600}
.words dd{margin:0}
@media(max-width:1100px){.needs>li{grid-template-columns:104px minmax(0,1fr)}
.figures,.needs .next{grid-column:2}}
@media(max-width:599px){.needs>li{display:block;padding:11px 14px}
.figures{grid-template-columns:repeat(3,minmax(0,1fr));gap:4px 8px;margin:6px 0;
font-size:13px}.wide .name{min-width:12ch}.judged .soft{display:inline;margin-left:8px}
.stack-up thead tr,.stack-up tbody tr{display:grid;grid-template-columns:repeat(3,minmax(0,1fr));gap:4px 8px;
padding:9px 12px;border-bottom:1px solid var(--line)}
.stack-up thead tr{display:flex;flex-wrap:wrap;gap:2px 14px}
.stack-up thead tr:not(:has(a)),.stack-up th:not(:has(a)){display:none}
.who{margin-left:0}
.stack-up tr:last-child{border-bottom:0}
.stack-up th,.stack-up td,.stack-up td.n{padding:0;border:0;text-align:left}
.stack-up td{font-size:13px}
.stack-up .name,.stack-up .why{grid-column:1/-1;min-width:0;font-size:15px}
.stack-up .name{order:-1}
.stack-up td::before{content:attr(data-label);display:block;font-size:12.5px;color:var(--soft)}
.stack-up td:empty,.stack-up td[data-label=""]::before{display:none}
.words{display:block}.words dd{margin:0 0 10px}}
.skip:focus{left:8px;top:8px;background:var(--card);padding:6px 10px}
"""
)

_MOST_PROBLEMS = 12
_DAY_MS = 24 * 3600 * 1000


def url(path: str, **parameters: str | int | None) -> str:
    """A link of this server, ready for an attribute."""
    given = {name: value for name, value in parameters.items() if value not in (None, "")}
    return escape(path + ("?" + urlencode(given, errors="replace") if given else ""))


class Viewer(NamedTuple):
    """The reader of a page. `seal`: the one in their forms. `has_login`: whether one can log in here. `changes`:
    whether anything can be changed here. `has_journal`: whether there is a journal to read.
    """

    person: Person = NOBODY
    seal: str = ""
    has_login: bool = False
    changes: bool = False
    has_journal: bool = False

    @property
    def can_log_in(self) -> bool:
        """Whether there is a login, and the reader is not logged in."""
        return self.has_login and not self.person.name

    def sealed(self, fields: Mapping[str, str]) -> str:
        """Hidden fields of a form, with the seal."""
        return "".join(
            f'<input type="hidden" name="{name}" value="{escape(value)}"/>'
            for name, value in {**fields, "seal": self.seal}.items()
        )

    def line(self) -> str:
        """Links to other pages, and the user's name: at the top of a page."""
        links = "" if self.person is NOBODY else f'{_SEARCH}<a href="/alerts">alerts</a> '
        links += '<a href="/journal">journal</a>' if self.has_journal else ""
        links += ' <a href="/plans">plans</a>' if self.changes and self.person.name else ""
        links += ' <a href="/login">log in</a>' if self.can_log_in else ""
        out = ""
        if self.person.session:
            fields = self.sealed({})
            out = f'<form method="post" action="/logout">{fields}<button type="submit">log out</button></form>'
        who = f"<span>{text(self.person.name)} {out}</span>" if self.person.name else ""
        return f'<nav class="who" aria-label="elsewhere">{links}{who}</nav>'


_SEARCH = (
    '<form method="get" action="/search" role="search"><input type="search" name="q" required maxlength="249" '
    'aria-label="groups and topics of all clusters" placeholder="group or topic"/>'
    '<button type="submit">find</button></form>'
)

ANONYMOUS = Viewer()


def way_to(cluster: str) -> list[tuple[str, str]]:
    """The crumbs of a cluster's pages, for `page`."""
    return [("Consumer groups", "/"), (cluster, url("/cluster", cluster=cluster))]


_REFUSALS = {401: "Log in", 404: "Not found", 503: "Not available"}


def refusal_page(text: str, status: int, viewer: Viewer = ANONYMOUS) -> str:
    """A page with the reason for a refusal or a missing page. `status`: the HTTP status."""
    return page(
        _REFUSALS.get(status, "Not done"),
        f'<p class="banner bad">{sentence(text)}</p>',
        [("Consumer groups", "/")],
        viewer,
    )


def login_page(text: str, target: str, issuer: str = "", *, has_tokens: bool = True, changes: bool) -> str:
    """The page with a form for a token, and a link to a provider of logins. `target`: the path after the login.
    `issuer` "": there is no provider. `changes`: see `Viewer`.
    """
    why = f'<p class="banner bad" role="alert">{sentence(text)}</p>' if text else ""
    elsewhere = (
        f'<p><a href="{url("/login/oidc", target=target)}">Log in at {sentence(issuer)}</a></p>' if issuer else ""
    )
    form = (
        f'<form method="post" action="/login"><input type="hidden" name="target" value="{escape(target)}"/>'
        '<label>token<input type="password" name="token" autocomplete="current-password" required autofocus/></label>'
        '<button type="submit">Log in</button></form>'
    )
    return page("Log in", why + elsewhere + form * has_tokens, viewer=Viewer(changes=changes))


def logged_in_page(target: str, viewer: Viewer) -> str:
    """The page after a login, with a link to `target`."""
    return page("Logged in", f'<p><a href="{escape(target)}">Go on</a></p>', viewer=viewer)


def note(text: str) -> str:
    """A sentence about the server itself, above the numbers."""
    return f'<p class="banner none">{escape(text)}</p>'


def live(name: str, html: str) -> str:
    """A part of a page that is updated while the page is open."""
    return f'<div id="live-{name}" data-live>{html}</div>'


EVERY = "*"


def page(
    title: str,
    body: str,
    crumbs: Sequence[tuple[str, str]] = (),
    viewer: Viewer = ANONYMOUS,
    *,
    follows: str | None = None,
) -> str:
    """A whole page. `crumbs`: the path to it, as texts with links. `follows`: the cluster whose polls update its
    live parts, or EVERY.
    """
    events = url("/events", cluster=None if follows == EVERY else follows)
    script = '<script src="/live.js" defer></script>' if follows is not None else ""
    script += '<script src="/plots.js" defer></script>' if 'class="chart"' in body else ""
    state = '<p id="live" class="soft" role="status">as of when it was loaded</p>' if follows is not None else ""
    opening = f'<body data-events="{events}">' if follows is not None else "<body>"
    way = " › ".join(f'<a href="{link}">{text(name)}</a>' for name, link in crumbs)
    nav = f'<nav class="crumbs" aria-label="where">{way}</nav>' if way else ""
    what = "groupkeeper serve" if viewer.changes else "groupkeeper serve, read only"
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"/>'
        '<meta name="viewport" content="width=device-width,initial-scale=1"/>'
        f'<title>{text(title)}</title><link rel="stylesheet" href="/style.css"/>{script}</head>\n{opening}'
        '<a class="skip" href="#content">to the content</a><main id="content">'
        f'<div class="top">{nav}{viewer.line()}</div><h1>{text(title)}</h1>{state}{body}'
        f'<footer>{what}. All times are UTC. <a href="/words">What the words mean</a></footer>'
        "</main></body></html>\n"
    )


def since(ms: int, now_ms: int) -> str:
    """A time, in short: hours and minutes within the last day, else the date."""
    day, _, clock = words.moment(ms).partition(" ")
    return clock[:5] if now_ms - ms < _DAY_MS else day


def problems(found: Sequence[Problem], most: int = _MOST_PROBLEMS, name: str = "", *, with_group: bool = False) -> str:
    """The list of the first problems; "": there are none. `name`: its id. `with_group`: each names its group."""
    if not found:
        return ""
    items = [problem(each, with_group=with_group) for each in found[:most]]
    items += [f"and {len(found) - most:,} more"] if len(found) > most else []
    own = f' id="{name}"' if name else ""
    return f'<ul class="problems"{own}>{"".join(f"<li>{each}</li>" for each in items)}</ul>'


def problem(of: Problem, *, with_group: bool = False) -> str:
    """One problem, or the missing permission that explains it."""
    where = [of.group] if with_group and of.group is not None else []
    where += [f"broker {of.broker}"] if of.broker is not None else []
    if of.topic is not None:
        where.append(of.topic if of.partition is None else f"{of.topic}-{of.partition}")
    return sentence(": ".join([*where, f"missing ACL: {of.acl}" if of.acl is not None else of.message]))


def when(snapshot: ClusterSnapshot, now_ms: int) -> str:
    """The live part of a page with the time of its numbers, and the cluster's problems."""
    return live("when", as_of(snapshot, now_ms))


def as_of(snapshot: ClusterSnapshot, now_ms: int) -> str:
    """The time of the numbers, and the cluster's problems."""
    tone = "soft" if snapshot.is_up else "banner bad" if snapshot.polls.done else "banner none"
    text = f'<p class="{tone}">{measured(snapshot, now_ms)}</p>{problems(snapshot.problems)}'
    return text + another(snapshot, now_ms)


def another(snapshot: ClusterSnapshot, now_ms: int) -> str:
    """A note, for a day, that the name now belongs to another cluster."""
    replaced = snapshot.replaced
    if replaced is None or now_ms - replaced.since_ms >= _DAY_MS:
        return ""
    now = snapshot.known.cluster_id
    return (
        f'<p class="banner none">Since {words.moment(replaced.since_ms)} UTC {text(snapshot.cluster)} is another '
        f"cluster, with the id {text(now)}; before, it was {text(replaced.before)}. "
        "The history of each is kept apart.</p>"
    )


def away(snapshots: Sequence[ClusterSnapshot]) -> list[str]:
    """Texts about clusters that cannot be reached, or are not polled yet."""
    down = [text(each.cluster) for each in snapshots if not each.is_up and each.polls.done]
    waiting = [text(each.cluster) for each in snapshots if not each.polls.done]
    said = [f"{words.counted(len(down), 'cluster')} cannot be reached: {', '.join(down)}"] if down else []
    return said + ([f"not polled yet: {', '.join(waiting)}"] if waiting else [])


def measured(snapshot: ClusterSnapshot, now_ms: int) -> str:
    """The time of the numbers, in words."""
    if not snapshot.polls.done:
        return "The cluster is being polled for the first time."
    if snapshot.measured_ms is None:
        return _down(snapshot, now_ms)
    return f"as of {words.moment(snapshot.measured_ms)} UTC, {words.ago(now_ms - snapshot.measured_ms)}"


def _down(snapshot: ClusterSnapshot, now_ms: int) -> str:
    since_ms, last = snapshot.polls.failing_ms, snapshot.last
    since = (
        "" if since_ms is None else f" since {words.moment(since_ms)} UTC ({words.duration(max(0, now_ms - since_ms))})"
    )
    if last is None:
        return f"The cluster cannot be reached{since}, so nothing is known about its groups now."
    return (
        f"The cluster cannot be reached{since}. The numbers below are old: as of {words.moment(last.measured_ms)} UTC, "
        f"{words.ago(now_ms - (last.measured_ms or 0))}."
    )


def undo_form(viewer: Viewer, cluster: str, change_id: str) -> str:
    """A form that plans the undo of a change."""
    fields = viewer.sealed({"cluster": cluster, "change": change_id})
    return f'<form method="post" action="/undo">{fields}<button type="submit">Plan the undo</button></form>'


def old(snapshot: ClusterSnapshot, html: str) -> str:
    """HTML with numbers of a cluster, marked if they are old."""
    return html if snapshot.is_up else f'<div class="old"><p class="soft">Last known:</p>{html}</div>'


def group_link(cluster: str, group_id: str) -> str:
    """A link to a group's page, with its name."""
    return f'<a href="{url("/group", cluster=cluster, group=group_id)}">{text(group_id)}</a>'


def cluster_link(cluster: str) -> str:
    """A link to a cluster's page, with its name."""
    return f'<a href="{url("/cluster", cluster=cluster)}">{text(cluster)}</a>'


def topic_link(cluster: str, topic: str) -> str:
    """A link to a topic's page, with its name."""
    return f'<a href="{url("/topic", cluster=cluster, topic=topic)}">{text(topic)}</a>'


def records(value: int | None) -> str:
    """A number of records, in short."""
    return "—" if value is None else f"{words.amount(value)} <small>records</small>"


UNKNOWN = "unknown"


def lag(of: LagSum, number: Callable[[int | None], str] = words.number) -> str:
    """The number of waiting records as `number` writes it, "≥" if it is a lower bound."""
    if of.is_least and not of.lag:
        return UNKNOWN
    return f"{'≥ ' * of.is_least}{number(of.lag)}"


def lag_and_lost(of: LagSum) -> str:
    """The lag, and how many of its records are lost."""
    return lag(of) + (f" <small>({words.number(of.lost)} lost)</small>" if of.lost else "")


def time_lag(of: LagSum, wait: WaitSum) -> str:
    """How long the oldest waiting record has waited, marked as `marked` does."""
    has_more = bool(of.open_starts or of.beyond)
    if has_more and not wait.lag_ms:
        return UNKNOWN
    is_least = has_more or bool(wait.unknown)
    return marked(wait.lag_ms, is_least=is_least, is_estimated=bool(wait.estimated))


def open_starts_text(of: LagSum) -> str:
    """Text about partitions without a commit whose waiting records are unknown; "": there are none."""
    if not of.open_starts:
        return ""
    verb = "has" if of.open_starts == 1 else "have"
    return f"{words.counted(of.open_starts, 'partition')} with records {verb} no committed offset"


def unread(group: GroupView) -> str:
    """Text about topics that no member of the group reads; "": there are none."""
    names = ", ".join(map(text, sorted(group.unread)[:_MOST_PROBLEMS]))
    return f"no member reads {names}" if names else ""


def per_s(per_s: float | None) -> str:
    """The change of a lag per second."""
    if per_s is None:
        return "—"
    return f"{per_s:+,.1f}/s" if abs(per_s) >= 0.05 else "0/s"


def offset(commit: OffsetAndMetadata | None, otherwise: str) -> str:
    """A committed offset."""
    return otherwise if commit is None else words.number(commit.offset)


def marked(ms: int | None, *, is_least: bool = False, is_estimated: bool = False) -> str:
    """A duration, marked if it is a lower bound, or interpolated."""
    if ms is None:
        return "—"
    sign = "−" if ms < 0 else "≥ " if is_least else "~ " if is_estimated else ""
    return sign + words.duration(abs(ms))


def seconds(ms: int | None) -> float | None:
    """A duration in seconds, for CSV."""
    return None if ms is None else ms / 1000


def plain(name: str) -> str:
    """A name for CSV that a spreadsheet doesn't take for a formula."""
    return f"'{name}" if name[:1] in ("=", "+", "-", "@", "\t", "\r") else name
