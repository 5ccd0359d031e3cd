import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BooleanSupplier;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.springframework.kafka.config.TopicBuilder;
import org.springframework.kafka.core.DefaultKafkaConsumerFactory;
import org.springframework.kafka.core.DefaultKafkaProducerFactory;
import org.springframework.kafka.core.KafkaAdmin;
import org.springframework.kafka.core.KafkaTemplate;
import org.springframework.kafka.listener.AbstractConsumerSeekAware;
import org.springframework.kafka.listener.ConcurrentMessageListenerContainer;
import org.springframework.kafka.listener.ContainerProperties;
import org.springframework.kafka.listener.DefaultAfterRollbackProcessor;
import org.springframework.kafka.listener.MessageListener;
import org.springframework.kafka.transaction.KafkaTransactionManager;
import org.springframework.util.backoff.FixedBackOff;

/**
 * What an application with Spring Kafka does with a broker, whose address is the argument. A line for each scene: its
 * name and "ok", or what was wrong.
 */
public class SpringScenes {
    static final String RUN = Long.toString(System.nanoTime(), 36);
    static final List<ConcurrentMessageListenerContainer<String, String>> STARTED = new ArrayList<>();
    static String servers;
    static KafkaAdmin admin;

    interface Scene {
        void play() throws Exception;
    }

    public static void main(String[] words) throws Exception {
        servers = words[0];
        admin = new KafkaAdmin(Map.of("bootstrap.servers", servers));
        Map<String, Scene> scenes = new java.util.LinkedHashMap<>();
        for (String codec : List.of("none", "gzip", "snappy", "lz4", "zstd")) {
            scenes.put("codec " + codec, () -> codec(codec));
        }
        scenes.put("group classic", () -> group("classic"));
        scenes.put("group consumer", () -> group("consumer"));
        scenes.put("exactly once", SpringScenes::exactlyOnce);
        scenes.put("seek by time", SpringScenes::seekByTime);
        scenes.put("admin", SpringScenes::administers);
        for (Map.Entry<String, Scene> scene : scenes.entrySet()) {
            String outcome = "ok";
            try {
                scene.getValue().play();
            } catch (Exception | AssertionError wrong) {
                outcome = wrong.toString();
            }
            STARTED.forEach(ConcurrentMessageListenerContainer::stop);
            STARTED.clear();
            System.out.println(scene.getKey() + ": " + outcome);
        }
        System.exit(0);
    }

    static void check(boolean isSo, Object what) {
        if (!isSo) {
            throw new AssertionError(what);
        }
    }

    static void until(String what, BooleanSupplier isSo) throws InterruptedException {
        long end = System.nanoTime() + Duration.ofMinutes(1).toNanos();
        while (!isSo.getAsBoolean()) {
            check(System.nanoTime() < end, "not in time: " + what);
            Thread.sleep(20);
        }
    }

    static boolean isThere(String topic, int partitions) {
        try {
            return admin.describeTopics(topic).get(topic).partitions().stream()
                    .filter(each -> each.leader() != null).count() == partitions;
        } catch (RuntimeException notYet) {
            return false;
        }
    }

    static String made(String name, int partitions) throws InterruptedException {
        String topic = name + "-" + RUN;
        admin.createOrModifyTopics(TopicBuilder.name(topic).partitions(partitions).replicas(1).build());
        until("its leaders", () -> isThere(topic, partitions));
        return topic;
    }

    static DefaultKafkaProducerFactory<String, String> producers(String codec) {
        return new DefaultKafkaProducerFactory<>(
                Map.of("bootstrap.servers", servers, "compression.type", codec, "linger.ms", 20),
                new StringSerializer(), new StringSerializer());
    }

    static ConcurrentMessageListenerContainer<String, String> started(
            String group, String topic, int members, String protocol, MessageListener<String, String> listener,
            KafkaTransactionManager<String, String> transactions) {
        ContainerProperties properties = new ContainerProperties(topic);
        properties.setMessageListener(listener);
        properties.setGroupId(group);
        properties.setKafkaAwareTransactionManager(transactions);
        var settings = new HashMap<String, Object>(Map.of(
                "bootstrap.servers", servers, "auto.offset.reset", "earliest", "isolation.level", "read_committed",
                "group.protocol", protocol));
        if (protocol.equals("classic")) {
            settings.put("heartbeat.interval.ms", 300);
        }
        var container = new ConcurrentMessageListenerContainer<>(
                new DefaultKafkaConsumerFactory<>(settings, new StringDeserializer(), new StringDeserializer()),
                properties);
        container.setConcurrency(members);
        if (transactions != null) {
            container.setAfterRollbackProcessor(new DefaultAfterRollbackProcessor<>(new FixedBackOff(0, 9)));
        }
        container.start();
        STARTED.add(container);
        return container;
    }

    static long committed(String group, String topic) {
        try (Admin own = Admin.create(admin.getConfigurationProperties())) {
            return own.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get().entrySet().stream()
                    .filter(each -> each.getKey().topic().equals(topic) && each.getValue() != null)
                    .mapToLong(each -> each.getValue().offset()).sum();
        } catch (Exception failure) {
            throw new IllegalStateException(failure);
        }
    }

    static void codec(String codec) throws Exception {
        String topic = made("codec-" + codec, 1);
        List<String> sent = new ArrayList<>();
        var template = new KafkaTemplate<>(producers(codec));
        for (int number = 0; number < 50; number++) {
            sent.add(codec + " " + number);
            template.send(topic, sent.get(number));
        }
        template.flush();
        List<String> got = Collections.synchronizedList(new ArrayList<>());
        started(topic, topic, 1, "classic", record -> got.add(record.value()), null);
        until("50 records", () -> got.size() >= 50);
        check(got.equals(sent), got);
        template.destroy();
    }

    static void group(String protocol) throws Exception {
        String topic = made("group-" + protocol, 4);
        Set<String> got = Collections.synchronizedSet(new HashSet<>());
        MessageListener<String, String> listener = record -> got.add(record.value());
        var two = started(topic, topic, 2, protocol, listener, null);
        until("half for each", () -> two.getContainers().stream()
                .allMatch(each -> each.getAssignedPartitions() != null && each.getAssignedPartitions().size() == 2));
        var other = started(topic, topic, 2, protocol, listener, null);
        until("one for each", () -> two.getAssignedPartitions().size() == 2
                && other.getAssignedPartitions() != null && other.getAssignedPartitions().size() == 2);
        two.stop();
        until("all for the rest", () -> other.getAssignedPartitions().size() == 4);
        var template = new KafkaTemplate<>(producers("none"));
        for (int number = 0; number < 40; number++) {
            template.send(topic, number % 4, null, "record " + number);
        }
        template.flush();
        until("40 records", () -> got.size() == 40);
        other.stop();
        until("their commits", () -> committed(topic, topic) == 40);
        template.destroy();
    }

    /** From one topic to another in a transaction for each batch; the listener fails once after it has written. */
    static void exactlyOnce() throws Exception {
        String from = made("from", 2);
        String to = made("to", 1);
        var template = new KafkaTemplate<>(producers("none"));
        for (int number = 0; number < 100; number++) {
            template.send(from, number % 2, null, "record " + number);
        }
        template.flush();
        template.destroy();
        var producers = producers("none");
        producers.setTransactionIdPrefix(from + "-");
        var writing = new KafkaTemplate<>(producers);
        AtomicInteger seen = new AtomicInteger();
        var container = started(from, from, 1, "classic", record -> {
            writing.send(to, record.value());
            if (seen.incrementAndGet() == 30) {
                throw new IllegalStateException("once");
            }
        }, new KafkaTransactionManager<>(producers));
        List<String> got = Collections.synchronizedList(new ArrayList<>());
        started(to, to, 1, "consumer", record -> got.add(record.value()), null);
        until("100 records", () -> got.size() >= 100);
        container.stop();
        check(seen.get() > 100, "nothing was rolled back");
        check(got.size() == 100 && new HashSet<>(got).size() == 100, got.size());
        // Behind the last record of a transaction is its marker: only positions of records are committed here.
        check(committed(from, from) == 100, committed(from, from));
        producers.destroy();
    }

    static class FromTime extends AbstractConsumerSeekAware implements MessageListener<String, String> {
        final List<String> got = Collections.synchronizedList(new ArrayList<>());
        final long ms;

        FromTime(long ms) {
            this.ms = ms;
        }

        @Override
        public void onPartitionsAssigned(Map<TopicPartition, Long> assigned, ConsumerSeekCallback callback) {
            callback.seekToTimestamp(assigned.keySet(), ms);
        }

        @Override
        public void onMessage(ConsumerRecord<String, String> record) {
            got.add(record.value());
        }
    }

    static void seekByTime() throws Exception {
        String topic = made("times", 1);
        var template = new KafkaTemplate<>(producers("lz4"));
        long now = System.currentTimeMillis();
        for (int days : List.of(30, 20, 10)) {
            template.send(topic, 0, now - Duration.ofDays(days).toMillis(), null, days + " days").get();
        }
        var listener = new FromTime(now - Duration.ofDays(25).toMillis());
        started(topic, topic, 1, "classic", listener, null);
        until("two records", () -> listener.got.size() >= 2);
        check(listener.got.equals(List.of("20 days", "10 days")), listener.got);
        template.destroy();
    }

    static void administers() throws Exception {
        String topic = made("admin", 1);
        NewTopic more = TopicBuilder.name(topic).partitions(3).replicas(1).config("retention.ms", "3600000").build();
        admin.setModifyTopicConfigs(true);
        admin.createOrModifyTopics(more);
        until("three partitions", () -> isThere(topic, 3));
        check(admin.clusterId() != null, "no id");
        try (Admin own = Admin.create(admin.getConfigurationProperties())) {
            var resource = new org.apache.kafka.common.config.ConfigResource(
                    org.apache.kafka.common.config.ConfigResource.Type.TOPIC, topic);
            until("its setting", () -> {
                try {
                    var found = own.describeConfigs(List.of(resource)).all().get().get(resource);
                    return found.get("retention.ms").value().equals("3600000");
                } catch (Exception failure) {
                    throw new IllegalStateException(failure);
                }
            });
        }
    }
}
