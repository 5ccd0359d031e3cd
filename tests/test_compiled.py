"""What mypyc changes without a word, in the modules of compiled.txt (docs/design/compiled.md), and what its build
refuses late.
"""

import ast
import builtins
import collections.abc
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TypeVar

import groupkeeper

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ROOT / "src"
OPEN_CLASS = "allow_interpreted_subclasses=True"
NO_NATIVE_CLASS = "native_class=False"
TAKERS = frozenset(
    "all any bytes dict extend fromkeys frozenset join list max min next set sorted sum tuple update".split()
)
EXCEPTIONS = {name for name, one in vars(builtins).items() if isinstance(one, type) and issubclass(one, BaseException)}
ABSTRACT = set(collections.abc.__all__)
MESSAGES = frozenset(["Message", "RootMessage"])
T = TypeVar("T", bound=ast.expr | ast.stmt | ast.Slice)


def patterns() -> list[str]:
    return [line for line in (ROOT / "compiled.txt").read_text().splitlines() if line and not line.startswith("#")]


@cache
def compiled() -> dict[str, ast.Module]:
    paths = [path for pattern in patterns() for path in SOURCES.glob(pattern)]
    return {str(path.relative_to(SOURCES)): ast.parse(path.read_text()) for path in paths}


def nodes(*kinds: type[T]) -> Iterator[tuple[str, T]]:
    """The nodes of these kinds, with their places."""
    for name, tree in compiled().items():
        yield from ((f"{name}:{node.lineno}", node) for node in ast.walk(tree) if isinstance(node, kinds))


def classes() -> list[tuple[str, ast.ClassDef]]:
    return list(nodes(ast.ClassDef))


def decorators(node: ast.ClassDef) -> str:
    return " ".join(ast.unparse(one) for one in node.decorator_list)


def bases(node: ast.ClassDef) -> set[str]:
    """Their names, without module and type arguments."""
    return {ast.unparse(one).partition("[")[0].rpartition(".")[2] for one in node.bases}


def test_each_line_names_modules() -> None:
    assert [pattern for pattern in patterns() if not list(SOURCES.glob(pattern))] == []
    assert patterns() == sorted(set(patterns()))


def test_no_class_is_only_for_type_checkers() -> None:
    """mypyc compiles no class in an `if`: define it in the module."""
    found = [
        f"{place} {node.name}"
        for place, branch in nodes(ast.If)
        if "TYPE_CHECKING" in ast.unparse(branch.test)
        for node in branch.body
        if isinstance(node, ast.ClassDef)
    ]
    assert found == []


def test_no_union_is_of_classes_of_another_module() -> None:
    """mypyc does not compile `Request = m.Join | m.Sync`: import the classes by name."""
    made: list[tuple[str, ast.Assign | ast.AnnAssign]] = [*nodes(ast.Assign), *nodes(ast.AnnAssign)]
    found = [
        f"{place} {ast.unparse(node)}"
        for place, node in made
        if isinstance(node.value, ast.BinOp) and isinstance(node.value.op, ast.BitOr)
        if any(isinstance(one, ast.Attribute) for one in ast.walk(node.value))
    ]
    assert found == []


def test_no_slice_ends_at_a_negative_number() -> None:
    """`key[2:-4]` of three bytes is empty; compiled it is a SystemError."""
    found = [
        place
        for place, node in nodes(ast.Slice)
        if node.lower is not None and isinstance(node.upper, ast.UnaryOp) and isinstance(node.upper.op, ast.USub)
    ]
    assert found == []


def test_no_slice_is_a_value() -> None:
    """Bytes refuse it where they are compiled."""
    assert [place for place, call in nodes(ast.Call) if ast.unparse(call.func) == "slice"] == []


def test_generator_expressions_are_for_what_takes_all_at_once() -> None:
    """Any other is a list when compiled: what was to be found in its first element is looked for in all."""
    at_once = set()
    for _, call in nodes(ast.Call):
        name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
        if name in TAKERS:
            at_once.update(call.args)
    assert [place for place, node in nodes(ast.GeneratorExp) if node not in at_once] == []


def test_no_dataclass_has_a_class_variable() -> None:
    """It would become a field."""
    found = [
        f"{place} {node.name}"
        for place, node in classes()
        if "dataclass" in decorators(node) and "ClassVar" in ast.unparse(node)
    ]
    assert found == []


def test_slots_that_are_read_are_class_variables() -> None:
    """Others are not there when the program runs, and the fields of a message are found by them."""
    found = [
        f"{place} {node.name}"
        for place, node in classes()
        if bases(node) & MESSAGES or "self.__slots__" in ast.unparse(node)
        for line in node.body
        if isinstance(line, ast.Assign) and ast.unparse(line.targets[0]) in ("__slots__", "__match_args__")
    ]
    assert found == []


def test_classes_that_others_derive_from_are_open() -> None:
    """Python refuses to derive from another compiled class, and compiled code to take an object of the new class.

    One that is not native can be derived from, but compiled code asks for the exact type: `isinstance` is false, and
    `except … as error` a TypeError.
    """
    closed = {
        node.name for _, node in classes() if OPEN_CLASS not in decorators(node) or NO_NATIVE_CLASS in decorators(node)
    }
    derived = re.compile(rf"^ *class \w+\((?:.*, )?(?:{'|'.join(closed)})[\[,)].*", re.MULTILINE)
    found = [
        (str(path.relative_to(SOURCES)), line)
        for path in SOURCES.glob("groupkeeper/**/*.py")
        if str(path.relative_to(SOURCES)) not in compiled()
        for line in derived.findall(path.read_text())
    ]
    assert found == []


def test_exceptions_are_no_native_classes() -> None:
    """Those that other modules derive from native ones lack attributes, and aren't taken for what they are."""
    found = [
        f"{place} {node.name}"
        for place, node in classes()
        if bases(node) & EXCEPTIONS and NO_NATIVE_CLASS not in decorators(node)
    ]
    assert found == []


def test_classes_derived_from_collections_are_told_apart_by_their_type() -> None:
    """Every list and text is an instance of a compiled class derived from `Sequence`."""
    derived = {node.name for _, node in classes() if bases(node) & ABSTRACT}
    asked = {ast.unparse(call.args[1]) for _, call in nodes(ast.Call) if ast.unparse(call.func) == "isinstance"}
    assert derived == {"Rows"}
    # Alone, in the module of the class, it is compiled to a comparison of types.
    assert [one for one in asked if re.search(r"\bRows\b", one) and one != "Rows"] == []


def test_what_users_import_is_not_compiled() -> None:
    """They may derive from it, and replace parts of it in their tests."""
    modules = {name.removesuffix(".py").replace("/", ".") for name in compiled()}
    assert modules.isdisjoint(getattr(groupkeeper, name).__module__ for name in groupkeeper.__all__[1:])
