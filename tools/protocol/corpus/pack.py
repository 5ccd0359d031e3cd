"""Writes the corpus of the protocol tests: what Apache Kafka's Java serialisers make of every message and version.

    python -m tools.protocol.corpus.pack [JAR_FOLDER]      # default: the jars that tools/apache_kafka.py fetches

Needs Java 17 with its compiler; the tests themselves only need the packed file.
"""

from __future__ import annotations

import lzma
import subprocess
import sys
import tempfile
from pathlib import Path

from tools.apache_kafka import NEWEST, cache_folder

HERE = Path(__file__).parent
CORPUS = HERE.parents[2] / "tests" / "unit" / "protocol" / "corpus.txt.xz"


def java(jars: Path, main: str, *arguments: str) -> str:
    """Standard output of the class `main` of this folder. Raises CalledProcessError."""
    with tempfile.TemporaryDirectory() as classes:
        sources = [str(path) for path in sorted(HERE.glob("*.java"))]
        subprocess.run(["javac", "-cp", f"{jars}/*", "-d", classes, *sources], check=True)
        command = ["java", "-XX:+UseSerialGC", "-cp", f"{classes}:{jars}/*", main, *arguments]
        return subprocess.run(command, check=True, capture_output=True, encoding="utf-8").stdout


def main() -> None:
    jars = Path(sys.argv[1]) if len(sys.argv) > 1 else cache_folder(NEWEST) / "jars"
    text = java(jars, "CorpusWriter", str(jars), NEWEST)
    CORPUS.write_bytes(lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME))
    print(f"{CORPUS.name}: {len(text.splitlines())} entries, {CORPUS.stat().st_size} bytes")


if __name__ == "__main__":
    main()
