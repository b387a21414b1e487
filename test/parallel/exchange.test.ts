/** What ranks share without a GPU: exchanges in one thread and over threads, failure, and how work is cut. */
import { describe, expect, test } from 'vitest';
import { mlpUnit } from '../../engine/models/layers/mlp.ts';
import { expectStages, headShare, shareOf } from '../../engine/models/shard.ts';
import { GroupMemory, counterCount } from '../../engine/parallel/group-memory.ts';
import type { GroupSizes } from '../../engine/parallel/group-memory.ts';
import { Link } from '../../engine/parallel/link.ts';
import { dealLayers } from '../../engine/parallel/load-split.ts';
import { microBatches } from '../../engine/parallel/micro-batches.ts';
import { LocalSignals, SharedSignals } from '../../engine/parallel/signals.ts';
import type { Signals } from '../../engine/parallel/signals.ts';
import { createNodePlatform } from '../../engine/platform/node.ts';
import { GREEDY_SAMPLING } from '../../engine/sampling.ts';
import { Sequence } from '../../engine/scheduler/sequence.ts';
import type { BatchItem } from '../../engine/scheduler/batch.ts';
import { createRng } from '../../engine/util/rng.ts';
import type { ExchangeReply, ExchangeTask } from '../support/exchange-thread.ts';

const LIMITS = { maxRunning: 4, prefillChunk: 8, draftRows: 0, columns: 2, hasWindows: false, context: 32, vocabulary: 64 };
const sizesOf = (tpSize: number, ppSize: number): GroupSizes => ({ tpSize, ppSize, limits: LIMITS, hidden: 64 });

/** Rank's values of a round: of very different sizes, so that the order of adding shows. */
const valuesOf = (rank: number, round: number, length: number): Float32Array => {
  const rng = createRng(1000 * round + rank);
  return Float32Array.from({ length }, () => (rng.uniform() - 0.5) * 10 ** Math.floor(8 * rng.uniform()));
};
const sumOf = (ranks: number, round: number, length: number): Float32Array => {
  const sum = valuesOf(0, round, length);
  for (let rank = 1; rank < ranks; rank++) valuesOf(rank, round, length).forEach((value, i) => (sum[i]! += value));
  return sum;
};

describe('exchanges', () => {
  test.each([2, 3, 4])('%i ranks of one thread get the same sums, whoever comes first', async (ranks) => {
    const sizes = sizesOf(ranks, 1);
    const memory = new GroupMemory(sizes, new ArrayBuffer(GroupMemory.bytes(sizes)));
    const signals = new LocalSignals(counterCount(sizes));
    const rng = createRng(ranks);
    const run = async (rank: number): Promise<Float32Array[]> => {
      const link = new Link({ ...sizes, rank, stage: 0 }, memory, signals);
      const sums: Float32Array[] = [];
      for (let round = 0; round < 20; round++) {
        for (let wait = rng.integer(4); wait > 0; wait--) await Promise.resolve();
        link.mine.floats.set(valuesOf(rank, round, 100));
        await link.allReduce(100, (sums[round] = new Float32Array(100)));
      }
      return sums;
    };
    const expected = Array.from({ length: 20 }, (_, round) => sumOf(ranks, round, 100));
    for (const sums of await Promise.all(Array.from({ length: ranks }, (_, rank) => run(rank)))) expect(sums).toEqual(expected);
  });

  test('threads of two stages exchange, hand over and complete steps', { timeout: 60_000 }, async () => {
    const sizes = sizesOf(2, 2);
    const buffer = new SharedArrayBuffer(GroupMemory.bytes(sizes));
    const platform = createNodePlatform();
    const rounds = 50;
    const replies = await Promise.all(
      [0, 1, 2, 3].map(async (index): Promise<ExchangeReply> => {
        const worker = platform.startWorker!(new URL('../support/exchange-thread.ts', import.meta.url));
        const reply = new Promise<ExchangeReply>((resolve, reject) => {
          worker.onMessage((message) => resolve(message as ExchangeReply));
          worker.onExit((why) => reject(new Error(why)));
        });
        worker.post({ index, sizes, buffer, rounds } satisfies ExchangeTask);
        const result = await reply;
        await worker.terminate();
        return result;
      }),
    );
    // Each round: stage 0 adds rank + 1 and the round, hands the sum over; stage 1 adds the same to what it received.
    for (const [index, { sums }] of replies.entries()) {
      const stage = Math.floor(index / 2);
      expect(sums).toEqual(Array.from({ length: rounds }, (_, round) => (stage === 0 ? 3 + 2 * round : 3 + 2 * (3 + 2 * round))));
    }
  });

  test.each<[string, () => Signals]>([
    ['in one thread', () => new LocalSignals(3)],
    ['over threads', () => new SharedSignals(new Int32Array(new SharedArrayBuffer(4 * SharedSignals.words(3))))],
  ])('a failure ends every wait %s, and those that come later', async (_, create) => {
    const signals = create();
    signals.raise(1);
    expect(signals.reached(1, 1)).toBeUndefined();
    // Threads block while they wait, so only the other kind can be caught waiting here.
    const waiting = signals instanceof LocalSignals ? signals.reached(1, 2) : undefined;
    signals.fail();
    if (waiting) await expect(waiting).rejects.toMatchObject({ code: 'device_lost' });
    expect(() => signals.reached(1, 1)).toThrow(expect.objectContaining({ code: 'device_lost' }));
  });

  test('counts wrap', () => {
    const words = new Int32Array(SharedSignals.words(1));
    words[1] = 2 ** 31 - 1;
    const signals = new SharedSignals(words);
    signals.raise(0);
    expect(words[1]).toBe(-(2 ** 31));
    expect(signals.reached(0, -(2 ** 31))).toBeUndefined();
    expect(signals.reached(0, 2 ** 31 - 5)).toBeUndefined();
  });
});

describe('cutting a model', () => {
  test.each([[4, 2], [4, 1], [6, 3], [8, 8], [12, 3], [64, 8]])('%i heads over %i key/value heads: all dealt, each with its own', (heads, kvHeads) => {
    for (let ranks = 1; ranks <= Math.min(heads, 8); ranks++) {
      const shares = Array.from({ length: ranks }, (_, rank) => headShare(heads, kvHeads, { rank, ranks }));
      const dealt = shares.flatMap(({ q }) => Array.from({ length: q.to - q.from }, (_, i) => q.from + i));
      expect(dealt).toEqual(Array.from({ length: heads }, (_, i) => i));
      for (const { q, kv } of shares) {
        const group = heads / kvHeads;
        const [mine, theirs] = [q.to - q.from, kv.to - kv.from];
        expect(mine % theirs).toBe(0);
        for (let head = q.from; head < q.to; head++) {
          expect(kv.from + Math.floor((head - q.from) / (mine / theirs))).toBe(Math.floor(head / group));
        }
      }
    }
  }); // prettier-ignore

  test('more ranks than things are refused', () => {
    expect(() => shareOf('tokens', 60, 32, { rank: 0, ranks: 3 })).toThrow(/60 tokens .* over 3 adapters/);
    expect(() => headShare(2, 1, { rank: 0, ranks: 3 })).toThrow(/cannot be split/);
    expect(() => expectStages(2, 3, 'auto')).toThrow(/2 layers cannot be dealt to 3 stages/);
    expect(() => expectStages(2, 2, [1, 2])).toThrow(/2 layers are not dealt to 2 stages as 1,2/);
    expect(() => expectStages(2, 2, [1, 1])).not.toThrow();
  });

  test('MLP columns are dealt out in blocks of quantised weights where each rank gets at least eight', () => {
    const units = [[4864, 2], [1536, 2], [704, 2], [704, 4], [84, 2]].map(([columns, ranks]) => mlpUnit(columns!, ranks!)); // prettier-ignore
    expect(units).toEqual([256, 32, 32, 4, 4]);
  });

  test('layers follow speed, every stage has one', () => {
    expect(dealLayers(6, [1, 1])).toEqual([0, 3, 6]);
    expect(dealLayers(12, [3, 1])).toEqual([0, 9, 12]);
    expect(dealLayers(12, [1000, 1])).toEqual([0, 11, 12]);
    expect(dealLayers(3, [1, 1000, 1])).toEqual([0, 1, 2, 3]);
  });
});

describe('cutting a batch', () => {
  const item = (id: number, start: number, count: number, samples: number): BatchItem => ({
    sequence: new Sequence({ id, promptTokens: [1], maxTokens: 1, choice: 0, sampling: GREEDY_SAMPLING }),
    start, count, samples, fromDevice: false, drafts: [],
  }); // prettier-ignore

  test('every row once, chunks in order, sampled rows found again', () => {
    const rng = createRng(3);
    for (let round = 0; round < 200; round++) {
      const decodes = Array.from({ length: rng.integer(9) }, (_, i) => item(i, 5, 1, 1));
      const prefills = Array.from({ length: rng.integer(4) }, (_, i) => item(100 + i, 10 * i, 1 + rng.integer(90), rng.integer(2)));
      if (decodes.length + prefills.length === 0) continue;
      const sampled = [...decodes, ...prefills]
        .filter(({ samples }) => samples > 0)
        .map(({ sequence, start, count }) => ({ sequence, position: start + count }));
      const parts = 1 + rng.integer(4);
      const cut = microBatches({ decodes, prefills, sampled }, parts);
      expect(cut.length).toBeLessThanOrEqual(parts);
      const next = new Map([...decodes, ...prefills].map(({ sequence, start }) => [sequence, start]));
      for (const { batch, rows } of cut) {
        const items = [...batch.decodes, ...batch.prefills];
        expect(items.length).toBeGreaterThan(0);
        for (const { sequence, start, count } of items) {
          expect(start).toBe(next.get(sequence));
          next.set(sequence, start + count);
        }
        expect(batch.sampled).toEqual(rows.map((row) => sampled[row]));
        expect(items.filter(({ samples }) => samples > 0).map(({ sequence }) => sequence)).toEqual(
          batch.sampled.map(({ sequence }) => sequence),
        );
      }
      for (const { sequence, start, count } of [...decodes, ...prefills]) expect(next.get(sequence)).toBe(start + count);
      expect(cut.flatMap(({ rows }) => rows).sort((a, b) => a - b)).toEqual(sampled.map((_, i) => i));
    }
  });

  test('a long prompt and many decodes are shared evenly', () => {
    const sampledOf = (items: readonly BatchItem[]) => items.map(({ sequence, start, count }) => ({ sequence, position: start + count }));
    const decodes = Array.from({ length: 8 }, (_, i) => item(i, 5, 1, 1));
    expect(microBatches({ decodes, prefills: [], sampled: sampledOf(decodes) }, 2).map(({ batch }) => batch.decodes.length)).toEqual([
      4, 4,
    ]);
    const prefills = [item(0, 0, 200, 1)];
    expect(microBatches({ decodes: [], prefills, sampled: sampledOf(prefills) }, 2).map(({ batch }) => batch.prefills[0]!.count)).toEqual([
      100, 100,
    ]);
  });
});
