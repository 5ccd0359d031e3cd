"""Message classes, one module per message: edit nothing here.

Each class can be had from its module, and from here by its name, which imports the module on first use;
a struct whose name several messages have can only be had from its module.

`python -m tools.protocol.generate` writes them from tools/protocol/schemas.txt.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from groupkeeper.protocol.messages.fetch_response import AbortedTransaction as AbortedTransaction
    from groupkeeper.protocol.messages.aborted_txn import AbortedTxn as AbortedTxn
    from groupkeeper.protocol.messages.share_acknowledge_request import AcknowledgePartition as AcknowledgePartition
    from groupkeeper.protocol.messages.share_acknowledge_request import AcknowledgeTopic as AcknowledgeTopic
    from groupkeeper.protocol.messages.create_acls_request import AclCreation as AclCreation
    from groupkeeper.protocol.messages.create_acls_response import AclCreationResult as AclCreationResult
    from groupkeeper.protocol.messages.describe_acls_response import AclDescription as AclDescription
    from groupkeeper.protocol.messages.share_fetch_response import AcquiredRecords as AcquiredRecords
    from groupkeeper.protocol.messages.add_offsets_to_txn_request import AddOffsetsToTxnRequest as AddOffsetsToTxnRequest
    from groupkeeper.protocol.messages.add_offsets_to_txn_response import AddOffsetsToTxnResponse as AddOffsetsToTxnResponse
    from groupkeeper.protocol.messages.add_partitions_to_txn_response import AddPartitionsToTxnPartitionResult as AddPartitionsToTxnPartitionResult
    from groupkeeper.protocol.messages.add_partitions_to_txn_request import AddPartitionsToTxnRequest as AddPartitionsToTxnRequest
    from groupkeeper.protocol.messages.add_partitions_to_txn_response import AddPartitionsToTxnResponse as AddPartitionsToTxnResponse
    from groupkeeper.protocol.messages.add_partitions_to_txn_response import AddPartitionsToTxnResult as AddPartitionsToTxnResult
    from groupkeeper.protocol.messages.add_partitions_to_txn_request import AddPartitionsToTxnTopic as AddPartitionsToTxnTopic
    from groupkeeper.protocol.messages.add_partitions_to_txn_response import AddPartitionsToTxnTopicResult as AddPartitionsToTxnTopicResult
    from groupkeeper.protocol.messages.add_partitions_to_txn_request import AddPartitionsToTxnTransaction as AddPartitionsToTxnTransaction
    from groupkeeper.protocol.messages.add_raft_voter_request import AddRaftVoterRequest as AddRaftVoterRequest
    from groupkeeper.protocol.messages.add_raft_voter_response import AddRaftVoterResponse as AddRaftVoterResponse
    from groupkeeper.protocol.messages.allocate_producer_ids_request import AllocateProducerIdsRequest as AllocateProducerIdsRequest
    from groupkeeper.protocol.messages.allocate_producer_ids_response import AllocateProducerIdsResponse as AllocateProducerIdsResponse
    from groupkeeper.protocol.messages.alter_client_quotas_request import AlterClientQuotasRequest as AlterClientQuotasRequest
    from groupkeeper.protocol.messages.alter_client_quotas_response import AlterClientQuotasResponse as AlterClientQuotasResponse
    from groupkeeper.protocol.messages.alter_configs_request import AlterConfigsRequest as AlterConfigsRequest
    from groupkeeper.protocol.messages.alter_configs_response import AlterConfigsResponse as AlterConfigsResponse
    from groupkeeper.protocol.messages.alter_partition_reassignments_request import AlterPartitionReassignmentsRequest as AlterPartitionReassignmentsRequest
    from groupkeeper.protocol.messages.alter_partition_reassignments_response import AlterPartitionReassignmentsResponse as AlterPartitionReassignmentsResponse
    from groupkeeper.protocol.messages.alter_partition_request import AlterPartitionRequest as AlterPartitionRequest
    from groupkeeper.protocol.messages.alter_partition_response import AlterPartitionResponse as AlterPartitionResponse
    from groupkeeper.protocol.messages.alter_replica_log_dirs_request import AlterReplicaLogDir as AlterReplicaLogDir
    from groupkeeper.protocol.messages.alter_replica_log_dirs_response import AlterReplicaLogDirPartitionResult as AlterReplicaLogDirPartitionResult
    from groupkeeper.protocol.messages.alter_replica_log_dirs_request import AlterReplicaLogDirTopic as AlterReplicaLogDirTopic
    from groupkeeper.protocol.messages.alter_replica_log_dirs_response import AlterReplicaLogDirTopicResult as AlterReplicaLogDirTopicResult
    from groupkeeper.protocol.messages.alter_replica_log_dirs_request import AlterReplicaLogDirsRequest as AlterReplicaLogDirsRequest
    from groupkeeper.protocol.messages.alter_replica_log_dirs_response import AlterReplicaLogDirsResponse as AlterReplicaLogDirsResponse
    from groupkeeper.protocol.messages.alter_share_group_offsets_request import AlterShareGroupOffsetsRequest as AlterShareGroupOffsetsRequest
    from groupkeeper.protocol.messages.alter_share_group_offsets_request import AlterShareGroupOffsetsRequestPartition as AlterShareGroupOffsetsRequestPartition
    from groupkeeper.protocol.messages.alter_share_group_offsets_request import AlterShareGroupOffsetsRequestTopic as AlterShareGroupOffsetsRequestTopic
    from groupkeeper.protocol.messages.alter_share_group_offsets_response import AlterShareGroupOffsetsResponse as AlterShareGroupOffsetsResponse
    from groupkeeper.protocol.messages.alter_share_group_offsets_response import AlterShareGroupOffsetsResponsePartition as AlterShareGroupOffsetsResponsePartition
    from groupkeeper.protocol.messages.alter_share_group_offsets_response import AlterShareGroupOffsetsResponseTopic as AlterShareGroupOffsetsResponseTopic
    from groupkeeper.protocol.messages.alter_user_scram_credentials_request import AlterUserScramCredentialsRequest as AlterUserScramCredentialsRequest
    from groupkeeper.protocol.messages.alter_user_scram_credentials_response import AlterUserScramCredentialsResponse as AlterUserScramCredentialsResponse
    from groupkeeper.protocol.messages.alter_user_scram_credentials_response import AlterUserScramCredentialsResult as AlterUserScramCredentialsResult
    from groupkeeper.protocol.messages.api_versions_response import ApiVersion as ApiVersion
    from groupkeeper.protocol.messages.api_versions_request import ApiVersionsRequest as ApiVersionsRequest
    from groupkeeper.protocol.messages.api_versions_response import ApiVersionsResponse as ApiVersionsResponse
    from groupkeeper.protocol.messages.assign_replicas_to_dirs_request import AssignReplicasToDirsRequest as AssignReplicasToDirsRequest
    from groupkeeper.protocol.messages.assign_replicas_to_dirs_response import AssignReplicasToDirsResponse as AssignReplicasToDirsResponse
    from groupkeeper.protocol.messages.produce_response import BatchIndexAndErrorMessage as BatchIndexAndErrorMessage
    from groupkeeper.protocol.messages.begin_quorum_epoch_request import BeginQuorumEpochRequest as BeginQuorumEpochRequest
    from groupkeeper.protocol.messages.begin_quorum_epoch_response import BeginQuorumEpochResponse as BeginQuorumEpochResponse
    from groupkeeper.protocol.messages.broker_heartbeat_request import BrokerHeartbeatRequest as BrokerHeartbeatRequest
    from groupkeeper.protocol.messages.broker_heartbeat_response import BrokerHeartbeatResponse as BrokerHeartbeatResponse
    from groupkeeper.protocol.messages.broker_registration_request import BrokerRegistrationRequest as BrokerRegistrationRequest
    from groupkeeper.protocol.messages.broker_registration_response import BrokerRegistrationResponse as BrokerRegistrationResponse
    from groupkeeper.protocol.messages.alter_partition_request import BrokerState as BrokerState
    from groupkeeper.protocol.messages.consumer_group_member_metadata_value import ClassicMemberMetadata as ClassicMemberMetadata
    from groupkeeper.protocol.messages.consumer_group_member_metadata_value import ClassicProtocol as ClassicProtocol
    from groupkeeper.protocol.messages.describe_client_quotas_request import ComponentData as ComponentData
    from groupkeeper.protocol.messages.list_config_resources_response import ConfigResource as ConfigResource
    from groupkeeper.protocol.messages.consumer_group_current_member_assignment_key import ConsumerGroupCurrentMemberAssignmentKey as ConsumerGroupCurrentMemberAssignmentKey
    from groupkeeper.protocol.messages.consumer_group_current_member_assignment_value import ConsumerGroupCurrentMemberAssignmentValue as ConsumerGroupCurrentMemberAssignmentValue
    from groupkeeper.protocol.messages.consumer_group_describe_request import ConsumerGroupDescribeRequest as ConsumerGroupDescribeRequest
    from groupkeeper.protocol.messages.consumer_group_describe_response import ConsumerGroupDescribeResponse as ConsumerGroupDescribeResponse
    from groupkeeper.protocol.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest as ConsumerGroupHeartbeatRequest
    from groupkeeper.protocol.messages.consumer_group_heartbeat_response import ConsumerGroupHeartbeatResponse as ConsumerGroupHeartbeatResponse
    from groupkeeper.protocol.messages.consumer_group_member_metadata_key import ConsumerGroupMemberMetadataKey as ConsumerGroupMemberMetadataKey
    from groupkeeper.protocol.messages.consumer_group_member_metadata_value import ConsumerGroupMemberMetadataValue as ConsumerGroupMemberMetadataValue
    from groupkeeper.protocol.messages.consumer_group_metadata_key import ConsumerGroupMetadataKey as ConsumerGroupMetadataKey
    from groupkeeper.protocol.messages.consumer_group_metadata_value import ConsumerGroupMetadataValue as ConsumerGroupMetadataValue
    from groupkeeper.protocol.messages.consumer_group_partition_metadata_key import ConsumerGroupPartitionMetadataKey as ConsumerGroupPartitionMetadataKey
    from groupkeeper.protocol.messages.consumer_group_partition_metadata_value import ConsumerGroupPartitionMetadataValue as ConsumerGroupPartitionMetadataValue
    from groupkeeper.protocol.messages.consumer_group_regular_expression_key import ConsumerGroupRegularExpressionKey as ConsumerGroupRegularExpressionKey
    from groupkeeper.protocol.messages.consumer_group_regular_expression_value import ConsumerGroupRegularExpressionValue as ConsumerGroupRegularExpressionValue
    from groupkeeper.protocol.messages.consumer_group_target_assignment_member_key import ConsumerGroupTargetAssignmentMemberKey as ConsumerGroupTargetAssignmentMemberKey
    from groupkeeper.protocol.messages.consumer_group_target_assignment_member_value import ConsumerGroupTargetAssignmentMemberValue as ConsumerGroupTargetAssignmentMemberValue
    from groupkeeper.protocol.messages.consumer_group_target_assignment_metadata_key import ConsumerGroupTargetAssignmentMetadataKey as ConsumerGroupTargetAssignmentMetadataKey
    from groupkeeper.protocol.messages.consumer_group_target_assignment_metadata_value import ConsumerGroupTargetAssignmentMetadataValue as ConsumerGroupTargetAssignmentMetadataValue
    from groupkeeper.protocol.messages.consumer_protocol_assignment import ConsumerProtocolAssignment as ConsumerProtocolAssignment
    from groupkeeper.protocol.messages.consumer_protocol_subscription import ConsumerProtocolSubscription as ConsumerProtocolSubscription
    from groupkeeper.protocol.messages.control_record_type_schema import ControlRecordTypeSchema as ControlRecordTypeSchema
    from groupkeeper.protocol.messages.controller_registration_request import ControllerRegistrationRequest as ControllerRegistrationRequest
    from groupkeeper.protocol.messages.controller_registration_response import ControllerRegistrationResponse as ControllerRegistrationResponse
    from groupkeeper.protocol.messages.find_coordinator_response import Coordinator as Coordinator
    from groupkeeper.protocol.messages.create_delegation_token_request import CreatableRenewers as CreatableRenewers
    from groupkeeper.protocol.messages.create_topics_request import CreatableReplicaAssignment as CreatableReplicaAssignment
    from groupkeeper.protocol.messages.create_topics_request import CreatableTopic as CreatableTopic
    from groupkeeper.protocol.messages.create_topics_request import CreatableTopicConfig as CreatableTopicConfig
    from groupkeeper.protocol.messages.create_topics_response import CreatableTopicConfigs as CreatableTopicConfigs
    from groupkeeper.protocol.messages.create_topics_response import CreatableTopicResult as CreatableTopicResult
    from groupkeeper.protocol.messages.create_acls_request import CreateAclsRequest as CreateAclsRequest
    from groupkeeper.protocol.messages.create_acls_response import CreateAclsResponse as CreateAclsResponse
    from groupkeeper.protocol.messages.create_delegation_token_request import CreateDelegationTokenRequest as CreateDelegationTokenRequest
    from groupkeeper.protocol.messages.create_delegation_token_response import CreateDelegationTokenResponse as CreateDelegationTokenResponse
    from groupkeeper.protocol.messages.create_partitions_request import CreatePartitionsAssignment as CreatePartitionsAssignment
    from groupkeeper.protocol.messages.create_partitions_request import CreatePartitionsRequest as CreatePartitionsRequest
    from groupkeeper.protocol.messages.create_partitions_response import CreatePartitionsResponse as CreatePartitionsResponse
    from groupkeeper.protocol.messages.create_partitions_request import CreatePartitionsTopic as CreatePartitionsTopic
    from groupkeeper.protocol.messages.create_partitions_response import CreatePartitionsTopicResult as CreatePartitionsTopicResult
    from groupkeeper.protocol.messages.create_topics_request import CreateTopicsRequest as CreateTopicsRequest
    from groupkeeper.protocol.messages.create_topics_response import CreateTopicsResponse as CreateTopicsResponse
    from groupkeeper.protocol.messages.describe_user_scram_credentials_response import CredentialInfo as CredentialInfo
    from groupkeeper.protocol.messages.update_raft_voter_response import CurrentLeader as CurrentLeader
    from groupkeeper.protocol.messages.default_principal_data import DefaultPrincipalData as DefaultPrincipalData
    from groupkeeper.protocol.messages.delete_groups_response import DeletableGroupResult as DeletableGroupResult
    from groupkeeper.protocol.messages.delete_topics_response import DeletableTopicResult as DeletableTopicResult
    from groupkeeper.protocol.messages.delete_acls_request import DeleteAclsFilter as DeleteAclsFilter
    from groupkeeper.protocol.messages.delete_acls_response import DeleteAclsFilterResult as DeleteAclsFilterResult
    from groupkeeper.protocol.messages.delete_acls_response import DeleteAclsMatchingAcl as DeleteAclsMatchingAcl
    from groupkeeper.protocol.messages.delete_acls_request import DeleteAclsRequest as DeleteAclsRequest
    from groupkeeper.protocol.messages.delete_acls_response import DeleteAclsResponse as DeleteAclsResponse
    from groupkeeper.protocol.messages.delete_groups_request import DeleteGroupsRequest as DeleteGroupsRequest
    from groupkeeper.protocol.messages.delete_groups_response import DeleteGroupsResponse as DeleteGroupsResponse
    from groupkeeper.protocol.messages.delete_records_request import DeleteRecordsPartition as DeleteRecordsPartition
    from groupkeeper.protocol.messages.delete_records_response import DeleteRecordsPartitionResult as DeleteRecordsPartitionResult
    from groupkeeper.protocol.messages.delete_records_request import DeleteRecordsRequest as DeleteRecordsRequest
    from groupkeeper.protocol.messages.delete_records_response import DeleteRecordsResponse as DeleteRecordsResponse
    from groupkeeper.protocol.messages.delete_records_request import DeleteRecordsTopic as DeleteRecordsTopic
    from groupkeeper.protocol.messages.delete_records_response import DeleteRecordsTopicResult as DeleteRecordsTopicResult
    from groupkeeper.protocol.messages.delete_share_group_offsets_request import DeleteShareGroupOffsetsRequest as DeleteShareGroupOffsetsRequest
    from groupkeeper.protocol.messages.delete_share_group_offsets_request import DeleteShareGroupOffsetsRequestTopic as DeleteShareGroupOffsetsRequestTopic
    from groupkeeper.protocol.messages.delete_share_group_offsets_response import DeleteShareGroupOffsetsResponse as DeleteShareGroupOffsetsResponse
    from groupkeeper.protocol.messages.delete_share_group_offsets_response import DeleteShareGroupOffsetsResponseTopic as DeleteShareGroupOffsetsResponseTopic
    from groupkeeper.protocol.messages.delete_share_group_state_request import DeleteShareGroupStateRequest as DeleteShareGroupStateRequest
    from groupkeeper.protocol.messages.delete_share_group_state_response import DeleteShareGroupStateResponse as DeleteShareGroupStateResponse
    from groupkeeper.protocol.messages.delete_share_group_state_request import DeleteStateData as DeleteStateData
    from groupkeeper.protocol.messages.delete_share_group_state_response import DeleteStateResult as DeleteStateResult
    from groupkeeper.protocol.messages.delete_topics_request import DeleteTopicState as DeleteTopicState
    from groupkeeper.protocol.messages.delete_topics_request import DeleteTopicsRequest as DeleteTopicsRequest
    from groupkeeper.protocol.messages.delete_topics_response import DeleteTopicsResponse as DeleteTopicsResponse
    from groupkeeper.protocol.messages.describe_log_dirs_request import DescribableLogDirTopic as DescribableLogDirTopic
    from groupkeeper.protocol.messages.describe_acls_request import DescribeAclsRequest as DescribeAclsRequest
    from groupkeeper.protocol.messages.describe_acls_response import DescribeAclsResource as DescribeAclsResource
    from groupkeeper.protocol.messages.describe_acls_response import DescribeAclsResponse as DescribeAclsResponse
    from groupkeeper.protocol.messages.describe_client_quotas_request import DescribeClientQuotasRequest as DescribeClientQuotasRequest
    from groupkeeper.protocol.messages.describe_client_quotas_response import DescribeClientQuotasResponse as DescribeClientQuotasResponse
    from groupkeeper.protocol.messages.describe_cluster_response import DescribeClusterBroker as DescribeClusterBroker
    from groupkeeper.protocol.messages.describe_cluster_request import DescribeClusterRequest as DescribeClusterRequest
    from groupkeeper.protocol.messages.describe_cluster_response import DescribeClusterResponse as DescribeClusterResponse
    from groupkeeper.protocol.messages.describe_configs_request import DescribeConfigsRequest as DescribeConfigsRequest
    from groupkeeper.protocol.messages.describe_configs_request import DescribeConfigsResource as DescribeConfigsResource
    from groupkeeper.protocol.messages.describe_configs_response import DescribeConfigsResourceResult as DescribeConfigsResourceResult
    from groupkeeper.protocol.messages.describe_configs_response import DescribeConfigsResponse as DescribeConfigsResponse
    from groupkeeper.protocol.messages.describe_configs_response import DescribeConfigsResult as DescribeConfigsResult
    from groupkeeper.protocol.messages.describe_configs_response import DescribeConfigsSynonym as DescribeConfigsSynonym
    from groupkeeper.protocol.messages.describe_delegation_token_request import DescribeDelegationTokenOwner as DescribeDelegationTokenOwner
    from groupkeeper.protocol.messages.describe_delegation_token_request import DescribeDelegationTokenRequest as DescribeDelegationTokenRequest
    from groupkeeper.protocol.messages.describe_delegation_token_response import DescribeDelegationTokenResponse as DescribeDelegationTokenResponse
    from groupkeeper.protocol.messages.describe_groups_request import DescribeGroupsRequest as DescribeGroupsRequest
    from groupkeeper.protocol.messages.describe_groups_response import DescribeGroupsResponse as DescribeGroupsResponse
    from groupkeeper.protocol.messages.describe_log_dirs_response import DescribeLogDirsPartition as DescribeLogDirsPartition
    from groupkeeper.protocol.messages.describe_log_dirs_request import DescribeLogDirsRequest as DescribeLogDirsRequest
    from groupkeeper.protocol.messages.describe_log_dirs_response import DescribeLogDirsResponse as DescribeLogDirsResponse
    from groupkeeper.protocol.messages.describe_log_dirs_response import DescribeLogDirsResult as DescribeLogDirsResult
    from groupkeeper.protocol.messages.describe_log_dirs_response import DescribeLogDirsTopic as DescribeLogDirsTopic
    from groupkeeper.protocol.messages.describe_producers_request import DescribeProducersRequest as DescribeProducersRequest
    from groupkeeper.protocol.messages.describe_producers_response import DescribeProducersResponse as DescribeProducersResponse
    from groupkeeper.protocol.messages.describe_quorum_request import DescribeQuorumRequest as DescribeQuorumRequest
    from groupkeeper.protocol.messages.describe_quorum_response import DescribeQuorumResponse as DescribeQuorumResponse
    from groupkeeper.protocol.messages.describe_share_group_offsets_request import DescribeShareGroupOffsetsRequest as DescribeShareGroupOffsetsRequest
    from groupkeeper.protocol.messages.describe_share_group_offsets_request import DescribeShareGroupOffsetsRequestGroup as DescribeShareGroupOffsetsRequestGroup
    from groupkeeper.protocol.messages.describe_share_group_offsets_request import DescribeShareGroupOffsetsRequestTopic as DescribeShareGroupOffsetsRequestTopic
    from groupkeeper.protocol.messages.describe_share_group_offsets_response import DescribeShareGroupOffsetsResponse as DescribeShareGroupOffsetsResponse
    from groupkeeper.protocol.messages.describe_share_group_offsets_response import DescribeShareGroupOffsetsResponseGroup as DescribeShareGroupOffsetsResponseGroup
    from groupkeeper.protocol.messages.describe_share_group_offsets_response import DescribeShareGroupOffsetsResponsePartition as DescribeShareGroupOffsetsResponsePartition
    from groupkeeper.protocol.messages.describe_share_group_offsets_response import DescribeShareGroupOffsetsResponseTopic as DescribeShareGroupOffsetsResponseTopic
    from groupkeeper.protocol.messages.describe_topic_partitions_request import DescribeTopicPartitionsRequest as DescribeTopicPartitionsRequest
    from groupkeeper.protocol.messages.describe_topic_partitions_response import DescribeTopicPartitionsResponse as DescribeTopicPartitionsResponse
    from groupkeeper.protocol.messages.describe_topic_partitions_response import DescribeTopicPartitionsResponsePartition as DescribeTopicPartitionsResponsePartition
    from groupkeeper.protocol.messages.describe_topic_partitions_response import DescribeTopicPartitionsResponseTopic as DescribeTopicPartitionsResponseTopic
    from groupkeeper.protocol.messages.describe_transactions_request import DescribeTransactionsRequest as DescribeTransactionsRequest
    from groupkeeper.protocol.messages.describe_transactions_response import DescribeTransactionsResponse as DescribeTransactionsResponse
    from groupkeeper.protocol.messages.describe_user_scram_credentials_request import DescribeUserScramCredentialsRequest as DescribeUserScramCredentialsRequest
    from groupkeeper.protocol.messages.describe_user_scram_credentials_response import DescribeUserScramCredentialsResponse as DescribeUserScramCredentialsResponse
    from groupkeeper.protocol.messages.describe_user_scram_credentials_response import DescribeUserScramCredentialsResult as DescribeUserScramCredentialsResult
    from groupkeeper.protocol.messages.describe_delegation_token_response import DescribedDelegationToken as DescribedDelegationToken
    from groupkeeper.protocol.messages.describe_delegation_token_response import DescribedDelegationTokenRenewer as DescribedDelegationTokenRenewer
    from groupkeeper.protocol.messages.describe_groups_response import DescribedGroupMember as DescribedGroupMember
    from groupkeeper.protocol.messages.elect_leaders_request import ElectLeadersRequest as ElectLeadersRequest
    from groupkeeper.protocol.messages.elect_leaders_response import ElectLeadersResponse as ElectLeadersResponse
    from groupkeeper.protocol.messages.end_quorum_epoch_request import EndQuorumEpochRequest as EndQuorumEpochRequest
    from groupkeeper.protocol.messages.end_quorum_epoch_response import EndQuorumEpochResponse as EndQuorumEpochResponse
    from groupkeeper.protocol.messages.end_txn_marker import EndTxnMarker as EndTxnMarker
    from groupkeeper.protocol.messages.end_txn_request import EndTxnRequest as EndTxnRequest
    from groupkeeper.protocol.messages.end_txn_response import EndTxnResponse as EndTxnResponse
    from groupkeeper.protocol.messages.streams_group_heartbeat_response import EndpointToPartitions as EndpointToPartitions
    from groupkeeper.protocol.messages.envelope_request import EnvelopeRequest as EnvelopeRequest
    from groupkeeper.protocol.messages.envelope_response import EnvelopeResponse as EnvelopeResponse
    from groupkeeper.protocol.messages.expire_delegation_token_request import ExpireDelegationTokenRequest as ExpireDelegationTokenRequest
    from groupkeeper.protocol.messages.expire_delegation_token_response import ExpireDelegationTokenResponse as ExpireDelegationTokenResponse
    from groupkeeper.protocol.messages.update_features_request import FeatureUpdateKey as FeatureUpdateKey
    from groupkeeper.protocol.messages.fetch_request import FetchRequest as FetchRequest
    from groupkeeper.protocol.messages.fetch_response import FetchResponse as FetchResponse
    from groupkeeper.protocol.messages.fetch_snapshot_request import FetchSnapshotRequest as FetchSnapshotRequest
    from groupkeeper.protocol.messages.fetch_snapshot_response import FetchSnapshotResponse as FetchSnapshotResponse
    from groupkeeper.protocol.messages.fetch_response import FetchableTopicResponse as FetchableTopicResponse
    from groupkeeper.protocol.messages.api_versions_response import FinalizedFeatureKey as FinalizedFeatureKey
    from groupkeeper.protocol.messages.find_coordinator_request import FindCoordinatorRequest as FindCoordinatorRequest
    from groupkeeper.protocol.messages.find_coordinator_response import FindCoordinatorResponse as FindCoordinatorResponse
    from groupkeeper.protocol.messages.get_telemetry_subscriptions_request import GetTelemetrySubscriptionsRequest as GetTelemetrySubscriptionsRequest
    from groupkeeper.protocol.messages.get_telemetry_subscriptions_response import GetTelemetrySubscriptionsResponse as GetTelemetrySubscriptionsResponse
    from groupkeeper.protocol.messages.group_metadata_key import GroupMetadataKey as GroupMetadataKey
    from groupkeeper.protocol.messages.group_metadata_value import GroupMetadataValue as GroupMetadataValue
    from groupkeeper.protocol.messages.heartbeat_request import HeartbeatRequest as HeartbeatRequest
    from groupkeeper.protocol.messages.heartbeat_response import HeartbeatResponse as HeartbeatResponse
    from groupkeeper.protocol.messages.incremental_alter_configs_request import IncrementalAlterConfigsRequest as IncrementalAlterConfigsRequest
    from groupkeeper.protocol.messages.incremental_alter_configs_response import IncrementalAlterConfigsResponse as IncrementalAlterConfigsResponse
    from groupkeeper.protocol.messages.init_producer_id_request import InitProducerIdRequest as InitProducerIdRequest
    from groupkeeper.protocol.messages.init_producer_id_response import InitProducerIdResponse as InitProducerIdResponse
    from groupkeeper.protocol.messages.initialize_share_group_state_request import InitializeShareGroupStateRequest as InitializeShareGroupStateRequest
    from groupkeeper.protocol.messages.initialize_share_group_state_response import InitializeShareGroupStateResponse as InitializeShareGroupStateResponse
    from groupkeeper.protocol.messages.initialize_share_group_state_request import InitializeStateData as InitializeStateData
    from groupkeeper.protocol.messages.initialize_share_group_state_response import InitializeStateResult as InitializeStateResult
    from groupkeeper.protocol.messages.join_group_request import JoinGroupRequest as JoinGroupRequest
    from groupkeeper.protocol.messages.join_group_request import JoinGroupRequestProtocol as JoinGroupRequestProtocol
    from groupkeeper.protocol.messages.join_group_response import JoinGroupResponse as JoinGroupResponse
    from groupkeeper.protocol.messages.join_group_response import JoinGroupResponseMember as JoinGroupResponseMember
    from groupkeeper.protocol.messages.kraft_version_record import KRaftVersionRecord as KRaftVersionRecord
    from groupkeeper.protocol.messages.streams_group_metadata_value import LastAssignmentConfig as LastAssignmentConfig
    from groupkeeper.protocol.messages.leader_change_message import LeaderChangeMessage as LeaderChangeMessage
    from groupkeeper.protocol.messages.leave_group_request import LeaveGroupRequest as LeaveGroupRequest
    from groupkeeper.protocol.messages.leave_group_response import LeaveGroupResponse as LeaveGroupResponse
    from groupkeeper.protocol.messages.legacy_offset_commit_key import LegacyOffsetCommitKey as LegacyOffsetCommitKey
    from groupkeeper.protocol.messages.legacy_offset_commit_value import LegacyOffsetCommitValue as LegacyOffsetCommitValue
    from groupkeeper.protocol.messages.list_config_resources_request import ListConfigResourcesRequest as ListConfigResourcesRequest
    from groupkeeper.protocol.messages.list_config_resources_response import ListConfigResourcesResponse as ListConfigResourcesResponse
    from groupkeeper.protocol.messages.list_groups_request import ListGroupsRequest as ListGroupsRequest
    from groupkeeper.protocol.messages.list_groups_response import ListGroupsResponse as ListGroupsResponse
    from groupkeeper.protocol.messages.list_offsets_request import ListOffsetsPartition as ListOffsetsPartition
    from groupkeeper.protocol.messages.list_offsets_response import ListOffsetsPartitionResponse as ListOffsetsPartitionResponse
    from groupkeeper.protocol.messages.list_offsets_request import ListOffsetsRequest as ListOffsetsRequest
    from groupkeeper.protocol.messages.list_offsets_response import ListOffsetsResponse as ListOffsetsResponse
    from groupkeeper.protocol.messages.list_offsets_request import ListOffsetsTopic as ListOffsetsTopic
    from groupkeeper.protocol.messages.list_offsets_response import ListOffsetsTopicResponse as ListOffsetsTopicResponse
    from groupkeeper.protocol.messages.list_partition_reassignments_request import ListPartitionReassignmentsRequest as ListPartitionReassignmentsRequest
    from groupkeeper.protocol.messages.list_partition_reassignments_response import ListPartitionReassignmentsResponse as ListPartitionReassignmentsResponse
    from groupkeeper.protocol.messages.list_partition_reassignments_request import ListPartitionReassignmentsTopics as ListPartitionReassignmentsTopics
    from groupkeeper.protocol.messages.list_transactions_request import ListTransactionsRequest as ListTransactionsRequest
    from groupkeeper.protocol.messages.list_transactions_response import ListTransactionsResponse as ListTransactionsResponse
    from groupkeeper.protocol.messages.list_groups_response import ListedGroup as ListedGroup
    from groupkeeper.protocol.messages.leave_group_request import MemberIdentity as MemberIdentity
    from groupkeeper.protocol.messages.group_metadata_value import MemberMetadata as MemberMetadata
    from groupkeeper.protocol.messages.leave_group_response import MemberResponse as MemberResponse
    from groupkeeper.protocol.messages.metadata_request import MetadataRequest as MetadataRequest
    from groupkeeper.protocol.messages.metadata_request import MetadataRequestTopic as MetadataRequestTopic
    from groupkeeper.protocol.messages.metadata_response import MetadataResponse as MetadataResponse
    from groupkeeper.protocol.messages.metadata_response import MetadataResponseBroker as MetadataResponseBroker
    from groupkeeper.protocol.messages.metadata_response import MetadataResponsePartition as MetadataResponsePartition
    from groupkeeper.protocol.messages.metadata_response import MetadataResponseTopic as MetadataResponseTopic
    from groupkeeper.protocol.messages.describe_quorum_response import Node as Node
    from groupkeeper.protocol.messages.offset_commit_key import OffsetCommitKey as OffsetCommitKey
    from groupkeeper.protocol.messages.offset_commit_request import OffsetCommitRequest as OffsetCommitRequest
    from groupkeeper.protocol.messages.offset_commit_request import OffsetCommitRequestPartition as OffsetCommitRequestPartition
    from groupkeeper.protocol.messages.offset_commit_request import OffsetCommitRequestTopic as OffsetCommitRequestTopic
    from groupkeeper.protocol.messages.offset_commit_response import OffsetCommitResponse as OffsetCommitResponse
    from groupkeeper.protocol.messages.offset_commit_response import OffsetCommitResponsePartition as OffsetCommitResponsePartition
    from groupkeeper.protocol.messages.offset_commit_response import OffsetCommitResponseTopic as OffsetCommitResponseTopic
    from groupkeeper.protocol.messages.offset_commit_value import OffsetCommitValue as OffsetCommitValue
    from groupkeeper.protocol.messages.offset_delete_request import OffsetDeleteRequest as OffsetDeleteRequest
    from groupkeeper.protocol.messages.offset_delete_request import OffsetDeleteRequestPartition as OffsetDeleteRequestPartition
    from groupkeeper.protocol.messages.offset_delete_request import OffsetDeleteRequestTopic as OffsetDeleteRequestTopic
    from groupkeeper.protocol.messages.offset_delete_response import OffsetDeleteResponse as OffsetDeleteResponse
    from groupkeeper.protocol.messages.offset_delete_response import OffsetDeleteResponsePartition as OffsetDeleteResponsePartition
    from groupkeeper.protocol.messages.offset_delete_response import OffsetDeleteResponseTopic as OffsetDeleteResponseTopic
    from groupkeeper.protocol.messages.offset_fetch_request import OffsetFetchRequest as OffsetFetchRequest
    from groupkeeper.protocol.messages.offset_fetch_request import OffsetFetchRequestGroup as OffsetFetchRequestGroup
    from groupkeeper.protocol.messages.offset_fetch_request import OffsetFetchRequestTopic as OffsetFetchRequestTopic
    from groupkeeper.protocol.messages.offset_fetch_request import OffsetFetchRequestTopics as OffsetFetchRequestTopics
    from groupkeeper.protocol.messages.offset_fetch_response import OffsetFetchResponse as OffsetFetchResponse
    from groupkeeper.protocol.messages.offset_fetch_response import OffsetFetchResponseGroup as OffsetFetchResponseGroup
    from groupkeeper.protocol.messages.offset_fetch_response import OffsetFetchResponsePartition as OffsetFetchResponsePartition
    from groupkeeper.protocol.messages.offset_fetch_response import OffsetFetchResponsePartitions as OffsetFetchResponsePartitions
    from groupkeeper.protocol.messages.offset_fetch_response import OffsetFetchResponseTopic as OffsetFetchResponseTopic
    from groupkeeper.protocol.messages.offset_fetch_response import OffsetFetchResponseTopics as OffsetFetchResponseTopics
    from groupkeeper.protocol.messages.offset_for_leader_epoch_request import OffsetForLeaderEpochRequest as OffsetForLeaderEpochRequest
    from groupkeeper.protocol.messages.offset_for_leader_epoch_response import OffsetForLeaderEpochResponse as OffsetForLeaderEpochResponse
    from groupkeeper.protocol.messages.offset_for_leader_epoch_request import OffsetForLeaderPartition as OffsetForLeaderPartition
    from groupkeeper.protocol.messages.offset_for_leader_epoch_request import OffsetForLeaderTopic as OffsetForLeaderTopic
    from groupkeeper.protocol.messages.offset_for_leader_epoch_response import OffsetForLeaderTopicResult as OffsetForLeaderTopicResult
    from groupkeeper.protocol.messages.list_partition_reassignments_response import OngoingPartitionReassignment as OngoingPartitionReassignment
    from groupkeeper.protocol.messages.list_partition_reassignments_response import OngoingTopicReassignment as OngoingTopicReassignment
    from groupkeeper.protocol.messages.alter_client_quotas_request import OpData as OpData
    from groupkeeper.protocol.messages.consumer_group_partition_metadata_value import PartitionMetadata as PartitionMetadata
    from groupkeeper.protocol.messages.produce_request import PartitionProduceData as PartitionProduceData
    from groupkeeper.protocol.messages.produce_response import PartitionProduceResponse as PartitionProduceResponse
    from groupkeeper.protocol.messages.describe_producers_response import PartitionResponse as PartitionResponse
    from groupkeeper.protocol.messages.transaction_log_value import PartitionsSchema as PartitionsSchema
    from groupkeeper.protocol.messages.produce_request import ProduceRequest as ProduceRequest
    from groupkeeper.protocol.messages.produce_response import ProduceResponse as ProduceResponse
    from groupkeeper.protocol.messages.describe_producers_response import ProducerState as ProducerState
    from groupkeeper.protocol.messages.push_telemetry_request import PushTelemetryRequest as PushTelemetryRequest
    from groupkeeper.protocol.messages.push_telemetry_response import PushTelemetryResponse as PushTelemetryResponse
    from groupkeeper.protocol.messages.read_share_group_state_request import ReadShareGroupStateRequest as ReadShareGroupStateRequest
    from groupkeeper.protocol.messages.read_share_group_state_response import ReadShareGroupStateResponse as ReadShareGroupStateResponse
    from groupkeeper.protocol.messages.read_share_group_state_summary_request import ReadShareGroupStateSummaryRequest as ReadShareGroupStateSummaryRequest
    from groupkeeper.protocol.messages.read_share_group_state_summary_response import ReadShareGroupStateSummaryResponse as ReadShareGroupStateSummaryResponse
    from groupkeeper.protocol.messages.read_share_group_state_request import ReadStateData as ReadStateData
    from groupkeeper.protocol.messages.read_share_group_state_response import ReadStateResult as ReadStateResult
    from groupkeeper.protocol.messages.read_share_group_state_summary_request import ReadStateSummaryData as ReadStateSummaryData
    from groupkeeper.protocol.messages.read_share_group_state_summary_response import ReadStateSummaryResult as ReadStateSummaryResult
    from groupkeeper.protocol.messages.alter_partition_reassignments_request import ReassignablePartition as ReassignablePartition
    from groupkeeper.protocol.messages.alter_partition_reassignments_response import ReassignablePartitionResponse as ReassignablePartitionResponse
    from groupkeeper.protocol.messages.alter_partition_reassignments_request import ReassignableTopic as ReassignableTopic
    from groupkeeper.protocol.messages.alter_partition_reassignments_response import ReassignableTopicResponse as ReassignableTopicResponse
    from groupkeeper.protocol.messages.remove_raft_voter_request import RemoveRaftVoterRequest as RemoveRaftVoterRequest
    from groupkeeper.protocol.messages.remove_raft_voter_response import RemoveRaftVoterResponse as RemoveRaftVoterResponse
    from groupkeeper.protocol.messages.renew_delegation_token_request import RenewDelegationTokenRequest as RenewDelegationTokenRequest
    from groupkeeper.protocol.messages.renew_delegation_token_response import RenewDelegationTokenResponse as RenewDelegationTokenResponse
    from groupkeeper.protocol.messages.elect_leaders_response import ReplicaElectionResult as ReplicaElectionResult
    from groupkeeper.protocol.messages.end_quorum_epoch_request import ReplicaInfo as ReplicaInfo
    from groupkeeper.protocol.messages.request_header import RequestHeader as RequestHeader
    from groupkeeper.protocol.messages.response_header import ResponseHeader as ResponseHeader
    from groupkeeper.protocol.messages.sasl_authenticate_request import SaslAuthenticateRequest as SaslAuthenticateRequest
    from groupkeeper.protocol.messages.sasl_authenticate_response import SaslAuthenticateResponse as SaslAuthenticateResponse
    from groupkeeper.protocol.messages.sasl_handshake_request import SaslHandshakeRequest as SaslHandshakeRequest
    from groupkeeper.protocol.messages.sasl_handshake_response import SaslHandshakeResponse as SaslHandshakeResponse
    from groupkeeper.protocol.messages.alter_user_scram_credentials_request import ScramCredentialDeletion as ScramCredentialDeletion
    from groupkeeper.protocol.messages.alter_user_scram_credentials_request import ScramCredentialUpsertion as ScramCredentialUpsertion
    from groupkeeper.protocol.messages.share_acknowledge_request import ShareAcknowledgeRequest as ShareAcknowledgeRequest
    from groupkeeper.protocol.messages.share_acknowledge_response import ShareAcknowledgeResponse as ShareAcknowledgeResponse
    from groupkeeper.protocol.messages.share_acknowledge_response import ShareAcknowledgeTopicResponse as ShareAcknowledgeTopicResponse
    from groupkeeper.protocol.messages.share_fetch_request import ShareFetchRequest as ShareFetchRequest
    from groupkeeper.protocol.messages.share_fetch_response import ShareFetchResponse as ShareFetchResponse
    from groupkeeper.protocol.messages.share_fetch_response import ShareFetchableTopicResponse as ShareFetchableTopicResponse
    from groupkeeper.protocol.messages.share_group_current_member_assignment_key import ShareGroupCurrentMemberAssignmentKey as ShareGroupCurrentMemberAssignmentKey
    from groupkeeper.protocol.messages.share_group_current_member_assignment_value import ShareGroupCurrentMemberAssignmentValue as ShareGroupCurrentMemberAssignmentValue
    from groupkeeper.protocol.messages.share_group_describe_request import ShareGroupDescribeRequest as ShareGroupDescribeRequest
    from groupkeeper.protocol.messages.share_group_describe_response import ShareGroupDescribeResponse as ShareGroupDescribeResponse
    from groupkeeper.protocol.messages.share_group_heartbeat_request import ShareGroupHeartbeatRequest as ShareGroupHeartbeatRequest
    from groupkeeper.protocol.messages.share_group_heartbeat_response import ShareGroupHeartbeatResponse as ShareGroupHeartbeatResponse
    from groupkeeper.protocol.messages.share_group_member_metadata_key import ShareGroupMemberMetadataKey as ShareGroupMemberMetadataKey
    from groupkeeper.protocol.messages.share_group_member_metadata_value import ShareGroupMemberMetadataValue as ShareGroupMemberMetadataValue
    from groupkeeper.protocol.messages.share_group_metadata_key import ShareGroupMetadataKey as ShareGroupMetadataKey
    from groupkeeper.protocol.messages.share_group_metadata_value import ShareGroupMetadataValue as ShareGroupMetadataValue
    from groupkeeper.protocol.messages.share_group_state_partition_metadata_key import ShareGroupStatePartitionMetadataKey as ShareGroupStatePartitionMetadataKey
    from groupkeeper.protocol.messages.share_group_state_partition_metadata_value import ShareGroupStatePartitionMetadataValue as ShareGroupStatePartitionMetadataValue
    from groupkeeper.protocol.messages.share_group_target_assignment_member_key import ShareGroupTargetAssignmentMemberKey as ShareGroupTargetAssignmentMemberKey
    from groupkeeper.protocol.messages.share_group_target_assignment_member_value import ShareGroupTargetAssignmentMemberValue as ShareGroupTargetAssignmentMemberValue
    from groupkeeper.protocol.messages.share_group_target_assignment_metadata_key import ShareGroupTargetAssignmentMetadataKey as ShareGroupTargetAssignmentMetadataKey
    from groupkeeper.protocol.messages.share_group_target_assignment_metadata_value import ShareGroupTargetAssignmentMetadataValue as ShareGroupTargetAssignmentMetadataValue
    from groupkeeper.protocol.messages.share_snapshot_key import ShareSnapshotKey as ShareSnapshotKey
    from groupkeeper.protocol.messages.share_snapshot_value import ShareSnapshotValue as ShareSnapshotValue
    from groupkeeper.protocol.messages.share_update_key import ShareUpdateKey as ShareUpdateKey
    from groupkeeper.protocol.messages.share_update_value import ShareUpdateValue as ShareUpdateValue
    from groupkeeper.protocol.messages.snapshot_footer_record import SnapshotFooterRecord as SnapshotFooterRecord
    from groupkeeper.protocol.messages.snapshot_header_record import SnapshotHeaderRecord as SnapshotHeaderRecord
    from groupkeeper.protocol.messages.streams_group_heartbeat_response import Status as Status
    from groupkeeper.protocol.messages.streams_group_current_member_assignment_key import StreamsGroupCurrentMemberAssignmentKey as StreamsGroupCurrentMemberAssignmentKey
    from groupkeeper.protocol.messages.streams_group_current_member_assignment_value import StreamsGroupCurrentMemberAssignmentValue as StreamsGroupCurrentMemberAssignmentValue
    from groupkeeper.protocol.messages.streams_group_describe_request import StreamsGroupDescribeRequest as StreamsGroupDescribeRequest
    from groupkeeper.protocol.messages.streams_group_describe_response import StreamsGroupDescribeResponse as StreamsGroupDescribeResponse
    from groupkeeper.protocol.messages.streams_group_heartbeat_request import StreamsGroupHeartbeatRequest as StreamsGroupHeartbeatRequest
    from groupkeeper.protocol.messages.streams_group_heartbeat_response import StreamsGroupHeartbeatResponse as StreamsGroupHeartbeatResponse
    from groupkeeper.protocol.messages.streams_group_member_metadata_key import StreamsGroupMemberMetadataKey as StreamsGroupMemberMetadataKey
    from groupkeeper.protocol.messages.streams_group_member_metadata_value import StreamsGroupMemberMetadataValue as StreamsGroupMemberMetadataValue
    from groupkeeper.protocol.messages.streams_group_metadata_key import StreamsGroupMetadataKey as StreamsGroupMetadataKey
    from groupkeeper.protocol.messages.streams_group_metadata_value import StreamsGroupMetadataValue as StreamsGroupMetadataValue
    from groupkeeper.protocol.messages.streams_group_target_assignment_member_key import StreamsGroupTargetAssignmentMemberKey as StreamsGroupTargetAssignmentMemberKey
    from groupkeeper.protocol.messages.streams_group_target_assignment_member_value import StreamsGroupTargetAssignmentMemberValue as StreamsGroupTargetAssignmentMemberValue
    from groupkeeper.protocol.messages.streams_group_target_assignment_metadata_key import StreamsGroupTargetAssignmentMetadataKey as StreamsGroupTargetAssignmentMetadataKey
    from groupkeeper.protocol.messages.streams_group_target_assignment_metadata_value import StreamsGroupTargetAssignmentMetadataValue as StreamsGroupTargetAssignmentMetadataValue
    from groupkeeper.protocol.messages.streams_group_topology_description_update_request import StreamsGroupTopologyDescriptionUpdateRequest as StreamsGroupTopologyDescriptionUpdateRequest
    from groupkeeper.protocol.messages.streams_group_topology_description_update_response import StreamsGroupTopologyDescriptionUpdateResponse as StreamsGroupTopologyDescriptionUpdateResponse
    from groupkeeper.protocol.messages.streams_group_topology_key import StreamsGroupTopologyKey as StreamsGroupTopologyKey
    from groupkeeper.protocol.messages.streams_group_topology_value import StreamsGroupTopologyValue as StreamsGroupTopologyValue
    from groupkeeper.protocol.messages.api_versions_response import SupportedFeatureKey as SupportedFeatureKey
    from groupkeeper.protocol.messages.sync_group_request import SyncGroupRequest as SyncGroupRequest
    from groupkeeper.protocol.messages.sync_group_request import SyncGroupRequestAssignment as SyncGroupRequestAssignment
    from groupkeeper.protocol.messages.sync_group_response import SyncGroupResponse as SyncGroupResponse
    from groupkeeper.protocol.messages.streams_group_topology_value import TopicConfig as TopicConfig
    from groupkeeper.protocol.messages.consumer_group_partition_metadata_value import TopicMetadata as TopicMetadata
    from groupkeeper.protocol.messages.share_group_state_partition_metadata_value import TopicPartitionsInfo as TopicPartitionsInfo
    from groupkeeper.protocol.messages.produce_request import TopicProduceData as TopicProduceData
    from groupkeeper.protocol.messages.produce_response import TopicProduceResponse as TopicProduceResponse
    from groupkeeper.protocol.messages.describe_producers_response import TopicResponse as TopicResponse
    from groupkeeper.protocol.messages.transaction_log_key import TransactionLogKey as TransactionLogKey
    from groupkeeper.protocol.messages.transaction_log_value import TransactionLogValue as TransactionLogValue
    from groupkeeper.protocol.messages.txn_offset_commit_request import TxnOffsetCommitRequest as TxnOffsetCommitRequest
    from groupkeeper.protocol.messages.txn_offset_commit_request import TxnOffsetCommitRequestPartition as TxnOffsetCommitRequestPartition
    from groupkeeper.protocol.messages.txn_offset_commit_request import TxnOffsetCommitRequestTopic as TxnOffsetCommitRequestTopic
    from groupkeeper.protocol.messages.txn_offset_commit_response import TxnOffsetCommitResponse as TxnOffsetCommitResponse
    from groupkeeper.protocol.messages.txn_offset_commit_response import TxnOffsetCommitResponsePartition as TxnOffsetCommitResponsePartition
    from groupkeeper.protocol.messages.txn_offset_commit_response import TxnOffsetCommitResponseTopic as TxnOffsetCommitResponseTopic
    from groupkeeper.protocol.messages.unregister_broker_request import UnregisterBrokerRequest as UnregisterBrokerRequest
    from groupkeeper.protocol.messages.unregister_broker_response import UnregisterBrokerResponse as UnregisterBrokerResponse
    from groupkeeper.protocol.messages.unregister_controller_request import UnregisterControllerRequest as UnregisterControllerRequest
    from groupkeeper.protocol.messages.unregister_controller_response import UnregisterControllerResponse as UnregisterControllerResponse
    from groupkeeper.protocol.messages.update_features_response import UpdatableFeatureResult as UpdatableFeatureResult
    from groupkeeper.protocol.messages.update_features_request import UpdateFeaturesRequest as UpdateFeaturesRequest
    from groupkeeper.protocol.messages.update_features_response import UpdateFeaturesResponse as UpdateFeaturesResponse
    from groupkeeper.protocol.messages.update_raft_voter_request import UpdateRaftVoterRequest as UpdateRaftVoterRequest
    from groupkeeper.protocol.messages.update_raft_voter_response import UpdateRaftVoterResponse as UpdateRaftVoterResponse
    from groupkeeper.protocol.messages.describe_user_scram_credentials_request import UserName as UserName
    from groupkeeper.protocol.messages.describe_client_quotas_response import ValueData as ValueData
    from groupkeeper.protocol.messages.vote_request import VoteRequest as VoteRequest
    from groupkeeper.protocol.messages.vote_response import VoteResponse as VoteResponse
    from groupkeeper.protocol.messages.voters_record import VotersRecord as VotersRecord
    from groupkeeper.protocol.messages.write_txn_markers_request import WritableTxnMarker as WritableTxnMarker
    from groupkeeper.protocol.messages.write_txn_markers_response import WritableTxnMarkerPartitionResult as WritableTxnMarkerPartitionResult
    from groupkeeper.protocol.messages.write_txn_markers_response import WritableTxnMarkerResult as WritableTxnMarkerResult
    from groupkeeper.protocol.messages.write_txn_markers_request import WritableTxnMarkerTopic as WritableTxnMarkerTopic
    from groupkeeper.protocol.messages.write_txn_markers_response import WritableTxnMarkerTopicResult as WritableTxnMarkerTopicResult
    from groupkeeper.protocol.messages.write_share_group_state_request import WriteShareGroupStateRequest as WriteShareGroupStateRequest
    from groupkeeper.protocol.messages.write_share_group_state_response import WriteShareGroupStateResponse as WriteShareGroupStateResponse
    from groupkeeper.protocol.messages.write_share_group_state_request import WriteStateData as WriteStateData
    from groupkeeper.protocol.messages.write_share_group_state_response import WriteStateResult as WriteStateResult
    from groupkeeper.protocol.messages.write_txn_markers_request import WriteTxnMarkersRequest as WriteTxnMarkersRequest
    from groupkeeper.protocol.messages.write_txn_markers_response import WriteTxnMarkersResponse as WriteTxnMarkersResponse
else:
    _MODULES = {
        "AbortedTransaction": "fetch_response",
        "AbortedTxn": "aborted_txn",
        "AcknowledgePartition": "share_acknowledge_request",
        "AcknowledgeTopic": "share_acknowledge_request",
        "AclCreation": "create_acls_request",
        "AclCreationResult": "create_acls_response",
        "AclDescription": "describe_acls_response",
        "AcquiredRecords": "share_fetch_response",
        "AddOffsetsToTxnRequest": "add_offsets_to_txn_request",
        "AddOffsetsToTxnResponse": "add_offsets_to_txn_response",
        "AddPartitionsToTxnPartitionResult": "add_partitions_to_txn_response",
        "AddPartitionsToTxnRequest": "add_partitions_to_txn_request",
        "AddPartitionsToTxnResponse": "add_partitions_to_txn_response",
        "AddPartitionsToTxnResult": "add_partitions_to_txn_response",
        "AddPartitionsToTxnTopic": "add_partitions_to_txn_request",
        "AddPartitionsToTxnTopicResult": "add_partitions_to_txn_response",
        "AddPartitionsToTxnTransaction": "add_partitions_to_txn_request",
        "AddRaftVoterRequest": "add_raft_voter_request",
        "AddRaftVoterResponse": "add_raft_voter_response",
        "AllocateProducerIdsRequest": "allocate_producer_ids_request",
        "AllocateProducerIdsResponse": "allocate_producer_ids_response",
        "AlterClientQuotasRequest": "alter_client_quotas_request",
        "AlterClientQuotasResponse": "alter_client_quotas_response",
        "AlterConfigsRequest": "alter_configs_request",
        "AlterConfigsResponse": "alter_configs_response",
        "AlterPartitionReassignmentsRequest": "alter_partition_reassignments_request",
        "AlterPartitionReassignmentsResponse": "alter_partition_reassignments_response",
        "AlterPartitionRequest": "alter_partition_request",
        "AlterPartitionResponse": "alter_partition_response",
        "AlterReplicaLogDir": "alter_replica_log_dirs_request",
        "AlterReplicaLogDirPartitionResult": "alter_replica_log_dirs_response",
        "AlterReplicaLogDirTopic": "alter_replica_log_dirs_request",
        "AlterReplicaLogDirTopicResult": "alter_replica_log_dirs_response",
        "AlterReplicaLogDirsRequest": "alter_replica_log_dirs_request",
        "AlterReplicaLogDirsResponse": "alter_replica_log_dirs_response",
        "AlterShareGroupOffsetsRequest": "alter_share_group_offsets_request",
        "AlterShareGroupOffsetsRequestPartition": "alter_share_group_offsets_request",
        "AlterShareGroupOffsetsRequestTopic": "alter_share_group_offsets_request",
        "AlterShareGroupOffsetsResponse": "alter_share_group_offsets_response",
        "AlterShareGroupOffsetsResponsePartition": "alter_share_group_offsets_response",
        "AlterShareGroupOffsetsResponseTopic": "alter_share_group_offsets_response",
        "AlterUserScramCredentialsRequest": "alter_user_scram_credentials_request",
        "AlterUserScramCredentialsResponse": "alter_user_scram_credentials_response",
        "AlterUserScramCredentialsResult": "alter_user_scram_credentials_response",
        "ApiVersion": "api_versions_response",
        "ApiVersionsRequest": "api_versions_request",
        "ApiVersionsResponse": "api_versions_response",
        "AssignReplicasToDirsRequest": "assign_replicas_to_dirs_request",
        "AssignReplicasToDirsResponse": "assign_replicas_to_dirs_response",
        "BatchIndexAndErrorMessage": "produce_response",
        "BeginQuorumEpochRequest": "begin_quorum_epoch_request",
        "BeginQuorumEpochResponse": "begin_quorum_epoch_response",
        "BrokerHeartbeatRequest": "broker_heartbeat_request",
        "BrokerHeartbeatResponse": "broker_heartbeat_response",
        "BrokerRegistrationRequest": "broker_registration_request",
        "BrokerRegistrationResponse": "broker_registration_response",
        "BrokerState": "alter_partition_request",
        "ClassicMemberMetadata": "consumer_group_member_metadata_value",
        "ClassicProtocol": "consumer_group_member_metadata_value",
        "ComponentData": "describe_client_quotas_request",
        "ConfigResource": "list_config_resources_response",
        "ConsumerGroupCurrentMemberAssignmentKey": "consumer_group_current_member_assignment_key",
        "ConsumerGroupCurrentMemberAssignmentValue": "consumer_group_current_member_assignment_value",
        "ConsumerGroupDescribeRequest": "consumer_group_describe_request",
        "ConsumerGroupDescribeResponse": "consumer_group_describe_response",
        "ConsumerGroupHeartbeatRequest": "consumer_group_heartbeat_request",
        "ConsumerGroupHeartbeatResponse": "consumer_group_heartbeat_response",
        "ConsumerGroupMemberMetadataKey": "consumer_group_member_metadata_key",
        "ConsumerGroupMemberMetadataValue": "consumer_group_member_metadata_value",
        "ConsumerGroupMetadataKey": "consumer_group_metadata_key",
        "ConsumerGroupMetadataValue": "consumer_group_metadata_value",
        "ConsumerGroupPartitionMetadataKey": "consumer_group_partition_metadata_key",
        "ConsumerGroupPartitionMetadataValue": "consumer_group_partition_metadata_value",
        "ConsumerGroupRegularExpressionKey": "consumer_group_regular_expression_key",
        "ConsumerGroupRegularExpressionValue": "consumer_group_regular_expression_value",
        "ConsumerGroupTargetAssignmentMemberKey": "consumer_group_target_assignment_member_key",
        "ConsumerGroupTargetAssignmentMemberValue": "consumer_group_target_assignment_member_value",
        "ConsumerGroupTargetAssignmentMetadataKey": "consumer_group_target_assignment_metadata_key",
        "ConsumerGroupTargetAssignmentMetadataValue": "consumer_group_target_assignment_metadata_value",
        "ConsumerProtocolAssignment": "consumer_protocol_assignment",
        "ConsumerProtocolSubscription": "consumer_protocol_subscription",
        "ControlRecordTypeSchema": "control_record_type_schema",
        "ControllerRegistrationRequest": "controller_registration_request",
        "ControllerRegistrationResponse": "controller_registration_response",
        "Coordinator": "find_coordinator_response",
        "CreatableRenewers": "create_delegation_token_request",
        "CreatableReplicaAssignment": "create_topics_request",
        "CreatableTopic": "create_topics_request",
        "CreatableTopicConfig": "create_topics_request",
        "CreatableTopicConfigs": "create_topics_response",
        "CreatableTopicResult": "create_topics_response",
        "CreateAclsRequest": "create_acls_request",
        "CreateAclsResponse": "create_acls_response",
        "CreateDelegationTokenRequest": "create_delegation_token_request",
        "CreateDelegationTokenResponse": "create_delegation_token_response",
        "CreatePartitionsAssignment": "create_partitions_request",
        "CreatePartitionsRequest": "create_partitions_request",
        "CreatePartitionsResponse": "create_partitions_response",
        "CreatePartitionsTopic": "create_partitions_request",
        "CreatePartitionsTopicResult": "create_partitions_response",
        "CreateTopicsRequest": "create_topics_request",
        "CreateTopicsResponse": "create_topics_response",
        "CredentialInfo": "describe_user_scram_credentials_response",
        "CurrentLeader": "update_raft_voter_response",
        "DefaultPrincipalData": "default_principal_data",
        "DeletableGroupResult": "delete_groups_response",
        "DeletableTopicResult": "delete_topics_response",
        "DeleteAclsFilter": "delete_acls_request",
        "DeleteAclsFilterResult": "delete_acls_response",
        "DeleteAclsMatchingAcl": "delete_acls_response",
        "DeleteAclsRequest": "delete_acls_request",
        "DeleteAclsResponse": "delete_acls_response",
        "DeleteGroupsRequest": "delete_groups_request",
        "DeleteGroupsResponse": "delete_groups_response",
        "DeleteRecordsPartition": "delete_records_request",
        "DeleteRecordsPartitionResult": "delete_records_response",
        "DeleteRecordsRequest": "delete_records_request",
        "DeleteRecordsResponse": "delete_records_response",
        "DeleteRecordsTopic": "delete_records_request",
        "DeleteRecordsTopicResult": "delete_records_response",
        "DeleteShareGroupOffsetsRequest": "delete_share_group_offsets_request",
        "DeleteShareGroupOffsetsRequestTopic": "delete_share_group_offsets_request",
        "DeleteShareGroupOffsetsResponse": "delete_share_group_offsets_response",
        "DeleteShareGroupOffsetsResponseTopic": "delete_share_group_offsets_response",
        "DeleteShareGroupStateRequest": "delete_share_group_state_request",
        "DeleteShareGroupStateResponse": "delete_share_group_state_response",
        "DeleteStateData": "delete_share_group_state_request",
        "DeleteStateResult": "delete_share_group_state_response",
        "DeleteTopicState": "delete_topics_request",
        "DeleteTopicsRequest": "delete_topics_request",
        "DeleteTopicsResponse": "delete_topics_response",
        "DescribableLogDirTopic": "describe_log_dirs_request",
        "DescribeAclsRequest": "describe_acls_request",
        "DescribeAclsResource": "describe_acls_response",
        "DescribeAclsResponse": "describe_acls_response",
        "DescribeClientQuotasRequest": "describe_client_quotas_request",
        "DescribeClientQuotasResponse": "describe_client_quotas_response",
        "DescribeClusterBroker": "describe_cluster_response",
        "DescribeClusterRequest": "describe_cluster_request",
        "DescribeClusterResponse": "describe_cluster_response",
        "DescribeConfigsRequest": "describe_configs_request",
        "DescribeConfigsResource": "describe_configs_request",
        "DescribeConfigsResourceResult": "describe_configs_response",
        "DescribeConfigsResponse": "describe_configs_response",
        "DescribeConfigsResult": "describe_configs_response",
        "DescribeConfigsSynonym": "describe_configs_response",
        "DescribeDelegationTokenOwner": "describe_delegation_token_request",
        "DescribeDelegationTokenRequest": "describe_delegation_token_request",
        "DescribeDelegationTokenResponse": "describe_delegation_token_response",
        "DescribeGroupsRequest": "describe_groups_request",
        "DescribeGroupsResponse": "describe_groups_response",
        "DescribeLogDirsPartition": "describe_log_dirs_response",
        "DescribeLogDirsRequest": "describe_log_dirs_request",
        "DescribeLogDirsResponse": "describe_log_dirs_response",
        "DescribeLogDirsResult": "describe_log_dirs_response",
        "DescribeLogDirsTopic": "describe_log_dirs_response",
        "DescribeProducersRequest": "describe_producers_request",
        "DescribeProducersResponse": "describe_producers_response",
        "DescribeQuorumRequest": "describe_quorum_request",
        "DescribeQuorumResponse": "describe_quorum_response",
        "DescribeShareGroupOffsetsRequest": "describe_share_group_offsets_request",
        "DescribeShareGroupOffsetsRequestGroup": "describe_share_group_offsets_request",
        "DescribeShareGroupOffsetsRequestTopic": "describe_share_group_offsets_request",
        "DescribeShareGroupOffsetsResponse": "describe_share_group_offsets_response",
        "DescribeShareGroupOffsetsResponseGroup": "describe_share_group_offsets_response",
        "DescribeShareGroupOffsetsResponsePartition": "describe_share_group_offsets_response",
        "DescribeShareGroupOffsetsResponseTopic": "describe_share_group_offsets_response",
        "DescribeTopicPartitionsRequest": "describe_topic_partitions_request",
        "DescribeTopicPartitionsResponse": "describe_topic_partitions_response",
        "DescribeTopicPartitionsResponsePartition": "describe_topic_partitions_response",
        "DescribeTopicPartitionsResponseTopic": "describe_topic_partitions_response",
        "DescribeTransactionsRequest": "describe_transactions_request",
        "DescribeTransactionsResponse": "describe_transactions_response",
        "DescribeUserScramCredentialsRequest": "describe_user_scram_credentials_request",
        "DescribeUserScramCredentialsResponse": "describe_user_scram_credentials_response",
        "DescribeUserScramCredentialsResult": "describe_user_scram_credentials_response",
        "DescribedDelegationToken": "describe_delegation_token_response",
        "DescribedDelegationTokenRenewer": "describe_delegation_token_response",
        "DescribedGroupMember": "describe_groups_response",
        "ElectLeadersRequest": "elect_leaders_request",
        "ElectLeadersResponse": "elect_leaders_response",
        "EndQuorumEpochRequest": "end_quorum_epoch_request",
        "EndQuorumEpochResponse": "end_quorum_epoch_response",
        "EndTxnMarker": "end_txn_marker",
        "EndTxnRequest": "end_txn_request",
        "EndTxnResponse": "end_txn_response",
        "EndpointToPartitions": "streams_group_heartbeat_response",
        "EnvelopeRequest": "envelope_request",
        "EnvelopeResponse": "envelope_response",
        "ExpireDelegationTokenRequest": "expire_delegation_token_request",
        "ExpireDelegationTokenResponse": "expire_delegation_token_response",
        "FeatureUpdateKey": "update_features_request",
        "FetchRequest": "fetch_request",
        "FetchResponse": "fetch_response",
        "FetchSnapshotRequest": "fetch_snapshot_request",
        "FetchSnapshotResponse": "fetch_snapshot_response",
        "FetchableTopicResponse": "fetch_response",
        "FinalizedFeatureKey": "api_versions_response",
        "FindCoordinatorRequest": "find_coordinator_request",
        "FindCoordinatorResponse": "find_coordinator_response",
        "GetTelemetrySubscriptionsRequest": "get_telemetry_subscriptions_request",
        "GetTelemetrySubscriptionsResponse": "get_telemetry_subscriptions_response",
        "GroupMetadataKey": "group_metadata_key",
        "GroupMetadataValue": "group_metadata_value",
        "HeartbeatRequest": "heartbeat_request",
        "HeartbeatResponse": "heartbeat_response",
        "IncrementalAlterConfigsRequest": "incremental_alter_configs_request",
        "IncrementalAlterConfigsResponse": "incremental_alter_configs_response",
        "InitProducerIdRequest": "init_producer_id_request",
        "InitProducerIdResponse": "init_producer_id_response",
        "InitializeShareGroupStateRequest": "initialize_share_group_state_request",
        "InitializeShareGroupStateResponse": "initialize_share_group_state_response",
        "InitializeStateData": "initialize_share_group_state_request",
        "InitializeStateResult": "initialize_share_group_state_response",
        "JoinGroupRequest": "join_group_request",
        "JoinGroupRequestProtocol": "join_group_request",
        "JoinGroupResponse": "join_group_response",
        "JoinGroupResponseMember": "join_group_response",
        "KRaftVersionRecord": "kraft_version_record",
        "LastAssignmentConfig": "streams_group_metadata_value",
        "LeaderChangeMessage": "leader_change_message",
        "LeaveGroupRequest": "leave_group_request",
        "LeaveGroupResponse": "leave_group_response",
        "LegacyOffsetCommitKey": "legacy_offset_commit_key",
        "LegacyOffsetCommitValue": "legacy_offset_commit_value",
        "ListConfigResourcesRequest": "list_config_resources_request",
        "ListConfigResourcesResponse": "list_config_resources_response",
        "ListGroupsRequest": "list_groups_request",
        "ListGroupsResponse": "list_groups_response",
        "ListOffsetsPartition": "list_offsets_request",
        "ListOffsetsPartitionResponse": "list_offsets_response",
        "ListOffsetsRequest": "list_offsets_request",
        "ListOffsetsResponse": "list_offsets_response",
        "ListOffsetsTopic": "list_offsets_request",
        "ListOffsetsTopicResponse": "list_offsets_response",
        "ListPartitionReassignmentsRequest": "list_partition_reassignments_request",
        "ListPartitionReassignmentsResponse": "list_partition_reassignments_response",
        "ListPartitionReassignmentsTopics": "list_partition_reassignments_request",
        "ListTransactionsRequest": "list_transactions_request",
        "ListTransactionsResponse": "list_transactions_response",
        "ListedGroup": "list_groups_response",
        "MemberIdentity": "leave_group_request",
        "MemberMetadata": "group_metadata_value",
        "MemberResponse": "leave_group_response",
        "MetadataRequest": "metadata_request",
        "MetadataRequestTopic": "metadata_request",
        "MetadataResponse": "metadata_response",
        "MetadataResponseBroker": "metadata_response",
        "MetadataResponsePartition": "metadata_response",
        "MetadataResponseTopic": "metadata_response",
        "Node": "describe_quorum_response",
        "OffsetCommitKey": "offset_commit_key",
        "OffsetCommitRequest": "offset_commit_request",
        "OffsetCommitRequestPartition": "offset_commit_request",
        "OffsetCommitRequestTopic": "offset_commit_request",
        "OffsetCommitResponse": "offset_commit_response",
        "OffsetCommitResponsePartition": "offset_commit_response",
        "OffsetCommitResponseTopic": "offset_commit_response",
        "OffsetCommitValue": "offset_commit_value",
        "OffsetDeleteRequest": "offset_delete_request",
        "OffsetDeleteRequestPartition": "offset_delete_request",
        "OffsetDeleteRequestTopic": "offset_delete_request",
        "OffsetDeleteResponse": "offset_delete_response",
        "OffsetDeleteResponsePartition": "offset_delete_response",
        "OffsetDeleteResponseTopic": "offset_delete_response",
        "OffsetFetchRequest": "offset_fetch_request",
        "OffsetFetchRequestGroup": "offset_fetch_request",
        "OffsetFetchRequestTopic": "offset_fetch_request",
        "OffsetFetchRequestTopics": "offset_fetch_request",
        "OffsetFetchResponse": "offset_fetch_response",
        "OffsetFetchResponseGroup": "offset_fetch_response",
        "OffsetFetchResponsePartition": "offset_fetch_response",
        "OffsetFetchResponsePartitions": "offset_fetch_response",
        "OffsetFetchResponseTopic": "offset_fetch_response",
        "OffsetFetchResponseTopics": "offset_fetch_response",
        "OffsetForLeaderEpochRequest": "offset_for_leader_epoch_request",
        "OffsetForLeaderEpochResponse": "offset_for_leader_epoch_response",
        "OffsetForLeaderPartition": "offset_for_leader_epoch_request",
        "OffsetForLeaderTopic": "offset_for_leader_epoch_request",
        "OffsetForLeaderTopicResult": "offset_for_leader_epoch_response",
        "OngoingPartitionReassignment": "list_partition_reassignments_response",
        "OngoingTopicReassignment": "list_partition_reassignments_response",
        "OpData": "alter_client_quotas_request",
        "PartitionMetadata": "consumer_group_partition_metadata_value",
        "PartitionProduceData": "produce_request",
        "PartitionProduceResponse": "produce_response",
        "PartitionResponse": "describe_producers_response",
        "PartitionsSchema": "transaction_log_value",
        "ProduceRequest": "produce_request",
        "ProduceResponse": "produce_response",
        "ProducerState": "describe_producers_response",
        "PushTelemetryRequest": "push_telemetry_request",
        "PushTelemetryResponse": "push_telemetry_response",
        "ReadShareGroupStateRequest": "read_share_group_state_request",
        "ReadShareGroupStateResponse": "read_share_group_state_response",
        "ReadShareGroupStateSummaryRequest": "read_share_group_state_summary_request",
        "ReadShareGroupStateSummaryResponse": "read_share_group_state_summary_response",
        "ReadStateData": "read_share_group_state_request",
        "ReadStateResult": "read_share_group_state_response",
        "ReadStateSummaryData": "read_share_group_state_summary_request",
        "ReadStateSummaryResult": "read_share_group_state_summary_response",
        "ReassignablePartition": "alter_partition_reassignments_request",
        "ReassignablePartitionResponse": "alter_partition_reassignments_response",
        "ReassignableTopic": "alter_partition_reassignments_request",
        "ReassignableTopicResponse": "alter_partition_reassignments_response",
        "RemoveRaftVoterRequest": "remove_raft_voter_request",
        "RemoveRaftVoterResponse": "remove_raft_voter_response",
        "RenewDelegationTokenRequest": "renew_delegation_token_request",
        "RenewDelegationTokenResponse": "renew_delegation_token_response",
        "ReplicaElectionResult": "elect_leaders_response",
        "ReplicaInfo": "end_quorum_epoch_request",
        "RequestHeader": "request_header",
        "ResponseHeader": "response_header",
        "SaslAuthenticateRequest": "sasl_authenticate_request",
        "SaslAuthenticateResponse": "sasl_authenticate_response",
        "SaslHandshakeRequest": "sasl_handshake_request",
        "SaslHandshakeResponse": "sasl_handshake_response",
        "ScramCredentialDeletion": "alter_user_scram_credentials_request",
        "ScramCredentialUpsertion": "alter_user_scram_credentials_request",
        "ShareAcknowledgeRequest": "share_acknowledge_request",
        "ShareAcknowledgeResponse": "share_acknowledge_response",
        "ShareAcknowledgeTopicResponse": "share_acknowledge_response",
        "ShareFetchRequest": "share_fetch_request",
        "ShareFetchResponse": "share_fetch_response",
        "ShareFetchableTopicResponse": "share_fetch_response",
        "ShareGroupCurrentMemberAssignmentKey": "share_group_current_member_assignment_key",
        "ShareGroupCurrentMemberAssignmentValue": "share_group_current_member_assignment_value",
        "ShareGroupDescribeRequest": "share_group_describe_request",
        "ShareGroupDescribeResponse": "share_group_describe_response",
        "ShareGroupHeartbeatRequest": "share_group_heartbeat_request",
        "ShareGroupHeartbeatResponse": "share_group_heartbeat_response",
        "ShareGroupMemberMetadataKey": "share_group_member_metadata_key",
        "ShareGroupMemberMetadataValue": "share_group_member_metadata_value",
        "ShareGroupMetadataKey": "share_group_metadata_key",
        "ShareGroupMetadataValue": "share_group_metadata_value",
        "ShareGroupStatePartitionMetadataKey": "share_group_state_partition_metadata_key",
        "ShareGroupStatePartitionMetadataValue": "share_group_state_partition_metadata_value",
        "ShareGroupTargetAssignmentMemberKey": "share_group_target_assignment_member_key",
        "ShareGroupTargetAssignmentMemberValue": "share_group_target_assignment_member_value",
        "ShareGroupTargetAssignmentMetadataKey": "share_group_target_assignment_metadata_key",
        "ShareGroupTargetAssignmentMetadataValue": "share_group_target_assignment_metadata_value",
        "ShareSnapshotKey": "share_snapshot_key",
        "ShareSnapshotValue": "share_snapshot_value",
        "ShareUpdateKey": "share_update_key",
        "ShareUpdateValue": "share_update_value",
        "SnapshotFooterRecord": "snapshot_footer_record",
        "SnapshotHeaderRecord": "snapshot_header_record",
        "Status": "streams_group_heartbeat_response",
        "StreamsGroupCurrentMemberAssignmentKey": "streams_group_current_member_assignment_key",
        "StreamsGroupCurrentMemberAssignmentValue": "streams_group_current_member_assignment_value",
        "StreamsGroupDescribeRequest": "streams_group_describe_request",
        "StreamsGroupDescribeResponse": "streams_group_describe_response",
        "StreamsGroupHeartbeatRequest": "streams_group_heartbeat_request",
        "StreamsGroupHeartbeatResponse": "streams_group_heartbeat_response",
        "StreamsGroupMemberMetadataKey": "streams_group_member_metadata_key",
        "StreamsGroupMemberMetadataValue": "streams_group_member_metadata_value",
        "StreamsGroupMetadataKey": "streams_group_metadata_key",
        "StreamsGroupMetadataValue": "streams_group_metadata_value",
        "StreamsGroupTargetAssignmentMemberKey": "streams_group_target_assignment_member_key",
        "StreamsGroupTargetAssignmentMemberValue": "streams_group_target_assignment_member_value",
        "StreamsGroupTargetAssignmentMetadataKey": "streams_group_target_assignment_metadata_key",
        "StreamsGroupTargetAssignmentMetadataValue": "streams_group_target_assignment_metadata_value",
        "StreamsGroupTopologyDescriptionUpdateRequest": "streams_group_topology_description_update_request",
        "StreamsGroupTopologyDescriptionUpdateResponse": "streams_group_topology_description_update_response",
        "StreamsGroupTopologyKey": "streams_group_topology_key",
        "StreamsGroupTopologyValue": "streams_group_topology_value",
        "SupportedFeatureKey": "api_versions_response",
        "SyncGroupRequest": "sync_group_request",
        "SyncGroupRequestAssignment": "sync_group_request",
        "SyncGroupResponse": "sync_group_response",
        "TopicConfig": "streams_group_topology_value",
        "TopicMetadata": "consumer_group_partition_metadata_value",
        "TopicPartitionsInfo": "share_group_state_partition_metadata_value",
        "TopicProduceData": "produce_request",
        "TopicProduceResponse": "produce_response",
        "TopicResponse": "describe_producers_response",
        "TransactionLogKey": "transaction_log_key",
        "TransactionLogValue": "transaction_log_value",
        "TxnOffsetCommitRequest": "txn_offset_commit_request",
        "TxnOffsetCommitRequestPartition": "txn_offset_commit_request",
        "TxnOffsetCommitRequestTopic": "txn_offset_commit_request",
        "TxnOffsetCommitResponse": "txn_offset_commit_response",
        "TxnOffsetCommitResponsePartition": "txn_offset_commit_response",
        "TxnOffsetCommitResponseTopic": "txn_offset_commit_response",
        "UnregisterBrokerRequest": "unregister_broker_request",
        "UnregisterBrokerResponse": "unregister_broker_response",
        "UnregisterControllerRequest": "unregister_controller_request",
        "UnregisterControllerResponse": "unregister_controller_response",
        "UpdatableFeatureResult": "update_features_response",
        "UpdateFeaturesRequest": "update_features_request",
        "UpdateFeaturesResponse": "update_features_response",
        "UpdateRaftVoterRequest": "update_raft_voter_request",
        "UpdateRaftVoterResponse": "update_raft_voter_response",
        "UserName": "describe_user_scram_credentials_request",
        "ValueData": "describe_client_quotas_response",
        "VoteRequest": "vote_request",
        "VoteResponse": "vote_response",
        "VotersRecord": "voters_record",
        "WritableTxnMarker": "write_txn_markers_request",
        "WritableTxnMarkerPartitionResult": "write_txn_markers_response",
        "WritableTxnMarkerResult": "write_txn_markers_response",
        "WritableTxnMarkerTopic": "write_txn_markers_request",
        "WritableTxnMarkerTopicResult": "write_txn_markers_response",
        "WriteShareGroupStateRequest": "write_share_group_state_request",
        "WriteShareGroupStateResponse": "write_share_group_state_response",
        "WriteStateData": "write_share_group_state_request",
        "WriteStateResult": "write_share_group_state_response",
        "WriteTxnMarkersRequest": "write_txn_markers_request",
        "WriteTxnMarkersResponse": "write_txn_markers_response",
    }

    def __getattr__(name: str) -> type:
        """Raises AttributeError unless the name is the class of one message."""
        from importlib import import_module

        if name not in _MODULES:
            raise AttributeError(name)
        globals()[name] = found = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
        return found
