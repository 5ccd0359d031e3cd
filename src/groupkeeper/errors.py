"""The errors that calls raise or put into `Batch.failed`: ClientError and KafkaError with all their kinds.

Their base is `GroupkeeperError`. Plans, pipelines and the broker's settings have errors of that base as well.

A `KafkaError` is a broker's reply; there is one class for each error code. A `ClientError` means that no broker could
be asked, or that its reply was unreadable. The client raises `UnsupportedVersion` itself, before it sends a request to
a broker that is too old.
"""

from groupkeeper.base_error import GroupkeeperError as GroupkeeperError
from groupkeeper.client.errors import *  # noqa: F403
from groupkeeper.protocol.errors import *  # type: ignore[assignment]  # noqa: F403

# Kafka has an error of that name, too, which no call meets.
from groupkeeper.client.errors import UnsupportedVersion as UnsupportedVersion  # isort: skip

__all__ = [name for name, each in globals().items() if isinstance(each, type) and issubclass(each, Exception)]
