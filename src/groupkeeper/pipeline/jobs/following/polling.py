"""Polls a cluster from this process: the stream reader without a Spark query around it."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from groupkeeper.pipeline.errors import SourceError
from groupkeeper.pipeline.jobs.history import Aside
from groupkeeper.pipeline.kafka.options import ReadOptions
from groupkeeper.pipeline.kafka.planning import RECORDS_WORTH_A_TASK, Range
from groupkeeper.pipeline.kafka.source import StreamOffsets, StreamReader, read_ranges
from groupkeeper.pipeline.kafka.written import write

T = TypeVar("T")


class _Over(Exception):
    """The polling was stopped during a read."""


class Polling:
    """Has the part of Spark's StreamingQuery that is needed here. `read_much` lets tasks of Spark read ranges that are
    large enough, all of them if it `has_executors`; `append` gets the files written to `folder`, which Output calls
    `directory`.
    """

    def __init__(
        self, name: str, options: ReadOptions, directory: str, folder: Path, *, interval_s: float,
        read_much: Callable[[Sequence[Range]], Aside], append: Callable[[Aside], None],
        has_executors: bool = False,
    ) -> None:  # fmt: skip
        self._reader = StreamReader(options)
        self._options = options
        self._directory, self._folder = directory, folder
        self._interval_s = interval_s
        self._has_executors = has_executors
        self._read_much, self._append = read_much, append
        self._error: Exception | None = None
        self._progress: tuple[StreamOffsets, float] | None = None
        """To where it has come, and how many seconds the last read took."""
        self._asked_at: float | None = None
        """Since when the cluster has owed an answer; None: it owes none."""
        self.answer_s = 0.0
        """How long its last answer took."""
        self._stop = threading.Event()
        self._woken = threading.Event()
        self._appending = threading.Lock()
        self._thread = threading.Thread(target=self._run, name=f"groupkeeper {name}", daemon=True)
        self._thread.start()

    @property
    def isActive(self) -> bool:  # noqa: N802
        return self._thread.is_alive()

    def exception(self) -> Exception | None:
        return self._error

    @property
    def lastProgress(self) -> dict[str, Any] | None:  # noqa: N802
        if self._progress is None:
            return None
        reached, took_s = self._progress
        return {"batchDuration": round(took_s * 1000), "sources": [{"endOffset": json.dumps(reached)}]}

    @property
    def silence_s(self) -> float:
        """For how long the cluster has not answered; 0: no request is waiting."""
        asked_at = self._asked_at
        return 0.0 if asked_at is None else time.monotonic() - asked_at

    def wake(self) -> None:
        """Read now, without waiting until the next read is due."""
        self._woken.set()

    def stop(self) -> None:
        """Appends nothing from now on. A running read ends by itself."""
        self._stop.set()
        self._woken.set()
        with self._appending:
            pass

    def _run(self) -> None:
        try:
            at = self._answered(self._reader.initialOffset)
            while not self._stop.is_set():
                self._woken.clear()
                began = time.monotonic()
                end = self._answered(partial(self._reader.latestOffset, at))
                if end != at:
                    tasks = self._answered(partial(self._reader.partitions, at, end))
                    self._take([each for task in tasks for each in task.value or ()])
                    at = end
                self._progress = at, time.monotonic() - began
                if not self._stop.is_set():
                    self._woken.wait(max(0.0, began + self._interval_s - time.monotonic()))
        except _Over:
            pass
        except (SourceError, PySparkException, Py4JError, OSError) as error:
            self._error = error

    def _answered(self, ask: Callable[[], T]) -> T:
        self._asked_at = began = time.monotonic()
        found = ask()
        self.answer_s, self._asked_at = time.monotonic() - began, None
        return found

    def _take(self, ranges: Sequence[Range]) -> None:
        if sum(each.size for each in ranges) >= (1 if self._has_executors else RECORDS_WORTH_A_TASK):
            aside = self._read_much(ranges)
        else:
            aside = Aside(self._directory, write(self._while_wanted(read_ranges(ranges, self._options)), self._folder))
        # A fetch uses the topic's name: the topic may be recreated between the reads of offsets and of records.
        self._answered(self._reader.check_topics)
        with self._appending:
            if self._stop.is_set():
                raise _Over
            self._append(aside)

    def _while_wanted(self, rows: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        while (batch := self._answered(partial(next, rows, None))) is not None:
            if self._stop.is_set():
                raise _Over
            yield batch
