/** Sampling from slices of the vocabulary against sampling from the whole: the same tokens to the last one. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Device } from '../../engine/gpu/device.ts';
import { MAX_TOP_LOGPROBS } from '../../engine/ops/logits.ts';
import { sample, sampleScratch } from '../../engine/ops/sample.ts';
import { SAMPLING_ROW_WORDS, writeSamplingRow } from '../../engine/ops/sampling-row.ts';
import type { SamplingRow } from '../../engine/ops/sampling-row.ts';
import { ShardLayout, vocabularySlice } from '../../engine/parallel/shard-layout.ts';
import type { SamplingStep } from '../../engine/parallel/shard-layout.ts';
import { ShardMerge, shardWords } from '../../engine/parallel/shard-merge.ts';
import type { ShardLogprobs, ShardWords } from '../../engine/parallel/shard-merge.ts';
import { ShardSampler } from '../../engine/parallel/shard-sampler.ts';
import { CUT_NAMES, samplingField } from '../../engine/sampling.ts';
import { createRng } from '../../engine/util/rng.ts';
import * as reference from '../reference/logits.ts';
import { GREEDY, SETTINGS } from '../reference/sample.ts';
import { testDevice } from '../support/device.ts';
import { FLAVOURS } from '../support/kernel-case.ts';

/** Settings whose cut needs more tokens than a list holds. */
const isWide = (row: Partial<SamplingRow>): boolean =>
  (row.topK ?? 0) > 512 || CUT_NAMES.some((name) => samplingField(name).wholeRow === true && row[name] !== undefined);
/** What a mask leaves of a logit. */
const MASKED = Math.fround(-3.4e38);

interface Drawn {
  readonly tokens: number[];
  readonly unresolved: number[];
  readonly logprobs: readonly ShardLogprobs[];
}

/** As the library has it: workgroup memory begins with what the workgroup before left there. */
const WAYS = [...FLAVOURS.map((flavour) => ({ ...flavour, toggles: 'default' }) as const), { title: "without Dawn's checks", disable: [], toggles: 'fast' } as const]; // prettier-ignore

describe.each(WAYS)('sharded sampling ($title)', ({ disable, toggles }) => {
  let device: Device;
  beforeAll(async () => {
    device = await testDevice({ disable }, { toggles });
  });
  afterAll(() => device.close());

  function stepOf(rows: readonly SamplingRow[], reported: readonly number[] = [], top = 0): SamplingStep {
    const settings = new Uint32Array(rows.length * SAMPLING_ROW_WORDS);
    rows.forEach((row, i) => writeSamplingRow(settings, i, row));
    return { rows: rows.length, settings, reported, top };
  }

  async function drawWhole(logits: Float32Array, vocabulary: number, step: SamplingStep): Promise<number[]> {
    const { rows } = step;
    const sampled = device.tensor('sampled', 'u32', [rows]);
    const rec = device.record('one device');
    sample(rec, {
      logits: device.upload('logits', 'f32', [rows, vocabulary], logits),
      vocabulary,
      settings: device.upload('settings', 'u32', [rows, SAMPLING_ROW_WORDS], step.settings),
      scratch: sampleScratch(device, vocabulary, rows),
      sampled,
      lastTokens: device.tensor('last', 'u32', [rows + 1]),
      rows,
      greedy: false,
    });
    rec.submit();
    return Array.from(await device.read(sampled));
  }

  /** The same from `ranks` slices, by what the ranks read back and nothing else. */
  async function drawSharded(
    processed: Float32Array,
    unprocessed: Float32Array,
    vocabulary: number,
    step: SamplingStep,
    ranks: number,
  ): Promise<Drawn> {
    const { rows } = step;
    const slices = Array.from({ length: ranks }, (_, rank) => vocabularySlice(vocabulary, rank, ranks));
    const upload = (values: Float32Array, from: number, to: number): ReturnType<Device['upload']> => {
      const columns = Float32Array.from({ length: rows * (to - from) }, (_, i) => {
        const row = Math.floor(i / (to - from));
        return values[row * vocabulary + from + (i % (to - from))]!;
      });
      return device.upload('logits of a slice', 'f32', [rows, to - from], columns);
    };
    const shards = slices.map((slice) => ({
      sampler: new ShardSampler(device, slice, rows + 2),
      logits: upload(processed, slice.from, slice.to),
      unprocessed: upload(unprocessed, slice.from, slice.to),
    }));
    const perRank: ShardWords[] = [];
    for (const { sampler, logits, unprocessed: raw } of shards) {
      const bytes = sampler.prepare(step);
      const rec = device.record('a rank');
      sampler.record(rec, step, logits, raw);
      const read = rec.readback(sampler.out, bytes);
      rec.submit();
      perRank.push(shardWords(await read.data()));
    }
    const merge = new ShardMerge(slices, rows + 2);
    merge.merge(step, perRank);
    const unresolved = Array.from(merge.unresolved.subarray(0, merge.unresolvedCount));
    for (const row of unresolved) {
      const whole: ShardWords[] = [];
      for (const { sampler, logits, unprocessed: raw } of shards) {
        const rec = device.record('a whole row');
        const read = rec.readback(sampler.recordWhole(rec, row, logits, raw));
        rec.submit();
        whole.push(shardWords(await read.data()));
      }
      merge.mergeWhole(step, row, whole);
    }
    return { tokens: Array.from(merge.tokens.subarray(0, rows)), unresolved, logprobs: merge.logprobs(step, perRank) };
  }

  /** Every setting at `repeats` positions, of logits with the given spread. */
  function scene(vocabulary: number, spread: number, repeats: number): { logits: Float32Array; rows: SamplingRow[] } {
    const rng = createRng(vocabulary + repeats);
    const rows = Array.from({ length: repeats }, (_, position) =>
      SETTINGS.map((s) => ({ ...GREEDY, ...s, seed: 2 ** 33 + position, position })),
    ).flat();
    const logits = Float32Array.from({ length: rows.length * vocabulary }, () => rng.normal() * spread);
    return { logits, rows };
  }

  test.each([
    { vocabulary: 257, ranks: 2, spread: 3 },
    { vocabulary: 1000, ranks: 3, spread: 3 },
    { vocabulary: 1024, ranks: 4, spread: 0.5 },
    { vocabulary: 5000, ranks: 2, spread: 3 },
    { vocabulary: 5000, ranks: 4, spread: 1 },
  ])('$ranks slices of $vocabulary tokens (spread $spread) draw the tokens of one device', async ({ vocabulary, ranks, spread }) => {
    const { logits, rows } = scene(vocabulary, spread, 6);
    const step = stepOf(rows);
    const expected = await drawWhole(logits, vocabulary, step);
    const { tokens } = await drawSharded(logits, logits, vocabulary, step, ranks);
    expect(tokens).toEqual(expected);
    expect(new Set(expected).size).toBeGreaterThan(20);
    expect(device.errors).toEqual([]);
  });

  test('a peaked row is settled by the lists; a cut that keeps more than they hold is settled by the whole row', async () => {
    const { logits, rows } = scene(4096, 6, 2);
    const peaked = await drawSharded(logits, logits, 4096, stepOf(rows), 2);
    const wide = SETTINGS.flatMap((row, i) => (isWide(row) ? [i, i + SETTINGS.length] : []));
    expect(peaked.unresolved).toEqual(wide.sort((a, b) => a - b));
    const flat = Float32Array.from(logits, (logit) => logit / 20);
    const step = stepOf(rows);
    const { tokens, unresolved } = await drawSharded(flat, flat, 4096, step, 2);
    expect(unresolved.length).toBeGreaterThan(wide.length);
    expect(tokens).toEqual(await drawWhole(flat, 4096, step));
  });

  test('equal logits: the smaller token wins, within a slice and across slices', async () => {
    const logits = new Float32Array(5 * 320).fill(-1);
    [[70, 200], [200, 300], [159, 160], [319], [0, 319]].forEach((tokens, row) =>
      tokens.forEach((token) => (logits[row * 320 + token] = 4)),
    );
    const { tokens } = await drawSharded(logits, logits, 320, stepOf(Array.from({ length: 5 }, () => GREEDY)), 2);
    expect(tokens).toEqual([70, 200, 159, 319, 0]);
  });

  test('masked logits: few allowed tokens, all in one slice, or none at all', async () => {
    const { logits: unprocessed, rows } = scene(1000, 2, 4);
    const logits = Float32Array.from(unprocessed, (logit, i) => {
      const [row, token] = [Math.floor(i / 1000), i % 1000];
      const allowed = row % 4 === 0 ? token % 97 === 5 : row % 4 === 1 ? token > 900 : row % 4 === 2 ? token === 431 : false;
      return allowed ? logit : MASKED;
    });
    const step = stepOf(rows);
    const { tokens, unresolved } = await drawSharded(logits, unprocessed, 1000, step, 3);
    expect(tokens).toEqual(await drawWhole(logits, 1000, step));
    expect(unresolved).toEqual([]);
    expect(tokens.filter((_, row) => row % 4 === 2).every((token) => token === 431)).toBe(true);
    expect(tokens.filter((_, row) => row % 4 === 3).every((token) => token === 0)).toBe(true);
  });

  test('log-probabilities are those of the unprocessed logits over the whole vocabulary', async () => {
    const vocabulary = 700;
    const { logits: unprocessed, rows } = scene(vocabulary, 2, 1);
    const logits = Float32Array.from(unprocessed, (logit, i) => (i % 3 === 0 ? MASKED : logit));
    const reported = rows.map((_, row) => row).filter((row) => row !== 4);
    const step = stepOf(rows, reported, MAX_TOP_LOGPROBS);
    const { tokens, logprobs } = await drawSharded(logits, unprocessed, vocabulary, step, 4);
    expect(logprobs.map(({ row }) => row)).toEqual(reported);
    for (const { row, logprob, top } of logprobs) {
      const values = unprocessed.subarray(row * vocabulary, (row + 1) * vocabulary);
      const sum = reference.logSumExp(values);
      expect(logprob).toBeCloseTo(values[tokens[row]!]! - sum, 5);
      expect(top.map(({ token }) => token)).toEqual(reference.topTokens(values, MAX_TOP_LOGPROBS));
      for (const { token, logprob: alternative } of top) expect(alternative).toBeCloseTo(values[token]! - sum, 5);
    }
  });

  test("nothing of the vocabulary's size is read back of a step", () => {
    const layout = new ShardLayout(8);
    layout.update(stepOf([GREEDY, { ...GREEDY, temperature: 1 }]));
    expect(layout.words).toBe(4);
    layout.update(stepOf([GREEDY, { ...GREEDY, temperature: 1, topP: 0.9 }]));
    expect(layout.words).toBeLessThan(1100);
  });
});

test('slices begin at multiples of 32 and cover every token once', () => {
  for (const [vocabulary, ranks] of [
    [257, 2],
    [32000, 3],
    [33, 2],
    [64, 2],
    [100, 4],
  ] as const) {
    const slices = Array.from({ length: ranks }, (_, rank) => vocabularySlice(vocabulary, rank, ranks));
    expect(slices[0]!.from).toBe(0);
    expect(slices.at(-1)!.to).toBe(vocabulary);
    slices.slice(1).forEach(({ from }, i) => expect(from).toBe(slices[i]!.to));
    for (const { from, to } of slices) {
      expect(from % 32).toBe(0);
      expect(to).toBeGreaterThan(from);
    }
  }
});
