/** What a request that says nothing is sampled with. */
import { expect, test } from 'vitest';
import { samplingDefaults, shownDefaults } from '../../engine/sampling.ts';
import { SAMPLING_ROW_WORDS, readCuts, writeSamplingRow } from '../../engine/ops/sampling-row.ts';
import { resolveSampling } from '../../engine/tasks/chat-request.ts';
import type { ChatRequest } from '../../engine/api.ts';

test.each([
  ['nothing said', {}, { temperature: 0.7, top_p: 0.95 }],
  ['no temperature', { top_k: 20, do_sample: true }, { temperature: 0.7, top_p: 0.95, top_k: 20 }],
  ['a temperature alone', { temperature: 1 }, { temperature: 1 }],
  ['all of Qwen3', { temperature: 0.6, top_p: 0.95, top_k: 20 }, { temperature: 0.6, top_p: 0.95, top_k: 20 }],
  ['another top_p', { top_p: 0.5 }, { temperature: 0.7, top_p: 0.5 }],
  ['greedy', { do_sample: false, temperature: 0.6, top_k: 50, repetition_penalty: 1.1 }, { temperature: 0, repetition_penalty: 1.1 }],
  ['no numbers', { temperature: 'hot', top_p: null }, { temperature: 0.7, top_p: 0.95 }],
])('a generation_config.json with %s', (_, generation, shown) => {
  expect(shownDefaults(samplingDefaults(generation, 'model'))).toEqual(shown);
  expect(shownDefaults(samplingDefaults(generation, 'openai'))).toEqual({ temperature: 1 });
});

test.each([
  ['nothing', {}, { temperature: 0.2, top_p: 0.9 }],
  ['no temperature', { top_p: 0.5, top_k: 20, temperature: null }, { temperature: 0.2, top_p: 0.5, top_k: 20 }],
  ['a temperature, which was chosen with the rest of its file', { temperature: 0.6 }, { temperature: 0.6 }],
  ['greedy', { do_sample: false }, { temperature: 0 }],
])('what is recommended for a model whose file says %s', (_, generation, shown) => {
  const recommended = { temperature: 0.2, top_p: 0.9 };
  expect(shownDefaults(samplingDefaults(generation, 'model', recommended))).toEqual(shown);
  expect(shownDefaults(samplingDefaults(generation, 'openai', recommended))).toEqual({ temperature: 1 });
});

test('a request overrides each number by itself', () => {
  const model = { samplingDefaults: samplingDefaults({ top_k: 20 }, 'model'), vocabulary: 10, eos: new Set<number>() };
  const resolve = (sampling: ChatRequest['sampling']) => resolveSampling({ messages: [], sampling }, model, false);
  expect(resolve({})).toMatchObject({ temperature: 0.7, topP: 0.95, topK: 20 });
  expect(resolve({ temperature: 1.5 })).toMatchObject({ temperature: 1.5, topP: 0.95, topK: 20 });
  expect(resolve({ temperature: 0, topK: -1 })).toMatchObject({ temperature: 0, topK: 0 });
});

test.each([2 ** 32, 2 ** 32 + 1, 1e300])('top-k %d keeps every token of any vocabulary', (topK) => {
  const model = { samplingDefaults: samplingDefaults({}, 'model'), vocabulary: 10, eos: new Set<number>() };
  const { temperature, seed, ...cuts } = resolveSampling({ messages: [], sampling: { topK } }, model, false);
  const words = new Uint32Array(SAMPLING_ROW_WORDS);
  writeSamplingRow(words, 0, { ...cuts, temperature, seed, choice: 0, position: 0, slot: 0 });
  expect(readCuts(words, 0).topK).toBe(2 ** 32 - 1);
});

test('a token has one bias, however often and in whatever way it is named', () => {
  const model = { samplingDefaults: samplingDefaults({}, 'model'), vocabulary: 10, eos: new Set<number>() };
  const { logits } = resolveSampling({ messages: [], sampling: { logitBias: { 7: 100, 3: 1, '07': -100 } } }, model, false);
  expect(logits?.bias).toEqual([[3, 1], [7, -100]]); // prettier-ignore
});

test('tokens that stop an answer must exist', () => {
  const model = { samplingDefaults: samplingDefaults({}, 'model'), vocabulary: 10, eos: new Set<number>() };
  const resolve = (stopTokenIds: readonly number[]) => () => resolveSampling({ messages: [], sampling: {}, stopTokenIds }, model, false);
  expect(resolve([0, 9])).not.toThrow();
  const message = "'stop_token_ids' names token 10; this model has tokens 0 to 9";
  expect(resolve([9, 10])).toThrow(expect.objectContaining({ code: 'invalid_request', param: 'stopTokenIds', message }));
});

test.each([
  [{ repetition_penalty: 0 }, 'generation_config.json: repetition_penalty is 0, expected more than 0'],
  [{ temperature: -1 }, 'generation_config.json: temperature is -1, expected at least 0'],
  [{ temperature: 1, top_p: -0.5 }, 'generation_config.json: top_p is -0.5, expected at least 0'],
])('numbers that mean nothing are refused: %o', (generation, message) => {
  expect(() => samplingDefaults(generation, 'model')).toThrow(message);
  expect(shownDefaults(samplingDefaults(generation, 'openai'))).toEqual({ temperature: 1 });
});

test('a temperature of a file that does not draw is not looked at, and one beyond what requests may is', () => {
  expect(samplingDefaults({ do_sample: false, temperature: -1 }, 'model').temperature).toBe(0);
  expect(samplingDefaults({ temperature: 5, top_k: -1 }, 'model')).toMatchObject({ temperature: 5, topK: -1 });
});
