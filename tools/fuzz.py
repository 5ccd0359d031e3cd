"""Throws mutated bytes at every decoder of the protocol and watches how they end.

    python tools/fuzz.py --inputs 1000000 --seed 1

The seeds are the corpus of what Apache Kafka's serialisers write. Each input must be decoded or be refused with
MalformedMessage (or, for a request frame, with UnsupportedMessageVersion), in bounded time and memory: the address
space is limited, and the peak of a sample of inputs is measured. What is accepted must encode again to bytes that
decode to the same. Ends at the first failure with the input's hex; the same seed gives the same inputs.
"""

from __future__ import annotations

import argparse
import lzma
import random
import resource
import sys
import time
import tracemalloc
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from struct import pack
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "src")]  # so that it runs without being installed

from tests.unit.protocol.frames import decode_request  # noqa: E402

from groupkeeper.protocol import consumer_protocol, framing, offsets_topic, record_batch  # noqa: E402
from groupkeeper.protocol.codec import MalformedMessage, UnsupportedMessageVersion, decode, encode  # noqa: E402
from groupkeeper.protocol.primitives import RootMessage  # noqa: E402

CORPUS = ROOT / "tests" / "unit" / "protocol" / "corpus.txt.xz"
MOST_SECONDS = 1.0
"""Of CPU time for one input."""
MOST_EXTRA_ADDRESS_SPACE = 512 << 20
MOST_DECOMPRESSED = 1 << 20
MEMORY_SAMPLE = 40
FIXED_MEMORY = 256 << 10
MEMORY_FACTOR = 400
"""Bytes that a byte of input may take as Python objects: an array element of one byte is an object and its list."""

LENGTHS = [pack(">i", n) for n in (-1, -2, 0, 1, 127, 128, 65_536, 0x7FFFFFFF, -0x80000000)]
LENGTHS += [pack(">h", n) for n in (-1, -2, 0, 0x7FFF, -0x8000)]
LENGTHS += [
    b"\xff\xff\xff\xff\x0f",
    b"\xff\xff\xff\xff\xff\x01",
    b"\x80\x80\x80\x80\x08",
    b"\x00",
    b"\x01",
    b"\x80\x01",
]


class Target(NamedTuple):
    """One decoder with one well-formed input; `allowance` is what its work may take beside the size of the input."""

    name: str
    seed: bytes
    run: Callable[[bytes], object]
    allowance: int = 0


class Failure(Exception):
    """An input that ended badly."""


def message_target(name: str, version: int, body: bytes) -> Target:
    cls = framing.message_class(name)

    def run(buf: bytes) -> None:
        body_again = encode(decode(cls, buf, version), version)
        if encode(decode(cls, body_again, version), version) != body_again:
            raise Failure("what was decoded does not encode to the same bytes twice")

    return Target(f"message {name} {version}", body, run)


def frame_targets(name: str, version: int, body: bytes) -> Iterator[Target]:
    message = decode(framing.message_class(name), body, version)
    if name.endswith("Request"):
        frame = framing.encode_request(7, "fuzz", message, version)[4:]
        yield Target(f"request frame {name} {version}", frame, decode_request)
    elif name.endswith("Response"):
        cls: type[RootMessage] = type(message)
        frame = framing.encode_response(7, message, version)[4:]
        yield Target(f"response frame {name} {version}", frame, lambda buf: framing.decode_response(cls, buf, version))


def read_batches(buf: bytes) -> None:
    for pos, header in record_batch.iter_headers(buf):
        records = record_batch.read_records(buf, pos, verify=False, max_size=MOST_DECOMPRESSED)
        if header.is_control:
            for record in records:
                record_batch.read_end_transaction(record)
    if buf:
        record_batch.read_records(buf)


def read_offsets_record(buf: bytes) -> None:
    """Two bytes with the size of the key, the key, the value (none where it would be empty)."""
    end = 2 + int.from_bytes(buf[:2], "big")
    record = offsets_topic.decode_record(buf[2:end], buf[end:] or None)
    if not isinstance(record, offsets_topic.UnknownRecord):
        offsets_topic.encode_record(record)


def read_subscription(buf: bytes) -> None:
    subscription = consumer_protocol.decode_subscription(buf)
    assert consumer_protocol.decode_subscribed_topics(buf) == list(subscription.topics)


def targets() -> dict[str, list[Target]]:
    """Every target by its family; the families get equal shares of the inputs."""
    found: dict[str, list[Target]] = {name: [] for name in ("messages", "frames", "batches", "offsets topic", "blobs")}
    keys: dict[str, bytes] = {}
    for line in lzma.decompress(CORPUS.read_bytes()).decode().split("\n"):
        kind, _, rest = line.partition("\t")
        fields = rest.split("\t")
        if kind == "message":
            name, version, body = fields[0], int(fields[1]), bytes.fromhex(fields[3])
            found["messages"].append(message_target(name, version, body))
            found["frames"].extend(frame_targets(name, version, body))
        elif kind == "batch":
            seed = bytes.fromhex(fields[1])
            found["batches"].append(Target(f"batch {fields[0]}", seed, read_batches, MOST_DECOMPRESSED))
        elif kind == "blob" and fields[0].startswith("ConsumerProtocol"):
            read = read_subscription if fields[0].endswith("Subscription") else consumer_protocol.decode_assignment
            found["blobs"].append(Target(f"blob {fields[0]} {fields[1]}", bytes.fromhex(fields[3]), read))
        elif kind == "blob" and fields[0].endswith("Key"):
            keys[fields[0].removesuffix("Key")] = bytes.fromhex(fields[3])
        elif kind == "blob":
            key = keys[fields[0].removesuffix("Value")]
            seed = pack(">H", len(key)) + key + bytes.fromhex(fields[3])
            found["offsets topic"].append(Target(f"record {fields[0]} {fields[1]}", seed, read_offsets_record))
    return found


def mutated(seed: bytes, other: bytes, rng: random.Random) -> bytes:
    """`seed` after one to four changes; parts may come from `other`."""
    out = bytearray(seed)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 4))):
        at = rng.randrange(len(out) + 1)
        match rng.randrange(8):
            case 0 if at < len(out):
                out[at] ^= 1 << rng.randrange(8)
            case 1 if at < len(out):
                out[at] = rng.randrange(256)
            case 2:
                length = rng.choice(LENGTHS)
                out[at : at + len(length)] = length
            case 3:
                out[at:at] = rng.choice(LENGTHS)
            case 4:
                del out[at:]
            case 5:
                del out[at : at + rng.randrange(1, 9)]
            case 6:
                out[at:at] = rng.randbytes(rng.randrange(1, 9))
            case _:
                start = rng.randrange(len(other) + 1)
                out[at:] = other[start:]
    return bytes(out)


def try_one(target: Target, buf: bytes, measured: bool) -> tuple[bool, float, int]:
    """Whether the input was accepted, its CPU seconds, its peak of memory where that is measured. Raises Failure."""
    if measured:
        tracemalloc.start()
    started = time.process_time()
    try:
        target.run(buf)
        accepted = True
    except MalformedMessage:
        accepted = False
    except UnsupportedMessageVersion:
        accepted = False
        if not target.name.startswith("request frame"):
            raise
    seconds = time.process_time() - started
    peak = 0
    if measured:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        if peak > FIXED_MEMORY + MEMORY_FACTOR * (len(buf) + target.allowance):
            raise Failure(f"{peak} bytes of memory for an input of {len(buf)}")
    if seconds > MOST_SECONDS:
        raise Failure(f"{seconds:.1f} s for an input of {len(buf)} bytes")
    return accepted, seconds, peak


def limit_memory() -> None:
    pages = int(Path("/proc/self/statm").read_text().split()[0]) if Path("/proc/self/statm").exists() else 0
    if pages:
        limit = pages * resource.getpagesize() + MOST_EXTRA_ADDRESS_SPACE
        resource.setrlimit(resource.RLIMIT_AS, (limit, resource.getrlimit(resource.RLIMIT_AS)[1]))


def fuzz(inputs: int, seed: int, report: Callable[[str], None] = lambda line: None) -> Counter[str]:
    """How many inputs of each family were accepted and refused. Raises what the input that ended badly raises."""
    rng = random.Random(seed)
    families = targets()
    outcomes: Counter[str] = Counter()
    slowest, largest, started = (0.0, ""), 0, time.perf_counter()
    for number in range(inputs):
        family = rng.choice(tuple(families))
        target, other = rng.choice(families[family]), rng.choice(families[family])
        buf = mutated(target.seed, other.seed, rng)
        ended = False
        try:
            accepted, seconds, peak = try_one(target, buf, number % MEMORY_SAMPLE == 0)
            ended = True
        finally:
            if not ended:
                report(f"FAILED at input {number}, {target.name}: {buf.hex()}")
        outcomes[f"{family} {'accepted' if accepted else 'refused'}"] += 1
        slowest, largest = max(slowest, (seconds, target.name)), max(largest, peak)
        if (number + 1) % 100_000 == 0:
            report(f"{number + 1} inputs, {time.perf_counter() - started:.0f} s")
    seconds, name = slowest
    report(f"slowest input {seconds * 1000:.1f} ms of CPU ({name}), largest peak {largest / 1024:.0f} KiB")
    return outcomes


def main() -> None:
    parser = argparse.ArgumentParser(description="Throw mutated bytes at every decoder of the protocol.")
    parser.add_argument("--inputs", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    limit_memory()
    outcomes = fuzz(arguments.inputs, arguments.seed, lambda line: print(line, flush=True))
    for name, count in sorted(outcomes.items()):
        print(f"{name:<24} {count}")
    print(f"{arguments.inputs} inputs, seed {arguments.seed}: each was decoded, or refused with MalformedMessage")


if __name__ == "__main__":
    main()
