"""Java properties files: `key=value` lines with comments, escapes and continued lines (java.util.Properties)."""

from __future__ import annotations

_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_BLANK = " \t\f"


class InvalidProperties(ValueError):
    """A line that java.util.Properties would refuse; the text has its number."""


def parse_properties(text: str) -> dict[str, str]:
    """The keys and values of a properties file; the last of equal keys wins. Raises `InvalidProperties`."""
    values = {}
    for number, line in _logical_lines(text):
        key_end = _key_end(line)
        rest = line[key_end:].lstrip(_BLANK)
        if rest[:1] in ("=", ":"):
            rest = rest[1:].lstrip(_BLANK)
        values[_unescape(line[:key_end], number)] = _unescape(rest, number)
    return values


def _logical_lines(text: str) -> list[tuple[int, str]]:
    lines = []
    pending = ""
    start = 0
    for number, raw in enumerate(text.replace("\r\n", "\n").replace("\r", "\n").split("\n"), 1):
        line = raw.lstrip(_BLANK)
        if not pending:
            if not line or line[0] in "#!":
                continue
            start = number
        backslashes = len(line) - len(line.rstrip("\\"))
        if backslashes % 2:
            pending += line[:-1]
            continue
        lines.append((start, pending + line))
        pending = ""
    if pending:
        lines.append((start, pending))
    return lines


def _key_end(line: str) -> int:
    index = 0
    while index < len(line):
        if line[index] == "\\":
            index += 2
            continue
        if line[index] in "=: \t\f":
            return index
        index += 1
    return len(line)


def _unescape(text: str, number: int) -> str:
    if "\\" not in text:
        return text
    out = []
    index = 0
    while index < len(text):
        char = text[index]
        index += 1
        if char != "\\" or index == len(text):
            out.append(char)
            continue
        char = text[index]
        index += 1
        if char == "u":
            digits = text[index : index + 4]
            try:
                out.append(chr(int(digits, 16)))
            except ValueError:
                raise InvalidProperties(f"line {number}: malformed \\u escape {digits!r}") from None
            index += 4
        else:
            out.append(_ESCAPES.get(char, char))
    return "".join(out)
