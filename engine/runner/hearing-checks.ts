/** Self-test cases of kernels that only transcription models need: mel spectra, word timestamps, sampling under rules. */
import type { Kernel } from '../gpu/kernel.ts';
import { inTexels } from '../ops/texels.ts';
import { ALIGNMENT_MATRIX, ATTENTION_WEIGHTS, alignmentMatrix, attentionWeights } from '../ops/alignment.ts';
import {
  CONSTRAINED_TOKEN,
  NO_TOKEN,
  TOKEN_CANDIDATES,
  TOKEN_ROW_WORDS,
  constrainedToken,
  summarise,
  tokenCandidates,
  tokenMask,
  writeTokenRow,
} from '../ops/constrained-token.ts';
import type { TokenRow } from '../ops/constrained-token.ts';
import { DENSE_STORE, denseStore } from '../ops/dense-attention.ts';
import {
  MAGNITUDE,
  MEL_DENOISE,
  MEL_SCALE,
  createLogMel,
  createLogMelWorkspace,
  logMel,
  magnitude,
  melFilters,
  melInput,
  melRows,
} from '../ops/spectral.ts';
import type { LogMelArgs } from '../ops/spectral.ts';
import * as plainAlignment from './plain/alignment.ts';
import { tokenCandidates as plainCandidates } from './plain/constrained-token.ts';
import * as plainSpectral from './plain/spectral.ts';
import { REDUCED_COLUMNS } from './workbench.ts';
import type { CheckMaker, Workbench } from './workbench.ts';

const MEL = { sampleRate: 16_000, fftSize: 32, hop: 16, mels: 4 } as const;

const checkMel: CheckMaker = (_, bench) => melCase(bench, { frames: 5 });

/** The last frames hold no sound; the tensors are those of a window, which the variant is made for. */
const checkDenoise: CheckMaker = ({ overrides = {} }, bench) => {
  const [frames, heard] = [8, 5];
  const plain = { heard, quiet: 1, least: 0, over: 1.5, spread: 4, keep: 10 ** -0.9 };
  return melCase(bench, { frames, room: overrides['FRAMES']!, denoise: { heard, decibels: 9 }, plain });
};

interface MelCase {
  readonly frames: number;
  /** Frames of the tensors. */
  readonly room?: number;
  readonly denoise?: LogMelArgs['denoise'];
  readonly plain?: plainSpectral.Denoise;
}

function melCase(bench: Workbench, { frames, room = frames, denoise, plain }: MelCase): ReturnType<CheckMaker> {
  const length = frames * MEL.hop;
  const samples = bench.floats([length - 3]).values;
  const rows = bench.keep(bench.device.upload('check', 'f32', [melRows(MEL, frames), MEL.hop], melInput(MEL, samples, length)));
  const made = createLogMel(bench.device, MEL);
  for (const part of made.dft.matrix.parts) bench.keep(part.weight);
  bench.keep(made.filters);
  bench.keep(made.spans);
  const workspace = bench.keepAll(createLogMelWorkspace(bench.device, MEL, room));
  const out = bench.out([frames, MEL.mels]);
  return {
    record: (rec) => logMel(rec, { logMel: made, workspace, samples: rows, out, frames, denoise }),
    out,
    expected: plainSpectral.logMel({ ...MEL, samples, length, filters: melFilters(MEL), ...(plain && { denoise: plain }) }, MEL.mels),
    tolerance: 1e-8,
  };
}

const checkMagnitude: CheckMaker = (_, bench) => {
  const [frames, bins] = [3, 9];
  const [x, out] = [bench.floats([frames, 2 * bins]), bench.out([frames, bins])];
  const expected = plainSpectral.magnitude(x.values, frames, bins);
  return { record: (rec) => magnitude(rec, { x: x.tensor, out, frames }), out, expected, tolerance: 1e-10 };
};

/** One head of two, into a place among others' weights. */
const checkWeights: CheckMaker = ({ texture, overrides = {} }, bench) => {
  const positions = REDUCED_COLUMNS[overrides['WG']!] ?? 64;
  const [headDim, head, rows, keys] = [8, 1, { first: 1, count: 2 }, { first: 2, count: positions - 3 }];
  const width = 2 * headDim;
  const [q, k] = [bench.floats([3, width]), bench.floats([keys.first + keys.count, width])];
  const keyed = texture === undefined ? k.tensor : bench.keep(inTexels(bench.device, k.tensor));
  const weights = bench.floats([1, 3, positions], 0).tensor;
  const found = plainAlignment.attentionWeights({ q: q.values, k: k.values, strides: { q: width, k: width }, head, headDim, rows, keys });
  const row = (values: readonly number[]): number[] => Array.from({ length: positions }, (_, s) => values[s] ?? 0);
  return {
    record: (rec) => attentionWeights(rec, { q: q.tensor, k: keyed, head, headDim, keys, rows, weights, to: { head: 0, row: 1 } }),
    out: weights,
    expected: [[], ...found].flatMap(row),
    tolerance: 1e-9,
  };
};

const checkMatrix: CheckMaker = (_, bench) => {
  const [heads, rows, columns] = [2, 4, 11];
  const weights = bench.floats([heads, rows, columns]);
  const [stats, out] = [bench.out([heads, columns, 2]), bench.out([rows, columns])];
  const at = (h: number, t: number): number[] => [...weights.values.subarray((h * rows + t) * columns).subarray(0, columns)];
  const all = Array.from({ length: heads }, (_, h) => Array.from({ length: rows }, (_, t) => at(h, t)));
  return {
    record: (rec) => alignmentMatrix(rec, { weights: weights.tensor, stats, out, heads, rows, columns }),
    out,
    expected: plainAlignment.alignmentMatrix(all).flat(),
    tolerance: 1e-8,
  };
};

const checkStore: CheckMaker = (_, bench) => {
  const [columns, column, slots] = [8, 4, [2, 0]];
  const [x, cache] = [bench.floats([2, 16]), bench.floats([3, columns])];
  const places = bench.words(slots);
  const expected = Float64Array.from(cache.values);
  slots.forEach((slot, t) => expected.set(x.values.subarray(t * 16 + column, t * 16 + column + columns), slot * columns));
  return {
    record: (rec) => denseStore(rec, { x: x.tensor, column, slots: places, cache: cache.tensor, rows: 2 }),
    out: cache.tensor,
    expected,
    tolerance: 0,
  };
};

/** A vocabulary with timestamps at its end, of which every fifth token is never said. */
const RULES = { vocabulary: 300, timestampBegin: 250, eos: 240, maxInitialTimestamp: 10 } as const;
const banned = (token: number): boolean => token % 5 === 0;
/** Rows: without rules, at a transcript's beginning, and, of candidates, behind a timestamp and a word. */
const HISTORY = [255, 7] as const;

function tokenInputs(bench: Workbench, rows: readonly TokenRow[]) {
  const words = new Uint32Array(rows.length * TOKEN_ROW_WORDS);
  rows.forEach((row, i) => writeTokenRow(words, i, row));
  const logits = bench.floats([rows.length, RULES.vocabulary], 3);
  const settings = bench.words([...words], [rows.length, TOKEN_ROW_WORDS]);
  const mask = tokenMask(RULES.vocabulary, banned);
  const masks = bench.words([...mask], [1, mask.length]);
  const best = (row: number, timestamps: boolean, history: readonly number[], count: number) =>
    plainCandidates({ ...RULES, logits: logits.values.subarray(row * RULES.vocabulary, (row + 1) * RULES.vocabulary), banned, history, timestamps }, count); // prettier-ignore
  return { args: { logits: logits.tensor, rules: RULES, settings, masks, rows: rows.length }, best };
}

const checkToken: CheckMaker = (_, bench) => {
  const { args, best } = tokenInputs(bench, [{ slot: 1, mask: 0, first: true }, { slot: 0, mask: 0, first: true, timestamps: true }]); // prettier-ignore
  const [state, lastTokens, results] = [bench.words(Array<number>(8).fill(0), [2, 4]), bench.words([0, 0]), bench.words([0, 0, 0, 0], [2, 2])]; // prettier-ignore
  return {
    record: (rec) => constrainedToken(rec, { ...args, state, lastTokens, results }),
    out: lastTokens,
    expected: [best(1, true, [], 1)[0]![0], best(0, false, [], 1)[0]![0]],
    tolerance: 0,
  };
};

/** Tokens as they are, and a thousandth of their log-probabilities, which are rounded, so that no token may differ. */
const checkCandidates: CheckMaker = ({ overrides = {} }, bench) => {
  const { COUNT: count = 1 } = overrides;
  const { args, best } = tokenInputs(bench, [{ slot: 0, mask: 0, timestamps: true, history: summarise(HISTORY, RULES.timestampBegin) }]);
  const candidates = bench.words(Array<number>(2 * count).fill(NO_TOKEN), [1, count, 2]);
  const pair = (token: number, logprob: number): number[] => [token, logprob / 1000];
  return {
    record: (rec) => tokenCandidates(rec, { ...args, candidates }),
    out: candidates,
    seen: (values) => {
      const floats = new Float32Array(Uint32Array.from(values).buffer);
      return Array.from({ length: count }, (_, i) => pair(values[2 * i]!, floats[2 * i + 1]!)).flat();
    },
    expected: best(0, true, HISTORY, count).flatMap(([token, logprob]) => pair(token, logprob)),
    tolerance: 1e-14,
  };
};

/** Checks by kernel. */
export const HEARING_CHECKS: readonly (readonly [Kernel, CheckMaker])[] = [
  [MEL_SCALE, checkMel],
  [MEL_DENOISE, checkDenoise],
  [MAGNITUDE, checkMagnitude],
  [ATTENTION_WEIGHTS, checkWeights],
  [ALIGNMENT_MATRIX, checkMatrix],
  [DENSE_STORE, checkStore],
  [CONSTRAINED_TOKEN, checkToken],
  [TOKEN_CANDIDATES, checkCandidates],
];
