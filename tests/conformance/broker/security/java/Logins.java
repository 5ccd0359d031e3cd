import java.io.FileInputStream;
import java.time.Duration;
import java.util.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;

/** Produces and consumes a record with each file of client properties; one line for each: its name and "ok", or the error. */
public class Logins {
    static final long PATIENCE_MS = 40_000;

    public static void main(String[] files) throws Exception {
        for (String file : files) {
            Properties given = new Properties();
            try (FileInputStream in = new FileInputStream(file)) {
                given.load(in);
            }
            String said = "ok";
            try {
                exchange(given, "topic-" + UUID.randomUUID());
            } catch (Exception error) {
                Throwable cause = error.getCause() == null ? error : error.getCause();
                said = cause.getClass().getSimpleName() + ": " + String.valueOf(cause.getMessage()).replace('\n', ' ');
            }
            System.out.println(file.replaceFirst(".*/", "").replace(".properties", "") + "\t" + said);
        }
    }

    static void exchange(Properties given, String topic) throws Exception {
        Properties p = new Properties();
        p.putAll(given);
        p.put("max.block.ms", String.valueOf(PATIENCE_MS));
        p.put("key.serializer", "org.apache.kafka.common.serialization.StringSerializer");
        p.put("value.serializer", "org.apache.kafka.common.serialization.StringSerializer");
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(p)) {
            producer.send(new ProducerRecord<>(topic, "value")).get();
        }
        Properties c = new Properties();
        c.putAll(given);
        c.put("group.id", topic);
        c.put("auto.offset.reset", "earliest");
        c.put("key.deserializer", "org.apache.kafka.common.serialization.StringDeserializer");
        c.put("value.deserializer", "org.apache.kafka.common.serialization.StringDeserializer");
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(c)) {
            consumer.subscribe(Collections.singleton(topic));
            long until = System.currentTimeMillis() + PATIENCE_MS;
            while (System.currentTimeMillis() < until) {
                if (!consumer.poll(Duration.ofMillis(200)).isEmpty()) {
                    consumer.commitSync();
                    return;
                }
            }
        }
        throw new IllegalStateException("no record came");
    }
}
