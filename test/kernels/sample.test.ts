import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Device } from '../../engine/gpu/device.ts';
import {
  FROM_DEVICE,
  bestBlocks,
  copyRows,
  gatherRows,
  resolveTokens,
  sample,
  sampleBlocks,
  sampleScratch,
} from '../../engine/ops/sample.ts';
import { SAMPLING_ROW, SAMPLING_ROW_WORDS, writeSamplingRow } from '../../engine/ops/sampling-row.ts';
import type { SamplingRow } from '../../engine/ops/sampling-row.ts';
import { BEST_WORDS, shardBest } from '../../engine/ops/shard-sample.ts';
import { createRng } from '../../engine/util/rng.ts';
import type { Rng } from '../../engine/util/rng.ts';
import * as reference from '../reference/sample.ts';
import { testDevice } from '../support/device.ts';
import { describeKernels, randomTensor, runCase } from '../support/kernel-case.ts';
import type { KernelCase } from '../support/kernel-case.ts';

const { GREEDY, SETTINGS } = reference;

function words(rows: readonly SamplingRow[]): Uint32Array {
  const out = new Uint32Array(rows.length * SAMPLING_ROW_WORDS);
  rows.forEach((row, i) => writeSamplingRow(out, i, row));
  return out;
}

/** Halves of a row's seed as the GPU gets them. */
function writtenSeed(row: SamplingRow): readonly [low: number, high: number] {
  const written = words([row]);
  const word = (name: string): number => written[SAMPLING_ROW.findIndex((one) => one.name === name)]!;
  return [word('seed_low'), word('seed_high')];
}

/** What the definitions give for a row of logits. */
function expectedToken(logits: Float32Array, row: SamplingRow): number {
  if (row.temperature === 0) return reference.argmax(logits);
  const [low, high] = writtenSeed(row);
  return reference.draw(reference.distribution(logits, row), (token) => reference.gumbel(token, row.position, low, high));
}

function sampleCase(
  vocabulary: number,
  stride: number,
  settings: readonly Partial<SamplingRow>[],
  ruledOut: readonly number[] = [],
): KernelCase {
  const rows = settings.map((s, slot) => ({ ...GREEDY, ...s, slot: settings.length - slot }));
  const greedy = rows.every(({ temperature }) => temperature === 0);
  return {
    name: `sample${greedy ? ' (greedy)' : ''}${ruledOut.length > 0 ? ' with ruled out tokens' : ''} draws from ${vocabulary} of ${stride} columns for ${rows.length} rows`,
    tolerance: 0,
    build(rng) {
      const logits = randomTensor(rng, [rows.length, stride], 3);
      // Four of five tokens.
      if (ruledOut.length > 0) logits.values.forEach((_, i) => i % 5 > 0 && (logits.values[i] = ruledOut[i % ruledOut.length]!));
      const tokens = rows.map((row, b) => expectedToken(logits.values.slice(b * stride, b * stride + vocabulary), row));
      const lastTokens = new Array<number>(rows.length + 1).fill(99);
      rows.forEach(({ slot }, b) => (lastTokens[slot] = tokens[b]!));
      return {
        inputs: { logits, settings: { dtype: 'u32', shape: [rows.length, SAMPLING_ROW_WORDS], values: words(rows) } },
        outputs: {
          sampled: { dtype: 'u32', shape: [rows.length] },
          lastTokens: { dtype: 'u32', shape: [rows.length + 1], initial: new Array<number>(rows.length + 1).fill(99) },
        },
        run(rec, t, device) {
          const scratch = sampleScratch(device, vocabulary, rows.length);
          sample(rec, { logits: t['logits']!, vocabulary, settings: t['settings']!, scratch, sampled: t['sampled']!, lastTokens: t['lastTokens']!, rows: rows.length, greedy }); // prettier-ignore
        },
        expected: { sampled: tokens, lastTokens },
      };
    },
  };
}

/** Few values, each of many logits: a cut falls within equal ones, which all stay. */
function tiedCase(vocabulary: number): KernelCase {
  const whole = sampleCase(vocabulary, vocabulary, SETTINGS);
  return { ...whole, name: `sample keeps ties at a cut of ${vocabulary} columns`, build: (rng) => whole.build(coarse(rng)) };
}

/** The same numbers, rounded. */
function coarse(rng: Rng): Rng {
  return { ...rng, normal: () => Math.round(rng.normal() * 4) / 4 };
}

const resolveCase: KernelCase = {
  name: 'resolve_tokens takes 65 tokens from the host or the device',
  tolerance: 0,
  build() {
    const tokens = Array.from({ length: 65 }, (_, t) => (t % 3 === 0 ? FROM_DEVICE + (t % 7) : t * 11));
    const last = Array.from({ length: 7 }, (_, slot) => 1000 + slot);
    return {
      inputs: { tokens: { dtype: 'u32', shape: [65], values: tokens }, last: { dtype: 'u32', shape: [7], values: last } },
      outputs: { ids: { dtype: 'u32', shape: [65] } },
      run: (rec, t) => resolveTokens(rec, { tokens: t['tokens']!, lastTokens: t['last']!, ids: t['ids']!, rows: 65 }),
      expected: { ids: tokens.map((token) => (token >= FROM_DEVICE ? last[token - FROM_DEVICE]! : token)) },
    };
  },
};

function gatherCase(rows: number, columns: number): KernelCase {
  return {
    name: `gather_rows picks ${rows} rows of ${columns} columns`,
    tolerance: 0,
    build(rng) {
      const x = randomTensor(rng, [70, columns]);
      const indices = Array.from({ length: rows }, () => rng.integer(70));
      return {
        inputs: { x, indices: { dtype: 'u32', shape: [rows], values: indices } },
        outputs: { out: { dtype: 'f32', shape: [rows, columns] } },
        run: (rec, t) => gatherRows(rec, { x: t['x']!, indices: t['indices']!, out: t['out']!, rows }),
        expected: { out: indices.flatMap((i) => Array.from(x.values.slice(i * columns, (i + 1) * columns))) },
      };
    },
  };
}

function copyRowsCase(count: number, columns: number): KernelCase {
  return {
    name: `copy_rows keeps ${count} rows of ${columns} columns`,
    tolerance: 0,
    build(rng) {
      const x = randomTensor(rng, [80 + count, columns]);
      // Into the first rows, in another order, from those behind them.
      const pairs = Array.from({ length: count }, (_, i) => [count + rng.integer(80), count - 1 - i] as const);
      return {
        inputs: { pairs: { dtype: 'u32', shape: [count, 2], values: pairs.flat() } },
        outputs: { x: { dtype: 'f32', shape: [80 + count, columns], initial: x.values } },
        run: (rec, t) => copyRows(rec, { x: t['x']!, pairs: t['pairs']!, count }),
        expected: { x: reference.copyRows(x.values, pairs, columns) },
      };
    },
  };
}

/** A slice of a vocabulary: its greedy tokens, by their numbers in the vocabulary and in the slice. */
function shardCase(columns: number, first: number, rows: number): KernelCase {
  return {
    name: `shard_best finds the best of ${columns} columns from token ${first} for ${rows} rows`,
    tolerance: 0,
    build(rng) {
      const logits = randomTensor(rng, [rows, columns], 3);
      const best = Array.from({ length: rows }, (_, b) => reference.argmax(logits.values.slice(b * columns, (b + 1) * columns)));
      const bits = new Uint32Array(logits.values.buffer);
      const settings = words(Array.from({ length: rows }, () => GREEDY));
      return {
        inputs: { logits, settings: { dtype: 'u32', shape: [rows, SAMPLING_ROW_WORDS], values: settings } },
        outputs: { local: { dtype: 'u32', shape: [rows] }, out: { dtype: 'u32', shape: [rows * BEST_WORDS] } },
        run(rec, t, device) {
          const blocks = sampleBlocks(columns);
          const scratch = sampleScratch(device, columns, rows);
          bestBlocks(rec, { logits: t['logits']!, vocabulary: columns, settings: t['settings']!, scratch, rows, first, greedy: true });
          shardBest(rec, { rows, first, best: scratch.best, local: t['local']!, out: t['out']!, blocks });
        },
        expected: { local: best, out: best.flatMap((token, b) => [bits[b * columns + token]!, first + token]) },
      };
    },
  };
}

const cases: KernelCase[] = [
  resolveCase,
  shardCase(1, 0, 1),
  shardCase(63, 32, 3),
  shardCase(65, 4096, 65),
  shardCase(2049, 64, 2),
  gatherCase(1, 4),
  gatherCase(65, 64),
  copyRowsCase(1, 4),
  copyRowsCase(65, 36),
  ...[1, 3, 63, 64, 65, 257, 5000].map((vocabulary) => sampleCase(vocabulary, vocabulary, SETTINGS)),
  sampleCase(1025, 1032, SETTINGS),
  // By a grammar's mask, and by a ban.
  sampleCase(4097, 4100, SETTINGS, [-3.4e38, -1e30]),
  ...[1, 65, 4097].map((vocabulary) => sampleCase(vocabulary, vocabulary + 3, [{}, {}, {}])),
];
describeKernels('sample', cases);

/** A large vocabulary is cut into slices on GPUs: the last of them with one logit, or some; more rows than are cut at a time; slices of 1024 logits, and of 2048. */
const sliced: KernelCase[] = [
  sampleCase(4097, 4100, SETTINGS),
  sampleCase(6000, 6000, SETTINGS, [-3.4e38, -1e30]),
  sampleCase(5121, 5124, [...SETTINGS, ...SETTINGS]),
  sampleCase(128_256, 128_256, [SETTINGS[3]!, {}, SETTINGS[13]!]),
  sampleCase(262_208, 262_208, [SETTINGS[4]!, SETTINGS[11]!]),
  tiedCase(8192),
];
describeKernels('sample over slices', sliced, { every: true });

describe('sampling', () => {
  let device: Device;
  beforeAll(async () => {
    device = await testDevice();
  });
  afterAll(() => device.close());

  async function draws(logits: Float32Array, rows: readonly SamplingRow[]): Promise<Uint32Array> {
    const vocabulary = logits.length;
    const all = new Float32Array(rows.length * vocabulary);
    for (let b = 0; b < rows.length; b++) all.set(logits, b * vocabulary);
    const sampled = device.tensor('sampled', 'u32', [rows.length]);
    const rec = device.record('sample');
    sample(rec, {
      logits: device.upload('logits', 'f32', [rows.length, vocabulary], all),
      vocabulary,
      settings: device.upload('settings', 'u32', [rows.length, SAMPLING_ROW_WORDS], words(rows)),
      scratch: sampleScratch(device, vocabulary, rows.length),
      sampled,
      lastTokens: device.tensor('last', 'u32', [1]),
      rows: rows.length,
      greedy: false,
    });
    rec.submit();
    return Uint32Array.from(await device.read(sampled));
  }

  test('follows the distribution: chi-squared over 8192 draws stays below the 99.99 % point', async () => {
    const rng = createRng(5);
    const logits = Float32Array.from({ length: 12 }, () => rng.normal());
    const settings = { ...GREEDY, temperature: 0.8, topK: 10, topP: 0.95 };
    const rows = Array.from({ length: 8192 }, (_, position) => ({ ...settings, seed: 123, position }));
    const tokens = await draws(logits, rows);
    const probabilities = reference.distribution(logits, settings);
    let chi = 0;
    let kept = 0;
    probabilities.forEach((p, token) => {
      const count = tokens.filter((t) => t === token).length;
      if (p === 0) expect(count).toBe(0);
      else {
        kept++;
        chi += (count - p * rows.length) ** 2 / (p * rows.length);
      }
    });
    expect(kept).toBeGreaterThan(5);
    // 99.99 % point of chi-squared with 9 degrees of freedom; fewer degrees have a smaller one.
    expect(chi).toBeLessThan(33.7);
  });

  test('a seed is its 64 bits, also where it is beyond 2^53 or negative', () => {
    for (const seed of [0, 5, -5, 2 ** 32, -(2 ** 32) - 1, 2 ** 53, 2 ** 53 + 2, -(2 ** 53) - 2, 2 ** 63 - 1024, 2 ** 63, -(2 ** 63)]) {
      const bits = BigInt.asUintN(64, BigInt(seed));
      expect(writtenSeed({ ...GREEDY, temperature: 1, seed }), `seed ${seed}`).toEqual([Number(bits & 0xffffffffn), Number(bits >> 32n)]);
    }
  });

  test('a draw depends on seed, choice and position, not on the other rows', async () => {
    const rng = createRng(6);
    const logits = Float32Array.from({ length: 500 }, () => rng.normal());
    const row = { ...GREEDY, temperature: 1, seed: 42 };
    const many = Array.from({ length: 40 }, (_, i) => ({ ...row, position: i % 10, choice: Math.floor(i / 10) }));
    const together = await draws(logits, many);
    for (const i of [0, 13, 39]) expect((await draws(logits, [many[i]!]))[0]).toBe(together[i]);
    expect(new Set(together).size).toBeGreaterThan(25);
  });

  test('the largest noise there is has a size: a token has it that loses to a likelier one, and wins where it should', async () => {
    // Of seed 1 token 0 has the largest 23 bits at this position, token 1 ordinary ones.
    const row = { ...GREEDY, temperature: 1, seed: 1, position: 1_938_852 };
    const [low, high] = writtenSeed(row);
    const [most, usual] = [0, 1].map((token) => reference.gumbel(token, row.position, low, high));
    expect(most).toBeCloseTo(16.6355, 4);
    for (const ahead of [-1e-3, 1e-3]) {
      const logits = Float32Array.of(0, most! - usual! + ahead);
      expect(Array.from(await draws(logits, [row])), `${ahead} ahead`).toEqual([ahead < 0 ? 0 : 1]);
    }
  });

  test("needs no zeros in workgroup memory, which Dawn's fast toggles leave as the workgroup before left it", async () => {
    const bare = await testDevice({ disable: ['software'] }, { toggles: 'fast' });
    for (const vocabulary of [5121, 9000]) await runCase(bare, sampleCase(vocabulary, vocabulary, [...SETTINGS, ...SETTINGS]));
    expect(bare.errors).toEqual([]);
    bare.close();
  });

  test('on a GPU a row of a large vocabulary draws alone what it draws among others, in two dispatches if greedy, and in four', async () => {
    device.pretend(['software']);
    const rng = createRng(7);
    const logits = Float32Array.from({ length: 9000 }, () => 3 * rng.normal());
    const rows = Array.from({ length: 19 }, (_, i) => ({ ...GREEDY, ...SETTINGS[i % SETTINGS.length]!, position: i, seed: i }));
    const together = await draws(logits, rows);
    for (const i of [2, 5, 18]) expect((await draws(logits, [rows[i]!]))[0]).toBe(together[i]);
    const dispatches = (greedy: boolean): number => {
      const scratch = sampleScratch(device, 128_256, 4);
      const [settings, sampled] = [device.tensor('settings', 'u32', [4, SAMPLING_ROW_WORDS]), device.tensor('sampled', 'u32', [4])];
      const tensors = { logits: device.tensor('logits', 'f32', [4, 128_256]), lastTokens: device.tensor('last', 'u32', [1]) };
      const plan = device.capture('sampling', (rec) =>
        sample(rec, { ...tensors, vocabulary: 128_256, settings, scratch, sampled, rows: 4, greedy }),
      );
      return plan.steps.length;
    };
    expect([dispatches(true), dispatches(false)]).toEqual([2, 4]);
    device.pretend([]);
  });
});
