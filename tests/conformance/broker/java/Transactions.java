import java.time.Duration;
import java.util.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.ProducerFencedException;
import org.apache.kafka.common.errors.InvalidProducerEpochException;

/** Transactions of the Java clients: prints what readers of committed records see. Arguments: servers, input, output. */
public class Transactions {
    static String servers;

    static KafkaProducer<String, String> producer(String id) {
        Properties p = new Properties();
        p.put("bootstrap.servers", servers);
        p.put("transactional.id", id);
        p.put("key.serializer", "org.apache.kafka.common.serialization.StringSerializer");
        p.put("value.serializer", "org.apache.kafka.common.serialization.StringSerializer");
        KafkaProducer<String, String> made = new KafkaProducer<>(p);
        made.initTransactions();
        return made;
    }

    static KafkaConsumer<String, String> consumer(String group, String isolation) {
        Properties p = new Properties();
        p.put("bootstrap.servers", servers);
        p.put("group.id", group);
        p.put("auto.offset.reset", "earliest");
        p.put("enable.auto.commit", "false");
        p.put("isolation.level", isolation);
        p.put("key.deserializer", "org.apache.kafka.common.serialization.StringDeserializer");
        p.put("value.deserializer", "org.apache.kafka.common.serialization.StringDeserializer");
        return new KafkaConsumer<>(p);
    }

    static List<String> readAll(String topic) {
        List<String> values = new ArrayList<>();
        try (KafkaConsumer<String, String> c = consumer("reader-" + UUID.randomUUID(), "read_committed")) {
            List<TopicPartition> parts = new ArrayList<>();
            c.partitionsFor(topic).forEach(i -> parts.add(new TopicPartition(topic, i.partition())));
            c.assign(parts);
            c.seekToBeginning(parts);
            Map<TopicPartition, Long> ends = c.endOffsets(parts);
            while (parts.stream().anyMatch(tp -> c.position(tp) < ends.get(tp)))
                c.poll(Duration.ofMillis(200)).forEach(r -> values.add(r.value()));
        }
        Collections.sort(values);
        return values;
    }

    static void loop(String input, String output, String group, int count) {
        try (KafkaConsumer<String, String> c = consumer(group, "read_committed"); KafkaProducer<String, String> p = producer("loop")) {
            c.subscribe(List.of(input));
            int done = 0, turn = 0;
            while (done < count) {
                ConsumerRecords<String, String> found = c.poll(Duration.ofMillis(200));
                if (found.isEmpty()) continue;
                p.beginTransaction();
                Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
                for (ConsumerRecord<String, String> r : found) {
                    p.send(new ProducerRecord<>(output, r.value() + "!"));
                    offsets.put(new TopicPartition(r.topic(), r.partition()), new OffsetAndMetadata(r.offset() + 1));
                }
                p.sendOffsetsToTransaction(offsets, c.groupMetadata());
                if (turn++ % 2 == 0) {
                    p.abortTransaction();
                    for (TopicPartition tp : c.assignment()) {
                        OffsetAndMetadata at = c.committed(Set.of(tp)).get(tp);
                        c.seek(tp, at == null ? 0 : at.offset());
                    }
                } else {
                    p.commitTransaction();
                    done += found.count();
                }
            }
        }
    }

    public static void main(String[] a) throws Exception {
        servers = a[0];
        String input = a[1], output = a[2];
        try (KafkaProducer<String, String> p = producer("writer")) {
            for (int t = 0; t < 20; t++) {
                p.beginTransaction();
                for (int i = 0; i < 10; i++) p.send(new ProducerRecord<>(input, (t % 4 == 3 ? "x" : "") + t + "-" + i));
                if (t % 4 == 3) p.abortTransaction(); else p.commitTransaction();
            }
            p.beginTransaction();
            p.abortTransaction();
        }
        System.out.println("input " + readAll(input).size());
        loop(input, output, "group-" + output, 150);
        List<String> out = readAll(output);
        System.out.println("output " + out.size() + " distinct " + new HashSet<>(out).size());
        KafkaProducer<String, String> first = producer("fenced");
        first.beginTransaction();
        first.send(new ProducerRecord<>(input, "late")).get();
        KafkaProducer<String, String> second = producer("fenced");
        try {
            first.commitTransaction();
            System.out.println("not fenced");
        } catch (ProducerFencedException | InvalidProducerEpochException e) {
            System.out.println("fenced " + e.getClass().getSimpleName());
        }
        second.beginTransaction();
        second.send(new ProducerRecord<>(input, "second"));
        second.commitTransaction();
        System.out.println("input " + readAll(input).size());
        first.close(Duration.ZERO);
        second.close();
    }
}
