"""The authorizer that `authorizer.class.name` enables: clients create ACLs, which are stored in the data directory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from groupkeeper.base_error import InvalidSetting
from groupkeeper.broker.authorizer import STANDARD_AUTHORIZER, Authorizer, Operation, ResourceType
from groupkeeper.broker.call import Call
from groupkeeper.broker.security.acls import Acl, AclFilter, Acls, Asker
from groupkeeper.broker.settings.config import Config
from groupkeeper.broker.storage.directory import StorageDirectory
from groupkeeper.broker.storage.journal import registry

_HARDCODED = "hardcode"
"""The resource name by which Kafka checks whether a principal may use every resource, or there are no ACLs."""
_KNOWN_DECISIONS = 10_000
"""The number of cached decisions; the cache is cleared when an ACL is added or removed."""


class AclAuthorizer(Authorizer):
    """Works like Apache Kafka's StandardAuthorizer. Changes are on disk before they take effect."""

    def __init__(self, directory: StorageDirectory, config: Config) -> None:
        """Reads the stored ACLs. Raises `InvalidSetting`."""
        if config.authorizer_class_name.strip() != STANDARD_AUTHORIZER:
            raise InvalidSetting(
                f"authorizer.class.name={config.authorizer_class_name}: Java code cannot run here; use "
                f"{STANDARD_AUTHORIZER}, or give Broker an authorizer of Python"
            )
        self._super_users = _super_users(config.super_users)
        self._allows_without_acls = config.allow_everyone_if_no_acl_found
        self.acls = Acls()
        self._known: dict[tuple[str, str, int, int, str], bool] = {}
        self._journal = registry(directory, "acls.journal", "ACLs")
        self._journal.replay(self._take)
        self._journal.begin(_entry(acl, is_there=True) for acl in self.acls)

    def _take(self, entry: Mapping[str, Any]) -> None:
        acl = Acl(*entry["acl"])
        if entry["is_there"]:
            self.acls.add(acl)
        elif acl in self.acls:
            self.acls.remove(acl)

    def create(self, acl: Acl) -> None:
        """Adds an ACL unless it exists already. Raises `InvalidRequest`, `KafkaStorageError`."""
        acl.check()
        if acl not in self.acls:
            self._journal.write(_entry(acl, is_there=True))
            self.acls.add(acl)
            self._known.clear()

    def delete(self, wanted: AclFilter) -> list[Acl]:
        """Deletes the ACLs that match a filter, and returns them. Raises `InvalidRequest`, `KafkaStorageError`."""
        wanted.check()
        found = self.acls.meant_by(wanted)
        for acl in found:
            self._journal.write(_entry(acl, is_there=False))
            self.acls.remove(acl)
            self._known.clear()
        return found

    def allows(self, call: Call, operation: Operation, resource_type: ResourceType, name: str) -> bool:
        question = (call.principal, call.client_host, operation, resource_type, name)
        known = self._known.get(question)
        if known is None:
            if len(self._known) >= _KNOWN_DECISIONS:
                self._known.clear()
            known = self._known[question] = self._decide(call, operation, resource_type, name)
        return known

    def _decide(self, call: Call, operation: Operation, resource_type: ResourceType, name: str) -> bool:
        if call.principal in self._super_users:
            return True
        found = self.acls.decide(_asker(call), operation, resource_type, name)
        return self._allows_without_acls if found is None else found

    def allows_any(self, call: Call, operation: Operation, resource_type: ResourceType) -> bool:
        return self.allows(call, operation, resource_type, _HARDCODED) or self.acls.allows_some(
            _asker(call), operation, resource_type
        )


def _asker(call: Call) -> Asker:
    return Asker(call.principal, call.client_host.removeprefix("/"))


def _entry(acl: Acl, *, is_there: bool) -> dict[str, object]:
    return {"acl": list(acl), "is_there": is_there}


def _super_users(given: str) -> frozenset[str]:
    users = frozenset(text.strip() for text in given.split(";") if text.strip())
    for user in users:
        if ":" not in user:
            raise InvalidSetting(f"super.users: {user} is no principal: expected User:{user}")
    return users
