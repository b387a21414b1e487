/** The listeners behind the page: servers that come back as others, and addresses where none is. Without a browser. */
import { signal as signalOf } from '@preact/signals';
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

describe('of several models', () => {
  const models = signalOf<string | undefined>('b');
  const engineOfTwo = () => {
    const sent: string[] = [];
    vi.stubGlobal('fetch', async (url: string, { body }: RequestInit = {}) => {
      if (url.endsWith('/models')) return Response.json({ data: [{ id: 'a' }, null, { id: 'b', max_model_len: 7 }] });
      const model = modelOf(body)!;
      const format = (body as FormData).get('response_format') as string;
      sent.push(`${model} ${format}`);
      const refuses = model === 'b' && format === 'verbose_json';
      return refuses ? Response.json({ error: { message: 'response_format' } }, { status: 400 }) : Response.json({ text: 'heard' });
    });
    const servers = { chat: 'http://x/v1', speech: 'http://x/v1', transcription: 'http://x/v1' };
    return { sent, engine: new RemoteEngine({ servers, apiKey: '', chosen: (task) => (task === 'speech' ? 'gone' : models.value) }) };
  };

  test('the chosen one answers as long as the server lists it, else the first', async () => {
    const { engine } = engineOfTwo();
    expect([await engine.model('chat'), await engine.model('speech')]).toEqual(['b', 'a']);
    expect(engine.listed.value.chat).toEqual(['a', 'b']);
    expect(engine.abouts.value.chat).toEqual({ contextLength: 7 });
    models.value = undefined;
    expect(await engine.model('chat')).toBe('a');
    expect([engine.names.value, engine.abouts.value.chat]).toEqual([{ chat: 'a', speech: 'a' }, {}]);
  });

  test('each is asked for the transcripts that it can give', async () => {
    models.value = 'b';
    const { engine, sent } = engineOfTwo();
    const hear = () => all(engine.transcribe({ samples: new Float32Array(16000) }, signal));
    await hear();
    models.value = 'a';
    await hear();
    await hear();
    models.value = 'b';
    await hear();
    const [probe, times] = ['a verbose_json', 'a verbose_json'];
    expect(sent).toEqual(['b verbose_json', 'b json', probe, times, times, 'b json']);
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

  test.each([
    [
      'the fields alone',
      Response.json({ object: 'error', message: 'too long', param: null, code: 400 }, { status: 400 }),
      'too long (HTTP 400)',
    ],
    ['a detail', Response.json({ detail: 'no such voice' }, { status: 404 }), 'no such voice (HTTP 404)'],
    ['a detail with fields', Response.json({ detail: { message: 'no such voice' } }, { status: 400 }), 'no such voice (HTTP 400)'],
    [
      'fields that are wrong',
      Response.json({ detail: [{ loc: ['body', 'top_k'], msg: 'too small' }] }, { status: 422 }),
      'top_k: too small (HTTP 422)',
    ],
    ['text', new Response('slow down\n', { status: 429, headers: { 'content-type': 'text/plain' } }), 'slow down (HTTP 429)'],
    ['pages of text', Response.json({ error: 'x'.repeat(9000) }, { status: 400 }), `${'x'.repeat(500)}… (HTTP 400)`],
    ['a code that is the status', Response.json({ error: { message: 'no', code: '400' } }, { status: 400 }), 'no (HTTP 400)'],
  ])('of a refusal is told, as %s', async (_form, answer, said) => {
    expect(await ask(answer)).toBe(`The server refused: ${said}`);
  });

  test('of a refusal without words is its status', async () => {
    expect(await ask(new Response('<h1>Bad</h1>', { status: 502, headers: { 'content-type': 'text/html' } }))).toBe(
      'The server refused (HTTP 502)',
    );
  });

  test.each([
    ['the fields alone', 'data: {"object":"error","message":"boom"}\n\ndata: [DONE]\n\n', 'boom'],
    ['a field of its own', 'error: {"code":500,"message":"boom"}\n\n', 'boom'],
    ['text', 'event: error\ndata: boom\n\n', 'boom'],
    ['nothing', 'data: {"error":{}}\n\n', 'it does not say why'],
  ])('of an answer that ends early is told, as %s', async (_form, sent, said) => {
    const half = 'data: {"choices":[{"index":0,"delta":{"content":"Half"}}]}\n\n';
    expect(await ask(new Response(half + sent))).toBe(`The server stopped: ${said}`);
  });

  test('in place of an answer is none', async () => {
    const page = new Response('<h1>Log in</h1>', { headers: { 'content-type': 'text/html' } });
    expect(await ask(page)).toContain('not with a chat completion (text/html)');
    expect(await ask(Response.json({ answer: 42 }))).toContain('not with a chat completion (application/json)');
    expect(await ask(Response.json({ error: 'boom' }))).toBe('The server stopped: boom');
  });

  test('of speech that is no WAV file is its type', async () => {
    const { engine } = engineOf((path) =>
      path === '/models' ? Response.json({ data: [{ id: 'm' }] }) : new Response('ID3', { headers: { 'content-type': 'audio/mpeg' } }),
    );
    const spoken = all(engine.synthesize({ text: 'x', voice: 'v' }, signal));
    await expect(spoken).rejects.toThrow('http://x/v1 answers, but not with a WAV file (audio/mpeg).');
  });

  test('instead of a transcript is no transcript', async () => {
    for (const answer of [null, {}, undefined]) {
      const { engine } = engineOf((path) =>
        answer === undefined && path !== '/models'
          ? new Response('Hi')
          : Response.json(path === '/models' ? { data: [{ id: 'm' }] } : answer),
      );
      const heard = all(engine.transcribe({ samples: new Float32Array(16000) }, signal));
      await expect(heard).rejects.toThrow('http://x/v1 answers, but not with a transcript.');
    }
  });
});

describe('an answer', () => {
  const written = async (answer: Response): Promise<{ text: string; reasoning: string }> => {
    const { engine } = engineOf((path) => (path === '/models' ? Response.json({ data: [{ id: 'm' }] }) : answer));
    const got = { text: '', reasoning: '' };
    for await (const event of engine.chat({ messages: [{ role: 'user', content: 'x' }], sampling: {} }, signal)) {
      if (event.type !== 'delta') continue;
      got.text += event.text;
      got.reasoning += event.reasoning ?? '';
    }
    return got;
  };
  const chunk = (delta: unknown, reason: string | null = null): string =>
    `data: ${JSON.stringify({ choices: [{ index: 0, delta, finish_reason: reason }] })}`;

  test.each([
    ['lines of CRLF and comments', `: hello\r\n\r\n${chunk({ content: 'Hi' })}\r\n\r\n${chunk({}, 'stop')}\r\n\r\n`],
    ['no blank line at its end', `${chunk({ content: 'Hi' })}\n\n${chunk({}, 'stop')}`],
    ['one newline at its end', `${chunk({ content: 'Hi' })}\n\ndata: [DONE]\n`],
    [
      'events of nothing',
      `data:\n\ndata: null\n\ndata: {}\n\n${chunk({ role: 'assistant', content: null })}\n\n${chunk({ content: 'Hi' }, 'stop')}\n\n`,
    ],
  ])('with %s is read', async (_what, sent) => {
    expect(await written(new Response(sent))).toEqual({ text: 'Hi', reasoning: '' });
  });

  test('that is not streamed is read', async () => {
    const message = { role: 'assistant', content: 'Hi', reasoning_content: 'Hm.' };
    const whole = Response.json({ choices: [{ index: 0, message, finish_reason: 'stop' }] });
    expect(await written(whole)).toEqual({ text: 'Hi', reasoning: 'Hm.' });
  });

  test('in parts is read', async () => {
    const thought = chunk({ content: [{ type: 'thinking', thinking: [{ type: 'text', text: 'Hm.' }] }] });
    const said = chunk({ content: [{ type: 'text', text: 'Hi' }] }, 'stop');
    expect(await written(new Response(`${thought}\n\n${said}\n\n`))).toEqual({ text: 'Hi', reasoning: 'Hm.' });
  });

  test('that is cut off within a chunk is broken off', async () => {
    const cut = `${chunk({ content: 'Hi' })}\n\n${chunk({ content: 'you' }).slice(0, -9)}`;
    await expect(written(new Response(cut))).rejects.toThrow('went away before its answer was complete');
  });
});

describe('what a server lists', () => {
  test('of a model counts where it is of its type', async () => {
    const model = { id: 'm', max_model_len: null, meta: { languages: 'en', sample_rate: null, format: {} } };
    const { engine } = engineOf(() => Response.json({ data: [null, { id: null }, model] }));
    expect(await engine.model('chat')).toBe('m');
    expect(engine.abouts.value).toEqual({ chat: {} });
  });

  test.each([
    ['by name', [{ name: 'a', gender: 'f' }, { name: 'b' }], ['a', 'b']],
    ['twice', ['a', 'a', { id: 'b', name: 'B' }], ['a', 'b']],
    ['as numbers', [1, null], undefined],
    ['as none', [], undefined],
  ])('as voices, %s', async (_how, voices, expected) => {
    const { engine } = engineOf((path) => Response.json(path === '/models' ? { data: [{ id: 'm' }] } : { voices }));
    await engine.model('speech');
    expect(engine.abouts.value.speech!.voices).toEqual(expected);
  });
});

describe('a transcript', () => {
  const heard = async (answer: (format: string) => Response): Promise<unknown[]> => {
    vi.stubGlobal('fetch', async (url: string, { body }: RequestInit = {}) =>
      url.endsWith('/models') ? Response.json({ data: [{ id: 'm' }] }) : answer((body as FormData).get('response_format') as string),
    );
    const engine = new RemoteEngine({ servers: { chat: '', speech: '', transcription: 'http://x/v1' }, apiKey: '' });
    const segments: unknown[] = [];
    for await (const event of engine.transcribe({ samples: new Float32Array(32_000) }, signal))
      if (event.type === 'segment') segments.push([event.segment.start, event.segment.end, event.segment.text]);
    return segments;
  };

  test.each([
    ['an empty list of segments', { segments: [] }, [[0, 2, 'Hi you']]],
    ['null for segments and language', { segments: null, language: null }, [[0, 2, 'Hi you']]],
    ['segments that are no list', { segments: {}, language: 5 }, [[0, 2, 'Hi you']]],
    ['segments without a text', { segments: [{ start: 0, end: 1 }, null] }, [[0, 2, 'Hi you']]],
    ['times that are none', { segments: [{ start: -3, end: -1, text: 'Hi' }, { start: null, text: 'you' }] }, [[0, 0, 'Hi'], [0, 2, 'you']]], // prettier-ignore
    ['times as texts', { segments: [{ start: '0.5', end: '1.5', text: 'Hi you' }] }, [[0.5, 1.5, 'Hi you']]],
  ])('with %s is shown', async (_what, fields, expected) => {
    expect(await heard(() => Response.json({ text: 'Hi you', ...fields }))).toEqual(expected);
  });

  test.each([
    ['of FastAPI', { detail: [{ loc: ['body', 'response_format'], msg: "Input should be 'json'" }] }],
    ['in words', { error: { message: 'Currently only support response_format `text` or `json`', param: null, code: 400 } }],
  ])('comes without times from a server whose refusal of times is %s', async (_form, refusal) => {
    const answer = (format: string) => (format === 'json' ? Response.json({ text: 'Hi' }) : Response.json(refusal, { status: 400 }));
    expect(await heard(answer)).toEqual([[0, 2, 'Hi']]);
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
