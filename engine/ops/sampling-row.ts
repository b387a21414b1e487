/** Rows of sampling settings on the GPU: the words of the WGSL struct in lib/sampling_row.wgsl, written and read by name. */
import { CUT_NAMES, NO_CUTS, SAMPLING, samplingNumbers } from '../sampling.ts';
import type { CutName } from '../sampling.ts';

/** Words that come before those of the cuts, which are in the order of the table. */
const HEAD = ['inverse_temperature', 'seed_low', 'seed_high', 'position', 'slot'] as const;

/** Names and types of the words, in order (a test compares them with the WGSL struct). */
export const SAMPLING_ROW: readonly { readonly name: string; readonly type: 'f32' | 'u32' }[] = [
  ...HEAD.map((name) => ({ name, type: name === 'inverse_temperature' ? ('f32' as const) : ('u32' as const) })),
  ...CUT_NAMES.map((name) => ({ name: SAMPLING[name].wire, type: SAMPLING[name].type })),
];

/** u32 words per row of sampling settings. */
export const SAMPLING_ROW_WORDS = SAMPLING_ROW.length;

/** Settings of one sampled row. */
export interface SamplingRow extends Readonly<Record<CutName, number>> {
  /** 0 = greedy. */
  readonly temperature: number;
  readonly seed: number;
  /** Index of the choice within its request, which is mixed into the seed. */
  readonly choice: number;
  /** Position the sampled token will have. */
  readonly position: number;
  /** Where the token goes in lastTokens. */
  readonly slot: number;
}

const wordOf = (name: (typeof HEAD)[number]): number => HEAD.indexOf(name);

/** Writes a row's settings at row `index` of a host buffer, which is uploaded unchanged. */
export function writeSamplingRow(words: Uint32Array, index: number, row: SamplingRow): void {
  const at = index * SAMPLING_ROW_WORDS;
  const high = Math.floor(row.seed / 2 ** 32);
  floatsOf(words)[at + wordOf('inverse_temperature')] = row.temperature > 0 ? 1 / row.temperature : 0;
  words[at + wordOf('seed_low')] = (row.seed - high * 2 ** 32) >>> 0;
  words[at + wordOf('seed_high')] = (high ^ Math.imul(row.choice, 0x9e3779b1)) >>> 0;
  words[at + wordOf('position')] = row.position;
  words[at + wordOf('slot')] = row.slot;
  writeCuts(words, index, row);
}

/** Replaces the cuts of a written row. */
export function writeCuts(words: Uint32Array, index: number, cuts: Readonly<Record<CutName, number>>): void {
  const floats = floatsOf(words);
  const at = index * SAMPLING_ROW_WORDS + HEAD.length;
  CUT_NAMES.forEach((name, i) => ((SAMPLING[name].type === 'u32' ? words : floats)[at + i] = cuts[name]));
}

/** The cuts of a written row, as the GPU reads them. */
export function readCuts(words: Uint32Array, index: number): Readonly<Record<CutName, number>> {
  const floats = floatsOf(words);
  const at = index * SAMPLING_ROW_WORDS + HEAD.length;
  return samplingNumbers(CUT_NAMES, (name) => (SAMPLING[name].type === 'u32' ? words : floats)[at + CUT_NAMES.indexOf(name)]!);
}

/** Whether any cut of a written row rules tokens out. */
export function hasCuts(words: Uint32Array, index: number): boolean {
  const cuts = readCuts(words, index);
  return CUT_NAMES.some((name) => cuts[name] !== NO_CUTS[name]);
}

/** 1 / temperature of a written row; 0 = greedy. */
export function readInverseTemperature(words: Uint32Array, index: number): number {
  return floatsOf(words)[index * SAMPLING_ROW_WORDS + wordOf('inverse_temperature')]!;
}

/** Slot of lastTokens where a written row's token goes. */
export function readSlot(words: Uint32Array, index: number): number {
  return words[index * SAMPLING_ROW_WORDS + wordOf('slot')]!;
}

function floatsOf(words: Uint32Array): Float32Array {
  return new Float32Array(words.buffer, words.byteOffset, words.length);
}
