"""What the workers write down: one line of JSON for each fact, in files that are only appended to.

Times are nanoseconds of the machine's clock, which all workers share. `began` is read before a request is sent,
`ended` after its answer came: what it changed became so between the two.
"""

import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, TypeAlias

FAILED, DONE, MAYBE = "failed", "done", "maybe"
"""How a request ended: refused, acknowledged, or not known."""


class Made(NamedTuple):
    """A topic was created, or has more partitions than before."""

    cluster: str
    topic: str
    partitions: int
    settings: dict[str, str]
    began: int
    ended: int


class Removed(NamedTuple):
    """A topic was deleted."""

    cluster: str
    topic: str
    began: int
    ended: int


class Produced(NamedTuple):
    """A record. `offset` -1: not known whether it is in the log. `number`: of its producer's records."""

    cluster: str
    topic: str
    partition: int
    offset: int
    timestamp: int
    size: int
    producer: str
    number: int
    key: str | None
    is_tombstone: bool
    transaction: str | None
    began: int
    ended: int


class TransactionEnded(NamedTuple):
    """A transaction was committed or aborted; each of its partitions got one marker."""

    cluster: str
    transaction: str
    is_committed: bool
    places: list[tuple[str, int]]
    began: int
    ended: int


class Cut(NamedTuple):
    """The log begins at `log_start` from then on."""

    cluster: str
    topic: str
    partition: int
    log_start: int
    began: int
    ended: int


class Committed(NamedTuple):
    """A group's offset was committed; `offset` -1: deleted. `stated_ms`: the time of the commit, if not then."""

    cluster: str
    group: str
    topic: str
    partition: int
    offset: int
    leader_epoch: int
    metadata: str
    outcome: str
    actor: str
    began: int
    ended: int
    stated_ms: int = -1

    @property
    def times(self) -> tuple[int, int]:
        """Between which the commit says that it was made."""
        at = self.stated_ms * 1_000_000
        return (self.began, self.ended) if at < 0 else (at, at)


class Typed(NamedTuple):
    """Of what type a group is, by what its members speak; "": by turns of one and of another."""

    cluster: str
    group: str
    kind: str
    ended: int


class Reading(NamedTuple):
    """A consumer reads in the name of a group that it neither joins nor commits for."""

    cluster: str
    group: str
    actor: str
    ended: int


class Acknowledged(NamedTuple):
    """A share group is done with these records; not `is_sure`: that may be or not."""

    cluster: str
    group: str
    topic: str
    partition: int
    offsets: list[int]
    is_sure: bool
    began: int
    ended: int


class Consumed(NamedTuple):
    """A consumer was given records `first` to `last` of a partition."""

    cluster: str
    group: str
    topic: str
    partition: int
    first: int
    last: int
    ended: int


class Assigned(NamedTuple):
    """What a member has from then on; `session` counts how often the actor has joined."""

    cluster: str
    group: str
    actor: str
    session: int
    places: list[tuple[str, int]]
    ended: int


class Joining(NamedTuple):
    """A member begins to join, or to join again; it is in the group once it is assigned something, or nothing."""

    cluster: str
    group: str
    actor: str
    session: int
    ended: int


class Left(NamedTuple):
    """A member has left its group; `is_dead`: without a word, so that its session must expire."""

    cluster: str
    group: str
    actor: str
    session: int
    is_dead: bool
    began: int
    ended: int


class Trouble(NamedTuple):
    """Something that a worker did not expect."""

    actor: str
    text: str
    ended: int


Fact: TypeAlias = (
    Made | Removed | Produced | TransactionEnded | Cut | Committed | Acknowledged | Consumed | Reading | Typed
    | Joining | Assigned | Left | Trouble
)  # fmt: skip
KINDS: dict[str, type] = {
    kind.__name__: kind
    for kind in (Made, Removed, Produced, TransactionEnded, Cut, Committed, Acknowledged, Consumed, Reading, Typed,
                 Joining, Assigned, Left, Trouble)
}  # fmt: skip


def now() -> int:
    return time.time_ns()


class Notebook:
    """A file of facts of one worker; any of its threads may write."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("a", encoding="utf-8")
        self._lock = threading.Lock()

    def write(self, *facts: Fact) -> None:
        lines = "".join(json.dumps([type(fact).__name__, *fact], ensure_ascii=False) + "\n" for fact in facts)
        with self._lock:
            self._file.write(lines)

    def flush(self) -> None:
        with self._lock:
            self._file.flush()


class Tail:
    """Reads what has been added to the files of facts of a folder since the last time."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._places: dict[Path, int] = {}

    def read(self) -> Iterator[Fact]:
        for path in sorted(self._folder.glob("*.facts")):
            with path.open("rb") as file:
                file.seek(self._places.get(path, 0))
                for line in file:
                    if not line.endswith(b"\n"):
                        break  # of a worker that writes just now, or was killed
                    self._places[path] = self._places.get(path, 0) + len(line)
                    name, *fields = json.loads(line)
                    yield KINDS[name](*fields)
