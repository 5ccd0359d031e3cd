"""The letters of topic names that belong to a class of java.util.regex."""

from __future__ import annotations

import string
import unicodedata
from collections.abc import Mapping

from groupkeeper.protocol.re2_syntax import UNICODE_CLASSES

NAME_LETTERS = frozenset(string.ascii_letters + string.digits + "._-")
"""The characters that the name of a topic consists of."""

NONE: frozenset[str] = frozenset()
_LOWER = frozenset(string.ascii_lowercase)
_UPPER = frozenset(string.ascii_uppercase)
_CASED = _LOWER | _UPPER
_DIGITS = frozenset(string.digits)
_HEX = frozenset(string.hexdigits)
_MARKS = frozenset("._-")
_WORD = _CASED | _DIGITS | {"_"}

SHORT = {"d": _DIGITS, "h": NONE, "s": NONE, "v": NONE, "w": _WORD}
"""The classes of one letter after a backslash; the capital letter is the rest."""


def _by_name(names: Mapping[frozenset[str], str]) -> dict[str, frozenset[str]]:
    return {name: letters for letters, some in names.items() for name in some.split()}


# POSIX classes and those of java.lang.Character.
_NAMED = _by_name(
    {
        NAME_LETTERS: "all L1 ASCII Graph Print javaDefined",
        _CASED: "LC Alpha javaAlphabetic javaLetter javaUnicodeIdentifierStart",
        _CASED | _DIGITS: "LD Alnum javaLetterOrDigit",
        _CASED | {"_"}: "javaJavaIdentifierStart",
        _WORD: "javaJavaIdentifierPart javaUnicodeIdentifierPart",
        _LOWER: "Lower javaLowerCase",
        _UPPER: "Upper javaUpperCase",
        _DIGITS: "Digit javaDigit",
        _HEX: "XDigit",
        _MARKS: "Punct",
        NONE: "Blank Cntrl Space javaIdeographic javaTitleCase javaIdentifierIgnorable javaSpaceChar javaWhitespace "
        "javaISOControl javaMirrored",
    }
)

# The properties after "Is", in capitals without low lines.
_BINARY = _by_name(
    {
        NAME_LETTERS: "ASSIGNED GRAPH PRINT",
        _CASED: "ALPHABETIC LETTER",
        _CASED | _DIGITS: "ALNUM",
        _WORD: "WORD",
        _LOWER: "LOWERCASE",
        _UPPER: "UPPERCASE",
        _DIGITS: "DIGIT",
        _HEX: "HEXDIGIT",
        _MARKS: "PUNCTUATION",
        NONE: "IDEOGRAPHIC TITLECASE WHITESPACE CONTROL NONCHARACTERCODEPOINT BLANK JOINCONTROL",
    }
)

_CATEGORIES = frozenset(
    """
    Cn Lu Ll Lt Lm Lo Mn Me Mc Nd Nl No Zs Zl Zp Cc Cf Co Cs Pd Ps Pe Pc Po Sm Sc Sk So Pi Pf L M N Z C P S
    """.split()
)
_SCRIPTS = {"LATIN": _CASED, "LATN": _CASED, "COMMON": _DIGITS | _MARKS, "ZYYY": _DIGITS | _MARKS}
_OTHER_SCRIPTS = frozenset(name.upper() for name in UNICODE_CLASSES if len(name) > 2)
_ANY_CASE = frozenset(["Lu", "Ll", "Lt", "Lower", "Upper", "javaLowerCase", "javaUpperCase", "javaTitleCase"])


def of_property(name: str, *, any_case: bool) -> frozenset[str] | None:
    """The letters of `\\p{name}`, None when there is no such property. `any_case`: case doesn't matter."""
    kind, equals, value = name.partition("=")
    if equals:
        return _of_pair(kind.lower(), value, any_case=any_case)
    if name.startswith("In"):
        return _block(name[2:])
    if not name.startswith("Is"):
        return _category(name, any_case=any_case)
    rest = name[2:]
    for found in (_binary(rest, any_case=any_case), _category(rest, any_case=any_case), _script(rest)):
        if found is not None:
            return found
    return None


def _of_pair(kind: str, value: str, *, any_case: bool) -> frozenset[str] | None:
    if kind in ("sc", "script"):
        return _script(value)
    if kind in ("blk", "block"):
        return _block(value)
    return _category(value, any_case=any_case) if kind in ("gc", "general_category") else None


def _category(name: str, *, any_case: bool) -> frozenset[str] | None:
    if any_case and name in _ANY_CASE:
        return _CASED
    if name in _CATEGORIES:
        return frozenset(letter for letter in NAME_LETTERS if unicodedata.category(letter).startswith(name))
    return _NAMED.get(name)


def _binary(name: str, *, any_case: bool) -> frozenset[str] | None:
    plain = name.upper().replace("_", "")
    if any_case and plain in ("LOWERCASE", "UPPERCASE", "TITLECASE"):
        return _CASED
    return _BINARY.get(plain)


def _script(name: str) -> frozenset[str] | None:
    upper = name.upper()
    return _SCRIPTS.get(upper, NONE if upper in _OTHER_SCRIPTS else None)


def _block(name: str) -> frozenset[str] | None:
    """The letters of a Unicode block. Any name counts as a block: only one block has letters of topic names."""
    plain = name.upper().replace("_", "").replace(" ", "").replace("-", "")
    return NAME_LETTERS if plain == "BASICLATIN" else NONE
