"""Runs a program of consumer groups on two brokers; compares every answer, who is kept waiting, and the records."""

import time
from dataclasses import dataclass, field

from tests.differential.coordinator.consumer.side import Side
from tests.differential.coordinator.consumer.steps import Change, Program, Step
from tests.differential.wire import Connection

from groupkeeper.protocol import messages as m
from groupkeeper.protocol.errors import NONE

ANSWERED_S = 20.0
"""How long a broker may take once the other has answered."""
OURS_S, PARKED_S = 0.1, 0.3
"""How long the brokers are waited for before a call counts as parked."""
RESOLVED_S = 5.0
FRESH_S = 9.0
"""Regular expressions are resolved again after ten seconds: by then a program must be over."""


class Different(AssertionError):
    """The text has the whole program."""


class Undecided(Exception):
    """The brokers chose differently where both may choose, or the machine was too slow for the program."""


@dataclass
class Waiting:
    """A call that both brokers keep."""

    step: Step
    ours: Connection
    reference: Connection


@dataclass
class Comparison:
    """One program's run."""

    ours: Side
    reference: Side
    trace: list[str] = field(default_factory=list)
    parked: list[Waiting] = field(default_factory=list)
    regexes: dict[str, str] = field(default_factory=dict)

    def run(self, program: Program) -> None:
        """Raises `Different`, or `Undecided` when what comes next needn't be the same."""
        started = time.monotonic()
        for side in (self.ours, self.reference):
            side.begin(program.group_id)
        self.trace = [program.group_id]
        try:
            for step in program.steps():
                self.trace.append(step.text)
                self._take(step)
                if program.has_regexes:
                    self._settle_regexes()
                    if time.monotonic() > started + FRESH_S:
                        raise Undecided("it took too long")
            self._compare_records()
        finally:
            for waiting in self.parked:
                waiting.ours.close()
                waiting.reference.close()

    def _take(self, step: Step | Change) -> None:
        if isinstance(step, Change):
            step.act(self.ours)
            step.act(self.reference)
            return
        if any(waiting.step.who == step.who for waiting in self.parked):
            return
        requests = [step.build(side) for side in (self.ours, self.reference)]
        calls = [side.send(one, step.version) for side, one in zip((self.ours, self.reference), requests, strict=True)]
        waiting = Waiting(step, *calls)
        may_park = isinstance(requests[0], m.JoinGroupRequest | m.SyncGroupRequest)
        patience = (OURS_S, PARKED_S) if may_park else (ANSWERED_S, ANSWERED_S)
        if self._collect(waiting, *patience):
            is_heartbeat = isinstance(requests[0], m.ConsumerGroupHeartbeatRequest)
            epoch = requests[0].member_epoch if isinstance(requests[0], m.ConsumerGroupHeartbeatRequest) else 0
            if is_heartbeat and epoch < 0:
                self.regexes.pop(step.who, None)
        else:
            self.trace.append("    parked")
            self.parked.append(waiting)
        self.parked = [one for one in self.parked if one is waiting or not self._collect(one, 0.01, 0.0)]

    def _collect(self, waiting: Waiting, ours_s: float, reference_s: float) -> bool:
        """Compares the answers to a call; False when both brokers keep it."""
        mine = waiting.ours.receive(ours_s)
        theirs = waiting.reference.receive(ANSWERED_S if mine is not None else reference_s)
        if mine is None and theirs is not None:
            mine = waiting.ours.receive(ANSWERED_S)
        if mine is None and theirs is None:
            return False
        step = waiting.step
        if mine is None or theirs is None:
            raise Different("\n".join([*self.trace, f"{step.text}: ours {mine}", f"reference {theirs}"]))
        self.ours.pool.give_back(waiting.ours)
        self.reference.pool.give_back(waiting.reference)
        left, right = self.ours.learn(step.who, mine), self.reference.learn(step.who, theirs)
        self.trace.append(f"    {step.who}: {left}")
        if self.ours.leader(mine) != self.reference.leader(theirs):
            raise Undecided("who leads")
        if left != right:
            raise Different("\n".join([*self.trace, f"    reference: {right}"]))
        if step.regex is not None and getattr(mine, "error_code", None) == NONE:
            self.regexes[step.who] = step.regex
        return True

    def _settle_regexes(self) -> None:
        """Waits for the topics of regular expressions, which both brokers look up after they answered."""
        before, live = self.ours.resolved()
        wanted = {regex for regex in self.regexes.values() if regex}
        deadline = time.monotonic() + (0.5 if wanted and not live else 0.0)
        count = before
        while count == before and time.monotonic() < deadline:
            count, _ = self.ours.resolved()
        deadline = time.monotonic() + RESOLVED_S
        while self.reference.resolved()[0] < count and time.monotonic() < deadline:
            time.sleep(0.01)

    def _compare_records(self) -> None:
        mine = self.ours.records()
        theirs = self.reference.records(len(mine))
        if mine != theirs:
            only = [f"only ours      {one}" for one in mine if one not in theirs]
            only += [f"only reference {one}" for one in theirs if one not in mine]
            raise Different("\n".join([*self.trace, *only, f"records: {mine}", f"reference: {theirs}"]))
