"""Regular expressions of java.util.regex for the names of topics: read, checked, and written as Python's.

Python has another syntax: no `\\p{L}`, `\\Q.\\E`, `[a-z&&[^q]]`, `(?<name>a)`, no flags in the middle. A class
of characters becomes the set of those that names of topics consist of. Two things are left out: look-behind of
several widths, which Python lacks, and the names of Unicode's blocks (any is taken for one).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

from groupkeeper.cli.java.letters import NAME_LETTERS, NONE, SHORT, of_property
from groupkeeper.java_numbers import INT_MAX

_NEVER = "(?!)"
_END = ""
_CONTROLS = {"t": 9, "n": 10, "r": 13, "f": 12, "a": 7, "e": 27}
_ASSERTIONS = {"A": r"\A", "G": r"\A", "Z": r"\Z", "z": r"\Z", "b": r"\b", "B": r"\B"}
_LOOKS = {"=": "(?=", "!": "(?!", ">": "(?>", "<=": "(?<=", "<!": "(?<!"}
_COUNT = re.compile(r"\{([0-9]{1,4000})(,([0-9]{0,4000}))?\}")  # int() refuses more than 4300 digits
_HEX = re.compile(r"[0-9A-Fa-f]{2}|\{[0-9A-Fa-f]+\}")
_OCTAL = re.compile(r"[0-3][0-7]{2}|[0-7]{1,2}")
_FLAGS = re.compile(r"([dimsuxU]*)(?:-([dimsuxU]*))?([:)])")
_NAME = re.compile(r"([A-Za-z][A-Za-z0-9]*)>")
_PROPERTY = re.compile(r"\{([^}]+)\}|([^{])", re.DOTALL)


class BadJavaPattern(ValueError):
    """The text is no regular expression."""


def compile_pattern(text: str) -> re.Pattern[str]:
    """Python's form of the pattern, for a full match of a topic's name. Raises BadJavaPattern."""
    try:
        return re.compile(_PatternReader(without_quotes(text)).read(), re.ASCII)
    except (re.error, OverflowError, RecursionError) as problem:
        raise BadJavaPattern(str(problem)) from None


def without_quotes(text: str) -> str:
    r"""The pattern with what stands between `\Q` and `\E` escaped letter by letter."""
    parts = []
    pos = 0
    while pos < len(text):
        if text.startswith("\\Q", pos):
            end = text.find("\\E", pos + 2)
            quoted = text[pos + 2 :] if end < 0 else text[pos + 2 : end]
            parts += [f"\\x{ord(c):02x}" if c.isascii() else c for c in quoted]
            pos = len(text) if end < 0 else end + 2
        else:
            width = 2 if text[pos] == "\\" else 1
            parts.append(text[pos : pos + width])
            pos += width
    return "".join(parts)


class _PatternReader:
    """Reads a pattern from left to right; each method takes what it is named after and gives it in Python's syntax."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._any_case = False
        self._has_comments = False
        self._groups = 0
        self._closed: set[int | str] = set()
        self._names: set[str] = set()

    def read(self) -> str:
        found = self._alternatives()
        if self._at < len(self._text):
            raise BadJavaPattern("unmatched closing )")
        return found

    def _peek(self) -> str:
        """The next significant letter; "" at the end."""
        while self._has_comments and self._at < len(self._text):
            if self._text[self._at] == "#":
                while self._at < len(self._text) and self._text[self._at] not in "\n\r\x85\u2028\u2029":
                    self._at += 1
            elif self._text[self._at] in " \t\n\x0b\f\r":
                self._at += 1
            else:
                break
        return self._text[self._at : self._at + 1]

    def _next(self) -> str:
        letter = self._peek()
        self._at += len(letter)
        return letter

    def _expect(self, letter: str) -> None:
        if self._next() != letter:
            raise BadJavaPattern(f"missing {letter}")

    def _takes(self, text: str) -> bool:
        if not self._text.startswith(text, self._at):
            return False
        self._at += len(text)
        return True

    def _match(self, pattern: re.Pattern[str]) -> re.Match[str]:
        found = pattern.match(self._text, self._at)
        if found is None:
            raise BadJavaPattern(f"at {self._at}: expected {pattern.pattern}")
        self._at = found.end()
        return found

    def _alternatives(self) -> str:
        branches = [self._sequence()]
        while self._peek() == "|":
            self._next()
            branches.append(self._sequence())
        return "|".join(branches)

    def _sequence(self) -> str:
        parts = []
        while (letter := self._peek()) not in (_END, "|", ")"):
            if letter in "?*+":
                raise BadJavaPattern(f"dangling {letter}")
            atom = self._atom(letter)
            # Flags are not repeated; "{" counts what isn't there.
            parts.append(self._repeated(atom) if atom or letter == "{" else "")
        return "".join(parts)

    def _atom(self, letter: str) -> str:
        if letter == "{":
            return ""  # counts of nothing
        self._next()
        if letter == "(":
            return self._group()
        if letter == "[":
            return one_of(self._class(is_whole=True))
        if letter == "\\":
            return self._escape()
        if letter in ".^$":
            return {".": ".", "^": r"\A", "$": r"\Z"}[letter]
        return one_of(self._cases(letter))

    def _repeated(self, atom: str) -> str:
        letter = self._peek()
        if letter == _END or letter not in "?*+{":
            return atom
        if letter == "{":
            found = self._match(_COUNT)
            least, most = int(found[1]), int(found[3] or INT_MAX) if found[2] else int(found[1])
            if not least <= most <= INT_MAX:
                raise BadJavaPattern("illegal repetition range")
            count = found[0]
        else:
            count = self._next()
        kind = self._peek()
        if kind and kind in "?+":
            count += self._next()
        return f"(?:{atom}){count}"

    # ------------------------------------------------------------------------------------------------- groups

    def _group(self) -> str:
        before = self._any_case, self._has_comments
        if self._peek() != "?":
            found = self._capture(None)
        else:
            self._next()
            found = self._special_group()
            if found == "":  # flags for the rest of the group around
                return ""
        self._any_case, self._has_comments = before
        return found

    def _capture(self, name: str | None) -> str:
        self._groups += 1
        number = self._groups
        inner = self._alternatives()
        self._expect(")")
        self._closed.add(number)
        if name is None:
            return f"({inner})"
        self._closed.add(name)
        return f"(?P<{name}>{inner})"

    def _special_group(self) -> str:
        for mark, start in _LOOKS.items():
            if self._takes(mark):
                inner = self._alternatives()
                self._expect(")")
                return f"{start}{inner})"
        if self._takes("<"):
            name = self._match(_NAME)[1]
            if name in self._names:
                raise BadJavaPattern(f"group {name} twice")
            self._names.add(name)
            return self._capture(name)
        found = self._match(_FLAGS)
        for flags, is_on in ((found[1], True), (found[2] or "", False)):
            self._any_case = is_on if "i" in flags else self._any_case
            self._has_comments = is_on if "x" in flags else self._has_comments
        if found[3] == ")":
            return ""
        inner = self._alternatives()
        self._expect(")")
        return f"(?:{inner})"

    def _reference(self, group: int | str) -> str:
        if group not in self._closed:
            return _NEVER
        reference = rf"(?:\{group})" if isinstance(group, int) else f"(?P={group})"
        return f"(?i:{reference})" if self._any_case else reference

    def _number_reference(self, first: str) -> str:
        number = int(first)
        while (digit := self._text[self._at : self._at + 1]).isdecimal() and 10 * number + int(digit) <= self._groups:
            number = 10 * number + int(digit)
            self._at += 1
        return self._reference(number)

    # ------------------------------------------------------------------------------------------------- escapes

    def _escape(self) -> str:
        """Reads an escape outside of a class, after its backslash."""
        letter = self._text[self._at : self._at + 1]
        if letter in _ASSERTIONS and letter:
            self._at += 1
            if letter == "b":
                self._takes("{g}")
            return _ASSERTIONS[letter]
        if letter in ("R", "X"):
            self._at += 1
            return "." if letter == "X" else _NEVER
        if letter == "k":
            self._at += 1
            self._expect("<")
            name = self._match(_NAME)[1]
            if name not in self._names:
                raise BadJavaPattern(f"no group {name}")
            return self._reference(name)
        if letter and letter in "123456789":
            self._at += 1
            return self._number_reference(letter)
        letters = self._letters()
        return one_of(self._cases(letters) if isinstance(letters, str) else letters)

    def _letters(self) -> frozenset[str] | str:
        """Reads a class or one letter, after a backslash."""
        letter = self._text[self._at : self._at + 1]
        self._at += 1
        if letter and letter in "pP":
            found = self._match(_PROPERTY)
            letters = of_property(found[1] or found[2], any_case=self._any_case)
            if letters is None:
                raise BadJavaPattern(f"unknown property {found[0]}")
            return letters if letter == "p" else NAME_LETTERS - letters
        if letter.lower() in SHORT:
            letters = SHORT[letter.lower()]
            return letters if letter.islower() else NAME_LETTERS - letters
        return self._character(letter)

    def _character(self, letter: str) -> str:
        if letter in _CONTROLS:
            return chr(_CONTROLS[letter])
        if letter == "0":
            return chr(int(self._match(_OCTAL)[0], 8))
        if letter == "x":
            code = int(self._match(_HEX)[0].strip("{}"), 16)
            if code > 0x10FFFF:
                raise BadJavaPattern("no such character")
            return chr(code)
        if letter == "u":
            return chr(int(self._match(re.compile("[0-9A-Fa-f]{4}"))[0], 16))
        if letter == "c" and self._at < len(self._text):
            self._at += 1
            return chr(ord(self._text[self._at - 1]) ^ 64)
        if letter == "N":
            return self._named_character()
        if not letter or (letter.isascii() and letter.isalnum()):
            raise BadJavaPattern(f"illegal escape {letter}")
        return letter

    def _named_character(self) -> str:
        name = self._match(re.compile(r"\{([^}]*)\}"))[1]
        try:
            return unicodedata.lookup(name)
        except KeyError:
            raise BadJavaPattern(f"unknown character {name}") from None

    # ------------------------------------------------------------------------------------------------- classes

    def _cases(self, letter: str) -> frozenset[str]:
        letters = {letter, letter.lower(), letter.upper()} if self._any_case and letter.isascii() else {letter}
        return NAME_LETTERS & letters

    def _class(self, *, is_whole: bool) -> frozenset[str]:
        """After `[`, with its end; or a part after `&&`, up to the end of the whole."""
        is_negative = is_whole and self._peek() == "^"
        if is_negative:
            self._next()
        found: frozenset[str] | None = None
        while (letter := self._peek()) != "]" or found is None:
            if letter == _END:
                raise BadJavaPattern("unclosed class")
            if letter == "[":
                self._next()
                found = (found or NONE) | self._class(is_whole=True)
            elif letter == "&" and self._text.startswith("&&", self._at):
                self._at += 2
                right = self._intersected()
                if found is None and right is None:
                    raise BadJavaPattern("bad class syntax")
                found = found & right if found is not None and right is not None else found if right is None else right
            else:
                found = (found or NONE) | self._range()
        if is_whole:
            self._next()
        return NAME_LETTERS - found if is_negative else found

    def _intersected(self) -> frozenset[str] | None:
        """The class on the right of `&&`; None: there is none."""
        right: frozenset[str] | None = None
        while (letter := self._peek()) not in ("]", "&"):
            if letter == "[":
                self._next()
            right = (right or NONE) | self._class(is_whole=letter == "[")
        return right

    def _range(self) -> frozenset[str]:
        """One letter, several from one to another, or a class after a backslash."""
        first = self._class_letter()
        if isinstance(first, frozenset):
            return first
        if self._peek() != "-" or self._text[self._at + 1 : self._at + 2] in ("]", "["):
            return self._cases(first)
        self._next()
        last = self._class_letter()
        if isinstance(last, frozenset) or last < first:
            raise BadJavaPattern("illegal range")
        within = {letter for letter in NAME_LETTERS if first <= letter <= last}
        return NAME_LETTERS & {case for letter in within for case in self._cases(letter)}

    def _class_letter(self) -> frozenset[str] | str:
        letter = self._next()
        if not letter:
            raise BadJavaPattern("unclosed class")
        return letter if letter != "\\" else self._letters()


def one_of(letters: Iterable[str]) -> str:
    """A pattern for one of these letters."""
    escaped = "".join(re.escape(letter) for letter in sorted(letters))
    return f"[{escaped}]" if escaped else _NEVER
