/** Tokenising that holds up nothing else. No GPU. */
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createNodePlatform } from '../../engine/platform/node.ts';
import { LongTexts } from '../../engine/text/long-texts.ts';
import { TOKENIZER_OPERATIONS, main } from '../../engine/text/tokenizer-worker.ts';
import { Tokenizer } from '../../engine/text/tokenizer.ts';
import { Caller } from '../../engine/util/rpc.ts';
import type { NewsMessage } from '../../engine/util/rpc.ts';
import { openModelFolder } from '../../engine/weights/open-model-folder.ts';

const folder = join(fileURLToPath(new URL('../..', import.meta.url)), 'models', 'parley-chat');
const platform = createNodePlatform();
const source = { path: folder, size: 4096 };
let tokenizer: Tokenizer;
let texts: LongTexts;
beforeAll(async () => {
  tokenizer = await Tokenizer.load(await openModelFolder(platform, folder), source.size);
  texts = new LongTexts(platform, tokenizer, source);
});
afterAll(() => texts.close());

test('a long text has the tokens that it has at once, while this thread goes on', async () => {
  const text = 'The quick brown fox, twice.\n'.repeat(5_000);
  let turns = 0;
  let done = false;
  const encoded = texts.encode(text).finally(() => (done = true));
  while (!done) {
    await new Promise((resolve) => setImmediate(resolve));
    turns++;
  }
  expect(await encoded).toEqual(tokenizer.encode(text));
  // At once it would be there before the first turn ends.
  expect(turns).toBeGreaterThan(10);
});

test('a text that comes while the engine closes, or after, is refused as such', async () => {
  const closing = new LongTexts(platform, tokenizer, source);
  const refused = expect(closing.encode('word '.repeat(2_000))).rejects.toMatchObject({ code: 'shutting_down' });
  await closing.close();
  await refused;
  await expect(closing.encode('word '.repeat(2_000))).rejects.toMatchObject({ code: 'shutting_down' });
  // A browser tells nobody that a thread has ended.
  const silent = { post: () => {}, onMessage: () => {}, onExit: () => {}, terminate: async () => {} };
  const tab = new LongTexts({ startWorker: () => silent }, tokenizer, source);
  const unanswered = expect(tab.encode('word '.repeat(2_000))).rejects.toMatchObject({ code: 'shutting_down' });
  await tab.close();
  await unanswered;
});

test('a tokenizer that could not be read is read again for the next text', async () => {
  let fails = true;
  const open: typeof platform.open = async (...args) => {
    if (fails) throw new Error('too many open files');
    return platform.open(...args);
  };
  let [toThread, toCaller]: ((message: unknown) => void)[] = [];
  const port = { post: (message: unknown) => toCaller!(message), onMessage: (take: typeof toThread) => (toThread = take), close: () => {} };
  main({ ...platform, open, log: () => {} }, port);
  const caller = new Caller(TOKENIZER_OPERATIONS, (message) => toThread!(message));
  toCaller = (message) => caller.receive(message as NewsMessage);
  const encode = () => caller.methods.encode({ ...source, text: 'Hi there.', addSpecialTokens: false });
  await expect(encode()).rejects.toThrow('too many open files');
  fails = false;
  expect(await encode()).toEqual(tokenizer.encode('Hi there.'));
});

test('short ones, and all where there are no threads, are tokenised at once', async () => {
  const alone = new LongTexts({}, tokenizer, source);
  for (const text of ['Hi there.', 'word '.repeat(2_000)]) expect(await alone.encode(text)).toEqual(tokenizer.encode(text));
});

test('the bound never refuses what fits', () => {
  const longest = tokenizer.vocabulary.tokens.reduce((most, token) => (token.length > most.length ? token : most), '');
  const text = longest.repeat(100);
  expect(() => texts.refuseLonger(text, 100, 'prompt')).not.toThrow();
  expect(() => texts.refuseLonger(text, 99, 'prompt')).toThrow(/at least 100 tokens; this model's maximum context length is 99 tokens$/);
});
