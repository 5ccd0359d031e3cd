"""The security of a broker's listeners, and the credentials behind it. Made when a listener or a request needs it."""

from __future__ import annotations

from groupkeeper.broker.security.credentials import ScramCredentials
from groupkeeper.broker.security.identity import Identity
from groupkeeper.broker.security.properties import ListenerProperties
from groupkeeper.broker.security.sasl import ListenerSasl
from groupkeeper.broker.security.scram import HASH_BY_MECHANISM, Login

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from groupkeeper.broker.settings.config import Config
    from groupkeeper.broker.storage.directory import StorageDirectory


class Security:
    """Of one broker.

    Attributes:
        credentials: those of SCRAM users.
    """

    def __init__(
        self, config: Config, directory: StorageDirectory, users: Mapping[str, str], now_ms: Callable[[], int]
    ) -> None:
        """`users` have passwords for PLAIN and SCRAM beside what the settings say. Raises `InvalidSetting`."""
        self.credentials = ScramCredentials(directory)
        self._config = config
        self._users = users
        self._now_ms = now_ms
        self._sasl_by_listener: dict[str, ListenerSasl] = {}

    def open(self, protocol_by_listener: Mapping[str, str]) -> None:
        """Reads what the listeners need. Raises `InvalidSetting`, `KafkaStorageError`."""
        for listener, protocol in protocol_by_listener.items():
            if protocol.startswith("SASL_"):
                self._sasl_by_listener[listener] = sasl = self._sasl_of(self._config, listener)
                self._give_users(sasl.mechanisms)

    def sasl(self, listener: str) -> ListenerSasl:
        """What a listener offers."""
        return self._sasl_by_listener[listener]

    def close(self) -> None:
        """Closes the registries."""
        self.credentials.close()

    def _sasl_of(self, config: Config, listener: str) -> ListenerSasl:
        return ListenerSasl(ListenerProperties(config, listener), self._users, self._find_login)

    def _give_users(self, mechanisms: Iterable[str]) -> None:
        self.credentials.give([one for one in mechanisms if one in HASH_BY_MECHANISM], self._users)

    def _find_login(self, mechanism: str, name: str, is_token: bool) -> Login | None:
        if is_token:
            return None
        credential = self.credentials.get(mechanism, name)
        return None if credential is None else Login(credential, Identity(f"User:{name}"))
