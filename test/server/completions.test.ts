/** POST /v1/completions: what reaches the engine and what comes back, also through the official client. */
import OpenAI from 'openai';
import { describe, expect, test } from 'vitest';
import type { ChatEvent, ChatRequest } from '../../engine/api.ts';
import { EngineError } from '../../engine/errors.ts';
import { FakeEngine } from '../support/fake-engine.ts';
import { postJson, startListeners, until } from '../support/listeners.ts';
import { nodeWarnings } from '../support/node-warnings.ts';

const PATH = '/v1/completions';
const GOOD = { model: 'parley-chat', prompt: 'Once' };
const top = [{ token: ' a', bytes: [32, 97], logprob: -0.5 }];

/** Listens to the signal of each call, as the client of an engine in a process of its own does. */
class ListeningEngine extends FakeEngine {
  override chat(request: ChatRequest, signal: AbortSignal): AsyncIterable<ChatEvent> {
    signal.addEventListener('abort', () => {}, { once: true });
    return super.chat(request, signal);
  }
}

describe('a text completion', () => {
  test.each([
    [{}, { maxTokens: 16 }],
    [
      { max_tokens: 3, temperature: 0, stop: '\n' },
      { maxTokens: 3, sampling: { temperature: 0 }, stop: ['\n'] },
    ],
    [{ prompt: [5, 6, 7] }, { maxTokens: 16, prompt: [5, 6, 7] }],
    [
      { logprobs: 5, n: 2 },
      { maxTokens: 16, logprobs: 5, n: 2 },
    ],
    [
      { min_tokens: 4, skip_special_tokens: false },
      { maxTokens: 16, minTokens: 4, skipSpecialTokens: false },
    ],
    [{ suffix: ' time' }, { maxTokens: 16, suffix: ' time' }],
    [
      { best_of: 2, n: 2, suffix: '' },
      { maxTokens: 16, n: 2 },
    ],
  ])('%j reaches the engine', async (fields, expected) => {
    const { chat, engine } = await startListeners();
    expect((await postJson(chat + PATH, { ...GOOD, ...fields })).status).toBe(200);
    expect(engine.chats).toEqual([{ messages: [], prompt: 'Once', sampling: {}, ...expected }]);
  });

  test('comes back whole', async () => {
    const { chat } = await startListeners({ words: [' upon', ' a', ' time'] });
    const { json } = await postJson(chat + PATH, { ...GOOD, echo: true });
    expect(json).toEqual({
      id: expect.stringMatching(/^cmpl-[0-9a-f]{32}$/),
      object: 'text_completion',
      created: expect.closeTo(Date.now() / 1000, -1),
      model: 'parley-chat',
      system_fingerprint: expect.stringMatching(/^fp_/),
      choices: [{ index: 0, text: 'Once upon a time', logprobs: null, finish_reason: 'stop', stop_reason: null }],
      usage: expect.objectContaining({ prompt_tokens: 4, completion_tokens: 3, total_tokens: 7 }),
    });
  });

  test('of several prompts comes back in their order, tokens spelled out, usage summed', async () => {
    const { chat, engine } = await startListeners({ words: ['!'] });
    const { json } = await postJson(chat + PATH, { ...GOOD, prompt: [[79, 110], [65]], n: 2, echo: true });
    expect(json.choices.map((choice) => [choice.index, Reflect.get(choice, 'text')])).toEqual([
      [0, 'On!'],
      [1, 'On!'],
      [2, 'A!'],
      [3, 'A!'],
    ]);
    expect(json.usage).toMatchObject({ prompt_tokens: 3, completion_tokens: 4, prompt_tokens_details: { cached_tokens: 6 } });
    expect(engine.chats.map(({ prompt }) => prompt)).toEqual([[79, 110], [65]]);
  });

  test.each([{}, { echo: true, logprobs: 0 }])('of many prompts makes Node warn of no leak: %j', async (fields) => {
    const warnings = nodeWarnings();
    const { chat } = await startListeners({}, { engine: new ListeningEngine() });
    const { json } = await postJson(chat + PATH, { ...GOOD, ...fields, prompt: Array.from({ length: 20 }, (_, i) => `${i}`) });
    expect(json.choices).toHaveLength(20);
    expect(warnings).toEqual([]);
  });

  test('has log-probabilities in the old form', async () => {
    const deltas = [
      { text: ' a', logprobs: [{ ...top[0]!, top }] },
      { text: ' b', logprobs: [{ token: ' b', bytes: [32, 98], logprob: -Infinity, top }] },
    ];
    const { chat } = await startListeners({ deltas });
    const { json } = await postJson(chat + PATH, { ...GOOD, logprobs: 1 });
    expect(json.choices[0]).toMatchObject({
      text: ' a b',
      logprobs: {
        tokens: [' a', ' b'],
        token_logprobs: [-0.5, -9999],
        top_logprobs: [{ ' a': -0.5 }, { ' a': -0.5, ' b': -9999 }],
        text_offset: [0, 2],
      },
    });
  });

  test('has those of its prompt where it repeats it', async () => {
    const { chat, engine } = await startListeners();
    const scored = (token: string, logprob: number) => ({
      text: token,
      logprobs: [{ token, bytes: [...Buffer.from(token)], logprob, top: [] }],
    });
    const answered = engine.chat.bind(engine);
    engine.chat = (request, signal) => {
      engine.options = { deltas: request.forcedTokens ? [scored('n', -2), scored('e', -Infinity)] : [scored('!', -1)] };
      return answered(request, signal);
    };
    const tokens = await postJson(chat + PATH, {
      ...GOOD,
      prompt: [79, 110, 101],
      echo: true,
      logprobs: 1,
      cache_salt: 'x',
      max_tokens: 1,
    });
    const expected = {
      tokens: ['O', 'n', 'e', '!'],
      token_logprobs: [null, -2, -9999, -1],
      top_logprobs: [null, { n: -2 }, { e: -9999 }, { '!': -1 }],
      text_offset: [0, 1, 2, 3],
    };
    expect(tokens.json.choices).toEqual([expect.objectContaining({ text: 'One!', logprobs: expected })]);
    expect(engine.chats).toEqual([
      { messages: [], prompt: [79], forcedTokens: [110, 101], sampling: { temperature: 0 }, logprobs: 1, cacheSalt: 'x' },
      { messages: [], prompt: [79, 110, 101], sampling: {}, logprobs: 1, cacheSalt: 'x', maxTokens: 1 },
    ]);
    const chunks: string[] = [];
    const openai = new OpenAI({ baseURL: `${chat}/v1`, apiKey: 'unused' });
    for await (const { choices } of await openai.completions.create({
      ...GOOD,
      prompt: [79, 110, 101],
      echo: true,
      logprobs: 1,
      stream: true,
    })) {
      if (choices[0]?.logprobs) chunks.push(JSON.stringify(choices[0].logprobs.token_logprobs));
    }
    expect(chunks).toEqual(['[null,-2,-9999]', '[-1]']);
  });

  test('has nothing but its prompt, scored, where nothing is asked for', async () => {
    const { chat, engine } = await startListeners();
    const one = (token: string, logprob: number) => ({
      text: token,
      logprobs: [{ token, bytes: [...Buffer.from(token)], logprob, top: [] }],
    });
    engine.options = { deltas: [one('n', -1), one('e', -2)] };
    const asked = { ...GOOD, prompt: [[79, 110, 101], [79]], n: 2, echo: true, max_tokens: 0, logprobs: 1 };
    const { json } = await postJson(chat + PATH, asked);
    const nothing = { finish_reason: 'length', stop_reason: null };
    const scored = expect.objectContaining({ tokens: ['O', 'n', 'e'], token_logprobs: [null, -1, -2] });
    expect(json.choices).toMatchObject([
      { index: 0, text: 'One', logprobs: scored, ...nothing },
      { index: 1, text: 'One', logprobs: scored, ...nothing },
      { index: 2, text: 'O', logprobs: { tokens: ['O'], token_logprobs: [null] }, ...nothing },
      { index: 3, text: 'O', logprobs: { tokens: ['O'], token_logprobs: [null] }, ...nothing },
    ]);
    expect(json.usage).toMatchObject({ prompt_tokens: 4, completion_tokens: 0, total_tokens: 4 });
    // The scoring alone.
    expect(engine.chats.map(({ prompt, forcedTokens }) => [prompt, forcedTokens])).toEqual([[[79], [110, 101]]]);
    const { text } = await postJson(chat + PATH, { ...GOOD, prompt: 'One', echo: true, max_tokens: 0, stream: true });
    const chunks = text.trim().split('\n\n').slice(0, -1).map((event) => JSON.parse(event.slice('data: '.length)) as typeof json); // prettier-ignore
    expect(chunks.map(({ choices }) => choices[0])).toMatchObject([{ text: 'One' }, { text: '', ...nothing }]);
  });

  test('counts no room for what the tokenizer puts before a prompt', async () => {
    const { chat, engine } = await startListeners();
    const one = (token: string) => ({ text: token, logprobs: [{ token, bytes: [...Buffer.from(token)], logprob: -1, top: [] }] });
    engine.options = { deltas: ['O', 'n'].map(one) };
    const { json } = await postJson(chat + PATH, { ...GOOD, prompt: 'On', echo: true, logprobs: 0 });
    expect(engine.chats[0]).toMatchObject({ prompt: [1], forcedTokens: [79, 110] });
    // The fake engine answers with the same two tokens again.
    expect(json.choices[0]).toMatchObject({
      text: 'OnOn',
      logprobs: { tokens: ['\u0001', 'O', 'n', 'O', 'n'], text_offset: [0, 0, 1, 2, 3] },
    });
  });

  test('streams through the official client', async () => {
    const { chat } = await startListeners({ words: [' upon', ' a'] });
    const openai = new OpenAI({ baseURL: `${chat}/v1`, apiKey: 'unused' });
    const prompt = ['Once', 'Twice'];
    const stream = await openai.completions.create({ model: 'parley-chat', prompt, echo: true, stream: true, stream_options: { include_usage: true } }); // prettier-ignore
    const texts = ['', ''];
    const reasons: unknown[] = [];
    let usage: OpenAI.CompletionUsage | undefined;
    for await (const chunk of stream) {
      expect(chunk.object).toBe('text_completion');
      for (const { index, text, finish_reason } of chunk.choices) {
        texts[index] += text;
        if (finish_reason !== null) reasons[index] = finish_reason;
      }
      usage = chunk.usage ?? undefined;
    }
    expect(texts).toEqual(['Once upon a', 'Twice upon a']);
    expect(reasons).toEqual(['stop', 'stop']);
    expect(usage).toMatchObject({ prompt_tokens: 9, completion_tokens: 4 });
  });

  test('is refused, and no stream, where a later prompt turns out to be too long', async () => {
    const { chat, engine } = await startListeners({ delay: 5 });
    const answered = engine.chat.bind(engine);
    const refuse = async (): Promise<never> => {
      await until(() => engine.handedOut > 2);
      throw new EngineError('context_length_exceeded', 'too long', { param: 'prompt' });
    };
    engine.chat = (request, signal) =>
      request.prompt === 'long' ? { [Symbol.asyncIterator]: () => ({ next: refuse }) } : answered(request, signal);
    const { status, json } = await postJson(chat + PATH, { ...GOOD, prompt: ['Once', 'long'], stream: true });
    expect([status, json.error.code]).toEqual([400, 'context_length_exceeded']);
  });

  test('ends for all prompts when its client leaves', async () => {
    const { chat, engine } = await startListeners({ delay: 1e6 });
    const controller = new AbortController();
    const headers = { 'content-type': 'application/json' };
    const body = JSON.stringify({ ...GOOD, prompt: ['a', 'b'] });
    const answer = fetch(chat + PATH, { method: 'POST', headers, body, signal: controller.signal });
    await until(() => engine.chats.length === 2);
    controller.abort();
    await expect(answer).rejects.toThrow();
    await until(() => engine.aborted === 2);
  });

  test.each([{ echo: true }, { echo: true, logprobs: 1 }])('with %j and a token that there is not is refused by name', async (fields) => {
    const { chat } = await startListeners();
    const { status, json } = await postJson(chat + PATH, { ...GOOD, ...fields, prompt: [65, 0x110000] });
    expect({ status, ...json.error }).toMatchObject({ status: 400, code: 'invalid_value', param: 'prompt' });
  });

  test.each([
    ['no prompt', { prompt: undefined }, 'missing_required_parameter', 'prompt'],
    ['no prompts', { prompt: [] }, 'invalid_value', 'prompt'],
    ['a prompt of another kind', { prompt: 5 }, 'invalid_type', 'prompt'],
    ['a broken token', { prompt: [1.5] }, 'invalid_value', 'prompt[0]'],
    ['a number among texts', { prompt: ['a', 1] }, 'invalid_type', 'prompt[1]'],
    ['a text among tokens', { prompt: [1, 'a'] }, 'invalid_type', 'prompt[1]'],
    ['a text among the tokens of a prompt', { prompt: [[1], [2, 'a']] }, 'invalid_type', 'prompt[1][1]'],
    ['a suffix of another kind', { suffix: ['x'] }, 'invalid_type', 'suffix'],
    ['a suffix behind tokens', { prompt: [1, 2], suffix: 'x' }, 'invalid_value', 'suffix'],
    ['a suffix behind several prompts of tokens', { prompt: [[1], [2]], suffix: 'x' }, 'invalid_value', 'suffix'],
    ['a suffix, and the prompt scored', { suffix: 'x', echo: true, logprobs: 0 }, 'unsupported_value', 'echo'],
    ['the best of more', { best_of: 3 }, 'unsupported_value', 'best_of'],
    ['six alternatives', { logprobs: 6 }, 'invalid_value', 'logprobs'],
    ['more prompts than run at once', { prompt: ['a', 'b', 'c'], n: 2 }, 'invalid_value', 'prompt'],
    ['nothing to generate', { max_tokens: 0 }, 'invalid_value', 'max_tokens'],
    ['nothing to generate, but some', { max_tokens: 0, min_tokens: 1, echo: true }, 'invalid_value', 'min_tokens'],
    ['at least more than at most', { min_tokens: 17 }, 'invalid_value', 'min_tokens'],
  ])('with %s is refused by name', async (_what, fields, code, param) => {
    const { chat, engine } = await startListeners({}, { capacity: { maxRunningRequests: 4, maxQueuedRequests: 20, ppSize: 1 } });
    const { status, json } = await postJson(chat + PATH, { ...GOOD, ...fields });
    expect({ status, ...json.error }, JSON.stringify(json)).toMatchObject({ status: 400, code, param });
    expect(engine.chats).toEqual([]);
  });
});
