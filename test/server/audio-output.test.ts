/** Spoken answers in every format and rate: heard again by our own decoders, exact in length, and as the official client asks for them. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import OpenAI from 'openai';
import { describe, expect, onTestFinished, test } from 'vitest';
import { resample } from '../../engine/audio/resample.ts';
import { parseWav, wavToMono, writeWav } from '../../engine/audio/wav.ts';
import { decodeUpload } from '../../server/audio/upload/decode.ts';
import { createSampleEncoder } from '../../server/audio/encoders.ts';
import type { SampleEncoding } from '../../server/audio/encoders.ts';
import { joinBytes } from '../../server/audio/join-bytes.ts';
import { SAMPLE_RATES } from '../../server/speech/schema.ts';
import { likeness } from '../support/likeness.ts';
import { postJson, startListeners } from '../support/listeners.ts';

/** Of those that are offered: the lowest, the highest, an odd one and the model's own. */
const RATES = [8000, 22_050, 24_000, 48_000].filter((rate) => SAMPLE_RATES.includes(rate));
/** What models make. */
const FROM = 24_000;
const HEARD_RATE = 16_000;
const wav = parseWav(readFileSync(fileURLToPath(new URL('../fixtures/parley-transcribe/clip.wav', import.meta.url))));
/** A second of it. */
const clip = wavToMono(wav).slice(HEARD_RATE / 2, (3 * HEARD_RATE) / 2);
const speech = resample(clip, HEARD_RATE, FROM);

/** A file of the sound, handed over in pieces of these lengths in turn. */
async function encoded(encoding: SampleEncoding, to: number, lengths: readonly number[] = [FROM]) {
  const encoder = await createSampleEncoder(encoding, { from: FROM, to });
  const pieces: Uint8Array[] = [];
  for (let at = 0, i = 0; at < speech.length; i++) {
    const length = lengths[i % lengths.length]!;
    pieces.push(encoder.encode(speech.subarray(at, at + length)));
    at += length;
  }
  pieces.push(encoder.finish());
  const head = encoder.head?.();
  encoder.close?.();
  return { bytes: joinBytes(pieces), head };
}

function heard(bytes: Uint8Array): Float32Array {
  const folder = mkdtempSync(join(tmpdir(), 'audio-output-test-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const path = join(folder, 'samples');
  const { samples, warnings } = decodeUpload(bytes, path);
  expect(warnings).toEqual([]);
  const data = readFileSync(path);
  expect(samples.encoding).toBe('s16');
  return wavToMono({ data, encoding: 's16', channels: 1, frames: data.length / 2 });
}

/** Samples of the file that come before the first of the sound: formats without a place to say so leave them in. */
const DELAYS: Readonly<Partial<Record<SampleEncoding, number>>> = { aac: 1024 };

describe.each(['opus', 'flac', 'mp3', 'aac'] as const)('%s', (encoding) => {
  test.each(RATES)('at %i Hz is the sound, in full length', async (rate) => {
    const { bytes, head } = await encoded(encoding, rate);
    expect(head?.length ?? 0).toBeLessThan(bytes.length);
    bytes.set(head ?? []);
    const before = Math.round(((DELAYS[encoding] ?? 0) * HEARD_RATE) / rate);
    const sound = heard(bytes);
    // Whole frames.
    const padding = encoding in DELAYS ? (2 * 1024 * HEARD_RATE) / rate : 0;
    expect(sound.length).toBeGreaterThanOrEqual(clip.length + before - 1);
    expect(sound.length).toBeLessThanOrEqual(clip.length + before + padding + 1);
    const reference = resample(resample(speech, FROM, rate), rate, HEARD_RATE);
    expect(likeness(sound.subarray(before), reference)).toBeGreaterThan(0.93);
  });

  test('is the same file however the sound is cut', async () => {
    const whole = await encoded(encoding, 22_050);
    const cut = await encoded(encoding, 22_050, [1, 700, 5000, 37]);
    expect(Buffer.compare(cut.bytes, whole.bytes)).toBe(0);
    expect(cut.head).toEqual(whole.head);
  });

  // LAME ends its own silence.
  test.skipIf(encoding === 'mp3')('of nothing is a file without sound, or none', async () => {
    const encoder = await createSampleEncoder(encoding, { from: FROM, to: FROM });
    const bytes = encoder.finish();
    encoder.close?.();
    expect(() => heard(bytes)).toThrow(expect.objectContaining({ status: 400 }));
  });
});

test('flac loses nothing, and its header has the length and the sum of the samples', async () => {
  const { bytes, head } = await encoded('flac', FROM);
  // Without its head the length is open: 0.
  const total = (file: Uint8Array): number => Buffer.from(file).readUIntBE(21, 5) % 2 ** 36;
  expect([total(bytes), total(head!)]).toEqual([0, speech.length]);
  bytes.set(head!);
  const pcm = wavToMono(parseWav(writeWav(speech, FROM)));
  const back = heard(bytes);
  resample(pcm, FROM, HEARD_RATE).forEach((value, i) => expect(Math.abs(back[i]! - value)).toBeLessThan(2 / 0x8000));
});

describe('over HTTP', () => {
  const PATH = '/v1/audio/speech';
  const GOOD = { model: 'tts-1', input: 'Hello. World.', voice: 'nona', seed: 3 };
  const TYPES = { opus: 'audio/ogg; codecs=opus', flac: 'audio/flac', aac: 'audio/aac', mp3: 'audio/mpeg' } as const;

  test('each format has its type, its name and its length, and is the same streamed but for what only the end tells', async () => {
    const { speech: base } = await startListeners();
    for (const [format, type] of Object.entries(TYPES)) {
      const body = { ...GOOD, response_format: format };
      const whole = await postJson(base + PATH, body);
      expect(whole.headers).toMatchObject({
        'content-type': type,
        'content-length': String(whole.bytes.length),
        'content-disposition': `inline; filename="speech.${format}"`,
      });
      const streamed = await postJson(base + PATH, { ...body, stream_format: 'audio' });
      expect(streamed.headers['transfer-encoding']).toBe('chunked');
      // A FLAC file's header, and the first frame of 96 kbit/s at 24 kHz.
      const start = { flac: 42, mp3: 288 }[format] ?? 0;
      expect(Buffer.compare(streamed.bytes.subarray(start), whole.bytes.subarray(start)), format).toBe(0);
      // Two sentences of a tenth of a second; an MP3 file whose end was not known at its beginning keeps the padding there.
      const sound = heard(whole.bytes);
      const again = heard(streamed.bytes);
      if (format !== 'aac') expect(sound).toHaveLength(0.2 * HEARD_RATE);
      if (format === 'mp3') expect(again.length).toBeGreaterThan(sound.length);
      expect(likeness(again, sound)).toBeGreaterThan(0.999);
    }
  });

  test('answers come at the rate that is asked for', async () => {
    const { speech: base } = await startListeners();
    for (const rate of [8000, 48_000]) {
      const answer = await postJson(base + PATH, { ...GOOD, response_format: 'wav', sample_rate: rate });
      expect(parseWav(answer.bytes)).toMatchObject({ sampleRate: rate, frames: 0.2 * rate, missingBytes: 0 });
      const pcm = await postJson(base + PATH, { ...GOOD, response_format: 'pcm', sample_rate: rate });
      expect(pcm.headers['content-type']).toBe(`audio/pcm; rate=${rate}`);
      expect(pcm.bytes).toHaveLength(2 * 0.2 * rate);
    }
  });

  test('the official client gets opus and flac, whole and as a stream', async () => {
    const { speech: base } = await startListeners();
    const openai = new OpenAI({ baseURL: `${base}/v1`, apiKey: 'unused', maxRetries: 0 });
    for (const format of ['opus', 'flac'] as const) {
      const asked = { model: 'tts-1', input: 'Hello. World.', voice: 'alloy', response_format: format };
      const answer = await openai.audio.speech.create(asked);
      expect(heard(new Uint8Array(await answer.arrayBuffer())).length).toBe(0.2 * HEARD_RATE);
      const streamed = await openai.audio.speech.create({ ...asked, stream_format: 'audio' });
      const pieces: Uint8Array[] = [];
      for await (const piece of streamed.body as unknown as AsyncIterable<Uint8Array>) pieces.push(piece);
      expect(heard(joinBytes(pieces)).length).toBe(0.2 * HEARD_RATE);
    }
  });
});
