"""Numbers as Java's Integer and Long read them. Plans and the command lines that copy the official tools need them."""

from __future__ import annotations

import re

INT_MAX = 2**31 - 1
LONG_MAX = 2**63 - 1

_NUMBER = re.compile(r"[+-]?\d{1,4000}")  # int() refuses more than 4300 digits


def parse_number(text: str, largest: int) -> int | None:
    """A decimal number as Integer.parseInt and Long.parseLong read it, None when it isn't one or doesn't fit."""
    return int(text) if _NUMBER.fullmatch(text) and -largest - 1 <= int(text) <= largest else None
