"""What is different on PyPy. `BROKER_UNDER_TEST=pypy` runs the tests beside this one there (`make pypy`)."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient
from tests.conformance.brokers import PYTHONS, GroupkeeperBroker
from tests.conformance.conftest import make_topic
from tools import pypy

pytestmark = pytest.mark.skipif(not pypy.is_made(), reason="no PyPy in build/pypy: see what `make pypy` says")


@pytest.fixture
def on_pypy(monkeypatch: pytest.MonkeyPatch) -> Iterator[GroupkeeperBroker]:
    # PyPy goes by the processor's cache: with one of 300 MB it collects nothing until it has allocated 1.2 GB.
    monkeypatch.setenv("PYPY_GC_NURSERY", "4MB")
    broker = GroupkeeperBroker(python=PYTHONS["pypy"])
    broker.start()
    yield broker
    broker.stop()


@pytest.fixture
def admin(on_pypy: GroupkeeperBroker) -> AdminClient:
    admin = AdminClient({"bootstrap.servers": on_pypy.bootstrap_servers})
    make_topic(admin, "t", 1)
    return admin


def resident_mb(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    return next(int(line.split()[1]) // 1024 for line in status.splitlines() if line.startswith("VmRSS"))


def test_memory_is_given_back(on_pypy: GroupkeeperBroker, admin: AdminClient) -> None:
    # Without reference counts, a broker whose collector is off keeps all that it ever received.
    producer = Producer({"bootstrap.servers": on_pypy.bootstrap_servers, "queue.buffering.max.kbytes": 1 << 20})
    for _ in range(8):
        for _ in range(50):
            producer.produce("t", bytes(900_000))
        assert producer.flush(60) == 0
    assert on_pypy.pid is not None
    assert resident_mb(on_pypy.pid) < 400


def test_a_regular_expression_is_refused(on_pypy: GroupkeeperBroker, admin: AdminClient) -> None:
    options = {"bootstrap.servers": on_pypy.bootstrap_servers, "group.id": "g", "group.protocol": "consumer"}
    consumer = Consumer(options)
    consumer.subscribe(["^t"])
    answer = consumer.poll(20)
    assert answer is not None
    assert "The regular expression is not valid" in str(answer.error())
    consumer.close()
    assert "google-re2 is not installed" in on_pypy.tail()
