"""The outcome of a call on many keys."""

from __future__ import annotations

from collections.abc import Awaitable, Iterable, Mapping
from typing import Generic, TypeVar

from groupkeeper.client.errors import ClientError, IllegalArgument, MissingResult
from groupkeeper.protocol.errors import KafkaError, error_for

K = TypeVar("K")
V = TypeVar("V")

Failure = KafkaError | ClientError
"""Why one key of a batch failed: the broker's error (KafkaError), or no usable response (ClientError)."""


class Batch(Generic[K, V]):
    """The outcome of a call on many keys: every key is either in `done` or in `failed`, never lost."""

    __slots__ = ("done", "failed")

    def __init__(self, done: dict[K, V] | None = None, failed: dict[K, Failure] | None = None) -> None:
        self.done: dict[K, V] = {} if done is None else done
        self.failed: dict[K, Failure] = {} if failed is None else failed

    def all(self) -> dict[K, V]:
        """All results; raises the first failure when there is one, with a note that names its key."""
        for key, failure in self.failed.items():
            note = f"This is the failure of {key!r}."
            if note not in getattr(failure, "__notes__", ()):
                failure.add_note(note)
            raise failure
        return self.done

    def result(self, key: K) -> V:
        """The result of one key; raises its failure, or IllegalArgument when the key was not requested."""
        if key in self.failed:
            raise self.failed[key]
        if key not in self.done:
            raise IllegalArgument(f"{key} was not included in the original request")
        return self.done[key]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Batch) and self.done == other.done and self.failed == other.failed

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Batch(done={self.done!r}, failed={self.failed!r})"


async def or_failed(call: Awaitable[Batch[K, V]], keys: Iterable[K]) -> Batch[K, V]:
    """The result of a call on several keys; if the call itself fails, each key has that failure."""
    try:
        return await call
    except (KafkaError, ClientError) as failure:
        return Batch({}, dict.fromkeys(keys, failure))


def batch_of(wanted: Iterable[K], results: Mapping[K, V | Failure], missing: str) -> Batch[K, V]:
    """The results of the requested keys. A key without one fails with `missing`, a text with `{}` for the key."""
    batch: Batch[K, V] = Batch()
    for key in wanted:
        if key not in results:
            batch.failed[key] = MissingResult(missing.format(key))
            continue
        result = results[key]
        if isinstance(result, Failure):
            batch.failed[key] = result
        else:
            batch.done[key] = result
    return batch


def failure_of(error_code: int, message: str | None = None) -> KafkaError | None:
    """The error of a code, None for none."""
    return error_for(error_code, message) if error_code else None
