import {
  NO_TOKEN,
  TOKEN_ROW_WORDS,
  constrainedToken,
  summarise,
  tokenCandidates,
  tokenMask,
  writeTokenRow,
} from '../../engine/ops/constrained-token.ts';
import type { TokenRow } from '../../engine/ops/constrained-token.ts';
import * as reference from '../reference/constrained-token.ts';
import { describeKernels } from '../support/kernel-case.ts';
import type { KernelCase } from '../support/kernel-case.ts';
import { randomBits } from '../../engine/util/rng.ts';
import type { Rng } from '../../engine/util/rng.ts';

interface Setup {
  readonly name: string;
  readonly vocabulary: number;
  readonly timestampBegin: number;
  readonly steps: number;
  readonly timestamps: boolean;
  /** Added to the logits of timestamps: how often the rules have to choose between them and text. */
  readonly lift: number;
  /** One so low that the likeliest token is drawn. */
  readonly temperature?: number;
}

const ROWS = 3;

/** Several rows through several steps; the kernel's state has to carry what the reference reads from the whole history. */
function stepsCase({ name, vocabulary, timestampBegin, steps, timestamps, lift, temperature = 0 }: Setup): KernelCase {
  const eos = Math.floor(timestampBegin / 2);
  const rules = { vocabulary, timestampBegin, eos, maxInitialTimestamp: 5 };
  const masks = [(token: number) => token % 7 === 3, (token: number) => token % 5 === 1];
  return {
    name: `constrained_token ${name} (${vocabulary} tokens)`,
    build(rng) {
      const logits = Array.from({ length: steps }, () => logitsOf(rng, vocabulary, timestampBegin, lift));
      const tokens: number[] = [];
      const logprobs: number[] = [];
      const settings = new Uint32Array(steps * ROWS * TOKEN_ROW_WORDS);
      for (let row = 0; row < ROWS; row++) {
        const history: number[] = [];
        for (let step = 0; step < steps; step++) {
          const mask = step === 0 ? 1 : 0;
          const rowLogits = logits[step]!.subarray(row * vocabulary, (row + 1) * vocabulary);
          const [token, logprob] = reference.constrainedToken({
            ...rules, timestamps, logits: rowLogits, banned: masks[mask]!, history,
          }); // prettier-ignore
          history.push(token);
          tokens[step * ROWS + row] = token;
          logprobs[step * ROWS + row] = logprob;
          const setting: TokenRow = { slot: ROWS - 1 - row, mask, timestamps, first: step === 0, temperature };
          writeTokenRow(settings, step * ROWS + row, setting);
        }
      }
      return {
        inputs: {
          ...Object.fromEntries(logits.map((values, i) => [`logits${i}`, { dtype: 'f32' as const, shape: [ROWS, vocabulary], values }])),
          ...Object.fromEntries(
            logits.map((_, i) => {
              const values = settings.subarray(i * ROWS * TOKEN_ROW_WORDS, (i + 1) * ROWS * TOKEN_ROW_WORDS);
              return [`settings${i}`, { dtype: 'u32' as const, shape: [ROWS, TOKEN_ROW_WORDS], values }];
            }),
          ),
          masks: {
            dtype: 'u32',
            shape: [2, Math.ceil(vocabulary / 32)],
            values: masks.flatMap((banned) => [...tokenMask(vocabulary, banned)]),
          },
        },
        outputs: {
          // What an earlier transcript left behind must not matter.
          state: { dtype: 'u32', shape: [ROWS, 4], initial: new Array<number>(ROWS * 4).fill(1) },
          tokens: { dtype: 'u32', shape: [steps, ROWS] },
          logprobs: { dtype: 'f32', shape: [steps, ROWS] },
        },
        run(rec, t, device) {
          const lastTokens = device.tensor('last tokens', 'u32', [ROWS]);
          for (let i = 0; i < steps; i++) {
            const results = device.tensor('results', 'u32', [ROWS, 2]);
            const step = { logits: t[`logits${i}`]!, settings: t[`settings${i}`]!, masks: t['masks']!, state: t['state']! };
            constrainedToken(rec, { ...step, rules, lastTokens, results, rows: ROWS });
            for (let row = 0; row < ROWS; row++) {
              rec.copy(results, t['tokens']!, 4, row * 8, (i * ROWS + row) * 4);
              rec.copy(results, t['logprobs']!, 4, row * 8 + 4, (i * ROWS + row) * 4);
            }
          }
        },
        expected: { state: finalState(tokens, steps, timestampBegin), tokens, logprobs },
      };
    },
  };
}

function logitsOf(rng: Rng, vocabulary: number, timestampBegin: number, lift: number): Float32Array {
  return Float32Array.from({ length: ROWS * vocabulary }, (_, i) => 3 * rng.normal() + (i % vocabulary >= timestampBegin ? lift : 0));
}

function finalState(all: readonly number[], steps: number, timestampBegin: number): number[] {
  const state = new Array<number>(ROWS * 4).fill(0);
  for (let row = 0; row < ROWS; row++) {
    const tokens = Array.from({ length: steps }, (_, step) => all[step * ROWS + row]!);
    const at = (ROWS - 1 - row) * 4;
    state[at] = tokens.at(-1)! >= timestampBegin ? 1 : 0;
    state[at + 1] = steps < 2 || tokens.at(-2)! >= timestampBegin ? 1 : 0;
    state[at + 2] = tokens.filter((token) => token >= timestampBegin).at(-1) ?? 0;
  }
  return state;
}

/** Rows with all kinds of histories; the last one is a row of constrained_token, which must be left alone. */
function candidatesCase({ name, vocabulary, timestampBegin, timestamps, lift }: Omit<Setup, 'steps'>, count: number): KernelCase {
  const eos = Math.floor(timestampBegin / 2);
  const rules = { vocabulary, timestampBegin, eos, maxInitialTimestamp: 5 };
  const at = timestampBegin;
  const histories = timestamps
    ? [[], [at], [at, 7], [at + 1, 7, 9], [at, 7, at + 20], [at, 7, at + 20, at + 20], [at, 7, vocabulary - 1, vocabulary - 1]]
    : [[], [1], [1, 2, 3]];
  const rows = histories.length + 1;
  const banned = (token: number): boolean => token % 7 === 3;
  return {
    name: `token_candidates ${name} (${count} of ${vocabulary})`,
    build(rng) {
      const logits = Float32Array.from({ length: rows * vocabulary }, (_, i) => {
        const [token, value] = [i % vocabulary, 3 * rng.normal()];
        // Coarse values, so that some are equal.
        return (token % 2 === 0 ? Math.round(value * 4) / 4 : value) + (token >= timestampBegin ? lift : 0);
      });
      const settings = new Uint32Array(rows * TOKEN_ROW_WORDS);
      const tokens = new Array<number>(rows * count).fill(5);
      const logprobs = new Array<number>(rows * count).fill(0.5);
      histories.forEach((history, row) => {
        const first = history.length === 0;
        writeTokenRow(settings, row, { slot: 0, mask: 0, timestamps, first, history: summarise(history, timestampBegin) });
        const rowLogits = logits.subarray(row * vocabulary, (row + 1) * vocabulary);
        const found = reference.tokenCandidates({ ...rules, timestamps, logits: rowLogits, banned, history }, count);
        for (let i = 0; i < count; i++) {
          tokens[row * count + i] = found[i]?.[0] ?? NO_TOKEN;
          logprobs[row * count + i] = found[i]?.[1] ?? 0;
        }
      });
      writeTokenRow(settings, rows - 1, { slot: 0, mask: 0, timestamps });
      const shape = [rows, count];
      return {
        inputs: {
          logits: { dtype: 'f32', shape: [rows, vocabulary], values: logits },
          settings: { dtype: 'u32', shape: [rows, TOKEN_ROW_WORDS], values: settings },
          masks: { dtype: 'u32', shape: [1, Math.ceil(vocabulary / 32)], values: [...tokenMask(vocabulary, banned)] },
        },
        outputs: {
          tokens: { dtype: 'u32', shape, initial: new Array<number>(rows * count).fill(5) },
          logprobs: { dtype: 'f32', shape, initial: new Array<number>(rows * count).fill(0.5) },
        },
        run(rec, t, device) {
          const start = new Uint32Array(rows * count * 2);
          const floats = new Float32Array(start.buffer);
          for (let i = 0; i < rows * count; i++) {
            start[2 * i] = 5;
            floats[2 * i + 1] = 0.5;
          }
          const candidates = device.upload('candidates', 'u32', [rows, count, 2], start);
          tokenCandidates(rec, { logits: t['logits']!, settings: t['settings']!, masks: t['masks']!, rules, candidates, rows });
          for (let i = 0; i < rows * count; i++) {
            rec.copy(candidates, t['tokens']!, 4, i * 8, i * 4);
            // The log-probability of no token is no number to compare.
            if (tokens[i] !== NO_TOKEN) rec.copy(candidates, t['logprobs']!, 4, i * 8 + 4, i * 4);
          }
        },
        expected: { tokens, logprobs: logprobs.map((value, i) => (tokens[i] === NO_TOKEN ? 0.5 : value)) },
      };
    },
  };
}

/** A draw between a token that has the largest noise there is and one that is a little too unlikely to win, or likely enough. */
function largestNoiseCase(): KernelCase {
  // Of this seed's draws number 0 has the largest bits.
  const seed = 52_078_625;
  const noise = (token: number): number => {
    const uniform = Math.fround(Math.fround(randomBits(seed, token) / 4294967296) * Math.fround(0.9999999));
    return -Math.log(-Math.log(uniform));
  };
  const rules = { vocabulary: 2, timestampBegin: 2, eos: 0, maxInitialTimestamp: 0 };
  const ahead = [-1e-3, 1e-3];
  const settings = new Uint32Array(ahead.length * TOKEN_ROW_WORDS);
  ahead.forEach((_, slot) => writeTokenRow(settings, slot, { slot, mask: 0, temperature: 1, seed }));
  return {
    name: 'constrained_token gives the largest noise there is its size',
    tolerance: 0,
    build: () => ({
      inputs: {
        logits: { dtype: 'f32', shape: [ahead.length, 2], values: ahead.flatMap((more) => [0, noise(0) - noise(1) + more]) },
        settings: { dtype: 'u32', shape: [ahead.length, TOKEN_ROW_WORDS], values: settings },
        masks: { dtype: 'u32', shape: [1, 1], values: [0] },
      },
      outputs: { tokens: { dtype: 'u32', shape: [ahead.length] } },
      run(rec, t, device) {
        const state = device.tensor('state', 'u32', [ahead.length, 4]);
        const results = device.tensor('results', 'u32', [ahead.length, 2]);
        const step = { logits: t['logits']!, settings: t['settings']!, masks: t['masks']! };
        constrainedToken(rec, { ...step, rules, state, lastTokens: t['tokens']!, results, rows: ahead.length });
      },
      expected: { tokens: [0, 1] },
    }),
  };
}

describeKernels('constrained token', [
  largestNoiseCase(),
  candidatesCase({ name: 'gives the best tokens in order', vocabulary: 2910, timestampBegin: 1409, timestamps: false, lift: -50 }, 6),
  candidatesCase({ name: 'keeps the rules of timestamps', vocabulary: 300, timestampBegin: 200, timestamps: true, lift: 1 }, 4),
  candidatesCase({ name: 'lets text win over timestamps', vocabulary: 300, timestampBegin: 200, timestamps: true, lift: -6 }, 4),
  candidatesCase({ name: 'says when there are no more', vocabulary: 40, timestampBegin: 33, timestamps: true, lift: 9 }, 8),
  stepsCase({
    name: 'picks the best token that is not masked',
    vocabulary: 257,
    timestampBegin: 257,
    steps: 1,
    timestamps: false,
    lift: 0,
  }),
  ...[1e-7, 1e-38, 1e-300].map((temperature) =>
    stepsCase({ name: `draws at ${temperature}`, vocabulary: 65, timestampBegin: 40, steps: 4, timestamps: true, lift: -2, temperature }),
  ),
  stepsCase({ name: 'begins with a timestamp', vocabulary: 65, timestampBegin: 40, steps: 1, timestamps: true, lift: 0 }),
  stepsCase({ name: 'pairs timestamps', vocabulary: 300, timestampBegin: 200, steps: 12, timestamps: true, lift: 1 }),
  stepsCase({ name: 'lets text win over timestamps', vocabulary: 300, timestampBegin: 200, steps: 12, timestamps: true, lift: -4 }),
  stepsCase({
    name: 'leaves timestamps alone without the rules',
    vocabulary: 2910,
    timestampBegin: 1409,
    steps: 3,
    timestamps: false,
    lift: 0,
  }),
]);
