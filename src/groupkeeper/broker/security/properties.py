"""Settings of one listener. The first given key decides: `listener.name.<listener>.<mechanism>.<name>`,
`<mechanism>.<name>`, `listener.name.<listener>.<name>`, `<name>`.
"""

from __future__ import annotations

from typing import TypeVar

from groupkeeper.base_error import InvalidSetting
from groupkeeper.broker.settings.config import Config
from groupkeeper.broker.settings.table import Setting

T = TypeVar("T")


class ListenerProperties:
    """The settings of a listener; values of dynamic updates override those of the file."""

    def __init__(self, config: Config, listener: str) -> None:
        changed = config.changed
        self._given = {**config.given, **changed.get("", {}), **changed.get(str(config.node_id), {})}
        self._prefix = f"listener.name.{listener.lower()}."
        self.listener = listener

    def text(self, name: str, mechanism: str = "") -> str | None:
        """The given text of a setting, without blanks around it; None if it isn't given or empty."""
        found = self._found(name, mechanism)
        return None if found is None else found[1].strip() or None

    def name_of(self, name: str, mechanism: str = "") -> str:
        """The name under which the setting is given; if it isn't given, the most specific name."""
        found = self._found(name, mechanism)
        return self._names(name, mechanism)[0] if found is None else found[0]

    def value(self, setting: Setting[T], mechanism: str = "") -> T:
        """The value of a setting; if it isn't given, its default. Raises `InvalidSetting`."""
        found = self._found(setting.name, mechanism)
        if found is None:
            return setting.default
        try:
            return setting.parse(found[1])
        except InvalidSetting as error:
            raise InvalidSetting(str(error).replace(setting.name, found[0])) from None

    def is_given(self, name: str) -> bool:
        """Whether a setting is given, for the listener or for all listeners."""
        return self._found(name, "") is not None

    def tls(self) -> dict[str, str]:
        """All `ssl.` settings; the listener's own settings override those for all listeners."""
        merged = {name: text for name, text in self._given.items() if name.startswith("ssl.")}
        own = (name.removeprefix(self._prefix) for name in self._given if name.startswith(self._prefix))
        merged |= {name: self._given[self._prefix + name] for name in own if name.startswith("ssl.")}
        return merged

    def _names(self, name: str, mechanism: str) -> list[str]:
        names = [self._prefix + name, name]
        if mechanism:
            special = f"{mechanism.lower()}.{name}"
            names = [self._prefix + special, special, *names]
        return names

    def _found(self, name: str, mechanism: str) -> tuple[str, str] | None:
        return next(((one, self._given[one]) for one in self._names(name, mechanism) if one in self._given), None)
