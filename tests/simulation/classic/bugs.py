"""Bugs that a coordinator could have, and the checkers that must find them."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Bug:
    """`module` of the coordinator with `old` replaced by `new`. `found_by` names checkers, one of which finds it."""

    title: str
    module: str
    old: str
    new: str
    found_by: tuple[str, ...]
    plan: tuple[tuple[str, float | str], ...] = ()
    """What a plan must be like for the bug to show before long."""
    seed: int = 1
    """The first whose run has found it, where that took many: it is tried before the others."""


BUGS = (
    # --- generations
    Bug(
        "an assignment is handed out without being in the log",
        "classic.step",
        "    step.records.append(group_record(step.group_id, step.roster))\n    for member_id, calls in",
        "    for member_id, calls in",
        ("Ownership",),
    ),
    Bug(
        "everybody gets the same assignment",
        "classic.step",
        "assignment=assignments.get(one.member_id, b",
        'assignment=next(iter(assignments.values()), b"") or (b',
        ("Ownership",),
    ),
    Bug(
        "a failed append of the assignment is not told",
        "classic.membership",
        "fail_syncs(step, error.code)",
        "fail_syncs(step, NONE)",
        ("Ownership",),
    ),
    Bug(
        "any member's SyncGroup is taken for the leader's",
        "classic.membership",
        "if request.member_id == step.roster.leader_id:",
        "if request.member_id:",
        ("Ownership", "Liveness"),
    ),
    Bug(
        "generations do not go on counting",
        "classic.step",
        "generation=step.roster.generation + 1",
        "generation=step.roster.generation or 1",
        ("Ownership", "Agreement"),
    ),
    Bug(
        "followers are told the members",
        "classic.step",
        "members=member_list(step) if member_id == step.roster.leader_id else (),",
        "members=member_list(step),",
        ("Agreement",),
    ),
    Bug(
        "a leader that did not rejoin stays leader",
        "classic.step",
        "if step.roster.leader_id not in joining.waiting:",
        "if step.roster.leader_id is None:",
        ("Agreement", "Liveness"),
        (("slow", 0.3), ("client_count", 6)),
    ),
    Bug(
        "the protocol that fewest prefer is selected",
        "classic.group",
        "return max(votes, key=",
        "return min(votes, key=",
        ("Agreement",),
    ),
    Bug(
        "members that did not rejoin are kept",
        "classic.step",
        "if member.instance_id is None and member.member_id not in joining.waiting:",
        "if member.member_id in ():",
        ("Agreement", "Membership"),
        seed=5,
    ),
    Bug(
        "a group takes more members than allowed",
        "classic.join",
        "len(waiting) < step.settings.group_max_size",
        "len(waiting) <= step.settings.group_max_size",
        ("Agreement",),
        seed=7,
    ),
    Bug(
        "a group keeps its last place free",
        "classic.join",
        "len(step.roster.members) < step.settings.group_max_size",
        "len(step.roster.members) < step.settings.group_max_size - 1",
        ("Liveness",),
        (("max_size", 3), ("group_count", 1)),
    ),
    Bug(
        "members of an old generation may commit",
        "classic.offsets",
        "    check_generation(roster, generation)\n",
        "",
        ("Agreement",),
        (("slow", 0.5), ("client_count", 8), ("group_count", 1)),
    ),
    Bug(
        "a static member that comes back is not in the log",
        "classic.join",
        "    step.records.append(group_record(step.group_id, step.roster))\n",
        "",
        ("Ownership", "Membership"),
    ),
    Bug(
        "a follower that repeats its JoinGroup causes a rebalance",
        "classic.join",
        "is_unchanged = member.protocols == _protocols(request)",
        "is_unchanged = False",
        ("Repetition",),
    ),
    # --- members
    Bug(
        "heartbeats do not renew the session",
        "classic.membership",
        "        timers=(session_of(request.group_id, roster.members[request.member_id]),),\n",
        "",
        ("Membership",),
    ),
    Bug(
        "a session ends while the coordinator keeps its member waiting",
        "classic.membership",
        "if rebalance is None or member_id not in rebalance.waiting:",
        "if True:",
        ("Membership",),
        seed=5,
    ),
    Bug(
        "members are not told that their group rebalances",
        "classic.membership",
        "error_code=RebalanceInProgress.code if is_joining else NONE",
        "error_code=NONE",
        ("Membership", "Agreement"),
    ),
    Bug(
        "a member that synced is taken for one that did not",
        "classic.membership",
        "    note_sync(step, request.member_id)\n",
        "",
        ("Membership",),
    ),
    Bug(
        "the first to rejoin ends the join phase",
        "classic.step",
        "len(joining.waiting) == len(step.roster.members)",
        "bool(joining.waiting)",
        ("Membership",),
    ),
    Bug(
        "static members are forgotten in a restart",
        "classic.group",
        "for one in kept.values() if one.instance_id is not None}",
        "for one in kept.values() if one.instance_id is ...}",
        ("Membership", "Restart"),
    ),
    Bug(
        "sessions do not start after a restart",
        "classic.membership",
        "return (sessions,)",
        "return ()",
        ("Departure", "Liveness"),
        seed=6,
    ),
    Bug(
        "silent members are not removed",
        "classic.membership",
        "elif member_id in step.roster.members and not _is_excused(group, member_id):",
        "elif member_id in ():",
        ("Departure", "Liveness"),
    ),
    Bug(
        "a failed removal is not tried again",
        "classic.membership",
        "return Arm(timer, 1_000)",
        "return Arm(timer, 10**12)",
        ("Departure", "Liveness"),
        (("client_count", 2), ("append_fails", 0.3), ("crash", 0.05)),
    ),
    # --- waiting
    Bug(
        "nothing ends the wait for those that do not rejoin",
        "classic.step",
        "        else:\n            step.arm(JoinPhase(step.group_id), step.roster.rebalance_timeout_ms())\n",
        "",
        ("Patience", "Liveness"),
        seed=25,
    ),
    Bug(
        "nothing ends the wait for those that do not sync",
        "classic.step",
        "    step.arm(SyncPhase(step.group_id), step.roster.rebalance_timeout_ms())\n",
        "",
        ("Patience", "Liveness"),
        (("slow", 0.2),),
        seed=10,
    ),
    Bug(
        "a new rebalance does not answer who waits for an assignment",
        "classic.step",
        "        step.release(calls, SyncGroupResponse(error_code=error_code))\n",
        "",
        ("Patience",),
    ),
    Bug(
        "a repeated JoinGroup takes the place of the first",
        "classic.step",
        "calls = joining.waiting.get(member.member_id, ())",
        "calls: tuple[int, ...] = ()",
        ("Patience",),
        seed=5,
    ),
    # --- offsets
    Bug(
        "a commit is acknowledged without being in the log",
        "offsets.commit",
        "        OffsetCommitResponse(0, topics),\n        records=tuple(records),\n",
        "        OffsetCommitResponse(0, topics),\n",
        ("Offsets",),
    ),
    Bug("metadata is lost", "kernel.offset_store", "            value.metadata,\n", '            "",\n', ("Offsets",)),
    Bug(
        "a new commit does not replace the old one",
        "kernel.offset_store",
        "        partitions[partition] = offset\n",
        "        partitions.setdefault(partition, offset)\n",
        ("Offsets",),
    ),
    Bug(
        "offsets of topics in use are deleted",
        "offsets.commit",
        "rules.is_subscribed_to(group, topic.name)",
        "False",
        ("Agreement",),
    ),
    Bug(
        "a deletion is acknowledged without being in the log",
        "offsets.commit",
        "            records.extend(offset_tombstones(state, group_id, topic.name, (index,)))\n",
        "            pass\n",
        ("Offsets",),
        seed=19,
    ),
    Bug(
        "a deleted group leaves its offsets behind",
        "views",
        "            records.extend(all_offset_tombstones(state, group_id))\n",
        "",
        ("Offsets", "Restart"),
        seed=14,
    ),
    Bug(
        "offsets of a deleted topic stay",
        "offsets.expiry",
        "in (ZERO_UUID, topic_id)\n",
        "in (topic_id,)\n",
        ("Offsets",),
        seed=4,
    ),
    Bug(
        "offsets of topics in use expire",
        "offsets.expiry",
        "        if not rules.is_subscribed_to(group, topic)\n",
        "",
        ("Offsets",),
        seed=5,
    ),
    Bug(
        "offsets expire too early",
        "offsets.expiry",
        "retention_ms, since_ms = settings.offsets_retention_ms, ",
        "retention_ms, since_ms = settings.offsets_retention_ms // 2, ",
        ("Offsets",),
    ),
    Bug(
        "offsets never expire",
        "offsets.expiry",
        "    if not rules.do_offsets_age(group):\n",
        "    if True:\n",
        ("Liveness",),
    ),
    Bug(
        "an Empty group's offsets expire by their own age",
        "classic.offsets",
        "state_since_ms=group.roster.state_since_ms",
        "state_since_ms=None",
        ("Offsets",),
    ),
    # --- the coordinator
    Bug(
        "assignments are lost in a restart",
        "classic.record",
        "        assignment=stored.assignment,\n",
        "",
        ("Restart",),
    ),
    Bug(
        "a restart makes another member the leader",
        "classic.record",
        "        leader_id=value.leader,\n",
        "        leader_id=next((m.member_id for m in value.members if m.member_id != value.leader), value.leader),\n",
        ("Agreement",),
        (("restart", 0.05), ("resubscribe", 0.2)),
        seed=9,
    ),
    Bug(
        "an Empty group counts from 1 again after a restart",
        "classic.record",
        "        generation=value.generation,\n        protocol_name",
        "        generation=value.generation if value.members else 0,\n        protocol_name",
        ("Ownership", "Agreement", "Restart"),
    ),
    Bug(
        "computing a commit counts it already",
        "offsets.commit",
        "    timers = _check_commit(state, call, request)\n",
        "    timers = _check_commit(state, call, request)\n    vars(state.offsets)['count'] += 1\n",
        ("Purity",),
    ),
)
