"""Regular expressions of subscriptions, judged as RE2/J judges them (K122-81)."""

import pytest

from groupkeeper.protocol.re2_syntax import BadPattern, check_pattern

VALID = r"""
orders.*  a|b  |  ()  (?:a)  (?P<n>a)(?P<m>b)  (?<n>a)  a{2}  a{2,}  a{2,1000}  a{,2}  a{2  a{02}  {  x{y}
a*?  a??  (a*)*  ^*  $+  []a]  [^]a]  [a-z0-9_-]  [[:alpha:]]  [[:^digit:]x]  [\d\-z]  \d\W\s  \pL  \p{Greek}
\P{^Lu}  [\p{Nd}]  \Qa.b\E  \Q(  \A\b\B\z  \x41  \x{10FFFF}  \07  \12  \a\f\n\r\t\v  \.\*\é  (?i)abc  (?s-i)a
(?imsU:a)  (?)  caf\xe9  (((a{100}){100}){100})
"""
INVALID = {
    "missing closing )": r"(a  a)  (a|b  (?P<n>a",
    "missing closing ]": r"[a  []  [^]  [^",
    "missing argument to repetition operator": r"*a  +  ?  (*)  a|*  {2}  (?:*a)",
    "invalid nested repetition operator": r"a**  a++  a*+  a?+  a+*  a{2}{3}  {+  a{*",
    "invalid repeat count": r"a{1001}  a{2,1}  a{999999999999}  a{0,1001}",
    "invalid escape sequence": r"\1  (a)\1  \8  \Z  \h  \C  \x4  \x{110000}  \xg1  [a-\d]  \_a\q",
    "invalid character class range": r"[z-a]  \p{Nope}  \pX  [[:nope:]]",
    "invalid or unsupported Perl syntax": r"(?=a)  (?!a)  (?x)a  (?#c)  (?>a)  (?i  (?-)  (?i-)a  (?P=a)  (?",
    "invalid named capture": r"(?P<>a)  (?P<a  (?<=a)b  (?P<a-b>c)",
    "duplicate capture group name": r"(?P<n>a)(?P<n>b)  (?<n>a)(?P<n>b)",
    "trailing backslash at end of expression": "a\\",
}


@pytest.mark.parametrize("pattern", ["", "a b", *VALID.split()])
def test_valid(pattern: str) -> None:
    check_pattern(pattern)


@pytest.mark.parametrize(
    ("pattern", "reason"), [(pattern, reason) for reason, patterns in INVALID.items() for pattern in patterns.split()]
)
def test_invalid(pattern: str, reason: str) -> None:
    with pytest.raises(BadPattern) as refusal:
        check_pattern(pattern)
    assert str(refusal.value) == reason
