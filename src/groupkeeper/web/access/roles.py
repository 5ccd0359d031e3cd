"""Roles: which users may see or change which groups of which clusters. A file of TOML, read once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, NamedTuple

from groupkeeper.live.model import ClusterSnapshot
from groupkeeper.live.toml_tables import BadTable, TomlTable, as_names, one_of, read_toml
from groupkeeper.operations.selection import Choice, Names

_EVERY = Names(())
_MOST_VIEWS = 50


class Role(StrEnum):
    """A user's right. CHANGE includes VIEW."""

    VIEW = "view"
    CHANGE = "change"


class Grant(NamedTuple):
    """A role of users, named or by teams, for some groups of some clusters. None: it names no users, or no teams."""

    users: Names | None
    role: Role
    clusters: Names
    groups: Choice
    teams: Names | None = None

    def is_of(self, user: str, teams: Sequence[str]) -> bool:
        """Whether a user has the role."""
        is_named = self.users is not None and self.users.matches(user)
        return is_named or (self.teams is not None and any(map(self.teams.matches, teams)))

    def is_for(self, cluster: str, group_id: str, role: Role) -> bool:
        """Whether the role covers this action on the group."""
        return role in (self.role, Role.VIEW) and self.clusters.matches(cluster) and self.groups.matches(group_id)


class Views:
    """The parts of snapshots that choices of groups select. Each part is made once for all users with the same rights,
    and kept until `forget`, as snapshots are large.
    """

    def __init__(self) -> None:
        self._made: dict[str, tuple[ClusterSnapshot, dict[tuple[Choice, ...], ClusterSnapshot]]] = {}

    def of(self, snapshot: ClusterSnapshot, choices: tuple[Choice, ...]) -> ClusterSnapshot:
        """The snapshot with the groups that at least one of the choices selects."""
        source, made = self._made.get(snapshot.cluster, (None, {}))
        if source is not snapshot or len(made) >= _MOST_VIEWS:
            made = {}
            self._made[snapshot.cluster] = (snapshot, made)
        if choices not in made:
            made[choices] = _part(snapshot, choices)
        return made[choices]

    def forget(self) -> None:
        """Drops all parts, as there are newer snapshots."""
        self._made.clear()


def _part(snapshot: ClusterSnapshot, choices: tuple[Choice, ...]) -> ClusterSnapshot:
    def is_in(group_id: str) -> bool:
        return any(choice.matches(group_id) for choice in choices)

    groups = {group_id: group for group_id, group in snapshot.groups.items() if is_in(group_id)}
    left_out = tuple(filter(is_in, snapshot.scope.left_out))
    # Patterns as typed may name groups that this viewer may not see.
    scope = snapshot.scope._replace(left_out=left_out, unmatched=())
    last = None if snapshot.last is None else _part(snapshot.last, choices)
    return snapshot._replace(groups=groups, listed=len(groups) + len(left_out), scope=scope, last=last)


class Rights(NamedTuple):
    """A user's rights: those of all grants; everything if `grants` is None.

    `changes`: whether changes are allowed here at all. `views`: keeps parts of snapshots; None: they are not kept.
    """

    grants: tuple[Grant, ...] | None
    changes: bool = False
    views: Views | None = None

    def may(self, role: Role, cluster: str, group_id: str) -> bool:
        """Whether a group may be seen or changed."""
        if role is Role.CHANGE and not self.changes:
            return False
        return self.grants is None or any(grant.is_for(cluster, group_id, role) for grant in self.grants)

    @property
    def sees_all(self) -> bool:
        """Whether everything may be seen."""
        return self.grants is None or any(not grant.clusters and not grant.groups for grant in self.grants)

    def sees_whole(self, cluster: str) -> bool:
        """Whether all of a cluster may be seen."""
        return self.grants is None or any(grant.clusters.matches(cluster) and not grant.groups for grant in self.grants)

    def sees(self, cluster: str) -> bool:
        """Whether groups of a cluster may be seen."""
        return self.grants is None or any(grant.clusters.matches(cluster) for grant in self.grants)

    def seen(self, snapshot: ClusterSnapshot) -> ClusterSnapshot | None:
        """The part of a cluster that may be seen; None: nothing."""
        if self.sees_all:
            return snapshot
        own = tuple(grant.groups for grant in self.grants or () if grant.clusters.matches(snapshot.cluster))
        if not own:
            return None
        if not all(own):  # a choice without names is every name
            return snapshot
        return _part(snapshot, own) if self.views is None else self.views.of(snapshot, own)


class Roles:
    """The grants of all users. `grants` None: every known user may do everything. `changes`: as in Rights."""

    def __init__(self, grants: Sequence[Grant] | None, *, changes: bool) -> None:
        self.changes = changes
        self.views = Views()
        self._grants = grants

    def of(self, user: str, teams: Sequence[str] = ()) -> Rights:
        """The rights of a user. `teams`: the groups of users that the provider of the login names."""
        if self._grants is None:
            return Rights(None, self.changes)
        return Rights(tuple(grant for grant in self._grants if grant.is_of(user, teams)), self.changes, self.views)


def read_grants(path: str) -> list[Grant]:
    """The grants in a file. Raises BadTable, OSError."""
    return read_toml(path, grants_of)


def grants_of(document: Mapping[str, Any]) -> list[Grant]:
    """The grants of a TOML document. Raises BadTable."""
    top = TomlTable("the file", document)
    grants = top.tables("role", _grant)
    top.end()
    if not grants:
        raise BadTable("there is no [[role]]")
    return grants


def _grant(table: TomlTable) -> Grant:
    grant = Grant(
        table.take("users", _some, None),
        table.take("may", one_of(Role)),
        table.take("clusters", _some, _EVERY),
        Choice(table.take("groups", _some, _EVERY), table.take("except_groups", _some, _EVERY)),
        table.take("teams", _some, None),
    )
    table.end()
    if grant.users is None and grant.teams is None:
        raise BadTable(f"{table.where}: expected users or teams")
    return grant


def _some(value: Any) -> Names:
    """A list of names that is not empty: an empty one would stand for everything."""
    if value == []:
        raise ValueError('expected names; "*" stands for all')
    return as_names(value)
