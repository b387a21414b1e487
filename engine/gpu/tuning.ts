/** Chooses among kernels that give the same bits by how long they take on the adapter at hand (README.md, "Choosing kernels"). */
import type { Device } from './device.ts';
import type { Recorder } from './recorder.ts';
import { timeSteps } from './stopwatch.ts';
import type { Tensor } from './tensor.ts';
import type { Choice, Chooser, Tunable } from './tunable.ts';

export interface TuningOptions {
  /** Choices of earlier starts with these kernels on this adapter, by key. */
  readonly known?: Readonly<Record<string, string>>;
  /** Milliseconds that the device takes to run `record` `repeats` times; default: timeSteps. */
  readonly time?: (device: Device, record: (rec: Recorder) => void, repeats: number) => Promise<number>;
  readonly now?: () => number;
}

/** For all measurements of a device together. */
const BUDGET_MS = 3000;
/** The share of the default's time that a candidate must stay below; a smaller gain may be noise. */
const GAIN = 0.95;
/** The most weights that take turns in a measurement. A step reads the weights of all layers, so a measurement must not find one weight in the card's cache. */
const MOST_WEIGHTS = 16;

interface Offered {
  readonly tunable: Tunable<Recorder>;
  readonly weights: Set<Tensor>;
}

/** The choices of one device. */
export class Tuning implements Chooser<Recorder> {
  readonly choices = new Map<string, Choice>();
  readonly #device: Device;
  readonly #options: TuningOptions;
  readonly #offered = new Map<string, Offered>();
  #spentMs = 0;

  constructor(device: Device, options: TuningOptions = {}) {
    this.#device = device;
    this.#options = options;
  }

  /** Tells that a model does this work. Ops call it in dry recordings. */
  offer(tunable: Tunable<Recorder>): void {
    const { key, candidates, weight } = tunable;
    if (candidates.length < 2 || this.choices.has(key)) return;
    const offered = this.#offered.get(key);
    if (offered) {
      if (offered.weights.size < MOST_WEIGHTS) offered.weights.add(weight);
      return;
    }
    const known = this.#options.known?.[key];
    if (known !== undefined && candidates.includes(known)) this.#choose(key, { chosen: known });
    else this.#offered.set(key, { tunable, weights: new Set([weight]) });
  }

  get hasOffers(): boolean {
    return this.#offered.size > 0;
  }

  /** Measures what was offered. What there is no time for keeps the default, and is measured at the next start. */
  async settle(): Promise<void> {
    const { now = () => performance.now() } = this.#options;
    // The largest work is offered first. The smallest is measured first: most answers wait for steps of one row.
    for (const [key, offered] of [...this.#offered].toReversed()) {
      if (this.#spentMs >= BUDGET_MS) break;
      const from = now();
      this.#choose(key, await this.#measure(offered));
      this.#spentMs += now() - from;
    }
    this.#offered.clear();
  }

  #choose(key: string, choice: Choice): void {
    this.choices.set(key, choice);
    this.#device.tuned.set(key, choice.chosen);
  }

  async #measure({ tunable: { candidates, repeats, make }, weights }: Offered): Promise<Choice> {
    const device = this.#device;
    const { time = timeSteps } = this.#options;
    const { record, out, tensors } = make(device, [...weights]);
    try {
      const labels = candidates.map((candidate) => device.compile((rec) => record(rec, candidate, 0)));
      await device.pipelines.settled();
      const microseconds: Record<string, number> = {};
      const wrong: string[] = [];
      let expected: Uint32Array | undefined;
      for (const [i, candidate] of candidates.entries()) {
        const bits = await resultBits(device, (rec) => record(rec, candidate, 0), out);
        expected ??= bits;
        if (bits.every((word, at) => word === expected![at])) {
          let turn = 0;
          microseconds[candidate] = ((await time(device, (rec) => record(rec, candidate, turn++), repeats)) / repeats) * 1000;
        } else {
          wrong.push(candidate);
          // Nothing uses it: no fault for the self-test.
          for (const label of labels[i]!) device.tested.add(label);
        }
      }
      const [first = ''] = candidates;
      const best = Object.entries(microseconds).reduce((a, b) => (b[1] < a[1] ? b : a));
      const chosen = best[1] < GAIN * microseconds[first]! ? best[0] : first;
      return { chosen, microseconds, ...(wrong.length > 0 && { wrong }) };
    } finally {
      device.destroy(...tensors);
    }
  }
}

async function resultBits(device: Device, record: (rec: Recorder) => void, out: Tensor): Promise<Uint32Array> {
  device.write(out, new Float32Array(out.size).fill(NaN));
  const rec = device.record('trial');
  record(rec);
  const result = rec.readback(out);
  rec.submit();
  return new Uint32Array(await result.data());
}
