"""Consumers of other client libraries, in the same roles."""

import asyncio
import subprocess
import time
from pathlib import Path
from typing import Any

import aiokafka
import aiokafka.errors
import kafka
import kafka.errors
from tests.rig.actors.consuming import SESSION_MS
from tests.rig.actors.performing import BACKOFF_MS, PATIENCE_S, Performer
from tests.rig.clusters import release_of
from tests.rig.facts import DONE, FAILED, MAYBE, Assigned, Committed, Joining, Left, now
from tests.rig.story import Consumer
from tools.apache_kafka import java_command

Place = tuple[str, int]
JAVA_SOURCE = Path(__file__).parent / "java" / "RigConsumer.java"


class OtherThread(Performer):
    """What kafka-python and aiokafka have in common: `enter`, `read`, `save` and `leave` differ."""

    actor: Consumer

    def begin(self) -> None:
        self._session = 0
        self._unsaved = 0
        self._positions: dict[Place, int] = {}
        self._rejoin()

    def _rejoin(self) -> None:
        self._session += 1
        self._positions, self._unsaved = {}, 0
        self.note_joining()
        self.enter()
        self._joined = time.monotonic()

    def step(self) -> None:
        actor = self.actor
        if actor.flap_s and time.monotonic() - self._joined > actor.flap_s:
            self._leave()
            self.gate.wait(self.rng.uniform(0.1, 2))
            self._rejoin()
        for topic, partition, offset in self.read(0.1):
            self._positions[topic, partition] = offset + 1
            self._unsaved += 1
            if actor.delay_ms:
                self.gate.wait(actor.delay_ms / 1000)
        if self._unsaved >= actor.every:
            self._save()

    def _save(self) -> None:
        actor = self.actor
        self._unsaved = 0
        wanted = {place: at for place, at in self._positions.items() if self.rng.random() < actor.commits}
        if not wanted:
            return
        metadata = self.rng.choice(["", actor.name])
        began = now()
        outcome = self.save(wanted, metadata)
        ended = now()
        self.notebook.write(*(
            Committed(actor.cluster, actor.group, *place, at, -1, metadata, outcome, actor.name, began, ended)
            for place, at in wanted.items()
        ))  # fmt: skip

    def note_joining(self) -> None:
        """Also when it gives all back to join again: it may lose its place in the group before it is assigned more."""
        actor = self.actor
        self.notebook.write(Joining(actor.cluster, actor.group, actor.name, self._session, now()))

    def note_assignment(self, places: Any) -> None:
        actor = self.actor
        has = sorted((one.topic, one.partition) for one in places)
        self._positions = {place: at for place, at in self._positions.items() if place in set(has)}
        self.notebook.write(Assigned(actor.cluster, actor.group, actor.name, self._session, has, now()))

    def _leave(self) -> None:
        began = now()
        self.leave()
        actor, session = self.actor, self._session
        self.notebook.write(Left(actor.cluster, actor.group, actor.name, session, False, began, now()))

    def finish(self) -> None:
        self._leave()

    def idle(self) -> None:
        self.read(0.2)

    def enter(self) -> None:
        raise NotImplementedError

    def leave(self) -> None:
        raise NotImplementedError

    def read(self, seconds: float) -> list[tuple[str, int, int]]:
        raise NotImplementedError

    def save(self, wanted: dict[Place, int], metadata: str) -> str:
        """Commits; how that ended."""
        raise NotImplementedError


class KafkaPythonThread(OtherThread):
    def enter(self) -> None:
        actor, note, note_joining = self.actor, self.note_assignment, self.note_joining

        class Listener(kafka.ConsumerRebalanceListener):  # type: ignore[misc]
            def on_partitions_revoked(self, revoked: Any) -> None:
                note_joining()

            def on_partitions_assigned(self, assigned: Any) -> None:
                note(assigned)

        self._client = kafka.KafkaConsumer(
            bootstrap_servers=self.servers[actor.cluster], group_id=actor.group, client_id=actor.name,
            enable_auto_commit=False, auto_offset_reset="earliest", session_timeout_ms=SESSION_MS,
            heartbeat_interval_ms=1000, max_partition_fetch_bytes=2_000_000, retry_backoff_ms=BACKOFF_MS,
            bootstrap_timeout_ms=PATIENCE_S * 1000,
        )  # fmt: skip
        self._client.subscribe(list(actor.topics), listener=Listener())

    def leave(self) -> None:
        self._client.close()

    def read(self, seconds: float) -> list[tuple[str, int, int]]:
        if self.gate.is_closed:
            self._client.pause(*self._client.assignment())
        elif paused := self._client.paused():
            self._client.resume(*paused)
        batches = self._client.poll(timeout_ms=int(seconds * 1000), max_records=50)
        return [(place.topic, place.partition, one.offset) for place, some in batches.items() for one in some]

    def save(self, wanted: dict[Place, int], metadata: str) -> str:
        offsets = {
            kafka.TopicPartition(*place): kafka.OffsetAndMetadata(at, metadata, -1) for place, at in wanted.items()
        }
        try:
            self._client.commit(offsets)
        except kafka.errors.CommitFailedError:
            return FAILED
        except kafka.errors.KafkaError:
            return MAYBE
        return DONE


class AiokafkaThread(OtherThread):
    def begin(self) -> None:
        self._loop = asyncio.new_event_loop()
        super().begin()

    def enter(self) -> None:
        self._loop.run_until_complete(self._enter())

    async def _enter(self) -> None:
        actor, note, note_joining = self.actor, self.note_assignment, self.note_joining

        class Listener(aiokafka.ConsumerRebalanceListener):  # type: ignore[misc]
            async def on_partitions_revoked(self, revoked: Any) -> None:
                note_joining()

            async def on_partitions_assigned(self, assigned: Any) -> None:
                note(assigned)

        self._client = aiokafka.AIOKafkaConsumer(
            bootstrap_servers=self.servers[actor.cluster], group_id=actor.group, client_id=actor.name,
            enable_auto_commit=False, auto_offset_reset="earliest", session_timeout_ms=SESSION_MS,
            heartbeat_interval_ms=1000, max_partition_fetch_bytes=2_000_000, retry_backoff_ms=BACKOFF_MS,
            request_timeout_ms=PATIENCE_S * 1000,  # also for the first metadata
        )  # fmt: skip
        self._client.subscribe(list(actor.topics), listener=Listener())
        await self._client.start()

    def leave(self) -> None:
        self._loop.run_until_complete(self._client.stop())

    def read(self, seconds: float) -> list[tuple[str, int, int]]:
        if self.gate.is_closed:
            self._loop.run_until_complete(asyncio.sleep(seconds))
            return []
        batches = self._loop.run_until_complete(self._client.getmany(timeout_ms=int(seconds * 1000), max_records=50))
        return [(place.topic, place.partition, one.offset) for place, some in batches.items() for one in some]

    def save(self, wanted: dict[Place, int], metadata: str) -> str:
        offsets = {aiokafka.TopicPartition(*place): (at, metadata) for place, at in wanted.items()}
        try:
            self._loop.run_until_complete(self._client.commit(offsets))
        except (aiokafka.errors.CommitFailedError, aiokafka.errors.IllegalStateError):
            return FAILED
        except aiokafka.errors.KafkaError:
            return MAYBE
        return DONE


class JavaThread(OtherThread):
    """Apache's own consumer, of the cluster's version, in a process that does what it reads (java/RigConsumer.java)."""

    def enter(self) -> None:
        actor = self.actor
        version = ".".join(map(str, release_of(actor.cluster)))
        settings = {
            "bootstrap.servers": self.servers[actor.cluster], "group.id": actor.group, "client.id": actor.name,
            "enable.auto.commit": "false", "auto.offset.reset": "earliest", "max.poll.records": "50",
        }  # fmt: skip
        if release_of(actor.cluster) >= (4, 0):
            settings["group.protocol"] = actor.protocol
        if actor.protocol == "classic":
            settings |= {"session.timeout.ms": str(SESSION_MS), "heartbeat.interval.ms": "1000"}
        words = [",".join(actor.topics), *(f"{name}={value}" for name, value in settings.items())]
        self._child = subprocess.Popen(
            java_command(str(JAVA_SOURCE), *words, version=version, heap="128m"),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip

    def leave(self) -> None:
        self._child.communicate()

    def read(self, seconds: float) -> list[tuple[str, int, int]]:
        *lines, _ = self._tell("rest" if self.gate.is_closed else "poll", int(seconds * 1000))
        records = []
        for what, *words in lines:
            if what == "assigned":
                pairs = zip(words[::2], words[1::2], strict=True)
                self.note_assignment([kafka.TopicPartition(topic, int(partition)) for topic, partition in pairs])
            elif what == "joining":
                self.note_joining()
            else:
                records.append((words[0], int(words[1]), int(words[2])))
        return records

    def save(self, wanted: dict[Place, int], metadata: str) -> str:
        offsets = [word for place, at in wanted.items() for word in (*place, at)]
        (outcome,) = self._tell("commit", f"={metadata}", *offsets)
        return outcome[0]

    def _tell(self, *words: object) -> list[list[str]]:
        """The words of the lines of its answer, of which the last is how that ended."""
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        self._child.stdin.write(" ".join(map(str, words)) + "\n")
        self._child.stdin.flush()
        answer = []
        for line in self._child.stdout:
            answer.append(line.split())
            if answer[-1] in ([DONE], [FAILED], [MAYBE]):
                return answer
        raise AssertionError(f"Java ended with {self._child.wait()}, see the worker's log")
