"""The pipeline decodes what real Apache Kafka wrote as Apache's own formatters print it, record for record."""

import json
import re
from base64 import b64decode
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.conformance.pipeline.offsets_topic_traffic import classic_groups, newer_groups
from tests.unit.pipeline.decode.record_sets import read_record_sets
from tools.apache_kafka import ApacheKafka, run_tool

from groupkeeper.pipeline.decode.arrow import Origin, decode, places_of
from groupkeeper.pipeline.decode.batches import RecordSet
from groupkeeper.pipeline.decode.json_form import json_of
from groupkeeper.protocol.consumer_protocol import decode_assignment, decode_subscription

pytestmark = [pytest.mark.conformance, pytest.mark.usefixtures("apache_jars"), pytest.mark.timeout(600)]

FORMATTERS = "org.apache.kafka.tools.consumer."
COMMIT_TYPES = (0, 1)
NEWER_TYPES = {3, 5, 6, 7, 8, 10, 11, 12, 13, 14, 15, 16, 17, 19, 20, 21, 22, 23}


class Shown(NamedTuple):
    """A record as a tool shows it: JSON of key and value with their types and versions; the value None: deleted."""

    key: Any
    value: Any


class Written(NamedTuple):
    """What a broker left, and what its tools say of it."""

    version: str
    logs: list[Path]
    formatted: dict[str, list[Shown]]


@pytest.fixture(scope="module", params=["4.4.0", "4.3.1", "3.9.1"])
def written(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Written:
    version: str = request.param
    is_new = version >= "4"
    directory = tmp_path_factory.mktemp("kafka")
    features = ("--feature", "streams.version=1", "--feature", "share.version=1") if is_new else ()
    kafka = ApacheKafka({"compression.type": "producer"}, version=version, directory=directory, format_options=features)
    kafka.start()
    try:
        classic_groups(kafka.bootstrap_servers)
        if is_new:
            newer_groups(kafka.bootstrap_servers)
        formatted = {
            name: formatter(kafka, name) for name in ("OffsetsMessageFormatter", "GroupMetadataMessageFormatter")
        }
    finally:
        kafka.stop(keep=True)
    return Written(version, sorted(directory.glob("logs/__consumer_offsets-*/*.log")), formatted)


def formatter(kafka: ApacheKafka, name: str) -> list[Shown]:
    """All that the console consumer shows of the offsets topic."""
    done = run_tool(
        "console-consumer", "--bootstrap-server", kafka.bootstrap_servers, "--topic", "__consumer_offsets",
        "--from-beginning", "--timeout-ms", "10000", "--formatter", FORMATTERS + name, version=kafka.version,
    )  # fmt: skip
    # Before 4.0 the key's type was called its version.
    return [
        Shown({"type": each["key"].get("type", each["key"].get("version")), "data": each["key"]["data"]}, each["value"])
        for each in documents(done.stdout)
    ]


def documents(text: str) -> Iterator[Any]:
    """JSON documents that follow each other, with or without line ends."""
    decoder = json.JSONDecoder()
    pos = 0
    while (start := text.find("{", pos)) >= 0:
        found, pos = decoder.raw_decode(text, start)
        yield found


def dumped(log: Path, version: str) -> dict[int, Shown]:
    """What kafka-dump-log says of each record of a log file, by offset."""
    done = run_tool("dump-log", "--offsets-decoder", "--files", str(log), version=version)
    assert done.returncode == 0, done.stderr
    decoder = json.JSONDecoder()
    found: dict[int, Shown] = {}
    for line in re.split(r"\n(?=\| offset: |baseOffset: )", done.stdout):
        place = re.match(r"\| offset: (\d+) ", line)
        if place is None:
            continue
        marker = re.search(r"endTxnMarker: (\w+) coordinatorEpoch: (\d+)", line)
        if marker is not None:
            found[int(place[1])] = Shown(None, {"type": marker[1], "coordinatorEpoch": int(marker[2])})
            continue
        key_at = line.index("key: {") + len("key: ")
        key, end = decoder.raw_decode(line, key_at)
        payload = line[end:].strip().removeprefix("payload: ")
        value = None if payload in ("<DELETE>", "null") else decoder.raw_decode(payload)[0]
        found[int(place[1])] = Shown(with_numbers(key), with_numbers(value))
    return found


def with_numbers(struct: Any) -> Any:
    """kafka-dump-log has types and versions as texts, the formatters as numbers."""
    if struct is None:
        return None
    return {name: each if name == "data" else int(each) for name, each in struct.items()}


def ours(log: Path) -> dict[int, dict[str, Any]]:
    """The rows that the pipeline makes of a log file, aborted transactions included, by offset."""
    records, _ = read_record_sets([RecordSet(log.read_bytes(), 0, 2**62)])
    batches = decode(records, places_of([Origin("c", 0)]))
    return {row["log_offset"]: row for batch in batches for row in batch.to_pylist()}


def shown(row: dict[str, Any]) -> Shown:
    """A row in the form of Apache's tools."""
    assert row["problem"] is None
    record_type, version = row["record_type"], row["value_version"]
    if record_type in COMMIT_TYPES:
        key = {"group": row["group_id"], "topic": row["topic"], "partition": row["partition"]}
        value = None if row["is_tombstone"] else commit_value(row)
    else:
        record = json.loads(row["group_record"])
        value = None if row["is_tombstone"] else json.loads(record["value_json"])
        if record_type is None:
            return Shown(None, value)
        key = json.loads(record["key_json"])
    return Shown({"type": record_type, "data": key}, None if value is None else {"version": version, "data": value})


def with_blobs_read(each: Shown) -> Shown:
    """kafka-dump-log also reads what members of the protocol type "consumer" say and get; the formatters do not."""
    if each.key is None or each.key["type"] != 2 or each.value is None:
        return each
    value = each.value["data"]
    if value["protocolType"] != "consumer":
        return each
    members = [
        member
        | {
            "subscription": json.loads(json_of(decode_subscription(b64decode(member["subscription"])), 3)),
            "assignment": json.loads(json_of(decode_assignment(b64decode(member["assignment"])), 3)),
        }
        for member in value["members"]
    ]
    return Shown(each.key, each.value | {"data": value | {"members": members}})


def commit_value(row: dict[str, Any]) -> dict[str, Any]:
    version = row["value_version"]
    value = {
        "offset": row["committed_offset"],
        "metadata": row["metadata"],
        "commitTimestamp": row["commit_timestamp_ms"],
    }
    if version >= 3:
        value["leaderEpoch"] = -1 if row["leader_epoch"] is None else row["leader_epoch"]
    if version == 1:
        value["expireTimestamp"] = -1 if row["expire_timestamp_ms"] is None else row["expire_timestamp_ms"]
    if row["topic_id"] is not None:
        value["topicId"] = row["topic_id"]
    return value


def test_as_kafka_dump_log_prints_it(written: Written) -> None:
    types: Counter[Any] = Counter()
    for log in written.logs:
        wanted = dumped(log, written.version)
        found = {offset: with_blobs_read(shown(row)) for offset, row in ours(log).items()}
        assert found.keys() == wanted.keys()
        for offset, each in wanted.items():
            assert found[offset] == each, (log, offset)
            types[each.key and each.key["type"]] += 1
    assert types[1] > 40
    assert types[2] > 5
    assert types[None] == 4
    if written.version >= "4":
        assert types.keys() >= NEWER_TYPES


def key_text(each: Shown) -> str:
    return json.dumps(each, sort_keys=True)


@pytest.mark.parametrize(
    ("name", "types"), [("OffsetsMessageFormatter", COMMIT_TYPES), ("GroupMetadataMessageFormatter", (2,))]
)
def test_as_the_formatters_print_it(written: Written, name: str, types: tuple[int, ...]) -> None:
    """They leave no record of their types out, so neither is there one too many; the order among partitions is free.

    The formatter's own consumer writes on: what it wrote while it ran need not be shown.
    """
    found = [shown(row) for log in written.logs for row in ours(log).values() if row["record_type"] in types]
    own = [each for each in found if "console-consumer" not in each.key["data"]["group"]]
    wanted = [each for each in written.formatted[name] if "console-consumer" not in each.key["data"]["group"]]
    assert sorted(map(key_text, own)) == sorted(map(key_text, wanted))
    assert len(wanted) >= 3
