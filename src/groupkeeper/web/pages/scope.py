"""Sentences about groups and topics that the server's options leave out of a cluster."""

from __future__ import annotations

from html import escape

from groupkeeper.live.model import ClusterSnapshot
from groupkeeper.rules import words
from groupkeeper.web.actions import OPTIONS as OPTIONS


def left_out(snapshot: ClusterSnapshot) -> str:
    """Sentences about groups that are not shown, and names that match nothing; "": there are neither."""
    scope = snapshot.scope
    said = ""
    if scope.unmatched:
        named = ", ".join(map(escape, scope.unmatched))
        said += f'<p class="banner none">Nothing here matches {named}, an option of this server.</p>'
    if scope.left_out:
        count = words.counted(len(scope.left_out), "other group")
        verb = "is" if len(scope.left_out) == 1 else "are"
        said += f'<p class="soft">{count} of the cluster {verb} left out ({OPTIONS}).</p>'
    return said + topics_chosen(snapshot)


def topics_chosen(snapshot: ClusterSnapshot) -> str:
    """A sentence if numbers are of some topics only; "": they are of all."""
    if snapshot.scope.hides_topics:
        return '<p class="soft">Numbers cover the topics that this server may describe: brokers leave out others.</p>'
    if not snapshot.scope.are_topics_chosen:
        return ""
    return '<p class="soft">Numbers cover the chosen topics only (--topic, --except-topic).</p>'
