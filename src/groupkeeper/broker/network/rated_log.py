"""Logs lines that peers cause, at a bounded rate."""

from __future__ import annotations

import asyncio
from collections import Counter
from logging import WARNING, getLogger

_log = getLogger("groupkeeper.broker")

_WINDOW_S = 10.0
_OF_PEER = 10
_OF_ALL = 50
_EVERYBODY_ELSE = "other addresses"


class RatedLog:
    """Logs at most 10 lines of a peer in 10 seconds, and 50 of all peers; then one line with the number of omitted
    ones. A malicious peer must not fill the disk, or hide other lines.
    """

    def __init__(self) -> None:
        self._lines = 0
        self._left_out: Counter[str] = Counter()
        self._of_peer: Counter[str] = Counter()
        self._timer: asyncio.TimerHandle | None = None

    def line(
        self,
        peer: str,
        text: str,
        *values: object,
        level: int = WARNING,
        error: Exception | None = None,
        most: int = _OF_PEER,
    ) -> None:
        """Logs a line, with the traceback of `error`, unless the peer has had `most` lines in this period."""
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_WINDOW_S, self.sum_up)
        self._of_peer[peer] += 1
        if self._lines < _OF_ALL and self._of_peer[peer] <= most:
            self._lines += 1
            _log.log(level, text, *values, exc_info=error)
        else:
            known = peer in self._left_out or len(self._left_out) < _OF_PEER
            self._left_out[peer if known else _EVERYBODY_ELSE] += 1

    def sum_up(self) -> None:
        """Logs how many lines were omitted, and begins a new period."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None
        self._lines = 0
        self._of_peer.clear()
        for peer, count in self._left_out.items():
            _log.warning("and %d more lines about connections from %s, which were left out", count, peer.strip("/"))
        self._left_out.clear()
