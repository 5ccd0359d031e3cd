"""Contexts: clusters under names, each a file of properties in the platform's folder for configurations.

`contexts/NAME.properties` has `bootstrap.servers`, perhaps `command.config` (a file of more properties),
`groupkeeper.protected` and `journal.url`, and properties of the client. `current-context` has the name of the one
to use. Files can hold secrets: mode 0600.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from groupkeeper.java_properties import BadEscape, escaped, read_properties

SERVERS = "bootstrap.servers"
COMMAND_CONFIG = "command.config"
PROTECTED = "groupkeeper.protected"
JOURNAL = "journal.url"
VARIABLE = "GROUPKEEPER_CONTEXT"

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_SECRET = re.compile(r"password|secret|jaas|credential|token|private|(^|\.)key$|keystore\.key$")
_NO_SECRET = re.compile(r"\.(url|location|type|class|id|ms|seconds)$")
_SUFFIX = ".properties"


class ContextProblem(Exception):
    """A context doesn't exist, or cannot be read or written. The text is one line."""


class Context(NamedTuple):
    """A context."""

    name: str
    bootstrap_server: str
    command_config: str | None
    """The path of a file with more properties; None: none."""
    properties: Mapping[str, str]
    """The context's properties, which win over those of `command_config`."""
    is_protected: bool = False
    """Whether changes must be confirmed with the context's name."""
    journal: str | None = None
    """Where its changes are journalled; None: as for other clusters."""

    def all_properties(self) -> dict[str, str]:
        """What its file has."""
        own = {
            SERVERS: self.bootstrap_server,
            COMMAND_CONFIG: self.command_config,
            PROTECTED: "true" if self.is_protected else None,
            JOURNAL: self.journal,
        }
        return {name: value for name, value in own.items() if value} | dict(self.properties)


def folder() -> Path:
    """The folder of the files: $XDG_CONFIG_HOME/groupkeeper, %APPDATA%\\groupkeeper on Windows."""
    if sys.platform == "win32":
        return Path(os.environ.get("APPDATA") or Path.home()) / "groupkeeper"
    configured = os.environ.get("XDG_CONFIG_HOME", "")
    # By the specification, relative paths are ignored.
    base = Path(configured) if os.path.isabs(configured) else Path(os.path.expanduser("~")) / ".config"
    return base / "groupkeeper"


def names() -> list[str]:
    """The names of all contexts."""
    try:
        entries = os.listdir(folder() / "contexts")
    except OSError:
        return []
    found = (entry.removesuffix(_SUFFIX) for entry in entries if entry.endswith(_SUFFIX))
    return sorted(name for name in found if _NAME.fullmatch(name))


def is_name(text: str) -> bool:
    """Whether a context can have the name."""
    return _NAME.fullmatch(text) is not None


def read(name: str) -> Context:
    """The context of that name. Raises ContextProblem."""
    if not is_name(name) or not path_of(name).exists():
        raise ContextProblem(_unknown(name))
    try:
        properties = read_properties(str(path_of(name)))
    except OSError as problem:
        raise ContextProblem(f"cannot read {path_of(name)}: {problem.strerror}") from None
    except BadEscape as problem:
        raise ContextProblem(f"{path_of(name)}, line {problem.line}: {problem}") from None
    servers = properties.pop(SERVERS, "")
    if not servers:
        raise ContextProblem(f"{path_of(name)} has no {SERVERS}")
    is_protected = properties.pop(PROTECTED, "false").strip().lower() == "true"
    config, journal = properties.pop(COMMAND_CONFIG, None), properties.pop(JOURNAL, None)
    return Context(name, servers, config, properties, is_protected, journal)


def protecting(addresses: Iterable[str]) -> str | None:
    """The name of a protected context that has one of these addresses, HOST:PORT; None: there is none."""
    wanted = {address.strip().lower() for address in addresses}
    for name in names():
        with contextlib.suppress(ContextProblem):
            context = read(name)
            own = context.bootstrap_server.split(",")
            if context.is_protected and not wanted.isdisjoint(address.strip().lower() for address in own):
                return name
    return None


def _unknown(name: str) -> str:
    from groupkeeper.cli.framework.commands import similar

    known = names()
    way_out = similar(name, known) or (f"; known: {', '.join(known)}" if known else "; there are none yet")
    return f"there is no context {name!r}{way_out}"


def write(context: Context) -> None:
    """Writes the context, over one with its name. Raises ContextProblem."""
    lines = [f"{escaped(name, is_key=True)}={escaped(value)}\n" for name, value in context.all_properties().items()]
    _replace(path_of(context.name), "".join(lines))


def remove(name: str) -> None:
    """Deletes the context; if it was current, none is. Raises ContextProblem."""
    if name not in names():
        raise ContextProblem(_unknown(name))
    try:
        path_of(name).unlink()
        if current() == name:
            (folder() / "current-context").unlink()
    except OSError as problem:
        raise ContextProblem(f"cannot remove {problem.filename}: {problem.strerror}") from None


def current() -> str | None:
    """The context that `use` chose, None when there is none."""
    try:
        return (folder() / "current-context").read_text("utf-8").strip() or None
    except (OSError, UnicodeDecodeError):
        return None


def use(name: str) -> None:
    """Make the context current. Raises ContextProblem."""
    read(name)
    _replace(folder() / "current-context", f"{name}\n")


def is_open_to_others(name: str) -> bool:
    """Whether other users may read the file."""
    return bool(path_of(name).stat().st_mode & 0o077) and sys.platform != "win32"


def masked(name: str, value: str) -> str:
    """The value of a property for display, masked if it may be secret."""
    lower = name.lower()
    return "********" if value and _SECRET.search(lower) and not _NO_SECRET.search(lower) else value


def path_of(name: str) -> Path:
    return folder() / "contexts" / f"{name}{_SUFFIX}"


def _replace(path: Path, text: str) -> None:
    """Write the file so that it has either its old or its new content, and only its owner ever reads it."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(temporary, path)
    except OSError as problem:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise ContextProblem(f"cannot write {path}: {problem.strerror}") from None
