"""Options as jopt-simple reads them."""

import pytest

from groupkeeper.cli.dropin.options import Option, OptionProblem, Options, OptionTable, in_hash_order

OPTIONS = [
    Option("list", "List."),
    Option("describe", "Describe."),
    Option("group", "A group.", "group"),
    Option("timeout", "Wait.", "ms", "Long", default=30),
    Option("state", "States.", "", optional=True, available_with=("describe", "list")),
    Option("members", "Members.", available_with=("describe",)),
]
TABLE = OptionTable("tool", "Does things.", OPTIONS)


def parse(*arguments: str) -> Options:
    return TABLE.parse(arguments)


@pytest.mark.parametrize("dashes", ["-", "--"])
def test_one_dash_is_as_good_as_two(dashes: str) -> None:
    assert parse(f"{dashes}list").has("list")
    assert parse(f"{dashes}group", "g").texts("group") == ["g"]
    assert parse(f"{dashes}group=g").texts("group") == ["g"]


def test_a_value_is_the_next_argument_whatever_it_looks_like() -> None:
    options = parse("--group", "--list")
    assert options.texts("group") == ["--list"]
    assert not options.has("list")


def test_an_equals_sign_alone_gives_an_empty_value() -> None:
    assert parse("--group=").texts("group") == [""]
    assert parse("--group=a=b").texts("group") == ["a=b"]


def test_a_value_for_an_option_without_is_ignored() -> None:
    assert parse("--list=yes").has("list")


def test_repeated_options_keep_their_order() -> None:
    assert parse("--group", "b", "--group", "a", "--group", "b").texts("group") == ["b", "a", "b"]


def test_an_optional_value_is_not_taken_from_what_looks_like_an_option() -> None:
    assert parse("--list", "--state").text("state") is None
    assert parse("--list", "--state", "Stable").text("state") == "Stable"
    assert parse("--state", "--list").text("state") is None
    assert parse("--list", "--state", "-").text("state") == "-"
    assert parse("--list", "--state=").text("state") == ""


def test_other_arguments_are_ignored_and_two_dashes_end_the_options() -> None:
    assert parse("word", "--list", "-").has("list")
    assert parse("--list", "--", "--zap", "--describe").given(["list", "describe"]) == ["list"]


# K122-86
@pytest.mark.parametrize(
    ("argument", "name"),
    [("--zap", "zap"), ("--lis", "lis"), ("--zap=1", "zap"), ("---list", "-list"), ("-zap", "z"), ("--=1", "")],
)
def test_unknown_options_are_named(argument: str, name: str) -> None:
    with pytest.raises(OptionProblem, match=f"^{name} is not a recognized option$"):
        parse(argument)


def test_a_missing_value_is_named() -> None:
    with pytest.raises(OptionProblem, match=r"^Option group requires an argument$"):
        parse("--describe", "--group")


def test_options_that_need_others_are_refused_together_in_hash_order() -> None:
    with pytest.raises(OptionProblem, match=r"^Option\(s\) \[members, state\] are unavailable given other options"):
        parse("--state", "--members")
    with pytest.raises(OptionProblem, match=r"\[members\]"):
        parse("--list", "--state", "--members")
    assert parse("--members", "--help").has("help")


def test_values_are_converted_when_asked_for() -> None:
    options = parse("--timeout", "abc")
    with pytest.raises(OptionProblem, match=r"^Cannot parse argument 'abc' of option timeout$"):
        options.number("timeout")
    with pytest.raises(OptionProblem):
        parse("--timeout", str(2**63)).numbers("timeout")
    assert parse().number("timeout") == 30
    assert parse("--timeout", "+5").number("timeout") == 5


def test_one_value_is_wanted_but_several_were_given() -> None:
    options = parse("--group", "a", "--group", "b")
    with pytest.raises(OptionProblem, match=r"^Found multiple arguments for option group, but you asked for only"):
        options.text("group")
    assert options.texts("group") == ["a", "b"]


def test_hash_order_is_javas() -> None:
    scenarios = ["to-offset", "shift-by", "to-latest", "to-earliest", "from-file", "to-current"]
    assert in_hash_order(scenarios) == ["to-offset", "to-current", "from-file", "to-earliest", "to-latest", "shift-by"]
