"""The two texts that Prometheus reads: its own format, and OpenMetrics. They differ in headers, and in the end."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import NamedTuple


class Format(Enum):
    """The value is the content type."""

    PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"
    OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"


class Metric(NamedTuple):
    """A metric. The name of a counter ends in ``_total``."""

    name: str
    doc: str
    labels: tuple[str, ...] = ()
    is_counter: bool = False

    def header(self, form: Format) -> str:
        """What stands before its samples."""
        doc = self.doc.replace("\\", "\\\\").replace("\n", "\\n")
        if form is Format.OPENMETRICS:
            name, doc = self.name.removesuffix("_total") if self.is_counter else self.name, doc.replace('"', '\\"')
        else:
            name = self.name
        return f"# HELP {name} {doc}\n# TYPE {name} {'counter' if self.is_counter else 'gauge'}\n"


END = {Format.PROMETHEUS: "", Format.OPENMETRICS: "# EOF\n"}

Sample = tuple[str, str]
"""A metric's name, and the line that a sample of it is, with its end."""


def label(value: str) -> str:
    """A label's value as it stands between quotes. A lone surrogate, which UTF-8 hasn't, becomes a question mark."""
    if not value.isascii():
        value = value.encode("utf-8", "replace").decode()
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def labels(**values: str) -> str:
    """Labels without the closing brace, so that more of them may follow."""
    return "{" + ",".join(f'{name}="{label(value)}"' for name, value in values.items())


def seconds(ms: int) -> str:
    """Milliseconds in seconds."""
    return f"{ms / 1000:.3f}"


Block = Mapping[str, bytes]
"""The samples of one source by the metrics' names, ready to be sent."""


class Writing:
    """A block in the making."""

    def __init__(self) -> None:
        self._lines: dict[str, list[str]] = {}

    def add(self, sample: Sample) -> None:
        """One more sample."""
        name, line = sample
        self._lines.setdefault(name, []).append(line)

    def block(self) -> Block:
        """All of them; nothing is left here."""
        lines, self._lines = self._lines, {}
        return {name: "".join(lines.pop(name)).encode() for name in list(lines)}


def text(metrics: Iterable[Metric], blocks: Iterable[Block], form: Format) -> bytes:
    """All samples, each metric's together whatever the source; a metric without samples is left out."""
    sources = list(blocks)
    parts: list[bytes] = []
    for metric in metrics:
        found = [block[metric.name] for block in sources if metric.name in block]
        if found:
            parts += [metric.header(form).encode(), *found]
    return b"".join([*parts, END[form].encode()])


def wanted_format(accept: str) -> Format:
    """The format that a client likes best; Prometheus' own when it likes both as well."""
    liked = {Format.PROMETHEUS: -1.0, Format.OPENMETRICS: -1.0}
    for part in accept.split(","):
        kind, *parameters = (each.strip() for each in part.lower().split(";"))
        quality = 1.0
        for parameter in parameters:
            if parameter.startswith("q="):
                try:
                    quality = float(parameter[2:])
                except ValueError:
                    quality = 0.0
        if kind == "application/openmetrics-text":
            liked[Format.OPENMETRICS] = max(liked[Format.OPENMETRICS], quality)
        elif kind in ("text/plain", "text/*"):
            liked[Format.PROMETHEUS] = max(liked[Format.PROMETHEUS], quality)
    is_open = liked[Format.OPENMETRICS] > max(0.0, liked[Format.PROMETHEUS])
    return Format.OPENMETRICS if is_open else Format.PROMETHEUS
