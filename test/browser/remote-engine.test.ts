/** The listeners behind the page: servers that come back as others, and addresses where none is. Without a browser. */
import { afterEach, describe, expect, test, vi } from 'vitest';
import { writeWav } from '../../engine/audio/wav.ts';
import { RemoteEngine } from '../../web/src/backend/remote-engine.ts';

const { signal } = new AbortController();

/** The model that a request names. */
const modelOf = (body: unknown): string | undefined =>
  body instanceof FormData
    ? (body.get('model') as string)
    : typeof body === 'string'
      ? (JSON.parse(body) as { model: string }).model
      : undefined;

/** An engine of listeners that answer by `answer`; every request's path and model are noted. */
function engineOf(answer: (path: string, model: string | undefined) => Response, address = 'http://x/v1') {
  const asked: string[] = [];
  vi.stubGlobal('fetch', async (url: string, { body }: RequestInit = {}) => {
    const path = url.replace('http://x/v1', '');
    const model = modelOf(body);
    asked.push(model === undefined ? path : `${path} ${model}`);
    return answer(path, model);
  });
  const servers = { chat: address, speech: address, transcription: address };
  return { engine: new RemoteEngine({ servers, apiKey: '' }), asked };
}

const all = async (events: AsyncIterable<unknown>): Promise<void> => {
  for await (const event of events) void event;
};

afterEach(() => {
  vi.unstubAllGlobals();
});

describe('a server that was started again with another model', () => {
  const unknown = { error: { message: 'no such model', code: 'model_not_found', param: 'model' } };
  const words = 'data: {"choices":[{"index":0,"delta":{"content":"Hi"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n';
  let served = 'old';
  const answer = (path: string, model: string | undefined): Response => {
    if (path === '/models') return Response.json({ data: [{ id: served }] });
    if (model !== served) return Response.json(unknown, { status: 404 });
    return path === '/chat/completions' ? new Response(words) : Response.json({ text: 'heard' });
  };
  test('is asked for that one', async () => {
    served = 'old';
    const { engine, asked } = engineOf(answer);
    const chat = () => all(engine.chat({ messages: [{ role: 'user', content: 'x' }], sampling: {} }, signal));
    const hear = () => all(engine.transcribe({ samples: new Float32Array(16000) }, signal));
    await chat();
    await hear();
    served = 'new';
    asked.length = 0;
    await chat();
    await hear();
    expect(asked).toEqual([
      ...['/chat/completions old', '/models', '/chat/completions new'],
      ...['/audio/transcriptions old', '/models', '/audio/transcriptions new'],
    ]);
    expect(engine.names.value).toEqual({ chat: 'new', transcription: 'new' });
  });

  test('and has none of the name that it says refuses as it did, once', async () => {
    served = 'old';
    const { engine, asked } = engineOf((path, model) =>
      path === '/models' ? answer(path, model) : Response.json(unknown, { status: 404 }),
    );
    const chat = () => all(engine.chat({ messages: [{ role: 'user', content: 'x' }], sampling: {} }, signal));
    await expect(chat()).rejects.toThrow('The server refused: no such model (HTTP 404, model_not_found)');
    expect(asked).toEqual(['/models', '/chat/completions old']);
  });
});

test.each([
  ['a page', () => new Response('<!doctype html>')],
  ['an error that is no refusal', () => Response.json({ error: 'Unexpected endpoint or method. (GET /models)' })],
  ['nothing', () => Response.json(null)],
])('an address that answers with %s is said to be none of the API', async (_what, answer) => {
  const { engine } = engineOf(answer);
  await expect(engine.model('chat')).rejects.toMatchObject({
    code: 'unsupported',
    message: expect.stringMatching(/^http:\/\/x\/v1 answers, but not with a list of models: is this the address of the API/),
  });
});

describe('what other servers say', () => {
  const ask = async (answer: Response, address = 'http://x/v1'): Promise<unknown> => {
    const { engine } = engineOf((path) => (path === '/models' ? Response.json({ data: [{ id: 'm' }] }) : answer), address);
    const asked = engine.chat({ messages: [{ role: 'user', content: 'x' }], sampling: {} }, signal);
    return all(asked).catch((error: unknown) => (error as Error).message);
  };

  test('of a refusal is told, in whatever form it comes', async () => {
    expect(await ask(Response.json(null, { status: 500, statusText: 'Oh no' }))).toBe('The server refused: Oh no (HTTP 500)');
    expect(await ask(Response.json({ error: 'more memory' }, { status: 400 }))).toBe('The server refused: more memory (HTTP 400)');
    expect(await ask(new Response('data: {"error":"boom"}\n\n'))).toBe('The server stopped: boom');
  });

  test('instead of a transcript is no transcript', async () => {
    for (const answer of [null, {}]) {
      const { engine } = engineOf((path) => Response.json(path === '/models' ? { data: [{ id: 'm' }] } : answer));
      const heard = all(engine.transcribe({ samples: new Float32Array(16000) }, signal));
      await expect(heard).rejects.toThrow('http://x/v1 answers, but not with a transcript.');
    }
  });
});

test.each([
  ['says it', '7', undefined, 7],
  ['says nothing of the one that was asked for', undefined, 5, 5],
  ['says nothing', undefined, undefined, undefined],
] as const)('speech of a server that %s has its seed, or none', async (_, said, asked, seed) => {
  const wav = writeWav(new Float32Array(240), 24_000) as Uint8Array<ArrayBuffer>;
  const { engine } = engineOf((path) =>
    path === '/models'
      ? Response.json({ data: [{ id: 'm' }] })
      : new Response(wav, { headers: said === undefined ? {} : { 'x-speech-seed': said } }),
  );
  const request = { text: 'x', voice: 'v', ...(asked !== undefined && { seed: asked }) };
  const starts: unknown[] = [];
  for await (const event of engine.synthesize(request, signal)) if (event.type === 'start') starts.push(event.seed);
  expect(starts).toEqual([seed]);
});

test.each(['localhost:3000/v1', '127.0.0.1:3000/v1', 'v1'])('nothing is sent to %s, which is no web address', async (address) => {
  const { engine, asked } = engineOf(() => Response.json({ data: [{ id: 'm' }] }), address);
  const answer = all(engine.chat({ messages: [{ role: 'user', content: 'x' }], sampling: {} }, signal));
  await expect(answer).rejects.toThrow(`${address} is no web address. One looks like http://localhost:3000/v1.`);
  expect(asked).toEqual([]);
});

test('a page that is isolated, and not told of servers that do not allow it, says what may be', async () => {
  vi.stubGlobal('crossOriginIsolated', true);
  vi.stubGlobal('navigator', { onLine: true });
  vi.stubGlobal('location', { origin: 'http://page', hostname: 'page' });
  const { engine } = engineOf(() => {
    throw new TypeError('Failed to fetch');
  });
  await expect(engine.model('chat')).rejects.toThrow(
    'Nothing answers at http://x (no port given), or it does not allow this page (CORS: start it with --cors-origin http://page), or',
  );
});
