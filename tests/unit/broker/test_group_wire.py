"""The bytes of the group APIs as the ledger spells them, and the versions that are refused."""

import struct
from pathlib import Path

import pytest
from tests.unit.broker.peer import Peer

from groupkeeper.broker.api_table import TABLE
from groupkeeper.broker.broker import Broker
from groupkeeper.broker.network.closing import CloseConnection
from groupkeeper.protocol.errors import CoordinatorNotAvailable, GroupSubscribedToTopic, UnknownTopicOrPartition


def new_broker(directory: Path) -> Broker:
    return Broker(directory=directory)


def text(value: str) -> bytes:
    return struct.pack(">h", len(value)) + value.encode()


def compact(value: str) -> bytes:
    return bytes([len(value) + 1]) + value.encode()


async def exchange(peer: Peer, key: int, version: int, body: bytes, *, is_flexible: bool = False) -> bytes:
    """The answer's body: what follows size and correlation id, and the tags of a flexible header."""
    header = struct.pack(">hhi", key, version, 7) + text("c") + b"\x00" * is_flexible
    answer = await peer.exchange(header + body)
    size, correlation_id = struct.unpack_from(">ii", answer)
    assert (size, correlation_id) == (len(answer) - 4, 7)
    return answer[8 + is_flexible :]


async def test_offset_delete(peer: Peer) -> None:
    # K496-01, K496-02, K496-03: headers without tags; the error comes before the throttle time
    await peer.commit({("t", 0): 5})
    body = text("g") + struct.pack(">i", 1) + text("t") + struct.pack(">iii", 2, 0, 9)
    answer = await exchange(peer, 47, 0, body)
    codes = struct.pack(">i", 2) + struct.pack(">ih", 9, UnknownTopicOrPartition.code) + struct.pack(">ih", 0, 0)
    assert answer == struct.pack(">hii", 0, 0, 1) + text("t") + codes
    assert await peer.fetch() == {}


async def test_offset_delete_above_its_versions(peer: Peer) -> None:
    # K496-01
    above = TABLE[47].highest + 1
    with pytest.raises(CloseConnection, match=f"OffsetDelete version {above} is not supported"):
        await exchange(peer, 47, above, text("g") + struct.pack(">i", 0))


def test_the_error_of_a_subscribed_topic() -> None:
    # K496-04, K496-X1
    error = GroupSubscribedToTopic()
    assert error.code == 86
    assert error.text == (
        "Deleting offsets of a topic is forbidden while the consumer group is actively subscribed to it."
    )
    assert not error.retriable
    assert CoordinatorNotAvailable.retriable


@pytest.mark.parametrize("version", [2, 3, 5])
async def test_offset_fetch_of_all_topics(peer: Peer, version: int) -> None:
    # K88-01, K88-02, K88-03, K88-07: the throttle time comes first, the error of the group last
    await peer.commit({("t", 0): 5})
    answer = await exchange(peer, 9, version, text("g") + struct.pack(">i", -1))
    throttle = struct.pack(">i", 0) if version >= 3 else b""
    epoch = struct.pack(">i", -1) if version >= 5 else b""
    partition = struct.pack(">iiq", 1, 0, 5) + epoch + text("") + struct.pack(">h", 0)
    assert answer == throttle + struct.pack(">i", 1) + text("t") + partition + struct.pack(">h", 0)


async def test_offset_fetch_0_is_gone(peer: Peer) -> None:
    # K88-X1
    with pytest.raises(CloseConnection, match="OffsetFetch version 0 is not supported"):
        await exchange(peer, 9, 0, text("g") + struct.pack(">i", 0))


@pytest.mark.parametrize("version", range(6))
async def test_list_groups(peer: Peer, version: int) -> None:
    # K518-01, K518-02, K518-X1: filters and states from 4 on, types from 5 on. test_every_version.py asks newer ones
    await peer.commit({("t", 0): 5})
    is_flexible = version >= 3
    body = b"\x01" * (version >= 4) + b"\x01" * (version >= 5) + b"\x00" * is_flexible
    answer = await exchange(peer, 16, version, body, is_flexible=is_flexible)
    throttle = struct.pack(">i", 0) if version >= 1 else b""
    if is_flexible:
        group = compact("g") + compact("")
        group += compact("Empty") * (version >= 4) + compact("classic") * (version >= 5)
        assert answer == throttle + struct.pack(">h", 0) + b"\x02" + group + b"\x00" + b"\x00"
    else:
        assert answer == throttle + struct.pack(">h", 0) + struct.pack(">i", 1) + text("g") + text("")
