"""A bit of a file that turns over while no broker runs, and what it may cost."""

import random
from contextlib import suppress
from pathlib import Path

from groupkeeper.protocol.record_batch import BatchHeader, CorruptRecord, check_crc, read_header

_LONGEST = 5_000
_MAGIC = 2
_FRONT = 24

_KINDS = (
    *("records-*/*.log",) * 6,
    *("__consumer_offsets-*/*.log",) * 3,
    "__*/*.log",
    "*/*.index",
    "*/*.timeindex",
    "*/*.txnindex",
    "*/*.checksums",
    "*/*.snapshot",
    "*/partition.metadata",
    "*.journal",
    "*-checkpoint",
    "*properties",
    "producer-ids",
    ".kafka_cleanshutdown",
)


class FlippedBit:
    """One bit of one file, of a kind that is drawn first, so that no kind is rare.

    Attributes:
        path: the file; None when the directory has no file of the kind.
        header, batch: the batch of a log that it is in; None and no bytes when it is in none.
    """

    def __init__(self, root: Path, chance: random.Random) -> None:
        self.path: Path | None = None
        self.header: BatchHeader | None = None
        self.batch = b""
        found = [path for path in sorted(root.glob(chance.choice(_KINDS))) if path.stat().st_size]
        if not found:
            return
        self.path = chance.choice(found)
        self._content = self.path.read_bytes()
        position = chance.randrange(len(self._content))
        if self.path.suffix == ".log" and chance.random() < 0.5:  # not the records, but what is in front of them
            position = self._find_batch(position) + chance.randrange(_FRONT)
        changed = bytearray(self._content)
        position = min(position, len(changed) - 1)
        changed[position] ^= 1 << chance.randrange(8)
        self.path.write_bytes(changed)
        if self.path.suffix == ".log":
            self._find_batch(position)

    def _find_batch(self, position: int) -> int:
        """The position of the batch that a byte is in. Tries every place before: there may be older damage."""
        content = self._content
        for at in range(max(position - _LONGEST, 0), position + 1):
            with suppress(CorruptRecord):
                header = read_header(content, at)
                check_crc(content, at, header)
                if header.magic == _MAGIC and position < at + header.size_in_bytes:
                    self.header, self.batch = header, content[at : at + header.size_in_bytes]
                    return at
        return 0

    def is_named(self, text: str) -> bool:
        """Whether a refusal to start names the file."""
        return self.path is not None and str(self.path) in text

    def repair(self) -> None:
        """Brings the file back, as from a backup."""
        assert self.path is not None
        self.path.write_bytes(self._content)
