/** The Synthesizer on the tiny random checkpoint (test/tools/dump_kokoro.py) and, where sound matters, on the bundled one. */
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { SpeechEvent, SpeechRequest } from '../../engine/api.ts';
import { DEFAULT_ENGINE_CONFIG, resolveConfig } from '../../engine/config.ts';
import { EngineError } from '../../engine/errors.ts';
import type { Device } from '../../engine/gpu/device.ts';
import { createNodePlatform } from '../../engine/platform/node.ts';
import type { Platform } from '../../engine/platform/platform.ts';
import { Synthesizer } from '../../engine/tasks/synthesizer.ts';
import { concatenated } from '../../engine/util/math.ts';
import type { CallMessage } from '../../engine/util/rpc.ts';
import { collect } from '../support/collect.ts';
import { testDevice } from '../support/device.ts';

const ROOT = new URL('../../', import.meta.url).pathname;

function load(device: Device, folder: string, config = DEFAULT_ENGINE_CONFIG): Promise<Synthesizer> {
  return Synthesizer.load(device, createNodePlatform(), { path: join(ROOT, folder) }, config);
}

const speak = (synthesizer: Synthesizer, request: SpeechRequest, signal = new AbortController().signal): Promise<SpeechEvent[]> =>
  collect(synthesizer.synthesize(request, signal));

function samplesOf(events: readonly SpeechEvent[]): Float32Array {
  return concatenated(events.flatMap((event) => (event.type === 'audio' ? [event.samples] : [])));
}

const textsOf = (events: readonly SpeechEvent[]): string[] => events.flatMap((event) => (event.type === 'audio' ? [event.text] : []));

async function failure(events: Promise<unknown>): Promise<EngineError> {
  const error = await events.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(EngineError);
  return error as EngineError;
}

describe('a tiny Synthesizer', () => {
  let device: Device;
  let synthesizer: Synthesizer;
  const voice = 'random';
  beforeAll(async () => {
    device = await testDevice();
    synthesizer = await load(device, 'test/fixtures/kokoro-tiny-random');
  }, 60000);
  afterAll(async () => {
    await synthesizer.close();
    device.close();
  });

  test('speaks sentence by sentence: start, audio, finish', async () => {
    const events = await speak(synthesizer, { text: 'Hello there, Dr. Smith. It is late!\n\nGood night', voice, seed: 5 });
    expect(events.map((event) => event.type)).toEqual(['start', 'audio', 'audio', 'audio', 'finish']);
    expect(textsOf(events)).toEqual(['Hello there, Doctor Smith.', 'It is late!', 'Good night.']);
    const samples = samplesOf(events);
    expect(events[0]).toEqual({ type: 'start', seed: 5, sampleRate: 24000 });
    expect(events.at(-1)).toMatchObject({ seconds: samples.length / 24000 });
    expect(samples.every(Number.isFinite)).toBe(true);
    expect(samples.some((value) => Math.abs(value) > 0.01)).toBe(true);
  });

  test('repeats a seed to the bit, also beside other requests; another seed differs', async () => {
    const request = { text: 'Say it once. Say it twice.', voice, seed: 77 };
    const alone = samplesOf(await speak(synthesizer, request));
    const others = ['Something else entirely.', 'And more of it, too.'].map((text, seed) => speak(synthesizer, { text, voice, seed }));
    const beside = samplesOf(await speak(synthesizer, request));
    await Promise.all(others);
    expect(beside).toEqual(alone);
    expect(samplesOf(await speak(synthesizer, { ...request, seed: 78 }))).not.toEqual(alone);
    // A seed above 2^32 is more than its lower half.
    expect(samplesOf(await speak(synthesizer, { ...request, seed: 77 + 2 ** 32 }))).not.toEqual(alone);
  });

  test('begins with the first clause of a long sentence, and says all of it', async () => {
    const [clause, rest] = ['When the rain had stopped at last,', 'we walked along the river until the sun went down, and then went home.'];
    expect(textsOf(await speak(synthesizer, { text: `${clause} ${rest} ${clause} ${rest}`, voice, seed: 1 }))).toEqual([
      clause,
      rest,
      `${clause} ${rest}`,
    ]);
  });

  test('chooses a seed when none is given, and says which', async () => {
    const [start, ...rest] = await speak(synthesizer, { text: 'Any seed.', voice });
    const { seed } = start as Extract<SpeechEvent, { type: 'start' }>;
    expect(samplesOf(await speak(synthesizer, { text: 'Any seed.', voice, seed }))).toEqual(samplesOf(rest));
  });

  test('speed divides durations', async () => {
    const frames = async (speed: number): Promise<number> => {
      const finish = (await speak(synthesizer, { text: 'How long does this take?', voice, seed: 1, speed })).at(-1);
      return (finish as Extract<SpeechEvent, { type: 'finish' }>).frames;
    };
    const [slow, normal, fast] = [await frames(0.5), await frames(1), await frames(2)];
    expect(slow / normal).toBeCloseTo(2, 0);
    expect(normal).toBeGreaterThan(fast * 1.5);
  });

  test('cuts long sentences at clauses and drops no word', async () => {
    const text = `${Array.from({ length: 30 }, (_, i) => `clause ${'abcdefghij'[i % 10]} goes on`).join(', ')}.`;
    const events = await speak(synthesizer, { text, voice, seed: 1 });
    const texts = textsOf(events);
    expect(texts.length).toBeGreaterThan(3);
    expect(texts.join(' ')).toBe(text);
    expect(texts.slice(0, -1).every((piece) => piece.endsWith(','))).toBe(true);
  });

  test('ends its thread where the first phonemes fail, since nobody else can', async () => {
    const node = createNodePlatform();
    let [started, ended] = [0, 0];
    const platform: Platform = {
      ...node,
      startWorker: (url) => {
        const worker = node.startWorker!(url);
        started++;
        return {
          ...worker,
          // An operation that the thread does not have.
          post: (message) => worker.post({ ...(message as CallMessage), name: 'toMorse' }),
          terminate: async () => {
            await worker.terminate();
            ended++;
          },
        };
      },
    };
    const source = { path: join(ROOT, 'test/fixtures/kokoro-tiny-random') };
    await expect(Synthesizer.load(device, platform, source, DEFAULT_ENGINE_CONFIG)).rejects.toMatchObject({ code: 'internal' });
    expect([started, ended]).toEqual([1, 1]);
  });

  test('refuses more requests than may wait, until one of them has ended', async () => {
    const small = await load(device, 'test/fixtures/kokoro-tiny-random', resolveConfig({ maxQueuedRequests: 2 }));
    const request = { text: 'Hello there.', voice, seed: 1 };
    const first = small.synthesize(request, new AbortController().signal);
    await first.next();
    const second = speak(small, request);
    expect(await failure(speak(small, request))).toMatchObject({ code: 'queue_full' });
    expect(await second).toHaveLength(3);
    // One that is refused takes no place.
    expect(await failure(speak(small, { ...request, voice: 'nobody' }))).toMatchObject({ param: 'voice' });
    const third = small.synthesize(request, new AbortController().signal);
    await third.next();
    expect(await failure(speak(small, request))).toMatchObject({ code: 'queue_full' });
    await first.return(undefined);
    await third.return(undefined);
    expect(await speak(small, request)).toHaveLength(3);
    await small.close();
  });

  test('halves what does not fit the workspace, and a word without end', async () => {
    const word = 'babe'.repeat(150);
    expect(textsOf(await speak(synthesizer, { text: word, voice, seed: 1, speed: 0.25 })).join('')).toBe(`${word}.`);
  });

  test('pauses that the text gives are silent to the sample, at every speed, and shown texts have no marks', async () => {
    const spoken = async (pauses: readonly string[], speed = 1): Promise<SpeechEvent[]> =>
      speak(synthesizer, { text: `${pauses[0]}Hello [there](+2).${pauses[1]} Good [night](-1)${pauses[2]}`, voice, seed: 5, speed });
    for (const speed of [1, 2]) {
      const short = await spoken(['[pause:0s]', '[pause:0s]', '[pause:0s]'], speed);
      const long = await spoken(['[pause:0.5s]', '[pause:1234ms]', '[pause:0.25s]'], speed);
      expect([textsOf(short), textsOf(long)]).toEqual([
        ['Hello there.', 'Good night', 'Good night'],
        ['Hello there.', 'Good night', 'Good night'],
      ]);
      const [without, samples] = [samplesOf(short), samplesOf(long)];
      expect(samples.length - without.length).toBe((0.5 + 1.234 + 0.25) * 24000);
      const first = short.flatMap((event) => (event.type === 'audio' ? [event.samples.length] : []))[0]!;
      const sounds = [samples.subarray(12000, 12000 + first), samples.subarray(12000 + first + 1.234 * 24000, samples.length - 6000)];
      expect(concatenated(sounds)).toEqual(without);
      const silences = [
        samples.subarray(0, 12000),
        samples.subarray(12000 + first, 12000 + first + 1.234 * 24000),
        samples.subarray(-6000),
      ];
      for (const silence of silences) expect(silence.every((sample) => sample === 0)).toBe(true);
      expect(long.at(-1)).toMatchObject({ seconds: samples.length / 24000 });
    }
  });

  test('refuses an unknown voice, an empty text and a speed out of range before any event', async () => {
    const unknown = await failure(speak(synthesizer, { text: 'Hello.', voice: 'nobody' }));
    expect(unknown).toMatchObject({ code: 'invalid_request', param: 'voice' });
    expect(unknown.message).toContain('random');
    for (const text of ['', '   ', '... !?', '\n\n']) {
      expect(await failure(speak(synthesizer, { text, voice }))).toMatchObject({ code: 'invalid_request', param: 'text' });
    }
    expect(await failure(speak(synthesizer, { text: 'Hello.', voice, language: 'klingon' }))).toMatchObject({
      code: 'invalid_request',
      param: 'language',
      message: `'klingon' is no language that the model speaks; it speaks en-us (English), en-gb (British English)`,
    });
    expect(await failure(speak(synthesizer, { text: 'Hello.', voice, speed: 9 }))).toMatchObject({ param: 'speed' });
    expect(await failure(speak(synthesizer, { text: 'Hello.', voice, seed: 1.5 }))).toMatchObject({ param: 'seed' });
  });

  test('refuses more phonemes than allowed before anything is computed, and counts slow speech for more', async () => {
    const strict = await load(device, 'test/fixtures/kokoro-tiny-random', { ...DEFAULT_ENGINE_CONFIG, maxSpeechPhonemes: 400 });
    const before = device.stats.submits;
    const many = await failure(speak(strict, { text: '1234567 '.repeat(20), voice, seed: 1 }));
    expect(many).toMatchObject({ code: 'invalid_request', param: 'text' });
    const [, found, most] = /has (\d+) phonemes or more; at most (\d+) are spoken in one request/.exec(many.message)!.map(Number);
    expect(most).toBe(400);
    expect(found).toBeGreaterThan(400);
    const text = 'A rather long sentence. '.repeat(24);
    const slow = await failure(speak(strict, { text, voice, speed: 0.25, seed: 1 }));
    expect(slow.message).toContain('at most 100 are spoken at speed 0.25');
    expect(device.stats.submits).toBe(before);
    expect(await speak(strict, { text, voice, seed: 1 })).toHaveLength(26);
    await strict.close();
  });

  test('a short text is spoken while long ones before it go on', async () => {
    const text = 'One more sentence of many. '.repeat(12);
    let ended = 0;
    const long = Array.from({ length: 4 }, (_, seed) => speak(synthesizer, { text, voice, seed }).finally(() => ended++));
    expect(await speak(synthesizer, { text: 'Me first.', voice, seed: 9 })).toHaveLength(3);
    expect(ended).toBe(0);
    for (const events of await Promise.all(long)) expect(events).toHaveLength(14);
  }, 120000);

  test('stops when its caller goes away, and serves the next one', async () => {
    const controller = new AbortController();
    const iterator = synthesizer.synthesize({ text: 'One. Two. Three.', voice, seed: 1 }, controller.signal)[Symbol.asyncIterator]();
    await iterator.next();
    controller.abort();
    expect(await failure(iterator.next())).toMatchObject({ code: 'aborted' });
    expect(await speak(synthesizer, { text: 'Next.', voice, seed: 1 })).toHaveLength(3);
  });

  test('makes room for a longer sentence when it comes, and speaks the others as before', async () => {
    const other = await load(device, 'test/fixtures/kokoro-tiny-random');
    const short = { text: 'Hi.', voice, seed: 3 };
    const before = samplesOf(await speak(other, short));
    const { buffers, bufferBytes } = device.stats;
    const long = { text: `${'word '.repeat(25)}`, voice, seed: 4 };
    const spoken = samplesOf(await speak(other, long));
    expect(device.stats.buffers).toBe(buffers);
    expect(device.stats.bufferBytes).toBeGreaterThan(bufferBytes);
    const grown = device.stats.bufferBytes;
    expect(samplesOf(await speak(other, long))).toEqual(spoken);
    expect(samplesOf(await speak(other, short))).toEqual(before);
    expect(device.stats.bufferBytes).toBe(grown);
    expect(device.errors).toEqual([]);
    await other.close();
  });

  test('creates no GPU object in fifty calls of different lengths, once there is room for the longest', async () => {
    await speak(synthesizer, { text: 'word '.repeat(13), voice, seed: 0 });
    const before = { ...device.stats };
    for (let i = 0; i < 50; i++) await speak(synthesizer, { text: `${'word '.repeat(1 + (i % 12))}${i}.`, voice, seed: i });
    const { buffers, bufferBytes, bindGroups, pipelines } = device.stats;
    const expected = {
      buffers: before.buffers,
      bufferBytes: before.bufferBytes,
      bindGroups: before.bindGroups,
      pipelines: before.pipelines,
    };
    expect({ buffers, bufferBytes, bindGroups, pipelines }).toEqual(expected);
    expect(device.errors).toEqual([]);
  }, 60000);
});

test('matrices are packed where that is asked for, and the plan knows their bytes', async () => {
  const device = await testDevice();
  const bytes: number[] = [];
  for (const quantization of ['none', 'q8_0'] as const) {
    const source = { path: join(ROOT, 'models/parley-speech') };
    const prepared = await Synthesizer.prepare(device, createNodePlatform(), source, resolveConfig({ quantization }));
    const synthesizer = await prepared.load(undefined);
    const { weightBytes, voices } = synthesizer.info;
    expect(weightBytes / prepared.demand!.weights).toBeCloseTo(1, 1);
    bytes.push(weightBytes);
    const seconds = samplesOf(await speak(synthesizer, { text: 'Hello world.', voice: voices![0]!, seed: 3 })).length / 24000;
    expect(seconds).toBeGreaterThan(0.5);
    await synthesizer.close();
  }
  expect(bytes[1]! / bytes[0]!).toBeLessThan(0.85);
  expect(device.errors).toEqual([]);
  device.close();
});

test('the bundled checkpoint speaks in all its voices, each its own, without clipping or clicks', async () => {
  const device = await testDevice();
  const synthesizer = await load(device, 'models/parley-speech');
  expect(synthesizer.info).toMatchObject({ task: 'speech', architecture: 'kokoro', sampleRate: 24000 });
  expect(synthesizer.info.voices).toHaveLength(19);
  const heard = new Set<string>();
  for (const voice of synthesizer.info.voices!) {
    const samples = samplesOf(await speak(synthesizer, { text: 'Hello world.', voice, seed: 3 }));
    const seconds = samples.length / 24000;
    expect(seconds).toBeGreaterThan(0.5);
    expect(seconds).toBeLessThan(3);
    const loudest = samples.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
    expect(loudest).toBeGreaterThan(0.05);
    expect(loudest).toBeLessThan(1);
    expect(Math.abs(samples[0]!) + Math.abs(samples.at(-1)!)).toBe(0);
    heard.add(String(samples.reduce((sum, value) => sum + value * value, 0)));
  }
  expect(heard.size).toBe(19);
  await synthesizer.close();
  device.close();
}, 120000);
