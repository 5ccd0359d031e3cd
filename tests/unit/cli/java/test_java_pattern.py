r"""Regular expressions of java.util.regex: what each matches, or that it is none, as Java 17 says."""

import pytest

from groupkeeper.cli.java.pattern import BadJavaPattern, compile_pattern

TOPICS = ["orders", "Orders", "PAYMENTS", "a.b_c-d", "b", "9", "aaaaaa"]


def matched(pattern: str) -> str | None:
    try:
        compiled = compile_pattern(pattern)
    except BadJavaPattern:
        return None
    return " ".join(topic for topic in TOPICS if compiled.fullmatch(topic))


# Recorded: Pattern.compile(…).matcher(…).matches().
@pytest.mark.parametrize(
    ("pattern", "topics"),
    [
        (r"\p{L}+", "orders Orders PAYMENTS b aaaaaa"),
        (r"\p{Lu}.*|\p{javaLowerCase}{6}", "orders Orders PAYMENTS aaaaaa"),
        (r"(?i)ORDERS", "orders Orders"),
        (r"ord(?i)ERS|PAYMENTS", "orders PAYMENTS"),
        (r"(?i:P)AYMENTS", "PAYMENTS"),
        (r"(?i)[^o]rders", ""),
        (r"[a-z&&[^a-m]].*", "orders"),
        (r"[a-z&&n-z&&o]r.*", "orders"),
        (r"[^\W_]+", "orders Orders PAYMENTS b 9 aaaaaa"),
        (r"[[a-c]o]\w+", "orders aaaaaa"),
        (r"[a-d&&]", "b"),
        (r"[&&]", None),
        (r"\Qa.b\E.*", "a.b_c-d"),
        (r"\Qa.", ""),
        (r"(?<n>a)\.b_c-d", "a.b_c-d"),
        (r"(?P<n>a)", None),
        (r"a{", None),
        (r"a{2}{3}", ""),
        (r"{2}orders", "orders"),
        (r"a**", None),
        (r"a{3,2}", None),
        (r"\x6frders", "orders"),
        (r"\x{6f}rders", "orders"),
        (r"\u006frders", "orders"),
        (r"\0157rders", "orders"),
        (r"\y", None),
        (r"\1", ""),
        (r"(o)rders\1?", "orders"),
        (r"(a)\1{5}", "aaaaaa"),
        (r"\k<n>", None),
        (r"(?<n>a)\k<n>+", "aaaaaa"),
        (r"(?x)ord ers # what", "orders"),
        (r"(?i", None),
        (r"[]", None),
        (r"[z-a]", None),
        (r"[a-\d]", None),
        (r"\p{Foo}", None),
        (r"\p{IsFoo}", None),
        (r"\p{IsLatin}+", "orders Orders PAYMENTS b aaaaaa"),
        (r"\p{script=Latn}*", "orders Orders PAYMENTS b aaaaaa"),
        (r"\p{gc=Nd}", "9"),
        (r"\p{InBasicLatin}", "b 9"),
        (r"\PL", "9"),
        (r"(?<!x)orders(?!y)", "orders"),
        (r"(?>o+)orders", ""),
        (r".*+s", ""),
        (r"\h", ""),
        (r"(?:)orders|", "orders"),
        (r"orders)", None),
        (r"(orders", None),
        (r"\N{DIGIT NINE}", "9"),
        (r"\Z\z", ""),
        (r"(?i)?", None),
        ("\\", None),
    ],
)
def test_what_java_says_of_a_pattern(pattern: str, topics: str | None) -> None:
    assert matched(pattern) == topics
