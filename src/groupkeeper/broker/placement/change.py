"""Computes a changed placement: from new replicas and a new in-sync set follow the leader and the eligible leader
replicas, by the rules of Apache Kafka's controller (4.4.0 PartitionChangeBuilder).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from groupkeeper.broker.placement.placement import NO_LEADER, Placement


@dataclass(frozen=True, slots=True)
class ElectionTerms:
    """The conditions of a leader election."""

    end_offset: int
    """The end of the log."""
    running: Collection[int]
    """The nodes that may lead."""
    min_in_sync: int
    """`min.insync.replicas`."""
    has_eligible: bool
    """Whether eligible leader replicas are enabled (KIP-966)."""
    is_unclean: bool = False
    """Whether any running replica may lead if no in-sync or eligible one can."""
    wanted: int = NO_LEADER
    """The leader to elect if it may lead; −1: keep the present one."""
    unclean: Collection[int] = ()
    """Nodes back from a kill, which are not eligible."""


def changed(at: Placement, target: Placement, terms: ElectionTerms) -> Placement:
    """The placement after `at`, with the replicas, in-sync set, replica ends and reassignment of `target`."""
    if target.is_moving:
        target = _without_the_removed(target)
    replicas, isr = target.replicas, list(target.isr)
    eligible: list[int] = []
    if terms.has_eligible and len(isr) < min(terms.min_in_sync, len(replicas)):
        eligible = sorted({*at.isr, *at.eligible}.intersection(replicas).difference(isr, terms.unclean))
    candidates = isr or eligible
    leader = _first([terms.wanted, at.leader, *replicas], lambda one: one in candidates and one in terms.running)
    if leader == NO_LEADER:
        leader = _unclean_leader(at, replicas, terms, is_empty=not candidates)
        if leader != NO_LEADER:
            isr, eligible = [leader], []
    elif leader in eligible:
        isr = [leader]
        eligible.remove(leader)
    if not isr and not terms.has_eligible:
        isr = [one for one in at.isr if one in replicas]  # the last in-sync replica stays
    new = at.with_leader(target, leader, isr, terms.end_offset)
    new.eligible = eligible
    if leader == NO_LEADER and terms.has_eligible:
        new.last_leader = at.leader if at.last_leader == NO_LEADER else at.last_leader
    return new


def _without_the_removed(target: Placement) -> Placement:
    """Completes the reassignment if all added replicas are in sync; else returns `target`."""
    left = [one for one in target.isr if one not in target.removing]
    if not left or not set(target.adding) <= set(left):
        return target
    replicas = [one for one in target.replicas if one not in target.removing]
    return Placement(replicas, left, target.leader, ends=target.ends)


def _unclean_leader(at: Placement, replicas: Sequence[int], terms: ElectionTerms, *, is_empty: bool) -> int:
    """An out-of-sync leader, else −1. `is_empty`: no replica is in sync or eligible; then the last leader may lead."""
    if terms.has_eligible and is_empty and at.last_leader in terms.running:
        return at.last_leader
    return _first(replicas if terms.is_unclean else (), lambda one: one in terms.running)


def _first(nodes: Sequence[int], may: Callable[[int], bool]) -> int:
    return next(filter(may, nodes), NO_LEADER)
