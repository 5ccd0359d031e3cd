"""DER read within bounds: just what key stores and certificates' names need."""

from __future__ import annotations


class BadDer(ValueError):
    """The bytes are no DER, or cut off."""


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
