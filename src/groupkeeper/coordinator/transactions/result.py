"""The input and output of the transaction coordinator.

Its driver takes these steps for every result, in this order, without running another operation of the same coordinator
in between:

1. append `records` to the log, all or none (but see `is_atomic`). If that fails, pass the error to
   `TransactionCoordinator.refuse` and send the response it returns; the state is unchanged;
2. `replay` each record, then `apply` each value of `soft`;
3. write the markers of `ending`, if there is one, to its partitions, and hand its id to `complete`, whose result is
   treated alike. If a marker can't be written now, do this step again later; the response leaves all the same, for the
   outcome is decided. A restart begins with this step for every result of `resume`;
4. send `response`.
"""

from __future__ import annotations

from dataclasses import dataclass

from groupkeeper.coordinator.transactions.transaction import Transaction
from groupkeeper.protocol.primitives import Message
from groupkeeper.protocol.transaction_log import TransactionRecord


@dataclass(frozen=True, slots=True)
class TransactionSettings:
    """The settings of the transaction coordinator; times in milliseconds.

    Attributes:
        transaction_version: level of the feature; 2 gives every transaction its own epoch.
    """

    transaction_max_timeout_ms: int = 900_000
    transactional_id_expiration_ms: int = 604_800_000
    transaction_version: int = 2


@dataclass(frozen=True, slots=True)
class TransactionCall:
    """A request with the context that the coordinator cannot know by itself."""

    request: Message
    version: int
    spare_producer_id: int
    """An unused producer id, which the result may take, see `TransactionResult.takes_producer_id`."""


@dataclass(frozen=True, slots=True)
class LastEpoch:
    """The epoch with which a producer may repeat its last request; it is not in the log."""

    transactional_id: str
    last_producer_epoch: int


@dataclass(frozen=True, slots=True)
class TransactionResult:
    """The outcome of one operation; the module's docstring describes how to carry it out."""

    response: Message | None = None
    """None when no caller waits."""
    records: tuple[TransactionRecord, ...] = ()
    is_atomic: bool = True
    """False when the records are independent, and may be appended in several batches."""
    soft: tuple[LastEpoch, ...] = ()
    ending: Transaction | None = None
    """A transaction with a decided outcome, whose markers must be written to its partitions."""
    takes_producer_id: bool = False


def moved(
    transaction: Transaction, response: Message | None = None, *, takes_producer_id: bool = False
) -> TransactionResult:
    """The result that makes `transaction` the state of its id."""
    return TransactionResult(
        response,
        records=(transaction.record(),),
        soft=(LastEpoch(transaction.transactional_id, transaction.last_producer_epoch),),
        ending=transaction if transaction.status.is_ending else None,
        takes_producer_id=takes_producer_id,
    )
