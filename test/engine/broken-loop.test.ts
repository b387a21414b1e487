/** What happens around a chat step: requests that go while masks are computed, and steps that fail. */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test, vi } from 'vitest';
import type { ChatRequest } from '../../engine/api.ts';
import { parseWav, wavToMono } from '../../engine/audio/wav.ts';
import { resolveConfig } from '../../engine/config.ts';
import { EngineError } from '../../engine/errors.ts';
import { Device } from '../../engine/gpu/device.ts';
import { createNodePlatform } from '../../engine/platform/node.ts';
import type { PlatformWorker } from '../../engine/platform/platform.ts';
import { WhisperRunner } from '../../engine/runner/whisper-runner.ts';
import { ChatEngine } from '../../engine/tasks/chat-engine.ts';
import { createEngine } from '../../engine/tasks/engine.ts';
import { Synthesizer } from '../../engine/tasks/synthesizer.ts';
import { Transcriber } from '../../engine/tasks/transcriber.ts';
import type { GrammarCall, GrammarReply } from '../../engine/text/grammar-worker.ts';
import { Tokenizer } from '../../engine/text/tokenizer.ts';
import { testDevice } from '../support/device.ts';

const path = (name: string): string => fileURLToPath(new URL(`../../${name}`, import.meta.url));
const SCHEMA = { type: 'json_schema', schema: { type: 'string' } } as const;
const plain: ChatRequest = { messages: [{ role: 'user', content: 'Hi' }], sampling: { temperature: 0 }, maxTokens: 3, ignoreEos: true };
const never = new AbortController().signal;
const constrained: ChatRequest = { ...plain, maxTokens: 20, responseFormat: SCHEMA };

/** A thread whose grammar allows everything; it answers an advance when `later` is over. */
function grammarThread(later: () => Promise<void>): PlatformWorker {
  let tell: (message: unknown) => void = () => {};
  const mask = new Int32Array(4096 / 32).fill(-1);
  return {
    post: (message) => {
      const { type } = message as GrammarCall;
      const reply: GrammarReply = { bytes: 1, ...((type === 'open' || type === 'advance') && { mask }) };
      void (type === 'advance' ? later() : Promise.resolve()).then(() => tell(reply));
    },
    onMessage: (callback) => (tell = callback),
    onExit: () => {},
    terminate: async () => {},
  };
}

async function load(later?: () => Promise<void>): Promise<{ readonly device: Device; readonly engine: ChatEngine }> {
  const device = await testDevice();
  const platform = { ...createNodePlatform({ log: () => undefined }), ...(later && { startGrammarWorker: () => grammarThread(later) }) };
  const engine = await ChatEngine.load(device, platform, { path: path('models/parley-chat') }, resolveConfig({ maxRunningRequests: 4 }));
  onTestFinished(async () => {
    await engine.close();
    device.close();
  });
  return { device, engine };
}

async function tokensOf(engine: ChatEngine, request: ChatRequest, signal = never): Promise<number> {
  let tokens = 0;
  for await (const event of engine.chat(request, signal)) if (event.type === 'finish') tokens = event.completionTokens;
  return tokens;
}

const neverCome = new Promise<void>(() => {});

test('a request goes while its mask is computed, and the mask never comes: the next one is answered', { timeout: 60_000 }, async () => {
  const leaving = new AbortController();
  const { engine } = await load(() => {
    leaving.abort();
    return neverCome;
  });
  await expect(tokensOf(engine, constrained, leaving.signal)).rejects.toMatchObject({ code: 'aborted' });
  expect(await tokensOf(engine, plain)).toBe(3);
});

const failing = (device: Device): void => {
  device.record = () => {
    throw new TypeError('x is not a function');
  };
};

test('a step of a chat that fails ends the request, and the engine says that it is lost', async () => {
  const { device, engine } = await load();
  failing(device);
  await expect(tokensOf(engine, plain)).rejects.toMatchObject({ code: 'device_lost' });
  expect(await engine.lost).toContain('x is not a function');
});

test('a text that cannot be read ends its own request, with all choices; others are answered, and so is the next', async () => {
  const { engine } = await load();
  const BAD = 300;
  const { decode } = Tokenizer.prototype;
  const spy = vi.spyOn(Tokenizer.prototype, 'decode').mockImplementation(function (this: Tokenizer, ids, options) {
    if (ids.includes(BAD)) throw new TypeError('x is not a function');
    return decode.call(this, ids, options);
  });
  onTestFinished(() => spy.mockRestore());
  const bad = { ...plain, n: 2, sampling: { temperature: 0, logitBias: { [BAD]: 100 } } };
  const [failed, answered] = await Promise.allSettled([tokensOf(engine, bad), tokensOf(engine, { ...plain, maxTokens: 8 })]);
  expect(failed).toMatchObject({ reason: { code: 'internal', message: expect.stringContaining('x is not a function') as string } });
  expect(answered).toMatchObject({ value: 8 });
  expect(await tokensOf(engine, plain)).toBe(3);
  expect(engine.status()).toMatchObject({ running: 0, waiting: 0, kvPagesUsed: 0 });
});

async function loadTranscriber(): Promise<{ readonly device: Device; readonly transcriber: Transcriber }> {
  const device = await testDevice();
  const transcriber = await Transcriber.load(device, device.platform, { path: path('models/parley-transcribe') }, resolveConfig({}));
  onTestFinished(async () => {
    await transcriber.close();
    device.close();
  });
  return { device, transcriber };
}

const tone = Float32Array.from({ length: 16_000 }, (_, i) => Math.sin(i / 5));

async function end(events: AsyncIterable<unknown>): Promise<void> {
  for await (const _ of events);
}

test('a step of a transcription that fails does the same', async () => {
  const { device, transcriber } = await loadTranscriber();
  failing(device);
  await expect(end(transcriber.transcribe({ samples: tone }, never))).rejects.toMatchObject({ code: 'device_lost' });
  expect(await transcriber.lost).toContain('x is not a function');
});

test('so does one that times words', async () => {
  const { transcriber } = await loadTranscriber();
  const spy = vi.spyOn(WhisperRunner.prototype, 'align').mockRejectedValue(new Error('the external Instance no longer exists'));
  onTestFinished(() => spy.mockRestore());
  const samples = wavToMono(parseWav(readFileSync(path('test/fixtures/parley-transcribe/clip.wav'))));
  await expect(end(transcriber.transcribe({ samples, timestamps: 'word' }, never))).rejects.toMatchObject({ code: 'device_lost' });
  expect(await transcriber.lost).toContain('Instance no longer exists');
});

test('so does a step of speech; a request that comes later is told the same', async () => {
  const device = await testDevice();
  const synthesizer = await Synthesizer.load(
    device,
    device.platform,
    { path: path('test/fixtures/kokoro-tiny-random') },
    resolveConfig({}),
  );
  onTestFinished(async () => {
    await synthesizer.close();
    device.close();
  });
  failing(device);
  const speak = (): Promise<void> => end(synthesizer.synthesize({ text: 'Hello. Again!', voice: 'random' }, never));
  await expect(speak()).rejects.toMatchObject({ code: 'device_lost', message: expect.stringContaining('speech model failed') as string });
  expect(await synthesizer.lost).toContain('x is not a function');
  await expect(speak()).rejects.toMatchObject({ code: 'device_lost' });
});

test('a device that is lost while models are loaded is told as that, and not what failed on it thereby', async () => {
  const create = Device.create.bind(Device);
  const spy = vi.spyOn(Device, 'create').mockImplementation(async (...args) => {
    const device = await create(...args);
    const compile = device.compile.bind(device);
    device.compile = (forward) => {
      device.gpu.destroy();
      return compile(forward);
    };
    return device;
  });
  onTestFinished(() => spy.mockRestore());
  const config = resolveConfig({ speech: { path: path('test/fixtures/kokoro-tiny-random') } });
  const loading = createEngine(createNodePlatform({ log: () => undefined }), config);
  await expect(loading).rejects.toMatchObject({ code: 'device_lost', message: expect.stringContaining('destroyed') as string });
});

test('a load that fails closes the models that were loaded before, and the device', async () => {
  const node = createNodePlatform({ log: () => undefined });
  let threads = 0;
  const startWorker = (url: URL): PlatformWorker => {
    const worker = node.startWorker!(url);
    threads++;
    worker.onExit(() => threads--);
    return worker;
  };
  const close = vi.spyOn(Device.prototype, 'close');
  const prepare = vi.spyOn(ChatEngine, 'prepare').mockResolvedValue({
    load: async () => {
      expect(threads).toBe(1);
      throw new EngineError('invalid_model', 'its weights are damaged');
    },
  });
  onTestFinished(() => [close, prepare].forEach((spy) => spy.mockRestore()));
  const [chat, speech] = [{ path: path('models/parley-chat') }, { path: path('test/fixtures/kokoro-tiny-random') }];
  const loading = createEngine({ ...node, startWorker }, resolveConfig({ chat, speech }));
  await expect(loading).rejects.toMatchObject({ code: 'invalid_model' });
  expect(threads).toBe(0);
  expect(close).toHaveBeenCalledOnce();
});

test('a device whose kernel choices cannot be read is closed', async () => {
  const close = vi.spyOn(Device.prototype, 'close');
  onTestFinished(() => close.mockRestore());
  const kept = { read: () => Promise.reject(new Error('the disk is gone')), write: async () => undefined };
  const config = resolveConfig({ speech: { path: path('test/fixtures/kokoro-tiny-random') } });
  await expect(createEngine({ ...createNodePlatform({ log: () => undefined }), kept }, config)).rejects.toThrow('the disk is gone');
  expect(close).toHaveBeenCalledOnce();
});
