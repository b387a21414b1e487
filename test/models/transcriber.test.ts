/** The transcription task on the bundled checkpoint: audio in, events out. */
import { existsSync, mkdtempSync, readFileSync, readdirSync, readlinkSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import type { SampleFile, TranscriptionEvent, TranscriptionRequest } from '../../engine/api.ts';
import { resample } from '../../engine/audio/resample.ts';
import { parseWav, wavToMono } from '../../engine/audio/wav.ts';
import { floatStorage, resolveConfig } from '../../engine/config.ts';
import type { Device } from '../../engine/gpu/device.ts';
import { decoderSlotBytes } from '../../engine/models/whisper/decoder.ts';
import { loadWhisperModel } from '../../engine/models/whisper/load.ts';
import { WhisperRunner } from '../../engine/runner/whisper-runner.ts';
import { Synthesizer } from '../../engine/tasks/synthesizer.ts';
import { Tokenizer } from '../../engine/text/tokenizer.ts';
import { Transcriber } from '../../engine/tasks/transcriber.ts';
import { concatenated } from '../../engine/util/math.ts';
import { openModelFolder } from '../../engine/weights/open-model-folder.ts';
import { decodeUpload } from '../../server/audio/upload/decode.ts';
import { collect } from '../support/collect.ts';
import { testDevice } from '../support/device.ts';

const path = (name: string): string => fileURLToPath(new URL(`../../${name}`, import.meta.url));
const BUNDLED = path('models/parley-transcribe');
const SAMPLES = path('../shared/models/transcription/samples');
const RATE = 16000;

function readAudio(file: string): Float32Array {
  const wav = parseWav(readFileSync(file));
  return resample(wavToMono(wav), wav.sampleRate, RATE);
}

const clip = readAudio(path('test/fixtures/parley-transcribe/clip.wav'));
/** What PyTorch hears in the clip with as many beams as the checkpoint wants, and in the first sample clips of ../shared. */
const golden = JSON.parse(readFileSync(path('test/fixtures/parley-transcribe/golden.json'), 'utf8')) as {
  readonly beams: number;
  readonly text: string;
  readonly ids: readonly number[];
  readonly text_timestamps: string;
  readonly samples: readonly { readonly wav: string; readonly output: string }[];
};
const CLIP_TEXT = golden.text.trim();

let device: Device;
let transcriber: Transcriber;
beforeAll(async () => {
  device = await testDevice();
  const source = { path: BUNDLED, id: 'parley-transcribe' };
  transcriber = await Transcriber.load(device, device.platform, source, resolveConfig({}));
});
afterAll(async () => {
  await transcriber.close();
  device.close();
});

const openFiles = (): string[] =>
  readdirSync('/proc/self/fd').flatMap((fd) => {
    try {
      return [readlinkSync(`/proc/self/fd/${fd}`)];
    } catch {
      return [];
    }
  });

type Request = TranscriptionRequest<Float32Array | SampleFile>;

const events = (request: Request, signal = new AbortController().signal, task = transcriber): Promise<TranscriptionEvent[]> =>
  collect(task.transcribe(request, signal));

const transcriberOf = (runner: WhisperRunner, tokenizer: Tokenizer, maxQueued: number, fallbackLanguage?: string): Transcriber =>
  new Transcriber(transcriber.info, { runner, tokenizer, platform: device.platform, maxQueued, fallbackLanguage });

async function text(samples: Float32Array, task?: Transcriber): Promise<string> {
  const last = (await events({ samples }, undefined, task)).at(-1)!;
  return last.type === 'finish' ? last.text : `no finish but ${last.type}`;
}

/** The clip several times over, with hiss between and a second of digital silence before each: that is where the cuts belong. */
function repeated(count: number, gapSeconds: number): Float32Array {
  const gap = Math.round(gapSeconds * RATE);
  const out = new Float32Array(count * (gap + clip.length));
  for (let i = 0; i < count; i++) {
    const start = i * (gap + clip.length);
    for (let t = start; t < start + gap - RATE; t++) out[t] = 1e-4 * Math.sin(t * t);
    out.set(clip, start + gap);
  }
  return out;
}

/** Of the bundled checkpoint, as if it knew prompts. */
async function withPrompts(beams: number): Promise<Transcriber> {
  const loaded = await loadWhisperModel(device, await openModelFolder(device.platform, BUNDLED), floatStorage('f16'));
  const runner = new WhisperRunner(device, { ...loaded, tokens: { ...loaded.tokens, previous: 1406, beams } }, { maxRunning: 1 });
  return transcriberOf(runner, await Tokenizer.load(await openModelFolder(device.platform, BUNDLED)), 1);
}

describe('the transcriber', () => {
  // The first test: others load models of their own.
  test('compiles at load all that windows of any length and number take', async () => {
    const before = device.stats.pipelines;
    const long = repeated(12, 1);
    for (const seconds of [0.05, 0.7, 1.3, 2.9, 5.1, 7.7, 10, 11, 25, 35]) await text(long.subarray(0, seconds * RATE));
    expect(device.stats.pipelines).toBe(before);
  });

  test('sends start, a segment, finish', async () => {
    const found = await events({ samples: clip });
    expect(found.map(({ type }) => type)).toEqual(['start', 'segment', 'finish']);
    const [start, segment, finish] = found;
    expect(start).toEqual({ type: 'start', duration: clip.length / RATE, language: 'en' });
    expect(finish).toMatchObject({ type: 'finish', text: CLIP_TEXT, duration: clip.length / RATE, outputTokens: golden.ids.length });
    if (segment?.type !== 'segment') throw new Error('no segment');
    expect(segment.segment).toMatchObject({ id: 0, seek: 0, temperature: 0, start: 0, end: clip.length / RATE, tokens: golden.ids });
    expect(segment.segment.avgLogprob).toBeGreaterThan(-1.5);
    expect(segment.segment.avgLogprob).toBeLessThan(0);
  });

  test.each([
    'recorder.mp3', 'mp3-44100-stereo.mp3', 'm4a-44100-stereo.m4a', 'aac-22050.aac', 'webm-live.webm', 'ogg-opus.opus',
    'ogg-vorbis-44100.ogg', 'flac-16000-16.flac',
  ])('hears in %s what it hears in the WAV file it was made from', async (name) => {
    const folder = mkdtempSync(join(tmpdir(), 'transcriber-test-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const bytes = readFileSync(path(`test/fixtures/audio-formats/${name}`));
    const { samples } = decodeUpload(bytes, join(folder, 'samples'));
    expect((await events({ samples })).at(-1)).toMatchObject({ type: 'finish', text: CLIP_TEXT });
  }); // prettier-ignore

  test('times segments by the model when asked to', async () => {
    const [from, to] = [...golden.text_timestamps.matchAll(/<\|([\d.]+)\|>/g)].map(([, seconds]) => seconds);
    const found = await events({ samples: clip, timestamps: 'segment' });
    const segments = found.flatMap((event) => (event.type === 'segment' ? [event.segment] : []));
    expect(segments.map(({ start, end, text: said }) => [start.toFixed(2), end.toFixed(2), said.trim()])).toEqual([[from, to, CLIP_TEXT]]);
  });

  test('searches with several beams, creates no GPU object for it and reads a few tokens a beam and step', async () => {
    expect(golden.beams).toBeGreaterThan(1);
    await text(clip);
    const before = { ...device.stats };
    const [found] = (await events({ samples: clip })).filter((event) => event.type === 'segment');
    const { buffers, bindGroups, pipelines, submits, bytesRead } = device.stats;
    expect({ buffers, bindGroups, pipelines }).toEqual({
      buffers: before.buffers, bindGroups: before.bindGroups, pipelines: before.pipelines,
    }); // prettier-ignore
    const steps = golden.ids.length + 2;
    expect(submits - before.submits).toBeLessThan(2 * steps);
    expect(bytesRead - before.bytesRead).toBeLessThan(2 * steps * golden.beams * (golden.beams + 2) * 8);
    // What one beam would have heard is no likelier.
    const [greedy] = (await events({ samples: clip, temperature: 1e-6 })).filter((event) => event.type === 'segment');
    if (found?.type !== 'segment' || greedy?.type !== 'segment') throw new Error('no segment');
    expect(found.segment.avgLogprob).toBeGreaterThanOrEqual(greedy.segment.avgLogprob - 1e-5);
  });

  test('gives the same text alone and among three others', async () => {
    const noisy = clip.map((value, i) => value + 0.02 * Math.sin(i * i * 0.1));
    const others = Array.from({ length: 3 }, (_, i) => noisy.subarray(0, clip.length - 500 * i));
    const [found] = await Promise.all([text(clip), ...others.map((other) => text(other))]);
    expect(found).toBe(CLIP_TEXT);
  });

  test('makes room for more windows when they come, and hears in them what it hears in one', async () => {
    const folder = await openModelFolder(device.platform, BUNDLED);
    const model = await loadWhisperModel(device, folder, floatStorage('f16'));
    const other = transcriberOf(new WhisperRunner(device, model, { maxRunning: 4 }), await Tokenizer.load(folder), 4);
    expect(await text(clip, other)).toBe(CLIP_TEXT);
    const { buffers, bufferBytes } = device.stats;
    const [found] = await Promise.all([clip, clip, clip].map((samples) => text(samples, other)));
    expect(found).toBe(CLIP_TEXT);
    expect(device.stats.buffers).toBe(buffers);
    const { config, tokens } = model;
    expect(device.stats.bufferBytes - bufferBytes).toBe(3 * decoderSlotBytes(config, tokens.beams, config.windows.frames / 2));
    expect(await text(clip, other)).toBe(CLIP_TEXT);
    expect(device.errors).toEqual([]);
    await other.close();
  });

  test('cuts long audio at its pauses, decodes the windows side by side and stitches them in order', async () => {
    const samples = repeated(3, 28);
    const found = await events({ samples });
    const segments = found.flatMap((event) => (event.type === 'segment' ? [event.segment] : []));
    expect(segments.map(({ text: said }) => said.trim())).toEqual([CLIP_TEXT, CLIP_TEXT, CLIP_TEXT]);
    expect(segments.map(({ id }) => id)).toEqual(segments.map((_, i) => i));
    segments.slice(1).forEach(({ start }, i) => expect(start).toBeGreaterThanOrEqual(segments[i]!.end));
    expect(found.at(-1)).toMatchObject({ type: 'finish', text: [CLIP_TEXT, CLIP_TEXT, CLIP_TEXT].join(' ') });
  });

  test('does not hold up a short request by a long one that came first', async () => {
    const heard: string[] = [];
    let short: Promise<number> | undefined;
    for await (const { type } of transcriber.transcribe({ samples: repeated(12, 3) }, new AbortController().signal)) {
      if (type === 'start') short = text(clip).then((found) => heard.push(found));
      else heard.push(type);
    }
    await short;
    expect(heard.filter((one) => one === 'segment').length).toBeGreaterThan(8);
    expect(heard.indexOf(CLIP_TEXT)).toBeGreaterThanOrEqual(0);
    expect(heard.indexOf(CLIP_TEXT)).toBeLessThan(heard.length - 3);
  }, 120000);

  test('hears a file of samples, windows and all, as it hears them in memory, and closes it', async () => {
    const pcm = new Int16Array(repeated(2, 12).map((value) => Math.round(value * 0x7fff)));
    const samples = Float32Array.from(pcm, (value) => value / 0x8000);
    const wanted = await events({ samples, timestamps: 'segment' });
    expect(wanted.filter(({ type }) => type === 'segment')).toHaveLength(2);
    const folder = mkdtempSync(join(tmpdir(), 'transcriber-test-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    for (const [encoding, data] of [
      ['s16', pcm],
      ['f32', samples],
    ] as const) {
      // prettier-ignore
      const file = { path: join(folder, encoding), encoding, length: samples.length };
      writeFileSync(file.path, new Uint8Array(data.buffer));
      expect(await events({ samples: file, timestamps: 'segment' }), encoding).toEqual(wanted);
      if (process.platform === 'linux') expect(openFiles()).not.toContain(file.path);
    }
  });

  test('ends only the request whose file cannot be read', async () => {
    const missing = { path: join(tmpdir(), 'no such folder', 'samples'), encoding: 's16', length: 5 * RATE } as const;
    const [lost, heard] = await Promise.allSettled([events({ samples: missing }), text(clip)]);
    expect(lost).toMatchObject({ status: 'rejected', reason: { code: 'internal' } });
    expect(heard).toMatchObject({ status: 'fulfilled', value: CLIP_TEXT });
    expect(await text(clip)).toBe(CLIP_TEXT);
  });

  test('hears a phrase as often as it is said in 80 s', async () => {
    const source = { path: path('models/parley-speech') };
    const synthesizer = await Synthesizer.load(device, device.platform, source, resolveConfig({}));
    const said = { text: 'Hello there, how are you today?', voice: 'aus-male-3', seed: 1 };
    const spoken: Float32Array[] = [];
    for await (const event of synthesizer.synthesize(said, new AbortController().signal))
      if (event.type === 'audio') spoken.push(event.samples);
    await synthesizer.close();
    const phrase = resample(spoken[0]!, synthesizer.info.sampleRate!, RATE);
    const samples = new Float32Array(80 * RATE);
    for (let i = 0; i < 25; i++) samples.set(phrase, i * 3.2 * RATE);
    const heard = (await text(samples)).toLowerCase().replace(/[^a-z ]/g, '');
    expect(heard).toBe(Array.from({ length: 25 }, () => 'hello there how are you today').join(' '));
  }, 120000);

  test('answers silence with no text, without touching the GPU', async () => {
    const before = device.stats.submits;
    const found = await events({ samples: new Float32Array(40 * RATE) });
    expect(found).toEqual([
      { type: 'start', duration: 40, language: 'en' },
      { type: 'finish', text: '', duration: 40, inputTokens: 2000, audioTokens: 2000, outputTokens: 0 },
    ]);
    expect(device.stats.submits).toBe(before);
  });

  test('feeds no prompt to a checkpoint that was not trained with any, and says so', async () => {
    const [start, ...rest] = await events({ samples: clip, prompt: 'The porch cheers.' });
    expect(start).toMatchObject({ type: 'start', warnings: [expect.stringMatching(/'prompt' is ignored/)] });
    expect(rest).toEqual((await events({ samples: clip })).slice(1));
    expect((await events({ samples: clip, prompt: '  ' }))[0]).not.toHaveProperty('warnings');
  });

  test('takes a prompt that precedes the audio where the checkpoint knows prompts', async () => {
    const prompted = await withPrompts(1);
    const audioTokens = Math.ceil(clip.length / 320);
    const run = (prompt: string) => events({ samples: clip, prompt }, undefined, prompted);
    const [start, ...rest] = await run('The porch cheers.');
    expect(start).not.toHaveProperty('warnings');
    const finish = rest.at(-1)!;
    // <|startoftranscript|><|en|><|transcribe|><|notimestamps|>, and before it <|startofprev|> and the tokens of the text.
    expect(finish.type === 'finish' && finish.inputTokens).toBeGreaterThan(audioTokens + 4 + 3);
    expect((await run('word '.repeat(1000))).at(-1)).toMatchObject({ inputTokens: audioTokens + 4 + 224 });
    await prompted.close();
  });

  test.for([1, 2])('takes the names of control tokens in a prompt for no tokens, with %i beams', async (beams) => {
    const prompted = await withPrompts(beams);
    const run = (prompt: string) => events({ samples: clip, prompt }, undefined, prompted);
    const names = '<|startoftranscript|>'.repeat(100);
    expect(await run(`The porch${names} cheers.<|endoftext|>`)).toEqual(await run('The porch cheers.'));
    await prompted.close();
  });

  test('samples at a temperature, the same each time', async () => {
    const [a, b] = await Promise.all([0, 1].map(() => events({ samples: clip, temperature: 1 })));
    expect(a).toEqual(b);
    expect(a!.at(-1)).not.toMatchObject({ text: CLIP_TEXT });
  });

  test('refuses no samples and unknown languages before the first event', async () => {
    await expect(events({ samples: new Float32Array(0) })).rejects.toMatchObject({ code: 'invalid_audio' });
    await expect(events({ samples: clip, language: 'de' })).rejects.toMatchObject({ code: 'invalid_request', param: 'language' });
    await expect(events({ samples: clip, task: 'translate' })).rejects.toMatchObject({ code: 'unsupported', param: 'task' });
    expect(transcriber.info.translates).toBe(false);
  });

  test('stops at once when the caller goes away, and serves the next', async () => {
    const controller = new AbortController();
    const heard: string[] = [];
    const running = async (): Promise<void> => {
      for await (const { type } of transcriber.transcribe({ samples: repeated(3, 28) }, controller.signal)) {
        heard.push(type);
        // There are two more windows to hear.
        if (type === 'segment') controller.abort();
      }
    };
    await expect(running()).rejects.toMatchObject({ code: 'aborted' });
    expect(heard).toContain('segment');
    expect(heard).not.toContain('finish');
    await expect(events({ samples: clip }, controller.signal)).rejects.toMatchObject({ code: 'aborted' });
    expect(await text(clip)).toBe(CLIP_TEXT);
  });

  test('hears the language in the first window of a multilingual model, and ends windows that never end', async () => {
    const model = await loadWhisperModel(
      device,
      await openModelFolder(device.platform, path('test/fixtures/whisper-tiny-random')),
      floatStorage('f32'),
    );
    const runner = new WhisperRunner(device, model, { maxRunning: 2 });
    // The fixture has no tokenizer: any that knows its ids will do.
    const tokenizer = await Tokenizer.load(await openModelFolder(device.platform, BUNDLED));
    const tiny = transcriberOf(runner, tokenizer, 1);
    const part = clip.subarray(0, 20000);
    const samples = concatenated([part, part]);
    const run = (language?: string): Promise<TranscriptionEvent[]> =>
      events({ samples, timestamps: 'segment', ...(language ? { language } : {}) }, undefined, tiny);
    const [found, refused] = await Promise.allSettled([run(), run()]);
    expect(refused).toMatchObject({ status: 'rejected', reason: { code: 'queue_full' } });
    const heard = found.status === 'fulfilled' ? found.value : [];
    expect(heard[0]).toMatchObject({ type: 'start', language: expect.stringMatching(/^(en|de)$/) });
    // Of two the likelier.
    const detected = heard[0]?.type === 'start' ? heard[0].detected : undefined;
    expect(detected?.probability).toBeGreaterThanOrEqual(0.5);
    expect(detected?.probability).toBeLessThan(1);
    // Its end is suppressed: three windows of half its 100 positions.
    expect(heard.at(-1)).toMatchObject({ type: 'finish', outputTokens: 150 });
    // The same events when the language is said.
    const said = await run(detected!.language);
    expect(said[0]).toEqual({ type: 'start', duration: samples.length / RATE, language: detected!.language });
    expect(said.slice(1)).toEqual(heard.slice(1));
    const other = await run('de');
    expect(other[0]).toMatchObject({ language: 'de' });
    await tiny.close();
    await expect(run()).rejects.toMatchObject({ code: 'shutting_down' });
  });

  test('takes the language that the server expects where a model is less than half sure of what it hears', async () => {
    const folder = await openModelFolder(device.platform, path('test/fixtures/whisper-tiny-random'));
    const loaded = await loadWhisperModel(device, folder, floatStorage('f32'));
    const tokenizer = await Tokenizer.load(await openModelFolder(device.platform, BUNDLED));
    // Random weights are sure of none of many languages, whatever their tokens stand for.
    const others = Array.from({ length: 170 }, (_, id) => [`x${id}`, id] as const);
    const languages = new Map([...loaded.tokens.languages, ...others]);
    const model = { ...loaded, tokens: { ...loaded.tokens, languages } };
    const starts: TranscriptionEvent[] = [];
    for (const expected of [undefined, 'en', 'de']) {
      const task = transcriberOf(new WhisperRunner(device, model, { maxRunning: 1 }), tokenizer, 1, expected);
      starts.push((await events({ samples: clip.subarray(0, 20000) }, undefined, task))[0]!);
      await task.close();
    }
    const [guessed, ...settled] = starts.map((event) => (event.type === 'start' ? event : undefined));
    expect(guessed!.detected!.probability).toBeLessThan(0.5);
    expect(guessed!.language).toBe(guessed!.detected!.language);
    expect(settled.map((start) => start!.language)).toEqual(['en', 'de']);
    for (const start of settled) expect(start!.detected).toEqual(guessed!.detected);
  });

  test('says how likely each token was, if asked, with beams and without', async () => {
    const of = async (request: Partial<TranscriptionRequest>) => {
      const found = (await events({ samples: clip, ...request })).flatMap((event) => (event.type === 'segment' ? [event.segment] : []));
      return found[0]!;
    };
    for (const timestamps of ['none', 'segment'] as const) {
      for (const temperature of [0, 1e-6]) {
        const { logprobs, tokens, text: said, avgLogprob } = await of({ logprobs: true, timestamps, temperature });
        expect(logprobs!.map(({ token }) => token).join('')).toBe(said);
        expect(logprobs).toHaveLength(tokens.length);
        const sum = logprobs!.reduce((total, { logprob }) => total + logprob, 0);
        expect(Math.max(...logprobs!.map(({ logprob }) => logprob))).toBeLessThanOrEqual(0);
        // The mean counts the times and the end too.
        expect(sum).toBeLessThan(0);
        expect(sum).toBeGreaterThanOrEqual(avgLogprob * (tokens.length + 3) - 1e-4);
      }
    }
    expect(await of({})).not.toHaveProperty('logprobs');
  });

  test.skipIf(!existsSync(SAMPLES))(
    'writes what PyTorch wrote for the sample clips, in full windows (skipped without ../shared)',
    async () => {
      const model = await loadWhisperModel(device, await openModelFolder(device.platform, BUNDLED), floatStorage('f16'));
      const { frames, mel } = model.config;
      // transformers pads every window.
      const windows = { samples: frames * mel.hop, frames, padding: undefined };
      const runner = new WhisperRunner(device, { ...model, config: { ...model.config, windows } }, { maxRunning: 4 });
      const padding = transcriberOf(runner, await Tokenizer.load(await openModelFolder(device.platform, BUNDLED)), 5);
      const found = await Promise.all(golden.samples.map(({ wav }) => text(readAudio(`${SAMPLES}/${wav}`), padding)));
      expect(found).toEqual(golden.samples.map(({ output }) => output.trim()));
      await padding.close();
    },
  );
});
