"""A linear scan for a time beside the records themselves."""

import random

import pytest
from tests.acts import make_topic, produce

from groupkeeper.pipeline.jobs.scan_time import scan
from groupkeeper.pipeline.kafka.options import parse_options
from groupkeeper.pipeline.kafka.planning import Range
from groupkeeper.testing.background import BackgroundBroker

BEGIN_MS = 1_700_000_000_000
RECORDS = 200
DELAYS_MS = (0, 0, 90, 2500)


@pytest.mark.parametrize("compression", ["none", "lz4"])
def test_the_first_record_that_is_late_enough(compression: str) -> None:
    rng = random.Random(7)
    times = [BEGIN_MS + 100 * number - rng.choice(DELAYS_MS) for number in range(RECORDS)]
    with BackgroundBroker(properties={"log.retention.ms": "-1"}) as broker:
        servers = broker.bootstrap_servers
        make_topic(servers, "t")
        batches: dict[str, str | int] = {"batch.num.messages": 9, "compression.type": compression, "linger.ms": 50}
        produce(servers, "t", [b"v"] * RECORDS, times_ms=times, client=batches)
        options = parse_options({"kafka.bootstrap.servers": servers, "cluster": "c", "subscribe": "t"})
        for _ in range(60):
            time_ms = rng.choice(times) + rng.choice((-1, 0, 1))
            start, end = sorted(rng.sample(range(RECORDS + 1), 2))
            hits = [offset for offset in range(start, end) if times[offset] >= time_ms]
            found = [
                (each["offset"], each["timestamp_ms"])
                for each in scan([Range(0, "c", "t", 0, start, end)], options, time_ms)
            ]
            assert found == [(offset, times[offset]) for offset in hits[:1]]
