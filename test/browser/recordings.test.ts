/** Sound files before they are transcribed: how they are read, and how long ones are sent. What needs no browser. */
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import type { TranscriptionEvent, TranscriptionRequest } from '../../engine/api.ts';
import { resample } from '../../engine/audio/resample.ts';
import { parseWav, wavToMono } from '../../engine/audio/wav.ts';
import { RemoteEngine } from '../../web/src/backend/remote-engine.ts';
import { checkLength } from '../../web/src/audio/limits.ts';
import { PeakMeter, peaksOf } from '../../web/src/audio/peaks.ts';
import { isWavBlob, openWavBlob, openWavBlobs, readFrames } from '../../web/src/audio/wav-blob.ts';
import type { DecodeAnswer, DecodeMessage } from '../../web/src/worker/decode-protocol.ts';
import { PIECE_SECONDS, transcribeInPieces } from '../../web/src/transcribe/pieces.ts';
import { wavFile } from '../support/wav-file.ts';

const RATE = 16000;

/** A tone with a pause of a fifth of a second every three. */
function talk(seconds: number): Float32Array {
  return Float32Array.from({ length: seconds * RATE }, (_, i) => (i % (3 * RATE) < 0.2 * RATE ? 0 : 0.3 * Math.sin(i / 20)));
}

/** A chunk of so many bytes, with its padding. */
function chunk(id: string, size: number): Uint8Array<ArrayBuffer> {
  const bytes = Buffer.alloc(8 + size + (size & 1));
  bytes.write(id, 'latin1');
  bytes.writeUInt32LE(size, 4);
  return bytes;
}

describe('a WAV file on disk', () => {
  const samples = Float32Array.from({ length: 999 * 3 }, (_, i) => Math.sin(i / 7));
  const LIST = { id: 'LIST', bytes: new Uint8Array(100_001) };

  test.each(['u8', 's16', 's24', 's32', 'f32', 'f64'] as const)(
    '%s, with three channels, is read in pieces as in one',
    async (encoding) => {
      const bytes = wavFile(samples, { encoding, sampleRate: 44100, channels: 3, extensible: true, extraChunks: [LIST] });
      const file = new Blob([bytes]);
      expect(await isWavBlob(file)).toBe(true);
      const wav = await openWavBlob(file);
      expect(wav).toMatchObject({ frames: 999, format: { encoding, sampleRate: 44100, channels: 3 } });
      const pieces = await Promise.all([readFrames(wav, 0, 500), readFrames(wav, 500, 999)]);
      expect(Float32Array.from(pieces.flatMap((piece) => [...piece]))).toEqual(wavToMono(parseWav(bytes)));
    },
  );

  test('without its length, or cut short, has the frames that are there', async () => {
    for (const declaredSize of [0, 0xffff_ffff, 1e6]) {
      const wav = await openWavBlob(new Blob([wavFile(samples, { encoding: 's16', sampleRate: RATE, declaredSize })]));
      expect(wav.frames).toBe(samples.length);
    }
  });

  test('that others were joined to is read with them, each at its own rate, behind its last chunks', async () => {
    const first = wavFile(samples.subarray(0, 11), { encoding: 'u8', sampleRate: 8000 });
    const second = wavFile(samples, { encoding: 's16', sampleRate: 44100, channels: 3 });
    const parts = [first, chunk('LIST', 7), second, chunk('fact', 4), first.subarray(0, -1), first];
    const wavs = await openWavBlobs(new Blob(parts));
    expect(wavs.map(({ frames, format }) => [frames, format.sampleRate])).toEqual([
      [11, 8000],
      [999, 44100],
      [11, 8000],
      [11, 8000],
    ]);
    expect(await readFrames(wavs[1]!, 0, 999)).toEqual(wavToMono(parseWav(second)));
    expect(await readFrames(wavs[3]!, 0, 11)).toEqual(wavToMono(parseWav(first)));
  });

  test('with a tag, an unknown chunk, padding or rubbish behind it is one file', async () => {
    const whole = wavFile(samples, { encoding: 's16', sampleRate: RATE });
    for (const rest of [chunk('LIST', 100), chunk('id3 ', 7), new Uint8Array(1 << 20), new Uint8Array(999).fill(7), whole.subarray(0, 8)])
      expect(await openWavBlobs(new Blob([whole, rest]))).toHaveLength(1);
  });

  test('that is none, or has no samples, is refused in words', async () => {
    expect(await isWavBlob(new Blob(['ID3 something else']))).toBe(false);
    await expect(openWavBlob(new Blob(['ID3 something else']))).rejects.toThrow(/RIFF\/WAVE header/);
    const whole = wavFile(samples, { encoding: 's16', sampleRate: RATE });
    await expect(openWavBlob(new Blob([whole.subarray(0, 36)]))).rejects.toThrow(/no data chunk/);
  });

  test('of a day is refused with the limit, without a look at its samples', async () => {
    const header = wavFile([], { encoding: 's16', sampleRate: RATE, declaredSize: 86_400 * RATE * 2 });
    const read: number[] = [];
    const slice = (from: number, to: number): Blob => {
      read.push(to);
      return new Blob([header.subarray(from, to)]);
    };
    const wav = await openWavBlob({ size: header.length + 86_400 * RATE * 2, slice } as unknown as Blob);
    expect(() => checkLength(wav.frames / wav.format.sampleRate)).toThrow('it lasts 24 hours, and at most 2 hours are transcribed at once');
    expect(Math.max(...read)).toBeLessThanOrEqual(header.length);
    expect(() => checkLength(2 * 3600)).not.toThrow();
    expect(() => checkLength(2 * 3600 + 1)).toThrow('it lasts 2 hours 1 minutes');
  });
});

describe('the worker that decodes WAV files', () => {
  /** What it answers to a file. */
  async function decode(file: Blob): Promise<readonly DecodeAnswer[]> {
    const answers: DecodeAnswer[] = [];
    let ask: (event: { readonly data: DecodeMessage }) => void = () => {};
    const ended = new Promise<void>((resolve) => {
      vi.stubGlobal('self', {
        addEventListener: (_type: string, listener: typeof ask) => (ask = listener),
        postMessage: (answer: DecodeAnswer) => {
          answers.push(answer);
          if (answer.type !== 'progress') resolve();
        },
      });
    });
    onTestFinished(() => void vi.unstubAllGlobals());
    vi.resetModules();
    await import('../../web/src/worker/decode-worker.ts');
    ask({ data: { file, rate: RATE, maxSeconds: 7200 } });
    await ended;
    return answers;
  }

  test('gives those that were joined one after the other, each resampled by itself, and says how far it is', async () => {
    const tone = (rate: number): Float32Array => Float32Array.from({ length: 1001 }, (_, i) => Math.sin((i * 2 * Math.PI * 440) / rate));
    const files = [8000, 44100, RATE].map((sampleRate) => wavFile(tone(sampleRate), { encoding: 'f32', sampleRate }));
    const answers = await decode(new Blob(files));
    const { samples } = answers.at(-1) as Extract<DecodeAnswer, { type: 'decoded' }>;
    const expected = [8000, 44100, RATE].flatMap((rate) => [...resample(tone(rate), rate, RATE)]);
    expect(samples).toEqual(Float32Array.from(expected));
    const done = answers.flatMap((answer) => (answer.type === 'progress' ? [answer.done] : []));
    expect(done).toEqual(done.toSorted((a, b) => a - b));
    expect([done.length > 3, done.at(-1)]).toEqual([true, 1]);
  });

  test('gives nothing of a file without samples, and no share that is no number', async () => {
    const answers = await decode(new Blob([wavFile([], { encoding: 's16', sampleRate: 8000 })]));
    expect(answers.at(-1)).toMatchObject({ type: 'decoded', samples: new Float32Array(0) });
    for (const answer of answers) if (answer.type === 'progress') expect(answer.done).toBeLessThanOrEqual(1);
  });
});

test.each([1, 7, 2399, 2400, 2401, 4801, 50_000])(
  'the levels of %s samples that come in blocks are the peaks of at most 2400 parts',
  (length) => {
    const samples = Float32Array.from({ length }, (_, i) => Math.sin(i * 0.37) * Math.sin(i / 1000));
    const levelsOf = (sound: Float32Array): Float32Array => {
      const step = [1, 2, 4, 8, 16, 32].find((step) => sound.length <= 2400 * step)!;
      const most = Array.from({ length: Math.ceil(sound.length / step) }, (_, part) =>
        Math.max(...sound.subarray(part * step, (part + 1) * step).map(Math.abs)),
      );
      const loudest = Math.max(1e-3, ...most);
      return Float32Array.from(most, (peak) => Math.fround(peak / loudest));
    };
    const meter = new PeakMeter();
    for (let at = 0; at < length; at += 777) {
      meter.push(samples.subarray(at, at + 777));
      expect(meter.levels()).toEqual(levelsOf(samples.subarray(0, at + 777)));
    }
    expect(peaksOf(samples)).toEqual(meter.levels());
  },
);

describe('a long recording', () => {
  const calls: TranscriptionRequest[] = [];
  const engine = {
    async *transcribe(request: TranscriptionRequest): AsyncGenerator<TranscriptionEvent> {
      calls.push(request);
      const seconds = request.samples.length / RATE;
      const scores = { tokens: [], seek: 0, temperature: 0, avgLogprob: 0, compressionRatio: 0, noSpeechProb: 0 };
      yield { type: 'start', duration: seconds, language: 'de' };
      yield { type: 'segment', segment: { id: 0, start: 1, end: seconds, text: ` part ${calls.length}`, ...scores } };
      yield { type: 'finish', text: ` part ${calls.length}`, duration: seconds, inputTokens: 1, audioTokens: 1, outputTokens: 2 };
    },
  };
  const hear = async (request: TranscriptionRequest): Promise<TranscriptionEvent[]> => {
    calls.length = 0;
    const events: TranscriptionEvent[] = [];
    for await (const event of transcribeInPieces(engine, request, new AbortController().signal)) events.push(event);
    return events;
  };

  test('is given to the engine in pieces cut at pauses, and its segments keep their places', async () => {
    const samples = talk(5 * 60);
    const events = await hear({ samples, timestamps: 'segment', prompt: 'names' });
    expect(calls.length).toBe(6);
    for (const call of calls) {
      expect(call.samples.length).toBeLessThanOrEqual(PIECE_SECONDS * RATE);
      expect(call.prompt).toBe('names');
    }
    expect(Buffer.concat(calls.map((call) => Buffer.from(call.samples.buffer))).equals(Buffer.from(samples.buffer))).toBe(true);
    const starts = calls.map((_, index) => calls.slice(0, index).reduce((sum, call) => sum + call.samples.length, 0));
    for (const start of starts.slice(1)) expect(samples[start]).toBe(0);
    const segments = events.flatMap((event) => (event.type === 'segment' ? [event.segment] : []));
    expect(segments.map(({ id, start, text }) => [id, start, text])).toEqual(
      starts.map((start, index) => [index, start / RATE + 1, ` part ${index + 1}`]),
    );
    expect(events.at(-1)).toEqual({
      type: 'finish',
      text: 'part 1 part 2 part 3 part 4 part 5 part 6',
      duration: 300,
      inputTokens: 6,
      audioTokens: 6,
      outputTokens: 12,
    });
  });

  test('keeps the language of its first words', async () => {
    await hear({ samples: talk(90) });
    expect(calls.map(({ language }) => language)).toEqual([undefined, 'de']);
  });

  test('of which a part is silent does not send that part', async () => {
    const samples = new Float32Array(400 * RATE);
    samples.set(talk(60), 310 * RATE);
    const events = await hear({ samples });
    expect(calls.length).toBeLessThan(4);
    expect(calls.reduce((sum, call) => sum + call.samples.length, 0)).toBeLessThan(180 * RATE);
    expect(events.at(-1)).toMatchObject({ type: 'finish', duration: 400 });
  });
});

describe('a transcription server', () => {
  /** Answers /models and counts the seconds of sound in each post; `refuse` the format that it does not have. */
  const serve = async (refuse: string | undefined, act: (engine: RemoteEngine, posted: string[]) => Promise<void>): Promise<void> => {
    const posted: string[] = [];
    const original = globalThis.fetch;
    globalThis.fetch = async (_url, init) => {
      if (init?.method !== 'POST') return Response.json({ data: [{ id: 'm' }] });
      const form = init.body as FormData;
      const format = form.get('response_format') as string;
      posted.push(`${format} ${(((form.get('file') as Blob).size - 44) / 2 / RATE).toFixed(1)}`);
      const error = { message: `no ${format}`, param: 'response_format', code: 'unsupported_value' };
      if (format === refuse) return Response.json({ error }, { status: 400 });
      return Response.json({ text: 'Heard', ...(format === 'verbose_json' && { segments: [{ start: 0.5, end: 1, text: ' Heard' }] }) });
    };
    try {
      const server = 'http://x/v1';
      await act(new RemoteEngine({ servers: { chat: server, speech: server, transcription: server }, apiKey: '' }), posted);
    } finally {
      globalThis.fetch = original;
    }
  };
  const segments = async (engine: RemoteEngine): Promise<unknown[]> => {
    const found: unknown[] = [];
    for await (const event of engine.transcribe({ samples: talk(2) }, new AbortController().signal)) {
      if (event.type === 'segment') found.push([event.segment.start, event.segment.end, event.segment.text]);
    }
    return found;
  };

  test('gives times, and gets each recording once', async () => {
    await serve(undefined, async (engine, posted) => {
      expect(await segments(engine)).toEqual([[0.5, 1, ' Heard']]);
      expect(await segments(engine)).toEqual([[0.5, 1, ' Heard']]);
      expect(posted).toEqual(['verbose_json 0.5', 'verbose_json 2.0', 'verbose_json 2.0']);
    });
  });

  test('that gives the name of a language is asked with its code for what follows, as OpenAI wants it', async () => {
    const asked: (FormDataEntryValue | null)[] = [];
    vi.stubGlobal('fetch', async (_url: string, init?: RequestInit) => {
      if (init?.method !== 'POST') return Response.json({ data: [{ id: 'm' }] });
      asked.push((init.body as FormData).get('language'));
      return Response.json({ text: 'Hallo', language: 'german', segments: [{ start: 0, end: 1, text: ' Hallo' }] });
    });
    const server = 'http://x/v1';
    const engine = new RemoteEngine({ servers: { chat: server, speech: server, transcription: server }, apiKey: '' });
    for await (const event of transcribeInPieces(engine, { samples: talk(90) }, new AbortController().signal)) void event;
    vi.unstubAllGlobals();
    // The first is the silence that asks for its format.
    expect(asked).toEqual([null, null, 'de']);
  });

  test('that has no times gives the text, and gets each recording once all the same', async () => {
    await serve('verbose_json', async (engine, posted) => {
      expect(await segments(engine)).toEqual([[0, 2, 'Heard']]);
      expect(await segments(engine)).toEqual([[0, 2, 'Heard']]);
      expect(posted).toEqual(['verbose_json 0.5', 'json 2.0', 'json 2.0']);
    });
  });
});
