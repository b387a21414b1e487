/** What a step tells the device of penalties. No GPU: how many tokens a device would have counted is kept here. */
import { expect, test } from 'vitest';
import { NO_SLOT } from '../../engine/ops/logits.ts';
import { LogitEncoder } from '../../engine/runner/logit-encoder.ts';
import { FRESH_HEAD, StepInput } from '../../engine/runner/step-input.ts';
import { GREEDY_SAMPLING } from '../../engine/sampling.ts';
import type { Batch } from '../../engine/scheduler/batch.ts';
import { Sequence } from '../../engine/scheduler/sequence.ts';
import type { ResolvedSampling } from '../../engine/scheduler/sequence.ts';
import { createRng } from '../../engine/util/rng.ts';
import { Rig, expectDone } from '../support/scheduler-rig.ts';
import type { RigOptions } from '../support/scheduler-rig.ts';

const LIMITS = { maxRunning: 4, prefillChunk: 16, draftRows: 0, columns: 64, hasWindows: false, context: 256, vocabulary: 1024 };

const PENALIZED: ResolvedSampling = {
  ...GREEDY_SAMPLING,
  logits: {
    repetitionPenalty: 1.2,
    presencePenalty: 0,
    frequencyPenalty: 0,
    bias: [],
    logprobs: undefined,
    constrained: false,
    minTokens: 0,
    endTokens: [],
  },
};

/** The scheduler's rig with a device that counts the tokens of sequences that are penalized, by slot. */
class CountingRig extends Rig {
  readonly #encoder = new LogitEncoder();
  readonly #input = new StepInput(LIMITS);
  readonly #slots: { readonly sequence: Sequence; count: number }[] = [];
  #ids = 0;

  constructor(options: RigOptions) {
    super(options);
    const run = this.runner.run.bind(this.runner);
    this.runner.run = (batch) => {
      this.#count(batch);
      return run(batch);
    };
  }

  queued(priority: number, maxTokens: number, penalized: boolean): Sequence {
    const id = this.#ids++;
    const promptTokens = Array.from({ length: 5 }, (_, i) => (id * 31 + i * 7) % 500);
    const sampling = penalized ? PENALIZED : GREEDY_SAMPLING;
    const sequence = new Sequence({ id, promptTokens, maxTokens, sampling, choice: 0, priority });
    this.scheduler.add([sequence]);
    return sequence;
  }

  /** Throws unless every row that is penalized finds all tokens of its sequence counted, and no others. */
  #count({ sampled }: Batch): void {
    const input = this.#input;
    this.#encoder.encode(sampled, sampled.length, input);
    if (input.get('processed') === 0) return;
    for (let at = 0; at < input.get('freshWords');) {
      const [slot = 0, prompt = 0, answer = 0] = input.fresh.subarray(at, at + FRESH_HEAD);
      const count = prompt + answer;
      const { sequence } = sampled.find((one) => one.sequence.row === slot)!;
      expect([...input.fresh.subarray(at + FRESH_HEAD, at + FRESH_HEAD + count)]).toEqual(sequence.tokens);
      this.#slots[slot] = { sequence, count };
      at += FRESH_HEAD + count;
    }
    sampled.forEach(({ sequence, position }, row) => {
      const slot = input.countedSlots[row]!;
      expect(slot).toBe(sequence.sampling === PENALIZED ? sequence.row : NO_SLOT);
      if (slot === NO_SLOT) return;
      const counts = this.#slots[slot]!;
      expect([counts.sequence.id, counts.count]).toEqual([sequence.id, position]);
      counts.count++;
    });
  }
}

test('a sequence that comes back to its first place, after it went on in another, brings what it has said since', async () => {
  const rig = new CountingRig({ maxRunning: 2, preemptionThreshold: 0 });
  const until = async (reached: () => boolean): Promise<void> => {
    for (let step = 0; !reached() && step < 50; step++) await rig.step();
    expect(reached()).toBe(true);
  };
  const low = rig.queued(0, 30, true);
  const all = [low, rig.queued(1, 10, false)];
  await until(() => low.numGenerated > 2);
  const first = low.row;
  // The place that is free when it comes back is the other's.
  all.push(rig.queued(2, 14, false));
  await until(() => low.row < 0);
  await until(() => low.row >= 0);
  expect(low.row).not.toBe(first);
  await until(() => low.numGenerated > 12 && rig.scheduler.numRunning === 1);
  all.push(rig.queued(2, 4, false), rig.queued(2, 8, false));
  await until(() => low.row < 0);
  await until(() => low.row >= 0);
  expect(low.row).toBe(first);
  await rig.drain();
  expectDone(rig, all);
});

test.each([1, 2, 3, 4])('whoever takes whose place, what penalties count is what was said (seed %i)', async (seed) => {
  const rng = createRng(seed);
  const rig = new CountingRig({ pages: 20 + rng.integer(20), maxRunning: 2 + rng.integer(3), preemptionThreshold: rng.integer(4) });
  const all: Sequence[] = [];
  for (let round = 0; round < 400; round++) {
    if (rng.uniform() < 0.15) all.push(rig.queued(rng.integer(10), 1 + rng.integer(30), rng.uniform() < 0.5));
    await rig.step();
  }
  await rig.drain();
  expectDone(rig, all);
});
