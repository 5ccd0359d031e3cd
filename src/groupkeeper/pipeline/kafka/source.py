"""The Python Data Source `groupkeeper`: partitions of Kafka clusters as rows, in batch and as a stream."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ContextDecorator
from types import TracebackType

import pyarrow as pa
from pyspark.sql import datasource
from pyspark.sql.types import StructType

from groupkeeper.coroutines import result_of
from groupkeeper.pipeline.decode.arrow import Origin, decode, latest_of_keys, places_of
from groupkeeper.pipeline.decode.raw import raw_batch, raw_schema
from groupkeeper.pipeline.decode.records import records_seen
from groupkeeper.pipeline.errors import SourceError
from groupkeeper.pipeline.kafka.fetching import Fetched, fetch
from groupkeeper.pipeline.kafka.options import EARLIEST, LATEST, ReadOptions, Start, parse_options
from groupkeeper.pipeline.kafka.planning import Range, by_cluster, pack, plan_or_raise
from groupkeeper.pipeline.tables import DECODED
from groupkeeper.pipeline.tables.schema import ddl_of

try:
    from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
except ImportError:  # Spark 4.1 only supports the latest offset, and reads everything in one batch with this trigger

    class SupportsTriggerAvailableNow:  # type: ignore[no-redef]
        """Without effect."""

    class ReadLimit:  # type: ignore[no-redef]
        """How much a batch may read."""

    class ReadAllAvailable(ReadLimit):  # type: ignore[no-redef]
        """Everything."""

    class ReadMaxRows(ReadLimit):  # type: ignore[no-redef]
        """At most `max_rows` records."""

        def __init__(self, max_rows: int) -> None:
            self.max_rows = max_rows


_READS_ONLY = 'format "groupkeeper" only reads: Spark writes to Kafka with format "kafka"'


class _BareErrors(ContextDecorator):
    """Raises a SourceError without traceback and context: Spark would show a worker's frames and earlier errors."""

    def __enter__(self) -> None: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, SourceError):
            raise error.with_traceback(None) from None


StreamOffsets = dict[str, dict[str, dict[str, int]]]
"""Offsets by cluster, topic and partition, as in a checkpoint."""


class GroupkeeperSource(datasource.DataSource):
    """For `spark.read` and `spark.readStream`, format "groupkeeper"; the options are in docs/pipeline.md."""

    @classmethod
    def name(cls) -> str:
        return "groupkeeper"

    def schema(self) -> str:
        with _BareErrors():
            options = parse_options(self.options, is_streaming=None)
        if options.rows == "decoded":
            return DECODED.ddl
        return ", ".join(f"`{field.name}` {ddl_of(field.type)}" for field in raw_schema(options.includes_headers))

    def reader(self, schema: StructType) -> datasource.DataSourceReader:
        with _BareErrors():
            return BatchReader(parse_options(self.options))

    def streamReader(self, schema: StructType) -> datasource.DataSourceStreamReader:  # noqa: N802
        with _BareErrors():
            return StreamReader(parse_options(self.options, is_streaming=True))

    def writer(self, schema: StructType, overwrite: bool) -> datasource.DataSourceWriter:
        raise SourceError(_READS_ONLY)

    def streamWriter(self, schema: StructType, overwrite: bool) -> datasource.DataSourceStreamWriter:  # noqa: N802
        raise SourceError(_READS_ONLY)


class SourceTask(datasource.InputPartition):
    """The ranges that one task reads."""

    def __init__(self, ranges: Sequence[Range]) -> None:
        super().__init__(list(ranges))


class BatchReader(datasource.DataSourceReader):
    """Everything between two offsets of each partition, both fixed when the read is planned."""

    def __init__(self, options: ReadOptions) -> None:
        self._options = options

    def partitions(self) -> Sequence[datasource.InputPartition]:
        with _BareErrors():
            return [SourceTask(ranges) for ranges in pack(result_of(plan_or_raise(self._options)), self._options)]

    def read(self, partition: datasource.InputPartition) -> Iterator[pa.RecordBatch]:
        with _BareErrors():
            yield from read_ranges(partition.value or (), self._options)


class StreamReader(datasource.DataSourceStreamReader, SupportsTriggerAvailableNow):
    """The partitions from the starting offsets on; new partitions are read from their log start."""

    def __init__(self, options: ReadOptions) -> None:
        self._options = options
        self._number_by_name: dict[str, int] = {}
        self._last: StreamOffsets | None = None
        self._reached: StreamOffsets | None = None

    def initialOffset(self) -> StreamOffsets:  # noqa: N802
        with _BareErrors():
            self._reached = _stream_offsets(self._plan(), starts=True)
        return self._reached

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        limit = self._options.max_offsets_per_trigger
        return ReadAllAvailable() if limit is None else ReadMaxRows(limit)

    def latestOffset(  # noqa: N802
        self, start: StreamOffsets | None = None, limit: ReadLimit | None = None
    ) -> StreamOffsets:
        with _BareErrors():
            latest = self._last or self._latest()
            start, limit = start or self._reached, limit or self.getDefaultReadLimit()
            if start is None or not isinstance(limit, ReadMaxRows):
                return latest
            return _limited(self._with_new_partitions(start, latest), latest, limit.max_rows)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        with _BareErrors():
            self._last = self._latest()

    @_BareErrors()
    def partitions(self, start: StreamOffsets, end: StreamOffsets) -> Sequence[datasource.InputPartition]:
        self._reached = end
        if not set(end) <= set(self._number_by_name):
            self._plan(Start(LATEST))
        start = self._with_new_partitions(start, end)
        ranges = [
            Range(self._number_by_name[name], name, topic, int(partition), start[name][topic][partition], last)
            for name, topics in end.items()
            for topic, partitions in topics.items()
            for partition, last in partitions.items()
        ]
        if self._options.fails_on_data_loss:
            _check_not_cut(ranges)
        elif any(each.size < 0 for each in ranges):
            ranges = self._from_the_begin(ranges)
        return [SourceTask(each) for each in pack([each for each in ranges if each.size > 0], self._options)]

    def read(self, partition: datasource.InputPartition) -> Iterator[pa.RecordBatch]:
        with _BareErrors():
            yield from read_ranges(partition.value or (), self._options)

    def _with_new_partitions(self, start: StreamOffsets, end: StreamOffsets) -> StreamOffsets:
        """The start offsets of all partitions in `end`; new partitions start at their log start."""
        known = {name: {topic: dict(own) for topic, own in topics.items()} for name, topics in start.items()}
        partitions = {(name, topic, number) for name in end for topic in end[name] for number in end[name][topic]}
        new = [one for one in partitions if one[2] not in known.get(one[0], {}).get(one[1], {})]
        first = _stream_offsets(self._plan(Start(EARLIEST)), starts=True) if new else {}
        for name, topic, number in new:
            at = min(first[name][topic][number], end[name][topic][number])
            known.setdefault(name, {}).setdefault(topic, {})[number] = at
        return known

    def _from_the_begin(self, ranges: Sequence[Range]) -> list[Range]:
        """The ranges; from its start if a log ends before the stream's offset: it was recreated or truncated."""
        first = _stream_offsets(self._plan(Start(EARLIEST)), starts=True)
        return [
            each._replace(start=min(first[each.name][each.topic][str(each.partition)], each.end))
            if each.size < 0
            else each
            for each in ranges
        ]

    def _latest(self) -> StreamOffsets:
        return _stream_offsets(self._plan(Start(LATEST)), starts=False)

    def _plan(self, start: Start | None = None) -> list[Range]:
        options = self._options
        if start is not None:
            options = options._replace(clusters=tuple(each._replace(start=start) for each in options.clusters))
        ranges = result_of(plan_or_raise(options))
        self._number_by_name |= {each.name: each.cluster for each in ranges}
        return ranges


def read_ranges(ranges: Sequence[Range], options: ReadOptions) -> Iterator[pa.RecordBatch]:
    """The rows of one task as Arrow batches, cluster after cluster. Raises SourceError."""
    for own in by_cluster(ranges):
        for fetched in fetch(own, options):
            yield from _rows(fetched, options)


def _rows(fetched: Fetched, options: ReadOptions) -> Iterator[pa.RecordBatch]:
    with fetched.naming():
        records = records_seen(fetched.batches, fetched.sets)
    if options.rows == "decoded":
        if options.latest_only:
            records = latest_of_keys(records)
        places = places_of([Origin(each.name, each.partition) for each in fetched.ranges])
        found = decode(records, places)
        yield from found if options.privacy is None else map(options.privacy.applied, found)
    else:
        origins = [(each.name, each.topic, each.partition) for each in fetched.ranges]
        with fetched.naming():
            batch = raw_batch(records, origins, options.includes_headers)
        yield batch


def _check_not_cut(ranges: Sequence[Range]) -> None:
    """Raises SourceError if a stream's offset is past the end of the log."""
    for each in ranges:
        if each.size < 0:
            raise SourceError(
                f"{each}: the stream is at offset {each.start}, but the log now ends at {each.end}: it was "
                "truncated or recreated: use another checkpointLocation, or set failOnDataLoss=false to continue there"
            )


def _stream_offsets(ranges: Sequence[Range], *, starts: bool) -> StreamOffsets:
    found: StreamOffsets = {}
    for each in ranges:
        partitions = found.setdefault(each.name, {}).setdefault(each.topic, {})
        partitions[str(each.partition)] = each.start if starts else each.end
    return found


def _limited(start: StreamOffsets, latest: StreamOffsets, limit: int) -> StreamOffsets:
    """Offsets between `start` and `latest`, at most `limit` records after `start`, each partition by its share."""
    ahead = {
        (name, topic, partition): max(0, last - start[name][topic][partition])
        for name, topics in latest.items()
        for topic, partitions in topics.items()
        for partition, last in partitions.items()
    }
    total = sum(ahead.values())
    if total <= limit:
        return latest
    found: StreamOffsets = {}
    passed = 0
    for (name, topic, partition), size in ahead.items():
        share = (passed + size) * limit // total - passed * limit // total  # the remainder goes to the next one
        passed += size
        found.setdefault(name, {}).setdefault(topic, {})[partition] = start[name][topic][partition] + share
    return found
