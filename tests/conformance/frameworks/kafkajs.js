// What a program with kafkajs does with a broker, whose address is the argument. A line for each scene: its name and
// "ok", or what was wrong.
const assert = require('node:assert/strict');
const { Kafka, CompressionTypes, logLevel } = require('kafkajs');

const kafka = new Kafka({ brokers: process.argv[2].split(','), clientId: 'scenes', logLevel: logLevel.NOTHING });
const admin = kafka.admin();
const run = Date.now().toString(36);
const DAY_MS = 86_400_000;

async function made(name, partitions = 1) {
  const topic = `${name}-${run}`;
  await admin.createTopics({ topics: [{ topic, numPartitions: partitions }], waitForLeaders: true });
  await until('leaders', () => admin.fetchTopicOffsets(topic).then(() => true, () => false));
  return topic;
}

async function until(what, isSo) {
  const end = Date.now() + 60_000;
  while (!(await isSo())) {
    assert.ok(Date.now() < end, `not in time: ${what}`);
    await new Promise((done) => setTimeout(done, 50));
  }
}

async function withProducer(settings, use) {
  const producer = kafka.producer({ idempotent: true, maxInFlightRequests: 1, ...settings });
  await producer.connect();
  try {
    await use(producer);
  } finally {
    await producer.disconnect();
  }
}

/** A member that notes what it gets. */
async function member(groupId, topic, settings = {}) {
  const consumer = kafka.consumer({ groupId, heartbeatInterval: 300, rebalanceTimeout: 10_000, ...settings });
  const own = { consumer, got: [], partitions: [] };
  consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => {
    own.partitions = payload.memberAssignment[topic] ?? [];
  });
  await consumer.connect();
  await consumer.subscribe({ topics: [topic], fromBeginning: true });
  await consumer.run({
    eachMessage: async ({ partition, message }) => {
      own.got.push({ partition, offset: message.offset, text: message.value.toString(), headers: message.headers });
    },
  });
  return own;
}

const scenes = {
  async codecs() {
    const topic = await made('codecs');
    await withProducer({}, async (producer) => {
      for (const compression of [CompressionTypes.None, CompressionTypes.GZIP]) {
        const messages = Array.from({ length: 50 }, (_, at) => ({ value: `${compression}-${at}`, headers: { h: 'v' } }));
        await producer.send({ topic, acks: -1, compression, messages });
      }
    });
    const reader = await member(`codecs-${run}`, topic);
    await until('100 messages', () => reader.got.length === 100);
    await reader.consumer.disconnect();
    assert.deepEqual(reader.got.map(({ offset }) => Number(offset)), [...Array(100).keys()]);
    assert.equal(reader.got[99].text, '1-49');
    assert.equal(reader.got[99].headers.h.toString(), 'v');
  },

  async rebalance() {
    const topic = await made('rebalance', 4);
    const groupId = `rebalance-${run}`;
    const first = await member(groupId, topic);
    await until('all partitions', () => first.partitions.length === 4);
    const second = await member(groupId, topic);
    await until('half of them', () => first.partitions.length === 2 && second.partitions.length === 2);
    const { groups } = await admin.describeGroups([groupId]);
    assert.equal(groups[0].state, 'Stable');
    assert.equal(groups[0].members.length, 2);
    await first.consumer.disconnect();
    await until('all again', () => second.partitions.length === 4);
    await withProducer({}, (producer) => producer.send({ topic, messages: [{ partition: 3, value: 'x' }] }));
    await until('its message', () => second.got.length === 1);
    await second.consumer.disconnect();
    const [{ partitions }] = await admin.fetchOffsets({ groupId, topics: [topic] });
    assert.equal(partitions.find(({ partition }) => partition === 3).offset, '1');
  },

  async transactions() {
    const topic = await made('transactions');
    const groupId = `transactions-${run}`;
    await withProducer({ transactionalId: groupId }, async (producer) => {
      for (const name of ['committed', 'aborted', 'also committed']) {
        const transaction = await producer.transaction();
        await transaction.send({ topic, messages: [{ value: name }, { value: name }] });
        const offset = name === 'aborted' ? '99' : '2';
        await transaction.sendOffsets({ consumerGroupId: groupId, topics: [{ topic, partitions: [{ partition: 0, offset }] }] });
        await (name === 'aborted' ? transaction.abort() : transaction.commit());
      }
    });
    const [{ partitions }] = await admin.fetchOffsets({ groupId, topics: [topic] });
    assert.equal(partitions[0].offset, '2');
    const reader = await member(`${groupId}-reader`, topic);
    await until('what was committed', () => reader.got.length === 4);
    await reader.consumer.disconnect();
    assert.deepEqual(reader.got.map(({ text }) => text).sort(), [...Array(2).fill('also committed'), ...Array(2).fill('committed')]);
  },

  // The header of the batch has the largest time that was given, which is too small: the broker must look at records.
  async 'times in one send'() {
    const topic = await made('times');
    const began = Date.now();
    await withProducer({}, async (producer) => {
      const old = String(began - 30 * DAY_MS);
      await producer.send({ topic, messages: [{ value: 'old', timestamp: old }, { value: 'a' }, { value: 'b' }] });
    });
    const [{ offset }] = await admin.fetchTopicOffsetsByTimestamp(topic, began - 60_000);
    assert.equal(offset, '1');
    const [first] = await admin.fetchTopicOffsetsByTimestamp(topic, began - 40 * DAY_MS);
    assert.equal(first.offset, '0');
  },

  async admin() {
    const topic = await made('admin', 2);
    const groupId = `admin-${run}`;
    await withProducer({}, (producer) =>
      producer.send({ topic, messages: Array.from({ length: 10 }, () => ({ partition: 0, value: 'x' })) }));
    await admin.setOffsets({ groupId, topic, partitions: [{ partition: 0, offset: '4' }] });
    await admin.resetOffsets({ groupId, topic, earliest: true });
    const [{ partitions }] = await admin.fetchOffsets({ groupId, topics: [topic], resolveOffsets: true });
    assert.deepEqual(partitions.map(({ offset }) => offset), ['0', '0']);
    await admin.deleteTopicRecords({ topic, partitions: [{ partition: 0, offset: '7' }] });
    const low = (await admin.fetchTopicOffsets(topic)).find(({ partition }) => partition === 0);
    assert.deepEqual([low.low, low.high], ['7', '10']);
    await admin.createPartitions({ topicPartitions: [{ topic, count: 3 }] });
    await until('three partitions', async () => (await admin.fetchTopicMetadata({ topics: [topic] })).topics[0].partitions.length === 3);
    await admin.alterConfigs({ validateOnly: false, resources: [{ type: 2, name: topic, configEntries: [{ name: 'retention.ms', value: '3600000' }] }] });
    await until('its setting', async () => {
      const { resources } = await admin.describeConfigs({ resources: [{ type: 2, name: topic, configNames: ['retention.ms'] }] });
      return resources[0].configEntries[0].configValue === '3600000';
    });
    assert.ok((await admin.listGroups()).groups.some((group) => group.groupId === groupId));
    await admin.deleteGroups([groupId]);
    assert.ok(!(await admin.listGroups()).groups.some((group) => group.groupId === groupId));
    await assert.rejects(admin.fetchTopicMetadata({ topics: ['nowhere'] }), { type: 'UNKNOWN_TOPIC_OR_PARTITION' });
  },
};

(async () => {
  await admin.connect();
  for (const [name, play] of Object.entries(scenes)) {
    const outcome = await play().then(() => 'ok', (error) => `${error.name}: ${error.message.split('\n').join(' ')}`);
    console.log(`${name}: ${outcome}`);
  }
  await admin.disconnect();
  process.exit(0);
})();
