"""What calls raise, and what `Batch.failed` has: ClientError and KafkaError with all their kinds.

Their base is `GroupkeeperError`. Plans, pipelines and the broker's settings have errors of that base as well.

A `KafkaError` is what the broker answered; there is one class for each error code. A `ClientError`: the broker
could not be asked, or its answer not be read. `UnsupportedVersion` is the client's, which is raised before a broker
that is too old is asked.
"""

from groupkeeper.base_error import GroupkeeperError as GroupkeeperError
from groupkeeper.client.errors import *  # noqa: F403
from groupkeeper.protocol.errors import *  # type: ignore[assignment]  # noqa: F403

# Kafka has an error of that name, too, which no call meets.
from groupkeeper.client.errors import UnsupportedVersion as UnsupportedVersion  # isort: skip

__all__ = [name for name, each in globals().items() if isinstance(each, type) and issubclass(each, Exception)]
