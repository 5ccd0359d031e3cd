"""Measures clusters, each on its own: a cluster that does not answer delays no other cluster."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Executor, Future, wait
from typing import NamedTuple

from groupkeeper.pipeline.kafka.options import ReadOptions
from groupkeeper.pipeline.kafka.planning import ReadPlan, plan

_LOOK_S = 0.2
_PATIENCE = "default.api.timeout.ms"
_PATIENCE_MS = 10_000
_LONGEST_S = 60.0


class Measuring:
    """Clusters by number. A late measurement continues, so that its cluster is not queried twice; its result is out of
    date when it ends.
    """

    def __init__(self, pool: Executor) -> None:
        self._pool = pool
        self._under_way: dict[int, Future[_Measured]] = {}
        self._took_s: dict[int, float] = {}
        """How long it took to measure each cluster the last time."""

    def measure(self, clusters: Mapping[int, ReadOptions], is_silent: Callable[[int], bool]) -> dict[int, ReadPlan]:
        """The clusters that answered in time; each has its own options. Silent clusters are not waited for; other
        clusters are waited for up to `limit_s`.
        """
        new = self._begin(clusters)
        began = time.monotonic()

        def is_awaited(number: int) -> bool:
            is_over = self._under_way[number].done() or time.monotonic() >= began + self.limit_s(number)
            return not is_over and not is_silent(number)

        while waiting := [self._under_way[number] for number in new if is_awaited(number)]:
            wait(waiting, _LOOK_S)
        found = {}
        for number in new:
            if self._under_way[number].done():
                found[number], self._took_s[number] = self._under_way.pop(number).result()
        return found

    def limit_s(self, number: int) -> float:
        """Twice the time of the last measurement, but at least 10 s and at most a minute."""
        return min(max(_PATIENCE_MS / 1000, round(2 * self._took_s.get(number, 0.0))), _LONGEST_S)

    def _begin(self, clusters: Mapping[int, ReadOptions]) -> list[int]:
        """Returns the clusters whose measurement begins now; the others have not answered an earlier query yet."""
        for number, measuring in list(self._under_way.items()):
            if measuring.done():
                self._took_s[number] = self._under_way.pop(number).result().took_s
        new = [number for number in clusters if number not in self._under_way]
        for number in new:
            self._under_way[number] = self._pool.submit(_measured, _impatient(clusters[number]))
        return new


class _Measured(NamedTuple):
    found: ReadPlan
    took_s: float


def _measured(options: ReadOptions) -> _Measured:
    began = time.monotonic()
    found = asyncio.run(plan(options))
    return _Measured(found, time.monotonic() - began)


def _impatient(options: ReadOptions) -> ReadOptions:
    """Options for clusters that answered a moment ago: a cluster that no longer answers must not delay the others."""
    clusters = []
    for each in options.clusters:
        clusters.append(each._replace(properties={_PATIENCE: str(_PATIENCE_MS), **each.properties}))
    return options._replace(clusters=tuple(clusters))
