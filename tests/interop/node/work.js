// npm's amqplib at work. node work.js SCENARIO URL PREFIX: ends with 0 if all was as it should be.
"use strict";

const assert = require("node:assert/strict");
const { once } = require("node:events");
const amqp = require("amqplib");

const [scenario, url, prefix] = process.argv.slice(2);
const named = (name) => `${prefix}.${name}`;
const text = (message) => message.content.toString();

/** So many messages of a queue; `handle` acknowledges, or not. */
function take(channel, queue, count, handle, options) {
  return new Promise((resolve, reject) => {
    const found = [];
    channel
      .consume(
        queue,
        (message) => {
          if (message === null) return reject(new Error(`${queue} is gone`));
          if (handle) handle(message);
          else channel.ack(message);
          found.push(message);
          if (found.length === count) channel.cancel(message.fields.consumerTag).then(() => resolve(found), reject);
        },
        options,
      )
      .catch(reject);
  });
}

const scenarios = {
  /** Persistent and confirmed, read by two workers with a small prefetch on a connection of their own. */
  async confirms(connection) {
    const queue = named("orders");
    const out = await connection.createConfirmChannel();
    await out.assertQueue(queue, { durable: true });
    let confirmed = 0;
    for (let number = 0; number < 1000; number++) {
      out.sendToQueue(queue, Buffer.from(`${number}`), { persistent: true, messageId: `m-${number}` }, (error) => {
        assert.equal(error, null);
        confirmed++;
      });
    }
    await out.waitForConfirms();
    assert.equal(confirmed, 1000);
    assert.equal((await out.checkQueue(queue)).messageCount, 1000);
    const working = await amqp.connect(url);
    const counts = [0, 0];
    const seen = new Set();
    const channels = [await working.createChannel(), await working.createChannel()];
    await new Promise((resolve, reject) => {
      for (const [worker, channel] of channels.entries()) {
        (async () => {
          await channel.prefetch(10);
          await channel.consume(queue, (message) => {
            assert.equal(message.properties.deliveryMode, 2);
            assert.equal(message.properties.messageId, `m-${text(message)}`);
            seen.add(text(message));
            counts[worker]++;
            channel.ack(message);
            if (counts[0] + counts[1] === 1000) resolve();
          });
        })().catch(reject);
      }
    });
    for (const channel of channels) await channel.close(); // the last acknowledgements leave before it
    assert.equal(seen.size, 1000);
    assert.ok(Math.min(...counts) > 100, `${counts}`);
    await working.close();
    assert.equal((await out.deleteQueue(queue)).messageCount, 0);
  },

  /** Bodies of many frames, more of them than any buffer holds. */
  async large(connection) {
    const queue = named("queue");
    const channel = await connection.createConfirmChannel();
    await channel.assertQueue(queue, { exclusive: true });
    const body = Buffer.alloc(300000, 7);
    for (let number = 0; number < 100; number++) {
      if (!channel.sendToQueue(queue, body)) await once(channel, "drain");
    }
    await channel.waitForConfirms();
    const found = await take(channel, queue, 100);
    assert.ok(found.every((message) => message.content.equals(body)));
  },

  async routing(connection) {
    const channel = await connection.createChannel();
    const [orders, europe, lost] = [named("orders"), named("europe"), named("lost")];
    await channel.assertExchange(lost, "fanout", { autoDelete: true });
    await channel.assertExchange(orders, "topic", { alternateExchange: lost });
    await channel.assertExchange(europe, "direct", { internal: true });
    await channel.bindExchange(europe, orders, "order.eu.*");
    const queues = {};
    for (const [name, exchange, key] of [
      ["paid", orders, "#.paid"],
      ["berlin", europe, "order.eu.paid"],
      ["rest", lost, ""],
    ]) {
      queues[name] = (await channel.assertQueue("", { exclusive: true })).queue;
      await channel.bindQueue(queues[name], exchange, key);
    }
    for (const key of ["order.eu.paid", "order.us.paid", "order.eu.placed", "nothing"]) {
      channel.publish(orders, key, Buffer.from(key));
    }
    assert.deepEqual((await take(channel, queues.paid, 2)).map(text), ["order.eu.paid", "order.us.paid"]);
    assert.deepEqual((await take(channel, queues.berlin, 1)).map(text), ["order.eu.paid"]);
    assert.deepEqual((await take(channel, queues.rest, 1)).map(text), ["nothing"]);
    channel.publish("", named("nobody"), Buffer.from("back"), { mandatory: true });
    const [returned] = await once(channel, "return");
    assert.deepEqual([returned.fields.replyCode, returned.fields.replyText, text(returned)], [312, "NO_ROUTE", "back"]);
    await channel.unbindExchange(europe, orders, "order.eu.*");
    await channel.deleteExchange(europe);
    await channel.deleteExchange(orders);
  },

  /** Refused once: tried again; refused twice: dead, with its history. */
  async retries(connection) {
    const channel = await connection.createChannel();
    const [work, dead] = [named("work"), named("dead")];
    await channel.assertQueue(dead, { exclusive: true });
    await channel.assertQueue(work, { exclusive: true, deadLetterExchange: "", deadLetterRoutingKey: dead });
    for (let number = 0; number < 20; number++) channel.sendToQueue(work, Buffer.from(`${number}`));
    await take(channel, work, 30, (message) => {
      if (Number(text(message)) % 2) channel.ack(message);
      else channel.nack(message, false, !message.fields.redelivered);
    });
    const found = await take(channel, dead, 10);
    assert.deepEqual(new Set(found.map(text)), new Set([...Array(10).keys()].map((n) => `${2 * n}`)));
    for (const message of found) {
      const [death] = message.properties.headers["x-death"];
      assert.deepEqual([death.queue, death.reason, Number(death.count)], [work, "rejected", 1]);
    }
  },

  async calls(connection) {
    const queue = named("squares");
    const server = await connection.createChannel();
    await server.assertQueue(queue, { exclusive: true });
    await server.consume(queue, (message) => {
      const { replyTo, correlationId } = message.properties;
      server.sendToQueue(replyTo, Buffer.from(`${Number(text(message)) ** 2}`), { correlationId });
      server.ack(message);
    });
    const asking = await amqp.connect(url);
    const client = await asking.createChannel();
    const answers = new Map();
    const all = new Promise((resolve) => {
      const take = (message) => {
        answers.set(message.properties.correlationId, text(message));
        if (answers.size === 50) resolve();
      };
      client.consume("amq.rabbitmq.reply-to", take, { noAck: true }).then(() => {
        for (let number = 0; number < 50; number++) {
          const options = { replyTo: "amq.rabbitmq.reply-to", correlationId: `${number}` };
          client.sendToQueue(queue, Buffer.from(`${number}`), options);
        }
      });
    });
    await all;
    for (let number = 0; number < 50; number++) assert.equal(answers.get(`${number}`), `${number ** 2}`);
    await asking.close();
  },

  /** Each closes its channel, with the code and a reason; the connection goes on. */
  async mistakes(connection) {
    const queue = named("queue");
    const keeper = await connection.createChannel();
    await keeper.assertQueue(queue, { exclusive: true });
    for (const [code, mistake] of [
      [404, (channel) => channel.checkQueue(named("missing"))],
      [404, (channel) => channel.checkExchange(named("missing"))],
      [406, (channel) => channel.assertQueue(queue, { exclusive: true, autoDelete: true })],
      [403, (channel) => channel.assertExchange("amq.mine", "direct")],
    ]) {
      const channel = await connection.createChannel();
      const failed = once(channel, "error");
      await assert.rejects(mistake(channel), (error) => error.code === code);
      assert.equal((await failed)[0].code, code);
    }
    keeper.sendToQueue(queue, Buffer.from("still there"));
    assert.equal(text(await keeper.get(queue, { noAck: true })), "still there");
    assert.equal(await keeper.get(queue), false);
  },

  /** A consumer hears that its queue is gone. */
  async cancelled(connection) {
    const queue = named("queue");
    const channel = await connection.createChannel();
    await channel.assertQueue(queue);
    const gone = new Promise((resolve) => channel.consume(queue, resolve));
    const other = await connection.createChannel();
    await other.deleteQueue(queue);
    assert.equal(await gone, null);
    await connection.updateSecret(Buffer.from("new secret"), "rotated");
  },

  async headers(connection) {
    const queue = named("queue");
    const channel = await connection.createChannel();
    await channel.assertQueue(queue, { exclusive: true });
    const headers = {
      text: "größe",
      small: 7,
      negative: -70000,
      large: 2 ** 40,
      half: 0.5,
      yes: true,
      nothing: null,
      list: [1, "two", [3]],
      table: { inner: { deep: "est" } },
      bytes: Buffer.from([0, 255]),
      when: { "!": "timestamp", value: 1700000000 },
    };
    const properties = { headers, contentType: "application/json", priority: 3, expiration: "60000", timestamp: 1700000000 };
    channel.sendToQueue(queue, Buffer.from("{}"), { ...properties, type: "t", appId: "a", userId: "guest" });
    const [message] = await take(channel, queue, 1);
    assert.deepEqual(message.properties.headers, headers);
    for (const name of ["contentType", "priority", "expiration", "timestamp"]) {
      assert.equal(message.properties[name], properties[name]);
    }
    assert.deepEqual([message.properties.type, message.properties.appId, message.properties.userId], ["t", "a", "guest"]);
  },

  async streams(connection) {
    const stream = named("stream");
    const channel = await connection.createConfirmChannel();
    await channel.assertQueue(stream, { durable: true, arguments: { "x-queue-type": "stream" } });
    for (let number = 0; number < 100; number++) channel.sendToQueue(stream, Buffer.from(`${number}`));
    await channel.waitForConfirms();
    await channel.prefetch(20);
    for (const [offset, first] of [
      ["first", 0],
      [60, 60],
    ]) {
      const found = await take(channel, stream, 100 - first, undefined, { arguments: { "x-stream-offset": offset } });
      assert.deepEqual(found.map((message) => Number(text(message))), [...Array(100).keys()].slice(first));
    }
    await channel.deleteQueue(stream);
  },
};

(async () => {
  const connection = await amqp.connect(url);
  connection.on("error", (error) => {
    throw error;
  });
  await scenarios[scenario](connection);
  await connection.close();
})().catch((error) => {
  console.error(error);
  process.exit(1);
});
