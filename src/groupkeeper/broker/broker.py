"""The embedded broker: a whole Kafka cluster in one process, or in one object."""

from __future__ import annotations

import os
import time
from asyncio import Lock, get_running_loop
from contextlib import AsyncExitStack
from functools import cached_property
from logging import getLogger

from groupkeeper.base_error import InvalidSetting
from groupkeeper.broker.authorizer import STANDARD_AUTHORIZER, Authorizer
from groupkeeper.broker.cluster.outages import Outages
from groupkeeper.broker.coordination.group_host import GroupHost
from groupkeeper.broker.coordination.transaction_host import TransactionHost
from groupkeeper.broker.log.cleaner import LogCleaner
from groupkeeper.broker.log.topics import Topics
from groupkeeper.broker.network.front import Front
from groupkeeper.broker.network.listeners import Endpoint, given_port, listeners_of
from groupkeeper.broker.network.server import Server
from groupkeeper.broker.placement.placements import JOURNAL, Placements
from groupkeeper.broker.quotas.client_quotas import ClientQuotas
from groupkeeper.broker.settings.catalog import unknown_text
from groupkeeper.broker.settings.client_metrics import MetricsSubscription
from groupkeeper.broker.settings.config import Config
from groupkeeper.broker.settings.dynamic import DynamicConfig
from groupkeeper.broker.settings.features import FeatureLevels
from groupkeeper.broker.settings.group_overrides import GroupConfigs
from groupkeeper.broker.settings.names import is_plug_in
from groupkeeper.broker.settings.of_nodes import give_to_nodes, taken_out
from groupkeeper.broker.settings.stored import StoredSettings
from groupkeeper.broker.settings.table import property_text
from groupkeeper.broker.shares.state_host import ShareStateHost
from groupkeeper.broker.storage.directory import StorageDirectory
from groupkeeper.broker.storage.open_files import OpenFiles
from groupkeeper.protocol import INTERNAL_TOPICS
from groupkeeper.protocol.errors import KafkaError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from collections.abc import Awaitable, Iterable, Mapping, Sequence
    from types import TracebackType
    from typing import Self

    from groupkeeper.broker.api_table import Api
    from groupkeeper.broker.call import Call
    from groupkeeper.broker.faults.injected import Faults
    from groupkeeper.broker.log.partition_log import PartitionLog
    from groupkeeper.broker.network.connection import Connection
    from groupkeeper.broker.network.fetch_sessions import FetchSessions
    from groupkeeper.broker.observing.metrics import Metrics
    from groupkeeper.broker.quotas.client_quotas import Mutations
    from groupkeeper.broker.security.acls import Acl
    from groupkeeper.broker.security.security import Security
    from groupkeeper.broker.shares.sessions import ShareSessions
    from groupkeeper.protocol.primitives import RootMessage

_log = getLogger("groupkeeper.broker")

_RACK_AWARE = "RackAwareReplicaSelector"


class Broker(Outages):
    """A Kafka broker inside this process, or several that are one cluster.

        async with Broker(properties={"num.partitions": "3"}) as broker:
            connect_to(broker.bootstrap_servers)

    Any number of brokers can run at once. Without a directory the data is in a temporary directory that `stop` removes.
    Attributes other than `config` and `authorizer` are there from `start` on.
    """

    features: FeatureLevels
    """The levels of features that were changed while the broker ran."""
    dynamic_config: DynamicConfig
    """The settings that were changed while the broker ran."""
    client_metrics: StoredSettings[MetricsSubscription]
    """The subscriptions to clients' metrics."""
    cleaner: LogCleaner
    """Retention and compaction of the logs."""
    cluster_id: str
    """In Kafka's text form."""
    loop: AbstractEventLoop | None = None
    """The event loop; None: the broker does not run."""
    active_faults: Faults | None = None
    """`faults` while any fault is active; else None."""
    _directory: StorageDirectory

    def __init__(
        self,
        *,
        port: int | None = None,
        directory: str | os.PathLike[str] | None = None,
        properties: Mapping[str, str | int | float | bool] | None = None,
        authorizer: Authorizer | None = None,
        users: Mapping[str, str] | None = None,
        acls: Iterable[str] = (),
        tls: bool = False,
        brokers: int = 1,
        racks: Iterable[str] = (),
    ) -> None:
        """`port`: the port of the first listener (0: a free port); given, other listeners are not opened. Without
        `listeners` the only listener is on 127.0.0.1, on a free port unless one is given. Without an authorizer every
        client may do everything. `users` are passwords by user name: users may log in by each mechanism with passwords,
        and without `listeners` clients must log in. `acls` are lines such as `alice READ GROUP billing-*`
        (docs/broker-security.md); nothing else is allowed then. With `tls` a throw-away CA signs the broker's
        certificate, and without `listeners` clients must use TLS; `client_properties` has the settings that clients
        need. `brokers` nodes have ids from `node.id` on and ports one after the other, and the nodes' racks are
        `racks`; the property `2:log.retention.ms` applies to node 2 only. Raises `InvalidSetting`.
        """
        given = {name: property_text(name, value) for name, value in (properties or {}).items()}
        if "config.providers" in given:
            from groupkeeper.config_providers import Unresolved, resolved

            try:
                given = resolved(given)
            except Unresolved as error:
                raise InvalidSetting(str(error)) from None
        if port is not None or "listeners" not in given:
            given = given_port(given, port or 0, ("SASL_" if users else "") + ("SSL" if tls else "PLAINTEXT"))
        self._users = users or {}
        self._given_acls: list[Acl] = []
        for line in acls:
            from groupkeeper.broker.security.acl_texts import acls_of

            if authorizer is not None:
                raise InvalidSetting("acls are for the broker's own authorizer: give either, not both")
            given.setdefault(Config.authorizer_class_name.name, STANDARD_AUTHORIZER)
            self._given_acls += acls_of(line)
        self._has_own_ca = tls
        self._is_temporary = directory is None and "log.dirs" not in given and "log.dir" not in given
        if directory is not None:
            given["log.dirs"] = os.fspath(directory)
        own = taken_out(given)
        self.config = Config.from_texts(given)
        """The settings; those of one node: `config.of(node)`."""
        self.authorizer = authorizer or Authorizer()
        """Decides which principals may do what."""
        self._listeners = listeners_of(self.config)
        self._racks = _racks_of(self.config, brokers, list(racks))
        give_to_nodes(self.config, own, self._racks)
        self.files = OpenFiles()
        self._opened = AsyncExitStack()
        self._share_sessions: ShareSessions | None = None
        self._security: Security | None = None

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    async def start(self) -> None:
        """Locks and reads the data directory, then listens. Releases all if it raises `InvalidSetting` or OSError."""
        if self.config.groupkeeper_unkind_seed >= 0:
            self.faults.unkind(self.config.groupkeeper_unkind_seed)
        self._warn_of_settings()
        async with AsyncExitStack() as opened:
            self._bind(opened)
            self._directory = StorageDirectory(self._storage_path(opened), self.config.node_id)
            opened.callback(self._directory.close)
            opened.callback(self.files.close_all)
            self.cluster_id = self._directory.cluster_id
            self.features = FeatureLevels(self._directory, self.config)
            self.features.on_changed.append(self._take_features)
            self.dynamic_config = DynamicConfig(self._directory, self.config)
            opened.callback(self._forget_access, self.authorizer)
            self._open_security()
            self._open_authorizer()
            self._open_audit(opened)
            self.quotas = ClientQuotas(self._directory, self.config)
            self.topics = Topics(self._directory, self.config, self.files, self._placements())
            opened.callback(self.topics.close, is_for_good=self._is_temporary)
            self.topics.load()
            if len(self.fronts) > 1:
                self.topics.on_created.append(self._topic_created)
                self.topics.on_changed.append(self._topic_created)
            self.share_states = ShareStateHost(self)
            opened.push_async_callback(self.share_states.stop)
            await self.share_states.start()
            self.group_configs = GroupConfigs(self._directory, self.config)
            self.client_metrics = StoredSettings(
                self._directory, "client-metrics", "client metrics", "name", MetricsSubscription
            )
            self.groups = GroupHost(self, self.share_states.perform)
            opened.push_async_callback(self.groups.stop)
            await self.groups.start()
            self.transactions = TransactionHost(self, self.groups)
            opened.push_async_callback(self.transactions.stop)
            await self.transactions.start()
            self.cleaner = LogCleaner(self.topics, self.config, self.files, self.now_ms, self._is_being_read)
            opened.push_async_callback(self.cleaner.stop)
            self.cleaner.start()
            self.dynamic_config.on_changed.append(self._take_settings)
            opened.push_async_callback(self._end_share_sessions)
            opened.callback(self.cancel_moves)
            self.move_back_later(self.topics.logs())
            opened.callback(self._end_outages)
            for front in self.fronts.values():
                opened.push_async_callback(front.close)
                await front.listen()
            await self._open_endpoints(opened)
            self.loop = get_running_loop()
            self._opened = opened.pop_all()

    async def _open_endpoints(self, opened: AsyncExitStack) -> None:
        if self.config.groupkeeper_metrics_port:
            endpoint = await self.metrics.serve(self.config.groupkeeper_metrics_port)
            opened.push_async_callback(endpoint.close)
        if self.config.groupkeeper_control_port:
            from groupkeeper.broker.cluster.control import ControlEndpoint

            control = ControlEndpoint(self)
            await control.open(self.config.groupkeeper_control_port)
            opened.push_async_callback(control.close)

    def _carry_out(self, api: Api, call: Call, connection: Connection) -> Awaitable[RootMessage | None]:
        faults = self.active_faults
        return api.handle(self, call, call.message) if faults is None else faults.handle(api, call, connection)

    def _is_being_read(self, log: PartitionLog) -> bool:
        shards = (shard for host in self._hosts if host.topic_name == log.topic for shard in host.shards)
        return any(shard.is_loading for shard in shards if shard.log is log)

    def take_faults(self, faults: Faults | None) -> None:
        """Sets the faults that may hit requests; None: no fault is active."""
        self.active_faults = faults
        self._set_answers_may_wait()

    def _set_answers_may_wait(self) -> None:
        self.answers_may_wait = self.active_faults is not None or self._holds_coordinators

    def _open_security(self) -> None:
        protocols = {listener.name: listener.protocol for listener in self._listeners}
        if self._has_own_ca:
            from groupkeeper.broker.security.throwaway import throwaway_settings

            for config in (self.config, *self.config.nodes.values()):
                config.given = {**throwaway_settings(self.storage_path), **config.given}
        if self._users or any(protocol != "PLAINTEXT" for protocol in protocols.values()):
            self.security.open(protocols)
            self.dynamic_config.on_check.append(self.security.check)

    def _open_authorizer(self) -> None:
        if self.config.authorizer_class_name and type(self.authorizer) is Authorizer:
            from groupkeeper.broker.security.acl_authorizer import AclAuthorizer

            self.authorizer = acls = AclAuthorizer(self._directory, self.config)
            for acl in self._given_acls:
                acls.create(acl)

    def _open_audit(self, opened: AsyncExitStack) -> None:
        if self.config.groupkeeper_audit_file:
            from groupkeeper.broker.security.audit import AuditedAuthorizer, AuditLog

            self.audit = AuditLog(self.config)
            opened.callback(self.audit.close)
            self.authorizer = AuditedAuthorizer(self.authorizer, self.audit)

    def _forget_access(self, authorizer: Authorizer) -> None:
        """Takes back what a start opened; the next one begins with the given authorizer again."""
        self.authorizer, self.audit, self._security = authorizer, None, None

    def _take_features(self) -> None:
        self.dynamic_config.take_features()
        self.transactions.take_settings()

    def _take_settings(self) -> None:
        if self._security is not None:
            self._security.take_settings()
        self.topics.take_defaults()
        self.group_configs.take_defaults()
        self.groups.take_settings()

    async def stop(self) -> None:
        """Closes every connection, file and socket; does nothing when it is already stopped."""
        self.loop = None
        opened, self._opened = self._opened, AsyncExitStack()
        await opened.aclose()

    def _storage_path(self, opened: AsyncExitStack) -> str:
        if not self._is_temporary:
            return self.config.storage_path
        from shutil import rmtree
        from tempfile import mkdtemp

        path = mkdtemp(prefix="groupkeeper-")
        opened.callback(rmtree, path, ignore_errors=True)
        return path

    def _warn_of_settings(self) -> None:
        for name in self.config.unknown:
            _log.warning("%s", unknown_text(name))
        for name, text in self.config.given.items():
            if is_plug_in(name, text):
                _log.warning("%s=%s is ignored: Java code cannot run here", name, text)

    def _bind(self, opened: AsyncExitStack) -> None:
        """Binds the ports first, so that a port in use leaves nothing behind."""
        self.fronts = {}
        self._one_at_a_time = Lock()
        self._moving_since, self._killed, self._outages = {}, set(), {}
        for number, (node, rack) in enumerate(self._racks.items()):
            self.fronts[node] = front = Front(self, self._carry_out, node, rack, number * len(self._listeners))
            opened.push_async_callback(front.close)
            front.bind(self._listeners)

    def _placements(self) -> Placements:
        if len(self._racks) == 1 and not os.path.exists(self._directory.file(JOURNAL)):
            return Placements([self.config.node_id])
        from groupkeeper.broker.placement.cluster_placements import ClusterPlacements

        reads_by_rack = (self.config.replica_selector_class or "").endswith(_RACK_AWARE)
        return ClusterPlacements(self._directory, self._racks, reads_by_rack=reads_by_rack)

    @property
    def server(self) -> Server:
        """The server of the first node."""
        return self.fronts[self.config.node_id].server

    @property
    def advertised(self) -> Endpoint:
        """The address of the first node for clients of the first listener (node_id, host, port)."""
        return self.endpoint(self._listeners[0].name)

    @property
    def bootstrap_servers(self) -> str:
        """`host:port` of the first listener, of each node."""
        return ",".join(front.address for front in self.fronts.values())

    def client_properties(self, user: str = "") -> dict[str, str]:
        """Client properties (Java names) for the first listener, except its address: TLS, and the login of `user`, one
        of `users`. Raises KeyError for an unknown user.
        """
        from groupkeeper.broker.security.throwaway import client_properties

        directory = self.storage_path if self._has_own_ca else None
        return client_properties(self._listeners[0].protocol, directory, user, self._users[user] if user else "")

    def librdkafka_properties(self, user: str = "") -> dict[str, str]:
        """`client_properties` and the address, by the names of librdkafka (confluent-kafka)."""
        from groupkeeper.broker.security.throwaway import librdkafka_properties

        found = librdkafka_properties(self.client_properties(user), user, self._users[user] if user else "")
        return {"bootstrap.servers": self.bootstrap_servers, **found}

    @property
    def storage_path(self) -> str:
        """The data directory."""
        return self._directory.path

    @cached_property
    def fetch_sessions(self) -> FetchSessions:
        """The fetch sessions of clients; created on first use."""
        from groupkeeper.broker.network.fetch_sessions import FetchSessions

        return FetchSessions(self.config.max_incremental_fetch_session_cache_slots)

    @property
    def security(self) -> Security:
        """The security of listeners, and the credentials; created on first use."""
        if self._security is None:
            from groupkeeper.broker.security.security import Security

            self._security = Security(self.config, self._directory, self._users, self.now_ms)
        return self._security

    @cached_property
    def faults(self) -> Faults:
        """The injected faults: docs/testing.md."""
        from groupkeeper.broker.faults.injected import Faults

        return Faults(self)

    @property
    def metrics(self) -> Metrics:
        """The broker's metrics, under Kafka's names: docs/metrics.md."""
        from groupkeeper.broker.observing.metrics import Metrics

        return Metrics(self)

    @property
    def share_sessions(self) -> ShareSessions:
        """The sessions of share groups' members, with the share-partitions they fetch from; created on first use."""
        if self._share_sessions is None:
            from groupkeeper.broker.shares.leader import SharePartitions
            from groupkeeper.broker.shares.sessions import ShareSessions

            self._share_sessions = ShareSessions(SharePartitions(self, self.share_states))
        return self._share_sessions

    async def _end_share_sessions(self) -> None:
        sessions, self._share_sessions = self._share_sessions, None
        if sessions is not None:
            await sessions.partitions.stop()

    def now_ms(self) -> int:
        """Milliseconds since the epoch."""
        return time.time_ns() // 1_000_000

    # ------------------------------------------------------------------ automatic topics

    def may_create_automatically(self, name: str) -> bool:
        """Whether a request for an unknown topic creates it; a name that was just deleted must not be used for
        a while.
        """
        is_ours = any(host.topic_name == name for host in self._hosts)
        if not self.config.auto_create_topics_enable or (self.is_internal(name) and not is_ours):
            return False
        return not self.topics.was_deleted_since(name, self.now_ms() - self.config.groupkeeper_auto_create_grace_ms)

    def create_automatically(self, name: str, mutations: Mutations) -> None:
        """Creates a topic with the broker's default number of partitions, or logs why it can't."""
        host = next((one for one in self._hosts if one.topic_name == name), None)
        try:
            mutations.count(self.config.num_partitions if host is None else host.first_partition_count)
            if host is None:
                self.topics.create(name, self.config.num_partitions, None, self.config.default_replication_factor)
            else:
                host.ensure_topic()
        except KafkaError as error:
            _log.warning("cannot create topic %s: %s", name, error)

    @staticmethod
    def is_internal(name: str) -> bool:
        """Whether a topic of this name is one of Kafka's own."""
        return name in INTERNAL_TOPICS

    def new_producer_id(self) -> int:
        """A producer id that was never returned before."""
        return self._directory.new_producer_id()


def _racks_of(config: Config, brokers: int, racks: Sequence[str]) -> dict[int, str | None]:
    """The racks by node id."""
    if brokers < 1 or len(racks) not in (0, brokers):
        raise InvalidSetting(f"{len(racks)} racks for {brokers} brokers: give as many as there are brokers, or none")
    return {config.node_id + number: racks[number] if racks else config.broker_rack for number in range(brokers)}
