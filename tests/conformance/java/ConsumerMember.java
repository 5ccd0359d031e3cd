import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.List;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;

/**
 * A member of a group: java ConsumerMember.java SERVERS GROUP TOPIC [name=value...], properties of the consumer. It
 * prints "assigned P,P" after each change, "record PARTITION OFFSET VALUE" for each record, and "committed" when it was
 * told to "commit" on its standard input; it leaves when that ends.
 */
public class ConsumerMember {
    public static void main(String[] args) throws Exception {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", args[0]);
        properties.put("group.id", args[1]);
        properties.put("auto.offset.reset", "earliest");
        properties.put("enable.auto.commit", "false");
        for (int index = 3; index < args.length; index++) {
            String[] parts = args[index].split("=", 2);
            properties.put(parts[0], parts[1]);
        }
        BlockingQueue<String> told = new LinkedBlockingQueue<>();
        Thread reader = new Thread(() -> listen(told));
        reader.setDaemon(true);
        reader.start();
        StringDeserializer text = new StringDeserializer();
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(properties, text, text)) {
            consumer.subscribe(List.of(args[2]));
            String last = "";
            while (true) {
                for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(50))) {
                    System.out.println("record " + record.partition() + " " + record.offset() + " " + record.value());
                }
                String now = numbers(consumer.assignment());
                if (!now.equals(last)) {
                    System.out.println("assigned " + now);
                    last = now;
                }
                String word = told.poll();
                if ("end".equals(word)) {
                    return;
                }
                if ("commit".equals(word)) {
                    consumer.commitSync();
                    System.out.println("committed");
                }
            }
        }
    }

    private static String numbers(Set<TopicPartition> partitions) {
        return partitions.stream()
                .map(TopicPartition::partition)
                .sorted()
                .map(String::valueOf)
                .collect(Collectors.joining(","));
    }

    private static void listen(BlockingQueue<String> told) {
        try (BufferedReader input = new BufferedReader(new InputStreamReader(System.in))) {
            for (String line = input.readLine(); line != null; line = input.readLine()) {
                told.add(line);
            }
        } catch (java.io.IOException error) {
            // As if it had ended.
        }
        told.add("end");
    }
}
