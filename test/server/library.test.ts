/** The library's calls give what the listeners answer, and fail as the OpenAI client does: both over the same fake engine. */
import { getEventListeners, once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import { writeWav } from '../../engine/audio/wav.ts';
import { DEFAULT_ENGINE_CONFIG } from '../../engine/config.ts';
import { EngineError } from '../../engine/errors.ts';
import { APIError, APIUserAbortError, BadRequestError, InternalServerError, NotFoundError } from '../../library/errors.ts';
import { engineSettings } from '../../library/load-options.ts';
import { Parley as loadInNode } from '../../library/node.ts';
import { createParley } from '../../library/parley.ts';
import { loadApps } from '../../library/server.ts';
import { TAB_ENCODERS, decodeSound } from '../../library/tab-audio.ts';
import type { ChatCompletionChunk, ChatCompletionCreateParamsBase, Parley } from '../../library/types.ts';
import { Blocks } from '../../server/body/blocks.ts';
import { parseServerConfig } from '../../server/settings/config.ts';
import { collect } from '../support/collect.ts';
import { sharedCodec } from '../support/codec.ts';
import { FakeEngine } from '../support/fake-engine.ts';
import type { FakeOptions } from '../support/fake-engine.ts';
import { startListeners } from '../support/listeners.ts';

const MESSAGES = [{ role: 'user' as const, content: 'Hi' }];
const VOICE = { input: 'Good morning.', voice: 'nona', seed: 3 };

/** A Parley over a fake engine, with the audio of Node or of a page. */
function start(options: FakeOptions = {}, where: 'node' | 'page' = 'node'): { readonly parley: Parley; readonly engine: FakeEngine } {
  const engine = new FakeEngine(options);
  const codec = sharedCodec();
  const inNode = where === 'node';
  const parley = createParley({
    engine: () => engine,
    encoders: inNode ? codec : TAB_ENCODERS,
    speechFormat: inNode ? 'mp3' : 'wav',
    decode: async (bytes, signal) =>
      inNode ? codec.decode(Blocks.of([bytes]), signal) : { samples: await decodeSound(bytes), discard: async () => {} },
    close: async () => {},
  });
  return { parley, engine };
}

/** Processes that this one has started and that run. */
const children = (): number => process.getActiveResourcesInfo().filter((name) => name === 'ProcessWrap').length;

/** Without what differs from call to call. */
const stable = (answer: object): unknown =>
  JSON.parse(JSON.stringify(answer, (key, value: unknown) => (['id', 'created'].includes(key) ? undefined : value)));

async function post(url: string, body: unknown): Promise<Response> {
  return fetch(url, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) });
}

const SECOND = new Uint8Array(writeWav(new Float32Array(16_000).fill(0.1), 16_000));

describe('the same as over HTTP', () => {
  test('chat, whole and streamed, with usage, logprobs and several choices', async () => {
    const { chat } = await startListeners();
    const { parley } = start();
    const body = { messages: MESSAGES, n: 2, logprobs: true, top_logprobs: 1, temperature: 0.5 };
    const theirs = await post(`${chat}/v1/chat/completions`, { model: 'parley-chat', ...body });
    expect(stable(await parley.chat.completions.create(body))).toEqual(stable((await theirs.json()) as object));
    const streamed = { ...body, stream: true, stream_options: { include_usage: true } } as const;
    const text = await (await post(`${chat}/v1/chat/completions`, { model: 'parley-chat', ...streamed })).text();
    const frames = [...text.matchAll(/^data: (\{.*)$/gm)].map(([, json]) => stable(JSON.parse(json!) as object));
    expect(frames.length).toBeGreaterThan(4);
    expect((await collect(await parley.chat.completions.create(streamed))).map(stable)).toEqual(frames);
  });

  test('speech in several formats, and in events', async () => {
    const { speech } = await startListeners();
    const { parley } = start();
    for (const format of ['mp3', 'wav', 'flac', 'pcm'] as const) {
      const body = { ...VOICE, response_format: format };
      const theirs = await post(`${speech}/v1/audio/speech`, { model: 'tts-1', ...body });
      const ours = await parley.audio.speech.create(body);
      for (const name of ['content-type', 'x-speech-seed', 'content-disposition'])
        expect(ours.headers.get(name)).toBe(theirs.headers.get(name));
      expect(new Uint8Array(await ours.arrayBuffer())).toEqual(new Uint8Array(await theirs.arrayBuffer()));
    }
    const events = { ...VOICE, response_format: 'pcm', stream_format: 'sse' } as const;
    const theirs = await (await post(`${speech}/v1/audio/speech`, { model: 'tts-1', ...events })).text();
    expect(await (await parley.audio.speech.create(events)).text()).toBe(theirs);
  });

  test('a transcript in several formats', async () => {
    const { transcription } = await startListeners();
    const { parley } = start();
    for (const format of ['json', 'verbose_json', 'srt', 'text'] as const) {
      const form = new FormData();
      form.append('file', new File([SECOND], 'a.wav'));
      form.append('model', 'whisper-1');
      form.append('response_format', format);
      const theirs = await fetch(`${transcription}/v1/audio/transcriptions`, { method: 'POST', body: form });
      const ours: unknown = await parley.audio.transcriptions.create({ file: new File([SECOND], 'a.wav'), response_format: format });
      expect(ours).toEqual(format.endsWith('json') ? await theirs.json() : await theirs.text());
    }
    // A form has nothing of an empty array.
    const plain = await parley.audio.transcriptions.create({ file: SECOND, include: [], timestamp_granularities: [] });
    expect(plain).toEqual(await parley.audio.transcriptions.create({ file: SECOND }));
  });
});

test('a page decodes WAV and speaks wav and pcm; what it does not make is refused by name', async () => {
  const { parley, engine } = start({}, 'page');
  const said = await parley.audio.speech.create(VOICE);
  expect(said.headers.get('content-type')).toBe('audio/wav');
  expect((await parley.audio.transcriptions.create({ file: await said.blob() })).text).toMatch(/\S/);
  expect(engine.transcriptions[0]?.samples.length).toBeGreaterThan(1000);
  await expect(parley.audio.speech.create({ ...VOICE, response_format: 'mp3' })).rejects.toMatchObject({
    status: 400,
    param: 'response_format',
    code: 'unsupported_value',
  });
});

describe('errors', () => {
  const create = async (parley: Parley, body: object): Promise<unknown> =>
    parley.chat.completions.create(body as ChatCompletionCreateParamsBase).catch((error: unknown) => error);

  test('have the classes, the fields and the words of the HTTP answers', async () => {
    const { chat } = await startListeners();
    const { parley } = start();
    const bodies = [
      {},
      { messages: [] },
      { messages: MESSAGES, temperature: 'hot' },
      { messages: MESSAGES, model: 'gpt-9' },
      { messages: MESSAGES, audio: {} },
    ];
    for (const body of bodies) {
      const theirs = await post(`${chat}/v1/chat/completions`, { model: 'parley-chat', ...body });
      const { error } = (await theirs.json()) as { error: { message: string } };
      const ours = await create(parley, body);
      expect(ours).toBeInstanceOf(theirs.status === 404 ? NotFoundError : BadRequestError);
      expect(ours).toMatchObject({ status: theirs.status, error, message: `${theirs.status} ${error.message}` });
    }
  });

  test('of the engine come before a stream, or out of its loop', async () => {
    const early = start({ failAfter: 0, failWith: new EngineError('queue_full', 'no room') });
    expect(await create(early.parley, { messages: MESSAGES, stream: true })).toMatchObject({ status: 503, code: 'queue_full' });
    const late = start({ failAfter: 2, failWith: new EngineError('device_lost', 'the GPU is gone') });
    const stream = await late.parley.chat.completions.create({ messages: MESSAGES, stream: true });
    const error = await collect(stream).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(InternalServerError);
    expect(error).toMatchObject({ status: 503, code: 'device_lost' });
  });

  test('name the settings of the library where the engine knows a remedy', async () => {
    const remedies = [{ does: 'shorten it', settings: [{ name: 'contextLength' as const, value: 512 }] }];
    const { parley } = start({ failAfter: 0, failWith: new EngineError('out_of_memory', 'too much', { remedies }) });
    expect(await create(parley, { messages: MESSAGES })).toMatchObject({
      message: '503 too much; shorten it with engine: { contextLength: 512 }',
    });
  });

  test('say which model was not loaded, and what is no recording', async () => {
    const { parley } = start({}, 'page');
    const none = createParley({
      engine: () => undefined,
      encoders: TAB_ENCODERS,
      speechFormat: 'wav',
      decode: () => Promise.reject(new Error()),
      close: async () => {},
    });
    expect(await create(none, { messages: MESSAGES })).toMatchObject({
      status: 400,
      message: '400 no chat model was loaded',
      param: 'model',
    });
    await expect(parley.audio.transcriptions.create({ file: 'a.wav' as unknown as Blob })).rejects.toMatchObject({
      param: 'file',
      code: 'invalid_type',
    });
    await expect(parley.audio.transcriptions.create({ file: new Blob(['text']) })).rejects.toBeInstanceOf(APIError);
    const transcribe = parley.audio.transcriptions.create as (body?: object) => Promise<unknown>;
    await expect(transcribe()).rejects.toMatchObject({ status: 400, param: 'file', code: 'missing_required_parameter' });
  });
});

describe('an end before the end', () => {
  const words = Array.from({ length: 50 }, (_, i) => ` ${i}`);

  test('leaving the loop and aborting the stream end the work without an error', async () => {
    const { parley, engine } = start({ words, delay: 1 });
    const left = await parley.chat.completions.create({ messages: MESSAGES, stream: true });
    for await (const chunk of left) if (chunk.choices[0]?.delta.content) break;
    await expect.poll(() => engine.aborted).toBe(1);
    const stopped = await parley.chat.completions.create({ messages: MESSAGES, stream: true });
    const seen: ChatCompletionChunk[] = [];
    for await (const chunk of stopped) if (seen.push(chunk) === 3) stopped.controller.abort();
    expect(seen.length).toBeLessThan(words.length);
    await expect.poll(() => engine.aborted).toBe(2);
  });

  test('the signal ends a call with APIUserAbortError, and a stream without an error', async () => {
    const { parley, engine } = start({ words, delay: 1 });
    await expect(parley.chat.completions.create({ messages: MESSAGES }, { signal: AbortSignal.abort() })).rejects.toBeInstanceOf(
      APIUserAbortError,
    );
    expect(engine.chats).toHaveLength(0);
    const controller = new AbortController();
    const whole = parley.chat.completions.create({ messages: MESSAGES }, { signal: controller.signal });
    await expect.poll(() => engine.handedOut).toBeGreaterThan(2);
    controller.abort();
    await expect(whole).rejects.toBeInstanceOf(APIUserAbortError);
    const other = new AbortController();
    const stream = await parley.chat.completions.create({ messages: MESSAGES, stream: true }, { signal: other.signal });
    let count = 0;
    for await (const _ of stream) if (++count === 3) other.abort();
    expect(count).toBeLessThan(words.length);
  });

  test('the signal ends speech that is being read with APIUserAbortError', async () => {
    const { parley, engine } = start({ delay: 1 }, 'page');
    const controller = new AbortController();
    const body = { input: 'A long text. '.repeat(100), voice: 'nona', response_format: 'pcm', stream_format: 'audio' } as const;
    const reader = (await parley.audio.speech.create(body, { signal: controller.signal })).body!.getReader();
    await reader.read();
    controller.abort();
    const rest = async (): Promise<void> => {
      while (!(await reader.read()).done);
    };
    await expect(rest()).rejects.toBeInstanceOf(APIUserAbortError);
    await expect.poll(() => engine.aborted).toBe(1);
  });

  test('a signal that outlives its calls is let go by each', async () => {
    const { parley } = start({}, 'page');
    const { signal } = new AbortController();
    for await (const _ of await parley.chat.completions.create({ messages: MESSAGES, stream: true }, { signal }));
    await parley.chat.completions.create({ messages: MESSAGES }, { signal });
    await (await parley.audio.speech.create(VOICE, { signal })).arrayBuffer();
    await parley.audio.transcriptions.create({ file: SECOND }, { signal });
    await expect.poll(() => getEventListeners(signal, 'abort')).toEqual([]);
  });

  test('the signal ends a call whose file is still read, and the reading', async () => {
    const { parley, engine } = start();
    let isLeft = false;
    let more: (() => void) | undefined;
    async function* file(): AsyncGenerator<Uint8Array> {
      try {
        yield SECOND;
        await new Promise<void>((resolve) => (more = resolve));
        yield SECOND;
        expect.unreachable();
      } finally {
        isLeft = true;
      }
    }
    const controller = new AbortController();
    const call = parley.audio.transcriptions.create({ file: file() }, { signal: controller.signal });
    const refused = expect(call).rejects.toBeInstanceOf(APIUserAbortError);
    // In the middle of the file, whose rest does not come.
    await expect.poll(() => more).toBeDefined();
    controller.abort();
    await refused;
    more!();
    await expect.poll(() => isLeft).toBe(true);
    expect(engine.transcriptions).toHaveLength(0);
  });

  test('only a stream that was ended says so by its controller', async () => {
    const { parley } = start();
    const whole = await parley.chat.completions.create({ messages: MESSAGES, stream: true });
    await collect(whole);
    expect(whole.controller.signal.aborted).toBe(false);
    const left = await parley.chat.completions.create({ messages: MESSAGES, stream: true });
    for await (const _ of left) break;
    expect(left.controller.signal.aborted).toBe(true);
  });

  test('closing ends what runs, and calls after it say so', async () => {
    const { parley, engine } = start({ words, delay: 1 });
    const whole = parley.chat.completions.create({ messages: MESSAGES });
    const refused = expect(whole).rejects.toThrow(new APIUserAbortError({ message: 'This Parley was closed.' }));
    const stream = await parley.chat.completions.create({ messages: MESSAGES, stream: true });
    let count = 0;
    for await (const _ of stream) if (++count === 3) await parley.close();
    expect(count).toBeLessThan(words.length);
    await refused;
    await expect.poll(() => engine.aborted).toBe(2);
    await expect(parley.audio.speech.create(VOICE)).rejects.toMatchObject({
      name: 'APIUserAbortError',
      message: 'This Parley was closed.',
    });
  });

  test('a reader of speech that leaves ends the speaking', async () => {
    const { parley, engine } = start({ delay: 1 }, 'page');
    const said = await parley.audio.speech.create({
      input: 'A long text. '.repeat(100),
      voice: 'nona',
      response_format: 'pcm',
      stream_format: 'audio',
    });
    const reader = said.body!.getReader();
    await reader.read();
    await reader.cancel();
    await expect.poll(() => engine.aborted).toBe(1);
  });
});

describe('loading', () => {
  test.each([
    [{ contextLength: -1 }, "'engine.contextLength' must be an integer of at least 16, got -1"],
    [{ contextLength: '4096' }, '\'engine.contextLength\' must be an integer of at least 16, got "4096"'],
    [{ kvCacheDtype: 'int7' }, '\'engine.kvCacheDtype\' must be one of auto, f32, f16, int8, got "int7"'],
    [{ chunkedPrefillSize: 1 }, "'engine.chunkedPrefillSize' must be auto or an integer of at least 16, got 1"],
    [{ ppSplit: [0, 3] }, "'engine.ppSplit' must be auto or an array of integers of at least 1, got [0,3]"],
    [{ autotune: 'yes' }, '\'engine.autotune\' must be true or false, got "yes"'],
    [{ adapters: 'llvmpipe' }, '\'engine.adapters\' must be an array of texts, got "llvmpipe"'],
    [{ pages: 1 }, "the engine has no setting 'pages'; it has "],
  ])('refuses the setting %j by its name', (engine, message) => {
    expect(() => engineSettings({ chat: 'a', engine })).toThrow(`400 ${message}`);
  });

  test('takes every setting that the engine has, those without a default too', () => {
    const engine = { adapter: 'llvmpipe', deviceMemory: 2 ** 30, ppSplit: [2, 1], adapters: ['a', 'b'], chunkedPrefillSize: 'auto' };
    expect(engineSettings({ chat: 'a', engine: { ...engine, contextLength: undefined } })).toEqual(engine);
    expect(engineSettings({ chat: 'a', engine: DEFAULT_ENGINE_CONFIG as unknown as Record<string, unknown> })).toEqual(
      DEFAULT_ENGINE_CONFIG,
    );
  });

  test.each(['loading', 'ready'])('leaves no engine behind where onProgress throws at %s', async (at) => {
    const before = children();
    const onProgress = ({ state }: { readonly state: string }): void => {
      if (state === at) throw new RangeError('mine');
    };
    await expect(loadInNode.load({ chat: 'models/parley-chat', onProgress })).rejects.toThrow(new RangeError('mine'));
    await expect.poll(children).toBe(before);
  });

  test('that was given up before it began ends as a call does', async () => {
    await expect(loadInNode.load({ chat: 'models/parley-chat', signal: AbortSignal.abort() })).rejects.toBeInstanceOf(APIUserAbortError);
  });
});

test('models answer to the names that the listeners take', async () => {
  const { parley } = start({}, 'page');
  for (const model of parseServerConfig([], {}).listeners.find(({ task }) => task === 'speech')!.aliases)
    expect((await parley.audio.speech.create({ ...VOICE, model })).status).toBe(200);
});

test('a stream can be read twice, and sent on as lines', async () => {
  const { parley } = start();
  const [left, right] = (await parley.chat.completions.create({ messages: MESSAGES, stream: true })).tee();
  const chunks = await collect(left);
  expect(await collect(right)).toEqual(chunks);
  const lines = await new Response((await parley.chat.completions.create({ messages: MESSAGES, stream: true })).toReadableStream()).text();
  expect(
    lines
      .trimEnd()
      .split('\n')
      .map((line) => stable(JSON.parse(line) as object)),
  ).toEqual(chunks.map(stable));
});

test('closing the apps ends what they answer with 503 shutting_down, in a stream too', async () => {
  const apps = await loadApps({ chat: 'models/parley-chat' });
  const server = createServer(apps.chat).listen(0, '127.0.0.1');
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1/chat/completions`;
  const body = { messages: MESSAGES, max_tokens: 1500, ignore_eos: true };
  const stream = await post(url, { ...body, stream: true });
  const whole = post(url, body);
  const reader = stream.body!.pipeThrough(new TextDecoderStream()).getReader();
  let text = '';
  let closing: Promise<void> | undefined;
  for (let next = await reader.read(); !next.done; next = await reader.read()) {
    text += next.value;
    if (text.includes('"content":" ')) closing ??= apps.close();
  }
  await closing;
  expect(text).toContain('"code":"shutting_down"');
  const answer = await whole;
  expect([answer.status, answer.headers.get('retry-after')]).toEqual([503, '5']);
  expect(await answer.json()).toMatchObject({ error: { code: 'shutting_down' } });
});
