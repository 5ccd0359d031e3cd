import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.MapFunction;
import org.apache.flink.api.common.serialization.SimpleStringSchema;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.connector.base.DeliveryGuarantee;
import org.apache.flink.connector.kafka.sink.KafkaRecordSerializationSchema;
import org.apache.flink.connector.kafka.sink.KafkaSink;
import org.apache.flink.connector.kafka.source.KafkaSource;
import org.apache.flink.connector.kafka.source.enumerator.initializer.OffsetsInitializer;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * A job of Flink that writes exactly once from one topic to another, begins at a time, fails once between two
 * checkpoints, and commits its offsets with them. The argument is the broker's address. A line says "ok", or what was
 * wrong.
 */
public class FlinkJob {
    static final int RECORDS = 600;
    static final long DAY_MS = 86_400_000L;
    static final AtomicBoolean HAS_FAILED = new AtomicBoolean();

    /** Slow enough for some checkpoints; fails once after the first of them. */
    static class Step implements MapFunction<String, String> {
        private int seen;

        @Override
        public String map(String value) throws Exception {
            Thread.sleep(5);
            if (++seen == RECORDS / 4 && HAS_FAILED.compareAndSet(false, true)) {
                throw new IllegalStateException("once");
            }
            return value;
        }
    }

    public static void main(String[] words) throws Exception {
        String servers = words[0];
        String run = Long.toString(System.nanoTime(), 36);
        String from = "flink-from-" + run;
        String to = "flink-to-" + run;
        Map<String, Object> settings = new HashMap<>(Map.of("bootstrap.servers", servers));
        try (Admin admin = Admin.create(settings)) {
            admin.createTopics(List.of(new NewTopic(from, 2, (short) 1), new NewTopic(to, 1, (short) 1))).all().get();
            write(servers, from);
            run(servers, from, to);
            List<String> got = read(servers, to);
            check(HAS_FAILED.get(), "the job never failed");
            check(got.size() == RECORDS && new HashSet<>(got).size() == RECORDS, got.size() + " records");
            check(!got.contains("old"), "it began too early");
            long committed = admin.listConsumerGroupOffsets(from).partitionsToOffsetAndMetadata().get().values()
                    .stream().mapToLong(each -> each.offset()).sum();
            check(committed > RECORDS / 4 && committed <= RECORDS + 2, committed + " are committed");
        }
        System.out.println("exactly once: ok");
        System.exit(0);
    }

    static void check(boolean isSo, String what) {
        if (!isSo) {
            System.out.println("exactly once: " + what);
            System.exit(0);
        }
    }

    /** A record of each partition is too old for the job. */
    static void write(String servers, String topic) throws Exception {
        Map<String, Object> settings = Map.of("bootstrap.servers", servers, "compression.type", "zstd");
        long now = System.currentTimeMillis();
        try (var producer = new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer())) {
            for (int partition = 0; partition < 2; partition++) {
                producer.send(new ProducerRecord<>(topic, partition, now - 2 * DAY_MS, null, "old")).get();
            }
            for (int number = 0; number < RECORDS; number++) {
                producer.send(new ProducerRecord<>(topic, number % 2, now, null, "record " + number));
            }
        }
    }

    static void run(String servers, String from, String to) throws Exception {
        Configuration configuration = new Configuration();
        configuration.setString("restart-strategy.type", "fixed-delay");
        configuration.setString("restart-strategy.fixed-delay.attempts", "3");
        configuration.setString("restart-strategy.fixed-delay.delay", "100 ms");
        configuration.setString("execution.checkpointing.interval", "200 ms");
        var environment = StreamExecutionEnvironment.createLocalEnvironment(2, configuration);
        KafkaSource<String> source = KafkaSource.<String>builder()
                .setBootstrapServers(servers).setTopics(from).setGroupId(from)
                .setStartingOffsets(OffsetsInitializer.timestamp(System.currentTimeMillis() - DAY_MS))
                .setBounded(OffsetsInitializer.latest())
                .setValueOnlyDeserializer(new SimpleStringSchema())
                .build();
        KafkaSink<String> sink = KafkaSink.<String>builder()
                .setBootstrapServers(servers)
                .setRecordSerializer(KafkaRecordSerializationSchema.builder().setTopic(to)
                        .setValueSerializationSchema(new SimpleStringSchema()).build())
                .setDeliveryGuarantee(DeliveryGuarantee.EXACTLY_ONCE).setTransactionalIdPrefix(from)
                .setProperty("transaction.timeout.ms", "60000")
                .build();
        environment.fromSource(source, WatermarkStrategy.noWatermarks(), "from").map(new Step()).sinkTo(sink);
        environment.execute();
    }

    static List<String> read(String servers, String topic) {
        Map<String, Object> settings = Map.of("bootstrap.servers", servers, "group.id", topic, "auto.offset.reset",
                "earliest", "isolation.level", "read_committed");
        List<String> got = new ArrayList<>();
        try (var consumer = new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer())) {
            consumer.subscribe(List.of(topic));
            long end = System.nanoTime() + 30_000_000_000L;
            while (got.size() < RECORDS && System.nanoTime() < end) {
                consumer.poll(java.time.Duration.ofMillis(100)).forEach(record -> got.add(record.value()));
            }
            consumer.poll(java.time.Duration.ofMillis(500)).forEach(record -> got.add(record.value()));
        }
        return got;
    }
}
