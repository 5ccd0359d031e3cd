"""Runs scenarios: text files that say what a client sends, what it is told, and what the log holds.

A file holds scenarios, each under a line `=== title`. A scenario is a series of steps, separated by blank lines:

    # comment, with the ID of the requirement that the step shows
    command
    more commands
    ----
    what they print

Commands are listed in `COMMANDS` below, with what they take. Every command that is a request prints its answer as
`<request> <who>: …`, or `parked` when the answer comes later, and before it the records that it added to the log:
`+ record` or `- tombstone`. Lines that a timer causes during `advance` begin with the time.

A request is of the newest version that brokers serve, unless `v=` says another one. `name=value` gives it a field that
the command does not know. What a client would know it need
not say: `sync member=a-1` uses the generation and protocol that the last JoinGroup answer named, `join member=a-1` the
parameters of the join before. Member ids are predictable: `<client>-<n>` or `<instance>-<n>`, n counting the ids made
for that client or instance.
"""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from tests.memory_shell import LogRecord, MemoryLog, MemoryShell, Observer
from tests.scenarios import consumer_commands, share_commands, streams_commands, texts

from groupkeeper.broker.api_table import TABLE
from groupkeeper.coordinator.kernel.result import GroupCall, Record
from groupkeeper.coordinator.kernel.settings import Settings
from groupkeeper.coordinator.kernel.timers import TimerKey
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.errors import BY_CODE, KafkaError
from groupkeeper.protocol.messages import (
    heartbeat_request,
    join_group_request,
    leave_group_request,
    offset_commit_request,
    offset_delete_request,
    offset_fetch_request,
    sync_group_request,
    txn_offset_commit_request,
)
from groupkeeper.protocol.offsets_topic import Entry, UnknownRecord, decode_record
from groupkeeper.protocol.primitives import Message, RootMessage

SEPARATOR = "----"
TITLE = "=== "


@dataclass(slots=True)
class Step:
    """Commands and what they should print. `lead` is what stands before them: comments."""

    lead: list[str] = field(default_factory=list)
    commands: list[str] = field(default_factory=list)
    expected: list[str] = field(default_factory=list)

    def lines(self) -> list[str]:
        return [*self.lead, *self.commands, SEPARATOR, *self.expected] if self.commands else self.lead


@dataclass(slots=True)
class Scenario:
    title: str
    steps: list[Step]


def read_scenarios(path: Path) -> tuple[list[str], list[Scenario]]:
    """The file's opening lines and its scenarios."""
    opening: list[str] = []
    scenarios: list[Scenario] = []
    for block in re.split(r"\n\s*\n", path.read_text(encoding="utf-8").strip("\n")):
        lines = block.split("\n")
        if lines[0].startswith(TITLE):
            scenarios.append(Scenario(lines.pop(0).removeprefix(TITLE), []))
        if not scenarios:
            opening.extend([*lines, ""])
            continue
        if lines:
            scenarios[-1].steps.append(_read_step(lines))
    return opening, scenarios


def _read_step(lines: list[str]) -> Step:
    step = Step()
    if SEPARATOR in lines:
        middle = lines.index(SEPARATOR)
        lines, step.expected = lines[:middle], lines[middle + 1 :]
    elif any(not line.startswith("#") for line in lines):
        raise ValueError(f"a step without {SEPARATOR}: {lines}")
    for line in lines:
        (step.lead if line.startswith("#") and not step.commands else step.commands).append(line)
    return step


def write_scenarios(path: Path, opening: list[str], scenarios: list[Scenario]) -> None:
    blocks = ["\n".join(opening).rstrip("\n")] if opening else []
    for scenario in scenarios:
        steps = ["\n".join(step.lines()) for step in scenario.steps]
        blocks.append("\n\n".join([f"{TITLE}{scenario.title}\n{steps[0]}", *steps[1:]]))
    path.write_text("\n\n".join(blocks) + "\n", encoding="utf-8")


def run_step(runner: Runner, step: Step) -> list[str]:
    """What the step's commands really print."""
    return [line for command in step.commands if not command.startswith("#") for line in runner.run(command)]


class Arguments:
    """The words behind a command: `key=value` options and plain ones. Every word must be used."""

    def __init__(self, words: list[str]) -> None:
        self.words = [word for word in words if not re.match(r"[a-z_-]+=", word)]
        self._options = dict(word.split("=", 1) for word in words if re.match(r"[a-z_-]+=", word))

    def take(self, name: str, default: str) -> str:
        return self._options.pop(name, default)

    def take_optional(self, name: str) -> str | None:
        return self._options.pop(name, None)

    def take_version(self) -> int | None:
        version = self.take_optional("v")
        return None if version is None else int(version)

    def take_words(self) -> list[str]:
        words, self.words = self.words, []
        return words

    def take_options(self) -> dict[str, str]:
        options, self._options = self._options, {}
        return options

    def give_fields(self, request: Message) -> None:
        """Gives the request the fields that options are named after: numbers, texts, or lists of texts."""
        for name in self._options.keys() & set(request.__slots__):
            text, of = self._options.pop(name), type(getattr(request, name))
            setattr(request, name, text.split(",") if of is tuple else of(int(text)) if of in (int, bool) else text)

    def finish(self) -> None:
        if self.words or self._options:
            raise ValueError(f"not understood: {self.words} {self._options}")


@dataclass(frozen=True, slots=True)
class Membership:
    """What a client remembers of a member id."""

    request: join_group_request.JoinGroupRequest
    client_id: str
    version: int
    generation: int = -1
    protocol_type: str | None = None
    protocol_name: str | None = None


class Runner:
    """One coordinator, its log and its clients."""

    def __init__(self) -> None:
        self.shell = self._new_shell(Settings())
        self.start_ms = self.shell.now_ms
        self._arguments = Arguments([])
        self._lines: list[str] = []
        self._prefix = ""
        self._calls: dict[int, tuple[str, GroupCall]] = {}
        self._last: tuple[str, GroupCall] | None = None
        self._ids: Counter[str] = Counter()
        self._memberships: dict[tuple[str, str], Membership] = {}
        self._append_error: KafkaError | None = None
        self.subscriptions: dict[tuple[str, str], consumer_commands.Subscription] = {}
        self.share_epochs: dict[tuple[str, str], int] = {}
        self.streams_epochs: dict[tuple[str, str], int] = {}

    def _new_shell(self, settings: Settings) -> MemoryShell:
        observer = Observer(self._on_appended, self._on_answered, self._on_parked, self._on_expired)
        return MemoryShell(settings, observer=observer, refuse_append=self._refuse_append, log=MemoryLog())

    def run(self, command: str) -> list[str]:
        """Carries out a line; returns what it prints."""
        name, *words = shlex.split(command)
        arguments = self._arguments = Arguments(words)
        COMMANDS[name](self, arguments)
        arguments.finish()
        lines, self._lines, self._prefix = self._lines, [], ""
        return lines

    # --- what the shell reports

    def say(self, line: str) -> None:
        self._lines.append(self._prefix + line)

    def _on_appended(self, record: Record) -> None:
        self.say(texts.record_text(record, self.start_ms))

    def _on_answered(self, call_id: int, response: Message) -> None:
        who, call = self._calls[call_id]
        if isinstance(response, m.JoinGroupResponse):
            self._remember(call, response)
        if isinstance(response, m.ConsumerGroupHeartbeatResponse):
            consumer_commands.remember(self, call.request, response)
        if isinstance(response, m.ShareGroupHeartbeatResponse):
            share_commands.remember(self, call.request, response)
        streams_commands.remember(self, call.request, response)
        for line in texts.answer_lines(who, response):
            self.say(line)

    def _on_parked(self, call_id: int) -> None:
        who, call = self._calls[call_id]
        request = type(call.request).__name__.removesuffix("Request").removesuffix("Group").lower()
        self.say(f"{request} {who}: parked")

    def _on_expired(self, _: TimerKey) -> None:
        self._prefix = f"{texts.duration_text(self.shell.now_ms - self.start_ms)} | "

    def _refuse_append(self, _: tuple[Record, ...]) -> KafkaError | None:
        error, self._append_error = self._append_error, None
        if error is not None:
            self.say(f"append fails: {error.name}")
        return error

    def _remember(self, call: GroupCall, response: m.JoinGroupResponse) -> None:
        request = call.request
        assert isinstance(request, join_group_request.JoinGroupRequest)
        key = (request.group_id, response.member_id)
        if not response.member_id or (response.error_code and key in self._memberships):
            return
        membership = Membership(request, call.client_id, call.version)
        if not response.error_code:
            membership = replace(
                membership,
                generation=response.generation_id,
                protocol_type=response.protocol_type,
                protocol_name=response.protocol_name,
            )
        self._memberships[key] = membership

    def _membership(self, group_id: str, member_id: str) -> Membership:
        request = join_group_request.JoinGroupRequest()
        nobody = Membership(request, "nobody", TABLE[request.API_KEY].highest)
        return self._memberships.get((group_id, member_id), nobody)

    # --- requests

    def send(
        self,
        who: str,
        request: RootMessage,
        version: int | None = None,
        *,
        client_id: str = "admin",
        fresh_id: str = "",
        regex_error: str | None = None,
    ) -> None:
        self._arguments.give_fields(request)
        version = TABLE[request.API_KEY].highest if version is None else version
        call = GroupCall(len(self._calls), request, version, client_id, "/127.0.0.1", fresh_id, regex_error)
        self._calls[call.call_id] = (who, call)
        self._last = (who, call)
        self.shell.call(call)

    def repeat(self, arguments: Arguments) -> None:
        """The last request once more, as a client that lost the answer sends it."""
        assert self._last is not None
        who, call = self._last
        assert isinstance(call.request, RootMessage)
        self.send(
            who,
            call.request,
            call.version,
            client_id=call.client_id,
            fresh_id=call.fresh_id,
            regex_error=call.regex_error,
        )

    def join(self, arguments: Arguments) -> None:
        """group=g member= client= instance= type=consumer protocols=range:t1,t2;name:topics session=10s rebalance=60s
        v=; `member=?` gets an id first, as KIP-394 demands.
        """
        group_id = arguments.take("group", "g")
        member_id = arguments.take("member", "")
        asks_for_id = member_id == "?"
        known = self._membership(group_id, member_id)
        instance_id = arguments.take_optional("instance") or known.request.group_instance_id
        client_id = arguments.take("client", known.client_id)
        version = int(arguments.take("v", str(known.version)))
        is_known = bool(known.request.protocols)
        # Version 0 has no field for it, so it has its default (GC-02).
        rebalance_ms = known.request.rebalance_timeout_ms if is_known else -1 if version == 0 else 60_000
        protocol_type = arguments.take("type", known.request.protocol_type if is_known else texts.CONSUMER)
        protocols = arguments.take_optional("protocols")
        request = join_group_request.JoinGroupRequest(
            group_id=group_id,
            session_timeout_ms=_duration(
                arguments, "session", known.request.session_timeout_ms if is_known else 10_000
            ),
            rebalance_timeout_ms=_duration(arguments, "rebalance", rebalance_ms),
            member_id="" if asks_for_id else member_id,
            group_instance_id=instance_id,
            protocol_type=protocol_type,
            protocols=known.request.protocols
            if is_known and protocols is None
            else texts.read_protocols(protocol_type, "range:t1" if protocols is None else protocols),
        )
        self._send_join(request, client_id, version)
        if asks_for_id:
            new_id = self._ids_of(request, client_id)
            refusal = f"join {client_id}: MEMBER_ID_REQUIRED member={new_id}"
            if refusal not in self._lines:
                raise ValueError(f"no member id was given out: {self._lines}")
            self._lines.remove(refusal)
            again = join_group_request.JoinGroupRequest(
                **{name: getattr(request, name) for name in request.__slots__ if name != "member_id"}, member_id=new_id
            )
            self._send_join(again, client_id, version)

    def _send_join(self, request: join_group_request.JoinGroupRequest, client_id: str, version: int) -> None:
        fresh_id = ""
        if not request.member_id:
            owner = request.group_instance_id or client_id
            self._ids[owner] += 1
            fresh_id = str(self._ids[owner])
        who = request.member_id or request.group_instance_id or client_id
        self.send(who, request, version, client_id=client_id, fresh_id=fresh_id)

    def _ids_of(self, request: join_group_request.JoinGroupRequest, client_id: str) -> str:
        owner = request.group_instance_id or client_id
        return f"{owner}-{self._ids[owner]}"

    def given_members(self, arguments: Arguments) -> None:
        """group=g session= rebalance= type= protocols=, then clients: `a`, `b(instance)`. They join, share t1 (one
        partition for each, by their order) and are left Stable; nothing is printed. Takes 3 s, or 6 s when there are
        several.
        """
        clients = [re.fullmatch(r"(\w+)(?:\((\w+)\))?", word) for word in arguments.take_words()]
        options = "".join(f" {name}={value}" for name, value in arguments.take_options().items())
        group = " ".join(re.findall(r"group=\S+", options))
        members = []
        for match in clients:
            assert match is not None
            who = f"instance={match[2]}" if match[2] else "member=?"
            self.run(f"join client={match[1]} {who}{options}")
            members.append(f"{match[2] or match[1]}-{self._ids[match[2] or match[1]]}")
        self.run(f"advance {3 if len(clients) == 1 else 6}s")
        assigned = ";".join(f"{member}:t1/{partition}" for partition, member in enumerate(members))
        printed = [line for member in members for line in self.run(f"sync {group} member={member} assign={assigned}")]
        answers = [line for line in printed if re.fullmatch(r"sync \S+: \w+/\w+ t1/\d+", line)]
        assert len(answers) == len(members), printed
        self._lines, self._prefix = [], ""

    def sync(self, arguments: Arguments) -> None:
        """group=g member= instance= generation= type= protocol= assign=member:t1/0,t1/1;member:… v="""
        group_id, member_id = arguments.take("group", "g"), arguments.take("member", "")
        known = self._membership(group_id, member_id)
        protocol_type = arguments.take_optional("type") or known.protocol_type
        assignments = [
            sync_group_request.SyncGroupRequestAssignment(owner, texts.read_assignment(protocol_type or "", assigned))
            for owner, _, assigned in (one.partition(":") for one in arguments.take("assign", "").split(";") if one)
        ]
        request = sync_group_request.SyncGroupRequest(
            group_id=group_id,
            generation_id=int(arguments.take("generation", str(known.generation))),
            member_id=member_id,
            group_instance_id=arguments.take_optional("instance") or known.request.group_instance_id,
            protocol_type=protocol_type,
            protocol_name=arguments.take_optional("protocol") or known.protocol_name,
            assignments=assignments,
        )
        self.send(member_id, request, arguments.take_version())

    def heartbeat(self, arguments: Arguments) -> None:
        """group=g member= instance= generation="""
        group_id, member_id = arguments.take("group", "g"), arguments.take("member", "")
        known = self._membership(group_id, member_id)
        request = heartbeat_request.HeartbeatRequest(
            group_id=group_id,
            generation_id=int(arguments.take("generation", str(known.generation))),
            member_id=member_id,
            group_instance_id=arguments.take_optional("instance") or known.request.group_instance_id,
        )
        self.send(member_id, request)

    def leave(self, arguments: Arguments) -> None:
        """group=g, then entries: `a-1`, `/instance`, `a-1/instance`"""
        group_id = arguments.take("group", "g")
        members = []
        for word in arguments.take_words():
            member_id, _, instance_id = word.partition("/")
            members.append(leave_group_request.MemberIdentity(member_id, instance_id or None))
        self.send(group_id or "''", leave_group_request.LeaveGroupRequest(group_id, members=members))

    def commit(self, arguments: Arguments) -> None:
        """group=g member= instance= generation= retention= topic-id= v=, then `t1/0=5`, `t1/0=5@epoch`,
        `t1/0=5:text`, `t1/0=5:x*4097`; metadata is null unless given.
        """
        group_id, member_id = arguments.take("group", "g"), arguments.take("member", "")
        known = self._membership(group_id, member_id)
        topic_id = int(arguments.take("topic-id", "0")).to_bytes(16, "big")
        partitions: dict[str, list[offset_commit_request.OffsetCommitRequestPartition]] = {}
        for word in arguments.take_words():
            topic, partition = texts.read_commit(word)
            partitions.setdefault(topic, []).append(partition)
        retention = arguments.take_optional("retention")
        request = offset_commit_request.OffsetCommitRequest(
            group_id=group_id,
            generation_id_or_member_epoch=int(arguments.take("generation", str(known.generation))),
            member_id=member_id,
            group_instance_id=arguments.take_optional("instance") or known.request.group_instance_id,
            retention_time_ms=-1 if retention is None else texts.read_duration(retention),
            topics=[
                offset_commit_request.OffsetCommitRequestTopic(topic, topic_id, committed)
                for topic, committed in partitions.items()
            ],
        )
        self.send(member_id or group_id or "''", request, arguments.take_version())

    def commit_in_transaction(self, arguments: Arguments) -> None:
        """group=g member= instance= generation= producer=1 epoch=0 v=, then offsets as for `commit`"""
        group_id, member_id = arguments.take("group", "g"), arguments.take("member", "")
        known = self._membership(group_id, member_id)
        topics = []
        for topic, one in map(texts.read_commit, arguments.take_words()):
            partition = txn_offset_commit_request.TxnOffsetCommitRequestPartition(
                one.partition_index, one.committed_offset, one.committed_leader_epoch, one.committed_metadata
            )
            topics.append(txn_offset_commit_request.TxnOffsetCommitRequestTopic(topic, partitions=[partition]))
        request = txn_offset_commit_request.TxnOffsetCommitRequest(
            transactional_id="tx",
            group_id=group_id,
            producer_id=int(arguments.take("producer", "1")),
            producer_epoch=int(arguments.take("epoch", "0")),
            generation_id_or_member_epoch=int(arguments.take("generation", str(known.generation))),
            member_id=member_id,
            group_instance_id=arguments.take_optional("instance") or known.request.group_instance_id,
            topics=topics,
        )
        self.send(member_id or group_id or "''", request, arguments.take_version())

    def fetch(self, arguments: Arguments) -> None:
        """group=g topic-id= require_stable=1 member= epoch=, then `all` or partitions; without words: an empty list of
        topics. Several groups with the same words: `group=g,h`.
        """
        words = arguments.take_words()
        topic_id = int(arguments.take("topic-id", "0")).to_bytes(16, "big")
        topics = [
            offset_fetch_request.OffsetFetchRequestTopics(topic, topic_id, partitions)
            for topic, partitions in texts.read_partitions(words).items()
        ]
        who = arguments.take_optional("member"), int(arguments.take("epoch", "-1"))
        groups = [
            offset_fetch_request.OffsetFetchRequestGroup(group_id, *who, None if words == ["all"] else topics)
            for group_id in arguments.take("group", "g").split(",")
        ]
        self.send("all" if words == ["all"] else "some", offset_fetch_request.OffsetFetchRequest(groups=groups))

    def delete_offsets(self, arguments: Arguments) -> None:
        """group=g, then partitions"""
        group_id = arguments.take("group", "g")
        topics = [
            offset_delete_request.OffsetDeleteRequestTopic(
                topic, [offset_delete_request.OffsetDeleteRequestPartition(partition) for partition in partitions]
            )
            for topic, partitions in texts.read_partitions(arguments.take_words()).items()
        ]
        self.send(group_id or "''", offset_delete_request.OffsetDeleteRequest(group_id, topics))

    def describe(self, arguments: Arguments) -> None:
        """v=, then groups"""
        self.send("", m.DescribeGroupsRequest(arguments.take_words() or ["g"]), arguments.take_version())

    def list_groups(self, arguments: Arguments) -> None:
        """states_filter=a,b types_filter=a,b"""
        self.send("", m.ListGroupsRequest())

    def delete_group(self, arguments: Arguments) -> None:
        """groups"""
        self.send("", m.DeleteGroupsRequest(arguments.take_words() or ["g"]))

    # --- the world around

    def set_settings(self, arguments: Arguments) -> None:
        """Kafka's names=values, times as durations; the coordinator starts over with its log."""
        values = {name: texts.read_setting(name, value) for name, value in arguments.take_options().items()}
        self.shell.settings = replace(self.shell.settings, **values)
        self.shell.load()

    def advance(self, arguments: Arguments) -> None:
        """a duration: time passes, timers run out"""
        (word,) = arguments.take_words()
        self.shell.advance_to(self.shell.now_ms + texts.read_duration(word))

    def restart(self, arguments: Arguments) -> None:
        """The coordinator dies and another one loads the log; who is parked loses its connection."""
        for call_id in sorted(self.shell.parked_calls):
            self.say(f"{self._calls[call_id][0]}: connection lost")
        self.shell.load()

    def move(self, arguments: Arguments) -> None:
        """The partition moves to another coordinator in good order."""
        self.shell.unload()
        self.shell.load()

    def compact(self, arguments: Arguments) -> None:
        """The log cleaner runs; `tombstones` are dropped too if said so."""
        self.shell.log.compact(keep_tombstones=arguments.take_words() != ["tombstones"])

    def show_log(self, arguments: Arguments) -> None:
        """The log's records, oldest first"""
        for entry in self.shell.log.entries:
            if isinstance(entry, LogRecord):
                record = decode_record(entry.key, entry.value)
                assert not isinstance(record, UnknownRecord)
                self.say(texts.record_text(record, self.start_ms))

    def show_timers(self, arguments: Arguments) -> None:
        """Armed timers and when they run out, the expiration pass aside"""
        deadlines = sorted((due_ms, texts.timer_text(timer)) for timer, due_ms in self.shell.deadlines.items())
        for due_ms, text in deadlines:
            if text != "expiration":
                self.say(f"{text} in {texts.duration_text(due_ms - self.shell.now_ms)}")

    def show_marks(self, arguments: Arguments) -> None:
        """Meters and their counts"""
        for meter, count in sorted((meter.value, count) for meter, count in self.shell.marks.items()):
            self.say(f"{meter} {count}")

    def fail_append(self, arguments: Arguments) -> None:
        """an error: the next append fails with it"""
        (name,) = arguments.take_words()
        self._append_error = next(error() for error in BY_CODE.values() if error.name == name)

    def delete_topic(self, arguments: Arguments) -> None:
        """name id"""
        name, topic_id = arguments.take_words()
        self.shell.remove_topics({name: int(topic_id).to_bytes(16, "big")})

    def transaction(self, arguments: Arguments) -> None:
        """producer= group=g, then `t1/0=5`: offsets within an open transaction; or `commit` or `abort`"""
        producer_id = int(arguments.take("producer", "1"))
        group_id = arguments.take("group", "g")
        for word in arguments.take_words():
            if word in ("commit", "abort"):
                self.shell.end_transaction(producer_id, is_commit=word == "commit")
                continue
            topic, partition = texts.read_commit(word)
            key = m.OffsetCommitKey(group_id, topic, partition.partition_index)
            value = m.OffsetCommitValue(
                partition.committed_offset,
                partition.committed_leader_epoch,
                partition.committed_metadata or "",
                self.shell.now_ms,
            )
            self.shell.write_transactional(Entry(key, value), producer_id)


def _duration(arguments: Arguments, name: str, default_ms: int) -> int:
    text = arguments.take_optional(name)
    return default_ms if text is None else texts.read_duration(text)


COMMANDS = {
    "given-members": Runner.given_members,
    "join": Runner.join,
    "sync": Runner.sync,
    "heartbeat": Runner.heartbeat,
    "leave": Runner.leave,
    "commit": Runner.commit,
    "txn-commit": Runner.commit_in_transaction,
    "fetch": Runner.fetch,
    "delete-offsets": Runner.delete_offsets,
    "describe": Runner.describe,
    "list": Runner.list_groups,
    "delete-group": Runner.delete_group,
    "repeat": Runner.repeat,
    "settings": Runner.set_settings,
    "advance": Runner.advance,
    "restart": Runner.restart,
    "move": Runner.move,
    "compact": Runner.compact,
    "log": Runner.show_log,
    "timers": Runner.show_timers,
    "marks": Runner.show_marks,
    "fail-append": Runner.fail_append,
    "delete-topic": Runner.delete_topic,
    "transaction": Runner.transaction,
    **consumer_commands.COMMANDS,
    **share_commands.COMMANDS,
    **streams_commands.COMMANDS,
}


def scenario_files() -> Iterator[Path]:
    yield from sorted(Path(__file__).parent.glob("*.txt"))
