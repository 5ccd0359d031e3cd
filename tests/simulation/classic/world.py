"""Events in the order of their time: the network between clients and one coordinator, and what befalls them."""

from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from heapq import heappop, heappush
from random import Random
from typing import TypeAlias

from tests.memory_shell import MemoryShell, Observer
from tests.simulation.classic.lines import event_text
from tests.simulation.classic.plan import Plan
from tests.simulation.observation import Checker, Facts

from groupkeeper.coordinator.coordinator import Coordinator
from groupkeeper.coordinator.kernel.result import GroupCall, Record, Result
from groupkeeper.coordinator.kernel.timers import TimerKey
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.errors import CoordinatorNotAvailable, KafkaError, NotCoordinator
from groupkeeper.protocol.primitives import Message

OnAnswer: TypeAlias = Callable[[Message | None], None]
"""Gets the answer, or None when the connection broke or time ran out."""

START_MS = 1_700_000_000_000
TICK_MS = 1_000
OPERATOR = "operator"
WORLD = "*"
"""Stands for a group in the trace's lines that concern all of them."""
TRACE_LENGTH = 20_000
LOOKS = (m.OffsetFetchRequest, m.DescribeGroupsRequest, m.ListGroupsRequest, m.ConsumerGroupDescribeRequest)
"""Questions that the trace leaves out."""


class World:
    """Time, chance, network, and the shell with its faults.

    Attributes:
        is_calm: faults are over.
        trace: (time, group, text, more) of the latest events that concern the coordinator.
    """

    def __init__(self, plan: Plan, make_checkers: Callable[[Facts], Sequence[Checker]]) -> None:
        self.plan = plan
        self.random = Random(plan.seed)
        self.facts = self.make_facts()
        self.checkers = make_checkers(self.facts)
        self._surrounding = [one for one in self.checkers if type(one).around is not Checker.around]
        self.is_calm = False
        self.trace: deque[tuple[int, str, str, object]] = deque(maxlen=TRACE_LENGTH)
        self._events: list[tuple[int, int, Callable[[], None]]] = []
        self._event_count = 0
        self._calls: dict[int, tuple[GroupCall, OnAnswer]] = {}
        self._call_count = 0
        self._parked: set[int] = set()
        self._cause: GroupCall | TimerKey | None = None
        self._last_arrival_ms: dict[str, int] = {}
        observer = Observer(self._on_appended, self._on_answered, self._on_parked, self._on_expired)
        self.shell = MemoryShell(plan.settings(), START_MS, observer, self._refuse_append, self._around)
        self.at(TICK_MS, self._tick)

    def make_facts(self) -> Facts:
        return Facts(now_ms=START_MS)

    # --- time

    @property
    def now_ms(self) -> int:
        return self.shell.now_ms

    def at(self, after_ms: int, action: Callable[[], None]) -> None:
        """Lets something happen after a while."""
        self._event_count += 1
        heappush(self._events, (self.now_ms + after_ms, self._event_count, action))

    def step(self) -> None:
        """The next event."""
        due_ms, _, action = heappop(self._events)
        self.advance_to(due_ms)
        action()

    def advance_to(self, time_ms: int) -> None:
        """Lets the coordinator's timers run out until then."""
        while (deadline_ms := self.shell.next_deadline_ms()) is not None and deadline_ms <= time_ms:
            self.facts.now_ms = max(self.facts.now_ms, deadline_ms)
            self.shell.advance_to(deadline_ms)
        self.shell.advance_to(time_ms)
        self.facts.now_ms = self.now_ms
        self._cause = None

    def chance(self, probability: float) -> bool:
        """Whether a fault happens now."""
        return not self.is_calm and self.random.random() < probability

    def _tick(self) -> None:
        self.at(self.random.randint(TICK_MS // 2, TICK_MS * 2), self._tick)
        if self.chance(self.plan.jump):
            jump_ms = self.random.choice((7_000, 20_000, 250_000))
            self.note(WORLD, f"everybody but the coordinator sleeps for {jump_ms} ms")
            self.advance_to(self.now_ms + jump_ms)
        if self.chance(self.plan.move):
            self.restart(in_good_order=True)
        if self.chance(self.plan.restart):
            self.restart(in_good_order=False)
        for checker in self.checkers:
            checker.on_tick()

    # --- the network

    def send(self, sender: str, request: Message, version: int, on_answer: OnAnswer, timeout_ms: int) -> None:
        """Sends a request; `on_answer` is called once."""
        is_open = True

        def once(response: Message | None) -> None:
            nonlocal is_open
            if is_open:
                is_open = False
                on_answer(response)

        self.at(timeout_ms, partial(once, None))
        if self.chance(self.plan.lost):
            return
        for _ in range(2 if self.chance(self.plan.doubled) else 1):
            # Requests of one client arrive in order.
            arrival_ms = max(self.now_ms + self.random.randint(1, 30), self._last_arrival_ms.get(sender, 0))
            self._last_arrival_ms[sender] = arrival_ms
            self.at(arrival_ms - self.now_ms, partial(self._ask, sender, request, version, once))

    def ask_now(self, request: Message, version: int) -> Message:
        """What an operator asks, who is answered at once."""
        answers: list[Message] = []

        def take(response: Message | None) -> None:
            assert response is not None
            answers.append(response)

        self._ask(OPERATOR, request, version, take)
        return answers[0]

    def _ask(self, sender: str, request: Message, version: int, on_answer: OnAnswer) -> None:
        self._call_count += 1
        call = GroupCall(self._call_count, request, version, sender, "/127.0.0.1", f"{self._call_count:x}")
        self._calls[call.call_id] = (call, on_answer)
        self._note_call(call, "asks", request)
        self._cause = call
        for checker in self.checkers:
            checker.on_request(call)
        self.shell.call(call)
        self._cause = None

    # --- what the shell reports

    def _on_appended(self, record: Record) -> None:
        self.facts.note(record)
        self.note(getattr(record.key, "group", ""), "  in the log:", record)
        for checker in self.checkers:
            checker.on_record(record, self._cause)

    def _on_parked(self, call_id: int) -> None:
        call, _ = self._calls[call_id]
        self._parked.add(call_id)
        self._note_call(call, "is parked")
        for checker in self.checkers:
            checker.on_parked(call)

    def _on_answered(self, call_id: int, response: Message) -> None:
        call, on_answer = self._calls.pop(call_id)
        was_parked = call_id in self._parked
        self._parked.discard(call_id)
        self._note_call(call, "is told", response)
        for checker in self.checkers:
            checker.on_answer(call, response, was_parked=was_parked)
        self._deliver(call, response, on_answer)

    def _deliver(self, call: GroupCall, response: Message, on_answer: OnAnswer) -> None:
        if call.client_id == OPERATOR:
            on_answer(response)
        elif not self.chance(self.plan.lost):
            self.at(self.random.randint(1, 30), partial(on_answer, response))

    def _on_expired(self, timer: TimerKey) -> None:
        self._cause = timer
        self.note(getattr(timer, "group_id", WORLD), f"{timer} runs out")

    def _refuse_append(self, _: tuple[Record, ...]) -> KafkaError | None:
        if not self.chance(self.plan.append_fails):
            return None
        error = self.random.choice((NotCoordinator(), CoordinatorNotAvailable()))
        self.note(WORLD, f"  append fails: {error.name}")
        for checker in self.checkers:
            checker.on_append_failed(self._cause)
        return error

    def _around(self, coordinator: Coordinator, compute: Callable[[], Result]) -> Result:
        for checker in self._surrounding:
            compute = partial(checker.around, coordinator, compute)
        return compute()

    # --- the coordinator's fate

    def restart(self, *, in_good_order: bool) -> None:
        """Another coordinator loads the log, which was compacted perhaps."""
        for checker in self.checkers:
            checker.before_restart(self.shell)
        self.note(WORLD, "the coordinator " + ("moves" if in_good_order else "dies"))
        self._cause = None
        if in_good_order:
            self.shell.unload()
        for call_id in sorted(self._parked):
            call, on_answer = self._calls.pop(call_id)
            for checker in self.checkers:
                checker.on_connection_lost(call)
            self.at(self.random.randint(1, 50), partial(on_answer, None))
        self._parked.clear()
        if self.random.random() < 0.5:
            log = self.shell.log
            log.compact(
                stop_offset=self.random.choice((None, None, log.end_offset // 3)),
                to_offset=self._end_of_compaction(),
                keep_tombstones=self.random.random() < 0.5,
            )
        self.shell.load()
        self.facts.restarts += 1
        for checker in self.checkers:
            checker.on_restart()

    def _end_of_compaction(self) -> int | None:
        return self.random.choice((None, self.shell.log.end_offset // 2))

    def delete_topic(self, topic: str) -> None:
        """The broker forgets a topic, and tells the coordinator."""
        self._cause = None
        self.note(WORLD, f"topic {topic} is deleted")
        was_calm, self.is_calm = self.is_calm, True
        for checker in self.checkers:
            checker.on_topic_deleted(topic)
        self.shell.remove_topics({topic: bytes(15) + b"\1"})
        self.is_calm = was_calm

    # --- the trace

    def note(self, group_id: str, text: str, more: object = "") -> None:
        self.trace.append((self.now_ms, group_id, text, more))

    def _note_call(self, call: GroupCall, text: str, more: object = "") -> None:
        if isinstance(call.request, LOOKS):
            return
        name = type(call.request).__name__.removesuffix("Request")
        self.note(getattr(call.request, "group_id", WORLD), f"#{call.call_id} {call.client_id} {name} {text}", more)

    def trace_lines(self, group_id: str, count: int) -> list[str]:
        """The last events of a group and of the world."""
        lines = [
            f"{(time_ms - START_MS) / 1000:10.3f} {text} {event_text(more, START_MS)}".rstrip()
            for time_ms, concerned, text, more in self.trace
            if concerned in (WORLD, group_id)
        ]
        return lines[-count:]
