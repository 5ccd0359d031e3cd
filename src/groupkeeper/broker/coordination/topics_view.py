"""The topics for group coordinators: an image of all topics, and the matches of regular expressions."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from functools import cache
from types import ModuleType

from groupkeeper.broker.log.topics import Topics
from groupkeeper.coordinator.kernel.topics_image import TopicShape, TopicsImage

_NO_RE2 = "google-re2 is not installed (there is none for PyPy)"

_log = logging.getLogger(__name__)


class TopicsWatch:
    """Makes a new image of the topics when they changed since the last image.

    Attributes:
        is_stale: whether the topics changed since the last image.
    """

    def __init__(self, topics: Topics, now_ms: Callable[[], int]) -> None:
        self._topics = topics
        self._now_ms = now_ms
        self.is_stale = True
        self._image = TopicsImage()

    def forget(self) -> None:
        """Called after topics changed."""
        self.is_stale = True

    @property
    def image(self) -> TopicsImage:
        """The current topics; the same object while nothing changes."""
        if self.is_stale:
            self._image = self._look()
            self.is_stale = False
        return self._image

    def _look(self) -> TopicsImage:
        before = self._image
        topics = {}
        for name in self._topics.names():
            topic = self._topics.get(name)
            if topic is not None:
                topics[name] = TopicShape(name, topic.topic_id, len(topic.partitions))
        # The clock makes versions grow across restarts, too.
        version = max(before.version + 1, self._now_ms())
        has_new = not topics.keys() <= before.topics.keys()
        return TopicsImage(version, version if has_new else before.version_with_new_topics, topics)


def match_topics(
    regexes: Iterable[str], names: Iterable[str], may_describe: Callable[[str], bool]
) -> dict[str, frozenset[str]] | None:
    """The topics that each regular expression matches with their whole name, among the topics that the caller may
    describe. An invalid expression matches nothing. None if RE2 is missing: the topics are unknown.
    """
    re2 = _engine()
    if re2 is None:
        return None
    visible = [name for name in names if may_describe(name)]
    matched = {}
    for regex in regexes:
        try:
            compiled = re2.compile(regex)
        except re2.error:
            matched[regex] = frozenset[str]()
            continue
        matched[regex] = frozenset(name for name in visible if compiled.fullmatch(name))
    return matched


def regex_error(regex: str | None) -> str | None:
    """Why a regular expression is refused; None when it is valid, or there is none."""
    if not regex:
        return None
    from groupkeeper.protocol.re2_syntax import BadPattern, check_pattern

    try:
        check_pattern(regex)
    except BadPattern as error:
        return str(error)
    return _NO_RE2 if _engine() is None else None


@cache
def _engine() -> ModuleType | None:
    """The RE2 module; None if it is missing, which is logged once."""
    try:
        import re2
    except ImportError:
        _log.warning("%s: subscriptions by a regular expression are refused", _NO_RE2)
        return None
    return re2  # type: ignore[no-any-return]
