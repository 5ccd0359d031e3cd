"""The files of a checkpoint as Spark writes them: `offsets/N` (formats v1 and v2) and `sources/N/0`."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from groupkeeper.client.admin.types import TopicPartition
from groupkeeper.pipeline.errors import SourceError

Offsets = Mapping[TopicPartition, int | None]
"""The next offset to read of each partition of a Kafka source. None: the checkpoint has null or a negative number."""

ByCluster = Mapping[str | None, Offsets]
"""The offsets of a source by cluster. The source `groupkeeper` names clusters as its options do, or by their ids;
Spark's own source reads one cluster, whose key is None.
"""

_VERSIONS = ("v1", "v2")
_CLUSTER_ID = re.compile(r"[A-Za-z0-9_-]{22}")
_NOTHING = "-"
"""Stands for the offset of a source that has had no data."""


class CheckpointBatch(NamedTuple):
    """The offsets at which a batch ends, by the name that Spark gives to each Kafka source; None: the source had no
    records yet. `others`: the number of sources that are not Kafka's.
    """

    sources: Mapping[str, ByCluster | None]
    others: int


def parse_batch(text: str, where: str) -> CheckpointBatch:
    """Parses a file of `offsets/`; `where` names it in errors. Raises SourceError."""
    lines = text.split("\n")
    version = lines[0].strip()
    if version not in _VERSIONS:
        raise SourceError(f"{where}: {_strange(version)}")
    if len(lines) < 2:
        raise SourceError(f"{where}: it ends after its first line: was it copied while the query wrote it?")
    found: dict[str, ByCluster | None] = {}
    others = 0
    for number, line in enumerate(each for each in lines[2:] if each.strip()):
        name, offset = (str(number), line.strip()) if version == "v1" else _named(line.strip(), where)
        if offset == _NOTHING:
            found[name] = None
        elif (offsets := offsets_of(offset, where)) is None:
            others += 1
        else:
            found[name] = offsets
    return CheckpointBatch(found, others)


def parse_begin(text: str, where: str) -> ByCluster | None:
    """Parses a file `sources/N/0`: the offsets at which a Kafka source began; None: the source is not Kafka's. Raises
    SourceError for a damaged file of a Kafka source.
    """
    version, newline, offset = text.lstrip("\0").partition("\n")  # a byte 0 goes before it, for Spark 2.0
    return offsets_of(offset.strip(), where) if newline and version.strip() in _VERSIONS else None


def parse_query_id(text: str) -> str | None:
    """The id of the query, from the file `metadata`; None: it has no id."""
    try:
        found = json.loads(text)
    except ValueError:
        return None
    query_id = found.get("id") if isinstance(found, dict) else None
    return query_id if isinstance(query_id, str) else None


def offsets_of(text: str, where: str) -> ByCluster | None:
    """Offsets of Spark's Kafka source, `{"topic": {"0": 23}}`, or of the source `groupkeeper`, which has the same for
    each cluster, `{"cluster": {"topic": {"0": 23}}}`; None: they are of another source. Raises SourceError.
    """
    try:
        found = json.loads(text)
    except ValueError:
        if text.startswith("{"):
            raise SourceError(f"{where}: its offsets are no JSON: {_cut(text)}") from None
        return None
    if _is_by_cluster(found):
        return {name: _offsets(topics, where) for name, topics in found.items()}
    return {None: _offsets(found, where)} if _is_kafkas(found) else None


def of_cluster(found: ByCluster, names: Collection[str]) -> Offsets | None:
    """The offsets that a source reads from the cluster with these names (its id is one); None: none that is known. If a
    source reads only one cluster and does not call it by an id, it is taken for this cluster.
    """
    known = [name for name in found if name is None or name in names]
    if not known and len(found) == 1:
        known = [name for name in found if name is not None and not _CLUSTER_ID.fullmatch(name)]
    return found[known[0]] if known else None


def other_clusters(found: ByCluster, names: Collection[str]) -> str:
    """Explains why `of_cluster` has found no offsets of this cluster."""
    return (
        f"it reads {' and '.join(sorted(filter(None, found)))}, and this cluster is {' or '.join(names) or 'unnamed'}"
    )


def _offsets(topics: Mapping[str, Mapping[str, Any]], where: str) -> Offsets:
    return {
        TopicPartition(topic, int(number)): _offset(offset, f"{where}: {topic}-{number}")
        for topic, own in topics.items()
        for number, offset in own.items()
    }


def _is_by_cluster(found: Any) -> bool:
    return isinstance(found, dict) and bool(found) and all(topics and _is_kafkas(topics) for topics in found.values())


def _is_kafkas(found: Any) -> bool:
    return isinstance(found, dict) and all(
        isinstance(own, dict) and all(number.isascii() and number.isdecimal() for number in own)
        for own in found.values()
    )


def _offset(found: Any, where: str) -> int | None:
    """The offset; None: it is null or negative. Raises SourceError for other values."""
    if found is None:
        return None
    if not isinstance(found, int) or isinstance(found, bool):
        raise SourceError(f"{where}: expected an offset, not {_cut(json.dumps(found))}")
    return found if found >= 0 else None


def _named(line: str, where: str) -> tuple[str, str]:
    name, colon, offset = line.partition(":")
    if not colon:
        raise SourceError(f"{where}: expected SOURCE:OFFSETS, not {_cut(line)}")
    return name, offset


def _strange(version: str) -> str:
    if not version:
        return "it is empty: was it copied while the query wrote it?"
    if version[:1] == "v" and version[1:].isdecimal():
        return f"its format is {version}, and known are {' and '.join(_VERSIONS)}: a newer Spark has written it"
    return f"it is no file of offsets: it begins with {_cut(version)}"


def _cut(text: str) -> str:
    return repr(text if len(text) <= 60 else f"{text[:60]}…")
