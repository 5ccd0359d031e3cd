"""The table of APIs: the module in `apis` of each API key. Offered are the versions that have messages."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from importlib import import_module
from typing import Any

from groupkeeper.broker.call import Call
from groupkeeper.broker.settings.config import Config
from groupkeeper.protocol.errors import KafkaError
from groupkeeper.protocol.framing import API_VERSIONS, request_class
from groupkeeper.protocol.index import APIS
from groupkeeper.protocol.primitives import RootMessage

Handler = Callable[[Any, Call, Any], Awaitable[RootMessage | None]]
"""The first is the Broker, which imports this table; the last the request."""
Reply = Callable[[Any, Call, Any], Any]
"""A function whose responses may be awaitable while `BrokerBase.answers_may_wait`."""
Refusal = Callable[[Call, Any, KafkaError], RootMessage]


class Api:
    """An API of the table below."""

    handle: Handler
    """The module's handler. It and the next four are there from `load` on."""
    reply: Reply | None
    """The handler as a plain function, for APIs that wait only for replicas, if at all; else None."""
    refuse: Refusal | None
    """The module's function that makes an error response, or None."""
    name_all: Callable[[Any, Call, Any], RootMessage | None] | None
    """The module's function that turns a long request for all items into one that names each, or None."""
    request: type[RootMessage]
    """The class of its requests."""

    def __init__(self, key: int, where: str) -> None:
        """`where`: the module, and after a colon the ending of its functions' names."""
        self.key = key
        self.module, _, of = where.partition(":")
        """The API's module in `apis`."""
        self.ending = f"_{of}" if of else ""
        """Suffix of its functions' names in the module, as `_join`; empty: it is the module's only API."""
        _, self.lowest, highest, _ = APIS[key]
        """The lowest version; this one and `highest` are inclusive."""
        self.highest = NOT_YET.get(key, highest)
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
        response = reply(broker, call, request)
        return response if isinstance(response, RootMessage) else await response

    return handle


_UNSTABLE = frozenset((22,))
"""APIs that have an unstable version above the highest stable one in Kafka 4.4.0."""

NOT_YET: dict[int, int] = {}
"""The highest version offered of an API whose newer ones have messages, and no responses yet, by key."""

TABLE: dict[int, Api] = {
    key: Api(key, where)
    for key, where in (
        (0, "produce"),
        (1, "fetch"),
        (2, "logs:offsets"),
        (3, "metadata"),
        (8, "offset_commit"),
        (9, "offset_fetch"),
        (10, "find_coordinator"),
        (11, "classic_groups:join"),
        (12, "heartbeat"),
        (13, "classic_groups:leave"),
        (14, "classic_groups:sync"),
        (15, "group_descriptions:classic"),
        (16, "list_groups"),
        (17, "not_offered"),
        (API_VERSIONS, "api_versions"),
        (19, "topics:create"),
        (20, "topics:delete"),
        (21, "logs:delete"),
        (22, "transactions:init"),
        (23, "logs:epochs"),
        (24, "transactions:add_partitions"),
        (25, "transactions:add_offsets"),
        (26, "transactions:end"),
        (27, "transactions:markers"),
        (28, "txn_offset_commit"),
        (29, "acls:describe"),
        (30, "acls:create"),
        (31, "acls:delete"),
        (32, "configs:describe"),
        (33, "configs:alter"),
        (34, "cluster:move"),
        (35, "logs:dirs"),
        (36, "not_offered"),
        (37, "topics:grow"),
        (38, "delegation_tokens:create"),
        (39, "delegation_tokens:renew"),
        (40, "delegation_tokens:expire"),
        (41, "delegation_tokens:describe"),
        (42, "group_deletion:groups"),
        (43, "cluster:elect"),
        (44, "configs:incremental"),
        (45, "cluster:reassign"),
        (46, "cluster:reassignments"),
        (47, "group_deletion:offsets"),
        (48, "client_quotas:describe"),
        (49, "client_quotas:alter"),
        (50, "scram_users:describe"),
        (51, "scram_users:alter"),
        (55, "cluster:quorum"),
        (57, "update_features"),
        (60, "cluster:describe"),
        (61, "logs:producers"),
        (64, "cluster:unregister"),
        (65, "transactions:describe"),
        (66, "transactions:list"),
        (68, "group_heartbeats:consumer"),
        (69, "group_descriptions:epochs"),
        (74, "configs:list"),
        (75, "describe_topic_partitions"),
        (76, "group_heartbeats:share"),
        (77, "group_descriptions:epochs"),
        (78, "share_fetch:fetch"),
        (79, "share_fetch:acknowledge"),
        (80, "not_offered"),
        (81, "not_offered"),
        (83, "share_group_state"),
        (84, "share_group_state"),
        (85, "share_group_state"),
        (86, "share_group_state"),
        (87, "share_group_state"),
        (88, "group_heartbeats:streams"),
        (89, "group_descriptions:epochs"),
        (90, "share_group_offsets:describe"),
        (91, "share_group_offsets:alter"),
        (92, "share_group_offsets:delete"),
        (93, "group_heartbeats:topology"),
        (94, "not_offered"),
    )
}
"""Every served API by key, and where it is in `apis`."""
