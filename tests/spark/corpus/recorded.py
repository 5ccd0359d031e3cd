"""The recorded tables, as text: every row of some clusters, of the others the number of rows and their digest.

`python -m tests.spark.corpus.recorded` records what the present code makes: only after its differences were understood.
"""

import hashlib
import json
import tempfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa

__all__ = ["DIGESTED", "FOLDER", "texts_of"]

FOLDER = Path(__file__).parent / "tables"

_READABLE = frozenset({None, "c8", "hostile", "live"})
"""Clusters of which the rows are kept; None: rows of no cluster, as checks of all clusters have."""

DIGESTED = frozenset({"commits", "decoded", "group_records", "rates", "rates.open"})
"""Tables with too many rows to keep."""
_LONGEST = 100


def texts_of(refreshes: Sequence[Mapping[str, pa.Table]]) -> dict[str, str]:
    """The text of each table, by its name."""
    lines: dict[str, list[str]] = defaultdict(list)
    for number, tables in enumerate(refreshes):
        for name, rows in tables.items():
            lines[name] += _lines(f"refresh {number}", rows, is_digested=name in DIGESTED)
    return {name: "".join(f"{line}\n" for line in own) for name, own in lines.items()}


def _lines(prefix: str, rows: pa.Table, *, is_digested: bool) -> list[str]:
    by_cluster: dict[str | None, list[str]] = defaultdict(list)
    for row in rows.to_pylist():
        cluster = row.pop("cluster")
        by_cluster[cluster].append(json.dumps(_plain(row), ensure_ascii=False))
    found = []
    for cluster, own in sorted(by_cluster.items(), key=lambda pair: pair[0] or ""):
        own.sort()
        if cluster in _READABLE and not is_digested:
            found += [f"{prefix} {cluster} {text}" for text in own]
        else:
            digest = hashlib.sha256("\n".join(own).encode()).hexdigest()[:16]
            found.append(f"{prefix} {cluster}: {len(own)} rows, {digest}")
    return found


def _plain(value: Any) -> Any:
    """A value as JSON has it; what is null is left out of rows."""
    match value:
        case dict():
            return {name: _plain(each) for name, each in value.items() if each is not None}
        case list():
            return [_plain(each) for each in value]
        case datetime():
            return value.astimezone(UTC).isoformat(timespec="milliseconds").removesuffix("+00:00")
        case bytes():
            return _plain(value.hex())
        case float():
            return round(value, 6)
        case str() if len(value) > _LONGEST:
            return f"{len(value)} characters, {hashlib.sha256(value.encode()).hexdigest()[:16]}"
    return value


def _record() -> None:
    from tests.spark.corpus.present_code import tables_of

    from groupkeeper.pipeline.session import start_session

    with tempfile.TemporaryDirectory() as directory:
        spark = start_session("corpus", is_short=True, has_source=False, log=Path(directory) / "spark.log")
        found = texts_of(tables_of(spark))
        spark.stop()
    FOLDER.mkdir(exist_ok=True)
    for path in FOLDER.glob("*.txt"):
        path.unlink()
    for name, text in found.items():
        (FOLDER / f"{name}.txt").write_text(text)


if __name__ == "__main__":
    _record()
