"""Who may see and change what, and what is refused of the files that say so."""

import tomllib
from pathlib import Path

import pytest
from starlette.requests import Request
from tests.unit.live.views import snapshot, view

from groupkeeper.live.model import Scope
from groupkeeper.live.toml_tables import BadTable
from groupkeeper.web.access.people import Access, BadTokens, PageTokens, read_tokens
from groupkeeper.web.access.roles import Rights, Role, Roles, grants_of, read_grants

ROLES = """
[[role]]
users = ["ops-*"]
may = "change"
clusters = ["prod"]
groups = ["orders-*"]
except_groups = ["orders-batch"]

[[role]]
users = ["*"]
may = "view"
clusters = ["dev"]
"""


def rights(user: str, *, changes: bool = True) -> Rights:
    return Roles(grants_of(tomllib.loads(ROLES)), changes=changes).of(user)


@pytest.mark.parametrize(
    ("user", "role", "cluster", "group", "may"),
    [
        ("ops-1", Role.CHANGE, "prod", "orders-1", True),
        ("ops-1", Role.VIEW, "prod", "orders-1", True),
        ("ops-1", Role.CHANGE, "prod", "orders-batch", False),
        ("ops-1", Role.VIEW, "prod", "orders-batch", False),
        ("ops-1", Role.CHANGE, "prod", "billing", False),
        ("ops-1", Role.CHANGE, "dev", "orders-1", False),
        ("ops-1", Role.VIEW, "dev", "billing", True),
        ("devops-1", Role.VIEW, "prod", "orders-1", False),
        ("somebody", Role.VIEW, "dev", "billing", True),
        ("somebody", Role.CHANGE, "dev", "billing", False),
    ],
)
def test_who_may_do_what(user: str, role: Role, cluster: str, group: str, may: bool) -> None:
    assert rights(user).may(role, cluster, group) is may
    assert rights(user, changes=False).may(role, cluster, group) is (may and role is Role.VIEW)


def test_what_is_seen_of_a_cluster() -> None:
    prod = snapshot(*(view(name) for name in ("orders-1", "orders-batch", "billing")), cluster="prod")
    dev = snapshot(view("billing"), cluster="dev")
    seen = rights("ops-1").seen(prod)
    assert seen is not None
    assert (list(seen.groups), seen.listed) == (["orders-1"], 1)
    assert rights("somebody").seen(prod) is None
    assert rights("somebody").seen(dev) is dev
    assert Rights(None).seen(prod) is prod
    assert (rights("ops-1").sees_all, Rights(None).sees_all, Rights(()).sees_all) == (False, True, False)


def test_groups_that_are_left_out_are_those_that_one_may_see() -> None:
    scope = Scope(("a-1", "b-1", "b-2"), ("--group 'c*'",))
    role = {"users": ["u"], "may": "view", "groups": ["b-*"]}
    seen = Rights(tuple(grants_of({"role": [role]}))).seen(snapshot(view("a"), view("b-3"))._replace(scope=scope))
    assert seen is not None
    assert (list(seen.groups), seen.listed, seen.scope) == (["b-3"], 3, Scope(("b-1", "b-2")))


def test_the_last_known_groups_of_a_cluster_that_is_down_are_those_that_one_may_see() -> None:
    before = snapshot(view("orders-1"), view("billing"), cluster="prod")
    seen = rights("ops-1").seen(snapshot(cluster="prod", at_ms=None)._replace(last=before))
    assert seen is not None
    assert list(seen.known.groups) == ["orders-1"]


def test_two_hundred_pages_of_users_with_some_rights_cost_one_look_at_the_groups() -> None:
    roles = Roles(grants_of(tomllib.loads(ROLES)), changes=True)
    many = snapshot(*(view(f"orders-{number}") for number in range(5000)), view("billing"), cluster="prod")
    looks = [roles.of(f"ops-{number % 20}").seen(many) for number in range(200)]
    assert looks[0] is not None
    assert len(looks[0].groups) == 5000
    assert all(each is looks[0] for each in looks)
    newer = many._replace(groups={"orders-7": view("orders-7")})
    seen = roles.of("ops-1").seen(newer)
    assert seen is not None
    assert list(seen.groups) == ["orders-7"]
    assert roles.of("ops-1").seen(many) == looks[0]
    roles.views.forget()
    assert roles.of("ops-1").seen(newer) is not seen
    # A stream of events looks at no group.
    assert [rights("ops-1").sees(each) for each in ("prod", "dev", "lab")] == [True, True, False]
    assert [rights("somebody").sees(each) for each in ("prod", "dev", "lab")] == [False, True, False]
    assert Rights(None).sees("prod")
    assert not Rights(()).sees("prod")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", r"there is no \[\[role\]\]"),
        ('[[role]]\nmay = "view"', "role 1: expected users or teams"),
        ('[[role]]\nusers = []\nmay = "view"', 'role 1: users: expected names; "\\*" stands for all'),
        ('[[role]]\nusers = ["a"]\nmay = "admin"', "role 1: may: expected one of view, change"),
        ('[[role]]\nusers = ["a"]\nmay = "view"\ngroups = []', "role 1: groups: expected names"),
        ('[[role]]\nusers = ["a"]\nmay = "view"\ngroup = ["x"]', "role 1: 'group' is not known here"),
        ('[[role]]\nusers = "a"\nmay = "view"', "role 1: users: expected a list of texts"),
        ("role = 3", "the file: role: expected tables in double brackets"),
        ("[[role]", "roles.toml: "),
    ],
)
def test_a_file_of_roles_that_makes_no_sense(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "roles.toml"
    path.write_text(text)
    with pytest.raises(BadTable, match=said):
        read_grants(str(path))


def test_the_example_of_the_guide() -> None:
    guide = (Path(__file__).parents[3] / "docs/serve.md").read_text()
    example = next(part.split("```")[0] for part in guide.split("```toml\n") if part.startswith("[[role]]"))
    roles = Roles(grants_of(tomllib.loads(example)), changes=True)
    assert roles.of("alice").may(Role.CHANGE, "prod", "orders-1")
    assert not roles.of("alice").may(Role.CHANGE, "prod", "billing")
    assert roles.of("prometheus").sees_all


def test_tokens(tmp_path: Path) -> None:
    path = tmp_path / "tokens"
    path.write_text("# who\nalice  0123456789abcdef-alice\n\nbob\t0123456789abcdef#bob\n")
    tokens = read_tokens(str(path))
    for token, name in (("0123456789abcdef-alice", "alice"), ("0123456789abcdef#bob", "bob")):
        owner = tokens.owner(token)
        assert owner is not None
        assert owner.name == name
    for wrong in ("", "0123456789abcdef-alic", "alice", "0123456789abcdef-alice ", "\udcff"):
        assert tokens.owner(wrong) is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "there is no token"),
        ("# only a note\n", "there is no token"),
        ("alice short-secret", "row 1: the token is too short: expected 16 characters or more"),
        ("alice 0123456789abcdef-secret\nbob 0123456789abcdef-secret", "row 2: the token is listed twice"),
        ("alice 0123456789abcdef-secret admin", "row 1: expected a name and a token"),
    ],
)
def test_a_file_of_tokens_that_makes_no_sense(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "tokens"
    path.write_text(text)
    with pytest.raises(BadTokens) as refused:
        read_tokens(str(path))
    assert said in str(refused.value)
    assert "secret" not in str(refused.value)


def test_a_session_ends_with_the_token_that_it_began_with() -> None:
    tokens = PageTokens({"0123456789-old": "alice", "0123456789-bob": "bob"})
    access = Access(Roles(None, changes=False), tokens, is_open=False)
    old, bob = access.log_in("0123456789-old"), access.log_in("0123456789-bob")
    access.take_tokens(PageTokens({"0123456789-new": "alice", "0123456789-bob": "bob"}))

    def who(session: str | None) -> str | None:
        cookie = f"groupkeeper={session}".encode()
        person = access.person(Request({"type": "http", "headers": [(b"cookie", cookie)]}))
        return None if person is None else person.name

    assert (who(old), who(bob)) == (None, "bob")
