"""Source text being built, and what reader and writer generators share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tools.protocol.schema import FIXED_FORMATS, Field, Versions

WIDTHS = {"int8": 1, "int16": 2, "uint16": 2, "int32": 4, "uint32": 4, "int64": 8, "float64": 8, "bool": 1, "uuid": 16}


class Code:
    """Lines of Python at a growing indentation, with the names they need from elsewhere."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.depth = 0
        self.imports: set[str] = set()
        self.structs: dict[str, str] = {}
        self.uses_sequence = False

    def line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    def blank(self, count: int = 1) -> None:
        self.lines.extend([""] * count)

    @contextmanager
    def block(self, heading: str) -> Iterator[None]:
        self.line(heading)
        self.depth += 1
        yield
        self.depth -= 1

    @contextmanager
    def maybe(self, condition: str | None) -> Iterator[None]:
        """A block under `if condition:` (under `else:` for that word), or no block where there is no condition."""
        if condition is None:
            yield
        else:
            with self.block("else:" if condition == "else" else f"if {condition}:"):
                yield

    def use(self, name: str) -> str:
        self.imports.add(name)
        return name

    def struct(self, letters: str) -> str:
        """The name of a module-level struct.Struct with these format letters."""
        name = "_" + letters.replace("16s", "u").replace("?", "t")
        self.structs[name] = ">" + letters
        return name

    def text(self) -> str:
        return "\n".join(self.lines).rstrip() + "\n"


def condition(present: Versions, scope: Versions) -> str | None:
    """The test for "the version is in `present`" among the versions of `scope`; None when that always holds."""
    if present.covers(scope):
        return None
    if present.high >= scope.high:
        return f"version >= {present.low}"
    if present.low <= scope.low:
        return f"version <= {present.high}"
    if present.low == present.high:
        return f"version == {present.low}"
    return f"{present.low} <= version <= {present.high}"


def python_type(code: Code, item: Field) -> str:
    names = {"string": "str", "bytes": "bytes", "records": "bytes", "uuid": "bytes", "bool": "bool", "float64": "float"}
    name = item.struct_name or names.get(item.element, "int")
    if item.is_array:
        code.uses_sequence = True
        name = f"Sequence[{name}]"
    return f"{name} | None" if item.nullable else name


def default_value(code: Code, item: Field) -> str:
    """The value of a field that is absent."""
    if item.default == "null":
        return "None"
    if item.is_array:
        return "()"
    if item.struct_name is not None:
        return f"{item.struct_name}()"
    if item.type == "uuid":
        return code.use("ZERO_UUID")
    if item.type == "string":
        return f'"{item.default or ""}"'
    if item.type in ("bytes", "records"):
        return 'b""'
    if item.type == "bool":
        return "True" if item.default == "true" else "False"
    if item.type == "float64":
        return repr(float(item.default or 0))
    return str(int(item.default or "0", 0))


def is_fixed(item: Field) -> bool:
    return item.type in FIXED_FORMATS
