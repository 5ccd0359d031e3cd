"""The drop-in commands as programs. Ctrl-C while one is imported, a tenth of a second, ends it without a traceback."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


def _program(tool: str) -> Callable[[], int]:
    def main() -> int:
        try:
            from importlib import import_module

            status: int = import_module(f"groupkeeper.cli.dropin.{tool}").main()
        except KeyboardInterrupt:
            return 130
        return status

    return main


kafka_consumer_group_reset = _program("kafka_consumer_group_reset")
kafka_consumer_groups = _program("kafka_consumer_groups")
kafka_get_offsets = _program("kafka_get_offsets")
kafka_groups = _program("kafka_groups")
kafka_share_groups = _program("kafka_share_groups")
kafka_streams_groups = _program("kafka_streams_groups")
