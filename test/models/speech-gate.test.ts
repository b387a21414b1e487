/** The gate of speech before the bundled model: what reaches the model, what it is told in the end, and that times stay those of the audio. */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { TranscriptionRequest } from '../../engine/api.ts';
import { parseWav, wavToMono } from '../../engine/audio/wav.ts';
import { resolveConfig } from '../../engine/config.ts';
import type { Device } from '../../engine/gpu/device.ts';
import { Transcriber } from '../../engine/tasks/transcriber.ts';
import { concatenated } from '../../engine/util/math.ts';
import { collect } from '../support/collect.ts';
import { testDevice } from '../support/device.ts';
import { NON_SPEECH_KINDS, NON_SPEECH_LEVELS, NON_SPEECH_RATE, NON_SPEECH_SECONDS, nonSpeech } from '../support/non-speech.ts';
import type { NonSpeechKind } from '../support/non-speech.ts';

const path = (name: string): string => fileURLToPath(new URL(`../../${name}`, import.meta.url));
const clip = wavToMono(parseWav(readFileSync(path('test/fixtures/parley-transcribe/clip.wav'))));
const golden = JSON.parse(readFileSync(path('test/fixtures/parley-transcribe/golden.json'), 'utf8')) as { readonly text: string };
const CLIP_TEXT = golden.text.trim();
const CLIP_SECONDS = clip.length / NON_SPEECH_RATE;

let device: Device;
let transcriber: Transcriber;
beforeAll(async () => {
  device = await testDevice();
  const config = resolveConfig({ vad: { path: path('models/silero-vad') } });
  transcriber = await Transcriber.load(device, device.platform, { path: path('models/parley-transcribe') }, config);
});
afterAll(async () => {
  await transcriber.close();
  device.close();
});

async function ask(request: TranscriptionRequest, signal = new AbortController().signal) {
  const all = await collect(transcriber.transcribe(request, signal));
  const finish = all.at(-1)!;
  if (finish.type !== 'finish') throw new Error(`ended with ${finish.type}`);
  const segments = all.flatMap((event) => (event.type === 'segment' ? [event.segment] : []));
  // A window that reaches the model has a prompt, which counts as input beside the audio.
  const prompted = finish.inputTokens - Math.ceil(request.samples.length / 320);
  return { ...finish, segments, prompted };
}

describe('audio in which nobody speaks', () => {
  // One of each kind, at levels and lengths by turns; `npm run bench -- invented` has all 300.
  test.each(Object.keys(NON_SPEECH_KINDS) as NonSpeechKind[])('does not reach the model: %s', async (kind) => {
    const at = Object.keys(NON_SPEECH_KINDS).indexOf(kind);
    const [level, seconds] = [NON_SPEECH_LEVELS[1 + (at % 4)]!, NON_SPEECH_SECONDS[at % 5]!];
    const { text, duration, prompted, outputTokens } = await ask({ samples: nonSpeech(kind, level, seconds) });
    expect({ text, duration, prompted, outputTokens }).toEqual({ text: '', duration: seconds, prompted: 0, outputTokens: 0 });
  });

  test('reaches it where the request says so', async () => {
    const { prompted, text } = await ask({ samples: nonSpeech('white', -25, 7), vad: false });
    expect(prompted).toBeGreaterThan(0);
    expect(text).toBe('');
  });
});

describe('damaged samples', () => {
  // Of a file of floats, or of a page that computes its own.
  test.each([NaN, Infinity, -3e38, 1e20])('of %s are silence, before the gate and without it', async (value) => {
    const [damaged, silent] = [value, 0].map((one) => concatenated([clip, new Float32Array(3).fill(one), clip]));
    for (const vad of [true, false]) {
      const found = await ask({ samples: damaged!, vad, timestamps: 'word' });
      expect(found).toEqual(await ask({ samples: silent!, vad, timestamps: 'word' }));
      expect(found.text).toContain(CLIP_TEXT);
    }
  });
});

describe('speech between noise', () => {
  const noise = (seconds: number): Float32Array => nonSpeech('white', -50, seconds);
  // Eleven seconds apart: of the noise only what surrounds the speech is heard.
  const sound = concatenated([noise(12), clip, noise(11), clip, noise(9)]);
  const starts = [12, 12 + CLIP_SECONDS + 11];

  test('is heard as it is without, at its place in the audio', async () => {
    const { text, duration, segments } = await ask({ samples: sound, timestamps: 'word' });
    expect(text).toBe(`${CLIP_TEXT} ${CLIP_TEXT}`);
    expect(duration).toBe(sound.length / NON_SPEECH_RATE);
    const words = segments.flatMap((segment) => segment.words!);
    const spoken = CLIP_TEXT.split(' ').length;
    expect(words).toHaveLength(2 * spoken);
    // The clip itself begins and ends with silence.
    for (const [i, { start, end }] of words.entries()) {
      const from = starts[Math.floor(i / spoken)]!;
      expect(start).toBeGreaterThan(from - 0.4);
      expect(end).toBeLessThan(from + CLIP_SECONDS + 0.4);
      expect(end).toBeGreaterThanOrEqual(start);
    }
    for (const { start, end } of segments) expect(end - start).toBeLessThan(CLIP_SECONDS + 1);
  });

  test('is heard by the rules of the request', async () => {
    const rules = { threshold: 0.5, prefixPaddingMs: 300, silenceDurationMs: 200 };
    expect((await ask({ samples: sound, vad: rules })).text).toBe(`${CLIP_TEXT} ${CLIP_TEXT}`);
    expect(await ask({ samples: sound, vad: { ...rules, threshold: 1 } })).toMatchObject({ text: '', prompted: 0 });
  });

  test('is not waited for by a request that has gone', async () => {
    const gone = new AbortController();
    const asked = ask({ samples: sound }, gone.signal);
    gone.abort();
    await expect(asked).rejects.toMatchObject({ code: 'aborted' });
    expect((await ask({ samples: clip })).text).toBe(CLIP_TEXT);
  });
});
