"""Coordinators with a bug: the modules under test imported anew, with a piece of their source replaced."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

PACKAGES = ("groupkeeper.coordinator", "tests.memory_shell", "tests.scenarios", "tests.simulation")


class DoesNotApply(AssertionError):
    """The source has changed: the piece to replace is not in it exactly once."""


def _is_concerned(name: str) -> bool:
    return any(name == package or name.startswith(package + ".") for package in PACKAGES)


@contextmanager
def mutated(module: str, old: str, new: str, runner: str = "run") -> Iterator[ModuleType]:
    """Gives `tests.simulation.run`, or another `runner`, on a coordinator in whose `module` the text `old` is `new`.

    The modules of this run are others than those imported elsewhere, which come back at the end.
    """
    kept = {name: sys.modules.pop(name) for name in list(sys.modules) if _is_concerned(name)}
    try:
        _load_mutant(f"groupkeeper.coordinator.{module}", old, new)
        yield importlib.import_module(f"tests.simulation.{runner}")
    finally:
        for name in [name for name in sys.modules if _is_concerned(name)]:
            del sys.modules[name]
        sys.modules.update(kept)
        for name, value in kept.items():
            parent, _, child = name.rpartition(".")
            if parent in sys.modules:
                setattr(sys.modules[parent], child, value)


def _load_mutant(name: str, old: str, new: str) -> None:
    importlib.import_module("groupkeeper.coordinator")
    spec = importlib.util.find_spec(name)
    assert spec is not None
    assert spec.origin is not None
    source = Path(spec.origin).read_text(encoding="utf-8")
    if source.count(old) != 1:
        raise DoesNotApply(f"{name} has {source.count(old)} times: {old}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    exec(compile(source.replace(old, new), spec.origin, "exec"), module.__dict__)
