"""The selection of groups and topics: by name, by glob (`orders-*`) or by regular expression."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Sequence
from operator import itemgetter
from typing import NamedTuple, Protocol

from groupkeeper.base_error import GroupkeeperError
from groupkeeper.client.admin import Admin
from groupkeeper.client.admin.types import Failure, GroupListing, GroupState, GroupType, Node
from groupkeeper.client.errors import ClientError
from groupkeeper.protocol.errors import KafkaError
from groupkeeper.shell import Way, command

CONSUMER_TYPES = (GroupType.CLASSIC, GroupType.CONSUMER)
CONSUMER_PROTOCOLS = ("", "consumer")
SHARE_PROTOCOL = "share"
STREAMS_PROTOCOL = "streams"

_GLOB = re.compile(r"[*?\[]")


class BadGroupPattern(GroupkeeperError, ValueError):
    """The text is no regular expression, or no glob."""


class Matching(Protocol):
    """A filter of names; one that is false accepts all."""

    def __bool__(self) -> bool: ...

    def matches(self, name: str) -> bool: ...


class Names:
    """Names as they were typed. One with `*`, `?` or `[` is a glob: `[*]` stands for the character itself.

    With `regex` each is a regular expression instead, for the whole name. Nothing typed means every name.

    Attributes:
        exact: names without wildcards, in the order typed.
        patterns: the others.
    """

    def __init__(self, texts: Iterable[str], *, regex: bool = False, literal: Container[str] = ()) -> None:
        """`literal`: texts that are names, whatever characters they have. Raises BadPattern."""
        typed = list(dict.fromkeys(texts))
        self._is_regex = regex
        self.exact = tuple(text for text in typed if not regex and (text in literal or not _GLOB.search(text)))
        self.patterns = tuple(text for text in typed if text not in self.exact)
        self._typed = frozenset(() if regex else typed)
        self._compiled = [(text, _compiled(text, regex)) for text in self.patterns]

    def __bool__(self) -> bool:
        return bool(self.exact or self.patterns)

    def matches(self, name: str) -> bool:
        """Whether the name is selected, also by a glob with the same text, which after `among` selects only it."""
        if not self:
            return True
        return name in self._typed or any(pattern.fullmatch(name) for _, pattern in self._compiled)

    def among(self, names: Container[str]) -> Names:
        """This selection for existing names: a glob that is itself one of these names selects only that name."""
        if self._is_regex or not any(text in names for text in self.patterns):
            return self
        return Names([*self.exact, *self.patterns], literal=names)

    def without_match(self, names: Iterable[str]) -> list[str]:
        """The patterns that none of the names matches."""
        known = list(names) if self._compiled else []
        there = self._typed.intersection(known)
        return [text for text, rule in self._compiled if text not in there and not any(map(rule.fullmatch, known))]

    def without_any(self, names: Iterable[str]) -> list[str]:
        """The names and patterns typed that match none of the names."""
        known = set(names)
        return [*(text for text in self.exact if text not in known), *self.without_match(known)]

    def quoted(self, name: str) -> str:
        """The name quoted so that it matches only itself."""
        return re.escape(name) if self._is_regex else _GLOB.sub(r"[\g<0>]", name)


def command_about(way: Way, words: Sequence[str], group_id: str) -> tuple[str, ...]:
    """A command about this group alone, with its name quoted: all but `groups why` take names for globs."""
    return command(way, words, [group_id if words[-1] == "why" else Names(()).quoted(group_id)])


class Choice(NamedTuple):
    """Included names without the excluded ones; when both are empty, every name."""

    wanted: Names
    unwanted: Names

    def __bool__(self) -> bool:
        return bool(self.wanted or self.unwanted)

    def matches(self, name: str) -> bool:
        """Whether the name is chosen."""
        return self.wanted.matches(name) and not (self.unwanted and self.unwanted.matches(name))

    def among(self, names: Container[str]) -> Choice:
        """As `Names.among`."""
        return Choice(self.wanted.among(names), self.unwanted.among(names))


ALL = Choice(Names(()), Names(()))


def _compiled(text: str, is_regex: bool) -> re.Pattern[str]:
    if not is_regex:
        import fnmatch

        text = fnmatch.translate(text)
    try:
        return re.compile(text, re.DOTALL)
    except re.error as problem:
        raise BadGroupPattern(f"{text!r} is not a regular expression: {problem}") from None


class Selection(NamedTuple):
    """The ids of the selected groups, and the reasons why some may be missing.

    `failed`: brokers that could not be listed, whose groups are missing. `unmatched`: patterns without a group;
    `namesakes`: globs that are the id of a group, and were taken for that id.
    """

    group_ids: Sequence[str]
    failed: dict[Node, Failure]
    unmatched: Sequence[str] = ()
    namesakes: Sequence[str] = ()


async def list_selected(
    admin: Admin,
    names: Names,
    states: Sequence[GroupState] = (),
    types: Sequence[GroupType] = (),
    *,
    with_share: bool = False,
    with_streams: bool = False,
) -> tuple[list[GroupListing], Selection]:
    """The selected consumer groups of the cluster, by id; `with_share`: share groups as well, `with_streams`:
    streams groups as well. A glob that is the id of a group, of any type and state, means that group only.

    `types` narrows this down.
    """
    known = (await admin.list_groups()).groups if names.patterns else {}
    typed, names = names, names.among(known)
    if not types and not with_share:
        types = CONSUMER_TYPES
    # Without types the brokers list all groups, also brokers that are too old to have types.
    protocol_types = [*CONSUMER_PROTOCOLS, SHARE_PROTOCOL, *([STREAMS_PROTOCOL] if with_streams else [])]
    listings = await admin.list_groups(states=states, types=types, protocol_types=protocol_types)
    found = sorted(listings.groups.values(), key=itemgetter(0))
    if names:
        found = [group for group in found if names.matches(group.group_id)]
    unmatched = names.without_match(group.group_id for group in found)
    namesakes = [text for text in typed.patterns if text not in names.patterns]
    return found, Selection([group.group_id for group in found], listings.failed, unmatched, namesakes)


async def select_groups(
    admin: Admin,
    names: Names,
    states: Sequence[GroupState] = (),
    types: Sequence[GroupType] = (),
    *,
    with_share: bool = False,
    with_streams: bool = False,
) -> Selection:
    """The selected groups. Exact names are included whether the groups exist or not, unless there is a filter."""
    if not names.patterns and names and not states and not types:
        return Selection(sorted(names.exact), {})
    _, selection = await list_selected(admin, names, states, types, with_share=with_share, with_streams=with_streams)
    if states or types:
        return selection
    return selection._replace(group_ids=sorted({*selection.group_ids, *names.exact, *selection.namesakes}))


async def of_new_types(
    admin: Admin, types: Sequence[GroupType] = (GroupType.SHARE, GroupType.STREAMS)
) -> dict[str, GroupListing]:
    """The share and streams groups, listed by type: consumer-group requests answer that these don't exist."""
    try:
        listings = await admin.list_groups(types=types)
    except (KafkaError, ClientError):  # brokers that have no types have no such groups
        return {}
    # Older brokers list groups of all types.
    return {group_id: one for group_id, one in listings.groups.items() if one.group_type in types}
