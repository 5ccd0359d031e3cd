"""The same fetches of topics that are deleted meanwhile, on Apache Kafka 4.4.0 and on our broker."""

from typing import Any, NamedTuple

import pytest
from tests.differential.pair import Asked
from tests.differential.wire import Connection
from tests.patience import until

from groupkeeper.protocol import messages as m
from groupkeeper.protocol.messages.fetch_request import FetchPartition, FetchTopic

WAIT_MS = 8000
NO_SESSION, NEW_SESSION = -1, 0
TOPIC_IDS_SINCE = 13
NO_ERROR, UNKNOWN_TOPIC_OR_PARTITION = 0, 3

Told = tuple[int, list[tuple[str, int, int]]]
"""The error, and of each partition the topic's name (or whose id it is), its index and error."""


class Topic(NamedTuple):
    name: str
    topic_id: bytes


class Side(Asked):
    """A broker whose topics have names of their own, however often one name is given again."""

    def __init__(self, bootstrap_servers: str) -> None:
        super().__init__(bootstrap_servers)
        self._names: dict[bytes, str] = {}

    def create(self, name: str) -> Topic:
        answer: Any = self.pool.ask(m.CreateTopicsRequest([m.CreatableTopic(name, 1, 1)]), 7)
        assert answer.topics[0].error_code == NO_ERROR
        topic = Topic(name, answer.topics[0].topic_id)
        self._names[topic.topic_id] = f"{name}-{len(self._names)}"
        self.until_told(topic, NO_ERROR)
        return topic

    def delete(self, topic: Topic) -> None:
        self.pool.ask(m.DeleteTopicsRequest([m.DeleteTopicState(topic.name)], timeout_ms=10_000), 6)

    def until_told(self, topic: Topic, error: int) -> None:
        until(lambda: self.told(self.pool.ask(self.wanting(12, topic), 12))[1][0][2] == error)

    def wanting(
        self, version: int, *topics: Topic, wait_ms: int = 0, session: int = 0, epoch: int = -1
    ) -> m.FetchRequest:
        by_id = version >= TOPIC_IDS_SINCE
        part = FetchPartition(0, partition_max_bytes=1 << 20)
        wanted = [
            FetchTopic("" if by_id else topic.name, topic.topic_id if by_id else bytes(16), [part]) for topic in topics
        ]
        return m.FetchRequest(
            max_wait_ms=wait_ms, min_bytes=1, max_bytes=1 << 20, session_id=session, session_epoch=epoch, topics=wanted
        )

    def told(self, answer: Any) -> Told:
        parts = [
            (topic.topic or self._names.get(topic.topic_id, "?"), part.partition_index, part.error_code)
            for topic in answer.responses
            for part in topic.partitions
        ]
        return answer.error_code, parts

    def story(self, version: int, name: str) -> list[Told]:
        """What a client is told of a topic that goes: as it waits, in its session, when it asks again and when there is
        another one of that name.
        """
        said = []
        gone, stays = self.create(name), self.create(f"{name}-stays")
        session = self.pool.ask(self.wanting(version, gone, stays, epoch=NEW_SESSION), version)
        said.append(self.told(session))
        waiting, in_session = (Connection(self.bootstrap_servers) for _ in range(2))
        waiting.send(self.wanting(version, gone, stays, wait_ms=WAIT_MS), version)
        number: int = session.session_id
        in_session.send(self.wanting(version, wait_ms=WAIT_MS, session=number, epoch=1), version)
        assert waiting.receive(0.3) is None
        self.delete(gone)
        for one in (waiting, in_session):
            said.append(self.told(one.receive(WAIT_MS / 1000 + 5)))
        self.until_told(gone, UNKNOWN_TOPIC_OR_PARTITION)
        said.append(self.told(self.pool.ask(self.wanting(version, session=number, epoch=2), version)))
        said.append(self.told(self.pool.ask(self.wanting(version, gone, stays), version)))
        self.create(name)
        said.append(self.told(self.pool.ask(self.wanting(version, session=number, epoch=3), version)))
        said.append(self.told(self.pool.ask(self.wanting(version, gone, stays), version)))
        for one in (waiting, in_session):
            one.close()
        return said


@pytest.mark.conformance
@pytest.mark.timeout(120)
@pytest.mark.parametrize("version", [12, 13, 18])
def test_a_topic_that_is_deleted_while_it_is_fetched(sides: tuple[Side, Side], version: int) -> None:
    mine, theirs = (side.story(version, f"t{version}") for side in sides)
    assert mine == theirs
