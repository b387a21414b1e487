/** Uploads in every format that ffmpeg made of one clip (test/tools/audio_formats.sh): what is heard of them, broken ones, and the forms they come in. */
import { createReadStream, mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import OpenAI, { toFile } from 'openai';
import { describe, expect, onTestFinished, test } from 'vitest';
import { EngineError } from '../../engine/errors.ts';
import { parseWav, wavToMono } from '../../engine/audio/wav.ts';
import { decodeUpload, decodedBytes, sampleBytes } from '../../server/audio/upload/decode.ts';
import type { Decoded, DecodeOptions } from '../../server/audio/upload/decode.ts';
import { createSampleEncoder } from '../../server/audio/encoders.ts';
import { joinBytes } from '../../server/audio/join-bytes.ts';
import { HttpError } from '../../server/http/errors.ts';
import { caseRng, choose } from '../fuzz/rng.ts';
import type { Rng } from '../fuzz/rng.ts';
import { likeness } from '../support/likeness.ts';
import { send, startListeners } from '../support/listeners.ts';

const FIXTURES = fileURLToPath(new URL('../fixtures/', import.meta.url));
const FORMATS = join(FIXTURES, 'audio-formats');
const RATE = 16_000;
/** The clip that all were made of: 2.01 seconds. */
const clip = wavToMono(parseWav(readFileSync(join(FIXTURES, 'parley-transcribe/clip.wav'))));
const files = readdirSync(FORMATS).sort();

/** Where a file is not the clip from its first sample to its last: seconds of the clip in it, and what comes before (samples at 16 kHz) and after it. */
const SHAPES: Readonly<Record<string, { readonly seconds?: number; readonly before?: number; readonly after?: number }>> = {
  // ADTS, MPEG audio without a LAME header, Matroska, FLV and MP4 fragments as ffmpeg writes them do not say what the encoder put before and after. ADPCM and GSM
  // are whole blocks.
  'aac-22050.aac': { before: 743, after: 533 },
  'aac-48000-stereo.aac': { before: 341, after: 267 },
  'mp2-16000.mp2': { before: 481, after: -385 },
  'mp3-8000-no-header.mp3': { before: 2210, after: 190 },
  'mp3-48000-vbr-no-header.mp3': { before: 368, after: 0 },
  'mkv-aac.mkv': { before: 1024, after: 608 },
  'mkv-mp3.mkv': { before: 1105, after: 143 },
  'mp4-fragments.mp4': { before: 341, after: 267 },
  'alac-16000.m4a': { seconds: 0.5 },
  'alac-44100-24.m4a': { seconds: 0.2 },
  'mkv-flac.mkv': { seconds: 0.5 },
  'ogg-flac.oga': { seconds: 0.5 },
  'flac-48000-24-stereo.flac': { seconds: 0.1 },
  'flac-8000-5.1.flac': { seconds: 0.2 },
  'aiff-16000-16.aiff': { seconds: 0.5 },
  'aiff-44100-24-stereo.aiff': { seconds: 0.1 },
  'aifc-8000-little.aifc': { seconds: 0.5 },
  'aifc-22050-float.aifc': { seconds: 0.1 },
  'caf-16000-16.caf': { seconds: 0.5 },
  'mov-44100-24-stereo.mov': { seconds: 0.1 },
  'mov-16000-float.mov': { seconds: 0.2 },
  'mov-8000-alaw.mov': { seconds: 0.5 },
  'mov-8000-8.mov': { seconds: 0.5 },
  'mp4-16000-pcm.mp4': { seconds: 0.5 },
  'mp4-96000-pcm-24-stereo.mp4': { seconds: 0.05 },
  'mp4-8000-float-fragments.mp4': { seconds: 0.5 },
  'm4a-7.1.m4a': { seconds: 0.5 },
  'caf-alac.caf': { seconds: 0.5 },
  'caf-8000-8.caf': { seconds: 0.5 },
  'caf-8000-alaw.caf': { seconds: 0.5 },
  'caf-8000-mulaw-stereo.caf': { seconds: 0.5 },
  'aifc-22050-ima4-stereo.aifc': { seconds: 0.5, after: 33 },
  'aifc-8000-mulaw.aifc': { seconds: 0.5 },
  'wav-8000-mulaw-stereo.wav': { seconds: 0.5 },
  'wav-48000-one-silent.wav': { seconds: 0.2 },
  'wav-16000-opposite.wav': { seconds: 0.2 },
  'flac-16000-opposite.flac': { seconds: 0.2 },
  'wav-16000-rf64.wav': { seconds: 0.2 },
  'wav-8000-adpcm-ms.wav': { after: 416 },
  'wav-22050-adpcm-ima-stereo.wav': { seconds: 0.5, after: 118 },
  'wav-8000-gsm.wav': { after: 480 },
  'wav-22050-mp3.wav': { before: 801, after: 58 },
  'w64-48000-stereo.w64': { seconds: 0.1 },
  'w64-8000-adpcm-ms.w64': { seconds: 0.5, after: 144 },
  'au-8000-mulaw.au': { seconds: 0.5 },
  'au-44100-24-stereo.au': { seconds: 0.1 },
  'au-16000-float.au': { seconds: 0.2 },
  'flv-aac.flv': { before: 371, after: 163 },
  'flv-mp3.flv': { before: 801, after: 58 },
  'flv-8000-mulaw.flv': { seconds: 0.5 },
  'film.flv': { before: 743, after: 534 },
  'm4a-5.1.m4a': { seconds: 1 },
  'opus-5.1-60ms.mp4': { seconds: 1 },
  // The clip, and then again; the second MP3 file has its delay at its place, and its header says nothing there.
  'joined.mp3': { after: clip.length + 1105 },
  'chained.ogg': { after: clip.length },
};

function decode(bytes: Uint8Array, options?: DecodeOptions): Decoded & { readonly heard: Float32Array } {
  const folder = mkdtempSync(join(tmpdir(), 'audio-input-test-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const path = join(folder, 'samples');
  const decoded = decodeUpload(bytes, path, options);
  const data = readFileSync(path);
  expect(data.length).toBe(sampleBytes(decoded.samples));
  const { encoding, length } = decoded.samples;
  return { ...decoded, heard: wavToMono({ data, encoding, channels: 1, frames: length }) };
}

const read = (name: string): Uint8Array => readFileSync(join(FORMATS, name));

describe('a file', () => {
  test.each(files)('%s is heard in full length and at its place', (name) => {
    const { seconds = clip.length / RATE, before = 0, after = 0 } = SHAPES[name] ?? {};
    const { heard, warnings, samples } = decode(read(name));
    expect(warnings).toEqual([]);
    expect(Math.abs(heard.length - (seconds * RATE + before + after)) / RATE).toBeLessThan(0.01);
    // 16 kbit/s Opus changes the wave most.
    expect(likeness(heard.subarray(before), clip.subarray(0, seconds * RATE))).toBeGreaterThan(0.8);
    expect(decodedBytes(read(name))).toBeGreaterThanOrEqual(sampleBytes(samples));
  });

  test('that is cut short is heard as far as it goes, and says so', () => {
    for (const [name, share] of [
      ['mp3-16000-mono.mp3', 0.5],
      ['flac-16000-16.flac', 0.5],
      ['ogg-opus.opus', 0.7],
    ] as const) {
      const { heard } = decode(read(name).slice(0, read(name).length * share));
      expect(heard.length, name).toBeGreaterThan(0.3 * clip.length);
      expect(likeness(heard, clip), name).toBeGreaterThan(0.8);
    }
    const flac = read('flac-16000-16.flac');
    expect(decode(flac.slice(0, flac.length * 0.5)).warnings).toEqual([
      'the FLAC file is cut short or damaged: it is transcribed as far as it could be read',
    ]);
  });

  test.each([
    ['m4a-fast-start.m4a', 0],
    ['mp4-fragments.mp4', 341],
    ['webm-opus.webm', 0],
    ['film.webm', 0],
    ['mkv-flac.mkv', 0],
    ['mkv-aac.mkv', 1024],
    ['mp4-8000-float-fragments.mp4', 0],
    ['aiff-16000-16.aiff', 0],
    ['caf-16000-16.caf', 0],
    ['caf-8000-alaw.caf', 0],
    ['aifc-22050-ima4-stereo.aifc', 0],
    ['au-8000-mulaw.au', 0],
    ['w64-48000-stereo.w64', 0],
    ['wav-8000-adpcm-ms.wav', 0],
    ['flv-aac.flv', 371],
  ])('%s that ends in the middle of its sound is heard as far as it goes, and says so', (name, before) => {
    const whole = decode(read(name)).heard;
    const { heard, warnings } = decode(read(name).slice(0, 0.7 * read(name).length));
    expect(heard.length / whole.length).toBeGreaterThan(0.4);
    expect(heard.length / whole.length).toBeLessThan(0.85);
    expect(likeness(heard.subarray(before), clip)).toBeGreaterThan(0.8);
    expect(warnings).toEqual([expect.stringMatching(/^the \w+ file is cut short/)]);
  });

  /** What is at the place at which a tenth of each file is taken out: sound, behind which more sound has headers of its own. */
  test.each([
    ['webm-live.webm', 0.35],
    ['mp4-fragments.mp4', 0.5],
    ['flv-aac.flv', 0.5],
    ['chained.ogg', 0.3],
  ])('%s that lacks a piece of its middle is heard as far as it can be read, and says so', (name, from) => {
    const whole = read(name);
    const { heard, warnings } = decode(joinBytes([whole.subarray(0, from * whole.length), whole.subarray((from + 0.1) * whole.length)]));
    expect(heard.length).toBeGreaterThan(0);
    expect(heard.length).toBeLessThan(0.9 * decode(whole).heard.length);
    expect(warnings).toContainEqual(expect.stringMatching(/^the \w+ file is cut short or damaged/));
  });

  test('with padding behind its sound is whole', () => {
    for (const name of ['mp4-fragments.mp4', 'ogg-opus.opus'])
      expect(decode(joinBytes([read(name), new Uint8Array(5000)])).warnings, name).toEqual([]);
  });

  test('that was cut out of a longer one is heard from its first whole frame', () => {
    for (const [name, frame] of [
      ['mp3-8000-no-header.mp3', 1152],
      ['mp2-16000.mp2', 1152],
      ['aac-22050.aac', 743],
      ['aac-48000-stereo.aac', 341],
    ] as const) {
      const whole = decode(read(name)).heard;
      const { heard } = decode(read(name).subarray(1));
      expect(Math.abs(whole.length - frame - heard.length), name).toBeLessThan(3);
      expect(likeness(heard, whole.subarray(whole.length - heard.length)), name).toBeGreaterThan(0.95);
      expect(decodedBytes(read(name).subarray(1)), name).toBeGreaterThan(0);
    }
    // Players pass over silence and tags of other kinds too.
    expect(decode(joinBytes([new Uint8Array(3000), read('mp3-8000-no-header.mp3')])).heard).toEqual(
      decode(read('mp3-8000-no-header.mp3')).heard,
    );
  });

  test('with few frames of MPEG sound somewhere is not taken for it', () => {
    const sound = read('mp2-16000.mp2');
    for (const [bytes, name] of [
      [joinBytes([new Uint8Array(100), sound.subarray(0, 3 * 288), new Uint8Array(5000)]), 'no known audio format'],
      [joinBytes([new Uint8Array(70_000), sound]), 'no known audio format'],
      [joinBytes([Buffer.from('\0\0\x01\xba', 'latin1'), sound]), 'MPEG video'],
    ] as const) {
      expect(() => decode(bytes)).toThrow(
        expect.objectContaining({ status: 400, message: expect.stringContaining(`the file is ${name};`) }),
      );
      expect(decodedBytes(bytes)).toBe(0);
    }
  });

  test('of which no packet can be decoded is refused as damaged, and not as one without samples', () => {
    const bytes = Uint8Array.from(read('m4a-fast-start.m4a'));
    bytes.fill(0, Buffer.from(bytes).indexOf('mdat') + 4);
    expect(() => decode(bytes)).toThrow(
      expect.objectContaining({ code: 'unsupported_audio', message: 'the MP4 file is damaged or cut short: nothing in it can be decoded' }),
    );
  });

  test('that ends before its sound is refused with its format', () => {
    for (const [name, format] of [
      ['webm-opus.webm', 'WebM'],
      ['m4a-16000-mono.m4a', 'MP4'],
      ['ogg-vorbis-44100.ogg', 'Ogg'],
    ] as const) {
      expect(() => decode(read(name).slice(0, 60)), name).toThrow(
        expect.objectContaining({ status: 400, code: 'unsupported_audio', message: expect.stringContaining(`the ${format} file`) }),
      );
    }
  });

  test('that takes too long is given up', () => {
    let time = 0;
    expect(() => decode(read('mp3-16000-mono.mp3'), { now: () => (time += 50_000) })).toThrow(
      expect.objectContaining({ status: 413, message: 'the MP3 file takes longer than 600 seconds to decode' }),
    );
  });

  test('of few bytes and much silence is decoded no further than its size allows', async () => {
    const encoder = await createSampleEncoder('flac', { from: RATE, to: RATE });
    const silence = new Float32Array(10 * RATE);
    const bytes = joinBytes([...Array.from({ length: 70 }, () => encoder.encode(silence)), encoder.finish()]);
    const seconds = 600 + Math.ceil(bytes.length / 500);
    expect(seconds).toBeLessThan(700);
    expect(() => decode(bytes)).toThrow(expect.objectContaining({ status: 413, message: expect.stringContaining(`${seconds} seconds`) }));
  });

  test('broken in any way is heard or refused, and nothing hangs', () => {
    const rng = caseRng(20, 0);
    for (const name of files) {
      for (let round = 0; round < 4; round++) {
        const bytes = broken(read(name), rng, round);
        try {
          expect(decode(bytes).heard.length).toBeGreaterThan(0);
        } catch (error) {
          const isRefusal = (error instanceof HttpError && [400, 413].includes(error.status)) || error instanceof EngineError;
          if (!isRefusal) throw new Error(`${name}, round ${round}`, { cause: error });
        }
      }
    }
  });
});

/** Cut short, with bits turned anywhere, with bits turned in its headers, or with a field made extreme. */
function broken(bytes: Uint8Array, rng: Rng, round: number): Uint8Array {
  if (round === 0) return bytes.slice(0, rng.integer(bytes.length));
  const changed = Uint8Array.from(bytes);
  const room = round === 1 ? bytes.length : Math.min(600, bytes.length);
  if (round === 3) changed.fill(choose(rng, [0, 0x7f, 0x80, 0xff]), rng.integer(room), rng.integer(room) + 4);
  else for (let i = 0; i < 8; i++) changed[rng.integer(room)]! ^= 1 << rng.integer(8);
  return changed;
}

describe('an upload', () => {
  const heard = 'Heard 2.01 seconds.';

  test("as Open WebUI's recorder posts it is heard, whatever its name and type say", async () => {
    const { transcription, engine } = await startListeners();
    for (const [filename, type] of [
      ['audio.mp3', 'audio/mpeg'],
      ['recording.wav', 'audio/wav'],
      ['blob', 'application/octet-stream'],
    ]) {
      const body = Buffer.concat([
        Buffer.from('--b1\r\nContent-Disposition: form-data; name="model"\r\n\r\nwhisper-1\r\n'),
        Buffer.from(`--b1\r\nContent-Disposition: form-data; name="file"; filename="${filename}"\r\nContent-Type: ${type}\r\n\r\n`),
        read('recorder.mp3'),
        Buffer.from('\r\n--b1--\r\n'),
      ]);
      const headers = { 'content-type': 'multipart/form-data; boundary=b1' };
      const { status, json } = await send(`${transcription}/v1/audio/transcriptions`, { body, headers });
      expect([status, json.text]).toEqual([200, heard]);
    }
    expect(engine.transcriptions.map(({ samples }) => samples.length)).toEqual([clip.length, clip.length, clip.length]);
  });

  test('by the official client is heard, from a file and from memory', async () => {
    const { transcription } = await startListeners();
    const openai = new OpenAI({ baseURL: `${transcription}/v1`, apiKey: 'unused', maxRetries: 0 });
    const model = 'whisper-1';
    const mp3 = createReadStream(join(FORMATS, 'mp3-44100-stereo.mp3'));
    expect((await openai.audio.transcriptions.create({ file: mp3, model })).text).toBe(heard);
    const webm = await toFile(read('webm-live.webm'), 'speech.webm');
    expect((await openai.audio.transcriptions.create({ file: webm, model })).text).toBe(heard);
    expect(
      await openai.audio.transcriptions.create({ file: await toFile(read('m4a-16000-mono.m4a')), model, response_format: 'text' }),
    ).toBe(`${heard}\n`);
  });
});
