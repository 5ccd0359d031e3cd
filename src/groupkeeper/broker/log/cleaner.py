"""The log cleaner: deletes old segments and compacts compacted topics, in small steps between other work."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from logging import getLogger
from time import perf_counter, thread_time
from typing import TypeVar

from groupkeeper.broker.log.cleanable import Dirty, active_is_heavy, dirty_part, expired_count, is_outdated
from groupkeeper.broker.log.compaction import Cleaned, Compaction
from groupkeeper.broker.log.partition_log import PartitionLog
from groupkeeper.broker.log.sealed_segments import save_aborted
from groupkeeper.broker.log.segment import file_name
from groupkeeper.broker.log.segment_files import CLEANED, INDEXES, LOG
from groupkeeper.broker.log.topics import Topic, Topics
from groupkeeper.broker.settings.config import Config
from groupkeeper.broker.storage.directory import sync_file
from groupkeeper.broker.storage.open_files import OpenFiles
from groupkeeper.protocol import INTERNAL_TOPICS
from groupkeeper.protocol.errors import KafkaError
from groupkeeper.protocol.record_batch import CorruptRecord

_log = getLogger("groupkeeper.broker")

CLEANED_OFFSETS = "cleaner-offset-checkpoint"
_TURN_S = 0.001
_PAUSE_S = 0.001
_PAUSES_WHEN_BUSY = 8
_LEAST_PAUSE_MS = 10
_LONGEST_PAUSE_MS = 600_000
_MOST_DOUBLINGS = 16
_LOGS_PER_TURN = 500
_BYTES_PER_KEY = 220
"""Memory for a key of 40 bytes: its entry in a dictionary, and its offset in a set."""

T = TypeVar("T")


class LogCleaner:
    """Applies the cleanup policies of all topics while the broker runs.

    Attributes:
        failures: rounds in a row that ended with an error.
        given_up: logs that are not compacted until the next start; Kafka calls them uncleanable.
    """

    def __init__(
        self,
        topics: Topics,
        config: Config,
        files: OpenFiles,
        now_ms: Callable[[], int],
        is_being_read: Callable[[PartitionLog], bool],
    ) -> None:
        """`is_being_read`: whether a coordinator is reading a log piece by piece."""
        self._topics = topics
        self._config = config
        self._files = files
        self._now_ms = now_ms
        self._is_being_read = is_being_read
        self._cleaned = topics.checkpoint(CLEANED_OFFSETS)
        self.failures = 0
        self.given_up: set[PartitionLog] = set()
        self._waiting_files: list[tuple[int, str]] = []
        self._task: asyncio.Task[None] | None = None
        self._is_compacting = asyncio.Lock()

    def start(self) -> None:
        """Starts cleaning in the background."""
        self._topics.on_deleted.append(self._forget)
        self._task = asyncio.get_running_loop().create_task(self._work())

    async def stop(self) -> None:
        """Stops cleaning; drops a running compaction, which has changed nothing yet."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _work(self) -> None:
        retention_ms = self._now_ms() + self._config.log_initial_task_delay_ms
        expiration_ms = self._now_ms()
        sync_ms = self._now_ms() + self._config.log_flush_offset_checkpoint_interval_ms
        while True:
            await asyncio.sleep(self._pause_ms() / 1000)
            try:
                now_ms = self._now_ms()
                if now_ms >= retention_ms:
                    retention_ms = now_ms + self._config.log_retention_check_interval_ms
                    await self.delete_old(now_ms)
                if now_ms >= expiration_ms:
                    expiration_ms = now_ms + self._config.producer_id_expiration_check_interval_ms
                    async for log in self._logs():
                        log.producers.expire(now_ms)
                if now_ms >= sync_ms:
                    sync_ms = now_ms + self._config.log_flush_offset_checkpoint_interval_ms
                    await self.sync()
                if self._config.log_cleaner_enable:
                    await self.compact(now_ms)
                await self._remove_retired(now_ms)
                self.failures = 0
            except Exception:
                self.failures += 1
                _log.exception("the log cleaner has failed; it tries again in %g s", self._pause_ms() / 1000)

    def _pause_ms(self) -> int:
        """Milliseconds until the next round: the shortest interval of all work, doubled for each failure in a row."""
        often_ms = (
            self._config.log_cleaner_backoff_ms,
            self._config.log_retention_check_interval_ms,
            self._config.producer_id_expiration_check_interval_ms,
            self._config.log_flush_offset_checkpoint_interval_ms,
        )
        pause_ms = max(min(often_ms), _LEAST_PAUSE_MS)
        return min(pause_ms << min(self.failures, _MOST_DOUBLINGS), max(pause_ms, _LONGEST_PAUSE_MS))

    # ------------------------------------------------------------------ retention

    async def delete_old(self, now_ms: int) -> int:
        """Deletes segments by `retention.ms` and `retention.bytes`; returns how many were deleted."""
        total = 0
        async for log in self._logs():
            with _logged(f"{log!r}: cannot remove old segments"):
                if "delete" in log.config.cleanup_policy and not self._is_busy(log):
                    total += _delete_old(log, now_ms)
        if total:
            with _logged("cannot write the log start offsets"):  # else they follow from the remaining segments
                await self._topics.write_start_offsets()
        return total

    async def _remove_retired(self, now_ms: int) -> None:
        async for log in self._logs():
            retired = log.take_retired()
            due_ms = now_ms + log.config.file_delete_delay_ms
            self._waiting_files += [(due_ms, path) for path in retired]
        due = [path for due_ms, path in self._waiting_files if due_ms <= now_ms]
        self._waiting_files = [one for one in self._waiting_files if one[0] > now_ms]
        if due:
            await asyncio.to_thread(_unlink_all, due)

    # ------------------------------------------------------------------ power failures

    async def sync(self) -> None:
        """Flushes closed segments to disk, and stores the log start offset and the recovery point of each log."""
        async for log in self._logs():
            if log.recovery_point < log.segments[-1].base_offset:
                with _logged(f"cannot write the closed segments of {log!r}"):
                    await asyncio.to_thread(log.sync)
        with _logged("cannot write the log start offsets"):
            await self._topics.write_start_offsets()
        with _logged("cannot write the recovery points"):
            await self._topics.write_recovery_points()

    # ------------------------------------------------------------------ compaction

    async def compact(self, now_ms: int) -> int:
        """Compacts every log that is worth it; returns how many passes were made."""
        passes = 0
        async with self._is_compacting:
            async for log in self._logs():
                if log.config.is_compacted and log not in self.given_up:
                    passes += await self._compact_if_worth(log, now_ms)
        return passes

    async def _compact_if_worth(self, log: PartitionLog, now_ms: int) -> bool:
        cleaned = self._cleaned.offsets.get((log.topic, log.index), 0)
        least_bytes = self._config.groupkeeper_internal_topics_roll_bytes
        try:
            if self._is_busy(log):
                return False
            if log.topic in INTERNAL_TOPICS and active_is_heavy(log, cleaned, least_bytes):
                log.roll()
            dirty = dirty_part(log, cleaned, now_ms)
            if dirty is None or not (dirty.is_due or dirty.ratio > log.config.min_cleanable_dirty_ratio):
                return False
            end_offset = await self._compact_log(log, dirty, now_ms)
        except Exception as error:
            if log.failure is not None:  # the topic was deleted meanwhile
                return False
            if isinstance(error, OSError):
                _log.warning("%r: cannot be compacted now: %s", log, error)
                return False
            unexpected = None if isinstance(error, CorruptRecord | KafkaError) else error
            text = "%r: cannot be compacted, skipping it until the next start: %s"
            _log.error(text, log, str(error) or type(error).__name__, exc_info=unexpected)
            self.given_up.add(log)
            return False
        if end_offset is None or self._topics.partition(log.topic, log.index) is not log:
            return False
        with _logged("cannot write the offsets up to which logs are compacted"):
            await self._cleaned.replace_aside({**self._cleaned.offsets, (log.topic, log.index): end_offset})
        return True

    async def _compact_log(self, log: PartitionLog, dirty: Dirty, now_ms: int) -> int | None:
        """One pass; returns where it ended, None when the log changed meanwhile. Raises CorruptRecord, OSError."""
        started, before = perf_counter(), sum(segment.size for segment in dirty.segments)
        compaction = Compaction(
            log,
            dirty.segments,
            dirty_offset=dirty.dirty_offset,
            end_offset=dirty.end_offset,
            now_ms=now_ms,
            max_keys=max(self._config.log_cleaner_dedupe_buffer_size // _BYTES_PER_KEY, 1),
            files=self._files,
        )
        await _in_turns(compaction.survey_keys())
        after = 0
        for group in list(compaction.groups()):
            seen = len(compaction.survey.observed), len(compaction.survey.gone)
            try:
                cleaned = await _in_turns(compaction.write(group))
                assert cleaned is not None
                save_aborted(cleaned.new, compaction.survey.observed[seen[0] :])
                cleaned.new.save()
                await asyncio.to_thread(_sync, log.directory, group[0].base_offset)
                if not self._put_in_place(log, cleaned):
                    return None
            finally:
                _discard(log, group[0].base_offset)
            gone = set(compaction.survey.gone[seen[1] :])
            if gone:
                log.producers.aborted[:] = [one for one in log.producers.aborted if one not in gone]
            after += cleaned.new.size
        _log.info("%r: compacted %d bytes to %d in %.1f s", log, before, after, perf_counter() - started)
        return compaction.end_offset

    def _put_in_place(self, log: PartitionLog, cleaned: Cleaned) -> bool:
        """Replaces the segments unless the log has changed meanwhile, for example by DeleteRecords."""
        if log.failure is not None or self._is_busy(log) or not set(cleaned.old) <= set(log.segments):
            return False
        log.replace(cleaned.old, cleaned.new)
        return True

    # ------------------------------------------------------------------ around

    def _is_busy(self, log: PartitionLog) -> bool:
        """Whether the log can't be cleaned now: a coordinator is reading it piece by piece, or it is unavailable."""
        return log.failure is not None or self._is_being_read(log)

    async def _logs(self) -> AsyncIterator[PartitionLog]:
        """Every log that has segments, with pauses for other work in between."""
        count = 0
        for name in tuple(self._topics.names()):
            topic = self._topics.get(name)
            for log in tuple(topic.partitions) if topic is not None else ():
                count += 1
                if count % _LOGS_PER_TURN == 0:
                    await asyncio.sleep(0)
                if log.segments:
                    yield log

    def _forget(self, topic: Topic) -> None:
        """Forgets a deleted topic; a new topic of the same name starts without earlier state."""
        self.given_up -= set(topic.partitions)
        with _logged("cannot write the offsets up to which logs are compacted"):
            self._cleaned.forget(topic.name)


@contextmanager
def _logged(what_failed: str) -> Iterator[None]:
    """Logs an error, with its traceback if it is unexpected, and does not raise it: the next round tries again."""
    try:
        yield
    except OSError as error:
        _log.warning("%s: %s", what_failed, error)
    except Exception:
        _log.exception("%s", what_failed)


async def _in_turns(steps: Iterator[T]) -> T | None:
    """Runs all steps, in short turns with pauses; returns the result of the last step."""
    last = None
    turn_end = perf_counter() + _TURN_S
    for step in steps:
        last = step
        if perf_counter() >= turn_end:
            await _pause()
            turn_end = perf_counter() + _TURN_S
    return last


async def _pause() -> None:
    """Pauses for other work, which gets at least half of a core, and up to eight ninths while it needs them."""
    for _ in range(_PAUSES_WHEN_BUSY):
        began = thread_time()
        await asyncio.sleep(_PAUSE_S)
        if thread_time() - began < _PAUSE_S / 2:
            return


def _delete_old(log: PartitionLog, now_ms: int) -> int:
    count = expired_count(log, now_ms)
    if count == 0:
        return 0
    old = sum(is_outdated(log, segment, now_ms) for segment in log.segments[:count])
    reasons = [f"{old} by retention.ms={log.config.retention_ms}"] if old else []
    reasons += [f"{count - old} by retention.bytes={log.config.retention_bytes}"] if count > old else []
    if count == len(log.segments):
        log.roll()
    log.advance_start(log.segments[count].base_offset, ", ".join(reasons))
    return count


def _sync(directory: str, base_offset: int) -> None:
    """Flushes a cleaned segment and its indexes to disk."""
    for suffix in (LOG, *INDEXES):
        with suppress(FileNotFoundError):
            sync_file(os.path.join(directory, file_name(base_offset, suffix + CLEANED)))
    sync_file(directory)


def _discard(log: PartitionLog, base_offset: int) -> None:
    """Removes the files of a dropped pass; after a replacement there are none."""
    for suffix in (LOG, *INDEXES):
        with suppress(OSError):
            os.unlink(os.path.join(log.directory, file_name(base_offset, suffix + CLEANED)))


def _unlink_all(paths: Sequence[str]) -> None:
    for path in paths:
        with suppress(OSError):
            os.unlink(path)
