"""Streams groups under any sequence of operations: the log gives what lives, no task runs twice, all run in the end."""

from collections import Counter
from collections.abc import Iterator

from hypothesis import example, given
from hypothesis import strategies as st
from tests.memory_shell import MemoryShell, Observer, replayed
from tests.simulation.classic.check_coordinator import frozen
from tests.unit.coordinator.consumer_driver import topics_image

from groupkeeper.coordinator.assignors.spec import TaskRole
from groupkeeper.coordinator.coordinator import Coordinator
from groupkeeper.coordinator.kernel.result import GroupCall
from groupkeeper.coordinator.kernel.settings import Settings
from groupkeeper.coordinator.streams.group import StreamsGroup, StreamsSoft
from groupkeeper.coordinator.streams.replay import tasks_of
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.messages import streams_group_heartbeat_request as asking
from groupkeeper.protocol.primitives import Message

MEMBERS = st.sampled_from("abcd")
OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.just("join"), MEMBERS),
        st.tuples(st.just("beat"), MEMBERS),
        st.tuples(st.just("beat"), MEMBERS),
        st.tuples(st.just("leave"), MEMBERS),
        st.tuples(st.just("forget"), MEMBERS),
        st.tuples(st.just("delete")),
        st.tuples(st.just("topics"), st.integers(0, 4)),
        st.tuples(st.just("standbys"), st.integers(0, 2)),
        st.tuples(st.just("restart")),
        st.tuples(st.just("advance"), st.sampled_from([100, 1_000, 31_000, 46_000])),
    ),
    max_size=50,
)


class Clients:
    """Members that believe their answers, and run what they are told; `b` and `c` share a process."""

    def __init__(self) -> None:
        self.epochs: dict[str, int] = {}
        self.tasks: dict[str, m.StreamsGroupHeartbeatResponse] = {}
        self._calls: dict[int, Message] = {}
        self._last_call_id = 0
        self.shell = MemoryShell(Settings(), observer=Observer(answered=self._answered))
        self.set_topics(2)

    def _answered(self, call_id: int, answer: Message) -> None:
        request = self._calls.pop(call_id)
        if not isinstance(request, asking.StreamsGroupHeartbeatRequest):
            return
        assert isinstance(answer, m.StreamsGroupHeartbeatResponse)
        if answer.error_code or answer.member_epoch < 0:
            self.epochs.pop(request.member_id, None)
            self.tasks.pop(request.member_id, None)
            return
        self.epochs[request.member_id] = answer.member_epoch
        if answer.active_tasks is not None:
            self.tasks[request.member_id] = answer
        self.check_tasks()

    def check_tasks(self) -> None:
        """No task twice, but for members that were removed behind their back: they run theirs for a while."""
        group = self.shell.coordinator.state.groups.get("g")
        alive = group.members if isinstance(group, StreamsGroup) else {}
        run = Counter(
            (one.subtopology_id, partition)
            for member_id, answer in self.tasks.items()
            if member_id in alive
            for one in answer.active_tasks or ()
            for partition in one.partitions
        )
        assert all(count == 1 for count in run.values()), run

    def ask(self, request: Message) -> None:
        self._last_call_id += 1
        self._calls[self._last_call_id] = request
        self.shell.call(GroupCall(self._last_call_id, request, 0, "client", "/host"))

    def set_topics(self, count: int) -> None:
        known = self.shell.topics.topics.get("t")
        count = max(count, known.partition_count) if known is not None and count else count
        self.shell.see_topics(topics_image({"t": count, "c": count} if count else {}, self.shell.topics.version + 1))

    def beat(self, member_id: str) -> None:
        has = self.tasks.get(member_id)
        self.ask(
            asking.StreamsGroupHeartbeatRequest(
                "g",
                member_id,
                self.epochs.get(member_id, 1),
                active_tasks=[] if has is None else has.active_tasks,  # type: ignore[arg-type]
                standby_tasks=[] if has is None else has.standby_tasks,  # type: ignore[arg-type]
                warmup_tasks=[],
            )
        )

    def join(self, member_id: str) -> None:
        self.tasks.pop(member_id, None)
        changelog = asking.TopicInfo("c")
        self.ask(
            asking.StreamsGroupHeartbeatRequest(
                "g",
                member_id,
                0,
                rebalance_timeout_ms=30_000,
                topology=asking.Topology(0, [asking.Subtopology("0", ["t"], state_changelog_topics=[changelog])]),
                active_tasks=[],
                standby_tasks=[],
                warmup_tasks=[],
                process_id="bc" if member_id in "bc" else member_id,
            )
        )

    def do(self, *operation: object) -> None:
        match operation:
            case "join", str(member_id):
                self.join(member_id)
            case "beat", str(member_id):
                self.beat(member_id)
            case "leave", str(member_id):
                self.ask(asking.StreamsGroupHeartbeatRequest("g", member_id, -1))
            case "forget", str(member_id):
                self.epochs.pop(member_id, None)
                self.tasks.pop(member_id, None)
            case ("delete",):
                self.ask(m.DeleteGroupsRequest(["g"]))
            case "topics", int(count):
                self.set_topics(count)
            case "standbys", int(count):
                self.shell.see_settings({"g": Settings(group_streams_num_standby_replicas=count)})
            case ("restart",):
                self.shell.load()
            case "advance", int(ms):
                self.shell.advance_to(self.shell.now_ms + ms)


def after(operations: list[tuple[object, ...]]) -> Clients:
    clients = Clients()
    for operation in operations:
        clients.do(*operation)
    return clients


def without_soft(coordinator: Coordinator) -> Iterator[object]:
    for group in coordinator.state.groups.values():
        assert isinstance(group, StreamsGroup)
        copy = group.fork()
        copy.soft = StreamsSoft()
        # A compacted log has the last record of each key, so that members come in another order than they came in.
        copy.members = dict(sorted(copy.members.items()))
        copy.targets = dict(sorted(copy.targets.items()))
        yield frozen(copy)


@given(operations=OPERATIONS)
@example(operations=[("join", "a"), ("join", "b"), ("advance", 31_000), ("topics", 3), ("join", "a")])
def test_the_log_gives_the_live_groups(operations: list[tuple[object, ...]]) -> None:
    shell = after(operations).shell
    assert list(without_soft(replayed(shell.log, shell.settings))) == list(without_soft(shell.coordinator))
    shell.log.compact()
    assert list(without_soft(replayed(shell.log, shell.settings))) == list(without_soft(shell.coordinator))


@given(operations=OPERATIONS)
def test_all_tasks_run_in_the_end(operations: list[tuple[object, ...]]) -> None:
    clients = after(operations)
    clients.do("topics", 3)
    for member_id in "ab":
        clients.do("join", member_id)
    for _ in range(20):
        clients.shell.advance_to(clients.shell.now_ms + 5_000)
        for member_id in "ab":
            clients.beat(member_id) if member_id in clients.epochs else clients.join(member_id)
    count = clients.shell.topics.topics["t"].partition_count
    answers = [clients.tasks[member_id] for member_id in "ab"]
    run = [tasks_of(one.active_tasks or (), one.standby_tasks or (), ()) for one in answers]
    active = [task.partition for tasks in run for task in tasks if task.role is TaskRole.ACTIVE]
    assert sorted(active) == list(range(count))
    assert clients.epochs["a"] == clients.epochs["b"]
