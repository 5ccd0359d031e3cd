"""The broker's settings: Kafka's names, types, defaults and bounds (4.4.0); the documentation is made from this table.

There are three kinds of keys: settings of this table; settings of Kafka kept as texts, most without an effect in a
single process (`KEPT_AS_TEXT`); and unknown ones (kept in `Config.unknown`, for a warning).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Self

from groupkeeper.base_error import InvalidSetting
from groupkeeper.broker.settings.group_settings import GroupSettings, check_relations
from groupkeeper.broker.settings.names import METADATA_LEVELS, is_known
from groupkeeper.broker.settings.table import (
    ANY,
    ONE,
    flag,
    long,
    maybe_long,
    maybe_text,
    maybe_whole,
    names,
    real,
    short,
    text,
    whole,
)
from groupkeeper.java_numbers import INT_MAX, LONG_MAX
from groupkeeper.security.mechanisms import MECHANISMS

_OF_TOPICS = "Default of the topic setting."
_ONE_NODE = "Accepted for compatibility: one process is the whole cluster."

DEFAULT_CONTROLLER_LISTENERS = ("CONTROLLER",)


class Config(GroupSettings):
    """The broker's settings as typed attributes."""

    # --- identity and listeners
    node_id = whole(1, low=0, doc="The broker's id in responses.")
    broker_rack = maybe_text(doc="The broker's rack, as clients see it.")
    replica_selector_class = maybe_text(
        doc="org.apache.kafka.common.replica.RackAwareReplicaSelector: consumers read from a replica in their rack; "
        "else from the leader."
    )
    broker_session_timeout_ms = whole(
        9000, low=1, doc="Of several nodes: when others lead in place of a suspended one."
    )
    replica_lag_time_max_ms = long(
        30000, low=1, doc="Of several nodes: after this time a replica that lags is no longer in sync."
    )
    auto_leader_rebalance_enable = flag(True, doc="Of several nodes: whether leaders move back to the first replicas.")
    leader_imbalance_check_interval_seconds = long(300, low=1, doc="Of several nodes: when they do.")
    request_timeout_ms = whole(
        30000, doc="Of several nodes: how long a transaction's writes, and markers of operators, wait for replicas."
    )
    listeners = names(
        ("PLAINTEXT://127.0.0.1:9092",),
        doc="Where to listen: NAME://host:port; port 0 takes a free one, no host all addresses.",
    ).in_kafka(ONE)
    advertised_listeners = names((), doc="Addresses given to clients, by listener name; default: those of `listeners`.")
    listener_security_protocol_map = names(
        ("SASL_SSL:SASL_SSL", "PLAINTEXT:PLAINTEXT", "SSL:SSL", "SASL_PLAINTEXT:SASL_PLAINTEXT"),
        doc="Security protocol of each listener name.",
    ).in_kafka(ONE, type_name="string")
    inter_broker_listener_name = maybe_text(doc=_ONE_NODE)
    controller_listener_names = names(
        DEFAULT_CONTROLLER_LISTENERS, doc="Names in `listeners` that belong to a controller; they are not opened."
    )
    log_dirs = names((), doc="Data directory; the first is used. Default: `log.dir`.")
    log_dir = text("kafka-logs", doc="Data directory when `log.dirs` is absent.").in_kafka(type_name="list")

    # --- topics
    num_partitions = whole(1, low=1, doc="Partitions of a topic that is created without a number.")
    default_replication_factor = whole(
        1, low=1, doc="Replicas of a topic that is created without a number; at most one on each node."
    )
    groupkeeper_lenient_replication = flag(
        False, doc="Create topics with one replica when more are requested, instead of refusing."
    )
    min_insync_replicas = whole(
        1, low=1, doc="Default of the topic setting; a lone replica satisfies any value."
    ).in_kafka(ANY)
    auto_create_topics_enable = flag(True, doc="Create a topic when a client requests its metadata and allows that.")
    groupkeeper_auto_create_grace_ms = long(
        5000, low=0, doc="How long a deleted topic isn't created again by metadata requests of its old clients."
    )
    groupkeeper_unkind_seed = long(
        -1, low=-1, doc="From 0 on: legal but rare responses, drawn by this seed, to test clients (docs/testing.md)."
    )
    delete_topic_enable = flag(True, doc="Whether DeleteTopics is served.")
    max_request_partition_size_limit = whole(2000, low=1, doc="Most partitions in one DescribeTopicPartitions answer.")

    # --- requests
    message_max_bytes = whole(1048588, low=0, doc="Largest record batch.").in_kafka(ANY)
    fetch_max_bytes = whole(57671680, low=1024, doc="Most bytes in one Fetch response.")
    socket_request_max_bytes = whole(104857600, low=1, doc="Largest request; a larger one closes the connection.")
    queued_max_request_bytes = long(
        -1,
        doc="Most bytes of requests that have not arrived as a whole or wait, over all connections; beyond, the "
        "connection that is silent for longest is closed. Not above 0: ten times `socket.request.max.bytes`.",
    ).in_kafka()
    groupkeeper_unsent_max_bytes = long(
        268435456,
        low=1,
        doc="Most bytes of responses that clients have not read yet, over all connections. Near it Fetch responses get "
        "smaller; beyond, the connection that has not read for longest is closed.",
    )
    groupkeeper_metrics_port = whole(
        0, low=0, high=65535, doc="Where on 127.0.0.1 Prometheus finds the metrics (docs/metrics.md); 0 is nowhere."
    )
    groupkeeper_control_port = whole(
        0,
        low=0,
        high=65535,
        doc="Where on 127.0.0.1 nodes of a cluster are stopped and leaders moved (docs/testing.md); 0 is nowhere.",
    )
    socket_listen_backlog_size = whole(50, low=1, doc="Length of the queue of connections not yet accepted.")
    connections_max_idle_ms = long(
        600000, doc="How long a connection may be silent before it is closed; negative: for ever."
    )
    max_connections = whole(
        INT_MAX, low=0, doc="Most open connections, of all listeners or of one; more wait."
    ).in_kafka(ANY)
    max_connections_per_ip = whole(
        INT_MAX, low=0, doc="Most open connections from one address; more are closed."
    ).in_kafka(ANY)
    max_connections_per_ip_overrides = text("", doc="The same for some addresses: `127.0.0.1:100,host:200`.").in_kafka(
        ANY, has_empty_default=True
    )
    max_connection_creation_rate = whole(
        INT_MAX, low=0, doc="Most new connections in a second, of all listeners or of one; more wait."
    ).in_kafka(ANY)
    max_incremental_fetch_session_cache_slots = whole(1000, low=0, doc="Most fetch sessions (KIP-227).")
    producer_id_expiration_ms = whole(
        86400000, low=1, doc="How long an idle producer's sequence numbers are remembered."
    ).in_kafka(ANY)
    producer_id_expiration_check_interval_ms = whole(
        600000, low=1, doc="Interval between checks for idle producers."
    ).in_kafka(is_listed=False)

    quota_window_num = whole(11, low=1, doc="Over how many windows the rates of client quotas are taken.")
    quota_window_size_seconds = whole(1, low=1, doc="How long each of these windows is.")

    controller_quota_window_num = whole(
        11, low=1, doc="Over how many windows what controller_mutation_rate allows may be used at once."
    )
    controller_quota_window_size_seconds = whole(1, low=1, doc="How long each of these windows is.")

    # --- security (docs/security.md)
    sasl_enabled_mechanisms = names(
        ("GSSAPI",), doc=f"How clients of SASL listeners log in: {', '.join(MECHANISMS)}."
    ).in_kafka(ONE)
    sasl_oauthbearer_jwks_endpoint_url = text(
        "", doc="Where the keys of the tokens' issuers are (file, http, https); empty: unsigned tokens, for tests."
    )
    sasl_oauthbearer_jwks_endpoint_refresh_ms = long(3600000, low=0, doc="After what time the keys are read again.")
    sasl_oauthbearer_jwks_endpoint_retry_backoff_ms = long(
        100, low=0, doc="The first wait after keys could not be read; each one is twice the one before."
    )
    sasl_oauthbearer_jwks_endpoint_retry_backoff_max_ms = long(10000, low=0, doc="The longest of these waits.")
    sasl_oauthbearer_expected_issuer = text("", doc="The issuer (`iss`) that tokens must have; empty: any.")
    sasl_oauthbearer_expected_audience = names(
        (), doc="One of them must be an audience (`aud`) of a token; without any, tokens must have none."
    ).in_kafka(has_empty_default=True)
    sasl_oauthbearer_allow_unverified_audience = flag(False, doc="Without expected audiences: tokens may have any.")
    sasl_oauthbearer_clock_skew_seconds = whole(30, low=0, doc="How far the clock of a token's issuer may differ.")
    sasl_oauthbearer_scope_claim_name = text("scope", doc="The claim of a token with its scopes.")
    sasl_oauthbearer_sub_claim_name = text("sub", doc="The claim of a token with the principal's name.")
    sasl_server_max_receive_size = whole(524288, doc="Largest request before a client is authenticated.")
    connections_max_reauth_ms = long(
        0, doc="After what time clients must authenticate again, or are disconnected at their next request; 0: never."
    )
    connection_failed_authentication_delay_ms = whole(
        100, low=0, doc="How long the response to a failed authentication waits."
    )
    groupkeeper_authentication_timeout_ms = long(
        30000, low=1, doc="How long a client may take to authenticate before it is disconnected."
    )
    groupkeeper_audit_file = text(
        "", doc="Where logins and clients' requests are written, as lines of JSON (docs/broker-security.md)."
    )
    groupkeeper_audit_allowed = flag(True, doc="Whether the audit log has allowed requests, too.")
    ssl_client_auth = text(
        "none",
        choices=("required", "requested", "none"),
        doc="Whether clients of SSL listeners show a certificate; of SASL_SSL ones only where the listener says so.",
    ).in_kafka(ONE)
    ssl_principal_mapping_rules = text(
        "DEFAULT", doc="From a certificate's name to the principal's: RULE:pattern/replacement/[LU], DEFAULT."
    )
    delegation_token_max_lifetime_ms = long(604800000, low=1, doc="How long a delegation token may be renewed.")
    delegation_token_expiry_time_ms = long(86400000, low=1, doc="How long a delegation token is good unless renewed.")
    delegation_token_expiry_check_interval_ms = long(
        3600000, low=1, doc="How often delegation tokens that have expired are removed."
    )
    authorizer_class_name = text(
        "", doc="org.apache.kafka.metadata.authorizer.StandardAuthorizer: ACLs decide what clients may do; empty: all."
    ).in_kafka(has_empty_default=True)
    super_users = text(
        "", doc="Principals that may do everything, with `;` between: `User:admin;User:CN=ops,O=x`."
    ).in_kafka(is_listed=False)
    allow_everyone_if_no_acl_found = flag(
        False, doc="Whether every client may use a resource without any ACL."
    ).in_kafka(is_listed=False)
    groupkeeper_tls_check_interval_ms = long(
        10000, low=1, doc="How often files of key stores are checked for changes, and read again when there are some."
    )

    # --- defaults of the topic settings
    compression_type = text(
        "producer", choices=("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"), doc=_OF_TOPICS
    ).in_kafka(ANY)
    compression_gzip_level = whole(-1, low=-1, high=9, doc=_OF_TOPICS).in_kafka(ANY)
    compression_lz4_level = whole(9, low=1, high=17, doc=_OF_TOPICS).in_kafka(ANY)
    compression_zstd_level = whole(3, low=-131072, high=22, doc=_OF_TOPICS).in_kafka(ANY)
    log_cleanup_policy = names(("delete",), choices=("compact", "delete"), doc=_OF_TOPICS).in_kafka(ANY)
    log_cleaner_delete_retention_ms = long(86400000, low=0, doc=_OF_TOPICS).in_kafka(ANY)
    log_cleaner_max_compaction_lag_ms = long(LONG_MAX, low=1, doc=_OF_TOPICS).in_kafka(ANY)
    log_cleaner_min_compaction_lag_ms = long(0, low=0, doc=_OF_TOPICS).in_kafka(ANY)
    log_cleaner_min_cleanable_ratio = real(0.5, low=0, high=1, doc=_OF_TOPICS).in_kafka(ANY)
    log_flush_interval_messages = long(LONG_MAX, low=1, doc=_OF_TOPICS).in_kafka(ANY)
    log_flush_interval_ms = maybe_long(doc=_OF_TOPICS).in_kafka(ANY)
    log_flush_offset_checkpoint_interval_ms = whole(
        60000,
        low=1,
        doc="How often closed segments are flushed to disk, and the recovery point of each log is written.",
    )
    log_index_interval_bytes = whole(4096, low=0, doc=_OF_TOPICS).in_kafka(ANY)
    log_index_size_max_bytes = whole(10485760, low=4, doc=_OF_TOPICS).in_kafka(ANY)
    log_remote_copy_lag_bytes = long(-1, low=-1, doc=_OF_TOPICS).in_kafka(ANY)
    log_remote_copy_lag_ms = long(0, low=-1, doc=_OF_TOPICS).in_kafka(ANY)
    max_decompressed_message_bytes = whole(2147483639, low=1, high=2147483639, doc=_OF_TOPICS).in_kafka(ANY)
    log_local_retention_bytes = long(-2, low=-2, doc=_OF_TOPICS).in_kafka(ANY)
    log_local_retention_ms = long(-2, low=-2, doc=_OF_TOPICS).in_kafka(ANY)
    log_message_timestamp_type = text("CreateTime", choices=("CreateTime", "LogAppendTime"), doc=_OF_TOPICS).in_kafka(
        ANY
    )
    log_message_timestamp_before_max_ms = long(LONG_MAX, low=0, doc=_OF_TOPICS).in_kafka(ANY)
    log_message_timestamp_after_max_ms = long(3600000, low=0, doc=_OF_TOPICS).in_kafka(ANY)
    log_preallocate = flag(False, doc=_OF_TOPICS).in_kafka(ANY)
    log_retention_bytes = long(-1, doc=_OF_TOPICS).in_kafka(ANY)
    log_retention_ms = maybe_long(
        doc="Default of the topic setting; before `log.retention.minutes` and `.hours`."
    ).in_kafka(ANY)
    log_retention_minutes = maybe_whole(doc="Used when `log.retention.ms` is absent.")
    log_retention_hours = whole(168, doc="Used when `log.retention.ms` and `.minutes` are absent.")
    log_retention_check_interval_ms = long(300000, low=1, doc="Interval between checks for old segments.")
    log_roll_ms = maybe_long(low=1, doc="Default of the topic setting `segment.ms`; before `log.roll.hours`.").in_kafka(
        ANY
    )
    log_roll_hours = whole(168, low=1, doc="Used when `log.roll.ms` is absent.")
    log_roll_jitter_ms = maybe_long(low=0, doc="Default of the topic setting `segment.jitter.ms`.").in_kafka(ANY)
    log_roll_jitter_hours = whole(0, low=0, doc="Used when `log.roll.jitter.ms` is absent.")
    log_segment_bytes = whole(1073741824, low=1048576, doc=_OF_TOPICS).in_kafka(ANY)
    log_segment_delete_delay_ms = long(60000, low=0, doc=_OF_TOPICS).in_kafka(ANY)
    # --- cleaning of logs
    log_cleaner_enable = flag(True, doc="Whether compacted topics are compacted.")
    log_cleaner_backoff_ms = long(15000, low=0, doc="Interval between checks for logs to compact.").in_kafka(ANY)
    log_cleaner_dedupe_buffer_size = long(
        134217728, doc="Memory for the keys of one compaction; what doesn't fit is left to the next one."
    ).in_kafka(ANY)
    log_initial_task_delay_ms = long(30000, low=0, doc="Delay before the first check for old segments.").in_kafka(
        is_listed=False
    )
    groupkeeper_internal_topics_roll_bytes = long(
        1048576,
        low=1,
        doc="Size from which a segment of an internal topic is closed early to be compacted, so that starts are short.",
    )
    unclean_leader_election_enable = flag(False, doc=_OF_TOPICS).in_kafka(ANY)

    # --- transactions
    transaction_state_log_num_partitions = whole(50, low=1, doc="Partitions of `__transaction_state`.")
    transaction_state_log_replication_factor = short(
        3, low=1, doc="Replicas of `__transaction_state`; at most one on each node."
    )
    transaction_state_log_min_isr = whole(2, low=1, doc="`min.insync.replicas` of `__transaction_state`.")
    transaction_state_log_segment_bytes = whole(104857600, low=1, doc="Segment size of `__transaction_state`.")
    transaction_max_timeout_ms = whole(900000, low=1, doc="Longest transaction timeout that a producer may request.")
    transactional_id_expiration_ms = whole(
        604800000, low=1, high=INT_MAX, doc="How long an idle transactional id is kept."
    )
    transaction_abort_timed_out_transaction_cleanup_interval_ms = whole(
        10000, low=1, doc="Interval between checks for timed-out transactions, which are aborted."
    )
    transaction_remove_expired_transaction_cleanup_interval_ms = whole(
        3600000, low=1, doc="Interval between checks for expired transactional ids."
    )
    transaction_partition_verification_enable = flag(
        True, doc="Refuse transactional records for partitions that are not part of the transaction."
    ).in_kafka(ANY)

    given: Mapping[str, str] = {}
    """The given texts of known and unknown keys, unchanged."""
    unknown: tuple[str, ...] = ()
    """Keys that neither this broker nor Kafka 4.4.0 has."""
    features: Mapping[str, int] = {}
    """Levels of `feature.<name>` keys, by feature name."""
    changed: Mapping[str, Mapping[str, str]] = {}
    """Texts of dynamic updates (`DynamicConfig`), by broker (its id as text; "": all brokers) and by name."""
    own: Mapping[str, Mapping[str, str]] = {}
    """The given texts of single nodes, by the node's id as text."""
    nodes: dict[int, Config]
    """The settings of each node, by id."""

    def __init__(self) -> None:
        self.nodes = {}

    def of(self, node: int) -> Config:
        """The settings of a node; those common to all nodes if the id is unknown."""
        return self.nodes.get(node, self)

    def has_own(self, node: int) -> bool:
        """Whether a node may have settings that differ from the common ones."""
        name = str(node)
        return name in self.own and bool(self.own[name] or self.changed.get(name))

    @classmethod
    def from_texts(cls, given: Mapping[str, str]) -> Self:
        """A checked configuration from texts by name. Raises `InvalidSetting` for a bad value, and for values that
        contradict each other.
        """
        config = cls()
        config.given = dict(given)
        config.assign({name: value for name, value in given.items() if cls.setting(name) is not None})
        if "broker.id" in given and "node.id" not in given:
            config.assign({"node.id": given["broker.id"]})
        config.features = _features(given)
        config.unknown = tuple(name for name in given if cls.setting(name) is None and not is_known(name))
        check_relations(config)
        _check_relations(config)
        return config

    @property
    def storage_path(self) -> str:
        """The directory of the logs: the first of `log.dirs`, else `log.dir`."""
        return self.log_dirs[0] if self.log_dirs else self.log_dir

    @property
    def retention_ms(self) -> int:
        """Default `retention.ms` of topics in milliseconds; −1 is no limit (log.retention.ms, .minutes, .hours)."""
        if self.log_retention_ms is not None:
            return max(self.log_retention_ms, -1)
        if self.log_retention_minutes is not None:
            return -1 if self.log_retention_minutes < 0 else self.log_retention_minutes * 60_000
        return -1 if self.log_retention_hours < 0 else self.log_retention_hours * 3_600_000

    @property
    def roll_ms(self) -> int:
        """Default `segment.ms` of topics, in milliseconds."""
        return self.log_roll_ms if self.log_roll_ms is not None else self.log_roll_hours * 3_600_000

    @property
    def roll_jitter_ms(self) -> int:
        """Default `segment.jitter.ms` of topics, in milliseconds."""
        return (
            self.log_roll_jitter_ms if self.log_roll_jitter_ms is not None else self.log_roll_jitter_hours * 3_600_000
        )


def _check_relations(config: Config) -> None:
    if 0 < config.queued_max_request_bytes < config.socket_request_max_bytes:
        raise InvalidSetting("queued.max.request.bytes must be larger or equal to socket.request.max.bytes")
    if config.log_retention_ms == 0:
        raise InvalidSetting(
            "requirement failed: log.retention.ms must be unlimited (-1) or, greater than or equal to 1"
        )
    if not (parse_counts_by_host(config.max_connections_per_ip_overrides) or config.max_connections_per_ip):
        raise InvalidSetting(
            "requirement failed: max.connections.per.ip can be set to zero only if max.connections.per.ip.overrides "
            "property is set."
        )


def parse_counts_by_host(text: str) -> dict[str, int]:
    """The limits in `max.connections.per.ip.overrides`, by host. Raises `InvalidSetting`."""
    found: dict[str, int] = {}
    for entry in filter(None, (one.strip() for one in text.split(","))):
        host, _, number = entry.rpartition(":")
        if not host or not number.isdecimal():
            name = Config.max_connections_per_ip_overrides.name
            raise InvalidSetting(f"{name}: {entry} is not a host and a number, as in 127.0.0.1:100")
        found[host] = int(number)
    return found


def _features(given: Mapping[str, str]) -> dict[str, int]:
    named = METADATA_LEVELS.get(given.get("conformance.metadata.version", ""))  # given by a test harness
    levels = {} if named is None else {"metadata.version": named}
    for name, value in given.items():
        if name.startswith("feature."):
            try:
                levels[name.removeprefix("feature.")] = int(value)
            except ValueError:
                raise InvalidSetting(f"Invalid value {value} for configuration {name}: Not a feature level") from None
    return levels
