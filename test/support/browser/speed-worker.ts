/**
 * The tab's side of test/bench/browsers.bench.ts: the latency of an empty queue, and of a chat's tokens, as the queue answers by itself and as the engine moves
 * it on.
 */
import { QueueWaits, answersLate } from '../../../engine/gpu/queue-waits.ts';
import { loadChat, median, tokenTime } from '../chat-speed.ts';
import { testDevice } from './device.ts';

/** ms each. */
export interface Speed {
  readonly late: boolean;
  readonly empty: { readonly alone: number; readonly nudged: number };
  /** Per token, the middle one of some answers. */
  readonly token: { readonly alone: number; readonly nudged: number };
}

const WAYS = ['alone', 'nudged'] as const;
const ROUNDS = 5;

async function measure(models: string): Promise<Speed> {
  const device = await testDevice();
  const { queue } = device.gpu;
  const late = await answersLate(queue);
  const waits = { alone: new QueueWaits(queue, { nudge: false }), nudged: new QueueWaits(queue, { nudge: true }) };
  const empty = { alone: await emptyQueue(waits.alone, queue), nudged: await emptyQueue(waits.nudged, queue) };
  const engine = await loadChat(device, models);
  const times = { alone: [] as number[], nudged: [] as number[] };
  // In turns, so that a machine that grows busier does so for both.
  for (let round = 0; round < ROUNDS; round++) {
    for (const way of WAYS) {
      Object.assign(device, { waits: waits[way] });
      times[way].push(await tokenTime(engine));
    }
  }
  return { late, empty, token: { alone: median(times.alone), nudged: median(times.nudged) } };
}

async function emptyQueue(waits: QueueWaits, queue: GPUQueue): Promise<number> {
  const times: number[] = [];
  for (let round = 0; round < ROUNDS + 1; round++) {
    const start = performance.now();
    await waits.until(queue.onSubmittedWorkDone());
    times.push(performance.now() - start);
  }
  // The first begins somewhere within a timer's period.
  return median(times.slice(1));
}

self.addEventListener('message', ({ data }: MessageEvent<{ readonly models: string }>) => {
  measure(data.models).then(
    (answer) => self.postMessage(answer),
    (error: unknown) => self.postMessage({ problem: error instanceof Error ? (error.stack ?? error.message) : String(error) }),
  );
});
