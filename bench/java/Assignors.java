import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.StringTokenizer;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.group.api.assignor.ConsumerGroupPartitionAssignor;
import org.apache.kafka.coordinator.group.api.assignor.GroupSpec;
import org.apache.kafka.coordinator.group.api.assignor.MemberAssignment;
import org.apache.kafka.coordinator.group.api.assignor.SubscribedTopicDescriber;
import org.apache.kafka.coordinator.group.api.assignor.SubscriptionType;
import org.apache.kafka.coordinator.group.assignor.RangeAssignor;
import org.apache.kafka.coordinator.group.assignor.UniformAssignor;
import org.apache.kafka.coordinator.group.modern.Assignment;
import org.apache.kafka.coordinator.group.modern.GroupSpecImpl;
import org.apache.kafka.coordinator.group.modern.MemberSubscriptionAndAssignmentImpl;

/**
 * Runs Apache Kafka's assignors over groups that are described on standard input, one after the other; the assignment
 * of one is what the next begins with. A group is
 *
 *   group ASSIGNOR homogeneous|heterogeneous ROUNDS
 *   topic NUMBER PARTITIONS
 *   member ID TOPIC,TOPIC
 *   end
 *
 * and is answered by `load ID COUNT` for each member, then `done MOVED MILLISECONDS`: how many partitions that had a
 * member have another one, and the best time of the rounds.
 */
public class Assignors {
    private static Map<String, Map<Uuid, Set<Integer>>> current = new HashMap<>();

    public static void main(String[] arguments) throws Exception {
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            StringTokenizer words = new StringTokenizer(line);
            words.nextToken();
            run(input, words.nextToken(), words.nextToken(), Integer.parseInt(words.nextToken()));
        }
    }

    private static void run(BufferedReader input, String name, String kind, int rounds) throws Exception {
        Map<Uuid, Integer> counts = new HashMap<>();
        Map<String, Set<Uuid>> subscriptions = new HashMap<>();
        for (String line = input.readLine(); !line.equals("end"); line = input.readLine()) {
            StringTokenizer words = new StringTokenizer(line);
            if (words.nextToken().equals("topic")) {
                counts.put(new Uuid(1, Long.parseLong(words.nextToken())), Integer.parseInt(words.nextToken()));
            } else {
                String member = words.nextToken();
                Set<Uuid> topics = new HashSet<>();
                for (String topic : words.nextToken().split(",")) topics.add(new Uuid(1, Long.parseLong(topic)));
                subscriptions.put(member, topics);
            }
        }
        SubscribedTopicDescriber describer = new SubscribedTopicDescriber() {
            @Override
            public int numPartitions(Uuid topic) {
                return counts.getOrDefault(topic, -1);
            }

            @Override
            public Set<String> racksForPartition(Uuid topic, int partition) {
                return Set.of();
            }
        };
        ConsumerGroupPartitionAssignor assignor = name.equals("range") ? new RangeAssignor() : new UniformAssignor();
        Map<String, MemberAssignment> assigned = null;
        double best = Double.MAX_VALUE;
        for (int round = 0; round < rounds; round++) {
            GroupSpec spec = spec(subscriptions, kind);
            long started = System.nanoTime();
            assigned = assignor.assign(spec, describer).members();
            best = Math.min(best, (System.nanoTime() - started) / 1e6);
        }
        tell(assigned, best);
    }

    private static GroupSpec spec(Map<String, Set<Uuid>> subscriptions, String kind) {
        Map<String, MemberSubscriptionAndAssignmentImpl> members = new HashMap<>();
        Map<Uuid, Map<Integer, String>> owners = new HashMap<>();
        subscriptions.forEach((member, topics) -> {
            Map<Uuid, Set<Integer>> held = new HashMap<>();
            current.getOrDefault(member, Map.of()).forEach((topic, some) -> held.put(topic, new HashSet<>(some)));
            Assignment assignment = new Assignment(held);
            members.put(
                member,
                new MemberSubscriptionAndAssignmentImpl(Optional.empty(), Optional.empty(), topics, assignment)
            );
            held.forEach((topic, some) -> some.forEach(
                one -> owners.computeIfAbsent(topic, unused -> new HashMap<>()).put(one, member)
            ));
        });
        SubscriptionType type =
            kind.equals("homogeneous") ? SubscriptionType.HOMOGENEOUS : SubscriptionType.HETEROGENEOUS;
        return new GroupSpecImpl(members, type, owners);
    }

    private static void tell(Map<String, MemberAssignment> assigned, double milliseconds) {
        Map<Uuid, Map<Integer, String>> before = new HashMap<>();
        current.forEach((member, topics) -> topics.forEach((topic, some) -> some.forEach(
            one -> before.computeIfAbsent(topic, unused -> new HashMap<>()).put(one, member)
        )));
        long moved = 0;
        StringBuilder lines = new StringBuilder();
        Map<String, Map<Uuid, Set<Integer>>> next = new HashMap<>();
        for (Map.Entry<String, MemberAssignment> entry : assigned.entrySet()) {
            int load = 0;
            Map<Uuid, Set<Integer>> held = new HashMap<>();
            for (Map.Entry<Uuid, Set<Integer>> topic : entry.getValue().partitions().entrySet()) {
                held.put(topic.getKey(), new HashSet<>(topic.getValue()));
                load += topic.getValue().size();
                for (int one : topic.getValue()) {
                    String owner = before.getOrDefault(topic.getKey(), Map.of()).get(one);
                    if (owner != null && !owner.equals(entry.getKey())) moved++;
                }
            }
            next.put(entry.getKey(), held);
            lines.append("load ").append(entry.getKey()).append(' ').append(load).append('\n');
        }
        current = next;
        System.out.print(lines);
        System.out.printf("done %d %.1f%n", moved, milliseconds);
        System.out.flush();
    }
}
