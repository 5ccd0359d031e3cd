"""The table of APIs: which module of `apis` serves which key, and in which versions. Only this table has versions."""

from __future__ import annotations

from importlib import import_module

from groupkeeper.protocol.framing import API_VERSIONS, request_class
from groupkeeper.protocol.primitives import RootMessage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import Any

    from groupkeeper.broker.call import Call
    from groupkeeper.broker.settings.config import Config
    from groupkeeper.protocol.errors import KafkaError

    Handler = Callable[[Any, Call], Awaitable[RootMessage | None]]
    """The first is the Broker, which imports this table."""
    Reply = Callable[[Any, Call], Any]
    """Its answers may be awaitable while `Node.has_faults`."""
    Refusal = Callable[[Call, KafkaError], RootMessage]


class Api:
    """An API of the table below.

    Attributes (from `load` on):
        request: class of its requests.
        handle: the module's handler.
        reply: the same as a plain function, where requests of the API wait for replicas at most; else None.
        refuse: the module's own way of answering with an error, or None.
        name_all: the module's way of asking for each thing by name where a request for all of them would take long, or
            None.
    """

    __slots__ = ("handle", "highest", "is_loaded", "key", "lowest", "module", "name_all", "refuse", "reply", "request")

    handle: Handler
    reply: Reply | None
    refuse: Refusal | None
    name_all: Callable[[Any, Call], RootMessage | None] | None
    request: type[RootMessage]

    def __init__(self, key: int, module: str, lowest: int, highest: int) -> None:
        self.key = key
        self.module = module
        self.lowest = lowest
        self.highest = highest
        self.is_loaded = False

    def highest_of(self, config: Config) -> int:
        """The highest version served: one more where Kafka has an unstable one and the configuration enables it."""
        return self.highest + (self.key in _UNSTABLE and config.unstable_api_versions_enable)

    def load(self) -> None:
        """Imports its module and the class of its requests."""
        self.request = request_class(self.key)
        module = import_module(f"groupkeeper.broker.apis.{self.module}")
        self.refuse = getattr(module, "refuse", None)
        self.name_all = getattr(module, "name_all", None)
        self.reply = getattr(module, "reply", None)
        self.handle = module.handle if self.reply is None else _waiting(self.reply)
        self.is_loaded = True


def _waiting(reply: Reply) -> Handler:
    async def handle(broker: Any, call: Call) -> RootMessage:
        answer = reply(broker, call)
        return answer if isinstance(answer, RootMessage) else await answer

    return handle


_UNSTABLE = frozenset((22,))
"""APIs whose highest version in Kafka 4.4.0 has one above it that is unstable."""

TABLE: dict[int, Api] = {
    key: Api(key, module, lowest, highest)
    for key, module, lowest, highest in (
        (0, "produce", 3, 13),
        (1, "fetch", 4, 18),
        (2, "list_offsets", 1, 11),
        (3, "metadata", 0, 13),
        (8, "offset_commit", 2, 10),
        (9, "offset_fetch", 1, 10),
        (10, "find_coordinator", 0, 6),
        (11, "classic_groups", 0, 9),
        (12, "heartbeat", 0, 4),
        (13, "classic_groups", 0, 5),
        (14, "classic_groups", 0, 5),
        (15, "describe_groups", 0, 6),
        (16, "list_groups", 0, 5),
        (17, "not_offered", 0, 1),
        (API_VERSIONS, "api_versions", 0, 5),
        (19, "create_topics", 2, 7),
        (20, "delete_topics", 1, 6),
        (21, "delete_records", 0, 2),
        (22, "init_producer_id", 0, 5),
        (23, "offset_for_leader_epoch", 2, 4),
        (24, "add_partitions_to_txn", 0, 5),
        (25, "add_offsets_to_txn", 0, 4),
        (26, "end_txn", 0, 5),
        (27, "write_txn_markers", 1, 2),
        (28, "txn_offset_commit", 0, 6),
        (29, "acls", 1, 3),
        (30, "acls", 1, 3),
        (31, "acls", 1, 3),
        (32, "describe_configs", 1, 4),
        (33, "alter_configs", 0, 2),
        (34, "cluster", 1, 2),
        (35, "describe_log_dirs", 1, 5),
        (36, "not_offered", 0, 2),
        (37, "create_partitions", 0, 3),
        (38, "delegation_tokens", 1, 3),
        (39, "delegation_tokens", 1, 2),
        (40, "delegation_tokens", 1, 2),
        (41, "delegation_tokens", 1, 3),
        (42, "delete_groups", 0, 3),
        (43, "cluster", 0, 2),
        (44, "incremental_alter_configs", 0, 1),
        (45, "cluster", 0, 1),
        (46, "list_partition_reassignments", 0, 0),
        (47, "offset_delete", 0, 0),
        (48, "client_quotas", 0, 1),
        (49, "client_quotas", 0, 1),
        (50, "scram_users", 0, 0),
        (51, "scram_users", 0, 0),
        (55, "cluster", 0, 2),
        (57, "update_features", 0, 2),
        (60, "describe_cluster", 0, 2),
        (61, "describe_producers", 0, 0),
        (64, "cluster", 0, 0),
        (65, "describe_transactions", 0, 0),
        (66, "list_transactions", 0, 2),
        (68, "consumer_group_heartbeat", 0, 1),
        (69, "group_descriptions", 0, 1),
        (74, "list_config_resources", 0, 1),
        (75, "describe_topic_partitions", 0, 0),
        (76, "share_group_heartbeat", 1, 1),
        (77, "group_descriptions", 1, 1),
        (78, "share_fetch", 1, 2),
        (79, "share_acknowledge", 1, 2),
        (80, "not_offered", 0, 1),
        (81, "not_offered", 0, 0),
        (83, "share_group_state", 0, 0),
        (84, "share_group_state", 0, 0),
        (85, "share_group_state", 0, 1),
        (86, "share_group_state", 0, 0),
        (87, "share_group_state", 0, 1),
        (88, "streams_group_heartbeat", 0, 1),
        (89, "group_descriptions", 0, 1),
        (90, "describe_share_group_offsets", 0, 1),
        (91, "share_group_offsets", 0, 0),
        (92, "share_group_offsets", 0, 0),
        (93, "streams_group_topology_description_update", 0, 0),
        (94, "not_offered", 0, 0),
    )
}
"""Every served API by key: module of `apis`, lowest and highest version, both inclusive."""
