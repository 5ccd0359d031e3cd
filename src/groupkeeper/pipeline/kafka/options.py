"""Options of the source, with the names that Spark's Kafka connector uses."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from groupkeeper.pipeline.decode.privacy import Privacy
from groupkeeper.pipeline.errors import SourceError
from groupkeeper.protocol import OFFSETS_TOPIC

EARLIEST = -2
LATEST = -1

OffsetsByPartition = Mapping[tuple[str, int], int]
_NONE: OffsetsByPartition = MappingProxyType({})


class Start(NamedTuple):
    """From where, or up to where, to read: offsets or times of single partitions, and a default for the others.

    `offset` is EARLIEST or LATEST; `timestamp_ms`, if not None, is used instead. A time stands for the first record at
    or after it.
    """

    offset: int
    timestamp_ms: int | None = None
    offset_by_partition: OffsetsByPartition = _NONE
    timestamp_by_partition: OffsetsByPartition = _NONE


class ClusterOptions(NamedTuple):
    """A cluster to read."""

    name: str | None
    """None: rows have its cluster id."""
    properties: Mapping[str, str]
    """Kafka's client properties by their Java names, bootstrap.servers among them."""
    topics: tuple[str, ...] | None
    """None: `pattern` or `partitions` is given instead."""
    pattern: str | None
    """A regular expression for names of topics; None: not given."""
    partitions: Mapping[str, tuple[int, ...]] | None
    """By topic; None: not given."""
    start: Start
    end: Start
    topic_ids: Mapping[str, str] = MappingProxyType({})
    """The expected ids of topics, by name: a topic with another id is refused."""

    @property
    def bootstrap_servers(self) -> str:
        return self.properties["bootstrap.servers"]

    @property
    def reads_committed(self) -> bool:
        return self.properties.get("isolation.level", "read_committed") == "read_committed"

    @property
    def title(self) -> str:
        """The cluster's name in errors."""
        return self.name or self.bootstrap_servers

    def failing(self, error: Exception) -> str:
        """The error's text with the cluster's name, which is not repeated if the text begins with it."""
        text = str(error)
        return f"cluster {text}" if text.startswith(f"{self.title}: ") else f"cluster {self.title}: {text}"


class ReadOptions(NamedTuple):
    """All options of a read."""

    clusters: tuple[ClusterOptions, ...]
    rows: str = "records"
    latest_only: bool = False
    includes_headers: bool = False
    fails_on_data_loss: bool = True
    fails_without_later_record: bool = True
    tasks: int | None = None
    """The minimum number of tasks; None: the source chooses."""
    max_records_per_task: int | None = None
    """None: no limit is given."""
    max_offsets_per_trigger: int | None = None
    """The most offsets of a stream's batch; None: no limit."""
    poll_timeout_ms: int = 120_000
    checks_crcs: bool = True
    privacy: Privacy | None = None
    """How personal data in decoded rows is kept; None: no choice, everything is kept."""


_PER_CLUSTER = (
    "subscribe", "subscribePattern", "assign", "startingOffsets", "endingOffsets", "startingTimestamp",
    "endingTimestamp", "startingOffsetsByTimestamp", "endingOffsetsByTimestamp", "topicIds",
)  # fmt: skip
_OWN = ("cluster", "clusters", "rows", "latestOnly")
_COMMON = (
    "failOnDataLoss", "includeHeaders", "kafkaConsumer.pollTimeoutMs", "maxOffsetsPerTrigger", "maxRecordsPerPartition",
    "minPartitions", "privacy", "privacySecret", "startingOffsetsByTimestampStrategy",
)  # fmt: skip
_WITHOUT_EFFECT = ("fetchOffset.numRetries", "fetchOffset.retryIntervalMs", "groupIdPrefix")
_SELECTIONS = ("subscribe", "subscribePattern", "assign")
_NAMES = {name.lower(): name for name in (*_PER_CLUSTER, *_OWN, *_COMMON, *_WITHOUT_EFFECT)}
_ROWS = ("records", "decoded")
_PREFIX = "kafka."
_SERVERS = "kafka.bootstrap.servers"
_LARGEST = 2**63 - 1

_FORM_OF_CLUSTERS = '{"name": {"kafka.bootstrap.servers": "host:9092"}}'
_FORM_OF_PARTITIONS = '{"topic": [0, 1]}'
_FORM_OF_OFFSETS = '{"topic": {"0": 23}}'
_FORM_OF_TIMES = '{"topic": {"0": 1767225600000}}'
_FORM_OF_IDS = '{"topic": "AAAAAAAAAAAAAAAAAAAAAQ"}'
_FORM_OF_PRIVACY = '{"hosts": "drop"}'


def parse_options(options: Mapping[str, str], *, is_streaming: bool | None = False) -> ReadOptions:
    """The parsed options; `is_streaming` None: it is not known yet whether a stream will be read.

    Raises SourceError, which names the wrong option.
    """
    given = _named(options)
    rows = given.get("rows", "records")
    if rows not in _ROWS:
        raise SourceError(f"rows={rows}: one of {', '.join(_ROWS)} is needed")
    latest_only = _boolean(given, "latestOnly", False)
    if latest_only and rows != "decoded":
        raise SourceError("latestOnly=true needs rows=decoded")
    strategy = given.get("startingOffsetsByTimestampStrategy", "error").lower()
    if strategy not in ("error", "latest"):
        raise SourceError(f"startingOffsetsByTimestampStrategy={strategy}: error or latest is needed")
    clusters = _clusters(given, rows, is_streaming)
    return ReadOptions(
        clusters=clusters,
        rows=rows,
        latest_only=latest_only,
        includes_headers=_boolean(given, "includeHeaders", False),
        fails_on_data_loss=_boolean(given, "failOnDataLoss", True),
        fails_without_later_record=strategy == "error",
        tasks=_number(given, "minPartitions"),
        max_records_per_task=_number(given, "maxRecordsPerPartition"),
        max_offsets_per_trigger=_number(given, "maxOffsetsPerTrigger"),
        poll_timeout_ms=_number(given, "kafkaConsumer.pollTimeoutMs") or 120_000,
        checks_crcs=_boolean(given, "kafka.check.crcs", True),
        privacy=parse_privacy(given),
    )


def parse_privacy(given: Mapping[str, str]) -> Privacy | None:
    """The privacy that the options choose; None: none. A secret without modes is for the modes that the tables already
    have. Raises SourceError.
    """
    secret = given.get("privacySecret")
    try:
        key = None if secret is None else bytes.fromhex(secret)
    except ValueError:
        raise SourceError("privacySecret: a key in hexadecimal is needed") from None
    if "privacy" not in given:
        return None if key is None else Privacy(key=key)
    return Privacy.of({kind: str(mode) for kind, mode in _json_object("privacy", given, _FORM_OF_PRIVACY).items()}, key)


def _named(options: Mapping[str, Any]) -> dict[str, str]:
    """The options by their documented names; Spark may pass lower-case names. Raises SourceError for unknown ones."""
    given: dict[str, str] = {}
    for name, value in options.items():
        folded = name.lower()
        text = value if isinstance(value, str) else json.dumps(value)
        if folded.startswith(_PREFIX):
            given[folded] = text
        elif folded in _NAMES:
            given[_NAMES[folded]] = text
        elif folded == "path":  # of load("…")
            raise SourceError(f"path={text}: files are read by groupkeeper.pipeline.transforms.decoded.decode_archive")
        else:
            near = difflib.get_close_matches(folded, _NAMES, 1)
            known = ", ".join(sorted([*_NAMES.values(), f"{_PREFIX}*"], key=str.lower))
            raise SourceError(f"unknown option {name}: " + (f"did you mean {_NAMES[near[0]]}?" if near else known))
    return given


def _clusters(given: dict[str, str], rows: str, is_streaming: bool | None) -> tuple[ClusterOptions, ...]:
    if "clusters" not in given:
        return (_cluster(given.get("cluster"), given, rows, is_streaming),)
    if "cluster" in given:
        raise SourceError("cluster and clusters cannot both be given")
    found = _json("clusters", given, _FORM_OF_CLUSTERS)
    if not found or not isinstance(found, dict | list):
        raise SourceError(f"clusters={given['clusters']}: at least one is needed, as {_FORM_OF_CLUSTERS}")
    clusters = []
    for name, own in found.items() if isinstance(found, dict) else [(None, own) for own in found]:
        if not isinstance(own, dict):
            raise SourceError(f"clusters: {name or own} has no options of its own, as in {_FORM_OF_CLUSTERS}")
        try:
            clusters.append(_one_of_several(name, _named(own), given, rows, is_streaming))
        except SourceError as error:
            title = name or own.get("cluster") or own.get(_SERVERS) or f"number {len(clusters) + 1}"
            raise SourceError(f"clusters: {title}: {error}") from None
    titles = [each.title for each in clusters]
    if twice := [title for title in titles if titles.count(title) > 1]:
        raise SourceError(f"clusters: {twice[0]} is there twice")
    return tuple(clusters)


def _one_of_several(
    name: str | None, own: dict[str, str], given: dict[str, str], rows: str, is_streaming: bool | None
) -> ClusterOptions:
    for option in own:
        if option not in (*_PER_CLUSTER, "cluster") and not option.startswith(_PREFIX):
            raise SourceError(f"{option} is the same for all clusters: give it beside the option clusters")
    shared = {key: value for key, value in given.items() if key != "clusters"}
    if any(key in own for key in _SELECTIONS):
        shared = {key: value for key, value in shared.items() if key not in _SELECTIONS}
    return _cluster(name or own.get("cluster"), shared | own, rows, is_streaming)


def _cluster(name: str | None, given: dict[str, str], rows: str, is_streaming: bool | None) -> ClusterOptions:
    if is_streaming and (wrong := [each for each in given if each.startswith("ending")]):
        raise SourceError(f"{wrong[0]}: a stream has no end: leave it out")
    properties = {key.removeprefix(_PREFIX): value for key, value in given.items() if key.startswith(_PREFIX)}
    if not properties.get("bootstrap.servers", "").strip():
        near = difflib.get_close_matches(_SERVERS, [each for each in given if each != _SERVERS], 1)
        hint = f", and {near[0]} is none of Kafka's properties" if near else ""
        raise SourceError(f"{_SERVERS} is missing, as host:port,host:port{hint}")
    isolation = properties.get("isolation.level", "read_committed")
    if isolation not in ("read_committed", "read_uncommitted"):
        raise SourceError(f"kafka.isolation.level={isolation}: read_committed or read_uncommitted is needed")
    for option in ("kafka.fetch.max.bytes", "kafka.max.partition.fetch.bytes"):
        _number(given, option)
    selections = [key for key in _SELECTIONS if key in given]
    if len(selections) > 1:
        raise SourceError(f"{' and '.join(selections)} cannot both be given")
    if not selections and rows == "decoded":
        given = given | {"subscribe": OFFSETS_TOPIC}
    elif not selections:
        raise SourceError(f"one of {', '.join(_SELECTIONS)} is needed: it names the topics")
    topics = tuple(dict.fromkeys(part.strip() for part in given.get("subscribe", "").split(",") if part.strip()))
    if "subscribe" in given and not topics:
        raise SourceError("subscribe: a topic is needed, or several with commas between")
    default = EARLIEST if rows == "decoded" or not is_streaming else LATEST
    return ClusterOptions(
        name=name,
        properties=properties,
        topics=topics or None,
        pattern=_pattern(given["subscribePattern"]) if "subscribePattern" in given else None,
        partitions=_assign(given) if "assign" in given else None,
        start=_start(given, "starting", default, is_streaming),
        end=_start(given, "ending", LATEST, is_streaming),
        topic_ids=_topic_ids(given) if "topicIds" in given else {},
    )


def _pattern(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise SourceError(f"subscribePattern={text}: it is no regular expression: {error}") from None
    return text


def _assign(given: Mapping[str, str]) -> dict[str, tuple[int, ...]]:
    found = _json_object("assign", given, _FORM_OF_PARTITIONS)
    if not found or not all(isinstance(own, list) and own and all(map(_is_whole, own)) for own in found.values()):
        raise _malformed("assign", given["assign"], _FORM_OF_PARTITIONS)
    return {topic: tuple(numbers) for topic, numbers in found.items()}


def _topic_ids(given: Mapping[str, str]) -> dict[str, str]:
    found = _json_object("topicIds", given, _FORM_OF_IDS)
    if not all(isinstance(own, str) for own in found.values()):
        raise _malformed("topicIds", given["topicIds"], _FORM_OF_IDS)
    return found


def _start(given: Mapping[str, str], which: str, default: int, is_streaming: bool | None) -> Start:
    times, time, name = f"{which}OffsetsByTimestamp", f"{which}Timestamp", f"{which}Offsets"
    offsets = given.get(name)
    if time in given:
        return Start(default, _at_least(0, time, _integer(time, given[time])))
    if times in given:
        return Start(default, timestamp_by_partition=_by_partition(times, given, 0, _FORM_OF_TIMES))
    if offsets is None:
        return Start(default)
    if offsets.strip().lower() == "latest":
        if which == "starting" and is_streaming is False:
            raise SourceError("startingOffsets=latest: there would be nothing to read: earliest is the default")
        return Start(LATEST)
    if offsets.strip().lower() == "earliest":
        if which == "ending":
            raise SourceError("endingOffsets=earliest: there would be nothing to read: latest is the default")
        return Start(EARLIEST)
    words = "latest" if which == "ending" else "earliest, latest (of a stream)"
    return Start(default, offset_by_partition=_by_partition(name, given, EARLIEST, f"{words} or {_FORM_OF_OFFSETS}"))


def _by_partition(name: str, given: Mapping[str, str], least: int, form: str) -> dict[tuple[str, int], int]:
    found = _json_object(name, given, form)
    try:
        rows = [(topic, int(number), value) for topic, own in found.items() for number, value in own.items()]
    except (AttributeError, ValueError):
        raise _malformed(name, given[name], form) from None
    if not all(_is_whole(value) for *_, value in rows):
        raise _malformed(name, given[name], form)
    return {(topic, number): _at_least(least, name, value) for topic, number, value in rows}


def _is_whole(found: object) -> bool:
    return isinstance(found, int) and not isinstance(found, bool)


def _at_least(least: int, name: str, value: int) -> int:
    """Refuses lower numbers, which have a special meaning in Kafka's requests, or none, and those that no log has."""
    if not least <= value <= _LARGEST:
        kind = "an offset, -1 (latest) or -2 (earliest)" if least else "a time in milliseconds"
        raise SourceError(f"{name}: {value}: {kind} is needed")
    return value


def _json_object(name: str, given: Mapping[str, str], form: str) -> dict[str, Any]:
    found = _json(name, given, form)
    if not isinstance(found, dict):
        raise _malformed(name, given[name], form)
    return found


def _json(name: str, given: Mapping[str, str], form: str) -> object:
    try:
        return json.loads(given[name])
    except json.JSONDecodeError as error:
        is_meant = given[name].lstrip()[:1] in ("{", "[")
        why = f" (it is no JSON: {error.msg} at column {error.colno})" if is_meant else ""
        raise _malformed(name, given[name], f"{form}{why}") from None


def _malformed(name: str, text: str, form: str) -> SourceError:
    return SourceError(f"{name}={text}: it is written as {form}")


def _boolean(given: Mapping[str, str], name: str, default: bool) -> bool:
    text = given.get(name, str(default)).strip().lower()
    if text not in ("true", "false"):
        raise SourceError(f"{name}={text}: true or false is needed")
    return text == "true"


def _number(given: Mapping[str, str], name: str) -> int | None:
    if name not in given:
        return None
    value = _integer(name, given[name])
    if not 1 <= value <= _LARGEST:
        raise SourceError(f"{name}={value}: a number from 1 on is needed")
    return value


def _integer(name: str, text: str) -> int:
    try:
        return int(text.strip())
    except ValueError:
        raise SourceError(f"{name}={text}: a whole number is needed") from None
