"""One operation on a group with member epochs while it is being computed: its records, and the group after them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, ClassVar, Generic

from groupkeeper.coordinator.epochs.checks import check_epoch, require_member
from groupkeeper.coordinator.epochs.group import LEFT_STATICALLY_EPOCH, G
from groupkeeper.coordinator.epochs.log import GroupLog
from groupkeeper.coordinator.kernel.result import (
    Arm,
    Disarm,
    Meter,
    Parked,
    Record,
    RegexLookup,
    Released,
    Result,
    Work,
)
from groupkeeper.coordinator.kernel.settings import Settings
from groupkeeper.coordinator.kernel.soft import GroupChange
from groupkeeper.coordinator.kernel.topics_image import TopicsImage
from groupkeeper.protocol.errors import UnreleasedInstanceId
from groupkeeper.protocol.primitives import Message


class EpochStep(Generic[G]):
    """Starts from the group as the log has it; `write` applies each record to a copy of the group."""

    log: ClassVar[GroupLog[Any, Any, Any]]
    records: ClassVar[Any]
    """The module that makes the type's records."""
    session: ClassVar[type[Any]]
    """The timers of the type, as the next."""
    revocation: ClassVar[type[Any] | None] = None
    """None: members have nothing to revoke."""
    revoking: ClassVar[int] = -1
    """The state of a member that has to revoke."""
    rebalance: ClassVar[Meter]
    """The meter of rebalances."""

    def __init__(self, group: G, settings: Settings, topics: TopicsImage, now_ms: int) -> None:
        self.group: G = group
        """After the records written so far."""
        self.logged: G = group
        """The group as the log has it."""
        self.soft = group.soft
        """The group's new soft state."""
        self.settings = settings
        """The group's settings."""
        self.topics = topics
        self.now_ms = now_ms
        """When the operation takes place."""
        self._records: list[Record] = []
        self._timers: list[Arm | Disarm] = []
        self._released: list[Released] = []
        self._lookups: list[RegexLookup | Work] = []
        self._marks: list[tuple[Meter, int]] = []

    # --- what each group type defines

    @classmethod
    def session_ms(cls, member: Any, settings: Settings) -> int:
        """The session timeout of a member."""
        raise NotImplementedError

    @property
    def interval_ms(self) -> int:
        """The minimum time between two target assignments."""
        raise NotImplementedError

    def bump(self) -> None:
        """Raises the group epoch, and stores the fingerprint of the topics as they are now."""
        group = self.group
        metadata_hash = self.topics.metadata_hash(group.subscribed_topics())
        self.write(self.records.epoch_record(group.group_id, group.group_epoch + 1, metadata_hash))
        self.soft = replace(self.soft, checked_version=self.topics.version)

    def unused(self) -> Iterable[Record]:
        """Tombstones of what no member needs any more, after members were removed."""
        return ()

    @classmethod
    def is_revoking(cls, member: Any) -> bool:
        """Whether a member has to revoke something within its rebalance timeout."""
        is_here = member.member_epoch != LEFT_STATICALLY_EPOCH  # a static member that left has revoked everything
        return bool(cls.revocation is not None and is_here and member.state == cls.revoking)

    # --- collecting the result

    def start_with(self, records: Iterable[Record]) -> None:
        """Adds records without applying them: tombstones of a replaced group, and records that the group has."""
        self._records.extend(records)

    def write(self, *records: Record) -> None:
        """Adds records and applies them to the group."""
        if self.group is self.logged:
            self.group = self.group.fork()
        for record in records:
            self._records.append(record)
            self.log.replay(self.group, record)

    def arm(self, *timers: Arm | Disarm) -> None:
        """Adds changes of timers."""
        self._timers.extend(timers)

    def release(self, released: Iterable[Released]) -> None:
        """Adds responses to parked calls."""
        self._released.extend(released)

    def ask(self, work: RegexLookup | Work) -> None:
        """Adds lookups and work for the driver."""
        self._lookups.append(work)

    def count_rebalance(self) -> None:
        """The group epoch was raised, which is a rebalance."""
        self._marks.append((self.rebalance, 1))

    # --- target

    @property
    def is_behind(self) -> bool:
        """Whether there is no target assignment for the group epoch yet."""
        return self.group.assignment_epoch < self.group.group_epoch

    @property
    def is_too_early(self) -> bool:
        """Whether the last target assignment is too recent for another one."""
        made_ms: int = self.group.assignment_time_ms
        return made_ms <= self.now_ms < made_ms + self.interval_ms

    def write_targets(self, targets: Mapping[str, Any]) -> None:
        """Replaces the target assignment; writes only the targets of members whose target changed."""
        group = self.group
        changed = [
            self.records.target_record(group.group_id, member_id, target)
            for member_id, target in targets.items()
            if group.targets.get(member_id) != target
        ]
        self.write(*changed, self.log.target_epoch_record(group.group_id, group.group_epoch, self.now_ms))

    # --- members

    @classmethod
    def session_timer(cls, group_id: str, member: Any, settings: Settings) -> Arm:
        """The timer of a member's session."""
        return Arm(cls.session(group_id, member.member_id), cls.session_ms(member, settings))

    def arm_session(self, member: Any) -> None:
        """Restarts the member's session timeout."""
        self._timers.append(self.session_timer(self.group.group_id, member, self.settings))

    def follow_revocation(self, member: Any) -> None:
        """Arms the revocation timer when a member starts to revoke, and disarms it when the member is done."""
        assert self.revocation is not None
        timer = self.revocation(self.group.group_id, member.member_id)
        is_revoking = member.state == self.revoking
        self._timers.append(Arm(timer, member.rebalance_timeout_ms) if is_revoking else Disarm(timer))

    def set_aside(self, member: Any, assigned: Mapping[Any, Any]) -> None:
        """A static member leaves for a while: the group keeps its place, and what is assigned to it."""
        assert self.revocation is not None
        left = replace(member, member_epoch=LEFT_STATICALLY_EPOCH, assigned=assigned, pending_revocation={})
        self.write(self.records.assignment_record(self.group.group_id, left))
        self.arm(Disarm(self.revocation(self.group.group_id, member.member_id)))

    def disarm_all(self, member_id: str) -> None:
        """Disarms every timer of a member."""
        for timer in (self.session, self.revocation):
            if timer is not None:
                self._timers.append(Disarm(timer(self.group.group_id, member_id)))

    def find_member(
        self, member_id: str, instance_id: str | None, epoch: int, lost_the_answer: Callable[[Any], bool]
    ) -> Any:
        """The member that sent a heartbeat; None for a new one. A static member takes over its instance id here.

        `lost_the_answer`: whether a member with its previous epoch may have missed the latest response. Raises
        `UnknownMemberId`, `FencedInstanceId`, `FencedMemberEpoch`, `UnreleasedInstanceId`.
        """
        if epoch != 0:
            member = require_member(self.group, member_id, instance_id)
            check_epoch(self.group.group_type, member, epoch, lost_the_answer)
            return member
        holder = self.group.static_member(instance_id)
        if holder is None:
            return self.group.members.get(member_id)
        if not holder.is_classic and holder.member_epoch != LEFT_STATICALLY_EPOCH:
            raise UnreleasedInstanceId(
                f"Static member {member_id} with instance id {instance_id} cannot join the group because the instance "
                f"id is owned by {holder.member_id} member."
            )
        return self.replace_member(holder, member_id)

    def replace_member(self, old: Any, member_id: str) -> Any:
        """Replaces a member by a new one, which takes over its target."""
        group_id, old_id, records = self.group.group_id, old.member_id, self.records
        new = replace(old, member_id=member_id, member_epoch=0, previous_member_epoch=0)
        self.write(
            *self.log.member_tombstones(group_id, old_id),
            records.member_record(group_id, new),
            records.target_record(group_id, member_id, self.group.targets.get(old_id, ())),
            records.assignment_record(group_id, new),
        )
        self.disarm_all(old_id)
        return new

    def remove_members(self, member_ids: Iterable[str]) -> None:
        """Removes members, and state that only they needed; raises the group epoch."""
        group_id = self.group.group_id
        for member_id in member_ids:
            self.write(*self.log.member_tombstones(group_id, member_id))
            self.disarm_all(member_id)
        self.write(*self.unused())
        self.bump()
        if not self.group.members:
            # The target of an empty group is current, computed at time 0: the next member need not wait for a new one.
            self.write(self.log.target_epoch_record(group_id, self.group.group_epoch, 0))

    def result(self, response: Message | Parked | None) -> Result:
        """The result with everything that this step collected."""
        is_changed = self.soft != self.logged.soft
        return Result(
            response,
            records=tuple(self._records),
            timers=tuple(self._timers),
            soft=(GroupChange(self.group.group_type, self.group.group_id, self.soft),) if is_changed else (),
            marks=tuple(self._marks),
            released=tuple(self._released),
            lookups=tuple(self._lookups),
        )
