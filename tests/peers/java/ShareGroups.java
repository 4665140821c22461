import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.ListGroupsOptions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.GroupState;
import org.apache.kafka.common.GroupType;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** Share groups as the Java client sees them: ShareGroups ADDRESS; the exit code is 0 if all was as it must be. */
public class ShareGroups {
    private static final long PATIENCE_MS = 20_000;
    private static final Map<String, String> EXPLICIT = Map.of("share.acknowledgement.mode", "explicit");
    private static String address;
    private static boolean wrong = false;

    private static void check(boolean holds, String what) {
        System.out.println((holds ? " passed " : " failed ") + what);
        wrong |= !holds;
    }

    private static KafkaShareConsumer<String, String> member(String group, String topic, Map<String, String> more) {
        Map<String, Object> config = new HashMap<>(more);
        config.put("bootstrap.servers", address);
        config.put("group.id", group);
        KafkaShareConsumer<String, String> made =
                new KafkaShareConsumer<>(config, new StringDeserializer(), new StringDeserializer());
        made.subscribe(List.of(topic));
        return made;
    }

    private static void begin(Admin admin, String group, String topic, int partitions, String... more) throws Exception {
        admin.createTopics(List.of(new NewTopic(topic, partitions, (short) 1))).all().get();
        List<AlterConfigOp> changes = new ArrayList<>();
        Map<String, String> configs = new TreeMap<>(Map.of("share.auto.offset.reset", "earliest"));
        for (int at = 0; at < more.length; at += 2) configs.put(more[at], more[at + 1]);
        configs.forEach((name, text) -> changes.add(new AlterConfigOp(new ConfigEntry(name, text), AlterConfigOp.OpType.SET)));
        ConfigResource resource = new ConfigResource(ConfigResource.Type.GROUP, group);
        admin.incrementalAlterConfigs(Map.of(resource, changes)).all().get();
    }

    private static void produce(String topic, int first, int count) {
        Map<String, Object> config = Map.of("bootstrap.servers", address, "linger.ms", "5");
        try (KafkaProducer<String, String> producer =
                new KafkaProducer<>(config, new StringSerializer(), new StringSerializer())) {
            for (int number = first; number < first + count; number++)
                producer.send(new ProducerRecord<>(topic, "k" + number, "v" + number));
        }
    }

    /** Polls until so many came, or nothing more does. */
    private static List<ConsumerRecord<String, String>> take(
            KafkaShareConsumer<String, String> member, int count, long ms) {
        List<ConsumerRecord<String, String>> found = new ArrayList<>();
        long until = System.currentTimeMillis() + ms;
        while (found.size() < count && System.currentTimeMillis() < until)
            member.poll(Duration.ofMillis(200)).forEach(found::add);
        return found;
    }

    private static void commit(KafkaShareConsumer<String, String> member) {
        member.commitSync().forEach((partition, error) -> check(error.isEmpty(), "acknowledged in " + partition + error));
    }

    private static void together(Admin admin) throws Exception {
        begin(admin, "together", "together", 3);
        produce("together", 0, 1000);
        Set<String> seen = ConcurrentHashMap.newKeySet();
        AtomicInteger count = new AtomicInteger();
        List<Thread> threads = new ArrayList<>();
        for (int number = 0; number < 4; number++) {
            Thread thread = new Thread(() -> {
                try (KafkaShareConsumer<String, String> member = member("together", "together", Map.of())) {
                    long until = System.currentTimeMillis() + PATIENCE_MS;
                    while (seen.size() < 1000 && System.currentTimeMillis() < until)
                        for (ConsumerRecord<String, String> record : member.poll(Duration.ofMillis(200))) {
                            seen.add(record.value());
                            count.incrementAndGet();
                        }
                    member.commitSync();
                }
            });
            thread.start();
            threads.add(thread);
        }
        for (Thread thread : threads) thread.join();
        check(seen.size() == 1000 && count.get() == 1000, "four members read each of 1000 records once: " + count);
        var groups = admin.listGroups(ListGroupsOptions.forShareGroups()).all().get();
        check(groups.stream().anyMatch(one -> one.groupId().equals("together")
                && one.type().get() == GroupType.SHARE), "the group is listed");
        var described = admin.describeShareGroups(List.of("together")).all().get().get("together");
        check(described.groupState() == GroupState.EMPTY, "and described: " + described.groupState());
        admin.deleteShareGroups(List.of("together")).all().get();
        groups = admin.listGroups(ListGroupsOptions.forShareGroups()).all().get();
        check(groups.stream().noneMatch(one -> one.groupId().equals("together")), "and deleted");
    }

    private static void verdicts(Admin admin) throws Exception {
        begin(admin, "verdicts", "verdicts", 1);
        produce("verdicts", 0, 10);
        Map<String, Integer> delivered = new TreeMap<>();
        try (KafkaShareConsumer<String, String> member = member("verdicts", "verdicts", EXPLICIT)) {
            long until = System.currentTimeMillis() + PATIENCE_MS;
            while (delivered.getOrDefault("v3", 0) < 5 && System.currentTimeMillis() < until) {
                for (ConsumerRecord<String, String> record : member.poll(Duration.ofMillis(200))) {
                    int times = delivered.merge(record.value(), 1, Integer::sum);
                    check(record.deliveryCount().get() == times, record.value() + " for time " + times);
                    if (record.value().equals("v3") || (record.value().equals("v7") && times == 1))
                        member.acknowledge(record, AcknowledgeType.RELEASE);
                    else if (record.value().equals("v5"))
                        member.acknowledge(record, AcknowledgeType.REJECT);
                    else
                        member.acknowledge(record, AcknowledgeType.ACCEPT);
                }
                commit(member);
            }
            check(take(member, 1, 1_500).isEmpty(), "nothing is left");
        }
        Map<String, Integer> expected = new TreeMap<>();
        for (int number = 0; number < 10; number++) expected.put("v" + number, 1);
        expected.put("v3", 5);
        expected.put("v7", 2);
        check(delivered.equals(expected), "each came as often as it must: " + delivered);
    }

    private static void leaving(Admin admin) throws Exception {
        begin(admin, "leaving", "leaving", 1);
        produce("leaving", 0, 5);
        KafkaShareConsumer<String, String> first = member("leaving", "leaving", EXPLICIT);
        check(take(first, 5, PATIENCE_MS).size() == 5, "the first member holds all");
        try (KafkaShareConsumer<String, String> second = member("leaving", "leaving", Map.of())) {
            check(take(second, 1, 1_500).isEmpty(), "the second has nothing");
            first.close();
            check(take(second, 5, PATIENCE_MS).size() == 5, "the first has left: the second has all");
        }
    }

    private static void renewed(Admin admin) throws Exception {
        AcknowledgeType renew = null;
        for (AcknowledgeType type : AcknowledgeType.values()) if (type.name().equals("RENEW")) renew = type;
        if (renew == null) return;
        begin(admin, "renewed", "renewed", 1, "share.record.lock.duration.ms", "15000");
        produce("renewed", 0, 10);
        Map<String, String> few = new HashMap<>(EXPLICIT);
        few.put("max.poll.records", "3");
        few.put("share.acquire.mode", "record_limit");
        try (KafkaShareConsumer<String, String> slow = member("renewed", "renewed", few)) {
            List<ConsumerRecord<String, String>> held = take(slow, 1, PATIENCE_MS);
            check(held.size() == 3, "no more than asked for");
            Thread.sleep(9_000);
            for (ConsumerRecord<String, String> record : held) slow.acknowledge(record, renew);
            commit(slow);
            try (KafkaShareConsumer<String, String> other = member("renewed", "renewed", Map.of())) {
                Set<String> found = new HashSet<>();
                for (ConsumerRecord<String, String> record : take(other, 8, 9_000)) found.add(record.value());
                check(found.size() == 7, "after 18 s the other has not got what is held: " + found);
            }
        }
    }

    private static void committed(Admin admin) throws Exception {
        begin(admin, "committed", "committed", 1, "share.isolation.level", "read_committed");
        Map<String, Object> config = Map.of("bootstrap.servers", address, "transactional.id", "committed");
        try (KafkaProducer<String, String> producer =
                new KafkaProducer<>(config, new StringSerializer(), new StringSerializer());
                KafkaShareConsumer<String, String> member = member("committed", "committed", Map.of())) {
            producer.initTransactions();
            for (int round = 0; round < 4; round++) {
                producer.beginTransaction();
                for (int number = 0; number < 5; number++) producer.send(new ProducerRecord<>("committed", "r" + round));
                producer.flush();
                if (round % 2 == 0) producer.commitTransaction();
                else producer.abortTransaction();
            }
            List<ConsumerRecord<String, String>> found = take(member, 10, PATIENCE_MS);
            found.addAll(take(member, 1, 1_000));
            check(found.size() == 10 && found.stream().noneMatch(one -> one.value().matches("r[13]")),
                    "only what was committed came: " + found.size());
        }
    }

    public static void main(String[] words) throws Exception {
        address = words[0];
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", address))) {
            together(admin);
            verdicts(admin);
            leaving(admin);
            renewed(admin);
            committed(admin);
        }
        System.exit(wrong ? 1 : 0);
    }
}
