"""Files of Java properties (java.util.Properties): `key=value` lines with comments, escapes and continued lines.

Both sides read them, the broker its settings and the command lines those of the client: this module belongs to neither.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_BLANKS = " \t\f"
_KEY = re.compile(r"(?:\\.|[^\\=: \t\f])*", re.DOTALL)
_SEPARATOR = re.compile(r"[ \t\f]*[=:]?[ \t\f]*")
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.?))", re.DOTALL)
_LETTERS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


class BadEscape(ValueError):
    r"""A `\u` without four hexadecimal digits. The text is Java's; `line` is where it begins, from 1 on."""

    def __init__(self, line: int) -> None:
        super().__init__("Malformed \\uxxxx encoding.")
        self.line = line


def parse_properties(text: str) -> dict[str, str]:
    """The keys and values; the last of equal keys wins. Raises BadEscape."""
    properties: dict[str, str] = {}
    for number, line in _logical_lines(text):
        key = _KEY.match(line)
        assert key is not None
        separator = _SEPARATOR.match(line, key.end())
        assert separator is not None
        properties[_unescape(key[0], number)] = _unescape(line[separator.end() :], number)
    return properties


def read_properties(path: str) -> dict[str, str]:
    """The properties of a file in Java's encoding, latin-1. Raises OSError, BadEscape."""
    with open(path, encoding="latin-1") as file:
        return parse_properties(file.read())


def escaped(text: str, *, is_key: bool = False) -> str:
    """The text as it is written in a file, so that it is read again as it is. Only ASCII."""
    parts = []
    for position, char in enumerate(text):
        if char in "\t\n\r\f":
            parts.append("\\" + "tnrf"["\t\n\r\f".index(char)])
        elif char == "\\" or (is_key and char in "=:#! ") or (char == " " and position == 0):
            parts.append("\\" + char)
        elif " " <= char <= "~":
            parts.append(char)
        else:
            units = char.encode("utf-16-be", "surrogatepass").hex()
            parts += [f"\\u{units[start : start + 4]}" for start in range(0, len(units), 4)]
    return "".join(parts)


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines without comments and blank ones, with their numbers; a backslash at the end joins the next line."""
    joined = ""
    start = 0
    for number, line in enumerate(re.split(r"\r\n|[\r\n]", text), 1):
        line = line.lstrip(_BLANKS)
        if not joined:
            if not line or line[0] in "#!":
                continue
            start = number
        if (len(line) - len(line.rstrip("\\"))) % 2:
            joined += line[:-1]
            continue
        yield start, joined + line
        joined = ""
    if joined:
        yield start, joined


def _unescape(text: str, line: int) -> str:
    def replace(match: re.Match[str]) -> str:
        if match[1] is not None:
            return chr(int(match[1], 16))
        if match[2] == "u":
            raise BadEscape(line)
        return _LETTERS.get(match[2], match[2])

    if "\\" not in text:
        return text
    unescaped = _ESCAPE.sub(replace, text)
    # Java writes what lies beyond 16 bits as two escapes, which are one character here.
    return unescaped.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")


_NAME = re.compile(r"[a-z][\w-]*(\.[\w-]+)+(?=[\s:]|$)")


def name_in(text: str) -> str:
    """The name of a property that a text without "=" begins with, for an error: the rest may be a secret."""
    found = _NAME.match(text)
    return found[0] if found else ""
