"""What a text leaves out of a message."""

from collections.abc import Iterator
from typing import Any

from groupkeeper.protocol.primitives import Message

NOT_SHOWN = frozenset(
    """
    acceptable_recovery_lag client_host client_id client_tags heartbeat_interval_ms member_id process_id
    repartition_sink_topics status_code subscribed_topic_names subscribed_topic_regex task_offset_interval_ms
    topic_configs topic_id topic_name warmup_tasks
    """.split()
)
"""Fields that are nobody's rest, as commands, records or their neighbours say them."""


class Reading:
    """A message and those in it, of which `rest` is what nobody has read: above all fields that newer versions have."""

    def __init__(self, message: Message) -> None:
        self.message = message
        self._values = {name: _readable(getattr(message, name)) for name in message.__slots__}
        self._read: set[str] = set()

    def __getattr__(self, name: str) -> Any:
        self._read.add(name)
        return self._values[name]

    def rest(self) -> str:
        """The fields that are not at their default; from then on they are read."""
        return "".join([f" {place}={value!r}" for place, value in self._rest("")])

    def _rest(self, place: str) -> Iterator[tuple[str, object]]:
        default = type(self.message)()
        for name, value in self._values.items():
            found, usual = getattr(self.message, name), getattr(default, name)
            if name not in self._read:
                if name not in NOT_SHOWN and found != usual and (found or usual != ()):
                    yield f"{place}{name}", found
            else:
                for one in value if isinstance(value, list) else [value]:
                    if isinstance(one, Reading):
                        yield from one._rest(f"{place}{name}.")
        self._read.update(self._values)


def _readable(value: Any) -> Any:
    if isinstance(value, Message):
        return Reading(value)
    return [_readable(one) for one in value] if isinstance(value, list | tuple) else value
