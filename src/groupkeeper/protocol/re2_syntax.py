"""Checks whether a regular expression is valid for a group's subscription: the syntax of RE2/J, which Kafka uses.

RE2/J lacks features that need backtracking (look-around, back-references, possessive repetition), and limits counts to
1000.
"""

from __future__ import annotations

LARGEST_COUNT = 1000

_FLAGS = "imsU"
_CLASS_LETTERS = "dDsSwW"
_POSIX_CLASSES = frozenset(
    "alnum alpha ascii blank cntrl digit graph lower print punct space upper word xdigit".split()
)
UNICODE_CLASSES = frozenset(
    """
    Any C Cc Cf Co Cs L Ll Lm Lo Lt Lu M Mc Me Mn N Nd Nl No P Pc Pd Pe Pf Pi Po Ps S Sc Sk Sm So Z Zl Zp Zs
    Arabic Armenian Avestan Balinese Bamum Batak Bengali Bopomofo Brahmi Braille Buginese Buhid Canadian_Aboriginal
    Carian Cham Cherokee Common Coptic Cuneiform Cypriot Cyrillic Deseret Devanagari Egyptian_Hieroglyphs Ethiopic
    Georgian Glagolitic Gothic Greek Gujarati Gurmukhi Han Hangul Hanunoo Hebrew Hiragana Imperial_Aramaic Inherited
    Inscriptional_Pahlavi Inscriptional_Parthian Javanese Kaithi Kannada Katakana Kayah_Li Kharoshthi Khmer Lao Latin
    Lepcha Limbu Linear_B Lisu Lycian Lydian Malayalam Mandaic Meetei_Mayek Mongolian Myanmar New_Tai_Lue Nko Ogham
    Ol_Chiki Old_Italic Old_Persian Old_South_Arabian Old_Turkic Oriya Osmanya Phags_Pa Phoenician Rejang Runic
    Samaritan Saurashtra Shavian Sinhala Sundanese Syloti_Nagri Syriac Tagalog Tagbanwa Tai_Le Tai_Tham Tai_Viet Tamil
    Telugu Thaana Thai Tibetan Tifinagh Ugaritic Vai Yi
    """.split()
)


class BadPattern(ValueError):
    """The pattern is not valid. The text has the reason, without a full stop."""


def check_pattern(pattern: str) -> None:
    """Raise BadPattern when the pattern isn't valid."""
    _Checker(pattern).check()


class _Checker:
    """Reads a pattern from left to right; stores only what decides its validity."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._at = 0
        self._depth = 0
        self._names: set[str] = set()
        # Whether an operand precedes that can be repeated, and whether a repetition has just ended.
        self._has_operand = False
        self._is_repetition = False

    def check(self) -> None:
        while self._at < len(self._pattern):
            self._take_one()
        if self._depth:
            raise BadPattern("missing closing )")

    def _take_one(self) -> None:
        letter = self._pattern[self._at]
        if letter in "*+?":
            self._at += 1
            self._repeat()
        elif letter == "{" and self._take_count():
            self._repeat()
        elif letter == "(":
            self._open()
        elif letter in "|)":
            self._at += 1
            self._end_alternative(letter)
        else:
            if letter == "[":
                self._take_class()
            elif letter == "\\":
                self._take_escape()
            else:
                self._at += 1
            # RE2/J treats a literal brace as a repetition if a repetition follows.
            self._has_operand, self._is_repetition = True, letter == "{"

    def _repeat(self) -> None:
        if not self._has_operand:
            raise BadPattern("missing argument to repetition operator")
        if self._is_repetition:
            raise BadPattern("invalid nested repetition operator")
        if self._pattern.startswith("?", self._at):
            self._at += 1
        self._is_repetition = True

    def _take_count(self) -> bool:
        """Read `{n}`, `{n,}` or `{n,m}`. False for other braces, which are literals."""
        end = self._pattern.find("}", self._at)
        least_text, comma, most_text = self._pattern[self._at + 1 : end].partition(",") if end > 0 else ("", "", "")
        least, most = _count(least_text), _count(most_text) if most_text else None
        if least is None or (most_text and most is None):
            return False
        most = least if not comma else most
        if max(least, most or 0) > LARGEST_COUNT or (most is not None and least > most):
            raise BadPattern("invalid repeat count")
        self._at = end + 1
        return True

    def _open(self) -> None:
        if not self._pattern.startswith("(?", self._at):
            self._at += 1
            self._enter_group()
            return
        for start in ("(?P<", "(?<"):
            if self._pattern.startswith(start, self._at):
                self._take_name(self._at + len(start))
                self._enter_group()
                return
        self._take_flags()

    def _enter_group(self) -> None:
        self._depth += 1
        self._has_operand, self._is_repetition = False, False

    def _take_name(self, start: int) -> None:
        end = self._pattern.find(">", start)
        name = self._pattern[start:end] if end >= 0 else ""
        if not name or not name.isascii() or not name.replace("_", "a").isalnum():
            raise BadPattern("invalid named capture")
        if name in self._names:
            raise BadPattern("duplicate capture group name")
        self._names.add(name)
        self._at = end + 1

    def _take_flags(self) -> None:
        """Read `(?i)`, `(?s-i)`, or the start of a non-capturing group, `(?i:…)`."""
        self._at += 2
        negative = needs_flag = False
        while self._at < len(self._pattern):
            letter = self._pattern[self._at]
            self._at += 1
            if letter in _FLAGS:
                needs_flag = False
            elif letter == "-" and not negative:
                negative = needs_flag = True
            elif letter in ":)" and not needs_flag:
                if letter == ":":
                    self._enter_group()
                self._is_repetition = False
                return
            else:
                break
        raise BadPattern("invalid or unsupported Perl syntax")

    def _end_alternative(self, letter: str) -> None:
        if letter == "|":
            self._has_operand, self._is_repetition = False, False
            return
        if not self._depth:
            raise BadPattern("missing closing )")
        self._depth -= 1
        self._has_operand, self._is_repetition = True, False

    def _take_escape(self) -> None:
        """Read an escape outside of a class."""
        if self._pattern.startswith("\\Q", self._at):
            end = self._pattern.find("\\E", self._at)
            self._at = len(self._pattern) if end < 0 else end + 2
        elif self._pattern[self._at + 1 : self._at + 2] in tuple(_CLASS_LETTERS + "AbBz"):
            self._at += 2
        elif not self._take_unicode_class():
            self._take_escaped_letter()

    def _take_unicode_class(self) -> bool:
        r"""Read `\pN`, `\p{Greek}` or `\P{^Greek}`. False for another escape."""
        if self._pattern[self._at : self._at + 2] not in ("\\p", "\\P"):
            return False
        start = self._at + 2
        end = start + 1
        name = self._pattern[start:end]
        if name == "{":
            end = self._pattern.find("}", start) + 1
            name = self._pattern[start + 1 : end - 1] if end else "{"
        if name.removeprefix("^") not in UNICODE_CLASSES:
            raise BadPattern("invalid character class range")
        self._at = end
        return True

    def _take_escaped_letter(self) -> str:
        """Read an escape for a single letter, and return the letter."""
        start = self._at + 1
        letter = self._pattern[start : start + 1]
        if not letter:
            raise BadPattern("trailing backslash at end of expression")
        self._at = start + 1
        if letter in "01234567":
            if letter != "0" and not _is_octal(self._pattern[self._at : self._at + 1]):
                raise BadPattern("invalid escape sequence")
            while self._at < start + 3 and _is_octal(self._pattern[self._at : self._at + 1]):
                self._at += 1
            return chr(int(self._pattern[start : self._at], 8))
        if letter == "x":
            return self._take_hexadecimal()
        if letter in "afnrtv":
            return {"a": "\a", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}[letter]
        if not (letter.isascii() and letter.isalnum()):
            return letter
        raise BadPattern("invalid escape sequence")

    def _take_hexadecimal(self) -> str:
        end = self._at + 2
        digits = self._pattern[self._at : end]
        if digits.startswith("{"):
            end = self._pattern.find("}", self._at) + 1
            digits = self._pattern[self._at + 1 : end - 1] if end else ""
        elif len(digits) < 2:
            digits = ""
        if not digits or any(digit not in "0123456789abcdefABCDEF" for digit in digits) or int(digits, 16) > 0x10FFFF:
            raise BadPattern("invalid escape sequence")
        self._at = end
        return chr(int(digits, 16))

    def _take_class(self) -> None:
        self._at += 2 if self._pattern.startswith("[^", self._at) else 1
        first = True
        while first or not self._pattern.startswith("]", self._at):
            first = False
            if not (self._take_posix_class() or self._take_unicode_class() or self._take_perl_class()):
                self._take_range()
        self._at += 1

    def _take_posix_class(self) -> bool:
        end = self._pattern.find(":]", self._at + 2)
        if not self._pattern.startswith("[:", self._at) or end < 0:
            return False
        if self._pattern[self._at + 2 : end].removeprefix("^") not in _POSIX_CLASSES:
            raise BadPattern("invalid character class range")
        self._at = end + 2
        return True

    def _take_perl_class(self) -> bool:
        taken = (
            self._pattern.startswith("\\", self._at)
            and self._pattern[self._at + 1 : self._at + 2] in tuple(_CLASS_LETTERS)
        )  # fmt: skip
        self._at += 2 * taken
        return taken

    def _take_range(self) -> None:
        """Read a letter of a class, or a range of two letters."""
        low = self._take_class_letter()
        if self._pattern.startswith("-", self._at) and self._pattern[self._at + 1 : self._at + 2] not in ("", "]"):
            self._at += 1
            if self._take_class_letter() < low:
                raise BadPattern("invalid character class range")

    def _take_class_letter(self) -> str:
        if self._at >= len(self._pattern):
            raise BadPattern("missing closing ]")
        if self._pattern[self._at] == "\\":
            return self._take_escaped_letter()
        self._at += 1
        return self._pattern[self._at - 1]


def _count(text: str) -> int | None:
    """A repetition count; None for leading zeros, which RE2 does not read as a count."""
    if not text.isascii() or not text.isdecimal() or (len(text) > 1 and text[0] == "0"):
        return None
    return int(text) if len(text) <= 8 else LARGEST_COUNT + 1


def _is_octal(letter: str) -> bool:
    return letter != "" and letter in "01234567"
