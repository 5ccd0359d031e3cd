"""What happens between clients and the coordinator, as checkers get to see it."""

from collections.abc import Callable
from dataclasses import dataclass, field

from tests.memory_shell import MemoryShell

from groupkeeper.coordinator.coordinator import Coordinator
from groupkeeper.coordinator.kernel.result import GroupCall, Record, Result
from groupkeeper.coordinator.kernel.timers import TimerKey
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.offsets_topic import Entry
from groupkeeper.protocol.primitives import Message


class Violation(AssertionError):
    """Clients saw what they must never see."""

    def __init__(self, checker: str, group_id: str, text: str) -> None:
        super().__init__(f"{checker}: group {group_id!r}: {text}")
        self.checker = checker
        self.group_id = group_id


@dataclass(slots=True)
class Facts:
    """The time, the log's latest records, and how often the coordinator and its groups started over."""

    now_ms: int = 0
    restarts: int = 0
    group_values: dict[str, m.GroupMetadataValue] = field(default_factory=dict)
    tombstones: dict[str, int] = field(default_factory=dict)
    offset_values: dict[tuple[str, str, int], m.OffsetCommitValue] = field(default_factory=dict)

    def note(self, record: Record) -> None:
        key = record.key
        if isinstance(key, m.OffsetCommitKey):
            place = (key.group, key.topic, key.partition)
            self.offset_values.pop(place, None)
            if isinstance(record, Entry):
                assert isinstance(record.value, m.OffsetCommitValue)
                self.offset_values[place] = record.value
        elif isinstance(key, m.GroupMetadataKey):
            if isinstance(record, Entry):
                assert isinstance(record.value, m.GroupMetadataValue)
                self.group_values[key.group] = record.value
            else:
                self.group_values.pop(key.group, None)
                self.tombstones[key.group] = self.tombstones.get(key.group, 0) + 1

    def generation_key(self, group_id: str, generation: int) -> tuple[str, int, int]:
        """Names a generation: a group that was removed counts from 1 again."""
        return group_id, self.tombstones.get(group_id, 0), generation


class Checker:
    """Base of the checkers: overrides what it wants to see, and calls `fail`."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts

    def fail(self, group_id: str, text: str) -> None:
        raise Violation(type(self).__name__, group_id, text)

    def on_request(self, call: GroupCall) -> None:
        """A request reaches the coordinator."""

    def on_parked(self, call: GroupCall) -> None:
        """Its answer comes later."""

    def on_answer(self, call: GroupCall, response: Message, *, was_parked: bool) -> None:
        """The coordinator answers; whether that reaches anybody is another matter."""

    def on_connection_lost(self, call: GroupCall) -> None:
        """The coordinator died with the call parked."""

    def on_record(self, record: Record, cause: GroupCall | TimerKey | None) -> None:
        """A record is in the log; `facts` know it already."""

    def on_append_failed(self, cause: GroupCall | TimerKey | None) -> None:
        """Records did not get into the log."""

    def on_restart(self) -> None:
        """The coordinator has loaded the log anew."""

    def on_topic_deleted(self, topic: str) -> None:
        """All offsets of the topic are to be forgotten."""

    def on_tick(self) -> None:
        """Some time has passed."""

    def before_restart(self, shell: MemoryShell) -> None:
        """The coordinator is about to die, or to move away."""

    def around(self, coordinator: Coordinator, compute: Callable[[], Result]) -> Result:
        """The coordinator computes a result: must return what `compute` gives."""
        return compute()
