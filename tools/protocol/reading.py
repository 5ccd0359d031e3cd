"""Generates the reader of one message for its flexible or its other versions."""

from __future__ import annotations

from itertools import groupby

from tools.protocol.code import WIDTHS, Code, condition, default_value, is_fixed
from tools.protocol.schema import FIXED_FORMATS, Field, Message, Struct, Versions


def reader(code: Code, message: Message, name: str, flexible: bool, versions: Versions) -> None:
    code.blank(2)
    with code.block(f"def {name}(buf: bytes, pos: int, version: int) -> tuple[{message.name}, int]:"):
        _Reader(code, message, flexible).struct(message.root, versions, "a", "value")
        code.line("return value, pos")


class _Reader:
    def __init__(self, code: Code, message: Message, flexible: bool) -> None:
        self.code = code
        self.message = message
        self.flexible = flexible

    def struct(self, struct: Struct, scope: Versions, letter: str, target: str) -> None:
        """Code that reads one struct at `pos` into `target`."""
        arguments = [self._argument(item, scope, letter) for item in struct.fields]
        tagged = [item for item in struct.fields if self._is_tagged(item, scope)]
        plain = [item for item in struct.fields if item not in tagged and item.versions & scope]
        for test, run in groupby(plain, key=lambda item: condition(item.versions, scope)):
            items = list(run)
            with self.code.maybe(test):
                self._run(items, scope, letter)
            if test is not None:
                with self.code.block("else:"):
                    for item in items:
                        self.code.line(f"{letter}_{item.name} = {default_value(self.code, item)}")
        if self.flexible:
            self._tags(tagged, scope, letter)
        self.code.line(f"{target} = {struct.name}({', '.join(arguments)})")

    def _is_tagged(self, item: Field, scope: Versions) -> bool:
        return self.flexible and bool(item.tagged & scope)

    def _argument(self, item: Field, scope: Versions, letter: str) -> str:
        if item.versions & scope and (self.flexible or item.tag is None):
            return f"{letter}_{item.name}"
        return default_value(self.code, item)

    def _run(self, items: list[Field], scope: Versions, letter: str) -> None:
        """Fields that are present together; neighbours of fixed width are read at once."""
        for fixed, run in groupby(items, key=is_fixed):
            group = list(run)
            if fixed:
                self._fixed(group, letter)
            else:
                for item in group:
                    self._one(item, scope & item.versions, f"{letter}_{item.name}", letter)

    def _fixed(self, items: list[Field], letter: str) -> None:
        names = [f"{letter}_{item.name}" for item in items]
        width = sum(WIDTHS[item.type] for item in items)
        if len(items) == 1 and items[0].type == "bool":
            self.code.line(f"{names[0]} = buf[pos] != 0")
        elif len(items) == 1 and items[0].type == "uuid":
            self.code.line(f"{names[0]} = buf[pos : pos + 16]")
        else:
            struct = self.code.struct("".join(FIXED_FORMATS[item.type] for item in items))
            targets = ", ".join(names) if len(names) > 1 else f"({names[0]},)"
            self.code.line(f"{targets} = {struct}.unpack_from(buf, pos)")
        self.code.line(f"pos += {width}")

    def _one(self, item: Field, scope: Versions, target: str, letter: str, tagged: bool = False) -> None:
        if is_fixed(item):
            self._fixed([item], letter)
        elif item.is_array:
            self._array(item, scope, target, letter)
        elif item.struct_name is not None:
            self._single_struct(item, scope, target, letter, tagged)
        else:
            self._variable(item.type, item, scope, target, item.inflexible)

    def _null_branch(self, item: Field, scope: Versions, target: str, advance: str) -> None:
        """What to do on a null: take it where some version of the scope allows it, refuse it elsewhere."""
        test = condition(item.nullable, scope)
        if test is not None:
            with self.code.block(f"if not ({test}):"):
                self.code.line(f'raise {self.code.use("refuse_null")}("{item.name}", pos)')
        self.code.line(f"{target} = None")
        if advance:
            self.code.line(advance)

    def _variable(self, kind: str, item: Field, scope: Versions, target: str, inflexible: bool = False) -> None:
        """A string or bytes value, with a fast path for a compact length of one byte."""
        code, may_be_null = self.code, bool(item.nullable & scope) and not item.is_array
        text = kind == "string"
        if self.flexible and not inflexible:
            slow = code.use("read_compact_text" if text else "read_compact_bytes")
            code.line("size = buf[pos]")
            with code.block("if 0 < size < 128:"):
                code.line("end = pos + size")
                code.line(f"{target} = buf[pos + 1 : end]{'.decode()' if text else ''}")
                code.line("pos = end")
            if may_be_null:
                with code.block("elif size == 0:"):
                    self._null_branch(item, scope, target, "pos += 1")
            with code.block("else:"):
                code.line(f"{target}, pos = {slow}(buf, pos)")
            return
        slow = code.use("read_text" if text else "read_bytes")
        if may_be_null:
            struct, width = code.struct("h" if text else "i"), 2 if text else 4
            with code.block(f"if {struct}.unpack_from(buf, pos)[0] == -1:"):
                self._null_branch(item, scope, target, f"pos += {width}")
            with code.block("else:"):
                code.line(f"{target}, pos = {slow}(buf, pos)")
        else:
            code.line(f"{target}, pos = {slow}(buf, pos)")

    def _single_struct(self, item: Field, scope: Versions, target: str, letter: str, tagged: bool) -> None:
        assert item.struct_name is not None
        struct = self.message.structs[item.struct_name]
        if not item.nullable & scope:
            self.struct(struct, scope, chr(ord(letter) + 1), target)
            return
        # Whether a struct follows is a signed byte in front of it, but an unsigned varint where it is a tagged field.
        with self.code.block("if buf[pos] == 0:" if tagged else "if buf[pos] > 127:"):
            self._null_branch(item, scope, target, "pos += 1")
        with self.code.block("else:"):
            self.code.line("pos += 1")
            self.struct(struct, scope, chr(ord(letter) + 1), target)

    def _array(self, item: Field, scope: Versions, target: str, letter: str) -> None:
        code = self.code
        counter = code.use("read_compact_count" if self.flexible else "read_count")
        count = f"count_{letter}"
        code.line(f"{count}, pos = {counter}(buf, pos)")
        with code.block(f"if {count} < 0:"):
            if not item.nullable & scope:
                code.line(f'raise {code.use("refuse_null")}("{item.name}", pos)')
            else:
                self._null_branch(item, scope, target, "")
        if not item.nullable & scope:
            self._elements(item, scope, target, letter, count)
            return
        with code.block("else:"):
            self._elements(item, scope, target, letter, count)

    def _elements(self, item: Field, scope: Versions, target: str, letter: str, count: str) -> None:
        code = self.code
        if item.element in ("int8", "int16", "int32", "int64"):
            width, letters = WIDTHS[item.element], FIXED_FORMATS[item.element]
            code.line(f'{target}, pos = {code.use("read_numbers")}(buf, pos, {count}, "{letters}", {width})')
            return
        code.line(f"{target} = []")
        code.line(f"append_{letter} = {target}.append")
        with code.block(f"for _ in range({count}):"):
            self._element(item, scope, letter)
            code.line(f"append_{letter}(element)")

    def _element(self, item: Field, scope: Versions, letter: str) -> None:
        if item.struct_name is not None:
            self.struct(self.message.structs[item.struct_name], scope, chr(ord(letter) + 1), "element")
        elif item.element == "uuid":
            self.code.line("element = buf[pos : pos + 16]")
            self.code.line("pos += 16")
        else:
            self._variable(item.element, item, scope, "element")

    def _tags(self, tagged: list[Field], scope: Versions, letter: str) -> None:
        code = self.code
        for item in tagged:
            code.line(f"{letter}_{item.name} = {default_value(code, item)}")
        if not tagged:
            with code.block("if buf[pos]:"):
                code.line(f"pos = {code.use('skip_tags')}(buf, pos)")
            with code.block("else:"):
                code.line("pos += 1")
            return
        varint = code.use("read_varint")
        code.line(f"tags_{letter}, pos = {code.use('read_tag_count')}(buf, pos)")
        with code.block(f"for _ in range(tags_{letter}):"):
            code.line(f"tag_{letter}, pos = {varint}(buf, pos)")
            code.line(f"size, pos = {varint}(buf, pos)")
            code.line(f"end_{letter} = pos + size")
            for index, item in enumerate(tagged):
                test = condition(item.tagged, scope)
                extra = f" and {test}" if test else ""
                with code.block(f"{'elif' if index else 'if'} tag_{letter} == {item.tag}{extra}:"):
                    self._one(item, scope & item.tagged, f"{letter}_{item.name}", letter, tagged=True)
            with code.block("else:"):
                code.line(f"pos = end_{letter}")
            with code.block(f"if pos != end_{letter}:"):
                code.line(f"raise {code.use('refuse_tag')}(tag_{letter})")
