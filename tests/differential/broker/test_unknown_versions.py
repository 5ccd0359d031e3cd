"""What Apache Kafka 4.4.0 does with APIs and versions that it doesn't offer, and our broker too.

It closes the connection without an answer. Only ApiVersions is answered, in version 0.
"""

import socket
import struct
from collections.abc import Iterator
from typing import Any

import pytest
from tests.differential.pair import brokers
from tests.differential.wire import Pool

from groupkeeper.protocol.messages.api_versions_request import ApiVersionsRequest

API_VERSIONS = 18
UNKNOWN_KEYS = (4, 52, 53, 59, 62, 67, 82, 95, 200, -1)


@pytest.fixture(scope="module")
def addresses() -> Iterator[tuple[str, str]]:
    with brokers({}) as servers:
        yield servers


def offered(address: str) -> dict[int, tuple[int, int]]:
    pool = Pool(address)
    answer: Any = pool.ask(ApiVersionsRequest("test", "1"), 4)
    pool.close()
    return {one.api_key: (one.min_version, one.max_version) for one in answer.api_keys}


def outcome(address: str, key: int, version: int) -> bytes:
    """What comes back; nothing when the connection is closed."""
    host, _, port = address.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=10) as one:
        frame = struct.pack(">hhihx", key, version, 7, -1)
        one.sendall(struct.pack(">i", len(frame)) + frame)
        try:
            return one.makefile("rb").read(20 if key == API_VERSIONS else 1)
        except ConnectionResetError:
            return b""


@pytest.mark.conformance
@pytest.mark.timeout(180)
def test_same_end_of_what_is_not_offered(addresses: tuple[str, str]) -> None:
    ranges = [offered(address) for address in addresses]
    assert ranges[0] == ranges[1]
    # Of Produce versions are offered that are not served, for old clients' sake.
    asked = [(key, version) for key, (_, highest) in ranges[0].items() for version in (highest + 1, 99, -1)]
    asked += [(key, lowest - 1) for key, (lowest, _) in ranges[0].items() if lowest > 0]
    asked += [(key, 0) for key in UNKNOWN_KEYS] + [(0, 0), (0, 2)]
    for key, version in asked:
        mine, theirs = (outcome(address, key, version) for address in addresses)
        assert mine == theirs, (key, version)
        assert bool(mine) == (key == API_VERSIONS), (key, version)
