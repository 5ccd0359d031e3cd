"""Maps a client's certificate to its principal: the subject in Java's form, and `ssl.principal.mapping.rules`."""

from __future__ import annotations

import re
from typing import NamedTuple

from groupkeeper.base_error import InvalidSetting

_RULE = re.compile(
    r"\s*(?:(?P<default>DEFAULT)|RULE:(?P<pattern>(?:\\.|[^\\/])*)/(?P<replacement>(?:\\.|[^\\/])*)/(?P<case>[LU]?))"
    r"\s*(?:,\s*|$)"
)
_REFERENCE = re.compile(r"\\(.)|\$(\d+)", re.DOTALL)

# RFC 2253's short names, by the object id's encoding. Java writes all others as numbers.
_SHORT_NAMES = {
    bytes.fromhex("550403"): "CN",
    bytes.fromhex("550406"): "C",
    bytes.fromhex("550407"): "L",
    bytes.fromhex("550408"): "ST",
    bytes.fromhex("550409"): "STREET",
    bytes.fromhex("55040a"): "O",
    bytes.fromhex("55040b"): "OU",
    bytes.fromhex("0992268993f22c640119"): "DC",
    bytes.fromhex("0992268993f22c640101"): "UID",
}
_TEXT_ENCODINGS = {0x0C: "utf-8", 0x12: "ascii", 0x13: "ascii", 0x14: "latin-1", 0x16: "ascii", 0x1E: "utf-16-be"}
_SUBJECT = 5
"""The index of the subject among the fields of a certificate, counted from the version."""


class NoRuleApplies(ValueError):
    """No mapping rule matches the certificate's name."""


class _Rule(NamedTuple):
    pattern: re.Pattern[str] | None  # None is DEFAULT
    replacement: str
    case: str

    def apply(self, name: str) -> str | None:
        if self.pattern is None:
            return name
        if self.pattern.fullmatch(name) is None:
            return None
        mapped = self.pattern.sub(lambda match: _expanded(self.replacement, match), name)
        return mapped.lower() if self.case == "L" else mapped.upper() if self.case == "U" else mapped


class MappingRules:
    """`ssl.principal.mapping.rules`: the first matching rule decides."""

    def __init__(self, text: str) -> None:
        """Raises `InvalidSetting`."""
        self._rules: list[_Rule] = []
        position = 0
        text = text.strip()
        while position < len(text):
            match = _RULE.match(text, position)
            if match is None:
                raise InvalidSetting(f"Invalid rule: `{text[position:]}` in ssl.principal.mapping.rules")
            self._rules.append(_rule_of(match))
            position = match.end()

    def name_of(self, name: str) -> str:
        """The principal's name. Raises `NoRuleApplies`."""
        for rule in self._rules:
            mapped = rule.apply(name)
            if mapped is not None:
                return mapped
        raise NoRuleApplies(f"no rule of ssl.principal.mapping.rules applies to {name}")


def _rule_of(match: re.Match[str]) -> _Rule:
    if match["default"]:
        return _Rule(None, "", "")
    try:
        pattern = re.compile(match["pattern"])
    except re.error as error:
        raise InvalidSetting(f"ssl.principal.mapping.rules: {match['pattern']}: {error}") from None
    return _Rule(pattern, match["replacement"], match["case"])


def _expanded(replacement: str, match: re.Match[str]) -> str:
    """Expands `$1` like Java: the longest number that has a group counts, and further digits are text. A number without
    a group is text.
    """

    def replace(found: re.Match[str]) -> str:
        escaped, number = found.groups()
        if escaped is not None:
            return str(escaped)
        for size in range(len(number), 0, -1):
            if int(number[:size]) <= match.re.groups:
                return (match[int(number[:size])] or "") + number[size:]
        return f"${number}"

    return _REFERENCE.sub(replace, replacement)


def subject_of(certificate: bytes) -> str:
    """The subject of a DER certificate as `X500Principal.getName()` writes it: RFC 2253, the last part first.

    Raises `BadDer`.
    """
    ((_, signed),) = read_elements(certificate)
    (_, fields), *_ = read_elements(signed)
    parts = read_elements(fields)
    has_version = parts[0][0] == 0xA0
    _, subject = parts[_SUBJECT if has_version else _SUBJECT - 1]
    names = ["+".join(_attribute(one) for _, one in read_elements(part)) for _, part in read_elements(subject)]
    return ",".join(reversed(names))


def _attribute(content: bytes) -> str:
    (_, kind), (tag, value) = read_elements(content)[:2]
    short = _SHORT_NAMES.get(kind)
    encoding = _TEXT_ENCODINGS.get(tag)
    if short is None or encoding is None:
        whole = bytes([tag, *_size(len(value))]) + value
        return f"{short or _dotted(kind)}=#{whole.hex()}"
    try:
        return f"{short}={_escaped(value.decode(encoding))}"
    except UnicodeDecodeError:
        raise BadDer("a name in the certificate is no text") from None


def _size(length: int) -> bytes:
    if length < 0x80:
        return bytes([length])
    digits = length.to_bytes((length.bit_length() + 7) // 8)
    return bytes([0x80 | len(digits)]) + digits


def _dotted(kind: bytes) -> str:
    numbers = []
    value = 0
    for byte in kind:
        value = value << 7 | byte & 0x7F
        if not byte & 0x80:
            numbers.append(value)
            value = 0
    if not numbers:
        raise BadDer("an object id is empty")
    first = min(numbers[0] // 40, 2)
    return ".".join(map(str, [first, numbers[0] - 40 * first, *numbers[1:]]))


def _escaped(text: str) -> str:
    escaped = re.sub(r'([,+"\\<>;])', r"\\\1", text)
    if escaped.startswith(("#", " ")):
        escaped = "\\" + escaped
    if escaped.endswith(" ") and len(escaped) > 1 and text != " ":
        escaped = escaped[:-1] + "\\ "
    return escaped


class BadDer(ValueError):
    """The bytes are not valid DER, or incomplete."""


def read_elements(content: bytes) -> list[tuple[int, bytes]]:
    """The elements in a row: tag and content. Raises BadDer."""
    elements = []
    position = 0
    while position < len(content):
        tag = content[position]
        start = position + 2
        if start > len(content):
            raise BadDer("an element is cut off")
        size = content[position + 1]
        if size & 0x80:
            start += size & 0x7F
            size = int.from_bytes(content[position + 2 : start])
        position = start + size
        if position > len(content):
            raise BadDer("an element is cut off")
        elements.append((tag, content[start:position]))
    return elements
