"""Members that live through kills of the broker, by plain requests: some keep still, some rebalance all the time."""

import base64
import uuid
from collections.abc import Callable

from tests.conformance.brokers import wait_for
from tests.differential.wire import Connection
from tests.durability.workers import Worker

from groupkeeper.protocol import errors
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.primitives import RootMessage

PASSING = {errors.CoordinatorLoadInProgress.code, errors.CoordinatorNotAvailable.code, errors.NotCoordinator.code}
SESSION_MS = 120_000
STILL_SESSION_MS = 1_200_000
"""Nothing is heard from the still members while the last loops end, which takes minutes on a busy machine."""


class Lost(Exception):
    """The connection broke: the request may have been carried out or not."""


class Caller:
    """Asks over one connection, and opens another one when it broke."""

    def __init__(self, servers: str) -> None:
        self._servers = servers
        self._connection: Connection | None = None

    def ask(self, request: RootMessage, version: int) -> RootMessage:
        """Raises `Lost`."""
        try:
            if self._connection is None:
                self._connection = Connection(self._servers)
            self._connection.send(request, version)
            answer = self._connection.receive(30)
        except (OSError, EOFError):
            self.close()
            raise Lost from None
        assert answer is not None, f"no answer to {request!r}"
        return answer

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


class Still:
    """A group of each kind whose members say nothing more; descriptions stay as they were, epochs included."""

    def __init__(self, servers: str, topic: str) -> None:
        self._caller = Caller(servers)
        self._topic = topic
        self._generation, self._member_id = join(self._caller, "still-classic", "", STILL_SESSION_MS)
        sync(self._caller, "still-classic", self._generation, self._member_id)
        self._epochs = {"consumer": 0, "share": 0}
        self._ids = {
            kind: base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=") for kind in ("consumer", "share")
        }
        for kind, beat in (("consumer", self._beat_consumer), ("share", self._beat_share)):
            wait_for(lambda beat=beat, kind=kind: beat(kind), f"the assignment of the {kind} member")  # type: ignore[misc]
        self._before = self._describe()
        assert self._topic in self._before, self._before

    def _beat_consumer(self, kind: str) -> bool:
        first = self._epochs[kind] == 0
        request = m.ConsumerGroupHeartbeatRequest(
            "still-consumer", self._ids[kind], self._epochs[kind], None, None, 60_000 if first else -1,
            [self._topic] if first else None, None, None, [] if first else None,
        )  # fmt: skip
        return self._beaten(kind, request)

    def _beat_share(self, kind: str) -> bool:
        names = [self._topic] if self._epochs[kind] == 0 else None
        return self._beaten(
            kind, m.ShareGroupHeartbeatRequest("still-share", self._ids[kind], self._epochs[kind], None, names)
        )

    def _beaten(self, kind: str, request: RootMessage) -> bool:
        answer = self._caller.ask(request, 1)
        code = answer.error_code  # type: ignore[attr-defined]
        assert code == 0 or code in PASSING, answer
        if code == 0:
            self._epochs[kind] = answer.member_epoch  # type: ignore[attr-defined]
        assignment = answer.assignment  # type: ignore[attr-defined]
        return assignment is not None and bool(assignment.topic_partitions)

    def _describe(self) -> str:
        asked = (
            (m.DescribeGroupsRequest(["still-classic"]), 6),
            (m.ConsumerGroupDescribeRequest(["still-consumer"]), 1),
            (m.ShareGroupDescribeRequest(["still-share"]), 1),
        )
        return "\n".join(repr(answered(self._caller, request, version)) for request, version in asked)

    def check(self) -> None:
        """After a restart: the same members, generation, epochs and assignments."""
        self._caller.close()
        found = self._describe()
        assert found == self._before, f"groups were\n{self._before}\nand are\n{found}"
        beat = m.HeartbeatRequest("still-classic", self._generation, self._member_id)
        assert self._caller.ask(beat, 4).error_code == 0  # type: ignore[attr-defined]
        for kind, ask in (("consumer", self._beat_consumer), ("share", self._beat_share)):
            epoch = self._epochs[kind]
            ask(kind)
            assert self._epochs[kind] == epoch, kind

    def close(self) -> None:
        self._caller.close()


def answered(caller: Caller, request: RootMessage, version: int) -> RootMessage:
    """An answer about groups, once the broker has loaded them."""

    def ask() -> RootMessage | None:
        answer = caller.ask(request, version)
        return None if any(group.error_code in PASSING for group in answer.groups) else answer  # type: ignore[attr-defined]

    answer = wait_for(ask, f"an answer to {request!r}")
    assert answer is not None
    return answer


def join(caller: Caller, group_id: str, member_id: str, session_ms: int = SESSION_MS) -> tuple[int, str]:
    """Joins, for the first time with a member id of the broker's; generation and member id. Raises `Lost`."""

    def ask() -> tuple[int, str] | None:
        nonlocal member_id
        protocols = [m.JoinGroupRequestProtocol("range", uuid.uuid4().bytes)]
        request = m.JoinGroupRequest(group_id, session_ms, 60_000, member_id, None, "test", protocols)
        answer = caller.ask(request, 9)
        assert isinstance(answer, m.JoinGroupResponse)
        if answer.error_code == errors.MemberIdRequired.code:
            member_id = answer.member_id
            return None
        assert answer.error_code == 0 or answer.error_code in PASSING, answer
        return None if answer.error_code else (answer.generation_id, answer.member_id)

    joined = wait_for(ask, f"membership of {group_id}")
    assert joined is not None
    return joined


def sync(caller: Caller, group_id: str, generation: int, member_id: str) -> bytes | None:
    """The assignment, after having given one; None when the group is not coordinated now. Raises `Lost`."""
    assignment = b"%d" % generation
    assignments = [m.SyncGroupRequestAssignment(member_id, assignment)]
    request = m.SyncGroupRequest(group_id, generation, member_id, None, "test", "range", assignments)
    answer = caller.ask(request, 5)
    code = answer.error_code  # type: ignore[attr-defined]
    assert code == 0 or code in PASSING, answer
    return bytes(answer.assignment) if code == 0 else None  # type: ignore[attr-defined]


class _Restless(Worker):
    """Changes its group as fast as it can. `stands` is the last generation or epoch that it was told of."""

    def __init__(self, servers: str) -> None:
        super().__init__()
        self.caller = Caller(servers)
        self.stands = 0
        self.rebalances = 0
        self._change: Callable[[], bool] = self.begin
        self.is_unsure = False

    def step(self) -> None:
        try:
            self.is_unsure = not self._change()
            self._change = self.change
            self.rebalances += 1
        except Lost:
            self.is_unsure = True
            self._ending.wait(0.02)

    def begin(self) -> bool:
        raise NotImplementedError

    def change(self) -> bool:
        """Whether everything that was begun was also answered. Raises `Lost`."""
        raise NotImplementedError

    def close(self) -> None:
        self.caller.close()


class RestlessClassic(_Restless):
    """Joins and syncs again and again: generations only grow, and the broker never forgets the member or a generation.

    A generation is in the log once it has an assignment.
    """

    def __init__(self, servers: str) -> None:
        super().__init__(servers)
        self._member_id = ""

    def begin(self) -> bool:
        return self._join()

    def change(self) -> bool:
        answer = self.caller.ask(m.HeartbeatRequest("restless-classic", self.stands, self._member_id), 4)
        code = answer.error_code  # type: ignore[attr-defined]
        # What was under way when the connection broke may have ended the generation.
        more = {errors.RebalanceInProgress.code, errors.IllegalGeneration.code} if self.is_unsure else set()
        assert code in PASSING | {0} | more, (answer, self.stands)
        return code not in PASSING and self._join()

    def _join(self) -> bool:
        generation, member_id = join(self.caller, "restless-classic", self._member_id)
        assert member_id == (self._member_id or member_id)
        assert generation > self.stands, (generation, self.stands)
        self._member_id = member_id
        given = sync(self.caller, "restless-classic", generation, member_id)
        if given is None:
            return False
        assert given == b"%d" % generation
        self.stands = generation
        return True


class RestlessConsumer(_Restless):
    """Changes its subscription again and again: epochs only grow, and the broker never fences or forgets the member."""

    def __init__(self, servers: str, topics: list[str]) -> None:
        super().__init__(servers)
        self._topics = topics
        self._member_id = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")

    def begin(self) -> bool:
        return self._beat(0, self._topics[:1])

    def change(self) -> bool:
        return self._beat(self.stands, self._topics[: 1 + self.rebalances % 2])

    def _beat(self, epoch: int, topics: list[str]) -> bool:
        request = m.ConsumerGroupHeartbeatRequest(
            "restless-consumer", self._member_id, epoch, None, None, 60_000, topics, None, None, []
        )
        answer = self.caller.ask(request, 1)
        assert isinstance(answer, m.ConsumerGroupHeartbeatResponse)
        if answer.error_code in PASSING:
            return False
        assert answer.error_code == 0, answer
        assert answer.member_epoch >= self.stands, (answer, self.stands)
        self.stands = answer.member_epoch
        return True
