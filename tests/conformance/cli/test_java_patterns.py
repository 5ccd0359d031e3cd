"""The topic filters of kafka-get-offsets are java.util.regex's: Java's own verdict on random patterns, and ours."""

import base64
import random
import shutil
import subprocess
from pathlib import Path

import pytest

from groupkeeper.cli.java.pattern import BadJavaPattern, compile_pattern

SOURCE = Path(__file__).parent / "java" / "Patterns.java"
SEED = 20_261_122
PATTERNS = 20_000

NAMES = "a b A B ab aa aab b1 abc ABC _ - . a.b_c-d orders 1 aaa ac z Z ba Ab aB 12 a-b __consumer_offsets".split()
TOKENS = [
    *"abcABC123._-[]()|*+?{}^$.\\&#!<>=:/é\t",
    *r"&& [^ (?i) (?: (?= (?! (?<=a) (?<!b) (?> (?<n> (?<m> (?x) (?-i) (?i: (?x: (? (?< [[ ) ] ) ]".split(),
    *r"\k<n> \1 \2 \d \D \w \W \s \S \h \H \v \V \Q \E \x61 \u0062 \0141 \cA \z \Z \A \b \B \G".split(),
    *r"\. \- \\ \& \] \R \X \k \e \t \y \p \p{L} \P{L} \p{Lu} \p{Alpha} \p{Punct} \pN \p{IsLatin} \p{Foo}".split(),
    *r"\p{javaUpperCase} {2} {1,} {0,2} {2,1} {,3} a-c a-z A-Z 0-9 .* a+ b? (a|b) [ab] [^a] [a-z&&[^b]]".split(),
    *r"++ *? ?? [:alpha:]".split(),
    "\\N{DIGIT ONE}",
]

pytestmark = [pytest.mark.conformance, pytest.mark.timeout(180)]


def verdict(pattern: str) -> str:
    try:
        compiled = compile_pattern(pattern)
    except BadJavaPattern:
        return "none"
    return "".join("1" if compiled.fullmatch(name) else "0" for name in NAMES)


@pytest.mark.skipif(shutil.which("java") is None, reason="needs java on PATH")
def test_random_patterns_are_judged_as_by_java() -> None:
    chosen = random.Random(SEED)
    patterns = ["".join(chosen.choices(TOKENS, k=chosen.randint(1, 7))) for _ in range(PATTERNS)]
    lines = "".join(base64.b64encode(pattern.encode()).decode() + "\n" for pattern in patterns)
    java = subprocess.run(
        ["java", "-XX:+UseSerialGC", str(SOURCE), *NAMES], input=lines, check=True, capture_output=True, text=True
    )
    theirs = java.stdout.splitlines()
    assert len(theirs) == len(patterns)
    assert sum(each != "none" for each in theirs) > PATTERNS // 5, "most of them are no patterns"
    differing = {p: (t, verdict(p)) for p, t in zip(patterns, theirs, strict=True) if verdict(p) != t}
    assert differing == {}
