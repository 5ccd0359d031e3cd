"""Names of ACL operations, from the bit field of the authorized operations (KIP-430)."""

from __future__ import annotations

_NOT_ASKED_FOR = -(2**31)

_OPERATION_BY_CODE = {
    3: "READ",
    4: "WRITE",
    5: "CREATE",
    6: "DELETE",
    7: "ALTER",
    8: "DESCRIBE",
    9: "CLUSTER_ACTION",
    10: "DESCRIBE_CONFIGS",
    11: "ALTER_CONFIGS",
    12: "IDEMPOTENT_WRITE",
    13: "CREATE_TOKENS",
    14: "DESCRIBE_TOKENS",
    15: "TWO_PHASE_COMMIT",
}


def operation_names(bits: int) -> frozenset[str] | None:
    """The operations of the bit field; None when they were not requested, or the broker is too old to return them."""
    if bits == _NOT_ASKED_FOR:
        return None
    return frozenset(name for code, name in _OPERATION_BY_CODE.items() if bits >> code & 1)
