/** Waiting for a queue that answers on a timer. */
import { describe, expect, test } from 'vitest';
import { QueueWaits, answersLate } from '../../engine/gpu/queue-waits.ts';
import type { WaitedQueue } from '../../engine/gpu/queue-waits.ts';

/** A queue on a clock of its own. An empty one answers after `alone` ms, and after `nudged` ms when something is submitted. */
class FakeQueue implements WaitedQueue {
  time = 0;
  submissions = 0;
  #answer: (() => void) | undefined;
  readonly #alone: () => number;
  readonly #nudged: number;

  constructor(alone: number | readonly number[], nudged: number) {
    const times = typeof alone === 'number' ? [] : [...alone];
    this.#alone = () => times.shift() ?? (typeof alone === 'number' ? alone : alone.at(-1)!);
    this.#nudged = nudged;
  }

  submit(): undefined {
    this.submissions++;
    if (!this.#answer) return;
    this.time += this.#nudged;
    this.#answer();
    this.#answer = undefined;
  }

  async onSubmittedWorkDone(): Promise<undefined> {
    let submitted = false;
    this.#answer = () => (submitted = true);
    await Promise.resolve();
    if (!submitted) this.time += this.#alone();
    this.#answer = undefined;
  }
}

const measured = (queue: FakeQueue): Promise<boolean> => answersLate(queue, () => queue.time);

describe('whether a queue answers late', () => {
  test('on a timer of 100 ms that a submission overtakes, wherever in its period it is first asked', async () => {
    for (const first of [1, 58, 100]) expect(await measured(new FakeQueue([first, 100], 0))).toBe(true);
  });

  test('not where it answers at once: then nothing is submitted', async () => {
    const queue = new FakeQueue(0.1, 0);
    expect(await measured(queue)).toBe(false);
    expect(queue.submissions).toBe(0);
  });

  test('not where a submission moves nothing', async () => {
    expect(await measured(new FakeQueue(10, 10))).toBe(false);
    expect(await measured(new FakeQueue(100, 100))).toBe(false);
  });

  test('not where the machine was busy for once', async () => {
    expect(await measured(new FakeQueue([0.1, 40, 0.1], 0))).toBe(false);
  });
});

describe('waiting', () => {
  test('submits until nobody waits, once for all who do', async () => {
    const queue = new FakeQueue(0, 0);
    let pauses = 0;
    let answer!: (value: string) => void;
    const work = new Promise<string>((resolve) => (answer = resolve));
    const waits = new QueueWaits(queue, {
      nudge: true,
      pause: async () => {
        if (++pauses === 3) answer('done');
      },
    });
    expect(await Promise.all([waits.until(work), waits.until(work)])).toEqual(['done', 'done']);
    expect(queue.submissions).toBe(3);
    await expect(waits.until(Promise.reject(new Error('lost')))).rejects.toThrow('lost');
    expect(await waits.until(Promise.resolve(1))).toBe(1);
    // Each wait begins with one.
    expect(queue.submissions).toBeGreaterThan(3);
  });

  test('submits nothing where that is not needed', async () => {
    const queue = new FakeQueue(0, 0);
    const waits = new QueueWaits(queue, { nudge: false });
    expect(await waits.until(Promise.resolve(1))).toBe(1);
    expect(queue.submissions).toBe(0);
  });
});
