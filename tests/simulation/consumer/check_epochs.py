"""Checkers of epochs, fencing and removals in consumer groups."""

from dataclasses import dataclass

from tests.simulation.consumer.check_custody import Custody
from tests.simulation.consumer.facts import ConsumerChecker, ConsumerFacts

from groupkeeper.coordinator.kernel.result import GroupCall, Record
from groupkeeper.coordinator.kernel.settings import Settings
from groupkeeper.coordinator.kernel.timers import ClassicRejoin, ClassicResync, ConsumerSession, Revocation, TimerKey
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.errors import NONE, FencedMemberEpoch, RebalanceInProgress, UnknownMemberId
from groupkeeper.protocol.offsets_topic import Entry
from groupkeeper.protocol.primitives import Message

SLACK_MS = 20_000
"""How much later than due somebody may be removed: storing it may fail some times in a row."""


class Epochs(ConsumerChecker):  # GN-07, GN-08, GN-10, GM-03, GM-07
    """The epochs of groups and members never go backwards, over migrations and restarts too, and a member is never
    ahead of its group's target, nor that of the group.
    """

    def __init__(self, facts: ConsumerFacts) -> None:
        super().__init__(facts)
        self._members: dict[tuple[str, str], int] = {}
        self._groups: dict[str, tuple[int, bool]] = {}
        """The highest epoch or generation in the log, and whether the group had members then."""
        self._ended_by: dict[str, tuple[GroupCall | TimerKey | None, bool]] = {}

    def on_answer(self, call: GroupCall, response: Message, *, was_parked: bool) -> None:
        request = call.request
        if isinstance(response, m.ConsumerGroupHeartbeatResponse):
            assert isinstance(request, m.ConsumerGroupHeartbeatRequest)
            if response.error_code == NONE and response.member_epoch >= 0:
                self._note_member(request.group_id, response.member_id or "", response.member_epoch)
        elif isinstance(response, m.JoinGroupResponse):
            assert isinstance(request, m.JoinGroupRequest)
            if response.error_code == NONE and request.group_id in self.facts.is_consumer:
                self._note_member(request.group_id, response.member_id, response.generation_id)
        elif isinstance(response, m.ConsumerGroupDescribeResponse):
            for group in response.groups:
                if group.error_code == NONE:
                    epochs = [member.member_epoch for member in group.members]
                    if not max(epochs, default=0) <= group.assignment_epoch <= group.group_epoch:
                        self.fail(group.group_id, f"epochs of the group, its target and its members: {group}")

    def _note_member(self, group_id: str, member_id: str, epoch: int) -> None:
        before = self._members.get((group_id, member_id), 0)
        if epoch < before:
            self.fail(group_id, f"{member_id} had epoch {before}, and is told {epoch}")
        self._members[group_id, member_id] = epoch
        group_epoch, _ = self._groups.get(group_id, (epoch, False))
        if epoch > group_epoch:
            self.fail(group_id, f"{member_id} is told epoch {epoch} of a group at {group_epoch}")

    def on_record(self, record: Record, cause: GroupCall | TimerKey | None) -> None:
        match record.key:
            case m.ConsumerGroupMetadataKey(group_id=group_id):
                self._note_group(group_id, record, cause)
            case m.GroupMetadataKey(group=group_id):
                self._note_group(group_id, record, cause)
            case m.ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member_id):
                if not isinstance(record, Entry):
                    self._members.pop((group_id, member_id), None)
                    if cause is not None:
                        self._ended_by[group_id] = (cause, True)
                elif group_id in self._groups:
                    self._groups[group_id] = (self._groups[group_id][0], True)

    def _note_group(self, group_id: str, record: Record, cause: GroupCall | TimerKey | None) -> None:
        if not isinstance(record, Entry):
            self._end(group_id, record, cause)
            return
        value = record.value
        is_classic = isinstance(value, m.GroupMetadataValue)
        assert isinstance(value, m.GroupMetadataValue | m.ConsumerGroupMetadataValue)
        epoch = value.generation if isinstance(value, m.GroupMetadataValue) else value.epoch
        highest, _ = self._groups.get(group_id, (0, False))
        if epoch < highest:
            self.fail(group_id, f"the group was at {highest}, and goes on at {epoch}")
        has_members = bool(value.members) if isinstance(value, m.GroupMetadataValue) else True
        self._groups[group_id] = (epoch, has_members if is_classic else True)

    def _end(self, group_id: str, record: Record, cause: GroupCall | TimerKey | None) -> None:
        """A group that had no members starts over; one that had goes on in the other protocol."""
        _, had_members = self._groups.get(group_id, (0, False))
        if isinstance(record.key, m.ConsumerGroupMetadataKey):
            ended_by, _ = self._ended_by.get(group_id, (None, False))
            had_members = ended_by is not None and ended_by is cause
        if not had_members:
            self._groups.pop(group_id, None)


class Fencing(ConsumerChecker):  # GN-07
    """A member whose last answer was lost is not fenced for it, and one that nobody removed is not unknown."""

    def __init__(self, facts: ConsumerFacts) -> None:
        super().__init__(facts)
        self._unheard: dict[tuple[str, str], int] = {}

    def on_delivery(self, call: GroupCall, response: Message, *, is_lost: bool) -> None:
        request = call.request
        if not isinstance(response, m.ConsumerGroupHeartbeatResponse) or call.client_id == "operator":
            return
        assert isinstance(request, m.ConsumerGroupHeartbeatRequest)
        key = request.group_id, response.member_id or request.member_id
        is_member = key[1] in self.facts.members.get(request.group_id, {})
        unheard = self._unheard.get(key, 0)
        if response.error_code == NONE:
            self._unheard[key] = unheard + 1 if is_lost else 0
        elif is_member and request.member_epoch > 0:
            is_fenced = response.error_code == FencedMemberEpoch.code and unheard <= 1
            if is_fenced or response.error_code == UnknownMemberId.code:
                self.fail(request.group_id, f"{request} is told {response.error_message}, after {unheard} lost answers")


@dataclass(slots=True)
class Known:
    """What matters for a member's removal."""

    since_ms: int
    heard_ms: int
    session_ms: int
    rebalance_ms: int
    must_rejoin_since: int | None = None
    must_sync_since: int | None = None
    is_away: bool = False
    """Whether another may take its instance id: it left for a while, or speaks the classic protocol."""


class Removal(ConsumerChecker):  # GN-15 … GN-17, GM-06, GM-09, GM-10
    """A member is removed when it leaves, when another takes its instance id while it is away, and when it was silent,
    kept what it was to give back, or did not rejoin or sync for as long as it may; in time, and not before.
    """

    def __init__(self, facts: ConsumerFacts, settings: Settings, custody: Custody) -> None:
        super().__init__(facts)
        self._settings = settings
        self._custody = custody
        self._members: dict[tuple[str, str], Known] = {}
        self._loaded_ms = facts.now_ms
        self._gone: list[tuple[str, str, str]] = []
        """Group, member and trouble of removals that are not right unless the group has become classic."""

    def on_record(self, record: Record, cause: GroupCall | TimerKey | None) -> None:
        match record.key:
            case m.ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member_id):
                if isinstance(record, Entry):
                    self._note_member(group_id, member_id)
                else:
                    self._members.pop((group_id, member_id), None)
            case m.ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id):
                if not isinstance(record, Entry) and (group_id, member_id) in self._members:
                    trouble = self._trouble(group_id, member_id, cause)
                    if trouble is not None:
                        self._gone.append((group_id, member_id, trouble))
            case m.GroupMetadataKey(group=group_id):
                if isinstance(record, Entry):
                    assert isinstance(record.value, m.GroupMetadataValue)
                    stay = {member.member_id for member in record.value.members}
                    self._gone = [one for one in self._gone if one[0] != group_id or one[1] not in stay]

    def _note_member(self, group_id: str, member_id: str) -> None:
        value = self.facts.members[group_id][member_id]
        classic = value.classic_member_metadata
        session_ms = self._settings.group_consumer_session_timeout_ms
        session_ms = session_ms if classic is None else classic.session_timeout_ms
        now_ms = self.facts.now_ms
        known = self._members.get((group_id, member_id))
        if known is None:
            since = now_ms if classic is not None else None
            self._members[group_id, member_id] = Known(
                now_ms, now_ms, session_ms, value.rebalance_timeout_ms, since, None, classic is not None
            )
        else:
            known.session_ms, known.rebalance_ms = session_ms, value.rebalance_timeout_ms
            known.is_away |= classic is not None

    def _trouble(self, group_id: str, member_id: str, cause: GroupCall | TimerKey | None) -> str | None:
        """Why a member must not be removed now; None when it may."""
        if isinstance(cause, GroupCall):
            return None if self._may_remove(group_id, member_id, cause.request) else f"by {cause.request}"
        known = self._members[group_id, member_id]
        now_ms = self.facts.now_ms
        since: int | None = None
        timeout_ms = known.rebalance_ms
        match cause:
            case ConsumerSession(member_id=named):
                since, timeout_ms = known.heard_ms, known.session_ms
            case Revocation(member_id=named):
                since = self._custody.must_give_back_since.get((group_id, member_id))
            case ClassicRejoin(member_id=named):
                since = known.must_rejoin_since
            case ClassicResync(member_id=named):
                since = known.must_sync_since
            case _:
                return f"by {cause}"
        if named != member_id or since is None or now_ms - since < timeout_ms:
            return f"by {cause} at {now_ms}: it is so since {since}, and {timeout_ms} ms are allowed"
        return None

    def _may_remove(self, group_id: str, member_id: str, request: Message) -> bool:
        instance_id = self._instance(group_id, member_id)
        if isinstance(request, m.ConsumerGroupHeartbeatRequest):
            if request.member_epoch == -1:
                return request.member_id == member_id
            is_away = self._members[group_id, member_id].is_away
            return request.member_epoch == 0 and request.instance_id == instance_id is not None and is_away
        if isinstance(request, m.JoinGroupRequest):
            return request.group_instance_id is not None and request.group_instance_id == instance_id
        if isinstance(request, m.LeaveGroupRequest):
            named = {one.member_id for one in request.members if one.group_instance_id is None}
            instances = {one.group_instance_id for one in request.members if one.group_instance_id is not None}
            return member_id in named or instance_id in instances
        return False

    def _instance(self, group_id: str, member_id: str) -> str | None:
        value = self.facts.members.get(group_id, {}).get(member_id)
        return None if value is None else value.instance_id

    def on_request(self, call: GroupCall) -> None:
        self._judge()

    def on_answer(self, call: GroupCall, response: Message, *, was_parked: bool) -> None:
        self._judge()
        now_ms, request = self.facts.now_ms, call.request
        match response:
            case m.ConsumerGroupHeartbeatResponse(error_code=0):
                assert isinstance(request, m.ConsumerGroupHeartbeatRequest)
                known = self._members.get((request.group_id, response.member_id or ""))
                if known is not None:
                    known.is_away = response.member_epoch == -2
                    if response.member_epoch >= 0:
                        known.heard_ms = now_ms
            case m.JoinGroupResponse(error_code=0):
                assert isinstance(request, m.JoinGroupRequest)
                known = self._members.get((request.group_id, response.member_id))
                if known is not None:
                    known.heard_ms = known.must_sync_since = now_ms
                    known.must_rejoin_since = None
            case m.SyncGroupResponse():
                assert isinstance(request, m.SyncGroupRequest)
                self._note_classic(request.group_id, request.member_id, response.error_code, has_synced=True)
            case m.HeartbeatResponse():
                assert isinstance(request, m.HeartbeatRequest)
                self._note_classic(request.group_id, request.member_id, response.error_code, has_synced=False)

    def _note_classic(self, group_id: str, member_id: str, error_code: int, *, has_synced: bool) -> None:
        known = self._members.get((group_id, member_id))
        if known is None:
            return
        if error_code == RebalanceInProgress.code:
            if known.must_rejoin_since is None:
                known.must_rejoin_since = self.facts.now_ms
            if not has_synced:
                known.heard_ms = self.facts.now_ms
        elif error_code == NONE:
            known.heard_ms = self.facts.now_ms
            if has_synced:
                known.must_sync_since = None

    def _judge(self) -> None:
        for group_id, member_id, trouble in self._gone:
            self.fail(group_id, f"{member_id} is removed {trouble}")

    def on_restart(self) -> None:
        self._loaded_ms = self.facts.now_ms

    def on_tick(self) -> None:
        self._judge()
        now_ms = self.facts.now_ms
        for (group_id, member_id), known in self._members.items():
            latest = max(known.heard_ms, known.since_ms, self._loaded_ms)
            if now_ms > latest + known.session_ms + SLACK_MS:
                self.fail(group_id, f"{member_id} was silent since {latest}, and is a member at {now_ms}")
            asked_ms = self._custody.asked_ms.get((group_id, member_id))
            if asked_ms is None or known.is_away:
                continue
            if now_ms > max(asked_ms, self._loaded_ms) + known.rebalance_ms + SLACK_MS:
                self.fail(group_id, f"{member_id} was told to give back at {asked_ms}, and is a member at {now_ms}")
