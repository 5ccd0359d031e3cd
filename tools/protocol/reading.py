"""Generates the reader of one message for its flexible or its other versions.

Every struct that is read in line has a letter (a, b, ..., then aa, ab, ...) in front of its local variables, so
that each variable of the generated function has one type. Where a fixed-width field is followed by a compact length
or by the tag section, that one byte is unpacked together with the field into `size`.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count, groupby, product
from string import ascii_lowercase

from tools.protocol.code import WIDTHS, Code, condition, default_value, is_fixed, python_type
from tools.protocol.schema import FIXED_FORMATS, Field, Message, Struct, Versions

NUMBERS = ("int8", "int16", "int32", "int64")

BY_COLUMN = {"OffsetFetchResponsePartitions"}
"""Structs of which a message has very many, and a program wants the fields rather than the structs."""


def letters() -> Iterator[str]:
    """a to z, then aa, ab, ..."""
    for length in count(1):
        for combination in product(ascii_lowercase, repeat=length):
            yield "".join(combination)


def reader(code: Code, message: Message, name: str, flexible: bool, versions: Versions) -> None:
    code.blank(2)
    with code.block(f"def {name}(buf: bytes, pos: int, version: int) -> tuple[{message.name}, int]:"):
        value = _Reader(code, message, flexible).struct(message.root, versions)
        code.line(f"return {value}, pos")


class _Reader:
    def __init__(self, code: Code, message: Message, flexible: bool) -> None:
        self.code = code
        self.message = message
        self.flexible = flexible
        self.letters = letters()

    def struct(self, struct: Struct, scope: Versions) -> str:
        """Code that reads the fields of one struct at `pos`; the expression that makes it of them."""
        letter = next(self.letters)
        tagged = [item for item in struct.fields if self._is_tagged(item, scope)]
        plain = [item for item in struct.fields if item not in tagged and item.versions & scope]
        runs = [(test, list(run)) for test, run in groupby(plain, key=lambda item: condition(item.versions, scope))]
        for item in plain:
            self._declare(item, scope, letter)
        size_is_read = False
        for index, (test, items) in enumerate(runs):
            ends = self.flexible and index == len(runs) - 1 and test is None
            with self.code.maybe(test):
                size_is_read = self._run(items, scope, letter, ends)
            if test is not None:
                with self.code.block("else:"):
                    for item in items:
                        self.code.line(f"{letter}_{item.name} = {default_value(self.code, item)}")
        if self.flexible:
            self._tags(tagged, scope, letter, size_is_read)
        return f"{struct.name}({', '.join(self._argument(item, scope, letter) for item in struct.arguments)})"

    def _declare(self, item: Field, scope: Versions, letter: str) -> None:
        """The type of a variable that gets values in more than one place; declaring it costs nothing at run time."""
        if is_fixed(item) and not self._is_tagged(item, scope):
            return
        several = not item.versions.covers(scope) or bool(item.nullable & scope) or self._is_tagged(item, scope)
        several = several or item.struct_name in BY_COLUMN
        if several and (item.nullable or item.is_array or item.struct_name is not None):
            self.code.line(f"{letter}_{item.name}: {python_type(self.code, item)}")

    def _is_tagged(self, item: Field, scope: Versions) -> bool:
        return self.flexible and bool(item.tagged & scope)

    def _argument(self, item: Field, scope: Versions, letter: str) -> str:
        if item.versions & scope and (self.flexible or item.tag is None):
            return f"{letter}_{item.name}"
        return default_value(self.code, item)

    def _run(self, items: list[Field], scope: Versions, letter: str, ends: bool) -> bool:
        """Fields that are present together, neighbours of fixed width at once; whether `size` was read ahead."""
        groups = [(fixed, list(run)) for fixed, run in groupby(items, key=is_fixed)]
        size_is_read = False
        for index, (fixed, group) in enumerate(groups):
            if fixed:
                follower = groups[index + 1][1][0] if index + 1 < len(groups) else None
                size_is_read = ends if follower is None else self._starts_with_size(follower, scope)
                self._fixed(group, letter, size_is_read)
                continue
            for item in group:
                self._one(item, scope & item.versions, f"{letter}_{item.name}", size_is_read)
                size_is_read = False
        return size_is_read

    def _starts_with_size(self, item: Field, scope: Versions) -> bool:
        is_struct = item.struct_name is not None and not item.is_array
        return self.flexible and not item.inflexible and not is_struct

    def _fixed(self, items: list[Field], letter: str, reads_size: bool = False) -> None:
        names = [f"{letter}_{item.name}" for item in items]
        width = sum(WIDTHS[item.type] for item in items)
        if len(items) == 1 and items[0].type == "bool" and not reads_size:
            self.code.line(f"{names[0]} = buf[pos] != 0")
        elif len(items) == 1 and items[0].type == "uuid" and not reads_size:
            self.code.line(f"{names[0]} = buf[pos : pos + 16]")
        else:
            formats = "".join(FIXED_FORMATS[item.type] for item in items)
            if reads_size:
                formats, names, width = formats + "B", [*names, "size"], width + 1
            targets = ", ".join(names) if len(names) > 1 else f"({names[0]},)"
            self.code.line(f"{targets} = {self.code.struct(formats)}.unpack_from(buf, pos)")
        self.code.line(f"pos += {width}")

    def _one(self, item: Field, scope: Versions, target: str, size_is_read: bool = False) -> None:
        if item.is_array:
            self._array(item, scope, target, size_is_read)
        elif item.struct_name is not None:
            self._single_struct(item, scope, target, tagged=False)
        elif self.flexible and not item.inflexible:
            self._compact(item.type, item, scope, target, size_is_read)
        else:
            self._prefixed(item.type, item, scope, target)

    def _null_branch(self, item: Field, scope: Versions, target: str, advance: str | None = None) -> None:
        """What to do on a null: take it where some version of the scope allows it, refuse it elsewhere."""
        test = condition(item.nullable, scope)
        if test is not None:
            with self.code.block(f"if not ({test}):"):
                self._refuse_null(item)
        self.code.line(f"{target} = None")
        if advance is not None:
            self.code.line(advance)

    def _refuse_null(self, item: Field) -> None:
        self.code.line(f'raise {self.code.use("refuse_null")}("{item.name}", pos)')

    def _compact(self, kind: str, item: Field, scope: Versions, target: str, size_is_read: bool) -> None:
        """A compact string or bytes value; a length of one byte is handled in line."""
        code, text = self.code, kind == "string"
        slow = code.use("read_compact_text" if text else "read_compact_bytes")
        decode = ".decode()" if text else ""
        advance = None if size_is_read else "pos += 1"
        if not size_is_read:
            code.line("size = buf[pos]")
        with code.block("if 1 < size < 128:"):
            code.line("end = pos + size - 1" if size_is_read else "end = pos + size")
            code.line(f"{target} = buf[{'pos' if size_is_read else 'pos + 1'} : end]{decode}")
            code.line("pos = end")
        with code.block("elif size == 1:"):
            code.line(f"{target} = {'' if text else 'b'}" + '""')
            if advance is not None:
                code.line(advance)
        if item.nullable & scope and not item.is_array:
            with code.block("elif size == 0:"):
                self._null_branch(item, scope, target, advance)
        with code.block("else:"):
            code.line(f"{target}, pos = {slow}(buf, {'pos - 1' if size_is_read else 'pos'})")

    def _prefixed(self, kind: str, item: Field, scope: Versions, target: str) -> None:
        """A string or bytes value with a length of fixed width."""
        code, noun = self.code, "text" if kind == "string" else "bytes"
        if not item.nullable & scope or item.is_array:
            code.line(f"{target}, pos = {code.use(f'read_{noun}')}(buf, pos)")
            return
        code.line(f"{target}, pos = {code.use(f'read_nullable_{noun}')}(buf, pos)")
        test = condition(item.nullable, scope)
        if test is not None:
            with code.block(f"if {target} is None and not ({test}):"):
                self._refuse_null(item)

    def _single_struct(self, item: Field, scope: Versions, target: str, tagged: bool) -> None:
        assert item.struct_name is not None
        struct = self.message.structs[item.struct_name]
        if not item.nullable & scope:
            self.code.line(f"{target} = {self.struct(struct, scope)}")
            return
        # Whether a struct follows is a signed byte in front of it, but an unsigned varint where it is a tagged field.
        with self.code.block("if buf[pos] == 0:" if tagged else "if buf[pos] > 127:"):
            self._null_branch(item, scope, target, "pos += 1")
        with self.code.block("else:"):
            self.code.line("pos += 1")
            self.code.line(f"{target} = {self.struct(struct, scope)}")

    def _array(self, item: Field, scope: Versions, target: str, size_is_read: bool) -> None:
        """The count in front of an array is one more than its elements in flexible versions, and 0 for null.

        The slow path counts the elements of requests, so all arrays of two or more take it there.
        """
        code, size = self.code, f"count_{target}"
        in_line = 2 if self.message.kind == "request" else 127
        if self.flexible:
            if not size_is_read:
                code.line("size = buf[pos]")
                code.line("pos += 1")
            with code.block(f"if size > {in_line}:"):
                code.line(f"size, pos = {code.use('read_compact_count')}(buf, pos - 1)")
            is_null, elements = "size == 0", "size - 1"
        else:
            code.line(f"{size}, pos = {code.use('read_count')}(buf, pos)")
            is_null, elements = f"{size} < 0", size
        with code.block(f"if {is_null}:"):
            if not item.nullable & scope:
                self._refuse_null(item)
            else:
                self._null_branch(item, scope, target)
        with code.maybe("else" if item.nullable & scope else None):
            self._elements(item, scope, target, elements)

    def _elements(self, item: Field, scope: Versions, target: str, elements: str) -> None:
        code = self.code
        if item.element in NUMBERS:
            width, letter = WIDTHS[item.element], FIXED_FORMATS[item.element]
            code.line(f'{target}, pos = {code.use("read_numbers")}(buf, pos, {elements}, "{letter}", {width})')
            return
        if item.struct_name in BY_COLUMN and self.flexible:
            self._columns(item, scope, target, elements)
        else:
            self._sequence(item, scope, target, elements)

    def _columns(self, item: Field, scope: Versions, target: str, elements: str) -> None:
        """Read all structs of an array at once where none has any text or tag: then they have the same size. In
        versions with further fields they are read one by one.
        """
        assert item.struct_name is not None
        code, struct = self.code, self.message.structs[item.struct_name]
        fields = [each for each in struct.fields if each.versions.low <= scope.low]
        until = min((each.versions.low - 1 for each in struct.fields if each not in fields), default=scope.high)
        test = condition(Versions(scope.low, until), scope)
        texts = [index for index, each in enumerate(fields) if not is_fixed(each)]
        assert all(each.versions.high >= until and each.type in (*NUMBERS, "string") for each in fields)
        letters = "".join(FIXED_FORMATS.get(each.type, "B") for each in fields) + "B"
        step, width = len(letters), sum(WIDTHS.get(each.type, 1) for each in fields) + 1
        code.line(f"count_{target} = {elements}")
        run = f'{code.use("read_run")}(buf, pos, count_{target}, "{letters}", {width})'
        code.line(f"values = {run} if {test} else ()" if test else f"values = {run}")
        empty = [*([test] if test else []), *(f"values[{index}::{step}].count(1) == count_{target}" for index in texts)]
        with code.block(f"if {' and '.join(empty)} and not any(values[{step - 1}::{step}]):"):
            read = {
                each.name: f'("",) * count_{target}' if index in texts else f"values[{index}::{step}]"
                for index, each in enumerate(fields)
            }
            columns = [
                read.get(each.name, f"({default_value(code, each)},) * count_{target}") for each in struct.arguments
            ]
            code.line(f"{target} = {code.use('Rows')}({item.struct_name}, ({', '.join(columns)}))")
            code.line(f"pos += {width} * count_{target}")
        with code.block("else:"):
            self._sequence(item, scope, target, f"count_{target}")

    def _sequence(self, item: Field, scope: Versions, target: str, elements: str) -> None:
        code = self.code
        element_type = item.struct_name or ("str" if item.element == "string" else "bytes")
        code.line(f"list_{target}: list[{element_type}] = []")
        code.line(f"append_{target} = list_{target}.append")
        with code.block(f"for _ in range({elements}):"):
            if item.struct_name is not None:
                element = self.struct(self.message.structs[item.struct_name], scope)
            else:
                element = f"item_{target}"
                self._simple_element(item, scope, element)
            code.line(f"append_{target}({element})")
        code.line(f"{target} = list_{target}")

    def _simple_element(self, item: Field, scope: Versions, element: str) -> None:
        if item.element == "uuid":
            self.code.line(f"{element} = buf[pos : pos + 16]")
            self.code.line("pos += 16")
        elif self.flexible:
            self._compact(item.element, item, scope, element, size_is_read=False)
        else:
            self._prefixed(item.element, item, scope, element)

    def _tags(self, tagged: list[Field], scope: Versions, letter: str, size_is_read: bool) -> None:
        code = self.code
        for item in tagged:
            self._declare(item, scope, letter)
            code.line(f"{letter}_{item.name} = {default_value(code, item)}")
        where = "pos - 1" if size_is_read else "pos"
        with code.block("if size:" if size_is_read else "if buf[pos]:"):
            if tagged:
                self._known_tags(tagged, scope, letter, where)
            else:
                code.line(f"pos = {code.use('skip_tags')}(buf, {where})")
        if not size_is_read:
            with code.block("else:"):
                code.line("pos += 1")

    def _known_tags(self, tagged: list[Field], scope: Versions, letter: str, where: str) -> None:
        code, varint = self.code, self.code.use("read_varint")
        code.line(f"tags_{letter}, pos = {code.use('read_tag_count')}(buf, {where})")
        with code.block(f"for _ in range(tags_{letter}):"):
            code.line(f"tag_{letter}, pos = {varint}(buf, pos)")
            code.line(f"size, pos = {varint}(buf, pos)")
            code.line(f"end_{letter} = pos + size")
            for index, item in enumerate(tagged):
                test = condition(item.tagged, scope)
                extra = f" and {test}" if test else ""
                with code.block(f"{'elif' if index else 'if'} tag_{letter} == {item.tag}{extra}:"):
                    self._tagged_value(item, scope & item.tagged, letter)
            with code.block("else:"):
                code.line(f"pos = end_{letter}")
            with code.block(f"if pos != end_{letter}:"):
                code.line(f"raise {code.use('refuse_tag')}(tag_{letter})")

    def _tagged_value(self, item: Field, scope: Versions, letter: str) -> None:
        if is_fixed(item):
            self._fixed([item], letter)
        elif item.struct_name is not None and not item.is_array:
            self._single_struct(item, scope, f"{letter}_{item.name}", tagged=True)
        else:
            self._one(item, scope, f"{letter}_{item.name}")
