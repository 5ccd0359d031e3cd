"""The kit's kafka-tests with a newer release's clients: python tools/newer_clients.py SCRIPT RELEASE [ARGUMENT …]

The tests are of the last release that has published them. On their class path the clients are replaced by the newer
ones. Classes that only the older clients have, and that the tests need, stay there in a jar of their own.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from typing import Any
from zipfile import ZipFile

CLIENTS = ("kafka-clients", "kafka-streams")
ONLY_OLDER = "kafka-clients-only-older.jar"


def kit_of(script: str) -> Any:
    """The kit's script as a module."""
    sys.dont_write_bytecode = True  # its folder belongs to others
    loader = SourceFileLoader("kit", script)
    spec = spec_from_loader("kit", loader)
    assert spec is not None
    kit = module_from_spec(spec)
    loader.exec_module(kit)
    return kit


def take_newer_clients(kit: Any, release: str) -> None:
    """Makes the kit fetch the clients of this release."""
    fetch, pom = kit.fetch_jars, kit.pom

    def newer_pom() -> str:
        text: str = pom()
        for name in CLIENTS:
            own = f"<artifactId>{name}</artifactId><version>{kit.KAFKA}</version></dependency>"  # not its test jar
            assert own in text
            text = text.replace(own, own.replace(kit.KAFKA, release))
        return text

    def fetch_jars(log: Callable[[str], None]) -> Path:
        older: Path = fetch(log) / f"{CLIENTS[0]}-{kit.KAFKA}.jar"
        kit.pom = newer_pom
        jars: Path = fetch(log)
        if not (jars / ONLY_OLDER).exists():
            write_rest(older, jars / f"{CLIENTS[0]}-{release}.jar", jars / ONLY_OLDER)
        return jars

    kit.fetch_jars = fetch_jars


def write_rest(older: Path, newer: Path, target: Path) -> None:
    """Writes a jar of what only the older one has."""
    half = target.with_suffix(".half")
    with ZipFile(older) as source, ZipFile(newer) as other, ZipFile(half, "w") as rest:
        for name in sorted(set(source.namelist()) - set(other.namelist())):
            rest.writestr(name, source.read(name))
    half.rename(target)


if __name__ == "__main__":
    script, release = sys.argv[1:3]
    del sys.argv[1:3]
    kit = kit_of(script)
    take_newer_clients(kit, release)
    sys.exit(kit.main())
