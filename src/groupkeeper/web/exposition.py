"""The two text formats that Prometheus reads: its own, and OpenMetrics. They differ in headers, and in the end."""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum
from typing import NamedTuple


class Format(Enum):
    """A format; the value is its content type."""

    PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"
    OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"


class MetricFamily(NamedTuple):
    """A metric. The name of a counter ends in `_total`."""

    name: str
    doc: str
    labels: tuple[str, ...] = ()

    @property
    def is_counter(self) -> bool:
        """Whether it only grows; else it is a gauge."""
        return self.name.endswith("_total")

    def header(self, form: Format) -> str:
        """The lines before its samples."""
        doc = self.doc.replace("\\", "\\\\").replace("\n", "\\n")
        if form is Format.OPENMETRICS:
            name, doc = self.name.removesuffix("_total") if self.is_counter else self.name, doc.replace('"', '\\"')
        else:
            name = self.name
        return f"# HELP {name} {doc}\n# TYPE {name} {'counter' if self.is_counter else 'gauge'}\n"


def families(labels: tuple[str, ...], **docs: str) -> list[MetricFamily]:
    """Metrics with the same labels: their texts, by name."""
    return [MetricFamily(name, doc, labels) for name, doc in docs.items()]


END = {Format.PROMETHEUS: "", Format.OPENMETRICS: "# EOF\n"}

Sample = tuple[str, str]
"""A metric's name, and the line of a sample, with its end of line."""


def label(value: str) -> str:
    """A label's value, escaped for quotes. A lone surrogate, which UTF-8 lacks, becomes a question mark."""
    if not value.isascii():
        value = value.encode("utf-8", "replace").decode()
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def labels(**values: str) -> str:
    """Labels without the closing brace, so that more of them may follow."""
    return "{" + ",".join(f'{name}="{label(value)}"' for name, value in values.items())


def sample(name: str, own: str, value: int | str) -> Sample:
    """A sample whose labels have no closing brace yet."""
    return name, f"{name}{own}}} {value}\n"


def seconds(ms: int) -> str:
    """Milliseconds in seconds."""
    return f"{ms / 1000:.3f}"


Block = Mapping[str, Sequence[bytes]]
"""The samples of one source by metric, packed: as text they would be twelve times as large."""

_SEGMENT = 65536
_WINDOW = -zlib.MAX_WBITS  # deflate alone, without a header
_FAST = 1
_GZIP_HEADER = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x04\xff"
_LAST_SEGMENT = b"\x03\x00"


def _packed(text: bytes | bytearray) -> bytes:
    """Packs text to a deflate segment that ends at a byte and needs no earlier one: segments can be joined."""
    packing = zlib.compressobj(_FAST, zlib.DEFLATED, _WINDOW)
    return packing.compress(text) + packing.flush(zlib.Z_SYNC_FLUSH)


def unpacked(segment: bytes) -> bytes:
    """The text of a segment."""
    return zlib.decompressobj(_WINDOW).decompress(segment)


class Writing:
    """A block in the making."""

    def __init__(self) -> None:
        self._segments: dict[str, list[bytes]] = {}
        self._lines: dict[str, bytearray] = {}

    def add(self, sample: Sample) -> None:
        """Adds a sample."""
        name, line = sample
        lines = self._lines.get(name)
        if lines is None:
            lines = self._lines[name] = bytearray()
        lines += line.encode()
        if len(lines) >= _SEGMENT:
            self._end(name)

    def _end(self, name: str) -> None:
        self._segments.setdefault(name, []).append(_packed(self._lines.pop(name)))

    def block(self) -> Block:
        """The block of all samples; nothing is left here."""
        for name in list(self._lines):
            self._end(name)
        segments, self._segments = self._segments, {}
        return segments


def segments(metrics: Iterable[MetricFamily], blocks: Iterable[Block], form: Format) -> Iterator[bytes]:
    """The samples of all sources, grouped by metric; a metric without samples is left out."""
    sources = list(blocks)
    for metric in metrics:
        found = [block[metric.name] for block in sources if metric.name in block]
        if found:
            yield _packed(metric.header(form).encode())
            for each in found:
                yield from each
    yield _packed(END[form].encode())


def gzipped(parts: Sequence[bytes]) -> bytes:
    """A gzip file of these segments, which are not packed again."""
    check = size = 0
    for part in parts:
        text = unpacked(part)
        check, size = zlib.crc32(text, check), size + len(text)
    return b"".join([_GZIP_HEADER, *parts, _LAST_SEGMENT, struct.pack("<LL", check, size & 0xFFFFFFFF)])


def qualities(accepted: str) -> Mapping[str, float]:
    """What a header accepts, with the quality of each; 0: it is not accepted."""
    found: dict[str, float] = {}
    for part in accepted.lower().split(","):
        kind, *parameters = (each.strip() for each in part.split(";"))
        given = next((each.removeprefix("q=") for each in parameters if each.startswith("q=")), "1")
        quality = float(given) if re.fullmatch(r"[01](\.[0-9]*)?", given) else 0
        found[kind] = max(found.get(kind, 0), quality)
    return found


def wanted_format(accept: str) -> Format:
    """The format that a client prefers; Prometheus' own when both have the same quality."""
    liked = qualities(accept)
    is_open = liked.get("application/openmetrics-text", 0) > max(liked.get("text/plain", 0), liked.get("text/*", 0))
    return Format.OPENMETRICS if is_open else Format.PROMETHEUS
