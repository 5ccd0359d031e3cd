"""The real broker on virtual time: it keeps its word, and bugs in its shells are found."""

import logging
from collections.abc import Iterator

import pytest
from tests.simulation.mutation import mutated
from tests.simulation.shells import lives as shells

SEEDS = 30
BUGS = {
    "a commit that was not appended is acknowledged": (
        "coordination.shard_host",
        "            raise map_log_error(refusal) from refusal\n",
        "            return\n",
    ),
    "a coordinator goes on after a failure between append and replay": (
        "coordination.shard_host",
        "        except Exception as error:\n            self.fail(error)\n",
        "        except Exception:\n            pass\n",
    ),
    "a coordinator that failed is not loaded again": (
        "coordination.shard_host",
        "        self._reloads.add(handle)\n",
        "        handle.cancel()\n",
    ),
    "one that is elected does not load its log": (
        "coordination.shard_host",
        "        if log.log_end_offset == log.log_start_offset:\n",
        "        if True:\n",
    ),
    "a timer that raised is lost": (
        "coordination.timers",
        "            self.arm(timer, _RETRY_MS, keeps_earlier=True)  # as Kafka's coordinators do\n",
        "",
    ),
    "a marker that can't be written is not written later": (
        "coordination.transaction_shard",
        "                    self._finish_later(ending, untold, attempts, error)\n",
        "                    pass\n",
    ),
    "a torn write at the end of a log stays there": (
        "log.segment",
        "                os.ftruncate(self._files.descriptor(self.path), tail.position)\n",
        "                pass\n",
    ),
    "everything behind a damaged batch is left out": ("log.scan", "    start = position + 1\n", "    start = size\n"),
    "a damaged batch is delivered": (
        "log.segment",
        "        if self._is_verified or position >= self._from_earlier or not found:\n",
        "        if True:\n",
    ),
    "a coordinator is not loaded from a log with a damaged batch": (
        "log.segment",
        "                if self._is_verified:\n                    raise\n                self.reread()\n",
        "                raise\n",
    ),
    "a change of the registry is answered before it is on the disk": (
        "storage.journal",
        "            os.fdatasync(self._file)\n",
        "",
    ),
    "files that are replaced are not brought to the disk": (
        "storage.directory",
        "            os.fsync(file.fileno())\n",
        "            pass\n",
    ),
    "producer ids are given out that could not be reserved": (
        "storage.directory",
        "                first = self._first_unreserved(path)\n",
        (
            "                first = self._next_producer_id = self._first_unreserved(path)\n"
            "                self._producer_ids_end = first + PRODUCER_ID_BLOCK\n"
        ),
    ),
    "a folder that can't be moved hides the deletion of its topic": (
        "log.topics",
        "            except OSError as error:\n                # The deletion is in the registry",
        "            except ZeroDivisionError as error:\n                # The deletion is in the registry",
    ),
    "a marker changes the log only": (
        "coordination.group_shard",
        "            self.coordinator.replay_end_transaction(marker.producer_id, is_commit=marker.is_commit)\n",
        "            pass\n",
    ),
    "offsets of a deleted topic stay when they can't be removed at once": (
        "coordination.group_shard",
        "        self.write(result.records, self._now_ms(), is_atomic=result.is_atomic)\n",
        (
            "        try:\n"
            "            self.write(result.records, self._now_ms(), is_atomic=result.is_atomic)\n"
            "        except KafkaError:\n"
            "            pass\n"
        ),
    ),
    "share state of a deleted topic stays when it can't be removed at once": (
        "shares.state_shard",
        "        self.settle(self.coordinator.remove_topics(topic_ids.values()), self._now_ms())\n",
        (
            "        with suppress(KafkaError):\n"
            "            self.settle(self.coordinator.remove_topics(topic_ids.values()), self._now_ms())\n"
        ),
    ),
    "share state of a deleted topic stays when one batch can't remove it": (
        "shares.state_shard",
        "                self.write(result.records, now_ms, is_atomic=result.is_atomic)\n",
        "                self.write(result.records, now_ms)\n",
    ),
    "clients wait while folders are removed": (
        "log.topics",
        "        self._remover.submit(shutil.rmtree, aside, ignore_errors=True)\n",
        "        shutil.rmtree(aside, ignore_errors=True)\n",
    ),
    "all coordinators expire offsets at the same time": (
        "coordination.group_shard",
        "    return 1 - partition * _GOLDEN_RATIO % 1 / 2\n",
        "    return 1\n",
    ),
    "a transaction that does not end is only logged for developers": (
        "coordination.transaction_shard",
        "        level = DEBUG if attempts < _QUIET_ATTEMPTS else WARNING\n",
        "        level = DEBUG\n",
    ),
    "a transaction that does not end is tried again without a longer pause": (
        "coordination.transaction_shard",
        "pause_s(_RETRY_S, attempts - 1, _LONGEST_RETRY_S)",
        "_RETRY_S",
    ),
    "transactional ids do not expire when one batch can't remove them": (
        "coordination.transaction_shard",
        "            self.write(result.records, self._around.now_ms(), is_atomic=result.is_atomic)\n",
        "            self.write(result.records, self._around.now_ms())\n",
    ),
    "readers of committed records see open transactions": (
        "log.partition_log",
        "        return end if first_open is None or first_open > end else max(first_open, self.log_start_offset)\n",
        "        return end\n",
    ),
    "readers are not told which transactions were aborted": (
        "apis.fetch",
        "    if not log.producers.aborted:\n",
        "    if True:\n",
    ),
    "a batch that was refused stays in the file": (
        "log.segment",
        "                os.ftruncate(descriptor, self.size)\n",
        "                self.size = os.fstat(descriptor).st_size\n",
    ),
    "a start after a kill forgets which transactions were aborted": (
        "log.partition_log",
        "                self._remember(header, marker, header.max_timestamp)\n",
        "                self._remember(header, None, header.max_timestamp)\n",
    ),
    "locks end by the wall clock": (
        "shares.leader",
        "    @staticmethod\n    def lock_time_ms() -> int:\n",
        "    def lock_time_ms(self) -> int:\n        return self.broker.now_ms()\n\n    def unused(self) -> int:\n",
    ),
    "an acknowledgement that was not stored is acknowledged": (
        "shares.leader",
        "            raise replied from error\n",
        "            return\n",
    ),
}


FOUND_IN = {
    "a coordinator goes on after a failure between append and replay": 6,
    "a torn write at the end of a log stays there": 5,
    "everything behind a damaged batch is left out": 9,
    "a damaged batch is delivered": 5,
    "a coordinator is not loaded from a log with a damaged batch": 5,
    "a change of the registry is answered before it is on the disk": 3,
    "files that are replaced are not brought to the disk": 3,
    "a folder that can't be moved hides the deletion of its topic": 5,
    "offsets of a deleted topic stay when they can't be removed at once": 6,
    "share state of a deleted topic stays when it can't be removed at once": 10,
    "a transaction that does not end is only logged for developers": 4,
    "a transaction that does not end is tried again without a longer pause": 4,
    "a batch that was refused stays in the file": 5,
    "locks end by the wall clock": 17,
    "an acknowledgement that was not stored is acknowledged": 8,
}
"""The first seed whose run has found a bug, where that took some: it is tried before the others."""


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def test_what_clients_were_told_is_so() -> None:
    assert shells.run_all(range(1, 11)) > 1_000


def test_a_seed_says_everything() -> None:
    first, second = (shells.run(3) for _ in range(2))
    assert (first.acknowledged, first.accepted) == (second.acknowledged, second.accepted)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("bug", BUGS)
def test_bugs_of_the_shells_are_found(bug: str) -> None:
    module, old, new = BUGS[bug]
    with (
        mutated(module, old, new, "shells.lives", "groupkeeper.broker") as mutant,
        pytest.raises(mutant.Violation) as found,
    ):
        mutant.run_all((FOUND_IN.get(bug, 1), *range(1, SEEDS + 1)))
    assert "seed" in str(found.value)
