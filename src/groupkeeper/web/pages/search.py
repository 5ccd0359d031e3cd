"""The page of a search in all clusters: groups, the worst first, and topics."""

from __future__ import annotations

from collections.abc import Sequence

from groupkeeper.html import markup
from groupkeeper.html.markup import PageColumn
from groupkeeper.live.model import ClusterSnapshot
from groupkeeper.rules import words
from groupkeeper.rules.words import capitalized
from groupkeeper.web.pages import parts
from groupkeeper.web.pages.cluster import COLUMNS, UNTITLED
from groupkeeper.web.pages.judged import Judge, JudgedGroup, rows_of
from groupkeeper.web.pages.parts import ANONYMOUS, Viewer
from groupkeeper.web.pages.topics import topics_of

_MOST = 100
_CLUSTER = PageColumn[JudgedGroup]("cluster", lambda row: parts.cluster_link(row.cluster), "label")
_COLUMNS = [*COLUMNS[:2], _CLUSTER, *COLUMNS[2:]]


def search_page(
    snapshots: Sequence[ClusterSnapshot], text: str, viewer: Viewer = ANONYMOUS, judge: Judge = rows_of
) -> str:
    """Groups and topics with the text in their names, in any case. `snapshots`: the parts that the viewer may see."""
    wanted = text.lower()
    up, others = ([each for each in snapshots if each.is_up is is_up] for is_up in (True, False))
    body = _found(up, wanted, judge)
    if others:
        said = "; ".join(parts.away(others))
        body += f'<p class="banner none">{capitalized(said)}.</p>'
    if last := [each.last for each in others if each.last is not None]:
        body += parts.old(others[0], _found(last, wanted, judge))
    return parts.page(
        f"Found for “{text}”", parts.live("found", body), [("Consumer groups", "/")], viewer, follows=parts.EVERY
    )


def _found(snapshots: Sequence[ClusterSnapshot], wanted: str, judge: Judge) -> str:
    """The findings in these clusters."""
    groups = [row for each in snapshots for row in judge(each) if wanted in row.group.group_id.lower()]
    topics = [(each.cluster, topic.name) for each in snapshots for topic in topics_of(each, wanted)]
    groups.sort(key=lambda row: (row.rank, row.group.group_id, row.cluster))
    table = markup.table(_COLUMNS, groups[:_MOST], "groups", untitled=UNTITLED)
    items = "".join(
        f'<li>{parts.topic_link(cluster, name)} <span class="soft">{markup.text(cluster)}</span></li>'
        for cluster, name in topics[:_MOST]
    )
    counts = f"{words.counted(len(groups), 'group')} and {words.counted(len(topics), 'topic')}"
    less = max(len(groups), len(topics)) > _MOST
    body = f'<p class="soft">{counts}{f"; the first {_MOST} of each are shown" if less else ""}.</p>'
    body += f"<h2>Groups</h2>{table}" if groups else ""
    return body + (f"<h2>Topics</h2><ul>{items}</ul>" if topics else "")
