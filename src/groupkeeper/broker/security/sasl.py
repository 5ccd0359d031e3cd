"""The SASL of a listener: its mechanisms, and the settings of each."""

from __future__ import annotations

from functools import partial

from groupkeeper.base_error import InvalidSetting
from groupkeeper.broker.settings.config import Config
from groupkeeper.broker.settings.order import in_java_order
from groupkeeper.security.errors import BadCredentials
from groupkeeper.security.jaas import parse_jaas, parse_jaas_file
from groupkeeper.security.mechanisms import MECHANISMS
from groupkeeper.security.mechanisms.mechanism import JAAS_FILE, NAME, ServerLogin

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import TypeVar
    from weakref import WeakValueDictionary

    from groupkeeper.broker.security.jwks import KeySource
    from groupkeeper.broker.security.properties import ListenerProperties
    from groupkeeper.broker.settings.table import Setting
    from groupkeeper.security.mechanisms.mechanism import (
        Login,
        LoginModule,
        Mechanism,
        ServerConversation,
        TokenValidator,
    )

    T = TypeVar("T")
    Begin = Callable[[], ServerConversation]
    FindLogin = Callable[[str, str, bool], Login | None]
    """Finds a login by mechanism and name; the flag: whether the name is a delegation token's id."""
    KeySources = WeakValueDictionary[tuple[object, ...], KeySource]
    """Key sources by their settings: a source keeps its keys when other settings change."""

_JWKS = Config.sasl_oauthbearer_jwks_endpoint_url.name
_HANDLER = "sasl.server.callback.handler.class"
_SIGNED_HANDLER = "OAuthBearerValidatorCallbackHandler"
_UNSECURED_HANDLER = "OAuthBearerUnsecuredValidatorCallbackHandler"


class ListenerSasl:
    """The SASL of a listener, from its settings.

    Attributes:
        mechanisms: the enabled mechanisms, in Kafka's order.
        max_receive_bytes: the maximum size of one message of a login.
        failure_delay_s: how long the response to a failed login waits.
        timeout_s: how long a login may take.
    """

    def __init__(
        self,
        properties: ListenerProperties,
        users: Mapping[str, str],
        find_login: FindLogin,
        now_ms: Callable[[], int],
        key_sources: KeySources,
    ) -> None:
        """`users` are passwords by user, in addition to those in the JAAS texts; `key_sources` are those already in
        use. Raises `InvalidSetting`.
        """
        self._now_ms = now_ms
        self._key_sources = key_sources
        self._properties = properties
        self._users = users
        self._find_login = find_login
        self.max_receive_bytes = properties.value(Config.sasl_server_max_receive_size)
        self.failure_delay_s = properties.value(Config.connection_failed_authentication_delay_ms) / 1000
        self.timeout_s = properties.value(Config.groupkeeper_authentication_timeout_ms) / 1000
        self._begin_by_mechanism = {name: self._beginning(MECHANISMS[name]) for name in self._enabled()}
        self._session_ms_by_mechanism = {
            name: properties.value(Config.connections_max_reauth_ms, name) for name in self._begin_by_mechanism
        }
        self.mechanisms = in_java_order(self._begin_by_mechanism, len(self._begin_by_mechanism))

    def begin(self, mechanism: str) -> ServerConversation:
        """Begins a login with one of `mechanisms`."""
        return self._begin_by_mechanism[mechanism]()

    def session_ms(self, mechanism: str) -> int:
        """The time in milliseconds after which a client must reauthenticate; 0: never."""
        return max(self._session_ms_by_mechanism[mechanism], 0)

    def _enabled(self) -> list[str]:
        properties = self._properties
        name = Config.sasl_enabled_mechanisms.name
        if self._users and not properties.is_given(name):
            return [each.name for each in MECHANISMS.values() if each.has_users]
        enabled = [one for one in properties.value(Config.sasl_enabled_mechanisms) if one != "GSSAPI"]
        unknown = [one for one in enabled if one not in MECHANISMS]
        if unknown or not enabled:
            what = unknown[0] if unknown else "GSSAPI (Kerberos, the default)"
            raise InvalidSetting(
                f"listener {properties.listener}: mechanism {what} is not offered: "
                f"set {properties.name_of(name)} to some of {', '.join(MECHANISMS)}"
            )
        return enabled

    def _beginning(self, mechanism: Mechanism) -> Begin:
        module = partial(self._login_module, mechanism)
        find, tokens = partial(self._find_login, mechanism.name), partial(self._tokens, mechanism)
        return mechanism.server(ServerLogin(mechanism, self._properties.listener, self._users, module, find, tokens))

    def _tokens(self, mechanism: Mechanism) -> TokenValidator:
        module = self._login_module(mechanism)
        options = {} if module is None else module.options
        properties, name = self._properties, mechanism.name
        handler, url = properties.text(_HANDLER, name) or "", properties.text(_JWKS, name)
        class_name = handler.rpartition(".")[2]
        if class_name not in ("", _UNSECURED_HANDLER, _SIGNED_HANDLER):
            where = properties.name_of(_HANDLER, name)
            raise InvalidSetting(f"{where}: {handler} is Java code, which cannot run here: expected {_SIGNED_HANDLER}")
        if url is None and class_name == _SIGNED_HANDLER:
            raise InvalidSetting(f"{properties.name_of(_JWKS, name)} is missing: {_SIGNED_HANDLER} needs it")
        if url is None:
            from groupkeeper.broker.security.oauth import UnsecuredTokens

            return UnsecuredTokens(options, self._now_ms)
        # If the handler is not set, Kafka would accept unsigned tokens and ignore the key set.
        return self._signed_tokens(url, options, name)

    def _signed_tokens(self, url: str, options: Mapping[str, str], mechanism: str) -> TokenValidator:
        try:
            from groupkeeper.broker.security.signed_tokens import Expected, SignedTokens
        except ImportError:
            raise InvalidSetting(
                f"{self._properties.name_of(_JWKS, mechanism)} needs a library: the extra 'security' "
                "(in a checkout: pip install '.[security]')"
            ) from None
        from groupkeeper.broker.security.jwks import Intervals, KeySource
        from groupkeeper.security.tls import client_context

        def value(setting: Setting[T]) -> T:
            return self._properties.value(setting, mechanism)

        intervals = Intervals(
            value(Config.sasl_oauthbearer_jwks_endpoint_refresh_ms) / 1000,
            value(Config.sasl_oauthbearer_jwks_endpoint_retry_backoff_ms) / 1000,
            value(Config.sasl_oauthbearer_jwks_endpoint_retry_backoff_max_ms) / 1000,
        )
        expected = Expected(
            value(Config.sasl_oauthbearer_expected_issuer),
            value(Config.sasl_oauthbearer_expected_audience),
            1000 * value(Config.sasl_oauthbearer_clock_skew_seconds),
            value(Config.sasl_oauthbearer_scope_claim_name),
            value(Config.sasl_oauthbearer_sub_claim_name),
            value(Config.sasl_oauthbearer_allow_unverified_audience),
        )
        way = (url, intervals, *sorted(options.items()))
        keys = None if url.startswith("file:") else self._key_sources.get(way)  # a file is read again
        if keys is None:
            try:
                keys = KeySource(url, intervals, client_context(options) if url.startswith("https:") else None)
            except (InvalidSetting, BadCredentials) as error:
                raise InvalidSetting(f"{self._properties.name_of(_JWKS, mechanism)}: {error}") from None
            self._key_sources[way] = keys
        return SignedTokens(keys, expected, self._now_ms)

    def _login_module(self, mechanism: Mechanism) -> LoginModule | None:
        """The login module in the listener's own JAAS text, else in the file that the Java property names; None:
        neither.
        """
        properties, class_name = self._properties, mechanism.class_name
        where = properties.name_of(NAME, mechanism.name)
        text = properties.text(NAME, mechanism.name) if where != NAME else None
        try:
            if text is not None:
                module = parse_jaas(text)
                if module.class_name != class_name:
                    raise BadCredentials(f"{mechanism.name} needs {class_name}, not {module.title}")
                return module
            path = properties.text(JAAS_FILE)
            if path is None:
                return None
            sections = _read_jaas_file(path)
        except BadCredentials as error:
            raise InvalidSetting(f"{where if text is not None else JAAS_FILE}: {error}") from None
        for section in (f"{properties.listener.lower()}.KafkaServer", "KafkaServer"):
            if section in sections:
                return next((one for one in sections[section] if one.class_name == class_name), None)
        return None


def _read_jaas_file(path: str) -> dict[str, list[LoginModule]]:
    try:
        with open(path, encoding="utf-8") as file:
            return parse_jaas_file(file.read())
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise BadCredentials(f"{path} cannot be read: {reason}") from None
