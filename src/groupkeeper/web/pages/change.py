"""The page to change a group: forms that make plans, or why there are none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from groupkeeper.client.admin.types import GroupType
from groupkeeper.html import markup
from groupkeeper.live.model import ClusterSnapshot, GroupView
from groupkeeper.operations.errors import TOOLS, NotOfConsumers, named
from groupkeeper.operations.plans.reset import INACTIVE
from groupkeeper.shell import Way, command, option, text, tool
from groupkeeper.web.changes.change_request import SHARE_SCENARIOS
from groupkeeper.web.pages import parts, scope
from groupkeeper.web.pages.parts import Viewer

_MOST_TOPICS = 50


def change_page(
    snapshot: ClusterSnapshot,
    group: GroupView,
    viewer: Viewer,
    why_not: str,
    clusters: Sequence[str],
    way: Way,
    *,
    is_chosen: bool = False,
) -> str:
    """The page of a group. `why_not`: why this person cannot change it; "": they can. `clusters`: to which it may
    be cloned. `way`: to the cluster, for commands. `is_chosen`: the server leaves out groups.
    """
    crumbs = [
        *parts.way_to(snapshot.cluster),
        (group.group_id, parts.url("/group", cluster=snapshot.cluster, group=group.group_id)),
    ]
    title = f"Change {group.group_id}"
    if why_not:
        body = _why(why_not, viewer) + ("" if viewer.changes else _commands(group, way))
        return parts.page(title, body, crumbs, viewer)
    front = (
        '<p class="soft">A form makes a plan: the committed offset before and after, partition by partition. Nothing '
        f"is changed before you apply it.</p>{_activity(group)}"
    )
    body = f"{front}<h2>Reset</h2>{_reset(snapshot, group, viewer)}"
    body += f"<h2>Clone</h2>{_clone(snapshot, group, viewer, clusters, way, is_chosen=is_chosen)}"
    body += f"<h2>Delete offsets</h2>{_delete_offsets(snapshot, group, viewer, way)}"
    body += f"<h2>Delete the group</h2>{_delete(snapshot, group, viewer, way)}"
    return parts.page(title, body, crumbs, viewer)


def _why(why_not: str, viewer: Viewer) -> str:
    login = ' <a href="/login">Log in</a>' if viewer.can_log_in else ""
    return f'<p class="banner none">{markup.sentence(why_not)}{login}</p>'


def _commands(group: GroupView, way: Way) -> str:
    """Commands that make the same plans, if this server makes none."""
    if group.group_type not in (GroupType.CLASSIC, GroupType.CONSUMER):
        return ""
    everything, one = ("--all-topics",), ("--topic", "TOPIC:PARTITION")
    choices = ((*everything, "--to-earliest"), (*everything, "--to-latest"), (*one, "--shift-by", "1"))
    commands = (text(command(way, ("plan", "reset", *choice), (group.group_id,))) for choice in choices)
    items = "".join(f"<li><code>{markup.sentence(each)}</code></li>" for each in commands)
    return (
        f"<p>These commands plan a reset. Nothing is changed before <code>groupkeeper apply</code>.</p><ul>{items}</ul>"
    )


def sweep_page(cluster: str, viewer: Viewer, why_not: str) -> str:
    """The page for a sweep of a whole cluster. `why_not`: as in `change_page`."""
    title = f"Sweep {cluster}"
    if why_not:
        return parts.page(title, _why(why_not, viewer), parts.way_to(cluster), viewer)
    fields = (
        "<fieldset><legend>Which groups</legend>"
        "<label>a name or a glob, for example test-* (empty: all groups that you may change)"
        '<input type="text" name="groups"/></label></fieldset>'
        "<fieldset><legend>What</legend>"
        '<label>delete the offsets of groups without members that have not committed for<input type="text" '
        'name="idle" size="10" placeholder="30d"/></label>'
        '<div class="choice"><input type="checkbox" name="missing" id="missing" value="1"/>'
        '<label for="missing">delete offsets of topics and partitions that don\'t exist</label></div>'
        '<label>commit again what the brokers would remove within<input type="text" '
        'name="expiring" size="10" placeholder="2d"/></label></fieldset>'
    )
    form = _posted("/sweep", viewer, {"cluster": cluster}, fields, "Plan the sweep")
    note = (
        '<p class="soft">The plan has a reason beside each offset. Nothing is changed before you apply it. When '
        "offsets were committed is read from __consumer_offsets.</p>"
    )
    return parts.page(title, note + form, parts.way_to(cluster), viewer)


def _activity(group: GroupView) -> str:
    """A note about members that keep a plan from being applied."""
    if group.group_state in (None, *INACTIVE):
        return ""
    return (
        f'<p class="banner none">{markup.sentence(f"The group is active ({group.group_state}){_held_by(group)}. ")}'
        "A plan can be made now, and applied when it has no members.</p>"
    )


def _held_by(group: GroupView) -> str:
    members = () if group.description is None else group.description.members
    return f", held by {named(members)}" if members else ""


def _by_tool(why: NotOfConsumers | str, words: Sequence[str]) -> str:
    return f'<p class="card soft">{markup.sentence(str(why))}: <code>{escape(text(words))}</code></p>'


def _form(snapshot: ClusterSnapshot, group: GroupView, viewer: Viewer, deed: str, fields: str, button: str) -> str:
    hidden = {"cluster": snapshot.cluster, "group": group.group_id, "deed": deed}
    return _posted("/plan", viewer, hidden, fields, button)


def _posted(path: str, viewer: Viewer, hidden: Mapping[str, str], fields: str, button: str) -> str:
    return (
        f'<form method="post" action="{path}" class="card tall">{viewer.sealed(hidden)}{fields}'
        f'<p><button type="submit">{button}</button></p></form>'
    )


def _reset(snapshot: ClusterSnapshot, group: GroupView, viewer: Viewer) -> str:
    if group.group_type is GroupType.SHARE:
        return _form(snapshot, group, viewer, "reset", _share_reset(group), "Plan the reset")
    fields = (
        f"<fieldset><legend>Where to</legend>{''.join(_WHERE.values())}</fieldset>{_scope(group, 'reset')}"
        "<fieldset><legend>Where the offset does not fit</legend>"
        f"{_select('if-no-record', 'if no record is at or after that time', _NO_RECORD)}"
        f"{_select('if-out-of-range', 'if the log does not hold the offset', _OUT_OF_RANGE)}</fieldset>"
    )
    return _form(snapshot, group, viewer, "reset", fields, "Plan the reset")


def _share_reset(group: GroupView) -> str:
    note = (
        '<p class="note">A share group has start offsets: records before them are not delivered, and those from them '
        "on are, also those that were done ahead of the old start offset.</p>"
    )
    where = "".join(_WHERE[each] for each in SHARE_SCENARIOS)
    return f"{note}<fieldset><legend>Where to</legend>{where}</fieldset>{_scope(group, 'reset')}"


_NO_RECORD = {"end": "go to the end of the log", "skip": "leave the partition as it is", "fail": "make no plan"}
_OUT_OF_RANGE = {"clamp": "go to its nearer end", "skip": "leave the partition as it is", "fail": "make no plan"}


def _select(name: str, label: str, choices: Mapping[str, str]) -> str:
    options = "".join(
        f'<option value="{escape(value)}">{markup.text(name)}</option>' for value, name in choices.items()
    )
    return f'<label>{label}<select name="{name}">{options}</select></label>'


def _radio(value: str, text: str, field: str = "", after: str = "") -> tuple[str, str]:
    """The value of a choice, and its HTML."""
    choice = f'<input type="radio" name="to" id="to-{value}" value="{value}" required/>'
    return value, f'<div class="choice">{choice}<label for="to-{value}">{text}</label>{field}{after}</div>'


_WHERE = dict((
    _radio("earliest", "the oldest record"),
    _radio("latest", "the end of the log"),
    _radio("current", "the committed offset, or the nearest one that the log holds"),
    _radio("time", "the first record written at or after", '<input type="datetime-local" name="time" step="1" '
           'aria-label="time, in UTC"/>', " UTC"),
    _radio("ago", "the first record written within the last", '<input type="text" name="ago" size="10" '
           'placeholder="1h" aria-label="how long ago"/>'),
    _radio("shift", "forward by this number of records (negative: back)", '<input type="text" name="shift" size="10" '
           'inputmode="numeric" placeholder="-100" aria-label="by how many records"/>'),
    _radio("offset", "this offset", '<input type="text" name="offset" size="14" inputmode="numeric" '
           'aria-label="offset"/>'),
))  # fmt: skip


def _scope(group: GroupView, prefix: str) -> str:
    topics = list(group.topics)[:_MOST_TOPICS]
    offset = "start" if group.group_type is GroupType.SHARE else "committed"
    boxes = "".join(
        f'<div class="choice"><input type="checkbox" name="topic" id="{prefix}-{number}" value="{escape(topic)}"/>'
        f'<label for="{prefix}-{number}" class="name">{markup.text(topic)}</label></div>'
        for number, topic in enumerate(topics)
    )
    return (
        "<fieldset><legend>Which partitions</legend>"
        f'<div class="choice"><input type="radio" name="scope" id="{prefix}-all" value="all" checked/>'
        f'<label for="{prefix}-all">all with a {offset} offset</label></div>'
        f'<div class="choice"><input type="radio" name="scope" id="{prefix}-some" value="some"/>'
        f'<label for="{prefix}-some">only these</label></div><div class="within">{boxes}'
        "<label>other topics, or single partitions, for example orders:0,1 payments"
        '<input type="text" name="more"/></label></div></fieldset>'
    )


def _clone(
    snapshot: ClusterSnapshot, group: GroupView, viewer: Viewer, clusters: Sequence[str], way: Way, *, is_chosen: bool
) -> str:
    if group.group_type is GroupType.SHARE:
        why = "The start offsets of a share group are cloned by command, to another group or from another cluster"
        return _by_tool(why, command(way, ["plan", "clone"], (group.group_id, "NEW_GROUP")))
    note = (
        '<p class="note">Another group gets the offsets of this one. Within a cluster they are copied exactly; for '
        "another cluster they are translated by the times of records, and the plan says how exact that is. This group "
        "may be active.</p>"
    )
    if is_chosen:
        note += (
            f'<p class="note">This server shows and changes only some groups ({scope.OPTIONS}): the target must be one '
            "of them.</p>"
        )
    fields = (
        "<fieldset><legend>Target</legend><label>group (empty: the same name, in another cluster)"
        f'<input type="text" name="to-group"/></label>'
        f"{_select('to-cluster', 'cluster', {each: each for each in (snapshot.cluster, *clusters)})}"
        '<label>prefix of its topics there, for example east.<input type="text" name="prefix" size="12"/></label>'
        "</fieldset>"
    )
    return _form(snapshot, group, viewer, "clone", note + fields + _scope(group, "clone"), "Plan the clone")


def _delete_offsets(snapshot: ClusterSnapshot, group: GroupView, viewer: Viewer, way: Way) -> str:
    if group.group_type is GroupType.SHARE:
        words = tool(way, TOOLS[GroupType.SHARE], ["--describe", *option("--group", group.group_id)])
        return _by_tool(NotOfConsumers(), words)
    note = (
        '<p class="note">Where no offset is committed, a consumer starts by its auto.offset.reset. While the '
        "group has members, only offsets of topics that none of them reads can be deleted.</p>"
    )
    return _form(snapshot, group, viewer, "delete-offsets", note + _scope(group, "delete"), "Plan the deletion")


def _delete(snapshot: ClusterSnapshot, group: GroupView, viewer: Viewer, way: Way) -> str:
    if group.group_type in (GroupType.SHARE, GroupType.STREAMS):
        program = TOOLS[group.group_type]
        words = tool(way, program, ["--delete", *option("--group", group.group_id)])
        return _by_tool(NotOfConsumers(deletes=group.group_type), words)
    if group.group_state not in (None, *INACTIVE):
        why = f"The group is active ({group.group_state}){_held_by(group)}: a group with members is not deleted."
        return f'<p class="card soft">{markup.sentence(why)}</p>'
    note = '<p class="note">The group is deleted with its committed offsets; an undo brings the offsets back.</p>'
    return _form(snapshot, group, viewer, "delete", note, "Plan the deletion of the group")
