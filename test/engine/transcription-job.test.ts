import { describe, expect, test } from 'vitest';
import type { TranscriptionEvent, TranscriptionRequest } from '../../engine/api.ts';
import { keptSound, wholeSound } from '../../engine/audio/kept-sound.ts';
import { arraySource } from '../../engine/audio/sample-source.ts';
import { parseWhisperConfig, parseWhisperTokens } from '../../engine/models/whisper/config.ts';
import { cutWindows, emitDone, isHeard, settle, withRoom } from '../../engine/tasks/transcription-job.ts';
import type { Job, Window } from '../../engine/tasks/transcription-job.ts';
import { WindowDecoder } from '../../engine/tasks/window-decoder.ts';
import type { WhisperRunner } from '../../engine/runner/whisper-runner.ts';
import type { StepRow } from '../../engine/runner/whisper-step.ts';
import { AsyncQueue } from '../../engine/util/async-queue.ts';

const RATE = 16000;
const BEGIN = 1000;
const model = {
  config: parseWhisperConfig(
    {
      vocab_size: 2501, num_mel_bins: 80, d_model: 64, encoder_layers: 1, decoder_layers: 1, encoder_attention_heads: 1,
      decoder_attention_heads: 1, encoder_ffn_dim: 64, decoder_ffn_dim: 64, max_source_positions: 1500, max_target_positions: 448,
      activation_function: 'gelu',
    },
    { feature_size: 80, sampling_rate: RATE, n_fft: 400, hop_length: 160 },
  ),
  tokens: parseWhisperTokens({}, { decoder_start_token_id: 901, eos_token_id: 900, no_timestamps_token_id: BEGIN - 1 }, new Map(), 2501),
}; // prettier-ignore
const at = (seconds: number): number => BEGIN + Math.round(seconds / 0.02);
const loud = (seconds: number): Float32Array => Float32Array.from({ length: seconds * RATE }, (_, i) => Math.sin(i));

async function jobOf(samples: Float32Array, more: Partial<TranscriptionRequest> = {}): Promise<Job> {
  const request = { timestamps: 'segment', ...more } as const;
  const job: Job = {
    request, sound: arraySource(samples), heard: wholeSound(arraySource(samples)), events: new AsyncQueue(), hint: [], warnings: [], windows: [], language: 'en', emitted: 0, segments: 0, text: '', audioTokens: 0, inputTokens: 0,
    outputTokens: 0,
  }; // prettier-ignore
  await cutWindows(job, model, new AbortController().signal);
  // What the decoder reads when it gives a window a slot.
  for (const window of job.windows) window.samples = samples.subarray(window.start, window.start + window.length);
  return job;
}

/** A token that is a wide space. */
const SPACE = 800;
const decode = (ids: readonly number[]): string => ids.map((id) => (id === SPACE ? '\u3000' : ` w${id}`)).join('');

/** What the decoder does: gives a window its tokens, judges and settles it, and sends what can be sent. */
function hear(window: Window, tokens: number[], logprob = -0.1 * (tokens.length + 1)): Window | undefined {
  Object.assign(window, { tokens, logprob });
  expect(isHeard(window, model, decode)).toBe(true);
  window.done = true;
  const rest = settle(window, model);
  emitDone(window.job, model, { decode, bytes: (id) => new TextEncoder().encode(` w${id}`) });
  return rest;
}

async function drain(job: Job): Promise<TranscriptionEvent[]> {
  const events: TranscriptionEvent[] = [];
  for await (const event of job.events) events.push(event);
  return events;
}

describe('a transcription', () => {
  test('hears again what follows the last closed segment of a window, before the next window', async () => {
    const job = await jobOf(loud(40), { temperature: 0.4 });
    const [first, second] = job.windows as [Window, Window];
    const cut = second.start / RATE;
    expect(hear(second, [at(0), 9, at(5)])).toBeUndefined();
    const rest = hear(first, [at(0), 1, at(6), at(6), 2, at(12), at(12), 3])!;
    expect(rest.start).toBe(12 * RATE);
    expect(rest.samples).toEqual(first.samples!.subarray(12 * RATE));
    expect(job.windows).toEqual([first, rest, second]);
    expect(hear(rest, [at(0), 3, 4, at(2)])).toBeUndefined();
    const events = await drain(job);
    const segments = events.flatMap((event) => (event.type === 'segment' ? [event.segment] : []));
    expect(segments.map(({ id, start, end, seek, text }) => [id, start, end, seek, text])).toEqual([
      [0, 0, 6, 0, ' w1'],
      [1, 6, 12, 0, ' w2'],
      [2, 12, 14, 1200, ' w3 w4'],
      [3, cut, cut + 5, Math.round(cut * 100), ' w9'],
    ]);
    for (const { temperature, avgLogprob } of segments) expect([temperature, avgLogprob]).toEqual([0.4, expect.closeTo(-0.1, 9)]);
    expect(events.at(-1)).toMatchObject({ type: 'finish', text: 'w1 w2 w3 w4 w9', outputTokens: 8 + 4 + 3 });
  });

  test('times no word of a window behind the beginning of what is heard again', async () => {
    const job = await jobOf(loud(20), { timestamps: 'word' });
    const [first] = job.windows as [Window];
    // The attention says 6.4 s for the end of the segment that the model says to end at 6 s.
    first.boundaries = [0, 0, 5.8, 6.2, 6.4, 6.4, 7];
    const rest = hear(first, [at(0), 1, 2, at(6), at(6), 3])!;
    rest.boundaries = [0, 0, 1, 1];
    hear(rest, [at(0), 4, at(1)]);
    const words = (await drain(job)).flatMap((event) => (event.type === 'segment' ? (event.segment.words ?? []) : []));
    expect(words.map(({ text, start, end }) => [text, start, end])).toEqual([
      [' w1', 0, 5.8],
      [' w2', 5.8, 6],
      [' w4', 6, 7],
    ]);
  });

  test('takes spaces of their own between words for no words', async () => {
    const job = await jobOf(loud(10), { timestamps: 'word' });
    job.windows[0]!.boundaries = [0, 0, 1, 2, 3, 3];
    hear(job.windows[0]!, [at(0), 1, SPACE, 2, at(3)]);
    const [segment] = (await drain(job)).flatMap((event) => (event.type === 'segment' ? [event.segment] : []));
    expect(segment!.text).toBe(' w1\u3000 w2');
    expect(segment!.words!.map(({ text, start, end }) => [text, start, end])).toEqual([
      [' w1', 0, 1],
      [' w2', 2, 3],
    ]);
  });

  test('stretches no word and no segment over a silence that is left out', async () => {
    const job = await jobOf(loud(10), { timestamps: 'word' });
    const [first] = job.windows as [Window];
    // Of 60 s the first five and the last five are heard, each with 0.4 s of silence at the seam.
    const stretches = [{ from: 0, to: 5 * RATE }, { from: 55 * RATE, to: 60 * RATE }]; // prettier-ignore
    job.heard = keptSound(arraySource(loud(60)), stretches, { before: 0.4 * RATE, after: 0.4 * RATE });
    first.boundaries = [0, 0, 4.2, 5.36, 5.36, 5.38, 7, 7];
    hear(first, [at(0), 1, 2, at(5.2), at(5.2), 3, at(7)]);
    const segments = (await drain(job)).flatMap((event) => (event.type === 'segment' ? [event.segment] : []));
    expect(segments.map(({ text, start, end }) => [text, start, end])).toEqual([
      [' w1 w2', 0, 5],
      [' w3', 55.2, 57],
    ]);
    expect(segments.flatMap(({ words = [] }) => words.map(({ text, start, end }) => [text, start, end]))).toEqual([
      [' w1', 0, 4.2],
      [' w2', 4.2, 5],
      [' w3', 55.38, 57],
    ]);
  });

  test('leaves a rest alone that is silent, and a window that holds no speech', async () => {
    const samples = loud(20);
    samples.fill(0, 12 * RATE);
    const tokens = [at(0), 1, at(12), at(12), 2];
    const job = await jobOf(samples);
    expect(hear(job.windows[0]!, tokens)).toBeUndefined();
    expect(job.text).toBe(' w1');
    const unsure = await jobOf(loud(20));
    unsure.windows[0]!.noSpeechProb = 0.9;
    expect(hear(unsure.windows[0]!, tokens, -20)).toBeUndefined();
    expect(unsure).toMatchObject({ text: '', outputTokens: 5 });
  });

  test('ends with a decoder that closes a segment every 20 ms, and keeps what it wrote last', async () => {
    const job = await jobOf(loud(10));
    let count = 0;
    for (let window: Window | undefined = job.windows[0]; window; count++) window = hear(window, [at(0), 1, at(0.02), at(0.02), 2]);
    expect(count).toBe(11);
    expect(job.text).toBe(' w1'.repeat(11) + ' w2');
    expect(job.emitted).toBe(job.windows.length);
  });

  test('cuts a window without room for all that is said into parts, which take its place', async () => {
    const job = await jobOf(loud(50), { timestamps: 'none' });
    const [first, second] = job.windows as [Window, Window];
    const { start, length } = first;
    const full = Array.from({ length: 224 }, (_, i) => i);
    const fill = (window: Window, tokens: number[], logprob = -20): Window[] => {
      Object.assign(window, { tokens, logprob, ended: false });
      expect(isHeard(window, model, (ids) => decode(ids).slice(0, 600))).toBe(true);
      return withRoom(window, model);
    };
    const parts = fill(first, full);
    expect(parts.length).toBeGreaterThan(1);
    expect(job.windows).toEqual([...parts, second]);
    expect(parts[0]!.start).toBe(start);
    let end = start;
    for (const part of parts) {
      expect(part).toMatchObject({ start: end, tokens: [], done: false });
      expect(part.length).toBeLessThanOrEqual(0.6 * length);
      end += part.length;
    }
    expect(end).toBe(start + length);
    for (const [i, window] of job.windows.entries()) hear(window, [i]);
    expect(job.text).toBe(job.windows.map((_, i) => ` w${i}`).join(''));
    expect(job.outputTokens).toBe(full.length + job.windows.length);
  });

  test('ends with a window without room whose parts are all silent', async () => {
    // A click that is loud enough in one frame, but not in the halves of two, as frames lie behind a cut.
    const samples = new Float32Array(20 * RATE).fill(1.2e-3, 15 * RATE, 15 * RATE + 320);
    const job = await jobOf(samples, { timestamps: 'none' });
    expect(job.windows).toMatchObject([{ done: false }]);
    let next = 0;
    const step = (rows: readonly StepRow[]) => {
      const chosen = rows.filter(({ sample }) => sample).map(() => [{ token: next++, logprob: -0.1 }]);
      return { tokens: async () => chosen };
    };
    const runner = { model, step, slots: 1, beams: 1, software: false, makeRoom: async () => true, encode: () => undefined };
    const text = { decode: (ids: readonly number[]) => decode(ids).slice(0, 600), bytes: () => new Uint8Array() };
    const decoder: WindowDecoder = new WindowDecoder(runner as unknown as WhisperRunner, text.decode, {
      language: () => undefined,
      done: (done) => void emitDone(done, model, text),
      failed: (_, error) => job.events.fail(error),
      lost: (error) => job.events.fail(error),
    });
    decoder.prompt(job, [1, 2]);
    decoder.add(job);
    await decoder.idle();
    expect(job.windows).toMatchObject([{ done: true }, { done: true }]);
    expect(job.emitted).toBe(2);
    expect(await drain(job)).toMatchObject([{ type: 'finish', text: '', outputTokens: 224 }]);
  });

  test('cuts no window whose text ends, goes on behind a closed segment, or was rejected, and none that is short', async () => {
    const [ended] = (await jobOf(loud(20))).windows as [Window];
    Object.assign(ended, { tokens: [1, 2], logprob: -0.1, ended: true });
    isHeard(ended, model, decode);
    expect(withRoom(ended, model)).toEqual([]);
    const [closed] = (await jobOf(loud(20))).windows as [Window];
    Object.assign(closed, { tokens: [at(0), 1, at(6), at(6), 2], logprob: -0.1 });
    isHeard(closed, model, decode);
    expect(withRoom(closed, model)).toEqual([]);
    const [doubted] = (await jobOf(loud(20), { temperature: 0.4 })).windows as [Window];
    Object.assign(doubted, { tokens: [1, 2], logprob: -20 });
    isHeard(doubted, model, decode);
    expect(withRoom(doubted, model)).toEqual([]);
    const [short] = (await jobOf(loud(3))).windows as [Window];
    Object.assign(short, { tokens: [1, 2], logprob: -0.1 });
    isHeard(short, model, decode);
    expect(withRoom(short, model)).toEqual([]);
  });

  test.each([
    ['ja', 'transcribe', 'w1w2'],
    ['ja', 'translate', 'w1 w2'],
    ['en', 'transcribe', 'w1 w2'],
  ] as const)('in %s, to %s, puts no space between segments where the language has none', async (language, task, text) => {
    const job = await jobOf(loud(20), { task });
    job.language = language;
    const [window] = job.windows as [Window];
    Object.assign(window, { tokens: [at(0), 1, at(6), at(6), 2, at(20)], logprob: -0.1 });
    const spaceless = (ids: readonly number[]): string => ids.map((id) => `w${id}`).join('');
    isHeard(window, model, spaceless);
    window.done = true;
    emitDone(job, model, { decode: spaceless, bytes: () => new Uint8Array() });
    expect((await drain(job)).at(-1)).toMatchObject({ type: 'finish', text });
  });
});
