"""Generates the writer of one message for its flexible or its other versions."""

from __future__ import annotations

from itertools import groupby

from tools.protocol.code import Code, condition, default_value, is_fixed
from tools.protocol.reading import NUMBERS, letters
from tools.protocol.schema import FIXED_FORMATS, Field, Message, Struct, Versions


def writer(code: Code, message: Message, name: str, flexible: bool, versions: Versions) -> None:
    code.blank(2)
    with code.block(f"def {name}(value: {message.name}, out: bytearray, version: int) -> None:"):
        _Writer(code, message, flexible).struct(message.root, versions, "value", "out")


class _Writer:
    def __init__(self, code: Code, message: Message, flexible: bool) -> None:
        self.code = code
        self.message = message
        self.flexible = flexible
        self.letters = letters()

    def struct(self, struct: Struct, scope: Versions, value: str, out: str) -> None:
        """Code that appends the struct in variable `value` to `out`."""
        letter = next(self.letters)
        start = len(self.code.lines)
        tagged = [item for item in struct.fields if self.flexible and item.tagged & scope]
        for item in struct.fields:
            self._refuse_absent(item, scope, f"{value}.{item.name}")
        plain = [
            f for f in struct.fields if f not in tagged and f.versions & scope and (self.flexible or f.tag is None)
        ]
        runs = [(test, list(run)) for test, run in groupby(plain, key=lambda f: condition(f.versions, scope))]
        ends_with_tag = self.flexible and not tagged
        for index, (test, items) in enumerate(runs):
            closing = ends_with_tag and index == len(runs) - 1 and test is None
            with self.code.maybe(test):
                self._run(items, scope, value, letter, out, closing)
            ends_with_tag = ends_with_tag and not closing
        if tagged:
            self._tags(tagged, scope, value, letter, out)
        elif ends_with_tag:
            self.code.line(f"{out}.append(0)")
        if len(self.code.lines) == start:
            self.code.line("pass")

    def _refuse_absent(self, item: Field, scope: Versions, name: str) -> None:
        """A value that this version has no place for is an error unless the field may be ignored."""
        if item.ignorable or item.versions.covers(scope):
            return
        test = condition(item.versions, scope) if item.versions & scope else None
        guard = f"not ({test}) and " if test else ""
        with self.code.block(f"if {guard}{self._differs(item, name)}:"):
            self.code.line(f'raise {self.code.use("absent")}("{item.name}", version)')

    def _differs(self, item: Field, name: str, *, tagged: bool = False) -> str:
        """The test for "the field has another value than its default"; a None that is not allowed differs in a tag."""
        default = default_value(self.code, item)
        if default == "None":
            return f"{name} is not None"
        if default in ("()", '""', 'b""', "False"):
            return f"({name} is None or {name})" if item.nullable or (tagged and default != "False") else name
        if default == "True":
            return f"not {name}"
        return f"{name} != {default}"

    def _run(self, items: list[Field], scope: Versions, value: str, letter: str, out: str, closing: bool) -> None:
        groups = [(fixed, list(run)) for fixed, run in groupby(items, key=is_fixed)]
        for index, (fixed, group) in enumerate(groups):
            last = closing and index == len(groups) - 1
            if fixed:
                self._fixed(group, value, out, last)
                continue
            for item in group:
                self._one(item, scope & item.versions, value, letter, out)
            if last:
                self.code.line(f"{out}.append(0)")

    def _fixed(self, items: list[Field], value: str, out: str, closing: bool) -> None:
        """Neighbours of fixed width at once, the empty tag section behind them included."""
        formats = "".join(FIXED_FORMATS[item.type] for item in items) + ("x" if closing else "")
        if formats == "16s":
            self.code.line(f"{out} += {value}.{items[0].name}")
            return
        names = ", ".join(f"{value}.{item.name}" for item in items)
        self.code.line(f"{out} += {self.code.struct(formats)}.pack({names})")

    def _one(self, item: Field, scope: Versions, value: str, letter: str, out: str, *, tagged: bool = False) -> None:
        """One field of variable width. None is written as null where some version of the scope allows it."""
        code, local = self.code, f"{letter}_{item.name}"
        code.line(f"{local} = {value}.{item.name}")
        if not item.nullable:
            self._present(item, scope, local, out)
            return
        with code.block(f"if {local} is None:"):
            test = condition(item.nullable & scope, scope) if item.nullable & scope else "False"
            if test is not None:
                with code.maybe(None if test == "False" else f"not ({test})"):
                    code.line(f'raise {code.use("absent")}("{item.name} = null", version)')
            if test != "False":
                code.line(self._null(item, out, tagged))
        with code.maybe(None if test == "False" else "else"):
            self._present(item, scope, local, out)

    def _null(self, item: Field, out: str, tagged: bool) -> str:
        if item.struct_name is not None and not item.is_array:
            return f"{out}.append({0 if tagged else 255})"
        if self.flexible and not item.inflexible:
            return f"{out}.append(0)"
        width = 2 if item.type == "string" else 4
        return f'{out} += b"{chr(92)}xff{(chr(92) + "xff") * (width - 1)}"'

    def _present(self, item: Field, scope: Versions, local: str, out: str) -> None:
        if item.is_array:
            self._array(item, scope, local, out)
        elif item.struct_name is not None:
            if item.nullable & scope:
                self.code.line(f"{out}.append(1)")
            self.struct(self.message.structs[item.struct_name], scope, local, out)
        else:
            self._variable(item.type, local, out, item.inflexible)

    def _variable(self, kind: str, local: str, out: str, inflexible: bool = False) -> None:
        code, text = self.code, kind == "string"
        if not self.flexible or inflexible:
            code.line(f"{code.use('write_text' if text else 'write_bytes')}({out}, {local})")
        elif not text:
            code.line(f"{code.use('write_compact_bytes')}({out}, {local})")
        else:
            code.line(f"encoded = {local}.encode()")
            self._size("len(encoded) + 1", out)
            code.line(f"{out} += encoded")

    def _size(self, expression: str, out: str) -> None:
        """An unsigned varint, in line where it is one byte."""
        code = self.code
        code.line(f"size = {expression}")
        with code.block("if size < 128:"):
            code.line(f"{out}.append(size)")
        with code.block("else:"):
            code.line(f"{out} += {code.use('varint')}(size)")

    def _array(self, item: Field, scope: Versions, local: str, out: str) -> None:
        code = self.code
        if self.flexible:
            self._size(f"len({local}) + 1", out)
        else:
            code.line(f"{out} += {code.struct('i')}.pack(len({local}))")
        if item.element in NUMBERS:
            code.line(f'{code.use("write_numbers")}({out}, {local}, "{FIXED_FORMATS[item.element]}")')
            return
        element = f"item_{local}"
        with code.block(f"for {element} in {local}:"):
            if item.struct_name is not None:
                self.struct(self.message.structs[item.struct_name], scope, element, out)
            elif item.element == "uuid":
                code.line(f"{out} += {element}")
            else:
                self._variable(item.element, element, out)

    def _tags(self, tagged: list[Field], scope: Versions, value: str, letter: str, out: str) -> None:
        """The tagged-field section: only fields that differ from their default, in the order of their tags."""
        code, section, inner = self.code, f"tags_{letter}", f"field_{letter}"
        code.line(f"{section}: list[tuple[int, bytearray]] = []")
        for item in sorted(tagged, key=lambda f: f.tag or 0):
            test = condition(item.tagged, scope)
            guard = f"{test} and " if test else ""
            with code.block(f"if {guard}{self._differs(item, f'{value}.{item.name}', tagged=True)}:"):
                code.line(f"{inner} = bytearray()")
                if is_fixed(item):
                    self._fixed([item], value, inner, False)
                else:
                    self._one(item, scope & item.tagged, value, letter, inner, tagged=True)
                code.line(f"{section}.append(({item.tag}, {inner}))")
        varint = code.use("varint")
        code.line(f"{out} += {varint}(len({section}))")
        with code.block(f"for tag_{letter}, {inner} in {section}:"):
            code.line(f"{out} += {varint}(tag_{letter}) + {varint}(len({inner}))")
            code.line(f"{out} += {inner}")
