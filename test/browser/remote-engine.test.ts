/** The listeners behind the page: servers that come back as others, and addresses where none is. Without a browser. */
import { afterEach, describe, expect, test, vi } from 'vitest';
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
function engineOf(answer: (path: string, model: string | undefined) => Response) {
  const asked: string[] = [];
  vi.stubGlobal('fetch', async (url: string, { body }: RequestInit = {}) => {
    const path = url.replace('http://x/v1', '');
    const model = modelOf(body);
    asked.push(model === undefined ? path : `${path} ${model}`);
    return answer(path, model);
  });
  const servers = { chat: 'http://x/v1', speech: 'http://x/v1', transcription: 'http://x/v1' };
  return { engine: new RemoteEngine({ servers, apiKey: '' }), asked };
}

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
  const all = async (events: AsyncIterable<unknown>): Promise<void> => {
    for await (const event of events) void event;
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
