"""Groupkeeper operates Kafka consumer groups: commands, an asyncio admin client and an embedded broker.

    from groupkeeper import Admin, Broker

The public names are here, imported on first use; errors are in `groupkeeper.errors`.
"""

__version__ = "0.1.0"

TYPE_CHECKING = False
if TYPE_CHECKING:
    from groupkeeper.api.admin import Admin as Admin
    from groupkeeper.api.admin import GroupLag as GroupLag
    from groupkeeper.api.admin import GroupLags as GroupLags
    from groupkeeper.api.sync_admin import SyncAdmin as SyncAdmin
    from groupkeeper.api.tables import to_arrow as to_arrow
    from groupkeeper.api.tables import to_pandas as to_pandas
    from groupkeeper.base_error import GroupkeeperError as GroupkeeperError
    from groupkeeper.broker import Broker as Broker
    from groupkeeper.client.admin.resources.access_types import Acl as Acl
    from groupkeeper.client.admin.resources.access_types import AclFilter as AclFilter
    from groupkeeper.client.admin.resources.access_types import AclOperation as AclOperation
    from groupkeeper.client.admin.resources.access_types import AclPatternType as AclPatternType
    from groupkeeper.client.admin.resources.access_types import AclPermission as AclPermission
    from groupkeeper.client.admin.resources.access_types import AclResourceType as AclResourceType
    from groupkeeper.client.admin.resources.access_types import EntityName as EntityName
    from groupkeeper.client.admin.resources.access_types import QuotaEntity as QuotaEntity
    from groupkeeper.client.admin.resources.access_types import ScramCredential as ScramCredential
    from groupkeeper.client.admin.resources.access_types import ScramMechanism as ScramMechanism
    from groupkeeper.client.admin.resources.access_types import ScramPassword as ScramPassword
    from groupkeeper.client.admin.resources.access_types import ScramRemoval as ScramRemoval
    from groupkeeper.client.admin.resources.types import Config as Config
    from groupkeeper.client.admin.resources.types import ConfigResource as ConfigResource
    from groupkeeper.client.admin.resources.types import ConfigResourceType as ConfigResourceType
    from groupkeeper.client.admin.resources.types import ConfigSource as ConfigSource
    from groupkeeper.client.admin.resources.types import ListChange as ListChange
    from groupkeeper.client.admin.resources.types import NewPartitions as NewPartitions
    from groupkeeper.client.admin.resources.types import ProducerState as ProducerState
    from groupkeeper.client.admin.resources.types import TransactionState as TransactionState
    from groupkeeper.client.admin.types import ALL as ALL
    from groupkeeper.client.admin.types import Batch as Batch
    from groupkeeper.client.admin.types import GroupState as GroupState
    from groupkeeper.client.admin.types import GroupType as GroupType
    from groupkeeper.client.admin.types import MemberToRemove as MemberToRemove
    from groupkeeper.client.admin.types import NewTopic as NewTopic
    from groupkeeper.client.admin.types import OffsetAndMetadata as OffsetAndMetadata
    from groupkeeper.client.admin.types import OffsetSpec as OffsetSpec
    from groupkeeper.client.admin.types import Position as Position
    from groupkeeper.client.admin.types import TopicPartition as TopicPartition

_NAMES_BY_MODULE = {
    "groupkeeper.broker": "Broker",
    "groupkeeper.api.admin": "Admin GroupLag GroupLags",
    "groupkeeper.api.sync_admin": "SyncAdmin",
    "groupkeeper.api.tables": "to_arrow to_pandas",
    "groupkeeper.base_error": "GroupkeeperError",
    "groupkeeper.client.admin.types": "ALL Batch GroupState GroupType MemberToRemove NewTopic OffsetAndMetadata "
    "OffsetSpec Position TopicPartition",
    "groupkeeper.client.admin.resources.access_types": "Acl AclFilter AclOperation AclPatternType AclPermission "
    "AclResourceType EntityName QuotaEntity ScramCredential ScramMechanism ScramPassword ScramRemoval",
    "groupkeeper.client.admin.resources.types": "Config ConfigResource ConfigResourceType ConfigSource ListChange "
    "NewPartitions ProducerState TransactionState",
}
_MODULE_BY_NAME = {name: module for module, names in _NAMES_BY_MODULE.items() for name in names.split()}

__all__ = ["__version__", *_MODULE_BY_NAME]


def __getattr__(name: str) -> object:
    """Imports a public name on first use (PEP 562)."""
    if name not in _MODULE_BY_NAME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    found = globals()[name] = getattr(import_module(_MODULE_BY_NAME[name]), name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULE_BY_NAME})
