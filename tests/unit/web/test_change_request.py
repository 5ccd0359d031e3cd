"""What forms ask for: anything may be in them."""

import pytest

from groupkeeper.shell import Way
from groupkeeper.web.changes.change_request import BadForm, Deed, change_request_of, swept_of
from groupkeeper.web.changes.desk import sweep_command

RESET = {"deed": ["reset"], "scope": ["all"]}


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"deed": ["burn"]}, "deed: 'burn': expected one of reset, delete-offsets, delete"),
        ({}, "where to: nothing is chosen"),
        ({"to": ["moon"]}, "where to: nothing is chosen"),
        ({"to": ["time"], "time": ["tomorrow"]}, "time: 'tomorrow' is not a date and time"),
        ({"to": ["time"], "time": ["1969-01-01T00:00"]}, "before 1970"),
        ({"to": ["time"]}, "time: required with to=time"),
        ({"to": ["ago"], "ago": ["a while"]}, "how long ago: 'a while' is not a duration"),
        ({"to": ["ago"], "ago": ["7"]}, "how long ago: '7': a duration needs a unit: 7ms, 7s, 7m, 7h or 7d"),
        ({"to": ["ago"], "ago": ["P99999D"]}, "before 1970"),
        ({"to": ["offset"], "offset": ["-1"]}, "offset: expected a number, at least 0"),
        ({"to": ["offset"], "offset": ["9" * 30]}, "is not a number"),
        ({"to": ["offset"], "offset": ["１"]}, "is not a number"),
        ({"to": ["shift"], "shift": ["1e3"]}, "shift: '1e3' is not a number"),
        ({"to": ["latest"], "scope": ["some"]}, "no topic is chosen"),
        ({"to": ["latest"], "scope": ["some"], "more": [" , "]}, "no topic is chosen"),
        ({"to": ["latest"], "scope": ["some"], "more": ["orders:x"]}, "Invalid partition 'x'"),
        ({"to": ["latest"], "scope": ["some"], "more": ["a:b:c"]}, "Invalid topic arg"),
        ({"to": ["latest"], "if-no-record": ["clamp"]}, "expected one of the choices"),
    ],
)
def test_what_cannot_be_done_is_said(fields: dict[str, list[str]], said: str) -> None:
    with pytest.raises(BadForm) as refused:
        change_request_of({**RESET, **fields}, "prod", "g", {})
    assert said in str(refused.value)


def test_the_command_names_the_group_and_no_pattern() -> None:
    asked = change_request_of({**RESET, "to": ["latest"]}, "prod", "all*[1]?", {})
    assert (asked.command[:3], asked.command[-1]) == (("groupkeeper", "plan", "reset"), "all[*][[]1][?]")
    asked = change_request_of({"deed": ["delete-offsets"]}, "prod", "all*", {})  # which takes no patterns
    assert (asked.deed, asked.command[2], asked.command[-1]) == (Deed.DELETE_OFFSETS, "delete-offsets", "all*")


def test_a_whole_topic_makes_its_partitions_needless() -> None:
    form = {**RESET, "to": ["latest"], "scope": ["some"], "topic": ["a"], "more": ["a:1 b:2"]}
    asked = change_request_of(form, "prod", "g", {})
    assert (asked.topics.names, [tuple(tp) for tp in asked.topics.partitions]) == (["a"], [("b", 2)])


def test_a_sweep_of_some_groups_names_them() -> None:
    """What a page leaves out by a pattern or a role the command must not take."""
    options, way = swept_of({"idle": ["30d"]}).options, Way(("--context", "prod"))
    assert sweep_command(way, options, ("a", "b*")) == (
        "groupkeeper", "plan", "sweep", "--idle", "30d", "--context", "prod", "a", "b[*]",
    )  # fmt: skip
    assert sweep_command(way, options, tuple(map(str, range(101)))) == ()
