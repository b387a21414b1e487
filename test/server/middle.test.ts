/** POST /v1/fim/completions: what reaches the engine and what comes back. */
import { describe, expect, test } from 'vitest';
import { EngineError } from '../../engine/errors.ts';
import { postJson, startListeners } from '../support/listeners.ts';

const PATH = '/v1/fim/completions';
const GOOD = { model: 'parley-chat', prompt: 'def add(a, b):\n', suffix: '\nprint(add(1, 2))\n' };

describe('what stands between two texts', () => {
  test.each([
    [{}, {}],
    [{ suffix: undefined }, { suffix: '' }],
    [{ suffix: null }, { suffix: '' }],
    [
      { random_seed: 5, max_tokens: 9, stop: ['\n\n'], temperature: 0 },
      { sampling: { seed: 5, temperature: 0 }, maxTokens: 9, stop: ['\n\n'] },
    ],
    [
      { random_seed: 5, seed: 6, max_tokens: 9, max_completion_tokens: 8, min_tokens: 2 },
      { sampling: { seed: 6 }, maxTokens: 8, minTokens: 2 },
    ],
  ])('is asked of the engine with %j', async (fields, expected) => {
    const { chat, engine } = await startListeners();
    expect((await postJson(chat + PATH, { ...GOOD, ...fields })).status).toBe(200);
    expect(engine.chats).toEqual([{ messages: [], prompt: GOOD.prompt, suffix: GOOD.suffix, sampling: {}, ...expected }]);
  });

  test('comes back as a message', async () => {
    const { chat } = await startListeners({ words: ['    return', ' a', ' + b'] });
    const { json } = await postJson(chat + PATH, { ...GOOD, n: 2 });
    const choice = {
      message: { role: 'assistant', content: '    return a + b', refusal: null },
      logprobs: null,
      finish_reason: 'stop',
      stop_reason: null,
    };
    expect(json).toMatchObject({
      id: expect.stringMatching(/^fim-[0-9a-f]{32}$/),
      object: 'chat.completion',
      model: 'parley-chat',
      choices: [
        { index: 0, ...choice },
        { index: 1, ...choice },
      ],
      usage: { completion_tokens: 6 },
    });
  });

  test('comes piece by piece, each with a content, as clients of this API read it', async () => {
    const { chat } = await startListeners({ words: ['    return', ' a'] });
    const { text } = await postJson(chat + PATH, { ...GOOD, stream: true, stream_options: { include_usage: true } });
    const events = text.trim().split('\n\n');
    expect(events.pop()).toBe('data: [DONE]');
    const chunks = events.map((event) => JSON.parse(event.slice('data: '.length)) as { choices: { delta: { content?: string } }[] });
    expect(chunks.map(({ choices }) => choices[0]?.delta.content)).toEqual(['', '    return', ' a', '', undefined]);
    expect(chunks[0]).toMatchObject({ object: 'chat.completion.chunk', choices: [{ delta: { role: 'assistant' }, finish_reason: null }] });
    expect(chunks[3]).toMatchObject({ choices: [{ finish_reason: 'stop' }] });
    expect(chunks[4]).toMatchObject({ choices: [], usage: { completion_tokens: 2 } });
  });

  test.each([
    ['no prompt', { prompt: undefined }, 'missing_required_parameter', 'prompt'],
    ['no model', { model: undefined }, 'missing_required_parameter', 'model'],
    ['several prompts', { prompt: ['a', 'b'] }, 'invalid_type', 'prompt'],
    ['a suffix of tokens', { suffix: [1] }, 'invalid_type', 'suffix'],
    ['a broken seed', { random_seed: 1.5 }, 'invalid_value', 'random_seed'],
    ['more choices than run at once', { n: 5 }, 'invalid_value', 'n'],
    ['nothing to generate', { max_tokens: 0 }, 'invalid_value', 'max_tokens'],
    ['at least more than at most', { max_tokens: 2, min_tokens: 3 }, 'invalid_value', 'min_tokens'],
  ])('with %s is refused by name', async (_what, fields, code, param) => {
    const { chat, engine } = await startListeners({}, { capacity: { maxRunningRequests: 4, maxQueuedRequests: 20, ppSize: 1 } });
    const { status, json } = await postJson(chat + PATH, { ...GOOD, ...fields });
    expect({ status, ...json.error }, JSON.stringify(json)).toMatchObject({ status: 400, code, param });
    expect(engine.chats).toEqual([]);
  });

  test('is refused by a model without the tokens for it, streamed or not', async () => {
    const failWith = new EngineError('unsupported', 'this model has no tokens for that', { param: 'suffix' });
    const { chat } = await startListeners({ failAfter: 0, failWith });
    for (const stream of [false, true]) {
      const { status, json } = await postJson(chat + PATH, { ...GOOD, stream });
      expect({ status, ...json.error }).toMatchObject({ status: 400, code: 'unsupported_value', param: 'suffix' });
    }
  });
});
