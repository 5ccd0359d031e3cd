"""Settings of a single node: `2:log.retention.ms`. They apply to the node's connections, and to the logs and
coordinators that it leads.
"""

from __future__ import annotations

from collections.abc import Mapping

from groupkeeper.base_error import InvalidSetting
from groupkeeper.broker.settings.config import Config

_IDENTITY = ("node.id", "broker.id", "log.dir", "log.dirs", "listeners", "listener.", "advertised.", "broker.rack")
_TOPICS = ("auto.create.topics.enable", "num.partitions", "default.replication.factor", "delete.topic.enable")
_RIGHTS = ("ssl.", "sasl.", "authorizer.", "super.users", "allow.everyone.if.no.acl.found")
_CLOCKS = ("broker.session.timeout.ms", "replica.lag.time.max.ms", "producer.id.expiration.", "transaction.partition.",
           "auto.leader.", "leader.imbalance.")  # fmt: skip
_OF_ALL = (*_IDENTITY, *_TOPICS, *_RIGHTS, *_CLOCKS, "groupkeeper.", "feature.", "config.providers")
"""Prefixes of settings that nodes of one process have in common, or get by other options."""


def taken_out(given: dict[str, str]) -> dict[str, dict[str, str]]:
    """Removes the settings of single nodes from the given texts; returns them by the node's id as text."""
    own: dict[str, dict[str, str]] = {}
    for full in list(given):
        node, colon, name = full.partition(":")
        if colon and node.isdigit():
            own.setdefault(node, {})[name] = given.pop(full)
    return own


def give_to_nodes(config: Config, own: Mapping[str, Mapping[str, str]], racks: Mapping[int, str | None]) -> None:
    """Sets the configurations of all nodes in `config.nodes`; `racks`: by node id. Raises `InvalidSetting`."""
    known = {str(node) for node in racks}
    for node, texts in own.items():
        if node not in known or len(racks) == 1:
            why = "this broker is the only one" if len(racks) == 1 else f"the nodes are {', '.join(sorted(known))}"
            raise InvalidSetting(f"{node}:{next(iter(texts))}: there is no node {node}: {why}")
        for name in texts:
            if name.startswith(_OF_ALL):
                raise InvalidSetting(f"{node}:{name}: all nodes have it in common: give {name}")
    if len(racks) == 1:
        return
    config.own = {str(node): own.get(str(node), {}) for node in racks}
    for node_id, rack in racks.items():
        given = {**config.given, **({} if rack is None else {"broker.rack": rack}), **config.own[str(node_id)]}
        config.nodes[node_id] = of_node = Config.from_texts(given)
        of_node.node_id = node_id
        config.unknown = tuple(dict.fromkeys((*config.unknown, *of_node.unknown)))
