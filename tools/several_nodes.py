"""The kit's kafka-tests with as many nodes as each test asks for, and a release's clients:

    python tools/several_nodes.py SCRIPT RELEASE [ARGUMENT …]

The kit gives every test one node. Here classes of `several_nodes/` stand in front of its own: the broker under test is
started with `--brokers`, and its nodes stop and start by its control over HTTP. `excluded.txt` there says which tests
are left out, and why.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from zipfile import ZIP_STORED, ZipFile

SOURCES = Path(__file__).with_suffix("")
COMMAND = "--broker-cmd"


def take_several_nodes(kit: Any) -> None:
    """Makes the kit use our classes of a cluster."""
    build = kit.build_shim

    def build_shim(jars: Path, log: Callable[[str], None]) -> Path:
        shim: Path = build(jars, log)
        sources = sorted(SOURCES.rglob("*.java"))
        digest = hashlib.sha256(b"\0".join(path.read_bytes() for path in sources)).hexdigest()[:12]
        made = shim.with_name(f"{shim.name}-nodes-{digest}")
        if not (made / "shim.jar").exists():
            log(f"compiling the classes of a cluster into {made}")
            classes = made / "classes"
            command = ["javac", "-nowarn", "-d", str(classes), "-cp", f"{shim}/shim.jar:{jars}/*", *map(str, sources)]
            subprocess.run(command, check=True)
            for path in shim.glob("*.properties"):
                (made / path.name).write_bytes(path.read_bytes())
            write_over(shim / "shim.jar", classes, made / "shim.jar")
        return made

    kit.build_shim = build_shim


def write_over(older: Path, classes: Path, target: Path) -> None:
    """Writes a jar of the older one's files, with these classes in place of those of the same name."""
    ours = {path.relative_to(classes).as_posix(): path.read_bytes() for path in classes.rglob("*.class")}
    half = target.with_suffix(".half")
    with ZipFile(older) as source, ZipFile(half, "w", ZIP_STORED) as jar:
        for name in source.namelist():
            if name not in ours:
                jar.writestr(name, source.read(name))
        for name, content in ours.items():
            jar.writestr(name, content)
    half.rename(target)


def run_broker(config: str, command: Sequence[str]) -> None:
    """Becomes the broker, with the nodes and racks that the file of settings asks for."""
    wanted = dict(line.split("=", 1) for line in Path(config).read_text().splitlines() if "=" in line)
    nodes, racks = wanted.get("conformance.nodes", "1"), wanted.get("conformance.racks", "")
    options = (["--brokers", nodes] if nodes != "1" else []) + (["--racks", racks] if racks else [])
    os.execvp(command[0], [*command, *options])


def main(argv: Sequence[str]) -> int:
    if argv[0] == "broker":
        run_broker(argv[1], argv[2:])
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    from tools.newer_clients import kit_of, take_newer_clients

    script, release, *rest = argv
    kit = kit_of(script)
    if release != kit.KAFKA:
        take_newer_clients(kit, release)
    take_several_nodes(kit)
    at = rest.index(COMMAND) + 1
    broker = shlex.join([sys.executable, str(Path(__file__).resolve()), "broker"]) + f" {{config}} {rest[at]}"
    sys.argv = [script, *rest[:at], broker, *rest[at + 1 :], "--exclude", str(SOURCES / "excluded.txt")]
    return int(kit.main())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
