package conformance;

import kafka.server.ControllerServer;
import kafka.server.KafkaBroker;
import kafka.server.KafkaConfig;

import org.apache.kafka.clients.consumer.GroupProtocol;
import org.apache.kafka.common.network.ListenerName;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.common.test.ClusterInstance;
import org.apache.kafka.common.test.api.ClusterConfig;
import org.apache.kafka.common.test.api.Type;
import org.apache.kafka.server.authorizer.Authorizer;
import org.apache.kafka.server.common.Feature;
import org.apache.kafka.server.fault.FaultHandlerException;
import org.apache.kafka.storage.internals.checkpoint.CleanShutdownFileHandler;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/**
 * Takes the place, by class path order, of the kit's class of this name, which knows one node. As many nodes as a test
 * asks for run in one process of the broker under test; they stop and start by its control over HTTP.
 */
public class ExternalClusterInstance implements ClusterInstance {
    private static final int CONTROLLER = 3000;
    private static final ScheduledExecutorService CLOCK = Executors.newSingleThreadScheduledExecutor(task -> {
        Thread thread = new Thread(task, "conformance-clock");
        thread.setDaemon(true);
        return thread;
    });

    private final ClusterConfig config;
    private final Set<Integer> running = new TreeSet<>();
    private final Map<Integer, KafkaBroker> brokers = new TreeMap<>();
    private ExternalBroker process;
    private Map<String, String> properties;
    private ControllerServer controller;
    private ScheduledFuture<?> limit;
    private volatile boolean isTooSlow;
    private boolean hasStarted;
    private boolean hasStopped;

    public ExternalClusterInstance(ClusterConfig config) {
        this.config = config;
    }

    // ------------------------------------------------------------------ what the kit calls

    /** Decides how the process is started. */
    public void format() {
        if (process != null) return;
        if (config.brokerSecurityProtocol() != SecurityProtocol.PLAINTEXT) {
            throw new UnsupportedOnExternalBroker("listener with " + config.brokerSecurityProtocol());
        }
        process = withFreePorts(config.numBrokers());
        properties = new HashMap<>(config.serverProperties());
        properties.putAll(config.perServerOverrideProperties().getOrDefault(CONTROLLER, Map.of()));
        properties.putAll(config.perServerOverrideProperties().getOrDefault(0, Map.of()));
        String listener = config.brokerListenerName().value();
        properties.putIfAbsent("listeners", listener + "://localhost:" + process.port);
        properties.putIfAbsent("listener.security.protocol.map", listener + ":PLAINTEXT");
        properties.putIfAbsent("inter.broker.listener.name", listener);
        properties.put("node.id", "0");
        properties.put("log.dirs", process.dir.resolve("data").toString());
        properties.putIfAbsent("unstable.api.versions.enable", "true");
        config.features().forEach((feature, level) -> properties.put("feature." + feature.featureName(), level.toString()));
        properties.put("conformance.metadata.version", config.metadataVersion().version());
        if (config.numBrokers() > 1) {
            properties.put("groupkeeper.control.port", Integer.toString(controlPort()));
            properties.put("conformance.nodes", Integer.toString(config.numBrokers()));
            String racks = nodes().mapToObj(node -> ofNode(node).getOrDefault("broker.rack", "")).collect(Collectors.joining(","));
            if (racks.replace(",", "").length() > 0) properties.put("conformance.racks", racks);
            properties.remove("broker.rack");
        }
    }

    @Override
    public void start() {
        format();
        if (hasStarted) return;
        hasStarted = true;
        process.start(properties);
        nodes().forEach(running::add);
        if (config.numBrokers() > 1) StandIns.registerMeter(this);
        limit = CLOCK.schedule(() -> {
            isTooSlow = true;
            process.kill();
        }, Settings.TEST_TIMEOUT_S, TimeUnit.SECONDS);
    }

    @Override
    public void stop() {
        hasStopped = true;
        if (limit != null) limit.cancel(false);
        if (process != null) process.kill();
    }

    public void dispose(String name, Throwable why) {
        stop();
        if (process == null) return;
        if (Settings.KEEP_ALL || why != null && !(why instanceof UnsupportedOnExternalBroker)) process.keepLog(name);
        process.deleteDir();
        if (isTooSlow && why == null) throw new AssertionError("not done after " + Settings.TEST_TIMEOUT_S + " s");
    }

    private static ExternalBroker withFreePorts(int count) {
        while (true) {
            ExternalBroker one = new ExternalBroker();
            if (IntStream.range(1, count + 1).allMatch(next -> isFree(one.port + next))) return one;
            one.deleteDir();
        }
    }

    private static boolean isFree(int port) {
        try (ServerSocket socket = new ServerSocket()) {
            socket.setReuseAddress(false);
            socket.bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), port));
            return true;
        } catch (IOException taken) {
            return false;
        }
    }

    // ------------------------------------------------------------------ nodes

    private IntStream nodes() {
        return IntStream.range(0, config.numBrokers());
    }

    private Map<String, String> ofNode(int node) {
        Map<String, String> all = new HashMap<>(config.serverProperties());
        all.putAll(config.perServerOverrideProperties().getOrDefault(node, Map.of()));
        return all;
    }

    int port(int node) {
        return process.port + node;
    }

    /** Behind those of the nodes. */
    private int controlPort() {
        return port(config.numBrokers());
    }

    short metadataVersion() {
        return process.metadataVersion();
    }

    boolean isRunning(int node) {
        return running.contains(node) && process.alive();
    }

    /** A node that answers; without any the first. */
    int anyNode() {
        return running.stream().findFirst().orElse(0);
    }

    @Override
    public void shutdownBroker(int node) {
        if (!running.remove(node)) return;
        if (config.numBrokers() == 1) process.terminate();
        else control("/nodes/" + node + "/stop");
        try {
            Files.writeString(stopped(node), "");
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** What a node leaves when it stops in an orderly way; a test that takes it away wants a node that was killed. */
    private Path stopped(int node) {
        return ofStops(node).resolve(CleanShutdownFileHandler.CLEAN_SHUTDOWN_FILE_NAME);
    }

    Path ofStops(int node) {
        try {
            return Files.createDirectories(process.dir.resolve("stops-" + node));
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    @Override
    public void startBroker(int node) {
        if (!running.add(node)) return;
        if (config.numBrokers() == 1) {
            process.launch();
            return;
        }
        if (!Files.exists(stopped(node))) control("/nodes/" + node + "/kill");
        control("/nodes/" + node + "/start");
    }

    void control(String path) {
        try (Socket socket = new Socket(InetAddress.getLoopbackAddress(), controlPort())) {
            socket.setSoTimeout(30_000);
            socket.getOutputStream().write(("POST " + path + " HTTP/1.1\r\n\r\n").getBytes(StandardCharsets.US_ASCII));
            String answer = new String(socket.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
            if (!answer.startsWith("HTTP/1.1 200 ")) throw new AssertionError(path + ": " + answer);
        } catch (IOException e) {
            throw new AssertionError(path, e);
        }
    }

    /** How many unclean elections the broker's log tells of. */
    long lossesInLog() {
        try (Stream<String> lines = Files.lines(process.log)) {
            return lines.filter(line -> line.contains(" has no records from offset ")).count();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    @Override
    public Map<Integer, KafkaBroker> brokers() {
        nodes().forEach(node -> brokers.computeIfAbsent(node, one -> StandIns.broker(this, one)));
        return brokers;
    }

    @Override
    public Map<Integer, KafkaBroker> aliveBrokers() {
        return brokers().entrySet().stream().filter(one -> isRunning(one.getKey()))
            .collect(Collectors.toMap(Map.Entry::getKey, Map.Entry::getValue));
    }

    @Override
    public Set<Integer> brokerIds() {
        return nodes().boxed().collect(Collectors.toSet());
    }

    @Override
    public List<Integer> brokerBoundPorts() {
        return nodes().mapToObj(this::port).toList();
    }

    @Override
    public String bootstrapServers() {
        return nodes().mapToObj(node -> "localhost:" + port(node)).collect(Collectors.joining(","));
    }

    @Override
    public void waitForReadyBrokers() {
        // a node that has started answers
    }

    @Override
    public void ensureConsistentMetadata() {
        // all nodes know of a change when it is answered
    }

    @Override
    public void ensureConsistentMetadata(Collection<KafkaBroker> brokers, Collection<ControllerServer> controllers) {
        // likewise
    }

    /** The settings of a node, as Kafka's own class. */
    KafkaConfig settings(int node) {
        Map<String, String> all = new HashMap<>(properties);
        all.keySet().removeIf(key -> key.startsWith("feature.") || key.startsWith("conformance.") || key.startsWith("groupkeeper."));
        all.putAll(ofNode(node));
        all.put("node.id", Integer.toString(node));
        all.put("process.roles", "broker");
        all.put("controller.quorum.voters", CONTROLLER + "@localhost:1");
        all.put("controller.listener.names", "CONTROLLER");
        all.merge("listener.security.protocol.map", "CONTROLLER:PLAINTEXT", (one, other) -> one + "," + other);
        return new KafkaConfig(all, false);
    }

    // ------------------------------------------------------------------ what it is

    @Override
    public boolean started() {
        return hasStarted;
    }

    @Override
    public boolean stopped() {
        return hasStopped;
    }

    @Override
    public Type type() {
        return config.clusterTypes().contains(Type.CO_KRAFT) ? Type.CO_KRAFT : Type.KRAFT;
    }

    @Override
    public ClusterConfig config() {
        return config;
    }

    @Override
    public ListenerName clientListener() {
        return config.brokerListenerName();
    }

    @Override
    public String clusterId() {
        return process.clusterId();
    }

    @Override
    public Set<GroupProtocol> supportedGroupProtocols() {
        String allowed = properties.getOrDefault("group.coordinator.rebalance.protocols", "classic,consumer,streams");
        boolean hasNewest = List.of(allowed.split(" *, *")).contains("consumer")
            && config.features().getOrDefault(Feature.GROUP_VERSION, (short) 1) > 0;
        return hasNewest ? Set.of(GroupProtocol.CLASSIC, GroupProtocol.CONSUMER) : Set.of(GroupProtocol.CLASSIC);
    }

    // ------------------------------------------------------------------ there is no controller

    @Override
    public Map<Integer, ControllerServer> controllers() {
        if (controller == null) controller = StandIns.controller(this);
        return Map.of(CONTROLLER, controller);
    }

    @Override
    public Set<Integer> controllerIds() {
        return Set.of(CONTROLLER);
    }

    @Override
    public ListenerName controllerListenerName() {
        throw new UnsupportedOnExternalBroker("a controller");
    }

    @Override
    public String bootstrapControllers() {
        throw new UnsupportedOnExternalBroker("a controller");
    }

    @Override
    public List<Integer> controllerBoundPorts() {
        throw new UnsupportedOnExternalBroker("a controller");
    }

    @Override
    public List<Authorizer> authorizers() {
        throw new UnsupportedOnExternalBroker("an authorizer in this process");
    }

    @Override
    public Optional<FaultHandlerException> firstFatalException() {
        return Optional.empty();
    }

    @Override
    public Optional<FaultHandlerException> firstNonFatalException() {
        return Optional.empty();
    }
}
