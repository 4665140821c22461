import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.*;
import java.util.concurrent.*;
import java.util.function.*;
import java.util.stream.*;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.*;
import org.apache.kafka.common.acl.*;
import org.apache.kafka.common.quota.*;
import org.apache.kafka.common.resource.*;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.errors.*;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.serialization.*;

/**
 * The Java client at work: java Work ADDRESS PREFIX [SCENARIO...]
 *
 * Each public static method without parameters is a scenario; its topics and groups begin with PREFIX. A line for each:
 * its name, then "passed" and how long it took, or "failed" and why.
 */
public final class Work {
    static String address;
    static String prefix;
    static final Map<String, Object> common = new HashMap<>();
    static final long PATIENCE_MS = 20_000;

    public static void main(String[] words) throws Exception {
        address = words[0];
        common.put("bootstrap.servers", address);
        String file = System.getProperty("work.settings");
        if (file != null) {
            Properties settings = new Properties();
            try (java.io.Reader reader = new java.io.FileReader(file)) {
                settings.load(reader);
            }
            settings.forEach((name, value) -> common.put((String) name, value));
        }
        Set<String> wanted = new HashSet<>(Arrays.asList(words).subList(2, words.length));
        int failures = 0;
        List<Method> scenarios = Arrays.stream(Work.class.getMethods())
            .filter(m -> Modifier.isStatic(m.getModifiers()) && m.getParameterCount() == 0)
            .sorted(Comparator.comparing(Method::getName)).collect(Collectors.toList());
        for (Method scenario : scenarios) {
            if (!wanted.isEmpty() && !wanted.contains(scenario.getName())) continue;
            prefix = words[1] + "-" + scenario.getName();
            long began = System.nanoTime();
            try {
                scenario.invoke(null);
                System.out.printf("%s passed %d ms%n", scenario.getName(), (System.nanoTime() - began) / 1_000_000);
            } catch (Throwable error) {
                failures++;
                Throwable cause = error.getCause() == null ? error : error.getCause();
                System.out.printf("%s failed %s%n", scenario.getName(), cause.toString().replace('\n', ' '));
                for (StackTraceElement at : cause.getStackTrace()) {
                    if (at.getClassName().startsWith("Work")) System.out.println("    at " + at);
                }
            }
            System.out.flush();
        }
        System.exit(failures == 0 ? 0 : 1);
    }

    // -- scenarios

    public static void recordsOfEveryKind() throws Exception {
        create("log", 1, Map.of("max.message.bytes", "4000000"));
        int offset = 0;
        for (String codec : List.of("none", "gzip", "snappy", "lz4", "zstd")) {
            try (KafkaProducer<byte[], byte[]> producer = producer(Map.of(
                    "compression.type", codec, "max.request.size", "4000000"))) {
                byte[] large = new byte[3_000_000];
                new Random(7).nextBytes(large);
                send(producer, new ProducerRecord<>(name("log"), 0, 1_700_000_000_000L, bytes("k"), bytes("v")));
                send(producer, new ProducerRecord<>(name("log"), 0, (Long) null, bytes("gone"), (byte[]) null));
                send(producer, new ProducerRecord<>(name("log"), 0, (Long) null, null, large));
                ProducerRecord<byte[], byte[]> record = new ProducerRecord<>(name("log"), 0, (Long) null, bytes("h"), bytes(""));
                record.headers().add("a", bytes("1")).add("a", bytes("2")).add("none", null);
                send(producer, record);
                List<ConsumerRecord<byte[], byte[]>> found = readFrom("log", offset, 4);
                offset += 4;
                check(found.get(0).timestamp() == 1_700_000_000_000L, "its time");
                check(text(found.get(0).key()).equals("k") && text(found.get(0).value()).equals("v"), "key and value");
                check(found.get(1).value() == null, "a tombstone");
                check(found.get(2).key() == null && Arrays.equals(found.get(2).value(), large), "a large one");
                List<String> headers = new ArrayList<>();
                for (Header header : found.get(3).headers()) {
                    headers.add(header.key() + "=" + (header.value() == null ? "null" : text(header.value())));
                }
                check(headers.equals(List.of("a=1", "a=2", "none=null")), "headers " + headers);
            }
        }
    }

    public static void tenThousandInManyPartitions() throws Exception {
        create("wide", 20, Map.of());
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        try (KafkaProducer<byte[], byte[]> producer = producer(Map.of("linger.ms", "5"))) {
            for (int number = 0; number < 10_000; number++) {
                sent.add(producer.send(new ProducerRecord<>(name("wide"), bytes("key-" + number % 97), bytes("" + number))));
            }
            for (Future<RecordMetadata> one : sent) one.get(PATIENCE_MS, TimeUnit.MILLISECONDS);
        }
        Map<String, Integer> last = new HashMap<>();
        int count = 0;
        for (ConsumerRecord<byte[], byte[]> record : readAll("wide", 10_000)) {
            int number = Integer.parseInt(text(record.value()));
            Integer before = last.put(text(record.key()), number);
            check(before == null || before < number, "the order of a key");
            count++;
        }
        check(count == 10_000, "all of them: " + count);
    }

    public static void placesToReadFrom() throws Exception {
        create("log", 1, Map.of());
        long at = System.currentTimeMillis() - 100_000;
        try (KafkaProducer<byte[], byte[]> producer = producer(Map.of())) {
            for (int n = 0; n < 10; n++) {
                send(producer, new ProducerRecord<>(name("log"), 0, at + n * 1_000, null, bytes("" + n)));
            }
        }
        TopicPartition partition = new TopicPartition(name("log"), 0);
        try (KafkaConsumer<byte[], byte[]> consumer = consumer("g", Map.of())) {
            check(consumer.beginningOffsets(List.of(partition)).get(partition) == 0, "where it begins");
            check(consumer.endOffsets(List.of(partition)).get(partition) == 10, "where it ends");
            check(consumer.offsetsForTimes(Map.of(partition, at + 4_500)).get(partition).offset() == 5, "by time");
            check(consumer.offsetsForTimes(Map.of(partition, at + 99_000)).get(partition) == null, "later than all");
            consumer.assign(List.of(partition));
            consumer.seek(partition, 7);
            check(take(consumer, 3).get(0).offset() == 7, "by seek");
            consumer.seekToBeginning(List.of(partition));
            check(take(consumer, 10).get(0).offset() == 0, "from the start");
            consumer.pause(List.of(partition));
            consumer.seek(partition, 0);
            check(consumer.poll(Duration.ofMillis(300)).isEmpty(), "paused");
            consumer.resume(List.of(partition));
            check(take(consumer, 10).size() == 10, "resumed");
            consumer.commitSync(Map.of(partition, new OffsetAndMetadata(4, "half way")));
            OffsetAndMetadata committed = consumer.committed(Set.of(partition)).get(partition);
            check(committed.offset() == 4 && committed.metadata().equals("half way"), "committed");
        }
        try (KafkaConsumer<byte[], byte[]> consumer = consumer("none", Map.of("auto.offset.reset", "none"))) {
            consumer.subscribe(List.of(name("log")));
            expect(NoOffsetForPartitionException.class, () -> {
                long deadline = System.currentTimeMillis() + PATIENCE_MS;
                while (System.currentTimeMillis() < deadline) consumer.poll(Duration.ofMillis(100));
            });
        }
    }

    public static void groupsEager() throws Exception {
        membersComeAndGo(Map.of("partition.assignment.strategy", RangeAssignor.class.getName()));
    }

    public static void groupsCooperative() throws Exception {
        membersComeAndGo(Map.of("partition.assignment.strategy", CooperativeStickyAssignor.class.getName()));
    }

    public static void groupsStatic() throws Exception {
        create("log", 6, Map.of());
        Map<String, String> one = Map.of("group.instance.id", "one", "session.timeout.ms", "6000");
        Map<String, String> two = Map.of("group.instance.id", "two", "session.timeout.ms", "6000");
        try (KafkaConsumer<byte[], byte[]> first = consumer("g", one)) {
            Set<TopicPartition> before;
            first.subscribe(List.of(name("log")));
            try (KafkaConsumer<byte[], byte[]> second = consumer("g", two)) {
                second.subscribe(List.of(name("log")));
                until(() -> sharedOut(6, first, second), "two share", first, second);
                before = second.assignment();
            }
            try (KafkaConsumer<byte[], byte[]> second = consumer("g", two)) {
                second.subscribe(List.of(name("log")));
                until(() -> sharedOut(6, first, second), "it is back", first, second);
                check(second.assignment().equals(before), "with what it had");
            }
        }
    }

    public static void groupsBalanced() throws Exception {
        membersComeAndGo(Map.of("group.protocol", "consumer"));
    }

    public static void groupsBalancedByRange() throws Exception {
        membersComeAndGo(Map.of("group.protocol", "consumer", "group.remote.assignor", "range"));
    }

    public static void groupsBalancedByPattern() throws Exception {
        create("log-a", 2, Map.of());
        create("log-b", 2, Map.of());
        create("other", 2, Map.of());
        try (KafkaConsumer<byte[], byte[]> consumer = consumer("g", Map.of("group.protocol", "consumer"))) {
            Method subscribe;
            Class<?> pattern;
            try {
                pattern = Class.forName("org.apache.kafka.clients.consumer.SubscriptionPattern");
                subscribe = consumer.getClass().getMethod("subscribe", pattern);
            } catch (ClassNotFoundException older) {
                consumer.subscribe(java.util.regex.Pattern.compile(name("log") + "-.*"));
                until(() -> consumer.assignment().size() == 4, "both are its own", consumer);
                return;
            }
            subscribe.invoke(consumer, pattern.getConstructor(String.class).newInstance(name("log") + "-.*"));
            until(() -> consumer.assignment().size() == 4, "both are its own", consumer);
        }
    }

    private static void membersComeAndGo(Map<String, String> settings) throws Exception {
        create("log", 6, Map.of());
        try (KafkaConsumer<byte[], byte[]> first = consumer("g", settings)) {
            first.subscribe(List.of(name("log")));
            until(() -> sharedOut(6, first), "it has them all", first);
            try (KafkaConsumer<byte[], byte[]> second = consumer("g", settings);
                 KafkaConsumer<byte[], byte[]> third = consumer("g", settings)) {
                second.subscribe(List.of(name("log")));
                third.subscribe(List.of(name("log")));
                until(() -> sharedOut(6, first, second, third), "three share", first, second, third);
                try (KafkaProducer<byte[], byte[]> producer = producer(Map.of())) {
                    for (int n = 0; n < 60; n++) {
                        send(producer, new ProducerRecord<>(name("log"), n % 6, (byte[]) null, bytes("" + n)));
                    }
                }
                Set<String> found = new TreeSet<>();
                long deadline = System.currentTimeMillis() + PATIENCE_MS;
                while (found.size() < 60) {
                    check(System.currentTimeMillis() < deadline, "all come: " + found.size());
                    for (KafkaConsumer<byte[], byte[]> one : List.of(first, second, third)) {
                        one.poll(Duration.ofMillis(20)).forEach(r -> found.add(text(r.value())));
                        one.commitSync();
                    }
                }
            }
            until(() -> sharedOut(6, first), "it has them all again", first);
            try (Admin admin = admin()) {
                ConsumerGroupDescription group = admin.describeConsumerGroups(List.of(name("g")))
                    .describedGroups().get(name("g")).get();
                check(group.members().size() == 1, "one member");
                long sum = admin.listConsumerGroupOffsets(name("g")).partitionsToOffsetAndMetadata().get()
                    .values().stream().mapToLong(OffsetAndMetadata::offset).sum();
                check(sum == 60, "all is committed: " + sum);
            }
        }
    }

    public static void transactionsAllOrNothing() throws Exception {
        create("log", 2, Map.of());
        try (KafkaProducer<byte[], byte[]> producer = producer(Map.of("transactional.id", name("t")))) {
            producer.initTransactions();
            for (int n = 0; n < 6; n++) {
                producer.beginTransaction();
                for (int p = 0; p < 2; p++) {
                    producer.send(new ProducerRecord<>(name("log"), p, (byte[]) null, bytes("" + n))).get();
                }
                if (n % 2 == 0) producer.commitTransaction(); else producer.abortTransaction();
            }
        }
        List<String> values = readAll("log", 6, Map.of("isolation.level", "read_committed")).stream()
            .map(r -> text(r.value())).sorted().collect(Collectors.toList());
        check(values.equals(List.of("0", "0", "2", "2", "4", "4")), "what was committed: " + values);
        check(readAll("log", 12).size() == 12, "everything");
    }

    public static void transactionsFenceZombies() throws Exception {
        create("log", 1, Map.of());
        KafkaProducer<byte[], byte[]> zombie = producer(Map.of("transactional.id", name("t")));
        zombie.initTransactions();
        zombie.beginTransaction();
        zombie.send(new ProducerRecord<>(name("log"), bytes("of the zombie"))).get();
        try (KafkaProducer<byte[], byte[]> successor = producer(Map.of("transactional.id", name("t")))) {
            successor.initTransactions();
            expect(ProducerFencedException.class, zombie::commitTransaction);
            zombie.close(Duration.ZERO);
            successor.beginTransaction();
            successor.send(new ProducerRecord<>(name("log"), bytes("of its successor")));
            successor.commitTransaction();
        }
        List<ConsumerRecord<byte[], byte[]>> found = readAll("log", 1, Map.of("isolation.level", "read_committed"));
        check(text(found.get(0).value()).equals("of its successor"), "only one");
    }

    public static void transactionsConsumeTransformProduce() throws Exception {
        create("source", 2, Map.of());
        create("target", 2, Map.of());
        try (KafkaProducer<byte[], byte[]> producer = producer(Map.of())) {
            for (int n = 0; n < 100; n++) send(producer, new ProducerRecord<>(name("source"), n % 2, (byte[]) null, bytes("" + n)));
        }
        int done = 0;
        int turn = 0;
        long deadline = System.currentTimeMillis() + PATIENCE_MS;
        while (done < 100) {
            check(System.currentTimeMillis() < deadline, "all are done: " + done);
            // Each worker does two rounds; the second is never ended, and its successor's start aborts it.
            KafkaProducer<byte[], byte[]> producer = producer(Map.of("transactional.id", name("t")));
            try (KafkaConsumer<byte[], byte[]> consumer = consumer("g", Map.of(
                    "max.poll.records", "13", "isolation.level", "read_committed"))) {
                producer.initTransactions();
                consumer.subscribe(List.of(name("source")));
                for (int round = 0; round < 2 && done < 100; round++) {
                    List<ConsumerRecord<byte[], byte[]>> records = new ArrayList<>();
                    while (records.isEmpty() && System.currentTimeMillis() < deadline) {
                        consumer.poll(Duration.ofMillis(100)).forEach(records::add);
                    }
                    producer.beginTransaction();
                    Map<TopicPartition, OffsetAndMetadata> positions = new HashMap<>();
                    for (ConsumerRecord<byte[], byte[]> record : records) {
                        int number = Integer.parseInt(text(record.value()));
                        producer.send(new ProducerRecord<>(name("target"), bytes("" + number * number)));
                        positions.put(new TopicPartition(record.topic(), record.partition()),
                            new OffsetAndMetadata(record.offset() + 1));
                    }
                    producer.sendOffsetsToTransaction(positions, consumer.groupMetadata());
                    producer.flush();
                    if (round == 0 || done + records.size() == 100) {
                        producer.commitTransaction();
                        done += records.size();
                    }
                }
            } finally {
                producer.close(Duration.ZERO);
            }
            turn++;
        }
        List<Integer> found = readAll("target", 100, Map.of("isolation.level", "read_committed")).stream()
            .map(r -> Integer.parseInt(text(r.value()))).sorted().collect(Collectors.toList());
        List<Integer> wanted = IntStream.range(0, 100).map(n -> n * n).sorted().boxed().collect(Collectors.toList());
        check(found.equals(wanted), "each square once, after " + turn + " workers");
    }

    public static void adminTopics() throws Exception {
        try (Admin admin = admin()) {
            create("log", 3, Map.of("retention.ms", "3600000"));
            expect(TopicExistsException.class, () -> create("log", 1, Map.of()));
            expect(InvalidConfigurationException.class, () -> create("bad", 1, Map.of("cleanup.policy", "burn")));
            TopicDescription described = admin.describeTopics(List.of(name("log"))).allTopicNames().get().get(name("log"));
            check(described.partitions().size() == 3 && !described.topicId().equals(Uuid.ZERO_UUID), "described");
            admin.createPartitions(Map.of(name("log"), NewPartitions.increaseTo(5))).all().get();
            check(admin.listTopics().names().get().contains(name("log")), "listed");
            ConfigResource resource = new ConfigResource(ConfigResource.Type.TOPIC, name("log"));
            Config config = admin.describeConfigs(List.of(resource)).all().get().get(resource);
            check(config.get("retention.ms").value().equals("3600000"), "its settings");
            admin.incrementalAlterConfigs(Map.of(resource, List.of(
                new AlterConfigOp(new ConfigEntry("max.message.bytes", "5000"), AlterConfigOp.OpType.SET),
                new AlterConfigOp(new ConfigEntry("retention.ms", ""), AlterConfigOp.OpType.DELETE)))).all().get();
            config = admin.describeConfigs(List.of(resource)).all().get().get(resource);
            check(config.get("max.message.bytes").value().equals("5000"), "changed");
            check(config.get("retention.ms").isDefault(), "back to the default");
            try (KafkaProducer<byte[], byte[]> producer = producer(Map.of())) {
                expect(RecordTooLargeException.class,
                    () -> send(producer, new ProducerRecord<>(name("log"), 0, (byte[]) null, new byte[9_000])));
                for (int n = 0; n < 10; n++) send(producer, new ProducerRecord<>(name("log"), 0, (byte[]) null, bytes("" + n)));
            }
            TopicPartition partition = new TopicPartition(name("log"), 0);
            admin.deleteRecords(Map.of(partition, RecordsToDelete.beforeOffset(4))).all().get();
            check(admin.listOffsets(Map.of(partition, OffsetSpec.earliest())).all().get().get(partition).offset() == 4, "start");
            check(admin.listOffsets(Map.of(partition, OffsetSpec.latest())).all().get().get(partition).offset() == 10, "end");
            check(admin.listOffsets(Map.of(partition, OffsetSpec.maxTimestamp())).all().get().get(partition).offset() >= 4, "newest");
            admin.deleteTopics(List.of(name("log"))).all().get();
            expect(UnknownTopicOrPartitionException.class,
                () -> admin.describeTopics(List.of(name("log"))).allTopicNames().get());
        }
    }

    public static void adminGroups() throws Exception {
        create("log", 1, Map.of());
        try (Admin admin = admin(); KafkaConsumer<byte[], byte[]> consumer = consumer("g", Map.of())) {
            try (KafkaProducer<byte[], byte[]> producer = producer(Map.of())) {
                for (int n = 0; n < 10; n++) send(producer, new ProducerRecord<>(name("log"), bytes("" + n)));
            }
            consumer.subscribe(List.of(name("log")));
            take(consumer, 10);
            consumer.commitSync();
            check(admin.listConsumerGroups().all().get().stream().anyMatch(g -> g.groupId().equals(name("g"))), "listed");
            ConsumerGroupDescription group = admin.describeConsumerGroups(List.of(name("g"))).all().get().get(name("g"));
            check(group.members().size() == 1 && group.members().iterator().next().assignment().topicPartitions().size() == 1, "described");
            expect(GroupNotEmptyException.class, () -> admin.deleteConsumerGroups(List.of(name("g"))).all().get());
            admin.removeMembersFromConsumerGroup(name("g"), new RemoveMembersFromConsumerGroupOptions()).all().get();
            consumer.unsubscribe();
            TopicPartition partition = new TopicPartition(name("log"), 0);
            admin.alterConsumerGroupOffsets(name("g"), Map.of(partition, new OffsetAndMetadata(3))).all().get();
            check(admin.listConsumerGroupOffsets(name("g")).partitionsToOffsetAndMetadata().get().get(partition).offset() == 3, "altered");
            admin.deleteConsumerGroupOffsets(name("g"), Set.of(partition)).all().get();
            check(admin.listConsumerGroupOffsets(name("g")).partitionsToOffsetAndMetadata().get().isEmpty(), "deleted");
            try {
                admin.deleteConsumerGroups(List.of(name("g"))).all().get();
            } catch (ExecutionException error) {
                // A group of no members and no offsets is gone by itself.
                check(error.getCause() instanceof GroupIdNotFoundException, "" + error.getCause());
            }
        }
    }

    public static void adminTransactionsAndProducers() throws Exception {
        create("log", 1, Map.of());
        try (Admin admin = admin();
             KafkaProducer<byte[], byte[]> producer = producer(Map.of("transactional.id", name("t")))) {
            producer.initTransactions();
            producer.beginTransaction();
            producer.send(new ProducerRecord<>(name("log"), bytes("x"))).get();
            TopicPartition partition = new TopicPartition(name("log"), 0);
            check(admin.listTransactions().all().get().stream().anyMatch(t -> t.transactionalId().equals(name("t"))), "listed");
            TransactionDescription found = admin.describeTransactions(List.of(name("t"))).all().get().get(name("t"));
            check(found.state() == TransactionState.ONGOING && found.topicPartitions().contains(partition), "described");
            var producers = admin.describeProducers(List.of(partition)).all().get().get(partition).activeProducers();
            check(producers.size() == 1, "its producers");
            ProducerState state = producers.iterator().next();
            admin.abortTransaction(new AbortTransactionSpec(partition, state.producerId(), (short) state.producerEpoch(),
                state.coordinatorEpoch().orElse(0))).all().get();
            check(admin.listOffsets(Map.of(partition, OffsetSpec.latest()),
                new ListOffsetsOptions(IsolationLevel.READ_COMMITTED)).all().get().get(partition).offset() == 2, "aborted");
        }
    }

    public static void adminCluster() throws Exception {
        try (Admin admin = admin()) {
            check(admin.describeCluster().nodes().get().size() == 1, "nodes");
            check(!admin.describeCluster().clusterId().get().isEmpty(), "cluster id");
            admin.describeFeatures().featureMetadata().get();
            int id = admin.describeCluster().controller().get().id();
            check(admin.describeLogDirs(List.of(id)).allDescriptions().get().get(id).size() == 1, "folders");
            ConfigResource resource = new ConfigResource(ConfigResource.Type.BROKER, "" + id);
            check(admin.describeConfigs(List.of(resource)).all().get().get(resource).entries().size() > 20, "settings");
        }
    }

    public static void adminScramUsers() throws Exception {
        String user = name("user");
        try (Admin admin = admin()) {
            admin.alterUserScramCredentials(List.of(new UserScramCredentialUpsertion(
                user, new ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096), "secret"))).all().get();
            check(admin.describeUserScramCredentials(List.of(user)).description(user).get().credentialInfos().size() == 1, "made");
            admin.alterUserScramCredentials(List.of(
                new UserScramCredentialDeletion(user, ScramMechanism.SCRAM_SHA_256))).all().get();
            expect(ResourceNotFoundException.class,
                () -> admin.describeUserScramCredentials(List.of(user)).description(user).get());
        }
    }

    public static void adminQuotas() throws Exception {
        ClientQuotaEntity entity = new ClientQuotaEntity(Map.of(ClientQuotaEntity.CLIENT_ID, name("slow")));
        try (Admin admin = admin()) {
            admin.alterClientQuotas(List.of(new ClientQuotaAlteration(entity,
                List.of(new ClientQuotaAlteration.Op("producer_byte_rate", 400_000.0))))).all().get();
            ClientQuotaFilter filter = ClientQuotaFilter.containsOnly(List.of(
                ClientQuotaFilterComponent.ofEntity(ClientQuotaEntity.CLIENT_ID, name("slow"))));
            check(admin.describeClientQuotas(filter).entities().get().get(entity).get("producer_byte_rate") == 400_000.0, "set");
            create("log", 1, Map.of());
            try (KafkaProducer<byte[], byte[]> producer = producer(Map.of("client.id", name("slow")))) {
                for (int n = 0; n < 6; n++) send(producer, new ProducerRecord<>(name("log"), new byte[800_000]));
                double throttled = producer.metrics().entrySet().stream()
                    .filter(e -> e.getKey().name().equals("produce-throttle-time-max"))
                    .mapToDouble(e -> (Double) e.getValue().metricValue()).max().orElse(0);
                check(throttled > 0, "it is told to wait: " + throttled);
            }
            admin.alterClientQuotas(List.of(new ClientQuotaAlteration(entity,
                List.of(new ClientQuotaAlteration.Op("producer_byte_rate", null))))).all().get();
            check(admin.describeClientQuotas(filter).entities().get().isEmpty(), "taken away");
        }
    }

    public static void adminAcls() throws Exception {
        AclBinding rule = new AclBinding(
            new ResourcePattern(ResourceType.TOPIC, name("shared"), PatternType.PREFIXED),
            new AccessControlEntry("User:nobody", "*", AclOperation.READ, AclPermissionType.ALLOW));
        try (Admin admin = admin()) {
            if (!common.containsKey("sasl.mechanism")) return; // a Kafka without logins has no rules
            admin.createAcls(List.of(rule)).all().get();
            check(admin.describeAcls(AclBindingFilter.ANY).values().get().contains(rule), "made");
            check(admin.deleteAcls(List.of(rule.toFilter())).all().get().contains(rule), "removed");
            check(!admin.describeAcls(AclBindingFilter.ANY).values().get().contains(rule), "gone");
            Map<String, Object> wrong = new HashMap<>(common);
            wrong.put("sasl.jaas.config", ((String) common.get("sasl.jaas.config")).replaceFirst("password=\"[^\"]*\"", "password=\"wrong\""));
            try (Admin stranger = Admin.create(wrong)) {
                expect(SaslAuthenticationException.class, () -> stranger.describeCluster().nodes().get());
            }
        }
    }

    // -- in few words

    interface Act { void run() throws Exception; }

    static String name(String of) { return prefix + "-" + of; }
    static byte[] bytes(String text) { return text.getBytes(StandardCharsets.UTF_8); }
    static String text(byte[] data) { return new String(data, StandardCharsets.UTF_8); }

    static void check(boolean holds, String what) {
        if (!holds) throw new AssertionError(what);
    }

    static void expect(Class<? extends Throwable> kind, Act act) {
        try {
            act.run();
        } catch (Throwable error) {
            for (Throwable at = error; at != null; at = at.getCause()) if (kind.isInstance(at)) return;
            throw new AssertionError("not " + kind.getSimpleName() + " but " + error);
        }
        throw new AssertionError("no " + kind.getSimpleName());
    }

    static Admin admin() { return Admin.create(common); }

    static void create(String topic, int partitions, Map<String, String> config) throws Exception {
        try (Admin admin = admin()) {
            admin.createTopics(List.of(new NewTopic(name(topic), partitions, (short) 1).configs(config))).all().get();
        }
    }

    static KafkaProducer<byte[], byte[]> producer(Map<String, String> more) {
        Map<String, Object> config = new HashMap<>(common);
        config.putAll(more);
        return new KafkaProducer<>(config, new ByteArraySerializer(), new ByteArraySerializer());
    }

    static void send(KafkaProducer<byte[], byte[]> producer, ProducerRecord<byte[], byte[]> record) throws Exception {
        producer.send(record).get(PATIENCE_MS, TimeUnit.MILLISECONDS);
    }

    static KafkaConsumer<byte[], byte[]> consumer(String group, Map<String, String> more) {
        Map<String, Object> config = new HashMap<>(common);
        config.putAll(Map.of("group.id", name(group), "auto.offset.reset", "earliest",
            "enable.auto.commit", "false", "fetch.max.wait.ms", "100"));
        if (!more.containsKey("group.protocol")) {
            config.putAll(Map.of("session.timeout.ms", "3000", "heartbeat.interval.ms", "200"));
        }
        config.putAll(more);
        return new KafkaConsumer<>(config, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    static List<ConsumerRecord<byte[], byte[]>> take(KafkaConsumer<byte[], byte[]> consumer, int count) {
        List<ConsumerRecord<byte[], byte[]>> found = new ArrayList<>();
        long deadline = System.currentTimeMillis() + PATIENCE_MS;
        while (found.size() < count) {
            check(System.currentTimeMillis() < deadline, found.size() + " of " + count + " came");
            consumer.poll(Duration.ofMillis(200)).forEach(found::add);
        }
        return found;
    }

    static List<ConsumerRecord<byte[], byte[]>> readFrom(String topic, long offset, int count) {
        try (KafkaConsumer<byte[], byte[]> consumer = consumer("readers", Map.of())) {
            TopicPartition partition = new TopicPartition(name(topic), 0);
            consumer.assign(List.of(partition));
            consumer.seek(partition, offset);
            return take(consumer, count);
        }
    }

    static List<ConsumerRecord<byte[], byte[]>> readAll(String topic, int count) { return readAll(topic, count, Map.of()); }

    static List<ConsumerRecord<byte[], byte[]>> readAll(String topic, int count, Map<String, String> more) {
        try (KafkaConsumer<byte[], byte[]> consumer = consumer("readers", more)) {
            List<TopicPartition> partitions = consumer.partitionsFor(name(topic)).stream()
                .map(p -> new TopicPartition(p.topic(), p.partition())).collect(Collectors.toList());
            consumer.assign(partitions);
            consumer.seekToBeginning(partitions);
            return take(consumer, count);
        }
    }

    @SafeVarargs
    static boolean sharedOut(int partitions, KafkaConsumer<byte[], byte[]>... consumers) {
        Set<TopicPartition> all = new HashSet<>();
        int sum = 0;
        int most = 0;
        int least = partitions;
        for (KafkaConsumer<byte[], byte[]> consumer : consumers) {
            int size = consumer.assignment().size();
            all.addAll(consumer.assignment());
            sum += size;
            most = Math.max(most, size);
            least = Math.min(least, size);
        }
        return all.size() == partitions && sum == partitions && most - least <= 1;
    }

    @SafeVarargs
    static void until(BooleanSupplier condition, String what, KafkaConsumer<byte[], byte[]>... consumers) {
        long deadline = System.currentTimeMillis() + PATIENCE_MS;
        while (!condition.getAsBoolean()) {
            check(System.currentTimeMillis() < deadline, what);
            for (KafkaConsumer<byte[], byte[]> consumer : consumers) consumer.poll(Duration.ofMillis(20));
        }
    }
}
