// npm's kafkajs at work: node kafka.js SCENARIO BOOTSTRAP. Ends with 0 if all was as it should be.
"use strict";

const assert = require("node:assert/strict");
const { Kafka, CompressionTypes, CompressionCodecs, ConfigResourceTypes, logLevel } = require("kafkajs");
CompressionCodecs[CompressionTypes.Snappy] = require("kafkajs-snappy");

const [scenario, bootstrap] = process.argv.slice(2);
const kafka = new Kafka({ clientId: "at-work", brokers: [bootstrap], logLevel: logLevel.NOTHING, retry: { initialRetryTime: 30, retries: 8 } });
const QUICK = { sessionTimeout: 1000, heartbeatInterval: 100, rebalanceTimeout: 3000, maxWaitTimeInMs: 100 };
const text = (buffer) => (buffer === null ? null : buffer.toString());
const numbers = (count, first = 0) => [...Array(count).keys()].map((n) => n + first);
const ascending = (a, b) => a - b;

async function withProducer(options, work) {
  const producer = kafka.producer({ ...options });
  await producer.connect();
  try {
    return await work(producer);
  } finally {
    await producer.disconnect();
  }
}

async function withAdmin(work, options = {}) {
  const admin = kafka.admin(options);
  await admin.connect();
  try {
    return await work(admin);
  } finally {
    await admin.disconnect();
  }
}

const create = (topic, numPartitions = 1, config = {}) =>
  withAdmin((admin) =>
    admin.createTopics({ topics: [{ topic, numPartitions, configEntries: Object.entries(config).map(([name, value]) => ({ name, value })) }] }),
  );

/** Reads until so many messages have come; `more` are options of the consumer. */
async function take(topic, count, { groupId = "readers", readUncommitted = false } = {}) {
  const consumer = kafka.consumer({ groupId, readUncommitted, ...QUICK });
  const found = [];
  await consumer.connect();
  await consumer.subscribe({ topic, fromBeginning: true });
  await new Promise((resolve, reject) => {
    consumer.on(consumer.events.CRASH, ({ payload }) => reject(payload.error));
    consumer
      .run({
        eachMessage: async ({ partition, message }) => {
          found.push({ partition, ...message });
          if (found.length === count) resolve();
        },
      })
      .catch(reject);
  });
  await consumer.disconnect();
  return found;
}

const scenarios = {
  async records() {
    let sent = 0;
    await create("log", 1, { "max.message.bytes": "3000000" });
    const large = Buffer.alloc(2000000, "large");
    for (const compression of [CompressionTypes.None, CompressionTypes.GZIP, CompressionTypes.Snappy]) {
      const messages = [
        { key: "k", value: "größe", timestamp: "1700000000000", headers: { a: "1", b: Buffer.from([0, 255]), twice: ["x", "y"] } },
        { key: "gone", value: null },
        { key: null, value: large },
      ];
      await withProducer({}, (producer) => producer.send({ topic: "log", compression, messages }));
      sent += messages.length;
      const found = (await take("log", sent, { groupId: `g-${compression}` })).slice(-3);
      assert.deepEqual(found.map(({ key }) => text(key)), ["k", "gone", null]);
      assert.deepEqual([text(found[0].value), found[1].value, found[2].value.equals(large)], ["größe", null, true]);
      assert.equal(found[0].timestamp, "1700000000000");
      assert.deepEqual([text(found[0].headers.a), found[0].headers.b], ["1", Buffer.from([0, 255])]);
      assert.deepEqual(found[0].headers.twice.map(text), ["x", "y"]);
    }
  },

  async idempotent() {
    await create("log", 3);
    await withProducer({ idempotent: true, maxInFlightRequests: 1 }, async (producer) => {
      for (let first = 0; first < 300; first += 30) {
        await producer.send({ topic: "log", messages: numbers(30, first).map((n) => ({ key: `k${n % 5}`, value: `${n}` })) });
      }
    });
    const found = await take("log", 300);
    assert.deepEqual(found.map(({ value }) => Number(text(value))).sort(ascending), numbers(300));
  },

  async groups() {
    await create("log", 4);
    const seen = [new Set(), new Set()];
    const shares = [0, 0];
    const members = await Promise.all(
      [0, 1].map(async (which) => {
        const consumer = kafka.consumer({ groupId: "g", ...QUICK });
        consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => {
          shares[which] = (payload.memberAssignment.log || []).length;
        });
        await consumer.connect();
        await consumer.subscribe({ topic: "log", fromBeginning: true });
        await consumer.run({ autoCommitInterval: 100, eachMessage: async ({ message }) => seen[which].add(Number(text(message.value))) });
        return consumer;
      }),
    );
    const until = async (condition) => {
      while (!condition()) await new Promise((resolve) => setTimeout(resolve, 10));
    };
    await until(() => shares[0] === 2 && shares[1] === 2);
    await withProducer({}, async (producer) => {
      await producer.send({ topic: "log", messages: numbers(100).map((n) => ({ value: `${n}`, partition: n % 4 })) });
      await until(() => new Set([...seen[0], ...seen[1]]).size === 100);
      assert.deepEqual([seen[0].size, seen[1].size], [50, 50]);
      await members[0].disconnect();
      await until(() => shares[1] === 4);
      await producer.send({ topic: "log", messages: numbers(100, 100).map((n) => ({ value: `${n}`, partition: n % 4 })) });
      await until(() => new Set([...seen[0], ...seen[1]]).size === 200);
    });
    await members[1].disconnect();
  },

  async transactions() {
    await create("source");
    await create("target", 2);
    await withProducer({}, (producer) => producer.send({ topic: "source", messages: numbers(10).map((n) => ({ value: `${n}` })) }));
    const options = { transactionalId: "t", idempotent: true, maxInFlightRequests: 1 };
    await withProducer(options, async (producer) => {
      for (const commits of [true, false, true]) {
        const transaction = await producer.transaction();
        await transaction.send({ topic: "target", messages: numbers(4).map((n) => ({ value: `${commits}`, partition: n % 2 })) });
        await transaction.sendOffsets({ consumerGroupId: "copiers", topics: [{ topic: "source", partitions: [{ partition: 0, offset: commits ? "5" : "9" }] }] });
        await (commits ? transaction.commit() : transaction.abort());
      }
    });
    const found = await take("target", 8);
    assert.deepEqual(found.map(({ value }) => text(value)), Array(8).fill("true"));
    assert.equal((await take("target", 12, { groupId: "everything", readUncommitted: true })).length, 12);
    const [{ partitions }] = await withAdmin((admin) => admin.fetchOffsets({ groupId: "copiers", topics: ["source"] }));
    assert.deepEqual(partitions.map(({ offset }) => offset), ["5"]);
    const rest = await take("source", 5, { groupId: "copiers" });
    assert.deepEqual(rest.map(({ value }) => Number(text(value))), numbers(5, 5));
  },

  async seek() {
    await create("log");
    const at = Date.now() - 100000;
    await withProducer({}, (producer) =>
      producer.send({ topic: "log", messages: numbers(10).map((n) => ({ value: `${n}`, timestamp: `${at + n * 1000}` })) }),
    );
    const byTime = await withAdmin((admin) => admin.fetchTopicOffsetsByTimestamp("log", at + 4500));
    assert.deepEqual(byTime, [{ partition: 0, offset: "5" }]);
    const [{ low, high }] = await withAdmin((admin) => admin.fetchTopicOffsets("log"));
    assert.deepEqual([low, high], ["0", "10"]);
    const consumer = kafka.consumer({ groupId: "g", ...QUICK });
    await consumer.connect();
    await consumer.subscribe({ topic: "log", fromBeginning: true });
    const first = await new Promise((resolve) => {
      consumer.run({ eachMessage: async ({ message }) => message.offset === "7" && resolve(text(message.value)) });
      consumer.seek({ topic: "log", partition: 0, offset: "7" });
    });
    assert.equal(first, "7");
    await consumer.disconnect();
  },

  async admin() {
    await withAdmin(async (admin) => {
      assert.equal(await admin.createTopics({ topics: [{ topic: "log", numPartitions: 2 }] }), true);
      assert.equal(await admin.createTopics({ topics: [{ topic: "log", numPartitions: 2 }] }), false);
      assert.deepEqual(await admin.listTopics(), ["log"]);
      await admin.createPartitions({ topicPartitions: [{ topic: "log", count: 5 }] });
      const { topics } = await admin.fetchTopicMetadata({ topics: ["log"] });
      assert.equal(topics[0].partitions.length, 5);
      const resource = { type: ConfigResourceTypes.TOPIC, name: "log" };
      await admin.alterConfigs({ resources: [{ ...resource, configEntries: [{ name: "retention.ms", value: "1234567" }] }] });
      const { resources } = await admin.describeConfigs({ resources: [{ ...resource, configNames: ["retention.ms"] }] });
      assert.equal(resources[0].configEntries[0].configValue, "1234567");
      await withProducer({}, (producer) => producer.send({ topic: "log", messages: numbers(10).map((n) => ({ value: `${n}`, partition: 0 })) }));
      await admin.deleteTopicRecords({ topic: "log", partitions: [{ partition: 0, offset: "4" }] });
      const offsets = await admin.fetchTopicOffsets("log");
      assert.equal(offsets.find(({ partition }) => partition === 0).low, "4");
      await take("log", 6, { groupId: "g" });
      assert.deepEqual((await admin.listGroups()).groups.map(({ groupId }) => groupId), ["g"]);
      assert.equal((await admin.describeGroups(["g"])).groups[0].state, "Empty");
      await admin.resetOffsets({ groupId: "g", topic: "log", earliest: true });
      await admin.deleteGroups(["g"]);
      const { brokers } = await admin.describeCluster();
      assert.deepEqual(brokers.map(({ host, port }) => `${host}:${port}`), [bootstrap]);
      await admin.deleteTopics({ topics: ["log"] });
      assert.deepEqual(await admin.listTopics(), []);
    });
    // By itself kafkajs tries a topic that is not there again and again.
    const remove = (admin) => admin.deleteTopics({ topics: ["log"] });
    const refused = await withAdmin((admin) => remove(admin).catch((error) => error), { retry: { retries: 0 } });
    assert.equal(refused.cause.type, "UNKNOWN_TOPIC_OR_PARTITION");
  },
};

scenarios[scenario]().then(
  () => process.exit(0),
  (error) => {
    console.error(error);
    process.exit(1);
  },
);
