"""Share groups under any sequence of operations: the log gives what lives, and in the end everything is read."""

from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st
from tests.memory_shell import MemoryShell, Observer, replayed
from tests.simulation.classic.check_coordinator import frozen
from tests.unit.coordinator.consumer_driver import topics_image

from groupkeeper.coordinator.coordinator import Coordinator
from groupkeeper.coordinator.kernel.result import Call
from groupkeeper.coordinator.kernel.settings import Settings
from groupkeeper.coordinator.share.group import ShareGroup, ShareSoft
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.errors import NotCoordinator
from groupkeeper.protocol.messages import alter_share_group_offsets_request as altering
from groupkeeper.protocol.messages import delete_share_group_offsets_request as deleting
from groupkeeper.protocol.primitives import Message

MEMBERS = st.sampled_from("abc")
NAMES = st.lists(st.sampled_from(["t1", "t2"]), min_size=1, max_size=2, unique=True)
OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.just("join"), MEMBERS, NAMES),
        st.tuples(st.just("beat"), MEMBERS),
        st.tuples(st.just("leave"), MEMBERS),
        st.tuples(st.just("work"), st.booleans()),
        st.tuples(st.just("alter"), st.integers(0, 3)),
        st.tuples(st.just("delete-offsets")),
        st.tuples(st.just("delete")),
        st.tuples(st.just("topics"), st.integers(0, 3), st.integers(0, 2)),
        st.tuples(st.just("advance"), st.sampled_from([100, 1_000, 31_000, 46_000])),
    ),
    max_size=40,
)


class Clients:
    """Members that believe their answers."""

    def __init__(self) -> None:
        self.epochs: dict[str, int] = {}
        self.assigned: dict[str, frozenset[tuple[bytes, int]]] = {}
        self._calls: dict[int, Message] = {}
        self._last_call_id = 0
        self.shell = MemoryShell(Settings(), observer=Observer(answered=self._answered))
        self.set_topics(2, 1)

    def _answered(self, call_id: int, answer: Message) -> None:
        request = self._calls.pop(call_id)
        if isinstance(request, m.ShareGroupHeartbeatRequest):
            assert isinstance(answer, m.ShareGroupHeartbeatResponse)
            if answer.error_code:
                self.epochs.pop(request.member_id, None)
                return
            self.epochs[request.member_id] = answer.member_epoch
            if answer.assignment is not None:
                self.assigned[request.member_id] = frozenset(
                    (topic.topic_id, one) for topic in answer.assignment.topic_partitions for one in topic.partitions
                )

    def ask(self, request: Message) -> None:
        self._last_call_id += 1
        self._calls[self._last_call_id] = request
        self.shell.call(Call(self._last_call_id, request, 1, "client", "/host"))

    def set_topics(self, first: int, second: int) -> None:
        counts = {name: count for name, count in (("t1", first), ("t2", second)) if count}
        gone = {name: topic.topic_id for name, topic in self.shell.topics.topics.items() if counts.get(name) is None}
        # Topics never shrink; one that comes again under its old id would be another topic.
        for name, topic in self.shell.topics.topics.items():
            if name in counts:
                counts[name] = max(counts[name], topic.partition_count)
        self.shell.see_topics(topics_image(counts, self.shell.topics.version + 1))
        self.shell.remove_topics(gone)

    def do(self, name: str, *details: object) -> None:
        match name, *details:
            case "join", str(member_id), list(names):
                self.ask(m.ShareGroupHeartbeatRequest("g", member_id, 0, None, names))
            case "beat", str(member_id):
                self.ask(m.ShareGroupHeartbeatRequest("g", member_id, self.epochs.get(member_id, 1)))
            case "leave", str(member_id):
                self.ask(m.ShareGroupHeartbeatRequest("g", member_id, -1))
            case "work", bool(fails):
                self.work(fails=fails)
            case "alter", int(offset):
                partition = altering.AlterShareGroupOffsetsRequestPartition(0, offset)
                topics = [altering.AlterShareGroupOffsetsRequestTopic("t1", [partition])]
                self.ask(altering.AlterShareGroupOffsetsRequest("g", topics))
            case ("delete-offsets",):
                topic = deleting.DeleteShareGroupOffsetsRequestTopic("t1")
                self.ask(deleting.DeleteShareGroupOffsetsRequest("g", [topic]))
            case ("delete",):
                self.ask(m.DeleteGroupsRequest(["g"]))
            case "topics", int(first), int(second):
                self.set_topics(first, second)
            case "advance", int(ms):
                self.shell.advance_to(self.shell.now_ms + ms)

    def work(self, *, fails: bool = False) -> None:
        if self.shell.share_work:
            keys = list(self.shell.share_work[0].share_partitions())
            self.shell.finish_share_work({key: NotCoordinator() for key in keys[: len(keys) if fails else 0]})


def without_soft(coordinator: Coordinator) -> Iterator[object]:
    for group in coordinator.state.groups.values():
        assert isinstance(group, ShareGroup)
        copy = group.fork()
        copy.soft = ShareSoft()
        yield frozen(copy)


@given(operations=OPERATIONS)
def test_the_log_gives_the_live_groups(operations: list[tuple[object, ...]]) -> None:  # GS-02 … GS-20
    clients = Clients()
    for name, *details in operations:
        assert isinstance(name, str)
        clients.do(name, *details)
    shell = clients.shell
    assert list(without_soft(replayed(shell.log, shell.settings))) == list(without_soft(shell.coordinator))


@given(operations=OPERATIONS)
def test_everything_initialized_is_read_in_the_end(operations: list[tuple[object, ...]]) -> None:  # GS-03 … GS-06
    clients = Clients()
    for name, *details in operations:
        assert isinstance(name, str)
        clients.do(name, *details)
    for member_id in "ab":
        clients.do("join", member_id, ["t1", "t2"])
    clients.do("leave", "c")
    for _ in range(6):
        while clients.shell.share_work:
            clients.work()
        clients.shell.advance_to(clients.shell.now_ms + 31_000)
        for member_id in "ab":
            clients.do("beat", member_id)
    partitions = {
        (topic.topic_id, one) for topic in clients.shell.topics.topics.values() for one in range(topic.partition_count)
    }
    assert clients.assigned["a"] | clients.assigned["b"] == partitions
    group = clients.shell.coordinator.state.groups["g"]
    assert isinstance(group, ShareGroup)
    assert {clients.epochs[one] for one in "ab"} == {group.group_epoch} == {group.assignment_epoch}
