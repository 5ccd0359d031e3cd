"""What the simulations of classic and of consumer groups have in common: their clients, lives, and how those end."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from tests.simulation.classic.plan import GROUPS, Plan
from tests.simulation.classic.world import World
from tests.simulation.observation import Violation

from groupkeeper.protocol import messages as m
from groupkeeper.protocol.primitives import Message

REQUEST_TIMEOUT_MS = 5_000
TRACE_LINES = 120


class Client:
    """One process; another one takes its place after a crash."""

    world: World

    def __init__(self, client_id: str) -> None:
        self._client_id = client_id
        self._turn = 0
        """Counts what it set about doing; what concerns an earlier turn is ignored."""
        self._position = 0
        """The offset that was committed last."""

    def _later(self, after_ms: int, action: Callable[[], None]) -> None:
        """Goes on after a while, unless it does something else by then."""
        turn = self._turn

        def go_on() -> None:
            if turn == self._turn:
                action()

        self.world.at(after_ms, go_on)

    def _send(
        self, request: Message, version: int, on_answer: Callable[[Message | None], None], extra_ms: int = 0
    ) -> None:
        turn = self._turn

        def take(response: Message | None) -> None:
            if turn == self._turn:
                on_answer(response)

        self.world.send(self._client_id, request, version, take, REQUEST_TIMEOUT_MS + extra_ms)


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run ended. `violation` is None when all went well; then `counts` says how much happened."""

    plan: Plan
    steps: int
    violation: Violation | None
    trace: Sequence[str] = ()
    counts: Mapping[str, int] = field(default_factory=dict)


class Life(ABC):
    """A world with its society and its checkers."""

    plan: Plan
    world: World

    def outcome(self, steps: int) -> Outcome:
        """Lives through `steps` events and the calm after them."""
        try:
            for _ in range(steps):
                self.world.step()
            self.calm_down()
            self.die_out()
        except Exception as error:
            found = error if isinstance(error, Violation) else Violation("Assertion", GROUPS[0], f"{error!r}")
            found.__cause__ = None if found is error else error
            return Outcome(self.plan, steps, found, self.world.trace_lines(found.group_id, TRACE_LINES))
        counts = {"records": self.world.shell.log.end_offset, "restarts": self.world.facts.restarts, **self.counts()}
        return Outcome(self.plan, steps, None, counts=counts)

    @abstractmethod
    def calm_down(self) -> None:
        """Faults end; after a while every group works as it should. Raises `Violation`, as `die_out`."""

    @abstractmethod
    def die_out(self) -> None:
        """Everybody goes without a word, and is forgotten in time."""

    @abstractmethod
    def counts(self) -> dict[str, int]:
        """What happened, beside records and restarts."""

    def pass_time(self, duration_ms: int) -> None:
        end_ms = self.world.now_ms + duration_ms
        while self.world.now_ms < end_ms:
            self.world.step()

    def expect_nobody(self) -> None:
        listed = self.world.ask_now(m.ListGroupsRequest(), 5)
        assert isinstance(listed, m.ListGroupsResponse)
        busy = [group for group in listed.groups if group.group_state != "Empty"]
        if busy:
            raise Violation("Liveness", busy[0].group_id, f"all members are gone, and {busy}")
