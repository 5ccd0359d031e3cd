"""What ACLs decide, against a slow reading of the rules."""

import ipaddress

from hypothesis import given
from hypothesis import strategies as st

from groupkeeper.broker.authorizer import Operation, ResourceType
from groupkeeper.broker.security.acls import ANY, Acl, AclFilter, Acls, Asker, PatternType, Permission

NAMES = ("*", "a", "ab", "abc", "b", "ba", "ä", "a*")
PRINCIPALS = ("User:*", "User:alice", "User:bob", "Group:alice", "User:a:b")
HOSTS = ("*", "10.0.0.1", "10.0.0.2", "10.0.0.0/31", "10.0.0.0/8", "::1", "fe80::/10", "10.0.0.0/99", "x/8")
ALLOW, DENY = Permission.ALLOW, Permission.DENY

acls = st.builds(
    Acl,
    resource_type=st.sampled_from((2, 3)),
    name=st.sampled_from(NAMES),
    pattern_type=st.sampled_from((3, 4)),
    principal=st.sampled_from(PRINCIPALS),
    host=st.sampled_from(HOSTS),
    operation=st.sampled_from([int(one) for one in Operation]),
    permission=st.sampled_from((2, 3)),
)
askers = st.builds(
    Asker,
    principal=st.sampled_from(("User:alice", "User:bob", "User:a:b", "User:ANONYMOUS")),
    host=st.sampled_from(("10.0.0.1", "10.0.0.9", "::1", "fe80::1")),
)


def is_about(acl: Acl, resource_type: int, name: str) -> bool:
    if acl.resource_type != resource_type:
        return False
    if acl.pattern_type == PatternType.PREFIXED:
        return name.startswith(acl.name)
    return acl.name == "*" or acl.name == name


def is_for(acl: Acl, asker: Asker) -> bool:
    if acl.principal != "User:*" and acl.principal != asker.principal:
        return False
    if acl.host == "*" or acl.host == asker.host:
        return True
    try:
        return "/" in acl.host and ipaddress.ip_address(asker.host) in ipaddress.ip_network(acl.host, strict=False)
    except ValueError:
        return False


def permits(acl: Acl, operation: int) -> bool:
    if acl.operation in (Operation.ALL, operation):
        return True
    if operation == Operation.DESCRIBE:
        return acl.operation in (Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER)
    return operation == Operation.DESCRIBE_CONFIGS and acl.operation == Operation.ALTER_CONFIGS


def slow_decision(given_acls: list[Acl], asker: Asker, operation: int, resource_type: int, name: str) -> bool | None:
    about = [acl for acl in given_acls if is_about(acl, resource_type, name)]
    if not about:
        return None
    mine = [acl for acl in about if is_for(acl, asker)]
    if any(acl.permission == DENY and acl.operation in (Operation.ALL, operation) for acl in mine):
        return False
    return any(acl.permission == ALLOW and permits(acl, operation) for acl in mine)


@given(
    given_acls=st.lists(acls, max_size=12),
    gone=st.lists(acls, max_size=4),
    asker=askers,
    operation=st.sampled_from(list(Operation)[1:]),
    resource_type=st.sampled_from((ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLUSTER)),
    name=st.sampled_from(("a", "ab", "abcd", "b", "ä", "zz", "*")),
)
def test_decisions(
    given_acls: list[Acl], gone: list[Acl], asker: Asker, operation: Operation, resource_type: ResourceType, name: str
) -> None:
    held = Acls()
    for acl in (*gone, *given_acls):
        held.add(acl)
    for acl in set(gone) - set(given_acls):
        held.remove(acl)
    left = list(dict.fromkeys(given_acls))
    assert sorted(held) == sorted(left)
    assert held.decide(asker, operation, resource_type, name) is slow_decision(
        left, asker, operation, resource_type, name
    )


@given(
    given_acls=st.lists(acls, max_size=8),
    asker=askers,
    operation=st.sampled_from((Operation.READ, Operation.WRITE, Operation.DESCRIBE)),
)
def test_some_resource(given_acls: list[Acl], asker: Asker, operation: Operation) -> None:
    """A name is found on which the operation is allowed, by an ACL that names it, exactly where the answer is yes."""
    held = Acls()
    for acl in given_acls:
        held.add(acl)
    direct = [acl for acl in given_acls if acl.operation in (operation, Operation.ALL)]
    # A name behind every prefix: only ACLs about the prefix, or all names, are about it.
    names = {acl.name + end for acl in direct for end in (("",) if acl.pattern_type == 3 else ("", "\0"))}
    names = {name if name != "*" else "\0" for name in names}
    expected = any(slow_decision(direct, asker, operation, ResourceType.TOPIC, name) for name in names)
    # Kafka sees no denial of what a literal ACL allows for all names, but one of all names.
    found = held.allows_some(asker, operation, ResourceType.TOPIC)
    assert found or not expected
    if found and not expected:
        mine = [acl for acl in direct if is_for(acl, asker) and acl.resource_type == ResourceType.TOPIC]
        allowed = [acl for acl in mine if acl.permission == ALLOW]
        assert any(acl.name == "*" or any(deny.name.startswith(acl.name) for deny in mine) for acl in allowed)


filters = st.builds(
    AclFilter,
    resource_type=st.sampled_from((ANY, 2, 3)),
    name=st.sampled_from((None, *NAMES, "abcd")),
    pattern_type=st.sampled_from((ANY, 2, 3, 4)),
    principal=st.sampled_from((None, *PRINCIPALS)),
    host=st.sampled_from((None, *HOSTS)),
    operation=st.sampled_from((ANY, 2, 3, 8)),
    permission=st.sampled_from((ANY, 2, 3)),
)


@given(given_acls=st.lists(acls, max_size=12), wanted=filters)
def test_filters(given_acls: list[Acl], wanted: AclFilter) -> None:
    held = Acls()
    for acl in given_acls:
        held.add(acl)

    def fits(acl: Acl) -> bool:
        codes = ((wanted.resource_type, acl.resource_type), (wanted.operation, acl.operation))
        if any(code not in (ANY, own) for code, own in (*codes, (wanted.permission, acl.permission))):
            return False
        if any(text not in (None, own) for text, own in ((wanted.principal, acl.principal), (wanted.host, acl.host))):
            return False
        if wanted.pattern_type == 2 and wanted.name is not None:
            return is_about(acl, acl.resource_type, wanted.name)
        return wanted.name in (None, acl.name) and wanted.pattern_type in (ANY, 2, acl.pattern_type)

    assert held.meant_by(wanted) == [acl for acl in dict.fromkeys(given_acls) if fits(acl)]


def test_an_address_may_be_written_as_java_writes_it() -> None:
    held = Acls()
    held.add(Acl(ResourceType.TOPIC, "t", PatternType.LITERAL, "User:a", "0:0:0:0:0:0:0:1", Operation.READ, ALLOW))
    asked = (Operation.READ, ResourceType.TOPIC, "t")
    assert held.decide(Asker("User:a", "::1"), *asked) is True
    assert held.decide(Asker("User:a", "::2"), *asked) is False
