"""The security of a broker's listeners, and the credentials behind it. Created when a listener or request needs it."""

from __future__ import annotations

from weakref import WeakValueDictionary

from groupkeeper.broker.security.credentials import ScramCredentials
from groupkeeper.broker.security.properties import ListenerProperties
from groupkeeper.broker.security.sasl import ListenerSasl
from groupkeeper.broker.security.tokens import DelegationTokens
from groupkeeper.broker.settings.config import Config
from groupkeeper.security.identity import ANONYMOUS, Identity
from groupkeeper.security.mechanisms.mechanism import Login
from groupkeeper.security.mechanisms.scram import HASH_BY_MECHANISM

TYPE_CHECKING = False
if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Mapping

    from groupkeeper.broker.security.principals import MappingRules
    from groupkeeper.broker.security.sasl import KeySources
    from groupkeeper.broker.security.tls import Stamp
    from groupkeeper.broker.storage.directory import StorageDirectory


class ListenerTls:
    """TLS of one listener.

    Attributes:
        context: the TLS context of new connections.
        rules: the mapping of their certificates to principals.
    """

    def __init__(self, properties: ListenerProperties, protocol: str) -> None:
        """Reads the stores. Raises `InvalidSetting`."""
        from groupkeeper.broker.security.principals import MappingRules
        from groupkeeper.broker.security.tls import server_context, stamp_of

        self._properties = properties
        self._stamp: Stamp = stamp_of(properties)
        self.context: ssl.SSLContext = server_context(properties, protocol)
        self.rules: MappingRules = MappingRules(properties.value(Config.ssl_principal_mapping_rules))

    def has_changed(self) -> bool:
        """Whether a file of its stores has changed since it was read."""
        from groupkeeper.broker.security.tls import stamp_of

        return stamp_of(self._properties) != self._stamp


class Security:
    """The security of one broker.

    Attributes:
        credentials: the credentials of SCRAM users.
        tokens: delegation tokens.
    """

    def __init__(
        self, config: Config, directory: StorageDirectory, users: Mapping[str, str], now_ms: Callable[[], int]
    ) -> None:
        """`users` are passwords by user, besides those in the settings. Raises `InvalidSetting`."""
        self.credentials = ScramCredentials(directory)
        self.tokens = DelegationTokens(directory, config, now_ms)
        self._config = config
        self._users = users
        self._now_ms = now_ms
        self._protocol_by_listener: Mapping[str, str] = {}
        self._key_sources: KeySources = WeakValueDictionary()
        self._sasl_by_listener: dict[str, ListenerSasl] = {}
        self._tls_by_listener: dict[str, ListenerTls] = {}

    def open(self, protocol_by_listener: Mapping[str, str]) -> None:
        """Reads the settings and files of the listeners. Raises `InvalidSetting`, `KafkaStorageError`."""
        self._protocol_by_listener = protocol_by_listener
        self.take_settings()
        for sasl in self._sasl_by_listener.values():
            self.credentials.give([one for one in sasl.mechanisms if one in HASH_BY_MECHANISM], self._users)

    def check(self, config: Config) -> None:
        """Raises `InvalidSetting` for settings that the listeners can't use."""
        self._read(config)

    def take_settings(self) -> None:
        """Applies changed settings to new connections. Raises `InvalidSetting`; then nothing changes."""
        self._sasl_by_listener, self._tls_by_listener = self._read(self._config)

    def _read(self, config: Config) -> tuple[dict[str, ListenerSasl], dict[str, ListenerTls]]:
        sasl, tls = {}, {}
        for listener, protocol in self._protocol_by_listener.items():
            properties = ListenerProperties(config, listener)
            if protocol.startswith("SASL_"):
                sasl[listener] = ListenerSasl(
                    properties, self._users, self._find_login, self._now_ms, self._key_sources
                )
            if protocol.endswith("SSL"):
                tls[listener] = ListenerTls(properties, protocol)
        return sasl, tls

    def has_new_stores(self) -> bool:
        """Whether a file of a listener's stores has changed since it was read."""
        return any(one.has_changed() for one in self._tls_by_listener.values())

    def sasl(self, listener: str) -> ListenerSasl:
        """The SASL of a listener."""
        return self._sasl_by_listener[listener]

    def tls(self, listener: str) -> ssl.SSLContext:
        """The TLS context of a listener's new connections."""
        return self._tls_by_listener[listener].context

    def identity_of(self, listener: str, certificate: bytes | None) -> Identity:
        """The identity of the owner of a certificate (DER); None: no certificate. Raises ValueError when its name maps
        to no principal.
        """
        if certificate is None:
            return Identity(ANONYMOUS)
        from groupkeeper.broker.security.principals import subject_of

        return Identity(f"User:{self._tls_by_listener[listener].rules.name_of(subject_of(certificate))}")

    def _find_login(self, mechanism: str, name: str, is_token: bool) -> Login | None:
        if is_token:
            return self.tokens.login(mechanism, name)
        credential = self.credentials.get(mechanism, name)
        return None if credential is None else Login(credential, Identity(f"User:{name}"))
