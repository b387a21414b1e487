/** What stands between two texts: how models are asked for it, and where it ends; on the bundled model, whose vocabulary gets the tokens for it. */
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { ChatRequest } from '../../engine/api.ts';
import { resolveConfig } from '../../engine/config.ts';
import type { Device } from '../../engine/gpu/device.ts';
import { createNodePlatform } from '../../engine/platform/node.ts';
import { ChatEngine } from '../../engine/tasks/chat-engine.ts';
import { middleFormOf } from '../../engine/text/fill-middle.ts';
import { testDevice } from '../support/device.ts';

const BUNDLED = join(fileURLToPath(new URL('../..', import.meta.url)), 'models', 'parley-chat');
const MARKS = ['<|fim_prefix|>', '<|fim_suffix|>', '<|fim_middle|>', '<|fim_pad|>'] as const;

test.each([
  ['Qwen2.5-Coder', MARKS, '<|fim_prefix|>a(<|fim_suffix|>)<|fim_middle|>', [0, 1, 2, 3]],
  ['StarCoder', ['<fim_prefix>', '<fim_middle>', '<fim_suffix>', '<file_sep>'], '<fim_prefix>a(<fim_suffix>)<fim_middle>', [0, 2, 1, 3]],
  ['DeepSeek-Coder', ['<｜fim▁hole｜>', '<｜fim▁begin｜>', '<｜fim▁end｜>'], '<｜fim▁begin｜>a(<｜fim▁hole｜>)<｜fim▁end｜>', [1, 0, 2]],
  ['Codestral', ['[PREFIX]', '[MIDDLE]', '[SUFFIX]'], '[SUFFIX])[PREFIX]a(', [0, 2, 1]],
])('the prompt of %s has its marks in its order', (_model, vocabulary: readonly string[], prompt, ends) => {
  const form = middleFormOf((spelling) => (vocabulary.includes(spelling) ? vocabulary.indexOf(spelling) : undefined));
  expect(form?.write('a(', ')')).toBe(prompt);
  expect(form?.ends).toEqual(ends);
});

test('a vocabulary with some of the marks has no form', () => {
  expect(middleFormOf((spelling) => (spelling === '<|fim_prefix|>' || spelling === '<|fim_middle|>' ? 7 : undefined))).toBeUndefined();
});

interface TokenizerFile {
  readonly model: { readonly vocab: Record<string, number>; readonly merges: unknown[] };
  readonly added_tokens: object[];
}

/** A copy of the bundled model whose last tokens are the marks; returns their ids in the same order. */
function withMarks(folder: string): number[] {
  cpSync(BUNDLED, folder, { recursive: true });
  const path = join(folder, 'tokenizer.json');
  const file = JSON.parse(readFileSync(path, 'utf8')) as TokenizerFile;
  const { vocab, merges } = file.model;
  const last = Object.entries(vocab)
    .toSorted((a, b) => a[1] - b[1])
    .slice(-MARKS.length);
  for (const [i, [spelling, id]] of last.entries()) {
    delete vocab[spelling];
    vocab[MARKS[i]!] = id;
    merges.pop();
    file.added_tokens.push({ id, content: MARKS[i], special: true, normalized: false, lstrip: false, rstrip: false, single_word: false });
  }
  writeFileSync(path, JSON.stringify(file));
  return last.map(([, id]) => id);
}

const folder = mkdtempSync(join(tmpdir(), 'parley-middle-'));
const [prefix, suffix, middle, pad] = withMarks(folder) as [number, number, number, number];
let device: Device;
let engine: ChatEngine;
let bundled: ChatEngine;
beforeAll(async () => {
  device = await testDevice();
  const load = (path: string): Promise<ChatEngine> =>
    ChatEngine.load(device, createNodePlatform({ log: () => undefined }), { path }, resolveConfig({ contextLength: 256 }));
  [engine, bundled] = [await load(folder), await load(BUNDLED)];
});
afterAll(async () => {
  rmSync(folder, { recursive: true });
  expect(device.errors).toEqual([]);
  await engine.close();
  await bundled.close();
  device.close();
});

/** The tokens of the prompt and of the answer, and how that ended. */
async function ask(request: Partial<ChatRequest>, of = engine) {
  let [prompt, count, reason] = [0, 0, ''];
  let stopReason: string | number | null = null;
  let text = '';
  const asked = { messages: [], sampling: { temperature: 0 }, maxTokens: 5, ...request };
  for await (const event of of.chat(asked, new AbortController().signal)) {
    if (event.type === 'start') prompt = event.promptTokens;
    if (event.type === 'delta') text += event.text;
    if (event.type === 'finish') ({ reason, stopReason, completionTokens: count } = event);
  }
  return { prompt, count, reason, stopReason, text };
}

const HELLO = 'Hello. ';
const BYE = ' Goodbye.';

test('the answer is the one to the marked prompt, token by token', async () => {
  const [before, behind] = await Promise.all([HELLO, BYE].map((prompt) => engine.tokenize({ prompt })));
  const written = await ask({ prompt: [prefix, ...before!, suffix, ...behind!, middle] });
  expect(await ask({ prompt: HELLO, suffix: BYE })).toEqual(written);
  expect((await ask({ prompt: HELLO, suffix: '' })).prompt).toBe(3 + before!.length);
  expect((await ask({ prompt: '', suffix: BYE })).prompt).toBe(3 + behind!.length);
});

test('it ends at a token that begins something else, which elsewhere ends nothing', async () => {
  const sampling = { temperature: 0, logitBias: { [pad]: 1000 } };
  expect(await ask({ prompt: HELLO, suffix: BYE, sampling })).toMatchObject({ text: '', count: 1, reason: 'stop', stopReason: null });
  expect(await ask({ prompt: HELLO, sampling })).toMatchObject({ count: 5, reason: 'length' });
  expect(await ask({ prompt: HELLO, suffix: BYE, sampling, ignoreEos: true })).toMatchObject({ count: 5, reason: 'length' });
  const least = await ask({ prompt: HELLO, suffix: BYE, minTokens: 3, sampling });
  expect(least).toMatchObject({ count: 4, reason: 'stop' });
});

test('it is refused by name for a prompt of tokens, and for a model without the tokens', async () => {
  const refused = { param: 'suffix' };
  await expect(ask({ prompt: [5], suffix: BYE })).rejects.toMatchObject({ code: 'invalid_request', ...refused });
  await expect(ask({ prompt: HELLO, suffix: BYE }, bundled)).rejects.toMatchObject({ code: 'unsupported', ...refused });
});

test('a text that cannot fit the context is refused before it is tokenised', async () => {
  await expect(ask({ prompt: HELLO, suffix: 'a'.repeat(100_000) })).rejects.toMatchObject({
    code: 'context_length_exceeded',
    param: 'prompt',
  });
});
