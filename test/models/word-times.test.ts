/** Times of words against transformers (test/tools/dump_whisper_words.py): those of tokens with a tiny random checkpoint, those of words with the bundled one. */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { resample } from '../../engine/audio/resample.ts';
import { parseWav, wavToMono } from '../../engine/audio/wav.ts';
import type { TranscriptSegment } from '../../engine/api.ts';
import { floatStorage } from '../../engine/config.ts';
import type { Device } from '../../engine/gpu/device.ts';
import { alignmentHeads } from '../../engine/models/whisper/config.ts';
import type { WindowSettings } from '../../engine/models/whisper/config.ts';
import { loadWhisperModel } from '../../engine/models/whisper/load.ts';
import { WhisperRunner } from '../../engine/runner/whisper-runner.ts';
import { warpedStarts } from '../../engine/tasks/alignment.ts';
import { Transcriber } from '../../engine/tasks/transcriber.ts';
import { Tokenizer } from '../../engine/text/tokenizer.ts';
import { openModelFolder } from '../../engine/weights/open-model-folder.ts';
import { openSafetensors } from '../../engine/weights/safetensors.ts';
import { wordsApart } from '../support/word-times.ts';
import type { GoldenTimes } from '../support/word-times.ts';
import { testDevice } from '../support/device.ts';
import { refuseMemory } from '../support/refused-memory.ts';

const path = (name: string): string => fileURLToPath(new URL(`../../${name}`, import.meta.url));
const json = <T>(name: string): T => JSON.parse(readFileSync(path(name), 'utf8')) as T;

let device: Device;
beforeAll(async () => {
  device = await testDevice();
});
afterAll(() => device.close());

describe('alignment heads', () => {
  const decoder = { layers: 4, heads: 3, ffn: 8 };

  test('are those that generation_config.json names, if the decoder has them', () => {
    const named = (alignment_heads: unknown): unknown => alignmentHeads({ alignment_heads }, decoder);
    expect(named([[3, 1], [0, 2]])).toEqual([{ layer: 3, head: 1 }, { layer: 0, head: 2 }]); // prettier-ignore
    const upper = [2, 3].flatMap((layer) => [0, 1, 2].map((head) => ({ layer, head })));
    for (const wrong of [undefined, null, [], [[4, 0]], [[0, 3]], [[0.5, 0]], [[1]], ['a'], 7]) expect(named(wrong)).toEqual(upper);
  });

  test('are spread over the upper half of the layers where a large decoder has none', () => {
    const found = alignmentHeads({}, { layers: 32, heads: 20, ffn: 8 });
    expect(found).toHaveLength(40);
    expect(new Set(found.map(({ layer }) => layer)).size).toBe(16);
    expect(Math.min(...found.map(({ layer }) => layer))).toBe(16);
  });
});

test('the tokens of a tiny random checkpoint end when transformers says, with named heads and without', async () => {
  const folder = 'test/fixtures/whisper-tiny-random';
  interface Golden {
    readonly prompt: number[];
    readonly tokens: number[];
    readonly positions: number;
    readonly heads: [number, number][];
    readonly ends: number[];
    readonly ends_without_heads: number[];
  }
  const golden = json<Golden>(`${folder}/words.json`);
  const values = await openSafetensors(device.platform, path(folder), 'golden.safetensors');
  const audio = await values.read('audio');
  await values.close();
  const loaded = await loadWhisperModel(device, await openModelFolder(device.platform, path(folder)), floatStorage('f32'));
  const named = golden.heads.map(([layer, head]) => ({ layer, head }));
  // More rows than a step has.
  const tokens = [...golden.prompt, ...golden.tokens];
  for (const [heads, ends] of [
    [named, golden.ends],
    [loaded.alignmentHeads, golden.ends_without_heads],
  ] as const) {
    const runner = new WhisperRunner(device, { ...loaded, alignmentHeads: heads }, { maxRunning: 2 });
    await runner.makeRoom(1);
    runner.encode(1, audio);
    const { positions } = golden;
    const matrix = await runner.align(1, tokens, { from: golden.prompt.length, positions });
    const found = [...warpedStarts(matrix, ends.length, positions)].map((start) => start * 0.02);
    found.forEach((end, i) => expect(end, `token ${i}`).toBeCloseTo(ends[i]!, 6));
  }
  expect(device.errors).toEqual([]);
});

describe('words of the bundled checkpoint', () => {
  const BUNDLED = path('models/parley-transcribe');
  const wav = parseWav(readFileSync(path('test/fixtures/parley-transcribe/clip.wav')));
  const clip = resample(wavToMono(wav), wav.sampleRate, 16000);
  let transcriber: Transcriber;
  /** transformers pads every window; this one does too. */
  let padding: Transcriber;

  beforeAll(async () => {
    const folder = await openModelFolder(device.platform, BUNDLED);
    const loaded = await loadWhisperModel(device, folder, floatStorage('f16'));
    const tokenizer = await Tokenizer.load(folder);
    const info = { id: 'bundled', task: 'transcription', architecture: 'whisper', parameters: 1, weightBytes: 1 } as const;
    const open = async (windows: WindowSettings): Promise<Transcriber> => {
      // The script decodes greedily.
      const model = { ...loaded, config: { ...loaded.config, windows }, tokens: { ...loaded.tokens, beams: 1 } };
      const runner = new WhisperRunner(device, model, { maxRunning: 2 });
      await runner.warmUp();
      return new Transcriber(info, { runner, tokenizer, platform: device.platform, maxQueued: 4 });
    };
    const { frames, mel, windows } = loaded.config;
    transcriber = await open(windows);
    padding = await open({ samples: frames * mel.hop, frames, padding: undefined });
  });
  afterAll(() => Promise.all([transcriber.close(), padding.close()]));

  async function hear(samples: Float32Array, timestamps: 'segment' | 'word', task = transcriber): Promise<TranscriptSegment[]> {
    const segments: TranscriptSegment[] = [];
    for await (const event of task.transcribe({ samples, timestamps }, new AbortController().signal)) {
      if (event.type === 'segment') segments.push(event.segment);
    }
    return segments;
  }

  test('take neither memory nor kernels where nobody asks, and change nothing else', async () => {
    await hear(clip, 'segment');
    const before = { ...device.stats };
    const plain = await hear(clip, 'segment');
    expect(plain[0]).not.toHaveProperty('words');
    expect(device.stats.bufferBytes).toBe(before.bufferBytes);
    const segments = await hear(clip, 'word');
    expect(device.stats.bufferBytes).toBeGreaterThan(before.bufferBytes);
    expect(device.stats.pipelines).toBe(before.pipelines);
    expect(segments.map(({ words: _, ...rest }) => rest)).toEqual(plain);
    expect(device.errors).toEqual([]);
  });

  test('are refused where the device has no memory for them, to those alone who ask, until it has', async () => {
    const refusal = refuseMemory(device, (label) => label === 'alignment weights');
    const plain = await hear(clip, 'segment', padding);
    const { buffers } = device.stats;
    try {
      const [word, other] = await Promise.allSettled([hear(clip, 'word', padding), hear(clip, 'segment', padding)]);
      expect(word).toMatchObject({ reason: { code: 'out_of_memory' } });
      expect(other).toMatchObject({ value: plain });
      expect(await hear(clip, 'segment', padding)).toEqual(plain);
    } finally {
      refusal.restore();
    }
    // What was refused is given back.
    expect(device.stats.buffers).toBe(buffers);
    expect((await hear(clip, 'word', padding))[0]!.words!.length).toBeGreaterThan(3);
    // Work on what was refused is not done.
    device.errors.length = 0;
  });

  test('are spoken when transformers says', async () => {
    const segments = await hear(clip, 'word', padding);
    const golden = json<Record<string, GoldenTimes>>('test/fixtures/parley-transcribe/words.json');
    const apart = wordsApart(segments, golden['clip.wav']!);
    expect(apart.texts).toBe('equal');
    expect(apart.words).toBeLessThanOrEqual(0.04);
    expect(apart.segments).toBeLessThanOrEqual(0.02);
  });

  test('are as many as in the text, in order, inside the audio, in several windows side by side', async () => {
    const gap = 28 * 16000;
    const long = new Float32Array(gap + clip.length);
    for (let i = 0; i < gap - 16000; i++) long[i] = 1e-4 * Math.sin(i * i);
    long.set(clip, 0);
    long.set(clip, gap);
    const [segments, alone] = await Promise.all([hear(long, 'word'), hear(clip, 'word')]);
    const words = segments.flatMap((segment) => segment.words!);
    expect(words.map(({ text }) => text).join('')).toBe(segments.map(({ text }) => text).join(''));
    words.forEach(({ start, end }, i) => {
      expect(end).toBeGreaterThanOrEqual(start);
      expect(start).toBeGreaterThanOrEqual(i === 0 ? 0 : words[i - 1]!.end);
      expect(end).toBeLessThanOrEqual(long.length / 16000);
    });
    expect(alone[0]!.words!.length).toBeGreaterThan(3);
    expect(words.length).toBeGreaterThan(alone[0]!.words!.length);
  });

  test('end with a request that goes away, and the next is served', async () => {
    const controller = new AbortController();
    const running = (async () => {
      for await (const _ of transcriber.transcribe({ samples: clip, timestamps: 'word' }, controller.signal)) controller.abort();
    })();
    await expect(running).rejects.toMatchObject({ code: 'aborted' });
    expect((await hear(clip, 'word'))[0]!.words!.length).toBeGreaterThan(3);
  });
});
