"""The part of a broker that all its other parts use: settings, topics, clock. It depends on none of them."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from groupkeeper.broker.authorizer import Authorizer
    from groupkeeper.broker.log.topics import Topics
    from groupkeeper.broker.quotas.client_quotas import ClientQuotas
    from groupkeeper.broker.security.audit import AuditLog
    from groupkeeper.broker.security.security import Security
    from groupkeeper.broker.settings.config import Config
    from groupkeeper.broker.settings.group_overrides import GroupConfigs
    from groupkeeper.broker.storage.open_files import OpenFiles


class BrokerBase:
    """Base of `Broker`. All but the first three attributes are there from `start` on."""

    config: Config
    files: OpenFiles
    """The open log files."""
    authorizer: Authorizer
    audit: AuditLog | None = None
    """The log of logins and of the authorizer's decisions; None: not logged."""
    answers_may_wait: bool = False
    """Whether deliberate faults may hit requests, or coordinators wait for replicas."""
    quotas: ClientQuotas
    topics: Topics
    """The topics and their logs."""
    group_configs: GroupConfigs
    """The settings of single groups: `group_configs.at(group_id, node)`."""

    @property
    def security(self) -> Security:
        """The security of listeners, and the credentials; created on first use."""
        raise NotImplementedError

    @property
    def storage_path(self) -> str:
        """The data directory."""
        raise NotImplementedError

    def controller_known_to(self, node: int) -> int:
        """The controller's id, as a node sees it."""
        return min(self.topics.placements.running_known_to(node), default=-1)

    def now_ms(self) -> int:
        """Milliseconds since the epoch."""
        raise NotImplementedError

    def new_producer_id(self) -> int:
        """A producer id that was never returned before."""
        raise NotImplementedError
