import { readdirSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import OpenAI from 'openai';
import { describe, expect, test } from 'vitest';
import { wavHeader, writeWav } from '../../engine/audio/wav.ts';
import { EngineError } from '../../engine/errors.ts';
import { UNHEEDED } from '../support/fake-engine.ts';
import { formBody, postForm, send, startListeners, until } from '../support/listeners.ts';
import type { FormParts } from '../support/listeners.ts';
import { tone, wavFile } from '../support/wav-file.ts';

const PATH = '/v1/audio/transcriptions';
const CLIP = writeWav(tone(440, 16000, 0.5), 16000);
const GOOD: FormParts = [
  ['file', CLIP],
  ['model', 'parley-transcribe'],
  ['response_format', 'json'],
];
const VERBOSE: FormParts = [...GOOD.slice(0, 2), ['response_format', 'verbose_json']];
const withField = (name: string, value: string | Uint8Array): FormParts => [...GOOD.filter(([key]) => key !== name), [name, value]];

describe('a good form', () => {
  test('gets text and usage', async () => {
    const { transcription, engine } = await startListeners();
    const { status, headers, json } = await postForm(transcription + PATH, GOOD);
    expect(status).toBe(200);
    expect(headers['content-type']).toMatch(/^application\/json/);
    expect(json).toEqual({ text: 'Heard 0.50 seconds.', usage: { type: 'duration', seconds: 1 } });
    expect(engine.transcriptions[0]!.samples).toHaveLength(8000);
  });

  const BLANK = 'response_format language temperature prompt stream hotwords timestamp_granularities[] include[] chunking_strategy[type]';
  test.each(BLANK.split(' '))('an empty %s is none, as forms send it', async (name) => {
    const { transcription } = await startListeners();
    expect(Object.keys((await postForm(transcription + PATH, withField(name, ''))).json)).toEqual(['text', 'usage']);
  });

  test('gets plain text if asked', async () => {
    const { transcription } = await startListeners();
    const { headers, text } = await postForm(transcription + PATH, withField('response_format', 'text'));
    expect(headers['content-type']).toBe('text/plain; charset=utf-8');
    expect(text).toBe('Heard 0.50 seconds.\n');
  });

  test('gets segments with times and scores if asked', async () => {
    const { transcription, engine } = await startListeners();
    const parts: FormParts = [...VERBOSE, ['temperature', '0.2'], ['timestamp_granularities[]', 'segment']];
    const { status, json } = await postForm(transcription + PATH, parts);
    expect(status).toBe(200);
    const segment = { seek: 0, tokens: [1], temperature: 0.2, avg_logprob: -0.1, no_speech_prob: 0 };
    expect(json).toEqual({
      task: 'transcribe', language: 'english', detected_language: 'welsh', language_probability: 0.25, duration: 0.5, text: 'Heard 0.50 seconds.', usage: { type: 'duration', seconds: 1 },
      segments: [
        { id: 0, start: 0, end: 1, text: ' Heard', compression_ratio: 0.7, ...segment },
        { id: 1, start: 1, end: 2, text: ' 0.50 seconds.', compression_ratio: 0.7, ...segment },
      ],
    }); // prettier-ignore
    expect(engine.transcriptions[0]!.timestamps).toBe('segment');
    const german = (await postForm(transcription + PATH, [...VERBOSE, ['language', 'de']])).json;
    expect(german).toMatchObject({ language: 'german' });
    expect(german).not.toHaveProperty('language_probability');
  });

  test('gets the probabilities of tokens if asked, whole and streamed', async () => {
    const { transcription, engine } = await startListeners();
    const heard = { token: ' Heard', logprob: -0.25, bytes: [32, 72, 101, 97, 114, 100] };
    const { json } = await postForm(transcription + PATH, withField('include[]', 'logprobs'));
    const { logprobs } = json as { logprobs?: unknown[] };
    expect(logprobs).toEqual([heard, expect.objectContaining({ token: ' 0.50 seconds.' })]);
    expect(engine.transcriptions[0]!.logprobs).toBe(true);
    const { text } = await postForm(transcription + PATH, [...withField('include[]', 'logprobs'), ['stream', 'true']]);
    const events = text.match(/(?<=^data: )\{.*$/gm)!.map((line) => JSON.parse(line) as { type: string; logprobs?: unknown });
    expect(events.map(({ logprobs: some }) => some)).toEqual([[heard], [logprobs![1]], logprobs]);
    expect((await postForm(transcription + PATH, GOOD)).json).not.toHaveProperty('logprobs');
  });

  test('gets times of words if asked, with segments or without', async () => {
    const { transcription, engine } = await startListeners();
    const ask = async (...granularities: string[]) =>
      (await postForm(transcription + PATH, [...VERBOSE, ...granularities.map((one) => ['timestamp_granularities[]', one] as const)]))
        .json as { words?: unknown; segments?: unknown };
    const words = [{ word: 'Heard', start: 0, end: 0.5 }, { word: '0.50', start: 1, end: 1.25 }, { word: 'seconds.', start: 1.25, end: 1.5 }]; // prettier-ignore
    const alone = await ask('word');
    expect(alone.words).toEqual(words);
    expect(alone).not.toHaveProperty('segments');
    expect(engine.transcriptions[0]!.timestamps).toBe('word');
    for (const both of [await ask('word', 'segment'), await ask('segment, word')]) {
      expect(both.words).toEqual(words);
      expect(both.segments).toHaveLength(2);
    }
    expect(await ask()).not.toHaveProperty('words');
    // Other formats have no place for words, and do not pay for them.
    expect((await postForm(transcription + PATH, [...GOOD, ['timestamp_granularities[]', 'word']])).json).not.toHaveProperty('words');
    expect(engine.transcriptions.at(-1)!.timestamps).toBeUndefined();
  });

  test.each([
    ['srt', 'text/plain', '1\n00:00:00,000 --> 00:00:01,000\nHeard\n\n2\n00:00:01,000 --> 00:00:02,000\n0.50 seconds.\n\n'],
    ['vtt', 'text/vtt', 'WEBVTT\n\n00:00:00.000 --> 00:00:01.000\nHeard\n\n00:00:01.000 --> 00:00:02.000\n0.50 seconds.\n\n'],
  ])('gets subtitles as %s', async (format, type, wanted) => {
    const { transcription, engine } = await startListeners();
    const { headers, text } = await postForm(transcription + PATH, withField('response_format', format));
    expect(headers['content-type']).toBe(`${type}; charset=utf-8`);
    expect(text).toBe(wanted);
    expect(engine.transcriptions[0]!.timestamps).toBe('segment');
  });

  test('is told in a header what of it was not heeded', async () => {
    const { transcription } = await startListeners();
    const origin = { origin: 'http://localhost:3000' };
    for (const more of [[], [['stream', 'true'] as const]]) {
      const parts: FormParts = [...GOOD, ['prompt', UNHEEDED], ...more];
      const { headers } = await postForm(transcription + PATH, parts, origin);
      expect(headers['x-parley-warning']).toBe("'prompt' is ignored");
      expect(headers['access-control-expose-headers']).toContain('x-parley-warning');
    }
    const hints = await postForm(transcription + PATH, [...GOOD, ['keywords[]', 'Ann'], ['keywords[]', 'Bob'], ['hotwords', 'Ann']]);
    const none = (name: string): string => `'${name}' has no effect: the models here take no such hints`;
    expect([hints.status, hints.headers['x-parley-warning']]).toEqual([200, `${none('keywords')}, ${none('hotwords')}`]);
    expect((await postForm(transcription + PATH, GOOD)).headers).not.toHaveProperty('x-parley-warning');
  });

  test('may be cut in its samples: what is there is heard, and a header says so', async () => {
    const { transcription } = await startListeners();
    const { status, json, headers } = await postForm(transcription + PATH, withField('file', CLIP.slice(0, 44 + 8000)));
    expect(status).toBe(200);
    expect(json.text).toBe('Heard 0.25 seconds.');
    expect(headers['x-parley-warning']).toBe('the WAV file is cut short: 16000 bytes of samples declared, 8000 present and transcribed');
  });

  test('reaches the engine with its fields', async () => {
    const { transcription, engine } = await startListeners();
    const parts: FormParts = [
      ['model', 'whisper-1'],
      ['language', 'en-US'],
      ['prompt', 'Parley'],
      ['temperature', '0.2'],
      ['timestamp_granularities[]', 'segment'],
      ['chunking_strategy', 'auto'],
      ['file', CLIP],
    ];
    expect((await postForm(`${transcription}/audio/transcriptions`, parts)).status).toBe(200);
    const { samples: _, ...rest } = engine.transcriptions[0]!;
    expect(rest).toEqual({ language: 'en', prompt: 'Parley', temperature: 0.2 });
    const fields = [
      ['temperature', '1e-1', 0.1], ['temperature', '.5', 0.5], ['temperature', '1.', 1], ['temperature', '2.5E-1', 0.25], ['language', 'German', 'de'],
      // OpenAI's names, where Unicode has another, and those that OpenAI takes too; codes, where Whisper has others.
      ['language', 'jv', 'jw'], ['language', 'nb-NO', 'no'], ['language', 'Bengali', 'bn'], ['language', 'bangla', 'bn'], ['language', 'Tagalog', 'tl'], ['language', 'Mandarin', 'zh'],
    ] as const; // prettier-ignore
    for (const [name, text, value] of fields) {
      await postForm(transcription + PATH, withField(name, text));
      expect(engine.transcriptions.pop()![name]).toBe(value);
    }
  });

  test.each([
    ['44.1 kHz stereo in 24 bits', 's24', 44100, 2],
    ['8 kHz in 8 bits', 'u8', 8000, 1],
    ['48 kHz float, 6 channels', 'f32', 48000, 6],
    ['22.05 kHz double', 'f64', 22050, 1],
  ] as const)('is heard at 16 kHz from %s', async (_, encoding, sampleRate, channels) => {
    const { transcription, engine } = await startListeners();
    const mono = tone(440, sampleRate, 1);
    const interleaved = Float32Array.from({ length: mono.length * channels }, (_, i) => mono[Math.floor(i / channels)]!);
    const file = wavFile(interleaved, { encoding, sampleRate, channels, extensible: channels > 2 });
    expect((await postForm(transcription + PATH, withField('file', file))).json.text).toBe('Heard 1.00 seconds.');
    const heard = engine.transcriptions[0]!.samples.subarray(1000, 15000);
    const wanted = tone(440, 16000, 1).subarray(1000, 15000);
    const error = heard.reduce((sum, x, i) => sum + (x - wanted[i]!) ** 2, 0) / wanted.reduce((sum, x) => sum + x * x, 0);
    expect(error).toBeLessThan(encoding === 'u8' ? 1e-3 : 1e-5);
  });

  test('may be a stream of unknown length, as the speech listener sends', async () => {
    const { transcription } = await startListeners();
    const file = Buffer.concat([wavHeader(24000), Buffer.alloc(48000)]);
    expect((await postForm(transcription + PATH, withField('file', file))).json.text).toBe('Heard 1.00 seconds.');
  });
});

describe('a translation', () => {
  const TRANSLATIONS = '/v1/audio/translations';

  test('is refused with a reason by a model that cannot translate', async () => {
    const { transcription, engine } = await startListeners();
    const { status, json } = await postForm(transcription + TRANSLATIONS, GOOD);
    expect(status).toBe(400);
    expect(json.error).toMatchObject({ type: 'invalid_request_error', code: 'unsupported_value', param: 'model' });
    expect(json.error.message).toMatch(/cannot translate/);
    expect(engine.transcriptions).toHaveLength(0);
  });

  test('comes back in English from a model that can', async () => {
    const { transcription, engine } = await startListeners({ translates: true });
    expect((await postForm(transcription + TRANSLATIONS, GOOD)).json).toMatchObject({ text: 'Heard 0.50 seconds.' });
    expect(engine.transcriptions[0]!.task).toBe('translate');
    const { json } = await postForm(transcription + TRANSLATIONS, [...VERBOSE, ['language', 'de']]);
    expect(json).toMatchObject({ task: 'translate', language: 'english' });
    expect(engine.transcriptions[1]).toMatchObject({ language: 'de', task: 'translate' });
  });
});

describe('a bad form', () => {
  const jpeg = Uint8Array.of(0xff, 0xd8, 0xff, 0xe0, 0, 16, 0x4a, 0x46, 0x49, 0x46, 0, 1, 1, 0, 0, 1);
  const without = (name: string): FormParts => GOOD.filter(([key]) => key !== name);
  const CASES: readonly (readonly [string, FormParts, number, string, string | null])[] = [
    ['no file', without('file'), 400, 'missing_required_parameter', 'file'],
    ['a file as text', [...without('file'), ['file', 'hello']], 400, 'invalid_type', 'file'],
    ['no model', without('model'), 400, 'missing_required_parameter', 'model'],
    ['an unknown model', withField('model', 'parley-chat'), 404, 'model_not_found', 'model'],
    ['an empty upload', withField('file', new Uint8Array()), 400, 'audio_too_short', 'file'],
    ['a JPEG', withField('file', jpeg), 400, 'unsupported_audio', 'file'],
    ['an mp3', withField('file', Uint8Array.of(0x49, 0x44, 0x33, 4, 0, 0)), 400, 'unsupported_audio', 'file'],
    ['a text file', withField('file', Buffer.from('hello')), 400, 'unsupported_audio', 'file'],
    ['a WAV cut in its header', withField('file', CLIP.slice(0, 30)), 400, 'invalid_audio', 'file'],
    ['a WAV cut before its samples', withField('file', CLIP.slice(0, 44)), 400, 'audio_too_short', 'file'],
    ['a WAV without samples', withField('file', writeWav(new Float32Array(), 16000)), 400, 'audio_too_short', 'file'],
    ['an unknown format', withField('response_format', 'xml'), 400, 'invalid_value', 'response_format'],
    ['a format not built', withField('response_format', 'diarized_json'), 400, 'unsupported_value', 'response_format'],
    ['srt as a stream', [...withField('response_format', 'srt'), ['stream', 'true']], 400, 'unsupported_value', 'stream'],
    ['a task', withField('task', 'translate'), 400, 'unsupported_parameter', 'task'],
    ['an unknown language', withField('language', 'klingon'), 400, 'invalid_value', 'language'],
    ['a temperature above 1', withField('temperature', '1.5'), 400, 'invalid_value', 'temperature'],
    ['a temperature that is none', withField('temperature', 'warm'), 400, 'invalid_value', 'temperature'],
    ['a temperature in hexadecimal', withField('temperature', '0x1'), 400, 'invalid_value', 'temperature'],
    ['stream that is no boolean', withField('stream', 'maybe'), 400, 'invalid_value', 'stream'],
    ['an unknown granularity', withField('timestamp_granularities[]', 'phrase'), 400, 'invalid_value', 'timestamp_granularities'],
    ['logprobs as text', [...withField('response_format', 'text'), ['include[]', 'logprobs']], 400, 'unsupported_value', 'include'],
    ['something else included', withField('include[]', 'words'), 400, 'invalid_value', 'include'],
    ['speakers', withField('known_speaker_names[]', 'Ann'), 400, 'unsupported_parameter', 'known_speaker_names'],
    ['two files', [...GOOD, ['file2', CLIP]], 400, 'invalid_value', null],
    ['31 fields', Array.from({ length: 31 }, (_, i) => [`f${i}`, 'x'] as const), 400, 'invalid_value', null],
    ['a huge field', withField('prompt', 'x'.repeat(70_000)), 400, 'invalid_value', null],
  ];

  test('is named, and the next good request works', async () => {
    const { transcription, engine } = await startListeners();
    for (const [what, parts, status, code, param] of CASES) {
      const answer = await postForm(transcription + PATH, parts);
      expect({ what, status: answer.status, ...answer.json?.error }).toMatchObject({
        what,
        status,
        type: 'invalid_request_error',
        code,
        param,
      });
    }
    expect(engine.transcriptions).toHaveLength(0);
    expect((await postForm(transcription + PATH, GOOD)).status).toBe(200);
  });

  test('beyond 25 MiB is 413, and the connection stays usable', async () => {
    const { transcription } = await startListeners();
    const large = await postForm(transcription + PATH, withField('file', Buffer.concat([wavHeader(16000), Buffer.alloc(30_000_000)])));
    expect(large.status).toBe(413);
    expect(large.json.error).toMatchObject({ type: 'invalid_request_error', code: 'request_too_large', param: 'file' });
    expect((await postForm(transcription + PATH, GOOD)).status).toBe(200);
  });

  test.each([
    ['no boundary', { 'content-type': 'multipart/form-data' }, 415, 'unsupported_media_type'],
    ['JSON', { 'content-type': 'application/json' }, 415, 'unsupported_media_type'],
    ['urlencoded', { 'content-type': 'application/x-www-form-urlencoded' }, 415, 'unsupported_media_type'],
    [
      'a compressed body',
      { 'content-type': 'multipart/form-data; boundary=XX', 'content-encoding': 'gzip' },
      415,
      'unsupported_media_type',
    ],
    ['another boundary', { 'content-type': 'multipart/form-data; boundary=YY' }, 400, 'invalid_value'],
  ])('is refused with %s', async (_, headers, status, code) => {
    const { transcription } = await startListeners();
    const answer = await send(transcription + PATH, { body: formBody(GOOD), headers });
    expect(answer.status).toBe(status);
    expect(answer.json.error.code).toBe(code);
  });

  test('never crashes or hangs the server, however it is malformed', async () => {
    const { transcription } = await startListeners();
    const good = formBody(GOOD);
    const bodies = [
      Buffer.alloc(0),
      Buffer.from('--XX'),
      Buffer.from('--XX--\r\n'),
      Buffer.from('garbage'),
      Buffer.from('--XX\r\n\r\nno headers\r\n--XX--\r\n'),
      Buffer.from('--XX\r\nContent-Disposition: form-data\r\n\r\nno name\r\n--XX--\r\n'),
      Buffer.from('--XX\r\nContent-Disposition: form-data; name=""\r\n\r\n\r\n--XX--\r\n'),
      Buffer.from(`--XX\r\n${'X-Header: y\r\n'.repeat(5000)}\r\n\r\n--XX--\r\n`),
      ...Array.from({ length: 100 }, (_, i) => good.subarray(0, Math.floor((good.length * i) / 100))),
    ];
    for (const body of bodies) {
      const { status, json } = await send(transcription + PATH, { body, headers: { 'content-type': 'multipart/form-data; boundary=XX' } });
      expect(status).toBe(400);
      expect(json.error.type).toBe('invalid_request_error');
    }
    expect((await postForm(transcription + PATH, GOOD)).status).toBe(200);
  });
});

describe('streaming', () => {
  test('sends deltas that concatenate to the text, one done event and [DONE]', async () => {
    const { transcription } = await startListeners();
    const { headers, text } = await postForm(transcription + PATH, withField('stream', 'true'));
    expect(headers['content-type']).toBe('text/event-stream; charset=utf-8');
    expect(text).toBe(
      'data: {"type":"transcript.text.delta","delta":"Heard"}\n\n' +
        'data: {"type":"transcript.text.delta","delta":" 0.50 seconds."}\n\n' +
        'data: {"type":"transcript.text.done","text":"Heard 0.50 seconds.","usage":{"type":"tokens","input_tokens":4,' +
        '"input_token_details":{"text_tokens":1,"audio_tokens":3},"output_tokens":2,"total_tokens":6}}\n\n' +
        'data: [DONE]\n\n',
    );
  });

  test('shows a failure after the first event as an error frame', async () => {
    const { transcription } = await startListeners({ failAfter: 2 });
    const { text } = await postForm(transcription + PATH, withField('stream', '1'));
    expect(text).toMatch(/data: \{"error":\{.*"code":"internal_error"\}\}\n\ndata: \[DONE\]\n\n$/);
  });
});

describe('the samples of an upload', () => {
  const files = (): string[] =>
    readdirSync(tmpdir())
      .filter((name) => name.startsWith('parley-') && name.includes(`-${process.pid}-`))
      .flatMap((name) => readdirSync(join(tmpdir(), name)));

  test('are in a file while they are heard, and nowhere afterwards', async () => {
    const { transcription, engine } = await startListeners({ delays: [0, 10_000] });
    const leaving = connect(Number(new URL(transcription).port), '127.0.0.1');
    const body = formBody(GOOD);
    leaving.write(
      `POST ${PATH} HTTP/1.1\r\nhost: localhost\r\ncontent-type: multipart/form-data; boundary=XX\r\ncontent-length: ${body.length}\r\n\r\n`,
    );
    leaving.write(body);
    await until(() => engine.transcriptions.length === 1);
    expect(files()).toHaveLength(1);
    leaving.destroy();
    await until(() => files().length === 0);
    engine.options = {};
    expect((await postForm(transcription + PATH, GOOD)).status).toBe(200);
    await until(() => files().length === 0);
  });

  test('are gone when the engine fails and when the file is refused', async () => {
    const { transcription, engine } = await startListeners({ failAfter: 0, failWith: new EngineError('device_lost', 'gone') });
    expect((await postForm(transcription + PATH, GOOD)).status).toBe(503);
    engine.options = { failAfter: 2 };
    expect((await postForm(transcription + PATH, withField('stream', 'true'))).text).toContain('"error"');
    expect((await postForm(transcription + PATH, withField('file', Buffer.from('hello')))).status).toBe(400);
    await until(() => files().length === 0);
  });
});

describe('a client that goes away', () => {
  test('aborts its transcription', async () => {
    const { transcription, engine } = await startListeners({ delay: 10_000 });
    const body = formBody(GOOD);
    const socket = connect(Number(new URL(transcription).port), '127.0.0.1');
    socket.write(
      `POST ${PATH} HTTP/1.1\r\nhost: localhost\r\ncontent-type: multipart/form-data; boundary=XX\r\ncontent-length: ${body.length}\r\n\r\n`,
    );
    socket.write(body);
    await until(() => engine.transcriptions.length === 1);
    socket.destroy();
    await until(() => engine.aborted === 1);
  });

  test('in the middle of its upload leaves nothing behind', async () => {
    const { transcription, engine } = await startListeners();
    const body = formBody(GOOD).subarray(0, 2000);
    for (let i = 0; i < 50; i++) {
      const socket = connect(Number(new URL(transcription).port), '127.0.0.1');
      socket.write(
        `POST ${PATH} HTTP/1.1\r\nhost: localhost\r\ncontent-type: multipart/form-data; boundary=XX\r\ncontent-length: 20000\r\n\r\n`,
      );
      await new Promise((resolve) => socket.write(body, resolve));
      socket.destroy();
    }
    expect((await postForm(transcription + PATH, GOOD)).status).toBe(200);
    expect(engine.transcriptions).toHaveLength(1);
  });
});

test('the official client transcribes, whole and streamed', async () => {
  const { transcription } = await startListeners();
  const openai = new OpenAI({ baseURL: `${transcription}/v1`, apiKey: 'unused' });
  const file = await OpenAI.toFile(CLIP, 'clip.wav');
  expect((await openai.audio.transcriptions.create({ file, model: 'whisper-1' })).text).toBe('Heard 0.50 seconds.');
  const verbose = await openai.audio.transcriptions.create({ file, model: 'whisper-1', response_format: 'verbose_json' });
  expect(verbose.segments?.map(({ start, end, text }) => [start, end, text])).toEqual([[0, 1, ' Heard'], [1, 2, ' 0.50 seconds.']]); // prettier-ignore
  const cues = await openai.audio.transcriptions.create({ file, model: 'whisper-1', response_format: 'vtt' });
  expect(cues).toMatch(/^WEBVTT\n\n00:00:00\.000/);
  const stream = await openai.audio.transcriptions.create({ file, model: 'whisper-1', stream: true });
  const types: string[] = [];
  for await (const event of stream) types.push(event.type);
  expect(types).toEqual(['transcript.text.delta', 'transcript.text.delta', 'transcript.text.done']);
});
