import java.io.FileWriter;
import java.io.PrintWriter;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.Properties;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.serialization.StringDeserializer;

/**
 * Works on a queue until it is killed: java ShareWorker.java SERVERS GROUP TOPIC JOURNAL. Values say what to do: "poison"
 * kills the worker, "bad" is rejected, "later" is released the first time; the rest is accepted. A line of the journal
 * is "what partition offset count": D delivered, S acceptance sent, A acceptance confirmed, R rejection confirmed.
 */
public class ShareWorker {
    public static void main(String[] args) throws Exception {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", args[0]);
        properties.put("group.id", args[1]);
        properties.put("share.acknowledgement.mode", "explicit");
        properties.put("max.poll.records", "200");
        StringDeserializer text = new StringDeserializer();
        PrintWriter journal = new PrintWriter(new FileWriter(args[3], true));
        try (KafkaShareConsumer<String, String> consumer = new KafkaShareConsumer<>(properties, text, text)) {
            consumer.subscribe(List.of(args[2]));
            while (true) {
                List<ConsumerRecord<String, String>> told = new ArrayList<>();
                StringBuilder lines = new StringBuilder();
                boolean poisoned = false;
                for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(500))) {
                    lines.append(line("D", record));
                    poisoned |= record.value().equals("poison");
                    AcknowledgeType type = AcknowledgeType.ACCEPT;
                    if (record.value().equals("bad")) {
                        type = AcknowledgeType.REJECT;
                    } else if (record.value().equals("later") && record.deliveryCount().orElse((short) 1) == 1) {
                        type = AcknowledgeType.RELEASE;
                    }
                    if (type != AcknowledgeType.RELEASE) {
                        told.add(record);
                        lines.append(line(type == AcknowledgeType.ACCEPT ? "S" : "T", record));
                    }
                    consumer.acknowledge(record, type);
                }
                journal.print(lines);
                journal.flush();
                if (poisoned) {
                    Runtime.getRuntime().halt(9);
                }
                var results = consumer.commitSync();
                for (ConsumerRecord<String, String> record : told) {
                    if (confirmed(results, record)) {
                        journal.print(line(record.value().equals("bad") ? "R" : "A", record));
                    }
                }
                journal.flush();
            }
        }
    }

    private static boolean confirmed(
            java.util.Map<TopicIdPartition, Optional<KafkaException>> results, ConsumerRecord<String, String> record) {
        return results.entrySet().stream()
                .anyMatch(one -> one.getKey().partition() == record.partition() && one.getValue().isEmpty());
    }

    private static String line(String what, ConsumerRecord<String, String> record) {
        return what + " " + record.partition() + " " + record.offset() + " " + record.deliveryCount().orElse((short) 0) + "\n";
    }
}
