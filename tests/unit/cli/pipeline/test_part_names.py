"""Names of the pipeline that commands import when they run: no type checker sees them, so each is looked up here."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import groupkeeper

SRC = Path(groupkeeper.__file__).parent
PREFIXES = {"import_part": "", "import_job": "jobs."}


def test_every_name_is_there() -> None:
    uses = [use for path in sorted(SRC.rglob("*.py")) if path.name != "parts.py" for use in _uses(path)]
    assert len(uses) > 20
    missing = [f"{place}: {module}.{name}" for place, module, name in uses if name not in _names(module)]
    assert not missing


def _uses(path: Path) -> Iterator[tuple[str, str, str]]:
    """Where a module of the pipeline is used, its dotted name and the name that is taken from it."""
    text = path.read_text()
    if not any(f"{one}(" in text for one in PREFIXES):
        return
    for function in [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef)]:
        nodes = list(ast.walk(function))
        modules = dict(pair for node in nodes if isinstance(node, ast.Assign) for pair in _assigned(node))
        taken = set()
        for node in nodes:
            if isinstance(node, ast.Attribute):
                module = modules.get(node.value.id) if isinstance(node.value, ast.Name) else _imported(node.value)
                if module:
                    taken.add(module)
                    yield f"{path.relative_to(SRC)}:{node.lineno}", module, node.attr
        unseen = {module for node in nodes if (module := _imported(node))} - taken
        assert not unseen, f"{path}: {function.name} takes nothing from {unseen}, as far as this test sees"


def _assigned(node: ast.Assign) -> Iterator[tuple[str, str]]:
    """The names that stand for a module: from `name = import_part("…")`, also several at once."""
    for target in node.targets:
        match target, node.value:
            case ast.Tuple(targets), ast.Tuple(values):
                pairs = list(zip(targets, values, strict=True))
            case _:
                pairs = [(target, node.value)]
        for one, value in pairs:
            if isinstance(one, ast.Name) and (module := _imported(value)):
                yield one.id, module


def _imported(node: ast.AST) -> str | None:
    """The module that a call brings."""
    match node:
        case ast.Call(ast.Name(function), [ast.Constant(str(name))]) if function in PREFIXES:
            return PREFIXES[function] + name
    return None


@cache
def _names(module: str) -> set[str]:
    """What a module defines or imports at its top, by its text: importing it takes PySpark."""
    path = SRC / "pipeline" / module.replace(".", "/")
    tree = ast.parse((path / "__init__.py" if path.is_dir() else path.with_suffix(".py")).read_text())
    names: set[str] = set()
    for node in tree.body:
        match node:
            case ast.FunctionDef(name) | ast.ClassDef(name):
                names.add(name)
            case ast.ImportFrom() | ast.Import():
                names |= {one.asname or one.name for one in node.names}
            case ast.Assign() | ast.AnnAssign():
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                names |= {one.id for one in targets if isinstance(one, ast.Name)}
    return names
