import java.nio.file.Path;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.CloseOptions;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;

/**
 * A Kafka Streams application that counts words: java WordCount.java SERVERS APPLICATION INPUT OUTPUT STATE_FOLDER
 * [name=value...], properties of the application. Each record of the input is a word; the output has a record with the
 * count so far for each. It has a topic for repartitioning ("words") and a store ("counts") with a changelog. Its local
 * state is removed before it starts. It prints "state X" at each change, and leaves its group when its standard input
 * ends.
 */
public class WordCount {
    public static void main(String[] args) throws Exception {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", args[0]);
        properties.put("application.id", args[1]);
        properties.put("state.dir", Path.of(args[4]).toAbsolutePath().toString());
        properties.put("default.key.serde", Serdes.String().getClass());
        properties.put("default.value.serde", Serdes.String().getClass());
        properties.put("auto.offset.reset", "earliest");
        properties.put("commit.interval.ms", "100");
        properties.put("statestore.cache.max.bytes", "0");
        for (int index = 5; index < args.length; index++) {
            String[] parts = args[index].split("=", 2);
            properties.put(parts[0], parts[1]);
        }
        StreamsBuilder builder = new StreamsBuilder();
        builder.stream(args[2], Consumed.with(Serdes.String(), Serdes.String()))
                .groupBy((key, word) -> word, Grouped.as("words"))
                .count(Materialized.as("counts"))
                .toStream()
                .to(args[3], Produced.with(Serdes.String(), Serdes.Long()));
        KafkaStreams streams = new KafkaStreams(builder.build(properties), properties);
        streams.setStateListener((now, before) -> System.out.println("state " + now));
        streams.cleanUp();
        streams.start();
        while (System.in.read() >= 0) {
            // Until it ends.
        }
        streams.close(CloseOptions.groupMembershipOperation(CloseOptions.GroupMembershipOperation.LEAVE_GROUP));
    }
}
