/**
 * Waiting for what a queue was given. Firefox looks at its pending work every 100 ms (its bug 1870699), so that a step that takes 10 ms is heard of after
 * 100; anything submitted to the queue makes it look at once. Where that is so, which is measured and not told by a name, something empty is submitted
 * again and again while somebody waits.
 */

/** An empty queue that answers later than this answers on a timer. Others take well below a millisecond, Deno 10 and whatever is submitted. */
const LATE_MS = 20;
/** Pause between two empty submissions, in ms. */
const PACE_MS = 1;

/** The part of a GPUQueue that is used here. */
export type WaitedQueue = Pick<GPUQueue, 'submit' | 'onSubmittedWorkDone'>;

export interface QueueWaitsOptions {
  /** Whether empty submissions are needed while somebody waits. */
  readonly nudge: boolean;
  /** Resolves after a pause. */
  readonly pause?: () => Promise<void>;
}

export class QueueWaits {
  /** Whether empty submissions move this queue on. */
  readonly nudges: boolean;
  readonly #queue: WaitedQueue;
  readonly #pause: () => Promise<void>;
  #waiting = 0;
  #running = false;

  constructor(queue: WaitedQueue, { nudge, pause }: QueueWaitsOptions) {
    this.#queue = queue;
    this.nudges = nudge;
    this.#pause = pause ?? (nudge ? createPause() : () => Promise.resolve());
  }

  /** Waits for `promise`, which depends on work of this queue, and settles like it. */
  async until<T>(promise: Promise<T>): Promise<T> {
    if (!this.nudges) return promise;
    this.#waiting++;
    void this.#nudge();
    try {
      return await promise;
    } finally {
      this.#waiting--;
    }
  }

  async #nudge(): Promise<void> {
    if (this.#running) return;
    this.#running = true;
    while (this.#waiting > 0) {
      this.#queue.submit([]);
      await this.#pause();
    }
    this.#running = false;
  }
}

/** Whether this queue, which is empty, answers late, and at once when something empty is submitted. `now` is in ms. */
export async function answersLate(queue: WaitedQueue, now: () => number = () => performance.now()): Promise<boolean> {
  const wait = async ({ nudged }: { readonly nudged: boolean }): Promise<number> => {
    const start = now();
    const done = queue.onSubmittedWorkDone();
    if (nudged) queue.submit([]);
    await done;
    return now() - start;
  };
  // It ends somewhere within the timer's period; one that begins with the period takes all of it.
  await wait({ nudged: false });
  if ((await wait({ nudged: false })) < LATE_MS) return false;
  // Once may be chance on a busy machine.
  const alone = await wait({ nudged: false });
  return alone >= LATE_MS && (await wait({ nudged: true })) < alone / 2;
}

/** A pause by a timer. Timers that set each other are held to 4 ms by browsers, so a message goes between. */
function createPause(): () => Promise<void> {
  const { port1, port2 } = new MessageChannel();
  let resume: () => void;
  port1.addEventListener('message', () => setTimeout(() => resume(), PACE_MS));
  port1.start();
  return () =>
    new Promise((resolve) => {
      resume = resolve;
      port2.postMessage(undefined);
    });
}
