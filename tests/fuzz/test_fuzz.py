"""A short run of tools/fuzz.py: malformed bytes end in one exception class, in bounded time and memory."""

import random

import pytest
from tools import fuzz

from groupkeeper.protocol.codec import MalformedMessage, decode
from groupkeeper.protocol.framing import message_class

INPUTS = 20_000


def test_mutated_bytes_are_decoded_or_refused() -> None:  # GW-02
    outcomes = fuzz.fuzz(INPUTS, seed=0)
    assert sum(outcomes.values()) == INPUTS
    for family in ("messages", "frames", "batches", "offsets topic", "blobs"):
        assert outcomes[f"{family} accepted"] > 0
        assert outcomes[f"{family} refused"] > 0


def test_the_fuzzer_notices_what_it_looks_for() -> None:
    def runs_away(buf: bytes) -> None:
        bytearray(100 << 20)

    def breaks(buf: bytes) -> None:
        raise IndexError("not the one exception class")

    with pytest.raises(fuzz.Failure, match="bytes of memory"):
        fuzz.try_one(fuzz.Target("runs away", b"", runs_away), b"", measured=True)
    with pytest.raises(IndexError):
        fuzz.try_one(fuzz.Target("breaks", b"", breaks), b"", measured=False)


@pytest.mark.parametrize("name", ["FetchResponse", "MetadataResponse", "OffsetFetchResponse", "ListGroupsResponse"])
def test_every_prefix_is_refused(name: str) -> None:
    cls = message_class(name)
    for target in fuzz.targets()["messages"]:
        _, target_name, version = target.name.split(" ")
        if target_name == name:
            for end in range(len(target.seed)):
                with pytest.raises(MalformedMessage):
                    decode(cls, target.seed[:end], int(version))


def test_noise_is_refused_or_decoded() -> None:
    rng = random.Random(3)
    for target in rng.choices(fuzz.targets()["messages"], k=2000):
        fuzz.try_one(target, rng.randbytes(rng.randrange(200)), measured=False)


HOSTILE = [b"\x7f\xff\xff\xff", b"\x7f\xff", b"\xff\xff\xff\xff\x0f", b"\xff\xff\xff\xff\x07"]


def test_hostile_lengths_do_not_allocate() -> None:  # GW-02
    shortest: dict[str, fuzz.Target] = {}
    for target in fuzz.targets()["messages"]:
        name = target.name.split(" ")[1]
        if name not in shortest or 10 < len(target.seed) < len(shortest[name].seed):
            shortest[name] = target
    for target in shortest.values():
        for at in range(min(len(target.seed), 40)):
            for length in HOSTILE:
                buf = target.seed[:at] + length + target.seed[at + len(length) :]
                fuzz.try_one(target, buf, measured=True)
