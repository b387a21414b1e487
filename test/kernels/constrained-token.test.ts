import { constrainedToken, tokenMask, TOKEN_ROW_WORDS, writeTokenRow } from '../../engine/ops/constrained-token.ts';
import type { TokenRow } from '../../engine/ops/constrained-token.ts';
import * as reference from '../reference/constrained-token.ts';
import { describeKernels } from '../support/kernel-case.ts';
import type { KernelCase } from '../support/kernel-case.ts';
import type { Rng } from '../../engine/util/rng.ts';

interface Setup {
  readonly name: string;
  readonly vocabulary: number;
  readonly timestampBegin: number;
  readonly steps: number;
  readonly timestamps: boolean;
  /** Added to the logits of timestamps: how often the rules have to choose between them and text. */
  readonly lift: number;
}

const ROWS = 3;

/** Several rows through several steps; the kernel's state has to carry what the reference reads from the whole history. */
function stepsCase({ name, vocabulary, timestampBegin, steps, timestamps, lift }: Setup): KernelCase {
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
          const setting: TokenRow = { slot: ROWS - 1 - row, mask, timestamps, first: step === 0 };
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

describeKernels('constrained token', [
  stepsCase({
    name: 'picks the best token that is not masked',
    vocabulary: 257,
    timestampBegin: 257,
    steps: 1,
    timestamps: false,
    lift: 0,
  }),
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
