"""What is found of a name in all clusters: groups, the worst first, and topics."""

from __future__ import annotations

from collections.abc import Sequence

from groupkeeper.live.model import ClusterSnapshot
from groupkeeper.pipeline.report import words
from groupkeeper.rules.status import RANKS
from groupkeeper.web.pages import parts
from groupkeeper.web.pages.cluster import COLUMNS, TITLES, cells
from groupkeeper.web.pages.judged import Judge, JudgedGroup, rows_of
from groupkeeper.web.pages.needs import need_rank
from groupkeeper.web.pages.parts import ANONYMOUS, PageCell, Viewer
from groupkeeper.web.pages.topics import topics_of

_MOST = 100


def search_page(
    snapshots: Sequence[ClusterSnapshot], text: str, viewer: Viewer = ANONYMOUS, judge: Judge = rows_of
) -> str:
    """Groups and topics with the text in their names, whatever its case. ``snapshots``: as much as may be seen."""
    wanted = text.lower()
    up = [each.known for each in snapshots if each.known.is_up]
    groups = [(each.cluster, row) for each in up for row in judge(each) if wanted in row.group.group_id.lower()]
    topics = [(each.cluster, topic.name) for each in up for topic in topics_of(each, wanted)]
    heads = [parts.head(column.title, column.kind) for column in COLUMNS]
    heads.insert(2, parts.head("cluster"))
    shown = sorted(groups, key=_order)[:_MOST]
    table = parts.table(
        heads, (_cells(cluster, row) for cluster, row in shown), "groups", (*TITLES[:2], "cluster", *TITLES[2:])
    )
    items = "".join(
        f'<li><a href="{parts.url("/topic", cluster=cluster, topic=name)}">{parts.text(name)}</a>'
        f' <span class="soft">{parts.text(cluster)}</span></li>'
        for cluster, name in topics[:_MOST]
    )
    counts = f"{words.counted(len(groups), 'group')} and {words.counted(len(topics), 'topic')} of all clusters"
    less = max(len(groups), len(topics)) > _MOST
    body = f'<p class="soft">{counts}{f"; the first {_MOST} of each are shown" if less else ""}.</p>'
    body += f"<h2>Groups</h2>{table}" if groups else ""
    body += f"<h2>Topics</h2><ul>{items}</ul>" if topics else ""
    return parts.page(
        f"Found for “{text}”", parts.live("found", body), [("Consumer groups", "/")], viewer, follows=parts.EVERY
    )


def _order(found: tuple[str, JudgedGroup]) -> tuple[int, int, int, str, str]:
    cluster, row = found
    rank = -RANKS[row.judged.status]
    return -need_rank(row), rank, -(row.group.wait.lag_ms or 0), row.group.group_id, cluster


def _cells(cluster: str, row: JudgedGroup) -> list[PageCell]:
    status, group, *others = cells(cluster, row)
    link = PageCell(f'<a href="{parts.url("/cluster", cluster=cluster)}">{parts.text(cluster)}</a>', "label")
    return [status, group, link, *others]
