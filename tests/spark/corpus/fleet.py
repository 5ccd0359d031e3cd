"""The input: offsets topics as bytes, read in three refreshes, and what the clusters answer at the instant of each."""

import itertools
import random
import struct
from collections.abc import Iterator
from operator import itemgetter
from typing import Any, NamedTuple

import pyarrow as pa
from tests.spark.transforms import reference
from tests.spark.transforms.histories import BEGIN, DAY, MINUTE, History, Logged, random_history
from tests.unit.pipeline.decode.record_sets import read_record_sets

from groupkeeper.pipeline.decode.arrow import Origin, decode, places_of
from groupkeeper.pipeline.kafka.instants import ClusterIdentity, Instant
from groupkeeper.pipeline.tables import DECODED, FRESHNESS, LOG_OFFSETS, SHARE_OFFSETS, TOPICS, TRANSACTIONS
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.uuids import uuid_text

__all__ = ["ASKED", "INSTANTS", "Cut", "answers", "cuts", "decoded", "histories", "instants"]

INSTANTS = tuple(BEGIN + 200 * DAY + minutes * MINUTE for minutes in (0, 1, 4))
"""When each refresh measures the clusters."""

ASKED = (LOG_OFFSETS, FRESHNESS, TOPICS, TRANSACTIONS, SHARE_OFFSETS)
"""Tables that come from the clusters, not from the history."""

_SEEDS = (8, 10, 17, 20, 30, 32, 38, 46, 49, 64, 75, 87, 90, 113, 114)
_OFFSETS_TOPIC = "__consumer_offsets"
_END = 2**40
_ID_BYTES = (b"\x00" * 15 + b"\x01", b"\x00" * 15 + b"\x02")
_OLD, _NEW = map(uuid_text, _ID_BYTES)
"""Ids of the topic that is deleted and created again."""


Cut = dict[str, dict[int, int]]
Row = dict[str, Any]


class Wanted(NamedTuple):
    """A topic of the cluster "live": log end at each instant, log start, and its id."""

    ends: tuple[int, int, int]
    start: int = 0
    ids: tuple[str, str, str] = (_OLD, _OLD, _OLD)


_LIVE = {
    "moving": Wanted((1_000, 1_600, 3_400)),
    "still": Wanted((500, 500, 500)),
    "short": Wanted((900, 950, 990), start=300),
    "again": Wanted((700, 40, 60), ids=(_OLD, _NEW, _NEW)),
}


def histories() -> list[History]:
    """Random ones, hostile bytes, and groups that commit around the instants."""
    return [*map(random_history, _SEEDS), _hostile(), _live()]


def decoded(all_histories: list[History]) -> pa.Table:
    """The records as rows of tables.DECODED."""
    records, _ = read_record_sets([each.record_set() for each in all_histories])
    batches = decode(records, places_of([Origin(each.cluster, 0) for each in all_histories]))
    return pa.Table.from_batches(batches, DECODED.arrow)


def cuts(all_histories: list[History]) -> list[Cut]:
    """Up to which offset each refresh reads; what is written at once is read at once."""
    found: list[Cut] = [{} for _ in INSTANTS]
    for history in all_histories:
        records = reference.seen(history)
        pairs = itertools.pairwise(records)
        places = [after.offset for before, after in pairs if before.time_ms != after.time_ms]
        rng = random.Random(history.cluster)
        chosen = sorted(rng.choice(places) if places else 0 for _ in INSTANTS[1:])
        if history.cluster == "live":
            chosen = [next(one.offset for one in records if one.time_ms > time) for time in INSTANTS[:-1]]
        for cut, offset in zip(found, [*chosen, _END], strict=True):
            cut[history.cluster] = {0: offset}
    return found


def instants(all_histories: list[History], number: int) -> dict[str, Instant]:
    """The clusters at one instant; the one called c17 does not answer the second time."""
    names = [each.cluster for each in all_histories if (each.cluster, number) != ("c17", 1)]
    return {
        name: Instant(INSTANTS[number], ClusterIdentity(f"id-{name}", None), _OFFSETS_TOPIC, {0: _END}, {})
        for name in names
    }  # fmt: skip


def answers(all_histories: list[History], cut: Cut, number: int) -> dict[str, pa.Table]:
    """Rows of the tables ASKED, by name, at one instant."""
    rows: dict[str, list[Row]] = {table.name: [] for table in ASKED}
    asked = instants(all_histories, number)
    for history in all_histories:
        name = history.cluster
        records = [one for one in reference.seen(history) if one.offset < cut[name][0]]
        offsets: dict[tuple[str, int], set[int]] = {}
        for (_, topic, partition), shown in reference.current_offsets(records).items():
            offsets.setdefault((topic, partition), set()).add(shown[0])
        if name not in asked:
            why = {"is_deleted": False, "problem": "it does not answer"}
            keys = [{"cluster": name, "topic": topic, "partition": partition} for topic, partition in offsets]
            rows[LOG_OFFSETS.name] += [key | why for key in keys]
            continue
        rows[LOG_OFFSETS.name] += [_log(name, key, sorted(own), number) for key, own in sorted(offsets.items())]
        rows[TOPICS.name] += [_topic(name, topic, number) for topic in sorted({topic for topic, _ in offsets})]
        rows[FRESHNESS.name].append(_freshness(name, cut[name][0], number))
    rows[TRANSACTIONS.name] += [_transaction(number)] * (number == 1)
    rows[SHARE_OFFSETS.name] += [_share_offset(number)]
    return {table.name: pa.Table.from_pylist(rows[table.name], table.arrow) for table in ASKED}


def _log(cluster: str, key: tuple[str, int], committed: list[int], number: int) -> Row:
    topic, partition = key
    rng = random.Random(f"{cluster}/{topic}/{partition}")
    start, first_end, pace = rng.choice((0, 0, 3)), rng.choice((6, 40, 2**31)), rng.choice((0, 1, 700))
    wanted = Wanted((first_end, first_end + pace, first_end + 4 * pace), start)
    if cluster == "live":
        wanted = _LIVE[topic]
    end = wanted.ends[number]
    row: Row = {"cluster": cluster, "topic": topic, "partition": partition, "is_deleted": False}
    if cluster != "live" and rng.random() < 0.1:
        gone = rng.random() < 0.5
        return row | {"is_deleted": gone, "problem": "UNKNOWN_TOPIC_OR_PARTITION" if gone else "not authorised"}
    stable = end if cluster == "live" or rng.random() < 0.7 else max(wanted.start, end - 2)
    records = [
        {
            "offset": offset, "is_there": True, "time": _us(_written_ms(offset, end, number)),
            "is_committed_there": offset < stable,
            "committed_time": _us(_written_ms(offset, end, number)) if offset < stable else None,
        }
        for offset in committed
        if offset < end and (cluster == "live" or rng.random() < 0.7)
    ]  # fmt: skip
    return row | {
        "topic_id": wanted.ids[number] if cluster == "live" else None, "log_start_offset": wanted.start,
        "last_stable_offset": stable, "log_end_offset": end, "records": records,
        "retention_ms": rng.choice((None, -1, 7 * DAY)), "measured_time": _us(INSTANTS[number]),
    }  # fmt: skip


def _written_ms(offset: int, end: int, number: int) -> int:
    """The nearer to the end, the younger."""
    return INSTANTS[number] - min(max(end - max(offset, 0), 1), 10_000) * 1_000


def _topic(cluster: str, topic: str, number: int) -> Row:
    topic_id = _LIVE[topic].ids[number] if cluster == "live" else None
    return {
        "cluster": cluster, "topic": topic, "topic_id": topic_id, "is_internal": False, "partitions": 1,
        "replication_factor": 1, "cleanup_policy": "delete", "retention_ms": 7 * DAY, "retention_bytes": -1,
        "records": 500 + number, "log_bytes": 50_000, "disk_bytes": 50_000, "groups": 1,
        "measured_time": _us(INSTANTS[number]), "measures": [], "records_per_s": 2.5,
    }  # fmt: skip


def _freshness(cluster: str, read_to: int, number: int) -> Row:
    """Cluster c32 is not read to its end the second time."""
    row = {
        "cluster": cluster, "log_partition": 0, "read_to": read_to, "last_stable_offset": read_to,
        "log_end_offset": read_to, "behind_ms": 0, "measured_time": _us(INSTANTS[number]),
    }  # fmt: skip
    if (cluster, number) != ("c32", 1):
        return row
    return row | {"log_end_offset": read_to + 5, "behind_ms": 90_000, "problem": "an open transaction holds it back"}


def _transaction(number: int) -> Row:
    return {
        "cluster": "live", "topic": "moving", "partition": 0, "producer_id": 9, "producer_epoch": 0, "groups": 0,
        "first_offset": 990, "held_offsets": 610, "is_hanging": True, "measured_time": _us(INSTANTS[number]),
    }  # fmt: skip


def _share_offset(number: int) -> Row:
    return {
        "cluster": "live", "group_id": "share", "topic": "moving", "partition": 0, "start_offset": 10,
        "log_end_offset": 1_000, "lag": 990 - number, "done_ahead": 0, "rejected": 0, "to_redeliver": 0,
        "redelivered": 0, "most_deliveries": 1, "measured_time": _us(INSTANTS[number]),
    }  # fmt: skip


def _us(milliseconds: int) -> int:
    return milliseconds * 1000


def _live() -> History:
    """Groups that read in step, stand still, go back, are put ahead, lose records, and stop; one goes. One has a
    member.
    """
    commits: list[tuple[int, str, str, int | None]] = []
    for at in range(-60, 4):
        commits.append((at * MINUTE + 1, "in step", "moving", 1_000 + 10 * at))
        commits.append((at * MINUTE + 2, "behind", "moving", 400 + 5 * at))
        commits.append((at * MINUTE + 3, "stuck", "moving", 77))
    commits += [
        (-50 * MINUTE, "stopped", "moving", 20), (-2 * MINUTE, "stopped", "still", 500),
        (-90 * MINUTE, "gone back", "moving", 800), (-3 * MINUTE, "gone back", "moving", 300),
        (30_000, "gone back", "moving", 310), (-5 * MINUTE, "loses", "short", 10), (-MINUTE, "loses", "still", 2),
        (-4 * MINUTE, "beyond", "still", 499), (-MINUTE, "beyond", "still", 5_000),
        (-6 * MINUTE, "made again", "again", 690), (-6 * MINUTE, "left behind", "again", 600),
        (2 * MINUTE, "made again", "again", 35), (-DAY, "removed", "still", 4), (50_000, "removed", "still", None),
        (-40 * DAY, "idle", "still", 1), (-MINUTE, "negative", "still", -1), (3 * MINUTE, "late", "moving", 5),
        (-2, "has a member", "still", 500),
    ]  # fmt: skip
    others = [(-1, m.GroupMetadataKey("has a member"), _of_one_member(INSTANTS[0] - 1), 3)]
    pairs = [*map(_commit_of, commits), *others]
    records = [Logged(offset, INSTANTS[0] + at_ms, key, value, version=version)
               for offset, (at_ms, key, value, version) in enumerate(sorted(pairs, key=itemgetter(0)))]  # fmt: skip
    return History("live", records, [], len(records))


def _commit_of(
    commit: tuple[int, str, str, int | None],
) -> tuple[int, m.OffsetCommitKey, m.OffsetCommitValue | None, int]:
    at_ms, group, topic, committed = commit
    if committed is None:
        value = None
    else:
        value = m.OffsetCommitValue(committed, metadata="", commit_timestamp=INSTANTS[0] + at_ms)
        if topic == "again":
            value.topic_id = _ID_BYTES[at_ms > 0]
    return at_ms, m.OffsetCommitKey(group, topic, 0), value, 4


def _of_one_member(time_ms: int) -> m.GroupMetadataValue:
    member = m.MemberMetadata("m", None, "app", "/h", 60_000, 10_000, b"", b"")
    return m.GroupMetadataValue("consumer", 1, "range", "m", time_ms, [member])


def _hostile() -> History:
    raws = list(_hostile_pairs())
    records = [Logged(number, BEGIN + number, None, None, raw=raw) for number, raw in enumerate(raws)]
    return History("hostile", records, [], len(records))


def _text(text: str | bytes) -> bytes:
    data = text if isinstance(text, bytes) else text.encode()
    return struct.pack(">h", len(data)) + data


def _key(group: str | bytes, topic: str | bytes = "orders", partition: int = 0) -> bytes:
    return struct.pack(">h", 1) + _text(group) + _text(topic) + struct.pack(">i", partition)


def _value(offset: int, time_ms: int = BEGIN, metadata: str = "") -> bytes:
    return struct.pack(">hqi", 3, offset, -1) + _text(metadata) + struct.pack(">q", time_ms)


def _group(members: bytes, protocol_type: str = "consumer", generation: int = 1) -> bytes:
    head = struct.pack(">h", 3) + _text(protocol_type) + struct.pack(">i", generation) + _text("range") + _text("m")
    return head + struct.pack(">q", BEGIN) + members


def _hostile_pairs() -> Iterator[tuple[bytes, bytes | None]]:
    """Keys and values as no coordinator writes them, between some that one does."""
    yield _key("plain"), _value(11)
    for number, time_ms in enumerate((-1, 0, -DAY, 253402300799999, 253402300800000, 2**63 - 1)):
        yield _key(f"time {number}"), _value(20 + number, time_ms)
    for number, name in enumerate(("/", "new\nline", "'q\"; DROP TABLE", "{b}", "%20", "nul\x00", "", "x" * 3_000)):
        yield _key(name), _value(40 + number)
    yield _key("metadata"), _value(60, metadata="m" * 3_000)
    yield _key("largest"), _value(2**63 - 1)
    yield _key("below 0"), _value(-1)
    yield _key(b"bad \xff\xfe"), _value(1)
    yield _key("bad topic", b"t\xc3\x28"), _value(1)
    yield struct.pack(">h", 1) + b"\x00", _value(1)
    yield _key("cut value"), _value(1)[:9]
    yield _key("newer value"), struct.pack(">h", 9) + b"\x01" * 30
    yield _key("tagged"), struct.pack(">hqi", 4, 37, -1) + b"\x01" + struct.pack(">q", BEGIN) + b"\x01\x07\x02hi"
    yield struct.pack(">h", 99) + _text("unknown"), b"\x00\x01abc"
    yield struct.pack(">h", 300) + _text("unknown"), None
    yield b"\x00\x00\x00\x01", b"\x00" * 6
    yield b"", None
    yield b"", b"v"
    member = _text("m1") + struct.pack(">h", -1) + _text("c") + _text("/h") + struct.pack(">ii", 60_000, 30_000)
    for name, blob in (("garbage", b"\xff" * 4), ("connect", b"\x00\x01\xff\xfe garbage")):
        people = struct.pack(">i", 1) + member + struct.pack(">i", len(blob)) + blob + struct.pack(">i", 0)
        yield struct.pack(">h", 2) + _text(name), _group(people, "connect" if name == "connect" else "consumer")
    for name, count in (("negative", -5), ("huge", 2**31 - 1)):
        yield struct.pack(">h", 2) + _text(name), _group(struct.pack(">i", count))
    yield struct.pack(">h", 2) + _text("last generation"), _group(struct.pack(">i", 0), generation=2**31 - 1)
    yield _key("deleted"), _value(40)
    yield _key("deleted"), None
    yield _key("never committed"), None
