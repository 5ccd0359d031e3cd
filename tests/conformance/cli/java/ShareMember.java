import java.time.Duration;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * A member of a share group: java ShareMember.java SERVERS GROUP TOPIC ACCEPTS CLIENT. It accepts the first records that
 * it gets, says "accepted N", and keeps the others of that poll until its standard input ends; then it leaves.
 */
public class ShareMember {
    public static void main(String[] args) throws Exception {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", args[0]);
        properties.put("group.id", args[1]);
        properties.put("client.id", args[4]);
        properties.put("share.acknowledgement.mode", "explicit");
        int wanted = Integer.parseInt(args[3]);
        ByteArrayDeserializer bytes = new ByteArrayDeserializer();
        try (KafkaShareConsumer<byte[], byte[]> consumer = new KafkaShareConsumer<>(properties, bytes, bytes)) {
            consumer.subscribe(List.of(args[2]));
            int accepted = 0;
            while (accepted < wanted) {
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(200))) {
                    if (accepted < wanted) {
                        consumer.acknowledge(record, AcknowledgeType.ACCEPT);
                        accepted++;
                    }
                }
                consumer.commitSync();
            }
            System.out.println("accepted " + accepted);
            System.in.read();
        }
    }
}
