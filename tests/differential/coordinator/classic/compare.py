"""Sends one program to two brokers and compares every answer, and which calls are left without one."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby

from tests.differential.coordinator.classic.edges import GROUP
from tests.differential.coordinator.classic.steps import PARTITIONS, TOPICS, Program, Step
from tests.differential.coordinator.log import Line, LogTail
from tests.differential.pair import ATTEMPTS, Asked
from tests.differential.wire import Connection

from groupkeeper.protocol import messages as m
from groupkeeper.protocol.primitives import Message, RootMessage

ANSWERED_S = 5.0
"""How long a broker may take once the other has answered."""
PARKED_S = 0.25
"""How long the reference is waited for before a call that our broker parks counts as parked there too."""
OURS_S = 0.08
SETTLED_S = 1.0
"""How long a difference in what is read may last."""

_TIMES = frozenset({"current_state_timestamp", "commit_timestamp", "expire_timestamp"})
_ID_FIELDS = frozenset({"member_id", "leader"})
_IGNORED = frozenset({"throttle_time_ms", "port"})


class Different(AssertionError):
    """The brokers gave different answers; the text has the whole program."""


class Undecided(Exception):
    """The brokers chose differently where both may choose (who leads, which of two equal protocols)."""


class Side(Asked):
    """One broker, with the ids it gave to the program's symbols."""

    def __init__(self, bootstrap_servers: str) -> None:
        super().__init__(bootstrap_servers)
        self.log = LogTail(self.pool)
        self.topic_ids: dict[str, str] = {}
        self.ids: dict[str, str] = {}

    def prepare(self) -> None:
        """Creates the topics and waits for the coordinator."""
        self.pool.ask(m.DeleteGroupsRequest([""]), 2)
        topics = [m.CreatableTopic(one, PARTITIONS, 1) for one in TOPICS]
        self.pool.ask(m.CreateTopicsRequest(topics, 30_000), 7)
        while True:
            found = self.pool.ask(m.FindCoordinatorRequest(coordinator_keys=["g"]), 4)
            metadata = self.pool.ask(m.MetadataRequest([m.MetadataRequestTopic(name=one) for one in TOPICS]), 12)
            groups = [m.OffsetFetchRequestGroup(str(n)) for n in range(40)]
            fetched = self.pool.ask(m.OffsetFetchRequest(groups=groups), 8)
            are_loaded = all(one.error_code == 0 for one in fetched.groups)
            is_ready = all(one.error_code == 0 and len(one.partitions) == PARTITIONS for one in metadata.topics)
            if is_ready and are_loaded and found.coordinators[0].error_code == 0:
                self.topic_ids = {one.name or "": one.topic_id.hex() for one in metadata.topics}
                return

    def start(self, step: Step) -> Connection:
        connection = self.pool.take()
        connection.send(step.build(self.ids, self.topic_ids), step.version)
        return connection

    def ask(self, step: Step) -> RootMessage:
        return self.pool.ask(step.build(self.ids, self.topic_ids), step.version)

    def learn(self, step: Step, answer: RootMessage) -> None:
        if step.new_member and isinstance(answer, m.JoinGroupResponse) and answer.member_id:
            self.ids[step.new_member] = answer.member_id

    def normal(self, value: object, groups: Sequence[str], name: str = "") -> object:
        """An answer without what two brokers needn't have in common: ids, order of sets."""
        if isinstance(value, Message):
            fields = {
                one: self.normal(getattr(value, one), groups, one) for one in value.__slots__ if one not in _IGNORED
            }
            return type(value).__name__, tuple(fields.items())
        if isinstance(value, list | tuple):
            parts = [self.normal(one, groups) for one in value if not _is_foreign(one, groups)]
            return tuple(sorted(parts, key=repr))
        if name in _TIMES:
            return value == -1
        if name in _ID_FIELDS:
            return next((symbol for symbol, known in self.ids.items() if known == value), "?" if value else value)
        if name == "topic_id" and isinstance(value, bytes):
            return next((topic for topic, known in self.topic_ids.items() if known == value.hex()), value)
        return value


def _is_foreign(value: object, groups: Sequence[str]) -> bool:
    """Whether a listed group belongs to another program."""
    return type(value).__name__ == "ListedGroup" and value.group_id not in groups  # type: ignore[attr-defined]


def require_same(ours: Side, reference: Side, name: str, request: RootMessage, version: int) -> None:
    """Sends one request to both. Raises `Different`."""
    mine, theirs = (side.pool.ask(request, version) for side in (ours, reference))
    if ours.normal(mine, [GROUP]) != reference.normal(theirs, [GROUP]):
        raise Different(f"{name}: {request}\nours      {mine}\nreference {theirs}")


def in_any_order_of_tombstones(side: Side, lines: Sequence[Line]) -> list[object]:
    """Records in their order; tombstones side by side, which one operation writes in any order, are sorted."""
    normal: list[object] = []
    for _, run in groupby(lines, lambda line: line[1] is None):
        part = [(side.normal(record, ()), version) for record, version in run]
        normal += sorted(part, key=repr) if part[0][1] is None else part
    return normal


@dataclass
class Comparison:
    """Runs programs against both sides."""

    ours: Side
    reference: Side
    trace: list[str] = field(default_factory=list)
    parked: list[tuple[Step, Connection, Connection]] = field(default_factory=list)

    def run(self, seed: int, step_count: int) -> None:
        """Raises `Different` or `Undecided`. What depends on time is different only if it is so every time."""
        attempt = 0
        while True:
            program = Program(seed, attempt)
            try:
                self._run(program, step_count)
            except Different:
                attempt += 1
                if attempt == ATTEMPTS or not program.has_short_timers:
                    raise
            else:
                return

    def _run(self, program: Program, step_count: int) -> None:
        self.trace = [f"program {program.seed}, rebalance timeout {program.rebalance_timeout_ms} ms"]
        self.parked = []
        self.ours.ids.clear()
        self.reference.ids.clear()
        for _ in range(step_count):
            step = program.next()
            self.trace.append(step.text)
            self._take_step(program, step)
        self._compare_logs(program)

    def _compare_logs(self, program: Program) -> None:
        """What came of the program in the log: the same records, in versions and order."""
        groups = {*program.groups, program.unknown_group}
        mine = self.ours.log.read(groups)
        theirs = self.reference.log.read(groups, len(mine), ANSWERED_S)
        left, right = in_any_order_of_tombstones(self.ours, mine), in_any_order_of_tombstones(self.reference, theirs)
        if left != right:
            self.trace += [f"ours      {line}" for line in left] + [f"reference {line}" for line in right]
            raise Different("\n".join(self.trace))

    def _take_step(self, program: Program, step: Step) -> None:
        time.sleep(step.pause_s)
        if step.member:
            # Of a member that repeats itself Apache Kafka answers the latest call only; here each is answered.
            self.parked = [one for one in self.parked if one[0].member != step.member]
        ours, reference = self.ours.start(step), self.reference.start(step)
        if not self._collect(program, step, ours, reference, OURS_S, PARKED_S):
            self.trace.append("    parked")
            self.parked.append((step, ours, reference))
        waiting, self.parked = self.parked, []
        for earlier in waiting:
            if not self._collect(program, *earlier, 0.005, 0.0):
                self.parked.append(earlier)

    def _collect(
        self, program: Program, step: Step, ours: Connection, reference: Connection, ours_s: float, reference_s: float
    ) -> bool:
        """Compares the answers to a call; False when both brokers keep it waiting."""
        mine = ours.receive(ours_s)
        theirs = reference.receive(ANSWERED_S if mine is not None else reference_s)
        if mine is None and theirs is not None:
            mine = ours.receive(ANSWERED_S)
        if mine is None and theirs is None:
            return False
        self.trace.append(f"    {step.text.split(' ')[0]}: ours      {mine}")
        self.trace.append(f"    {step.text.split(' ')[0]}: reference {theirs}")
        if mine is None or theirs is None:
            raise Different("\n".join(self.trace))
        self.ours.pool.give_back(ours)
        self.reference.pool.give_back(reference)
        self._compare(program, step, mine, theirs)
        return True

    def _compare(self, program: Program, step: Step, mine: RootMessage, theirs: RootMessage) -> None:
        self.ours.learn(step, mine)
        self.reference.learn(step, theirs)
        left = self.ours.normal(mine, program.groups)
        right = self.reference.normal(theirs, program.groups)
        deadline = time.monotonic() + SETTLED_S
        while left != right and step.is_read and time.monotonic() < deadline:
            # Apache Kafka answers some requests before what they wrote can be read.
            time.sleep(0.02)
            left = self.ours.normal(self.ours.ask(step), program.groups)
            right = self.reference.normal(self.reference.ask(step), program.groups)
        if left != right:
            if _is_free_choice(mine, theirs):
                raise Undecided
            raise Different("\n".join([*self.trace, f"ours      {left}", f"reference {right}"]))
        if step.new_member and step.new_member in self.ours.ids:
            entry = (step.text.split(" ")[2], step.new_member)
            if entry not in program.members:
                program.members.append(entry)
        if isinstance(mine, m.JoinGroupResponse) and mine.error_code == 0:
            group = step.text.split(" ")[2]
            program.generation_by_group[group] = mine.generation_id
            leader = next((symbol for symbol, known in self.ours.ids.items() if known == mine.leader), None)
            if leader:
                program.leader_by_group[group] = leader


def _is_free_choice(mine: RootMessage, theirs: RootMessage) -> bool:
    """Whether two new generations differ only by the choice of a leader or a protocol."""
    if not (isinstance(mine, m.JoinGroupResponse) and isinstance(theirs, m.JoinGroupResponse)):
        return False
    return mine.error_code == theirs.error_code == 0 and mine.generation_id == theirs.generation_id
