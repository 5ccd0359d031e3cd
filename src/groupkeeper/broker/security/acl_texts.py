"""ACLs written as lines of text, for tests and the command line."""

from __future__ import annotations

import re

from groupkeeper.base_error import InvalidSetting
from groupkeeper.broker.authorizer import CLUSTER_NAME, Operation, ResourceType
from groupkeeper.broker.security.acls import WILDCARD, Acl, PatternType, Permission
from groupkeeper.protocol.errors import InvalidRequest

_FORM = "[DENY] PRINCIPAL OPERATION[,OPERATION...] RESOURCE_TYPE [NAME] [FROM HOST]"
_LINE = re.compile(
    r"\s*(?:(?P<permission>ALLOW|DENY)\s+)?(?P<principal>\S+)\s+(?P<operations>[A-Z_]+(?:,[A-Z_]+)*)\s+"
    r"(?P<kind>[A-Z_]+)(?:\s+(?P<name>(?!FROM\s)\S.*?))??(?:\s+FROM\s+(?P<host>\S+))?\s*",
    re.IGNORECASE,
)


def acls_of(line: str) -> list[Acl]:
    """The ACLs of one line such as `User:alice READ,DESCRIBE GROUP billing-*`: one for each operation.

    A principal without a type is a user's name; `*` is every principal. A resource name that ends in `*` is a prefix;
    `*` alone is every resource of the type. CLUSTER needs no name. Raises `InvalidSetting`.
    """
    found = _LINE.fullmatch(line)
    if found is None:
        raise InvalidSetting(f"{line!r} is no ACL: expected {_FORM}")
    kind = _named(ResourceType, found["kind"], line)
    name = found["name"] or (CLUSTER_NAME if kind == ResourceType.CLUSTER else "")
    is_prefix = name.endswith(WILDCARD) and name != WILDCARD
    pattern = PatternType.PREFIXED if is_prefix else PatternType.LITERAL
    principal = found["principal"] if ":" in found["principal"] else f"User:{found['principal']}"
    permission = Permission.DENY if (found["permission"] or "").upper() == "DENY" else Permission.ALLOW
    acls = [
        Acl(
            kind, name.removesuffix(WILDCARD) if is_prefix else name, pattern,
            principal, found["host"] or WILDCARD, _named(Operation, one, line), permission,
        )
        for one in found["operations"].split(",")
    ]  # fmt: skip
    try:
        for acl in acls:
            acl.check()
    except InvalidRequest as error:
        raise InvalidSetting(f"{line!r} is no ACL: {error.message}") from None
    return acls


def _named(names: type[Operation] | type[ResourceType], text: str, line: str) -> int:
    try:
        return names[text.upper()]
    except KeyError:
        known = ", ".join(one.name for one in names)
        raise InvalidSetting(f"{line!r} is no ACL: {text} is unknown, expected one of {known}") from None
