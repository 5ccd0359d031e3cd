"""Coordinators with a bug: the modules under test imported anew, with a piece of their source replaced."""

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path
from types import ModuleType

import groupkeeper

COORDINATOR = "groupkeeper.coordinator"
PACKAGES = (COORDINATOR, "tests.memory_shell", "tests.scenarios", "tests.simulation")
SHELLS = ("groupkeeper.broker", "tests.unit.broker")
"""What is imported anew, too, where the bug is in the broker."""


class DoesNotApply(AssertionError):
    """The source has changed: the piece to replace is not in it exactly once."""


def _is_concerned(name: str, packages: tuple[str, ...]) -> bool:
    return any(name == package or name.startswith(package + ".") for package in packages)


@contextmanager
def mutated(module: str, old: str, new: str, runner: str = "classic.run") -> Iterator[ModuleType]:
    """Gives `tests.simulation.classic.run`, or another `runner`, where the text `old` of a `module` is `new`.

    The modules of this run are others than those imported elsewhere, which come back at the end.
    """
    packages = PACKAGES if _is_concerned(module, (COORDINATOR,)) else PACKAGES + SHELLS
    kept = {name: sys.modules.pop(name) for name in list(sys.modules) if _is_concerned(name, packages)}
    try:
        _load_mutant(module, old, new)
        yield importlib.import_module(f"tests.simulation.{runner}")
    finally:
        for name in [name for name in sys.modules if _is_concerned(name, packages)]:
            del sys.modules[name]
        sys.modules.update(kept)
        for name, value in kept.items():
            parent, _, child = name.rpartition(".")
            if parent in sys.modules:
                setattr(sys.modules[parent], child, value)


def _load_mutant(name: str, old: str, new: str) -> None:
    """Imports the module with the change, whoever of its packages imports it first."""
    file = Path(groupkeeper.__file__).parent.joinpath(*name.split(".")[1:]).with_suffix(".py")
    source = file.read_text(encoding="utf-8")
    if source.count(old) != 1:
        raise DoesNotApply(f"{name} has {source.count(old)} times: {old}")
    finder = SourceFinder(name, file, source.replace(old, new))
    sys.meta_path.insert(0, finder)
    try:
        importlib.import_module(name)
    finally:
        sys.meta_path.remove(finder)


class SourceFinder(MetaPathFinder, Loader):
    """Loads one module from another source than its file's."""

    def __init__(self, name: str, file: Path, source: str) -> None:
        self._name = name
        self._file = file
        self._source = source

    def find_spec(self, fullname: str, path: object, target: ModuleType | None = None) -> ModuleSpec | None:
        return spec_from_file_location(fullname, self._file, loader=self) if fullname == self._name else None

    def exec_module(self, module: ModuleType) -> None:
        exec(compile(self._source, self._file, "exec"), module.__dict__)
