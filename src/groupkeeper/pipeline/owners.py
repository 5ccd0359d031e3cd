"""The owners of groups and topics: a file of patterns."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Sequence
from typing import NamedTuple

from groupkeeper.pipeline.errors import SourceError

KINDS = ("group", "topic")


class OwnerRule(NamedTuple):
    """`owner` owns everything that matches `pattern`. `kind` None: groups and topics."""

    kind: str | None
    pattern: str
    owner: str
    compiled: re.Pattern[str]


def parse_owners(text: str, where: str) -> tuple[OwnerRule, ...]:
    """The rules, one per line: `[group:|topic:]PATTERN OWNER`; lines that start with `#` are comments. Raises
    SourceError, which names the line.
    """
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        words = line.strip().rsplit(None, 1)
        if not words or line.lstrip().startswith("#"):
            continue
        if len(words) < 2:
            raise SourceError(f"{where}, line {number}: expected PATTERN OWNER, for example 'billing-* team-billing'")
        pattern, owner = words
        prefix, colon, rest = pattern.partition(":")
        kind = prefix if colon and prefix in KINDS else None
        pattern = rest if kind is not None else pattern
        if not pattern:
            raise SourceError(f"{where}, line {number}: there is no pattern after '{prefix}:'")
        glob_or_name = rf"{fnmatch.translate(pattern)}|{re.escape(pattern)}\Z"
        found.append(OwnerRule(kind, pattern, owner, re.compile(glob_or_name, re.DOTALL)))
    return tuple(found)


def owner_of(rules: Sequence[OwnerRule], kind: str, name: str) -> OwnerRule | None:
    """The last rule that matches; None: no rule does."""
    return next((rule for rule in reversed(rules) if rule.kind in (None, kind) and rule.compiled.match(name)), None)
