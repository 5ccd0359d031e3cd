"""What a text leaves out of a message."""

from typing import Any

from groupkeeper.protocol.primitives import Message


class Reading:
    """A message, of which `rest` is what nobody has read: above all fields that newer versions have."""

    def __init__(self, message: Message) -> None:
        self._message = message
        self._read: set[str] = set()

    def __getattr__(self, name: str) -> Any:
        self._read.add(name)
        return getattr(self._message, name)

    def rest(self) -> str:
        """The fields that are not at their default."""
        default = type(self._message)()
        unread = {name: getattr(self._message, name) for name in self._message.__slots__ if name not in self._read}
        return "".join(f" {name}={value!r}" for name, value in unread.items() if value != getattr(default, name))
