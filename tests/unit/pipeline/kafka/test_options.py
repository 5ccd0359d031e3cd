"""Options of the source, and how ranges are shared by tasks."""

import json
import random

import pytest

from groupkeeper.pipeline.errors import SourceError, cause_of, first_line
from groupkeeper.pipeline.kafka.options import _NAMES, _WITHOUT_EFFECT, EARLIEST, LATEST, parse_options
from groupkeeper.pipeline.kafka.planning import Range, named, pack

SERVERS = {"kafka.bootstrap.servers": "h:9092"}
TOPIC = SERVERS | {"subscribe": "t"}


def test_names_come_in_any_case_and_properties_without_their_prefix() -> None:
    options = {"KAFKA.bootstrap.servers": "h:1", "Subscribe": "a, b,a", "kafka.security.protocol": "SSL"}
    (cluster,) = parse_options(options).clusters
    assert cluster.topics == ("a", "b")
    assert cluster.properties == {"bootstrap.servers": "h:1", "security.protocol": "SSL"}
    assert (cluster.start.offset, cluster.end.offset, cluster.reads_committed) == (EARLIEST, LATEST, True)


def test_clusters_have_options_of_their_own_and_in_common() -> None:
    clusters = {"east": SERVERS, "west": {"kafka.bootstrap.servers": "w:1", "assign": {"t": [3]}}}
    options = parse_options({"clusters": json.dumps(clusters), "subscribe": "t", "kafka.client.id": "me"})
    east, west = options.clusters
    assert (east.name, east.topics, east.properties["client.id"]) == ("east", ("t",), "me")
    assert (west.topics, west.partitions) == (None, {"t": (3,)})
    (offsets,) = parse_options(SERVERS | {"rows": "decoded"}).clusters
    assert offsets.topics == ("__consumer_offsets",)


def test_clusters_of_a_list_need_no_names() -> None:
    clusters = [SERVERS, {"kafka.bootstrap.servers": "w:1", "cluster": "west"}]
    options = parse_options({"clusters": json.dumps(clusters), "subscribe": "t"})
    assert [(each.name, each.title) for each in options.clusters] == [(None, "h:9092"), ("west", "west")]
    known = named(options, [Range(0, "id-of-east", "t", 0, 0, 1)])
    assert [each.name for each in known.clusters] == ["id-of-east", "west"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"subscribe": "t"}, "kafka.bootstrap.servers is missing"),
        (SERVERS, "one of subscribe, subscribePattern, assign"),
        (TOPIC | {"assign": "{}"}, "cannot both be given"),
        ({"kafka.boostrap.servers": "h:1"}, "and kafka.boostrap.servers is none of Kafka's properties"),
        (TOPIC | {"startingOffsets": "{"}, 'or {"topic": {"0": 23}} (it is no JSON: Expecting property name'),
        (TOPIC | {"startingOffsets": "[1]"}, "startingOffsets=[1]: it is written as earliest, latest"),
        (
            TOPIC | {"startingOffsets": '{"t": 1}'},
            'it is written as earliest, latest (of a stream) or {"topic": {"0": 23}}',
        ),
        (TOPIC | {"startingOffsets": '{"t": {"0": 1.5}}'}, "it is written as earliest"),
        (TOPIC | {"startingOffsets": '{"t": {"0": 1e400}}'}, "it is written as earliest"),
        (TOPIC | {"startingOffsets": '{"t": {"0": null}}'}, "it is written as earliest"),
        (SERVERS | {"assign": '{"t": "01"}'}, 'it is written as {"topic": [0, 1]}'),
        (SERVERS | {"assign": '{"t": []}'}, 'it is written as {"topic": [0, 1]}'),
        (SERVERS | {"assign": "{}"}, 'it is written as {"topic": [0, 1]}'),
        (TOPIC | {"startingTimestamp": str(2**63)}, "a time in milliseconds is needed"),
        (TOPIC | {"startingOffsets": '{"t": {"0": -3}}'}, "-3: an offset, -1 (latest) or -2 (earliest) is needed"),
        (TOPIC | {"startingTimestamp": "-1"}, "startingTimestamp: -1: a time in milliseconds is needed"),
        (TOPIC | {"endingOffsetsByTimestamp": '{"t": {"0": -1}}'}, "-1: a time in milliseconds is needed"),
        (TOPIC | {"startingOffsets": "latest"}, "nothing to read"),
        (TOPIC | {"endingOffsets": "earliest"}, "nothing to read"),
        (TOPIC | {"failOnDataLoss": "yes"}, "true or false"),
        (TOPIC | {"minPartitions": "0"}, "a number from 1 on"),
        (TOPIC | {"rows": "all"}, "one of records, decoded"),
        (TOPIC | {"latestOnly": "true"}, "needs rows=decoded"),
        (TOPIC | {"kafka.isolation.level": "none"}, "read_committed or read_uncommitted"),
        (TOPIC | {"startingOfsets": "earliest"}, "did you mean startingOffsets?"),
        (TOPIC | {"speed": "high"}, "unknown option speed: assign, cluster, clusters, endingOffsets, "),
        ({"clusters": json.dumps({"east": TOPIC | {"startingOffsets": "x"}})}, "clusters: east: startingOffsets=x: "),
        ({"clusters": json.dumps({"east": TOPIC | {"failOnDataLoss": False}})}, "failOnDataLoss is the same for all"),
        ({"clusters": '{"a": 1}'}, "a has no options of its own"),
        ({"clusters": "[1]"}, "1 has no options of its own"),
        ({"clusters": "7"}, "at least one is needed"),
        ({"clusters": json.dumps([TOPIC, TOPIC])}, "h:9092 is there twice"),
        (TOPIC | {"path": "p"}, "path=p: files are read by"),
    ],
)
def test_a_wrong_option_is_named(options: dict[str, str], said: str) -> None:
    with pytest.raises(SourceError) as caught:
        parse_options(options)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


WRONG = {
    "subscribe": (" ,", "a topic is needed"),
    "subscribePattern": ("[", "no regular expression"),
    "assign": ("t", '{"topic": [0, 1]}'),
    "startingOffsets": ("erliest", "earliest, latest (of a stream)"),
    "endingOffsets": ("latst", "latest or"),
    "startingTimestamp": ("yesterday", "a whole number"),
    "endingTimestamp": ("today", "a whole number"),
    "startingOffsetsByTimestamp": ("1", '{"topic": {"0": 1767225600000}}'),
    "endingOffsetsByTimestamp": ("1", '{"topic": {"0": 1767225600000}}'),
    "topicIds": ('{"t": 1}', '{"topic": "AAAAAAAAAAAAAAAAAAAAAQ"}'),
    "clusters": ("east", '{"name": {"kafka.bootstrap.servers": "host:9092"}}'),
    "rows": ("decode", "one of records, decoded"),
    "latestOnly": ("yes", "true or false"),
    "failOnDataLoss": ("no", "true or false"),
    "includeHeaders": ("1", "true or false"),
    "kafkaConsumer.pollTimeoutMs": ("1s", "a whole number"),
    "maxOffsetsPerTrigger": ("0", "a number from 1 on"),
    "maxRecordsPerPartition": ("-1", "a number from 1 on"),
    "minPartitions": ("many", "a whole number"),
    "privacy": ('{"hosts": "hide"}', "keep, drop, salt"),
    "privacySecret": ("secret", "a key in hexadecimal"),
    "startingOffsetsByTimestampStrategy": ("latst", "error or latest"),
}
"""Of each option a value that it cannot have, and what it can have."""


@pytest.mark.parametrize("is_streaming", [False, True, None])
def test_each_option_says_what_it_can_be(is_streaming: bool | None) -> None:
    assert WRONG.keys() == {*_NAMES.values()} - {*_WITHOUT_EFFECT, "cluster"}
    for option, (value, said) in WRONG.items():
        topic = SERVERS if option in ("subscribePattern", "assign") else TOPIC
        with pytest.raises(SourceError) as caught:
            parse_options(topic | {option: value}, is_streaming=is_streaming)
        text = str(caught.value)
        if is_streaming and option.startswith("ending"):
            said = "a stream has no end"
        assert text.startswith(option)
        assert said in text


def test_tasks_are_alike() -> None:
    rng = random.Random(1)
    ranges = [Range(0, "c", "t", number, 50, 50 + rng.choice((0, 1, 500, 100_000))) for number in range(60)]
    options = parse_options(TOPIC | {"minPartitions": "7"})
    packed = pack(ranges, options)
    assert len(packed) == 7
    sizes = [sum(each.size for each in task) for task in packed]
    assert max(sizes) < 1.5 * min(sizes)
    assert pack([], options) == []


def test_the_cause_is_found_in_what_spark_says_of_it() -> None:
    text = "job aborted\nTraceback ...\ngroupkeeper.pipeline.errors.SourceError: cluster c: gone\n\tat org.apache"
    assert cause_of(RuntimeError(text)) == "cluster c: gone"
    assert cause_of(RuntimeError("else")) is None


def test_of_what_java_says_the_reason_is_told() -> None:
    said = (
        "An error occurred while calling o58.getFileSystem.\n"
        ': org.apache.hadoop.fs.UnsupportedFileSystemException: No FileSystem for scheme "s3"\n'
        "\tat org.apache.hadoop.fs.FileSystem.getFileSystemClass(FileSystem.java:3586)"
    )
    assert first_line(RuntimeError(said)) == 'No FileSystem for scheme "s3"'
    nameless = "An error occurred while calling o1.x.\n: java.lang.NullPointerException\n\tat x"
    assert first_line(RuntimeError(nameless)) == "java.lang.NullPointerException"
    assert first_line(RuntimeError("one\ntwo")) == "one"
    caused = "failed\n\tat x\nCaused by: a.B: c\n\tat y\nCaused by: java.io.IOException: No space left on device\n"
    assert first_line(RuntimeError(caused)) == "failed: No space left on device"
    assert first_line(RuntimeError("")) == "RuntimeError"
