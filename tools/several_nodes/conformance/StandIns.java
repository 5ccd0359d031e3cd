package conformance;

import kafka.cluster.Partition;
import kafka.log.LogManager;
import kafka.network.SocketServer;
import kafka.raft.KafkaRaftManager;
import kafka.server.BrokerServer;
import kafka.server.ControllerServer;
import kafka.server.KafkaApis;
import kafka.server.KafkaBroker;
import kafka.server.KafkaConfig;
import kafka.server.ReplicaManager;
import kafka.server.SharedServer;

import com.yammer.metrics.core.Meter;
import com.yammer.metrics.core.Metric;
import com.yammer.metrics.core.MetricName;
import com.yammer.metrics.core.MetricsRegistry;

import org.apache.kafka.common.IsolationLevel;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.message.ListOffsetsRequestData.ListOffsetsPartition;
import org.apache.kafka.common.message.ListOffsetsRequestData.ListOffsetsTopic;
import org.apache.kafka.common.message.MetadataResponseData.MetadataResponsePartition;
import org.apache.kafka.common.message.MetadataResponseData.MetadataResponseTopic;
import org.apache.kafka.common.requests.ListOffsetsRequest;
import org.apache.kafka.common.requests.ListOffsetsResponse;
import org.apache.kafka.controller.Controller;
import org.apache.kafka.coordinator.group.GroupCoordinator;
import org.apache.kafka.metadata.BrokerState;
import org.apache.kafka.metadata.KRaftMetadataCache;
import org.apache.kafka.metadata.LeaderAndIsr;
import org.apache.kafka.metadata.LeaderRecoveryState;
import org.apache.kafka.raft.LogOffsetMetadata;
import org.apache.kafka.raft.RaftLog;
import org.apache.kafka.server.metrics.KafkaYammerMetrics;
import org.apache.kafka.storage.internals.log.UnifiedLog;

import org.mockito.MockMakers;
import org.mockito.Mockito;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.reflect.Field;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.concurrent.CompletableFuture;
import java.util.function.Function;

/**
 * Objects that tests get from a cluster in place of those of a server in their own process. They answer what can be
 * asked from outside; a test that wants more is aborted.
 */
final class StandIns {
    private StandIns() { }

    private static <T> T of(Class<T> type, Map<String, Function<Object[], Object>> answers) {
        return Mockito.mock(type, Mockito.withSettings().mockMaker(MockMakers.INLINE).stubOnly().defaultAnswer(call -> {
            String name = call.getMethod().getName();
            if (name.equals("toString")) return type.getSimpleName() + " of another process";
            Function<Object[], Object> answer = answers.get(name);
            if (answer == null) throw new UnsupportedOnExternalBroker(type.getSimpleName() + "." + name);
            return answer.apply(call.getArguments());
        }));
    }

    private static Object nothing(Object[] arguments) {
        return null;
    }

    static KafkaBroker broker(ExternalClusterInstance cluster, int node) {
        KafkaConfig settings = cluster.settings(node);
        SocketServer sockets = of(SocketServer.class, Map.of("boundPort", __ -> cluster.port(node)));
        KRaftMetadataCache metadata = metadata(cluster, node);
        SharedServer shared = of(SharedServer.class, Map.of("loader", __ -> {
            Settings.settle();
            return null;
        }));
        LogManager logs = of(LogManager.class, Map.of(
            "getLog", a -> scala.Option.apply(hasReplica(cluster, node, (TopicPartition) a[0]) ? log(Map.of()) : null),
            "getLog$default$2", __ -> false,
            "liveLogDirs", __ -> scala.jdk.javaapi.CollectionConverters.asScala(List.of(cluster.ofStops(node).toFile())).toSeq()
        ));
        ReplicaManager replicas = of(ReplicaManager.class, Map.of(
            "metadataCache", __ -> metadata,
            "onlinePartition", a -> scala.Option.apply(partition(cluster, node, (TopicPartition) a[0])),
            "localLog", a -> scala.Option.apply(log(Map.of(
                "highWatermark", __ -> highWatermark(cluster, (TopicPartition) a[0]))))
        ));
        GroupCoordinator groups = of(GroupCoordinator.class, Map.of("groupMetadataTopicConfigs", __ -> {
            Properties configs = new Properties();
            configs.put("cleanup.policy", "compact");
            configs.put("compression.type", "producer");
            configs.put("segment.bytes", Integer.toString(settings.groupCoordinatorConfig().offsetsTopicSegmentBytes()));
            return configs;
        }));
        KafkaApis apis = of(KafkaApis.class, Map.of("brokerId", __ -> node));
        return of(BrokerServer.class, Map.ofEntries(
            Map.entry("logManager", __ -> logs),
            Map.entry("replicaManager", __ -> replicas),
            Map.entry("groupCoordinator", __ -> groups),
            Map.entry("dataPlaneRequestProcessor", __ -> apis),
            Map.entry("config", __ -> settings),
            Map.entry("socketServer", __ -> sockets),
            Map.entry("boundPort", __ -> cluster.port(node)),
            Map.entry("metadataCache", __ -> metadata),
            Map.entry("sharedServer", __ -> shared),
            Map.entry("clusterId", __ -> cluster.clusterId()),
            Map.entry("brokerState", __ -> cluster.isRunning(node) ? BrokerState.RUNNING : BrokerState.SHUTTING_DOWN),
            Map.entry("isShutdown", __ -> !cluster.isRunning(node)),
            Map.entry("awaitShutdown", StandIns::nothing),
            Map.entry("shutdown", __ -> {
                cluster.shutdownBroker(node);
                return null;
            }),
            Map.entry("startup", __ -> {
                cluster.startBroker(node);
                return null;
            })
        ));
    }

    /** The files of a node that is stopped stay as they are. */
    private static boolean hasReplica(ExternalClusterInstance cluster, int node, TopicPartition partition) {
        return !cluster.isRunning(node) || partitions(cluster, node, partition.topic()).stream()
            .anyMatch(one -> one.partitionIndex() == partition.partition() && one.replicaNodes().contains(node));
    }

    private static UnifiedLog log(Map<String, Function<Object[], Object>> answers) {
        return of(UnifiedLog.class, answers);
    }

    private static Partition partition(ExternalClusterInstance cluster, int node, TopicPartition partition) {
        if (!cluster.isRunning(node) || !hasReplica(cluster, node, partition)) return null;
        boolean leads = leader(cluster, node, partition.topic(), partition.partition())
            .filter(one -> one.leader() == node).isPresent();
        return of(Partition.class, Map.of(
            "leaderIdIfLocal", __ -> scala.Option.apply(leads ? node : null),
            "leaderLogIfLocal", __ -> scala.Option.apply(leads ? log(Map.of()) : null),
            "isLeader", __ -> leads
        ));
    }

    private static KRaftMetadataCache metadata(ExternalClusterInstance cluster, int node) {
        return of(KRaftMetadataCache.class, Map.of(
            "numPartitions", a -> {
                int count = partitions(cluster, node, (String) a[0]).size();
                return count == 0 ? Optional.empty() : Optional.of(count);
            },
            "contains", a -> a[0] instanceof TopicPartition one
                ? leader(cluster, node, one.topic(), one.partition()).isPresent()
                : !partitions(cluster, node, (String) a[0]).isEmpty(),
            "getLeaderAndIsr", a -> leader(cluster, node, (String) a[0], (Integer) a[1])
        ));
    }

    private static List<MetadataResponsePartition> partitions(ExternalClusterInstance cluster, int node, String topic) {
        try {
            MetadataResponseTopic found = Wire.metadata(cluster.port(node), List.of(topic), cluster.metadataVersion())
                .data().topics().find(topic);
            return found == null ? List.of() : found.partitions();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private static Optional<LeaderAndIsr> leader(ExternalClusterInstance cluster, int node, String topic, int index) {
        return partitions(cluster, node, topic).stream().filter(one -> one.partitionIndex() == index).findFirst()
            .map(one -> new LeaderAndIsr(one.leaderId(), one.leaderEpoch(), one.isrNodes(), LeaderRecoveryState.RECOVERED, 0));
    }

    private static long highWatermark(ExternalClusterInstance cluster, TopicPartition partition) {
        int leader = leader(cluster, cluster.anyNode(), partition.topic(), partition.partition()).orElseThrow().leader();
        ListOffsetsTopic wanted = new ListOffsetsTopic().setName(partition.topic()).setPartitions(List.of(
            new ListOffsetsPartition().setPartitionIndex(partition.partition()).setTimestamp(ListOffsetsRequest.LATEST_TIMESTAMP)));
        ListOffsetsRequest request = ListOffsetsRequest.Builder.forConsumer(false, IsolationLevel.READ_UNCOMMITTED)
            .setTargetTimes(List.of(wanted)).build((short) 7);
        try {
            ListOffsetsResponse answer = Wire.call(cluster.port(leader), request);
            return answer.topics().get(0).partitions().get(0).offset();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** The meter of unclean elections, for tests that look for it in their process: the broker's log tells of each. */
    @SuppressWarnings("unchecked")
    static void registerMeter(ExternalClusterInstance cluster) {
        MetricsRegistry registry = KafkaYammerMetrics.defaultRegistry();
        MetricName name = KafkaYammerMetrics.getMetricName("kafka.controller", "ControllerStats", "UncleanLeaderElectionsPerSec");
        try {
            Field all = MetricsRegistry.class.getDeclaredField("metrics");
            all.setAccessible(true);
            ((Map<MetricName, Metric>) all.get(registry)).put(name, of(Meter.class, Map.of("count", __ -> cluster.lossesInLog())));
        } catch (ReflectiveOperationException e) {
            throw new AssertionError(e);
        }
    }

    static ControllerServer controller(ExternalClusterInstance cluster) {
        Controller topics = of(Controller.class, Map.of("findAllTopicIds",
            __ -> CompletableFuture.completedFuture(Wire.topicIds(cluster.port(cluster.anyNode()), cluster.metadataVersion()))));
        RaftLog log = of(RaftLog.class, Map.of("endOffset", __ -> new LogOffsetMetadata(0)));
        KafkaRaftManager<?> raft = of(KafkaRaftManager.class, Map.of("raftLog", __ -> log));
        return of(ControllerServer.class, Map.of(
            "controller", __ -> topics,
            "raftManager", __ -> raft,
            "clusterId", __ -> cluster.clusterId()
        ));
    }
}
