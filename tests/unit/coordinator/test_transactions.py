"""The transaction coordinator as a pure machine: epochs, repeated requests, ends, restarts."""

from collections.abc import Callable

import pytest

from groupkeeper.coordinator.transactions.coordinator import TransactionCoordinator
from groupkeeper.coordinator.transactions.result import TransactionCall, TransactionResult, TransactionSettings
from groupkeeper.coordinator.transactions.transaction import LAST_EPOCH, Transaction, TransactionStatus
from groupkeeper.protocol import errors
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.primitives import Message
from groupkeeper.protocol.transaction_log import FLEXIBLE_VERSION, decode_transaction, encode_transaction

ID = "tx"
PLACE = ("t", 0)
WITH_BUMP, WITHOUT_BUMP = 5, 4


class Shell:
    """Drives a coordinator on a log of bytes; markers are written at once, or not at all while `is_cut_off`."""

    def __init__(self, settings: TransactionSettings | None = None) -> None:
        self.settings = settings or TransactionSettings()
        self.log: list[tuple[bytes, bytes | None]] = []
        self.coordinator = TransactionCoordinator(self.settings)
        self.now_ms = 1_000_000
        self.markers: list[tuple[int, int, bool]] = []
        self.is_cut_off = False
        self.next_producer_id = 100

    def ask(self, request: Message, version: int) -> Message:
        before = dict(self.coordinator.transactions)
        result = self.coordinator.handle(TransactionCall(request, version, self.next_producer_id), self.now_ms)
        assert dict(self.coordinator.transactions) == before, "a handler changes nothing"
        if result.takes_producer_id:
            self.next_producer_id += 1
        self.settle(result)
        assert result.response is not None
        return result.response

    def settle(self, result: TransactionResult) -> None:
        for record in result.records:
            self.log.append(encode_transaction(record, FLEXIBLE_VERSION))
            self.coordinator.replay(record)
        for change in result.soft:
            self.coordinator.apply(change)
        if result.ending is not None and not self.is_cut_off:
            ending = result.ending
            self.markers += [(ending.producer_id, ending.producer_epoch, ending.is_commit)] * len(ending.partitions)
            self.settle(self.coordinator.complete(ending.transactional_id, self.now_ms))

    def restart(self) -> None:
        self.coordinator = TransactionCoordinator(self.settings)
        for pair in self.log:
            record = decode_transaction(*pair)
            assert record is not None
            self.coordinator.replay(record)
        for result in self.coordinator.resume():
            self.settle(result)

    @property
    def known(self) -> Transaction:
        return self.coordinator.transactions[ID]

    def init(self, producer_id: int = -1, epoch: int = -1, *, timeout_ms: int = 60_000) -> tuple[int, int] | int:
        """Producer id and epoch, or the error's code."""
        answer = self.ask(m.InitProducerIdRequest(ID, timeout_ms, producer_id, epoch), 5)
        assert isinstance(answer, m.InitProducerIdResponse)
        return answer.error_code or (answer.producer_id, answer.producer_epoch)

    def begin(self) -> None:
        known = self.known
        self.settle(self.coordinator.add_partitions(ID, known.producer_id, known.producer_epoch, (PLACE,), self.now_ms))

    def end(self, producer_id: int, epoch: int, *, commit: bool, version: int) -> tuple[int, int] | int:
        answer = self.ask(m.EndTxnRequest(ID, producer_id, epoch, commit), version)
        assert isinstance(answer, m.EndTxnResponse)
        return answer.error_code or (answer.producer_id, answer.producer_epoch)

    def set_epoch(self, epoch: int) -> None:
        """Replays a record that says so, as after many transactions."""
        value = self.known.record().value
        value.producer_epoch = epoch
        self.settle(TransactionResult(records=(self.known.record()._replace(value=value),)))


@pytest.fixture
def shell() -> Shell:
    return Shell()


class TestInit:
    def test_used_up_epochs_bring_another_producer_id(self, shell: Shell) -> None:
        shell.init()
        shell.set_epoch(LAST_EPOCH - 2)
        assert shell.init(100, LAST_EPOCH - 2) == (100, LAST_EPOCH - 1)
        assert shell.init(100, LAST_EPOCH - 1) == (101, 0)
        assert shell.init(100, LAST_EPOCH - 1) == (101, 0), "repeated: the answer was lost"
        assert shell.init() == (101, 1)

    def test_an_abort_at_the_last_epoch(self, shell: Shell) -> None:
        shell.init()
        shell.set_epoch(LAST_EPOCH - 1)
        shell.begin()
        assert shell.init() == errors.ConcurrentTransactions.code
        assert shell.markers == [(100, LAST_EPOCH, False)]
        assert shell.init() == (101, 0)

    def test_while_a_transaction_ends_everybody_waits(self, shell: Shell) -> None:
        shell.init()
        shell.begin()
        shell.is_cut_off = True
        assert shell.end(100, 0, commit=True, version=WITHOUT_BUMP) == (-1, -1)
        assert shell.init() == errors.ConcurrentTransactions.code
        assert shell.end(100, 0, commit=True, version=WITHOUT_BUMP) == errors.ConcurrentTransactions.code
        assert shell.end(100, 0, commit=False, version=WITHOUT_BUMP) == errors.InvalidTxnState.code
        with pytest.raises(errors.ConcurrentTransactions):
            shell.begin()


class TestEnd:
    def test_used_up_epochs_bring_another_producer_id(self, shell: Shell) -> None:
        shell.init()
        shell.set_epoch(LAST_EPOCH - 1)
        shell.begin()
        assert shell.end(100, LAST_EPOCH - 1, commit=True, version=WITH_BUMP) == (101, 0)
        assert shell.markers == [(100, LAST_EPOCH, True)]
        assert shell.end(100, LAST_EPOCH - 1, commit=True, version=WITH_BUMP) == (101, 0), "repeated"
        shell.begin()
        assert shell.end(101, 0, commit=True, version=WITH_BUMP) == (101, 1)

    @pytest.mark.parametrize("version", [WITHOUT_BUMP, WITH_BUMP])
    def test_refusals(self, shell: Shell, version: int) -> None:
        assert shell.end(100, 0, commit=True, version=version) == errors.InvalidProducerIdMapping.code
        shell.init()
        assert shell.end(100, 0, commit=True, version=version) == errors.InvalidTxnState.code
        shell.begin()
        assert shell.end(99, 0, commit=True, version=version) == errors.InvalidProducerIdMapping.code
        assert shell.end(100, 7, commit=True, version=version) == errors.ProducerFenced.code
        assert shell.known.status is TransactionStatus.ONGOING


class TestRestart:
    @pytest.mark.parametrize("commit", [True, False])
    def test_a_decided_transaction_is_completed(self, shell: Shell, commit: bool) -> None:
        shell.init()
        shell.begin()
        shell.is_cut_off = True
        shell.end(100, 0, commit=commit, version=WITH_BUMP)
        assert shell.known.status.is_ending
        shell.is_cut_off = False
        shell.restart()
        assert shell.markers == [(100, 1, commit)]
        assert not shell.known.status.is_ending
        shell.restart()
        assert len(shell.markers) == 1

    def test_live_state_equals_rebuilt_state(self, shell: Shell) -> None:
        steps: list[Callable[[], object]] = [
            shell.init,
            shell.begin,
            lambda: shell.end(100, 0, commit=True, version=WITH_BUMP),
            shell.begin,
            shell.init,
            shell.init,
        ]
        for step in steps:
            step()
            live = dict(shell.coordinator.transactions)
            shell.restart()
            rebuilt = shell.coordinator.transactions
            # What a producer may repeat is not in the log, as with Apache Kafka.
            assert {key: one.record() for key, one in live.items()} == {
                key: one.record() for key, one in rebuilt.items()
            }

    def test_unused_ids_are_forgotten(self) -> None:
        shell = Shell(TransactionSettings(transactional_id_expiration_ms=1_000))
        shell.init()
        shell.begin()
        shell.now_ms += 1_000
        shell.settle(shell.coordinator.expire_ids(shell.now_ms))
        assert ID in shell.coordinator.transactions, "not while a transaction is open"
        shell.end(100, 0, commit=True, version=WITHOUT_BUMP)
        shell.now_ms += 1_000
        shell.settle(shell.coordinator.expire_ids(shell.now_ms))
        assert not shell.coordinator.transactions
        shell.restart()
        assert not shell.coordinator.transactions
