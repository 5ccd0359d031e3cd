import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.function.Consumer;
import org.apache.kafka.clients.consumer.CommitFailedException;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.FencedInstanceIdException;
import org.apache.kafka.common.errors.RebalanceInProgressException;
import org.apache.kafka.common.errors.StaleMemberEpochException;
import org.apache.kafka.common.errors.UnknownMemberIdException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * A consumer that does what its standard input says: java RigConsumer.java TOPIC,TOPIC name=value... (properties).
 * "poll MS" and "rest MS" (without reading) print "record TOPIC PARTITION OFFSET" for each record and "assigned TOPIC
 * PARTITION ..." after a change, then "joining" where it is about to join again; "commit =METADATA TOPIC PARTITION OFFSET ..." commits. Each ends with "done", "failed"
 * or "maybe". At the end of the input it leaves.
 */
public class RigConsumer implements ConsumerRebalanceListener {
    private final KafkaConsumer<byte[], byte[]> consumer;
    private final boolean isClassic;
    private boolean isChanged = false;
    private boolean isJoining = false;

    RigConsumer(Properties properties) {
        isClassic = !"consumer".equals(properties.getProperty("group.protocol"));
        consumer = new KafkaConsumer<>(properties, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    public static void main(String[] args) throws Exception {
        Properties properties = new Properties();
        for (int index = 1; index < args.length; index++) {
            String[] parts = args[index].split("=", 2);
            properties.put(parts[0], parts[1]);
        }
        RigConsumer member = new RigConsumer(properties);
        try (member.consumer;
                BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8))) {
            member.consumer.subscribe(List.of(args[0].split(",")), member);
            for (String line = input.readLine(); line != null; line = input.readLine()) {
                System.out.println(member.answer(line.split(" ")));
            }
        }
    }

    private String answer(String[] words) throws InterruptedException {
        if (words[0].equals("commit")) {
            return commit(words);
        }
        Duration wait = Duration.ofMillis(Long.parseLong(words[1]));
        if (words[0].equals("rest")) {
            change(consumer::pause, consumer.assignment());
            Thread.sleep(wait.toMillis()); // poll would spin: with the consumer protocol it does so while all is paused
            wait = Duration.ZERO;
        } else {
            change(consumer::resume, consumer.paused());
        }
        StringBuilder lines = new StringBuilder();
        try {
            for (ConsumerRecord<byte[], byte[]> record : consumer.poll(wait)) {
                lines.append("record " + record.topic() + " " + record.partition() + " " + record.offset() + "\n");
            }
        } catch (UnknownMemberIdException | FencedInstanceIdException | StaleMemberEpochException fenced) {
            isChanged = true; // the session expired while positions were asked for: the consumer joins again
        }
        if (isChanged) {
            isChanged = false;
            lines.append("assigned");
            for (TopicPartition place : consumer.assignment()) {
                lines.append(" " + place.topic() + " " + place.partition());
            }
            lines.append(isJoining ? "\njoining\n" : "\n");
        }
        return lines + "done";
    }

    /** Partitions may be revoked meanwhile: the next turn changes those that are left. */
    private static void change(Consumer<Collection<TopicPartition>> what, Collection<TopicPartition> partitions) {
        try {
            what.accept(partitions);
        } catch (IllegalStateException revoked) {
            return;
        }
    }

    private String commit(String[] words) {
        Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
        for (int index = 2; index < words.length; index += 3) {
            TopicPartition place = new TopicPartition(words[index], Integer.parseInt(words[index + 1]));
            offsets.put(place, new OffsetAndMetadata(Long.parseLong(words[index + 2]), words[1].substring(1)));
        }
        try {
            consumer.commitSync(offsets, Duration.ofSeconds(30));
        } catch (CommitFailedException | RebalanceInProgressException refused) {
            return "failed";
        } catch (KafkaException unknown) {
            return "maybe";
        }
        return "done";
    }

    @Override
    public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
        isChanged = true;
        isJoining = false;
    }

    @Override
    public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
        isChanged = true;
        isJoining = isClassic;
    }

    @Override
    public void onPartitionsLost(Collection<TopicPartition> partitions) {
        isChanged = true;
        isJoining = true;
    }
}
