"""The table of APIs: the module in `apis` and the versions of each API key. Only this table has versions."""

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

    Handler = Callable[[Any, Call, Any], Awaitable[RootMessage | None]]
    """The first is the Broker, which imports this table; the last the request."""
    Reply = Callable[[Any, Call, Any], Any]
    """Its answers may be awaitable while `Node.answers_may_wait`."""
    Refusal = Callable[[Call, Any, KafkaError], RootMessage]


class Api:
    """An API of the table below.

    Attributes:
        module: its module in `apis`.
        ending: of the names of its functions there; "" if it is the module's only API.

    Attributes (from `load` on):
        request: the class of its requests.
        handle: the module's handler.
        reply: the handler as a plain function, for APIs that wait only for replicas, if at all; else None.
        refuse: the module's function that makes an error response, or None.
        name_all: the module's function that turns a long request for all items into one that names each, or None.
    """

    __slots__ = (
        "ending", "handle", "highest", "is_loaded", "key", "lowest", "module", "name_all", "refuse", "reply", "request"
    )  # fmt: skip

    handle: Handler
    reply: Reply | None
    refuse: Refusal | None
    name_all: Callable[[Any, Call, Any], RootMessage | None] | None
    request: type[RootMessage]

    def __init__(self, key: int, place: str, lowest: int, highest: int) -> None:
        """`place`: the module, and after a colon the ending of its functions' names."""
        self.key = key
        self.module, _, of = place.partition(":")
        self.ending = f"_{of}" if of else ""
        self.lowest = lowest
        self.highest = highest
        self.is_loaded = False

    def highest_of(self, config: Config) -> int:
        """The highest version served: one more if Kafka has an unstable one and the configuration enables it."""
        return self.highest + (self.key in _UNSTABLE and config.unstable_api_versions_enable)

    def load(self) -> None:
        """Imports its module and the class of its requests."""
        self.request = request_class(self.key)
        module = import_module(f"groupkeeper.broker.apis.{self.module}")
        self.refuse = getattr(module, f"refuse{self.ending}", None)
        self.name_all = getattr(module, f"name_all{self.ending}", None)
        self.reply = getattr(module, f"reply{self.ending}", None)
        self.handle = getattr(module, f"handle{self.ending}") if self.reply is None else _waiting(self.reply)
        self.is_loaded = True


def _waiting(reply: Reply) -> Handler:
    async def handle(broker: Any, call: Call, request: Any) -> RootMessage:
        answer = reply(broker, call, request)
        return answer if isinstance(answer, RootMessage) else await answer

    return handle


_UNSTABLE = frozenset((22,))
"""APIs that have an unstable version above the highest stable one in Kafka 4.4.0."""

TABLE: dict[int, Api] = {
    key: Api(key, place, lowest, highest)
    for key, place, lowest, highest in (
        (0, "produce", 3, 13),
        (1, "fetch", 4, 18),
        (2, "logs:offsets", 1, 11),
        (3, "metadata", 0, 13),
        (8, "offset_commit", 2, 10),
        (9, "offset_fetch", 1, 10),
        (10, "find_coordinator", 0, 6),
        (11, "classic_groups:join", 0, 9),
        (12, "heartbeat", 0, 4),
        (13, "classic_groups:leave", 0, 5),
        (14, "classic_groups:sync", 0, 5),
        (15, "group_descriptions:classic", 0, 6),
        (16, "list_groups", 0, 5),
        (17, "not_offered", 0, 1),
        (API_VERSIONS, "api_versions", 0, 5),
        (19, "topics:create", 2, 7),
        (20, "topics:delete", 1, 6),
        (21, "logs:delete", 0, 2),
        (22, "transactions:init", 0, 5),
        (23, "logs:epochs", 2, 4),
        (24, "transactions:add_partitions", 0, 5),
        (25, "transactions:add_offsets", 0, 4),
        (26, "transactions:end", 0, 5),
        (27, "transactions:markers", 1, 2),
        (28, "txn_offset_commit", 0, 6),
        (29, "acls:describe", 1, 3),
        (30, "acls:create", 1, 3),
        (31, "acls:delete", 1, 3),
        (32, "configs:describe", 1, 4),
        (33, "configs:alter", 0, 2),
        (34, "cluster:move", 1, 2),
        (35, "logs:dirs", 1, 5),
        (36, "not_offered", 0, 2),
        (37, "topics:grow", 0, 3),
        (38, "delegation_tokens:create", 1, 3),
        (39, "delegation_tokens:renew", 1, 2),
        (40, "delegation_tokens:expire", 1, 2),
        (41, "delegation_tokens:describe", 1, 3),
        (42, "group_deletion:groups", 0, 3),
        (43, "cluster:elect", 0, 2),
        (44, "configs:incremental", 0, 1),
        (45, "cluster:reassign", 0, 1),
        (46, "cluster:reassignments", 0, 0),
        (47, "group_deletion:offsets", 0, 0),
        (48, "client_quotas:describe", 0, 1),
        (49, "client_quotas:alter", 0, 1),
        (50, "scram_users:describe", 0, 0),
        (51, "scram_users:alter", 0, 0),
        (55, "cluster:quorum", 0, 2),
        (57, "update_features", 0, 2),
        (60, "cluster:describe", 0, 2),
        (61, "logs:producers", 0, 0),
        (64, "cluster:unregister", 0, 0),
        (65, "transactions:describe", 0, 0),
        (66, "transactions:list", 0, 2),
        (68, "group_heartbeats:consumer", 0, 1),
        (69, "group_descriptions:epochs", 0, 1),
        (74, "configs:list", 0, 1),
        (75, "describe_topic_partitions", 0, 0),
        (76, "group_heartbeats:share", 1, 1),
        (77, "group_descriptions:epochs", 1, 1),
        (78, "share_fetch:fetch", 1, 2),
        (79, "share_fetch:acknowledge", 1, 2),
        (80, "not_offered", 0, 1),
        (81, "not_offered", 0, 0),
        (83, "share_group_state", 0, 0),
        (84, "share_group_state", 0, 0),
        (85, "share_group_state", 0, 1),
        (86, "share_group_state", 0, 0),
        (87, "share_group_state", 0, 1),
        (88, "group_heartbeats:streams", 0, 1),
        (89, "group_descriptions:epochs", 0, 1),
        (90, "share_group_offsets:describe", 0, 1),
        (91, "share_group_offsets:alter", 0, 0),
        (92, "share_group_offsets:delete", 0, 0),
        (93, "group_heartbeats:topology", 0, 0),
        (94, "not_offered", 0, 0),
    )
}
"""Every served API by key: its place in `apis`, lowest and highest version, both inclusive."""
