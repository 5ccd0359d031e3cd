"""Checkers of who is a member: nobody who does as told is thrown out, and nobody stays who is gone."""

from dataclasses import dataclass
from typing import TypeAlias

from tests.simulation.observation import Checker, Facts

from groupkeeper.coordinator.kernel.result import GroupCall
from groupkeeper.protocol import errors
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.errors import NONE
from groupkeeper.protocol.primitives import Message

MemberKey: TypeAlias = tuple[str, str]
"""Group and member id."""


@dataclass(slots=True)
class Standing:
    """Until when a member can't have deserved to be thrown out.

    Attributes:
        session_ends_ms: by its last sign of life.
        phase_ends_ms: by when it must have rejoined or synced at the earliest: whatever began, began after it was last
            told that all is well, and lasts at least its own rebalance timeout.
        generation: None when its generation may be lost.
        is_synced: whether it has the assignment of its generation.
        parked: its calls that wait for an answer.
    """

    session_timeout_ms: int
    rebalance_timeout_ms: int
    session_ends_ms: int
    phase_ends_ms: int
    generation: int | None
    instance_id: str | None
    is_synced: bool = False
    parked: int = 0

    def heard(self, now_ms: int) -> None:
        self.session_ends_ms = now_ms + self.session_timeout_ms

    def phase_begins(self, now_ms: int) -> None:
        self.phase_ends_ms = now_ms + self.rebalance_timeout_ms


class Membership(Checker):  # GC-14, GC-16, GC-18, GC-19, GC-20, GO-05, GP-04
    """A member that sends heartbeats, rejoins and syncs in time is never told that it is unknown, or that its
    generation is over when it is not; a replaced static member is never answered as if it were one.
    """

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self._standings: dict[MemberKey, Standing] = {}
        self._replaced: set[MemberKey] = set()
        self._going: set[MemberKey] = set()
        """Whom the request being handled removes or replaces: what they have parked is answered first."""

    def on_request(self, call: GroupCall) -> None:
        self._going.clear()
        request = call.request
        if isinstance(request, m.LeaveGroupRequest):
            for member in request.members:
                self._going.add((request.group_id, member.member_id))
                self._going.update(self._holders(request.group_id, member.group_instance_id))
        elif isinstance(request, m.JoinGroupRequest) and not request.member_id:
            self._going.update(self._holders(request.group_id, request.group_instance_id))

    def _holders(self, group_id: str, instance_id: str | None) -> list[MemberKey]:
        """Who has an instance id."""
        return [
            key
            for key, standing in self._standings.items()
            if key[0] == group_id and standing.instance_id is not None and standing.instance_id == instance_id
        ]

    # --- joining

    def on_parked(self, call: GroupCall) -> None:
        request = call.request
        if isinstance(request, m.JoinGroupRequest | m.SyncGroupRequest):
            if (
                isinstance(request, m.JoinGroupRequest)
                and not request.member_id
                and request.group_instance_id is not None
            ):
                self._replace(request.group_id, request.group_instance_id)
            standing = self._standings.get((request.group_id, request.member_id))
            if standing is not None:
                standing.parked += 1

    def _replace(self, group_id: str, instance_id: str) -> None:
        for key in self._holders(group_id, instance_id):
            del self._standings[key]
            self._replaced.add(key)

    def _joined(self, request: m.JoinGroupRequest, response: m.JoinGroupResponse, *, was_parked: bool) -> None:
        now_ms, key = self.facts.now_ms, (request.group_id, response.member_id)
        if response.error_code == NONE:
            known = self._standings.get(key)
            if not request.member_id and request.group_instance_id is not None and not was_parked:
                self._replace(request.group_id, request.group_instance_id)
            if known is not None and known.generation == response.generation_id and not was_parked:
                # The answer again, of a generation that may wait for its SyncGroup already.
                known.heard(now_ms)
                return
            self._standings[key] = Standing(
                request.session_timeout_ms,
                request.rebalance_timeout_ms,
                now_ms + request.session_timeout_ms,
                # Told at once, it may owe a SyncGroup for a while already, or its former self may (GC-16).
                now_ms + request.rebalance_timeout_ms if was_parked else now_ms,
                response.generation_id,
                request.group_instance_id,
            )
            return
        key = (request.group_id, request.member_id)
        if response.error_code == errors.GroupMaxSizeReached.code:
            self._standings.pop(key, None)
        else:
            self._check_refusal(key, response.error_code, was_parked=was_parked, request=request)

    # --- everything else

    def on_answer(self, call: GroupCall, response: Message, *, was_parked: bool) -> None:
        request = call.request
        match request, response:
            case m.JoinGroupRequest(), m.JoinGroupResponse():
                self._joined(request, response, was_parked=was_parked)
            case m.SyncGroupRequest(), m.SyncGroupResponse():
                self._synced(request, response, was_parked=was_parked)
            case m.HeartbeatRequest(), m.HeartbeatResponse():
                self._beaten(request, response)
            case m.OffsetCommitRequest(), m.OffsetCommitResponse() if request.member_id:
                self._committed(request, response)
            case m.LeaveGroupRequest(), m.LeaveGroupResponse():
                self._left(request, response)
            case _, m.DeleteGroupsResponse():
                deleted = {one.group_id for one in response.results if one.error_code == NONE}
                for key in [key for key in self._standings if key[0] in deleted]:
                    del self._standings[key]

    def _synced(self, request: m.SyncGroupRequest, response: m.SyncGroupResponse, *, was_parked: bool) -> None:
        key, now_ms = (request.group_id, request.member_id), self.facts.now_ms
        self._check_replaced(key, response.error_code)
        standing = self._standings.get(key)
        if standing is None:
            return
        if was_parked:
            standing.parked = max(standing.parked - 1, 0)
        if response.error_code == NONE:
            standing.is_synced = True
            standing.heard(now_ms)
            standing.phase_begins(now_ms)
        elif response.error_code in (
            errors.UnknownMemberId.code,
            errors.IllegalGeneration.code,
            errors.FencedInstanceId.code,
        ):
            self._check_refusal(key, response.error_code, was_parked=was_parked, request=request)
        elif was_parked or response.error_code != errors.RebalanceInProgress.code:
            # A rebalance begins in this moment; it was excused while it waited.
            standing.heard(now_ms)
            standing.phase_begins(now_ms)

    def _beaten(self, request: m.HeartbeatRequest, response: m.HeartbeatResponse) -> None:
        key, now_ms = (request.group_id, request.member_id), self.facts.now_ms
        self._check_replaced(key, response.error_code)
        standing = self._standings.get(key)
        if standing is None:
            return
        if response.error_code in (NONE, errors.RebalanceInProgress.code):
            standing.heard(now_ms)
            if response.error_code == NONE and standing.is_synced:
                standing.phase_begins(now_ms)
        else:
            self._check_refusal(key, response.error_code, was_parked=False, request=request)

    def _committed(self, request: m.OffsetCommitRequest, response: m.OffsetCommitResponse) -> None:
        key = (request.group_id, request.member_id)
        (error_code,) = {one.error_code for topic in response.topics for one in topic.partitions}
        self._check_replaced(key, error_code)
        standing = self._standings.get(key)
        if standing is None or request.generation_id_or_member_epoch < 0:
            return
        if error_code == NONE:
            standing.heard(self.facts.now_ms)
        elif error_code in (errors.UnknownMemberId.code, errors.IllegalGeneration.code, errors.FencedInstanceId.code):
            self._check_refusal(key, error_code, was_parked=False, request=request)

    def _left(self, request: m.LeaveGroupRequest, response: m.LeaveGroupResponse) -> None:
        for member in response.members:
            if member.error_code != NONE:
                continue
            self._standings.pop((request.group_id, member.member_id), None)
            for key in self._holders(request.group_id, member.group_instance_id):
                del self._standings[key]

    # --- judging

    def _check_replaced(self, key: MemberKey, error_code: int) -> None:
        if key in self._replaced and error_code == NONE:
            self.fail(key[0], f"{key[1]} was replaced, and is answered as if it were a member")

    def _check_refusal(self, key: MemberKey, error_code: int, *, was_parked: bool, request: Message) -> None:
        standing, now_ms = self._standings.get(key), self.facts.now_ms
        if standing is None or key in self._going:
            return
        if error_code == errors.UnknownMemberId.code:
            is_excused = was_parked or standing.parked > 0
            if is_excused or now_ms < min(standing.session_ends_ms, standing.phase_ends_ms):
                self.fail(key[0], f"{key[1]} is unknown at {now_ms}, its standing is {standing}: {request}")
            del self._standings[key]
        elif error_code == errors.FencedInstanceId.code:
            self.fail(key[0], f"{key[1]} is fenced, but nobody replaced it: {request}")
        elif error_code == errors.IllegalGeneration.code:
            is_current = getattr(request, "generation_id", -1) == standing.generation
            if is_current and standing.instance_id is None:
                self.fail(key[0], f"{key[1]} has the generation it was told, {standing.generation}: {request}")

    # --- the coordinator's fate

    def on_restart(self) -> None:
        """Who is in the log is a member, with a fresh session; of others nothing is known."""
        now_ms = self.facts.now_ms
        for key, standing in list(self._standings.items()):
            value = self.facts.group_values.get(key[0])
            stored = {} if value is None else {member.member_id: member for member in value.members}
            if key[1] not in stored:
                del self._standings[key]
                continue
            standing.parked = 0
            standing.session_timeout_ms = stored[key[1]].session_timeout
            standing.rebalance_timeout_ms = stored[key[1]].rebalance_timeout
            standing.heard(now_ms)
            standing.phase_begins(now_ms)
            if value is not None and standing.generation != value.generation:
                standing.generation = None
            standing.is_synced = standing.generation is not None


class Departure(Checker):  # GC-16, GC-19, GC-23, GP-04
    """Who is not heard of any more is not described as a member for longer than its timeouts allow."""

    SLACK_MS = 8_000
    """A removal whose record can't be written is tried again, several times perhaps."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self._heard_ms: dict[MemberKey, int] = {}
        self._timeouts_ms: dict[MemberKey, int] = {}
        self._parked: dict[int, MemberKey] = {}
        self._group_told_ms: dict[str, int] = {}
        self._loaded_ms = 0

    def on_request(self, call: GroupCall) -> None:
        request = call.request
        member_id = getattr(request, "member_id", "")
        if member_id and hasattr(request, "group_id"):
            self._heard_ms[request.group_id, member_id] = self.facts.now_ms

    def on_parked(self, call: GroupCall) -> None:
        request = call.request
        assert isinstance(request, m.JoinGroupRequest | m.SyncGroupRequest)
        if request.member_id:
            self._parked[call.call_id] = (request.group_id, request.member_id)

    def on_connection_lost(self, call: GroupCall) -> None:
        self._parked.pop(call.call_id, None)

    def on_answer(self, call: GroupCall, response: Message, *, was_parked: bool) -> None:
        request, now_ms = call.request, self.facts.now_ms
        key = self._parked.pop(call.call_id, None)
        if key is not None:
            self._heard_ms[key] = now_ms
        if isinstance(request, m.JoinGroupRequest) and isinstance(response, m.JoinGroupResponse):
            self._group_told_ms[request.group_id] = now_ms
            if response.error_code == NONE:
                key = (request.group_id, response.member_id)
                self._heard_ms[key] = now_ms
                self._timeouts_ms[key] = request.session_timeout_ms
        if isinstance(response, m.DescribeGroupsResponse):
            for group in response.groups:
                for member in group.members:
                    self._check(group.group_id, member.member_id, is_static=member.group_instance_id is not None)

    def _check(self, group_id: str, member_id: str, *, is_static: bool) -> None:
        key = (group_id, member_id)
        if key in self._parked.values() or key not in self._timeouts_ms:
            return
        heard_ms = max(self._heard_ms.get(key, 0), self._loaded_ms)
        if is_static:
            # Every generation that begins starts all sessions anew (GC-23).
            heard_ms = max(heard_ms, self._group_told_ms.get(group_id, 0))
        silent_ms = self.facts.now_ms - heard_ms
        if silent_ms > self._timeouts_ms[key] + self.SLACK_MS:
            self.fail(group_id, f"{member_id} is a member, but was silent for {silent_ms} ms")

    def on_restart(self) -> None:
        self._loaded_ms = self.facts.now_ms
        self._parked.clear()


class Patience(Checker):  # GC-09, GC-10, GC-16, GC-17
    """Nobody waits longer for an answer than the members' rebalance timeouts allow."""

    SLACK_MS = 6_000

    def __init__(self, facts: Facts, initial_delay_ms: int) -> None:
        super().__init__(facts)
        self._parked: dict[int, tuple[GroupCall, int]] = {}
        self._longest_ms = 0
        self._delay_ms = initial_delay_ms

    def on_parked(self, call: GroupCall) -> None:
        self._parked[call.call_id] = (call, self.facts.now_ms)
        if isinstance(call.request, m.JoinGroupRequest):
            self._longest_ms = max(self._longest_ms, call.request.rebalance_timeout_ms)

    def on_answer(self, call: GroupCall, response: Message, *, was_parked: bool) -> None:
        self._parked.pop(call.call_id, None)

    def on_connection_lost(self, call: GroupCall) -> None:
        self._parked.pop(call.call_id, None)

    def on_tick(self) -> None:
        for call, since_ms in self._parked.values():
            waits_ms = self.facts.now_ms - since_ms
            if waits_ms > self._longest_ms + self._delay_ms + self.SLACK_MS:
                self.fail(getattr(call.request, "group_id", ""), f"waits for {waits_ms} ms: {call}")
