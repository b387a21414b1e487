import { expect, test } from 'vitest';
import { EngineError } from '../../engine/errors.ts';
import { longestWithin, planMemory, planModels, runningWithin, tokensThatFit } from '../../engine/runner/memory-plan.ts';
import type { MemoryRequest, MemoryShare, ModelDemand } from '../../engine/runner/memory-plan.ts';
import { describeMemory, describePlan } from '../../engine/util/memory.ts';

const MIB = 2 ** 20;
/** 2 layers x 2 sides x 16 tokens x 2 heads x 64 channels x 2 bytes: 4 KiB a page and buffer, 16 KiB a page in all. */
const F16 = {
  layers: [
    { kvHeads: 2, headDim: 64 },
    { kvHeads: 2, headDim: 64 },
  ],
  pageSize: 16,
  dtype: 'f16',
} as const;
const PAGE = 16384;

const plan = (fields: Partial<MemoryRequest>) =>
  planMemory({
    model: 'parley-chat', memory: { bytes: 100 * MIB, from: 'as set' }, fraction: 0.5, others: 0, weights: 8 * MIB, activations: 2 * MIB,
    kv: F16, maxRunning: 128, context: 32768, maxBindingBytes: 2 ** 31, ...fields,
  }); // prettier-ignore

const refusal = (fields: Partial<MemoryRequest>): EngineError => {
  try {
    plan(fields);
  } catch (error) {
    if (error instanceof EngineError) return error;
    throw error;
  }
  throw new Error('it was not refused');
};

test('pages are what weights, activations and other models leave of the share', () => {
  expect(plan({})).toMatchObject({ kvPages: (40 * MIB) / PAGE, kvBytes: 40 * MIB, weightBytes: 8 * MIB, activationBytes: 2 * MIB });
  expect(plan({ others: 30 * MIB }).kvPages).toBe((10 * MIB) / PAGE);
  expect(plan({ fraction: 1 }).kvPages).toBe((90 * MIB) / PAGE);
});

test('int8 holds nearly twice the pages of f16: a scale for each 64 channels', () => {
  expect(plan({ kv: { ...F16, dtype: 'int8' } }).kvPages).toBe(Math.floor((40 * MIB) / (4 * 2 * 16 * 68)));
  expect(plan({ kv: { ...F16, dtype: 'f32' } }).kvPages).toBe((20 * MIB) / PAGE);
});

test('never more than the running sequences can use, or than one binding holds', () => {
  expect(plan({ maxRunning: 3, context: 1000 }).kvPages).toBe(3 * 63);
  expect(plan({ maxBindingBytes: 4096 * 50 }).kvPages).toBe(50);
});

test('layers with windows get what running sequences can hold at once, half of a short memory, and never more pages than the others', () => {
  const [layer] = F16.layers;
  const kv = { ...F16, layers: [layer, ...Array.from({ length: 3 }, () => ({ ...layer, window: 100 }))] };
  // 8 KiB a page of a layer. Of a window 7 pages before a row and the one that it fills, for each of 10 sequences, and a chunk of 64.
  const sizes = { kv, maxRunning: 10, context: 8000, prefillChunk: 64 };
  const roomy = plan(sizes);
  expect(roomy).toMatchObject({ windowPages: 10 * 8 + 4, kvPages: (40 * MIB) / 8192 - 3 * 84, kvBytes: 40 * MIB });
  expect(plan({ ...sizes, context: 500 })).toMatchObject({ windowPages: 84, kvPages: 10 * 32 });
  // 1 MiB: 512 KiB are 21 pages of three layers.
  const short = plan({ ...sizes, weights: 47 * MIB });
  expect(short).toMatchObject({ windowPages: 21, kvPages: 128 - 3 * 21 });
  expect(describeMemory(short)).toMatch(/65 KV pages, 21 for windows, of 16 tokens/);
  // What is left for the others would be fewer: there are as many of both.
  const wide = { ...kv, layers: [...Array.from({ length: 9 }, () => layer), kv.layers[1]!] };
  expect(plan({ ...sizes, kv: wide, weights: 46 * MIB })).toMatchObject({ windowPages: 25, kvPages: 25 });
  // Where all layers have windows, the others' pages cost nothing.
  expect(plan({ ...sizes, kv: { ...kv, layers: kv.layers.slice(1) } })).toMatchObject({
    windowPages: 84,
    kvPages: 10 * 500,
    kvBytes: 84 * 3 * 8192,
  });
});

test('a text is as long as pages of both kinds hold it', () => {
  const kv = { layers: [F16.layers[0], { ...F16.layers[0], window: 100 }] };
  expect(longestWithin({ kvPages: 500, windowPages: 12, pageSize: 16 }, kv, 32768, 64)).toBe(8000);
  expect(longestWithin({ kvPages: 500, windowPages: 11, pageSize: 16 }, kv, 32768, 64)).toBe(176);
  expect(longestWithin({ kvPages: 500, windowPages: 10, pageSize: 16 }, kv, 150, 64)).toBe(150);
  expect(longestWithin({ kvPages: 500, pageSize: 16 }, F16, 32768, 64)).toBe(8000);
});

test('states of recurrent layers take a quarter of what is left at most, and half of them may run', () => {
  // 1 MiB a slot.
  const state = { layers: 2, tail: 2 ** 15, matrix: 3 * 2 ** 15 };
  const few = plan({ state, maxRunning: 3, context: 1000 });
  expect(few).toMatchObject({ stateSlots: 6, stateBytes: 6 * MIB, kvPages: 3 * 63 });
  expect(runningWithin(6)).toBe(3);
  expect(runningWithin(6, true)).toBe(2);
  expect(plan({ state })).toMatchObject({ stateSlots: 10, stateBytes: 10 * MIB, kvBytes: 30 * MIB });
  // A sequence whose guesses are verified has two of its own.
  expect(plan({ state, speculative: true })).toMatchObject({ stateSlots: 10 });
  expect(plan({ state, maxBindingBytes: 4 * 3 * 2 ** 15 * 7 })).toMatchObject({ stateSlots: 7 });
  // Less than one sequence and one copy is of no use.
  const tight = { state, weights: 45 * MIB, context: 64 };
  expect(plan(tight)).toMatchObject({ stateSlots: 2, stateBytes: 2 * MIB, kvBytes: MIB });
  expect(describeMemory(plan(tight))).toMatch(/, 2 states 2\.0 MiB, 64 KV pages/);
  const error = refusal({ ...tight, weights: 47 * MIB });
  expect(error.message).toMatch(/2 states of recurrent layers 2\.0 MiB, keys and values of 64 tokens/);
  expect(JSON.stringify(error.remedies)).not.toMatch(/tpSize/);
  expect(planModels(SHARE, [{ ...CHAT, pages: { ...CHAT.pages, state } }]).totalBytes).toBe(50 * MIB);
});

test('a model that does not fit is refused with what it needs, what there is, and what to do', () => {
  const error = refusal({ weights: 60 * MIB });
  expect(error.code).toBe('out_of_memory');
  expect(error.message).toBe(
    'parley-chat does not fit: it needs 62.3 MiB (weights 60.0 MiB, activations 2.0 MiB, keys and values of 256 tokens 0.3 MiB), and 0.5 x 100.0 MiB (as set) = 50.0 MiB may be taken',
  );
  expect(error.remedies.map(({ settings }) => settings.map(({ name }) => name))).toEqual([
    ['tpSize', 'ppSize'],
    ['kvCacheDtype'],
    ['maxRunningRequests', 'chunkedPrefillSize'],
    ['memFractionStatic'],
    ['deviceMemory'],
  ]);
  expect(error.details).toEqual({ needed: 62.25 * MIB, available: 50 * MIB });
  expect(refusal({ others: 45 * MIB }).message).toMatch(/other models 45\.0 MiB/);
  expect(JSON.stringify(refusal({ weights: 60 * MIB, kv: { ...F16, dtype: 'int8' } }).remedies)).not.toMatch(/int8/);
});

test('the least is 256 tokens, or a whole context below that', () => {
  expect(plan({ weights: 48 * MIB - 16 * PAGE, activations: 2 * MIB }).kvPages).toBe(16);
  expect(refusal({ weights: 48 * MIB - 15 * PAGE, activations: 2 * MIB }).code).toBe('out_of_memory');
  expect(plan({ weights: 48 * MIB - 2 * PAGE, context: 32 }).kvPages).toBe(2);
});

test('the plan in one line', () => {
  expect(describeMemory(plan({ others: MIB }))).toBe(
    '0.5 x 100.0 MiB (as set) = 50.0 MiB: other models 1.0 MiB, weights 8.0 MiB, activations 2.0 MiB, 2496 KV pages of 16 tokens (f16) 39.0 MiB',
  );
});

const SHARE: MemoryShare = { memory: { bytes: 100 * MIB, from: 'as set' }, fraction: 0.5, maxBindingBytes: 2 ** 31, taken: 0 };
const SPEECH: ModelDemand = { id: 'voice', task: 'speech', weights: 12 * MIB, activations: 8 * MIB };
const CHAT = {
  id: 'chat',
  task: 'chat',
  weights: 8 * MIB,
  activations: 2 * MIB,
  pages: { kv: F16, maxRunning: 128, context: 32768 },
} as const;

test('all models of a device in one plan: pages are made of what all of them leave, whatever their order', () => {
  const plan = planModels(SHARE, [CHAT, SPEECH]);
  expect(plan.models.map(({ id }) => id)).toEqual(['voice', 'chat']);
  expect(plan.models[1]!.pages).toMatchObject({ otherBytes: 20 * MIB, kvBytes: 20 * MIB });
  expect(plan.totalBytes).toBe(50 * MIB);
  expect(describePlan(plan)).toEqual([
    'voice: weights 12.0 MiB, activations 8.0 MiB',
    'chat: weights 8.0 MiB, activations 2.0 MiB, 1280 KV pages of 16 tokens (f16) 20.0 MiB',
    '50.0 MiB in all, of 0.5 x 100.0 MiB (as set) = 50.0 MiB',
  ]);
  expect(planModels({ ...SHARE, taken: 15 * MIB }, [SPEECH, CHAT]).models[1]!.pages!.kvBytes).toBe(5 * MIB);
});

test('a model without pages is refused as well, and nobody advises to split it', () => {
  expect(() => planModels(SHARE, [{ ...SPEECH, weights: 45 * MIB }])).toThrow(
    'voice does not fit: it needs 53.0 MiB (weights 45.0 MiB, activations 8.0 MiB), and 0.5 x 100.0 MiB (as set) = 50.0 MiB may be taken',
  );
  try {
    planModels(SHARE, [SPEECH, { ...CHAT, weights: 29 * MIB }]);
    throw new Error('it was not refused');
  } catch (error) {
    expect(error).toMatchObject({
      code: 'out_of_memory',
      message: expect.stringMatching(/^chat does not fit.*other models 20\.0 MiB/) as string,
    });
  }
});

test('what would fit is named with its size: only quantisations that do', () => {
  const refused = (quantised: Readonly<Record<string, number>>): unknown => {
    try {
      return planModels(SHARE, [{ ...CHAT, weights: 60 * MIB, quantised }]);
    } catch (error) {
      return (error as EngineError).remedies[0];
    }
  };
  expect(refused({ q8_0: 45 * MIB, q4_0: 17 * MIB })).toEqual({
    does: 'store the weights in fewer bits (q8_0: 45.0 MiB, q4_0: 17.0 MiB)',
    settings: [{ name: 'quantization', value: 'q8_0' }, { name: 'quantization', value: 'q4_0' }],
  }); // prettier-ignore
  expect(refused({ q8_0: 49 * MIB, q4_0: 17 * MIB })).toMatchObject({ settings: [{ name: 'quantization', value: 'q4_0' }] });
  expect(refused({ q8_0: 60 * MIB, q4_0: 60 * MIB })).toMatchObject({ settings: [{ name: 'tpSize' }, { name: 'ppSize' }] });
});

test('the tokens that fit beside a model, or none', () => {
  expect(tokensThatFit(SHARE, CHAT)).toBe(((40 * MIB) / PAGE) * 16);
  expect(tokensThatFit({ ...SHARE, taken: 45 * MIB }, CHAT)).toBe(0);
});
