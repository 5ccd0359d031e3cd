"""The SCRAM credentials of users, kept in the data directory."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping

from groupkeeper.broker.storage.directory import StorageDirectory
from groupkeeper.broker.storage.journal import registry
from groupkeeper.security.mechanisms.mechanism import Credential
from groupkeeper.security.mechanisms.scram import new_credential

Key = tuple[str, str]
"""Mechanism and user."""


class ScramCredentials:
    """SCRAM credentials by mechanism and user. Changes are on disk before they take effect."""

    def __init__(self, directory: StorageDirectory) -> None:
        """Reads the stored credentials. Raises `InvalidSetting` when their file is damaged."""
        self._by_key: dict[Key, Credential] = {}
        self._journal = registry(directory, "scram.journal", "SCRAM credentials", is_private=True)
        self._journal.replay(self._take)
        self._journal.begin(_entry(key, credential) for key, credential in self._by_key.items())

    def get(self, mechanism: str, user: str) -> Credential | None:
        """A user's credential of a mechanism; None: there is none."""
        return self._by_key.get((mechanism, user))

    def iterations(self, user: str) -> dict[str, int]:
        """A user's iterations by mechanism; empty without credentials."""
        return {mechanism: one.iterations for (mechanism, name), one in self._by_key.items() if name == user}

    def users(self) -> list[str]:
        """The users with a credential."""
        return list(dict.fromkeys(user for _, user in self._by_key))

    def change(self, changes: Mapping[Key, Credential | None]) -> None:
        """Sets or removes (None) credentials of users. Raises `KafkaStorageError`."""
        for key, credential in changes.items():
            entry = _entry(key, credential)
            self._journal.write(entry)
            self._take(entry)

    def give(self, mechanisms: Iterable[str], password_by_user: Mapping[str, str]) -> None:
        """Sets the passwords of users; a credential for the same password stays. Raises `KafkaStorageError`."""
        for mechanism in mechanisms:
            for user, password in password_by_user.items():
                known = self._by_key.get((mechanism, user))
                if known is None or new_credential(mechanism, password, known.iterations, known.salt) != known:
                    self.change({(mechanism, user): new_credential(mechanism, password)})

    def _take(self, entry: Mapping[str, str]) -> None:
        key = (entry["mechanism"], entry["user"])
        if "salt" not in entry:
            self._by_key.pop(key, None)
            return
        salt, stored_key, server_key = (base64.b64decode(entry[name]) for name in ("salt", "stored_key", "server_key"))
        self._by_key[key] = Credential(salt, stored_key, server_key, int(entry["iterations"]))


def _entry(key: Key, credential: Credential | None) -> dict[str, str]:
    mechanism, user = key
    entry = {"mechanism": mechanism, "user": user}
    if credential is not None:
        salt, stored_key, server_key = (base64.b64encode(part).decode() for part in credential[:3])
        entry |= {"salt": salt, "stored_key": stored_key, "server_key": server_key}
        entry["iterations"] = str(credential.iterations)
    return entry
