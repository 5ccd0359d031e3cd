"""Tables of settings: one typed attribute per setting, with Kafka's name and `_` in place of `.`.

    class Config(SettingsTable):
        num_partitions = whole(1, low=1, doc="...")      # num.partitions

On the class an attribute is the `Setting` (name, type, default, bounds, text); on an instance it is the value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from copy import copy
from typing import Generic, Self, TypeVar, overload

from groupkeeper.base_error import InvalidSetting
from groupkeeper.java_numbers import INT_MAX, LONG_MAX

T = TypeVar("T")

ACCEPTED = "Accepted for compatibility"
"""The beginning of the documentation of a setting without an effect."""

FIXED = "fixed"
"""It cannot change while the broker runs."""
ANY = "any"
"""It may change while the broker runs, for one broker or for all."""
ONE = "one"
"""It may change while the broker runs, for one broker at a time."""
LISTENER = "listener"
"""It may change while the broker runs, for one listener of one broker."""


class Setting(Generic[T]):
    """One setting: its name, type, default and bounds."""

    def __init__(
        self,
        type_name: str,
        default: T,
        read: Callable[[str], T],
        doc: str,
        *,
        low: float | None = None,
        high: float | None = None,
        choices: tuple[str, ...] = (),
    ) -> None:
        self.name = ""
        """Kafka's name, dots included."""
        self.type = type_name
        """Kafka's name of the type in lower case (int, long, boolean, string, list, double)."""
        self.default = default
        """The value of a setting that isn't given; None: unset."""
        self.low = low
        """Inclusive bound of a number; None, here and of `high`: unbounded."""
        self.high = high
        self.choices = choices
        """Allowed texts; empty: any."""
        self.doc = doc
        """One sentence for people."""
        self.change = FIXED
        """Of a broker setting: how it may change while the broker runs (FIXED, ANY, ONE or LISTENER)."""
        self.is_listed = True
        """Of a broker setting: whether Kafka describes it when no setting is requested by name."""
        self.has_empty_default = False
        """Whether Kafka describes an empty default as an empty text; otherwise it is unset."""
        self.broker_name: str | None = None
        """Of a topic setting: the broker setting that gives its default; None: there is none."""
        self._read = read

    def in_kafka(
        self,
        change: str = FIXED,
        *,
        type_name: str | None = None,
        is_listed: bool = True,
        has_empty_default: bool = False,
    ) -> Self:
        """This setting, with Kafka's attributes. `type_name` is Kafka's type, if it differs from the type of the values
        here.
        """
        self.change = change
        self.type = type_name or self.type
        self.is_listed = is_listed
        self.has_empty_default = has_empty_default
        return self

    def default_of(self, broker_name: str) -> Self:
        """This setting, as a topic setting whose default is the value of a broker setting."""
        self.broker_name = broker_name
        return self

    def for_topics(self, doc: str) -> Self:
        """A topic setting of the same type and bounds, whose default is the value of this broker setting."""
        made = copy(self).in_kafka().default_of(self.name)
        made.doc = doc
        return made

    @property
    def has_effect(self) -> bool:
        """Whether the setting has an effect; otherwise it is only accepted, checked and described."""
        return not self.doc.startswith(ACCEPTED)

    @property
    def is_ours(self) -> bool:
        """Whether the setting is Groupkeeper's own: Kafka has none of this name."""
        return self.name.startswith("groupkeeper.")

    def __set_name__(self, owner: type, attribute: str) -> None:
        self.attribute = attribute
        self.name = attribute.replace("_", ".")

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: type) -> T: ...
    def __get__(self, instance: object | None, owner: type) -> Self | T:
        if instance is None:
            return self
        # There is no __set__: the stored value hides this descriptor, so it is called once for each instance.
        found: T = instance.__dict__.setdefault(self.attribute, self.default)
        return found

    def parse(self, text: str) -> T:
        """The value of a text. Raises `InvalidSetting`."""
        try:
            value = self._read(text.strip())
        except ValueError:
            expected = {"boolean": "Expected value to be either true or false"}.get(
                self.type, f"Not a number of type {self.type.upper()}"
            )
            raise self.refuse(text, expected) from None
        self._check(text, value)
        return value

    def refuse(self, text: object, why: str) -> InvalidSetting:
        return InvalidSetting(f"Invalid value {text} for configuration {self.name}: {why}")

    def _check(self, text: str, value: T) -> None:
        if isinstance(value, str) and self.low is not None and int(value) < self.low:
            raise self.refuse(text, f"Value must be at least {self.low}")
        if isinstance(value, int | float) and not isinstance(value, bool):
            if self.low is not None and value < self.low:
                raise self.refuse(text, f"Value must be at least {self.low}")
            if self.high is not None and value > self.high:
                raise self.refuse(text, f"Value must be no more than {self.high}")
        if self.choices:
            for one in value if isinstance(value, tuple) else (value,):
                if one not in self.choices:
                    raise self.refuse(text, f"String must be one of: {', '.join(self.choices)}")

    def format(self, value: object) -> str | None:
        """The value as Kafka writes it in responses; None stays None."""
        if value is None:
            return None
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, tuple):
            return ",".join(map(str, value))
        return str(value)


def property_text(name: str, value: object) -> str:
    """The text of a property given as a Python value. Raises `InvalidSetting` for anything but text, bool, number."""
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, str | int | float):
        raise InvalidSetting(f"Invalid value {value!r} for configuration {name}: expected text, a number or a bool")
    return str(value)


class SettingsTable:
    """Base of a class whose attributes are settings; instances hold their values."""

    @classmethod
    def settings(cls) -> Iterator[Setting[object]]:
        """All settings of the table, in the order they are written down."""
        seen = set()
        for owner in reversed(cls.__mro__):
            for attribute, value in vars(owner).items():
                if isinstance(value, Setting) and attribute not in seen:
                    seen.add(attribute)
                    yield value

    @classmethod
    def setting(cls, name: str) -> Setting[object] | None:
        """The setting of a Kafka name, or None."""
        found = getattr(cls, name.replace(".", "_"), None)
        return found if isinstance(found, Setting) and found.name == name else None

    @classmethod
    def declare(cls, attribute: str, setting: Setting[object]) -> None:
        """Adds a setting, as if it were written down in the class."""
        setattr(cls, attribute, setting)
        setting.__set_name__(cls, attribute)

    def assign(self, values: Mapping[str, str]) -> None:
        """Sets values from texts by name. Raises `InvalidSetting`, also for a name that isn't in the table."""
        for name, text in values.items():
            setting = self.setting(name)
            if setting is None:
                raise InvalidSetting(f"Unknown configuration {name}")
            self.__dict__[setting.attribute] = setting.parse(text)


def _integer(low: int, high: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        value = int(text)
        if not low <= value <= high:
            raise ValueError(text)
        return value

    return read


_read_short = _integer(-(2**15), 2**15 - 1)
_read_int = _integer(-INT_MAX - 1, INT_MAX)
_read_long = _integer(-LONG_MAX - 1, LONG_MAX)


def _read_flag(text: str) -> bool:
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    raise ValueError(text)


def _read_names(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def short(default: int, *, low: int, doc: str) -> Setting[int]:
    """A 16-bit number."""
    return Setting("short", default, _read_short, doc, low=low)


def whole(default: int, *, low: int | None = None, high: int | None = None, doc: str) -> Setting[int]:
    """A 32-bit number."""
    return Setting("int", default, _read_int, doc, low=low, high=high)


def long(default: int, *, low: int | None = None, high: int | None = None, doc: str) -> Setting[int]:
    """A 64-bit number."""
    return Setting("long", default, _read_long, doc, low=low, high=high)


def maybe_whole(*, doc: str) -> Setting[int | None]:
    """A 32-bit number that is unset by default, so that another setting decides."""
    return Setting[int | None]("int", None, _read_int, doc)


def maybe_long(*, low: int | None = None, doc: str) -> Setting[int | None]:
    """A 64-bit number that is unset by default, so that another setting decides."""
    return Setting[int | None]("long", None, _read_long, doc, low=low)


def real(default: float, *, low: float, high: float, doc: str) -> Setting[float]:
    return Setting("double", default, float, doc, low=low, high=high)


def flag(default: bool, *, doc: str) -> Setting[bool]:
    return Setting("boolean", default, _read_flag, doc)


def text(default: str, *, choices: tuple[str, ...] = (), doc: str) -> Setting[str]:
    return Setting("string", default, str, doc, choices=choices)


def maybe_text(*, doc: str) -> Setting[str | None]:
    """A text that is unset by default; an empty text counts as unset."""
    return Setting[str | None]("string", None, lambda given: given or None, doc)


_READERS: dict[str, Callable[[str], object]] = {
    "boolean": _read_flag,
    "short": _read_short,
    "int": _read_int,
    "long": _read_long,
    "double": float,
}


def plain(name: str, type_name: str, default: str | None = None, low: int | None = None, doc: str = "") -> Setting[str]:
    """A setting that is kept as a text: its value is the given text, which must be valid for the type."""

    def read(text: str) -> str:
        if type_name == "list":
            return ",".join(_read_names(text))
        _READERS.get(type_name, str)(text)
        return text

    setting = Setting(type_name, default or "", read, doc, low=low)
    setting.__set_name__(Setting, name.replace(".", "_"))
    return setting


def names(default: tuple[str, ...], *, choices: tuple[str, ...] = (), doc: str) -> Setting[tuple[str, ...]]:
    """A comma-separated list."""
    return Setting("list", default, _read_names, doc, choices=choices)
