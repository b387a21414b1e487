/** Two really different adapters behind one chat listener: what one adapter answers over HTTP is what both answer together. */
import { describe, expect, onTestFinished, test } from 'vitest';
import { LAVAPIPE, SWIFTSHADER } from '../support/drivers.ts';
import { postJson, send } from '../support/listeners.ts';
import { spawnAt, whenReady } from '../support/server-process.ts';
import { firstOf } from '../support/thorough.ts';

const MAIN = new URL('../../server/main.ts', import.meta.url);
const COMMON = ['--speech-model=none', '--transcription-model=none', '--chunked-prefill-size=64', '--context-length=1024'];
const CONCURRENT = 32;

interface Said {
  readonly choices: readonly [
    {
      readonly message: { readonly content: string };
      readonly logprobs: { readonly content: readonly { token: string; logprob: number }[] } | null;
    },
  ];
  readonly usage: { readonly prompt_tokens_details: { readonly cached_tokens: number } };
}

/** A server with both drivers in its environment; the test that calls it ends it. */
async function start(...argv: readonly string[]): Promise<string> {
  const server = await whenReady(spawnAt(MAIN, [...COMMON, ...argv], { VK_DRIVER_FILES: `${LAVAPIPE}:${SWIFTSHADER}` }));
  onTestFinished(() => void server.child.kill('SIGKILL'));
  expect(server.urls['chat'], server.lines.join('\n')).toBeDefined();
  return server.urls['chat']!;
}

async function ask(url: string, content: string, fields: object = {}): Promise<Said> {
  const messages = [{ role: 'user', content }];
  const body = { model: 'parley-chat', messages, temperature: 0, max_tokens: 12, ...fields };
  const { status, text } = await postJson(`${url}/chat/completions`, body);
  expect(status, text).toBe(200);
  return JSON.parse(text) as Said;
}

const content = ({ choices }: Said): string => choices[0].message.content;

/** Everything the test compares; in this order, so that the prefix cache holds the same. */
async function interview(url: string) {
  const long = `${'The sea was calm and the sky was blue that day. '.repeat(12)} What colour was the sky?`;
  const first = await ask(url, long, { logprobs: true, top_logprobs: 2 });
  const again = await ask(url, long);
  const schema = { type: 'object', properties: { city: { type: 'string' }, size: { type: 'integer' } }, required: ['city', 'size'] };
  const object = await ask(url, 'Tell me about Paris.', {
    max_tokens: 200,
    response_format: { type: 'json_schema', json_schema: { name: 'city', schema } },
  });
  const drawn = await ask(url, 'Tell me a story.', { temperature: 0.9, seed: 7, top_p: 0.8, max_tokens: 16 });
  const many = await Promise.all(Array.from({ length: CONCURRENT }, (_, i) => ask(url, `What is ${i} plus ${i + 1}?`)));
  return {
    logprobs: first.choices[0].logprobs!.content,
    cached: again.usage.prompt_tokens_details.cached_tokens,
    texts: [first, again, object, drawn, ...many].map(content),
    object: content(object),
  };
}

describe.skipIf(!LAVAPIPE || !SWIFTSHADER)('lavapipe and SwiftShader in one server (skipped where one is missing)', () => {
  test('both together answer as lavapipe alone does', async () => {
    const expected = await interview(await start('--adapter=llvmpipe'));
    expect(expected.cached).toBeGreaterThan(64);
    expect(JSON.parse(expected.object)).toEqual({ city: expect.any(String) as string, size: expect.any(Number) as number });
    // Layers are dealt to them in two-adapters.test.ts.
    for (const split of firstOf(1, ['--tp-size=2', '--pp-size=2'])) {
      const url = await start('--adapters=llvmpipe,swiftshader', split);
      const { logprobs, cached, texts } = await interview(url);
      expect(texts, split).toEqual(expected.texts);
      expect(cached).toBe(expected.cached);
      logprobs.forEach(({ token, logprob }, i) => {
        expect(token).toBe(expected.logprobs[i]!.token);
        expect(logprob).toBeCloseTo(expected.logprobs[i]!.logprob, 3);
      });
      const { ranks } = JSON.parse((await send(`${url.replace(/\/v1$/, '')}/get_server_info`)).text) as {
        ranks: readonly { adapter: string }[];
      };
      expect(ranks.map(({ adapter }) => adapter)).toEqual([expect.stringMatching(/llvmpipe/), expect.stringMatching(/SwiftShader/)]);
    }
  });
});
