"""Which names are meant by what was typed."""

import pytest

from groupkeeper.operations.selection import BadGroupPattern, Names


@pytest.mark.parametrize(
    ("typed", "name", "is_meant"),
    [
        (["a"], "a", True),
        (["a"], "A", False),
        (["a"], "ab", False),
        (["a*"], "ab", True),
        (["a*"], "ba", False),
        (["a?"], "ab", True),
        (["a?"], "abc", False),
        (["[ab]1"], "b1", True),
        (["a[*]"], "a*", True),
        (["a[*]"], "ab", False),
        (["app[1]"], "app1", True),
        (["app[1]"], "app[1]", True),
        (["app[1]"], "app", False),
        (["*"], "two\nlines", True),
        (["*"], "", True),
        (["x", "a*"], "x", True),
        ([""], "", True),
        ([""], "a", False),
        ([], "anything", True),
        (["a.c"], "abc", False),
    ],
)
def test_names_and_globs(typed: list[str], name: str, is_meant: bool) -> None:
    assert Names(typed).matches(name) is is_meant


@pytest.mark.parametrize(
    ("typed", "name", "is_meant"),
    [("a.c", "abc", True), ("a", "ab", False), ("a|b", "b", True), ("a.*", "a\nb", True), ("東.", "東京", True)],
)
def test_regular_expressions_are_for_the_whole_name(typed: str, name: str, is_meant: bool) -> None:
    assert Names([typed], regex=True).matches(name) is is_meant


def test_what_is_no_regular_expression_is_refused() -> None:
    with pytest.raises(BadGroupPattern, match=r"'\(' is not a regular expression"):
        Names(["("], regex=True)
    assert Names(["(", "[", "[a"]).matches("[a")  # brackets that are not closed stand for themselves


def test_names_are_told_from_patterns() -> None:
    names = Names(["b", "a*", "b", "[x]"])
    assert (names.exact, names.patterns) == (("b",), ("a*", "[x]"))
    assert names.without_match(["ab", "b"]) == ["[x]"]
    assert Names(["[x]"]).without_match(["[x]"]) == []
    assert Names(["b"], regex=True).exact == ()
    assert Names(["b+"], regex=True).without_match(["b+"]) == ["b+"]


@pytest.mark.parametrize("regex", [False, True])
@pytest.mark.parametrize("name", ["plain", "a*b?[c]", "[]", "(", "a.b|c"])
def test_a_quoted_name_means_that_name_only(name: str, regex: bool) -> None:
    names = Names([Names([], regex=regex).quoted(name)], regex=regex)
    assert [each for each in (name, name + "x", "x" + name, "ab", "c") if names.matches(each)] == [name]


def test_a_glob_that_is_a_name_itself_means_that_name_only() -> None:
    known = {"app[1]", "app1", "what?", "whats"}
    names = Names(["app[1]", "wh*"]).among(known)
    assert (names.exact, names.patterns) == (("app[1]",), ("wh*",))
    assert {name for name in known if names.matches(name)} == {"app[1]", "what?", "whats"}
    assert Names(["app[1]"]).among({"app1"}).matches("app1")
    assert Names(["app.1."], regex=True).among({"app.1."}).patterns == ("app.1.",)
