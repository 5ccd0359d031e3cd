"""The open transactions that keep consumers of committed records back, as far as brokers tell."""

from __future__ import annotations

from collections.abc import Mapping

from groupkeeper.client.admin import Admin
from groupkeeper.client.admin.types import TopicPartition
from groupkeeper.operations.transactions import OpenTransaction, open_in

_MOST_ASKED = 50
_ASK_AGAIN_MS = 60_000


class Holders:
    """Those of one cluster, between polls. Brokers are asked only where a transaction holds a group back."""

    def __init__(self) -> None:
        self._asked: dict[TopicPartition, tuple[int, int]] = {}
        """For which last stable offset, and when."""
        self._found: dict[TopicPartition, OpenTransaction] = {}

    async def ask(self, admin: Admin, held: Mapping[TopicPartition, int], at_ms: int) -> None:
        """``held``: partitions with their last stable offsets; what is known of others is forgotten."""
        self._asked = {place: asked for place, asked in self._asked.items() if held.get(place) == asked[0]}
        self._found = {place: one for place, one in self._found.items() if place in self._asked}
        due = [each for each in held if at_ms - self._asked.get(each, (0, 0))[1] >= _ASK_AGAIN_MS][:_MOST_ASKED]
        self._asked |= {place: (held[place], at_ms) for place in due}
        found = await open_in(admin, due)
        self._found = {place: one for place, one in self._found.items() if place not in due}
        self._found |= {one.place: one for one in reversed(found.transactions)}

    def of(self, place: TopicPartition) -> OpenTransaction | None:
        """The oldest one there; None: it is not known, or none is known to hold anyone."""
        return self._found.get(place)
