// Measures BullMQ with the same work that TDF's benchmarks do: it adds jobs in bulk, processes them in this process, and
// prints one JSON object; with --rate it measures instead how long each job takes from its adding to its start. Point it
// at a private Redis, by --socket: it leaves what BullMQ keeps of completed jobs by default.
'use strict';
const { parseArgs } = require('node:util');
const { performance } = require('node:perf_hooks');
const { setTimeout: pause } = require('node:timers/promises');
const { Queue, Worker } = require('bullmq');
const Redis = require('ioredis');

const bulk = 1000; // jobs a call of addBulk

function options() {
  const { values } = parseArgs({
    options: {
      socket: { type: 'string' },
      tasks: { type: 'string', default: '2000' },
      concurrency: { type: 'string', default: '50' },
      warm: { type: 'string', default: '0' },
      rate: { type: 'string', default: '0' },
      limit: { type: 'string', default: '120' }, // seconds
    },
  });
  if (!values.socket) throw new Error('--socket is missing: the unix socket of a Redis that nobody else uses');
  const o = { socket: values.socket };
  for (const [name, least] of [['tasks', 1], ['concurrency', 1], ['warm', 0], ['rate', 0], ['limit', 1]]) {
    o[name] = Number(values[name]);
    if (!Number.isInteger(o[name]) || o[name] < least) throw new Error(`--${name}=${values[name]}: must be a whole number, at least ${least}`);
  }
  return o;
}

// site makes queue and worker, which is ready but does nothing yet.
async function site(o, name, handler) {
  const connect = () => new (Redis.default ?? Redis)({ path: o.socket, maxRetriesPerRequest: null });
  const connections = [connect(), connect()];
  const queue = new Queue(name, { connection: connections[0] });
  const worker = new Worker(name, handler, { connection: connections[1], concurrency: o.concurrency, autorun: false });
  await Promise.all([queue.waitUntilReady(), worker.waitUntilReady()]);
  const close = async () => {
    await Promise.all([worker.close(), queue.close()]);
    for (const c of connections) c.disconnect();
  };
  return { queue, worker, close };
}

// life adds n jobs and then processes them; seconds of both.
async function life(o, name, n) {
  const { queue, worker, close } = await site(o, name, async () => {});
  const began = performance.now();
  for (let done = 0; done < n; done += bulk) {
    const jobs = Array.from({ length: Math.min(bulk, n - done) }, (_, i) => ({ name: 'noop', data: { n: done + i } }));
    await queue.addBulk(jobs);
  }
  const added = performance.now();
  let left = n;
  await new Promise((resolve, reject) => {
    worker.on('failed', (_, err) => reject(err));
    worker.on('error', reject);
    worker.on('completed', () => { if (--left === 0) resolve(); });
    worker.run().catch(reject);
  });
  const ended = performance.now();
  await close();
  return { enqueue_seconds: (added - began) / 1000, process_seconds: (ended - added) / 1000 };
}

// latencies adds jobs one by one at a steady rate while a worker waits for them.
async function latencies(o, name, n) {
  const took = [];
  let finished;
  const all = new Promise((resolve) => { finished = resolve; });
  const { queue, worker, close } = await site(o, name, async (job) => {
    took.push(performance.now() - job.data.at);
    if (took.length === o.warm + n) finished();
  });
  const failed = new Promise((_, reject) => {
    worker.on('failed', (_job, err) => reject(err));
    worker.on('error', reject);
    worker.run().catch(reject);
  });
  const add = async () => {
    const began = performance.now();
    for (let i = 0; i < o.warm + n; i++) {
      const wait = began + (i * 1000) / o.rate - performance.now();
      if (wait > 0) await pause(wait);
      await queue.add('noop', { at: performance.now() });
    }
    await all;
  };
  await Promise.race([add(), failed]);
  await close();
  return { latencies_ms: took.slice(o.warm) };
}

async function main() {
  const o = options();
  setTimeout(() => { throw new Error(`--limit=${o.limit} is over`); }, o.limit * 1000).unref();
  const name = `bench-${process.pid}-${Date.now()}`;
  if (o.rate > 0) return latencies(o, name, o.tasks);
  if (o.warm > 0) await life(o, `${name}-warm`, o.warm);
  return life(o, name, o.tasks);
}

main().then((report) => console.log(JSON.stringify(report)), (err) => {
  console.error(`bullmq: ${err.message}`);
  process.exitCode = 1;
});
