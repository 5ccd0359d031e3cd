import java.time.Duration;
import java.util.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;

/** Does what loop.py does, with the Java clients. Arguments: servers, input, output, group, transactional id, protocol. */
public class Loop {
    static KafkaProducer<byte[], String> producer(String[] a) {
        Properties p = new Properties();
        p.put("bootstrap.servers", a[0]);
        p.put("transactional.id", a[4]);
        p.put("transaction.timeout.ms", "10000");
        p.put("max.block.ms", "10000");
        p.put("reconnect.backoff.max.ms", "100");
        p.put("key.serializer", "org.apache.kafka.common.serialization.ByteArraySerializer");
        p.put("value.serializer", "org.apache.kafka.common.serialization.StringSerializer");
        return new KafkaProducer<>(p);
    }

    static KafkaConsumer<byte[], String> consumer(String[] a) {
        Properties p = new Properties();
        p.put("bootstrap.servers", a[0]);
        p.put("group.id", a[3]);
        p.put("group.protocol", a[5]);
        p.put("auto.offset.reset", "earliest");
        p.put("enable.auto.commit", "false");
        p.put("isolation.level", "read_committed");
        p.put("max.poll.records", "20");
        p.put("reconnect.backoff.max.ms", "100");
        if (a[5].equals("classic")) {
            p.put("session.timeout.ms", "3000");
            p.put("heartbeat.interval.ms", "500");
        }
        p.put("key.deserializer", "org.apache.kafka.common.serialization.ByteArrayDeserializer");
        p.put("value.deserializer", "org.apache.kafka.common.serialization.StringDeserializer");
        return new KafkaConsumer<>(p);
    }

    static boolean turn(KafkaConsumer<byte[], String> c, KafkaProducer<byte[], String> p, String output, int number) {
        ConsumerRecords<byte[], String> found = c.poll(Duration.ofMillis(300));
        if (found.isEmpty()) return true;
        p.beginTransaction();
        Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
        for (ConsumerRecord<byte[], String> r : found) {
            p.send(new ProducerRecord<>(output, r.partition(), null, r.value() + "!"));
            offsets.put(new TopicPartition(r.topic(), r.partition()), new OffsetAndMetadata(r.offset() + 1));
        }
        p.sendOffsetsToTransaction(offsets, c.groupMetadata());
        if (number % 7 == 6) {
            p.abortTransaction();
            return false;
        }
        p.commitTransaction();
        return true;
    }

    public static void main(String[] a) {
        while (true) {
            try (KafkaConsumer<byte[], String> c = consumer(a); KafkaProducer<byte[], String> p = producer(a)) {
                p.initTransactions();
                c.subscribe(List.of(a[1]));
                for (int number = 0; turn(c, p, a[2], number); number++) { }
            } catch (KafkaException | IllegalStateException e) {
                // The broker was killed, say: everything starts anew.
            }
        }
    }
}
