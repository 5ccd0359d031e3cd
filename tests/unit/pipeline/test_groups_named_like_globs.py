"""Groups whose names have the signs of globs."""

from groupkeeper.operations.selection import Names
from groupkeeper.pipeline.governance.forget import ForgetRequest
from groupkeeper.pipeline.owners import owner_of, parse_owners


def test_forget_means_the_group_of_that_name_where_there_is_one() -> None:
    wanted = ForgetRequest(Names(("app[1]", "other*")))
    groups = {"app[1]", "app1", "others"}
    assert {each for each in groups if wanted.has(each)} == groups
    assert {each for each in groups if wanted.among(groups).has(each)} == {"app[1]", "others"}
    assert {each for each in groups if wanted.among({"app1"}).has(each)} == groups


def test_a_rule_is_for_the_group_of_that_name_too() -> None:
    rules = parse_owners("app[1] team\n", "owners")
    owners = {name: owner_of(rules, "group", name) for name in ("app[1]", "app1", "app", "app[1]x")}
    assert [name for name, rule in owners.items() if rule is not None] == ["app[1]", "app1"]
