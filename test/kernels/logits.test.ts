import {
  LOGPROB_WORDS, NO_SLOT, PENALTY_WORDS, biasLogits, countTokens, initialCounts, logprobs, maskLogits, penalizeLogits,
} from '../../engine/ops/logits.ts'; // prettier-ignore
import { logSumExp, penalize, topTokens } from '../reference/logits.ts';
import { describeKernels, randomTensor } from '../support/kernel-case.ts';
import type { KernelCase } from '../support/kernel-case.ts';

const SIZES = [1, 3, 63, 64, 65, 257];
const LOWEST = Math.fround(-3.4e38);

function maskCase(vocabulary: number): KernelCase {
  return {
    name: `mask_logits rules tokens out of 2 of 3 rows of ${vocabulary}`,
    build(rng) {
      const stride = vocabulary + 5;
      const logits = randomTensor(rng, [3, stride]);
      const words = Math.ceil(vocabulary / 32);
      const masks = Uint32Array.from({ length: 3 * words }, () => rng.integer(2 ** 32));
      const masked = [1, 0, 1];
      const expected = new Float64Array(3 * stride).fill(7);
      for (let r = 0; r < 3; r++) {
        for (let i = 0; i < vocabulary; i++) {
          const allowed = (masks[r * words + (i >> 5)]! >>> (i & 31)) & 1;
          expected[r * stride + i] = masked[r] && !allowed ? LOWEST : logits.values[r * stride + i]!;
        }
      }
      return {
        inputs: { logits, masks: { dtype: 'u32', shape: [3, words], values: masks }, masked: { dtype: 'u32', shape: [3], values: masked } },
        outputs: { out: { dtype: 'f32', shape: [3, stride], initial: new Float32Array(3 * stride).fill(7) } },
        run: (rec, t) =>
          maskLogits(rec, { logits: t['logits']!, masked: t['masked']!, masks: t['masks']!, out: t['out']!, rows: 3, vocabulary }),
        expected: { out: expected },
      };
    },
  };
}

const biasCase: KernelCase = {
  name: 'bias_logits adds to the named tokens only',
  build(rng) {
    const logits = randomTensor(rng, [3, 65]);
    const list = [[0, 3, 5], [0, 64, -100], [2, 0, 0.5]] as const; // prettier-ignore
    const entries = new Uint32Array(9);
    const floats = new Float32Array(entries.buffer);
    const expected = Float64Array.from(logits.values);
    list.forEach(([row, token, bias], i) => {
      entries.set([row, token], i * 3);
      floats[i * 3 + 2] = bias;
      expected[row * 65 + token]! += bias;
    });
    return {
      inputs: { entries: { dtype: 'u32', shape: [9], values: entries } },
      outputs: { logits: { dtype: 'f32', shape: [3, 65], initial: logits.values } },
      run: (rec, t) => biasLogits(rec, { entries: t['entries']!, logits: t['logits']!, count: 3 }),
      expected: { logits: expected },
    };
  },
};

function penaltyCase(vocabulary: number): KernelCase {
  return {
    name: `penalties of 3 rows over ${vocabulary} tokens, counted on the device`,
    build(rng) {
      const logits = randomTensor(rng, [3, vocabulary], 2);
      const token = (): number => rng.integer(vocabulary);
      const prompts = [[token(), token()], [token()], [token(), token(), token()]];
      const answers = [[token(), token(), token()], [token()], [token()]];
      const settings = [
        { repetition: 1.3, presence: 0.5, frequency: 0.25 },
        { repetition: 1, presence: 0, frequency: 0 },
        { repetition: 0.8, presence: -1, frequency: 0 },
      ];
      const slots = [2, 0, 1];
      const penalties = new Uint32Array(3 * PENALTY_WORDS);
      const floats = new Float32Array(penalties.buffer);
      settings.forEach(({ repetition, presence, frequency }, r) => {
        floats.set([repetition, presence, frequency], r * PENALTY_WORDS);
        penalties[r * PENALTY_WORDS + 3] = slots[r]!;
      });
      // The first token of each answer is known to the host when the sequence joins, the others are counted on the device.
      const counts = new Uint32Array(3 * vocabulary);
      slots.forEach((slot, r) => counts.set(initialCounts(vocabulary, prompts[r]!, answers[r]!.slice(0, 1)), slot * vocabulary));
      const rounds = [1, 2].map((i) => ({
        slots: slots.map((slot, r) => (answers[r]![i] === undefined ? NO_SLOT : slot)),
        sampled: answers.map((tokens) => tokens[i] ?? 0),
      }));
      const expected = settings.flatMap((p, r) => [
        ...penalize(logits.values.subarray(r * vocabulary, (r + 1) * vocabulary), prompts[r]!, answers[r]!, p),
      ]);
      const u32 = (values: number[]) => ({ dtype: 'u32' as const, shape: [values.length], values });
      return {
        inputs: {
          penalties: { dtype: 'u32', shape: [3, PENALTY_WORDS], values: penalties },
          counts: { dtype: 'u32', shape: [3, vocabulary], values: counts },
          ...Object.fromEntries(rounds.flatMap(({ slots, sampled }, i) => [[`slots${i}`, u32(slots)], [`sampled${i}`, u32(sampled)]])), // prettier-ignore
        },
        outputs: { logits: { dtype: 'f32', shape: [3, vocabulary], initial: logits.values } },
        run(rec, t) {
          const counts = t['counts']!;
          for (let i = 0; i < 2; i++) countTokens(rec, { slots: t[`slots${i}`]!, sampled: t[`sampled${i}`]!, counts, rows: 3 });
          penalizeLogits(rec, { penalties: t['penalties']!, counts, logits: t['logits']!, rows: 3 });
        },
        expected: { logits: expected },
      };
    },
  };
}

/** A slice of nothing but -Infinity has no sum to cut by (sample/sort_slices.wgsl), and what no longer is as low counts for the spread of top-n-sigma. */
const ruledOutCase: KernelCase = {
  name: 'penalties leave tokens that a mask or a bias ruled out as they are',
  tolerance: 0,
  build() {
    const penalties = new Uint32Array(2 * PENALTY_WORDS);
    new Float32Array(penalties.buffer).set([1.3, 2, 2, 0, 0.05, 0, 0, 0]);
    const values = Float32Array.of(LOWEST, LOWEST, -1e30, -1e30, LOWEST, LOWEST, -1e30, -1e30);
    return {
      inputs: {
        penalties: { dtype: 'u32', shape: [2, PENALTY_WORDS], values: penalties },
        counts: { dtype: 'u32', shape: [1, 4], values: initialCounts(4, [0, 2], [1, 2]) },
      },
      outputs: { logits: { dtype: 'f32', shape: [2, 4], initial: values } },
      run: (rec, t) => penalizeLogits(rec, { penalties: t['penalties']!, counts: t['counts']!, logits: t['logits']!, rows: 2 }),
      expected: { logits: values },
    };
  },
};

function logprobCase(vocabulary: number, top: number): KernelCase {
  return {
    name: `logprobs of rows 2 and 0 over ${vocabulary} tokens with the top ${top}`,
    // Compared as numbers of two kinds side by side (tokens and logits): the tokens must be exact, the sums are f32.
    tolerance: 1e-10,
    build(rng) {
      const logits = randomTensor(rng, [3, vocabulary], 3);
      // Ties: they go to the smaller token.
      if (vocabulary > 3) logits.values[2] = logits.values[1]!;
      const sampled = [rng.integer(vocabulary), 0, rng.integer(vocabulary)];
      const bits = new Uint32Array(2 * LOGPROB_WORDS).fill(9);
      const floats = new Float32Array(bits.buffer);
      [2, 0].forEach((row, i) => {
        const values = logits.values.subarray(row * vocabulary, (row + 1) * vocabulary);
        floats[i * LOGPROB_WORDS] = logSumExp(values);
        floats[i * LOGPROB_WORDS + 1] = values[sampled[row]!]!;
        topTokens(values, top).forEach((token, j) => {
          bits[i * LOGPROB_WORDS + 2 + 2 * j] = token;
          floats[i * LOGPROB_WORDS + 3 + 2 * j] = values[token]!;
        });
      });
      return {
        inputs: {
          logits,
          indices: { dtype: 'u32', shape: [2], values: [2, 0] },
          sampled: { dtype: 'u32', shape: [3], values: sampled },
        },
        outputs: { out: { dtype: 'u32', shape: [2, LOGPROB_WORDS], initial: new Uint32Array(2 * LOGPROB_WORDS).fill(9) } },
        run: (rec, t) =>
          logprobs(rec, {
            logits: t['logits']!,
            indices: t['indices']!,
            sampled: t['sampled']!,
            out: t['out']!,
            count: 2,
            vocabulary,
            top,
          }),
        expected: { out: bits },
      };
    },
  };
}

const cases: KernelCase[] = [biasCase, ruledOutCase];
for (const size of SIZES) cases.push(maskCase(size), penaltyCase(size));
for (const [vocabulary, top] of [[257, 20], [64, 5], [65, 0], [3, 3], [1, 1]] as const) cases.push(logprobCase(vocabulary, top)); // prettier-ignore

describeKernels('logits', cases);
