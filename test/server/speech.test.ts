import { spawnSync } from 'node:child_process';
import { request as httpRequest } from 'node:http';
import OpenAI from 'openai';
import { describe, expect, test } from 'vitest';
import { parseWav, wavToMono } from '../../engine/audio/wav.ts';
import { VOICE_TABLE, resolveVoices } from '../../engine/util/voices.ts';
import { VOICES } from '../support/fake-engine.ts';
import { JSON_TYPE, postJson, send, startListeners, until } from '../support/listeners.ts';
import { marksSortedTogether } from '../support/normalizing.ts';

const PATH = '/v1/audio/speech';
const GOOD = { model: 'tts-1', input: 'Hello. World.', voice: 'nona', response_format: 'wav' };
/** The fake engine's 0.1 s a sentence, 24 kHz, 16 bit. */
const PCM_BYTES = 2 * 2400 * 2;

const hasFfmpeg = spawnSync('ffmpeg', ['-version']).status === 0;
/** Decodes with ffmpeg to 24 kHz mono floats. */
function decoded(bytes: Buffer): Float32Array {
  const { stdout, status, stderr } = spawnSync('ffmpeg', ['-v', 'error', '-i', '-', '-f', 'f32le', '-ac', '1', '-ar', '24000', '-'], {
    input: bytes,
  });
  expect(stderr.toString()).toBe('');
  expect(status).toBe(0);
  return new Float32Array(stdout.buffer.slice(stdout.byteOffset, stdout.byteOffset + stdout.length));
}

describe('the current form', () => {
  test('answers a WAV file with exact sizes', async () => {
    const { speech, engine } = await startListeners();
    const { status, headers, bytes } = await postJson(speech + PATH, { ...GOOD, seed: 5, speed: 1.5 });
    expect(status).toBe(200);
    expect(headers).toMatchObject({
      'content-type': 'audio/wav',
      'content-disposition': 'inline; filename="speech.wav"',
      'content-length': String(44 + PCM_BYTES),
      'x-speech-seed': '5',
    });
    expect(headers['deprecation']).toBeUndefined();
    expect(bytes.readUInt32LE(4)).toBe(36 + PCM_BYTES);
    expect(bytes.readUInt32LE(40)).toBe(PCM_BYTES);
    expect(parseWav(bytes)).toMatchObject({ encoding: 's16', sampleRate: 24000, channels: 1, frames: 4800 });
    expect(Math.max(...wavToMono(parseWav(bytes)))).toBeCloseTo(0.5, 3);
    expect(engine.speeches).toEqual([{ text: 'Hello. World.', voice: 'nona', seed: 5, speed: 1.5 }]);
  });

  test('has the language of the text from language, or lang_code as Kokoro-FastAPI calls it', async () => {
    const { speech, engine } = await startListeners();
    for (const fields of [{ language: 'es' }, { lang_code: 'e' }, { language: 'fr', lang_code: 'e' }, { language: null }])
      expect((await postJson(speech + PATH, { ...GOOD, seed: 5, ...fields })).status).toBe(200);
    expect(engine.speeches.map(({ language }) => language)).toEqual(['es', 'e', 'fr', undefined]);
    for (const [field, value] of [
      ['language', ''],
      ['lang_code', 'x'.repeat(65)],
      ['language', 7],
    ]) {
      const { status, json } = await postJson(speech + PATH, { ...GOOD, [field!]: value });
      expect([status, json.error.param]).toEqual([400, field]);
    }
  });

  test('answers mp3 if no format is asked for, or what is configured', async () => {
    const { speech } = await startListeners();
    const body = { model: 'tts-1', input: 'Hello.', voice: 'nona' };
    const { headers, bytes } = await postJson(speech + PATH, body);
    expect(headers['content-type']).toBe('audio/mpeg');
    expect(bytes[0]).toBe(0xff);
    const other = await startListeners({}, { defaultFormat: 'wav' });
    expect((await postJson(other.speech + PATH, body)).headers['content-type']).toBe('audio/wav');
  });

  test('answers raw samples as pcm', async () => {
    const { speech } = await startListeners();
    const { headers, bytes } = await postJson(speech + PATH, { ...GOOD, response_format: 'pcm' });
    expect(headers['content-type']).toBe('audio/pcm; rate=24000');
    expect(bytes.length).toBe(PCM_BYTES);
  });

  test('is sent as it is made once it is long, where its format does not begin with its length', async () => {
    const { speech } = await startListeners();
    const input = 'Hello. '.repeat(500).trim();
    const long = async (response_format: string) => postJson(speech + PATH, { ...GOOD, input, response_format });
    const { headers, bytes } = await long('pcm');
    expect(headers).toMatchObject({ 'content-type': 'audio/pcm; rate=24000', 'transfer-encoding': 'chunked', 'x-speech-seed': '7' });
    const wav = await long('wav');
    expect(wav.headers['content-length']).toBe(String(wav.bytes.length));
    expect(wav.bytes.subarray(44).equals(bytes)).toBe(true);
    expect(bytes.length).toBe(500 * 4800);
    const short = await postJson(speech + PATH, { ...GOOD, response_format: 'pcm' });
    expect(short.headers['content-length']).toBe(String(PCM_BYTES));
  });

  test('begins before it ends once it is long, and breaks off where it fails', async () => {
    const { speech, engine } = await startListeners({ failAfter: 400 });
    const input = 'Hello. '.repeat(500).trim();
    await expect(postJson(speech + PATH, { ...GOOD, input, response_format: 'pcm' })).rejects.toThrow();
    expect((await postJson(speech + PATH, { ...GOOD, input })).status).toBe(500);
    expect(engine.handedOut).toBe(800);
  });

  test.skipIf(!hasFfmpeg)('its mp3 is one continuous file with the same sound (needs ffmpeg)', async () => {
    const { speech } = await startListeners();
    const mp3 = decoded((await postJson(speech + PATH, { ...GOOD, response_format: 'mp3' })).bytes);
    // An encoder pads the ends by a frame or two.
    expect(mp3.length).toBeGreaterThanOrEqual(4800);
    expect(mp3.length).toBeLessThan(4800 + 4 * 1152);
    const power = mp3.reduce((sum, x) => sum + x * x, 0);
    expect(power / (4800 * 0.125)).toBeGreaterThan(0.9);
    expect(power / (4800 * 0.125)).toBeLessThan(1.1);
  });

  test('speaks with each of the 19 voices, each its own', async () => {
    const { speech } = await startListeners();
    const sounds = new Set<string>();
    for (const voice of VOICES) {
      const { status, bytes } = await postJson(speech + PATH, { ...GOOD, voice, seed: 1 });
      expect(status).toBe(200);
      sounds.add(bytes.toString('base64'));
    }
    expect(VOICES).toHaveLength(19);
    expect(sounds.size).toBe(19);
  });

  test("speaks with each of OpenAI's 13 names, which are all of the table", async () => {
    const { speech, engine } = await startListeners();
    const names = 'alloy ash ballad cedar coral echo fable marin nova onyx sage shimmer verse'.split(' ');
    const aliases = resolveVoices(VOICE_TABLE, VOICES);
    expect([...aliases.keys()]).toEqual(names);
    for (const voice of names) expect((await postJson(speech + PATH, { ...GOOD, voice })).status).toBe(200);
    const used = engine.speeches.map(({ voice }) => voice);
    expect(used).toEqual([...aliases.values()]);
    expect(new Set(used).size).toBe(13);
  });

  test('may have other names, or none; names of voices that are not there are unknown', async () => {
    const { speech, engine } = await startListeners({}, { voiceAliases: new Map([['anna', ['oni']], ['ghost', ['nobody']], ['mix', ['oni(3)+nona(1)']]]) }); // prettier-ignore
    expect((await postJson(speech + PATH, { ...GOOD, voice: 'anna' })).status).toBe(200);
    expect(engine.speeches[0]!.voice).toBe('oni');
    for (const voice of ['mix', 'oni(3)+nona(1)']) expect((await postJson(speech + PATH, { ...GOOD, voice })).status).toBe(200);
    expect(engine.speeches.slice(1).map(({ voice }) => voice)).toEqual(['oni(3)+nona(1)', 'oni(3)+nona(1)']);
    const { json: list } = await send(`${speech}/v1/audio/voices`);
    expect((list as unknown as { voices: unknown[] }).voices.slice(-2)).toEqual([
      { id: 'anna', name: 'anna', alias_of: 'oni', made_of: { oni: 1 } },
      { id: 'mix', name: 'mix', made_of: { oni: 0.75, nona: 0.25 } },
    ]);
    for (const voice of ['alloy', 'ghost', 'oni+nobody']) {
      const { status, json } = await postJson(speech + PATH, { ...GOOD, voice });
      expect(status).toBe(400);
      expect(json.error.message).toMatch(/unknown voice '[\w+]+'; voices: aus-female-1, .*, vulcan, anna, mix$/);
    }
    expect((await send(`${speech}/v1/audio/voices`)).text).not.toContain('ghost');
  });

  test('a blend of too many voices is refused for their number, and not as an unknown voice', async () => {
    const { speech } = await startListeners({}, { voiceAliases: new Map([['both', ['oni+nona']]]) }); // prettier-ignore
    for (const [count, last] of [
      [65, 'oni'],
      [64, 'both'],
    ] as const) {
      const voice = [...Array.from({ length: count - 1 }, (_, i) => `v${i}`), last].join('+');
      const { status, json } = await postJson(speech + PATH, { ...GOOD, voice });
      expect([status, json.error.message]).toEqual([400, "'voice' blends 65 voices; at most 64 can be blended"]);
    }
  });

  test('takes a voice object, the served id, another alias, and ignored fields', async () => {
    const { speech, engine } = await startListeners();
    for (const change of [
      { voice: { id: 'oni' } },
      { model: 'parley-speech' },
      { model: 'tts-1-hd' },
      { instructions: 'gently', user: 'u' },
    ]) {
      expect((await postJson(speech + PATH, { ...GOOD, ...change })).status).toBe(200);
    }
    expect(engine.speeches[0]!.voice).toBe('oni');
  });
});

describe('the earlier form', () => {
  test('answers wav for each voice, and says that it is deprecated', async () => {
    const { speech, engine } = await startListeners();
    for (const voice of VOICES) {
      const { status, headers } = await postJson(speech + PATH, { text: 'Hello.', voice_ref: `${voice}.wav`, seed: 3 });
      expect(status).toBe(200);
      expect(headers).toMatchObject({ 'content-type': 'audio/wav', deprecation: 'true', 'x-speech-seed': '3' });
    }
    expect(engine.speeches.map(({ voice }) => voice)).toEqual(VOICES);
    expect(engine.speeches[0]).toEqual({ text: 'Hello.', voice: VOICES[0], seed: 3 });
  });

  test('can be turned off', async () => {
    const { speech } = await startListeners({}, { legacy: false });
    const { status, json } = await postJson(speech + PATH, { text: 'Hello.', voice_ref: 'oni.wav' });
    expect(status).toBe(400);
    expect(json.error).toMatchObject({ code: 'unsupported_parameter', param: 'text' });
  });
});

describe('a bad field', () => {
  const CASES: readonly (readonly [string, object, number, string, string | null])[] = [
    ['nothing', {}, 400, 'missing_required_parameter', 'model'],
    ['no model', { ...GOOD, model: undefined }, 400, 'missing_required_parameter', 'model'],
    ['no input', { ...GOOD, input: undefined }, 400, 'missing_required_parameter', 'input'],
    ['no voice', { ...GOOD, voice: null }, 400, 'missing_required_parameter', 'voice'],
    ['an unknown model', { ...GOOD, model: 'parley-chat' }, 404, 'model_not_found', 'model'],
    ['an unknown voice', { ...GOOD, voice: 'nobody' }, 400, 'invalid_value', 'voice'],
    ['a voice in other case', { ...GOOD, voice: 'Nona' }, 400, 'invalid_value', 'voice'],
    ['a voice with a space behind it', { ...GOOD, voice: 'nona ' }, 400, 'invalid_value', 'voice'],
    ['a voice with a space before it', { ...GOOD, voice: ' nona' }, 400, 'invalid_value', 'voice'],
    ['earlier with a space', { text: 'Hello.', voice_ref: 'oni .wav' }, 400, 'invalid_value', 'voice_ref'],
    ['a property as voice', { ...GOOD, voice: 'constructor' }, 400, 'invalid_value', 'voice'],
    ['a voice number', { ...GOOD, voice: 3 }, 400, 'invalid_type', 'voice'],
    ['blank input', { ...GOOD, input: ' \n' }, 400, 'invalid_value', 'input'],
    ['too long an input', { ...GOOD, input: 'a'.repeat(4097) }, 400, 'invalid_value', 'input'],
    ['input of a wrong type', { ...GOOD, input: ['a'] }, 400, 'invalid_type', 'input'],
    ['an unknown format', { ...GOOD, response_format: 'midi' }, 400, 'invalid_value', 'response_format'],
    ['a fractional seed', { ...GOOD, seed: 0.5 }, 400, 'invalid_value', 'seed'],
    ['a seed of more than 64 bits', { ...GOOD, seed: 2 ** 64 }, 400, 'invalid_value', 'seed'],
    ['too fast', { ...GOOD, speed: 5 }, 400, 'invalid_value', 'speed'],
    ['an unknown stream format', { ...GOOD, stream_format: 'ndjson' }, 400, 'invalid_value', 'stream_format'],
    ['a rate that is none', { ...GOOD, sample_rate: 23000 }, 400, 'invalid_value', 'sample_rate'],
    ['too high a rate', { ...GOOD, sample_rate: 96000 }, 400, 'invalid_value', 'sample_rate'],
    ['both forms', { ...GOOD, text: 'Hello.' }, 400, 'invalid_value', null],
    ['earlier without voice', { text: 'Hello.' }, 400, 'missing_required_parameter', 'voice_ref'],
    ['earlier without text', { voice_ref: 'oni.wav' }, 400, 'missing_required_parameter', 'text'],
    ['earlier without suffix', { text: 'Hello.', voice_ref: 'oni' }, 400, 'invalid_value', 'voice_ref'],
    ['earlier with a path', { text: 'Hello.', voice_ref: '../oni.wav' }, 400, 'invalid_value', 'voice_ref'],
    ['earlier with another suffix', { text: 'Hello.', voice_ref: 'oni.mp3' }, 400, 'invalid_value', 'voice_ref'],
    ['earlier with an unknown voice', { text: 'Hello.', voice_ref: 'alloy.wav' }, 400, 'invalid_value', 'voice_ref'],
  ];

  test('is named, and the next good request works', async () => {
    const { speech, engine } = await startListeners();
    for (const [what, body, status, code, param] of CASES) {
      const answer = await postJson(speech + PATH, body);
      expect({ what, status: answer.status, ...answer.json?.error }).toMatchObject({
        what,
        status,
        type: 'invalid_request_error',
        code,
        param,
      });
    }
    expect(engine.speeches).toHaveLength(0);
    expect((await postJson(speech + PATH, GOOD)).status).toBe(200);
  });

  test('marks without end on one letter, which take hours to sort, are sorted a few at a time', async () => {
    const { speech } = await startListeners();
    const input = `a${'\u0301\u0323'.repeat(1000)}`;
    const sorted = await marksSortedTogether(() => postJson(speech + PATH, { ...GOOD, input }));
    expect(sorted).toBeLessThan(500);
  });

  test('an unknown voice is told the known ones, an unknown format those that are; 4096 characters are fine, also astral ones', async () => {
    const { speech } = await startListeners();
    expect((await postJson(speech + PATH, { ...GOOD, voice: 'nobody' })).json.error.message).toContain(VOICES.join(', '));
    expect((await postJson(speech + PATH, { ...GOOD, response_format: 'amr' })).json.error.message).toContain('opus');
    expect((await postJson(speech + PATH, { ...GOOD, input: '𝄞'.repeat(4096) })).status).toBe(200);
  });
});

describe('streaming', () => {
  test('chunked: one open-ended header, then the samples of all sentences', async () => {
    const { speech } = await startListeners();
    const whole = await postJson(speech + PATH, GOOD);
    for (const change of [{ stream: true }, { stream_format: 'audio' }]) {
      const { headers, bytes } = await postJson(speech + PATH, { ...GOOD, ...change });
      expect(headers).toMatchObject({ 'content-type': 'audio/wav', 'transfer-encoding': 'chunked', 'x-speech-seed': '7' });
      expect(bytes.readUInt32LE(4)).toBe(0xffffffff);
      expect(bytes.subarray(44).equals(whole.bytes.subarray(44))).toBe(true);
      expect(parseWav(bytes).frames).toBe(4800);
    }
  });

  test('the first sentence is sent before the second is made', async () => {
    const { speech, engine } = await startListeners({ delay: 30 });
    const input = Array.from({ length: 100 }, () => 'Hello.').join(' ');
    const request = httpRequest(speech + PATH, { method: 'POST', headers: JSON_TYPE });
    const first = new Promise<number>((resolve) => {
      request.on('response', (response) => response.once('data', () => (resolve(engine.handedOut), request.destroy())));
    });
    request.on('error', () => {});
    request.end(JSON.stringify({ ...GOOD, input, stream: true }));
    expect(await first).toBeLessThan(20);
    await until(() => engine.aborted === 1);
  });

  test.each(['wav', 'mp3', 'opus', 'aac', 'flac', 'pcm'])('events carry the same %s file in base64', async (response_format) => {
    const { speech } = await startListeners();
    const { headers, text } = await postJson(speech + PATH, { ...GOOD, response_format, stream_format: 'sse' });
    expect(headers).toMatchObject({ 'content-type': 'text/event-stream; charset=utf-8', 'x-speech-seed': '7' });
    const events = text
      .split('\n\n')
      .filter((frame) => frame !== '')
      .map((frame) => JSON.parse(frame.replace(/^data: /, '')) as { type: string; audio?: string; usage?: unknown });
    expect(events.at(-1)).toEqual({ type: 'speech.audio.done', usage: { input_tokens: 13, output_tokens: 8, total_tokens: 21 } });
    const sound = Buffer.concat(
      events.slice(0, -1).map(({ type, audio }) => (expect(type).toBe('speech.audio.delta'), Buffer.from(audio!, 'base64'))),
    );
    const whole = await postJson(speech + PATH, { ...GOOD, response_format });
    // What only the end tells: the headers of WAV and FLAC, and the first frame of 96 kbit/s at 24 kHz.
    const skip = { wav: 44, flac: 42, mp3: 288 }[response_format] ?? 0;
    expect(sound.subarray(skip).equals(whole.bytes.subarray(skip))).toBe(true);
  });

  test('a failure after the first sound is an event in sse and a broken connection in chunked audio', async () => {
    const { speech } = await startListeners({ failAfter: 2 });
    const { text } = await postJson(speech + PATH, { ...GOOD, stream_format: 'sse' });
    expect(text).toMatch(/data: \{"error":\{"message":"[^"]+","type":"server_error","param":null,"code":"internal_error"\}\}\n\n$/);
    await expect(postJson(speech + PATH, { ...GOOD, stream: true })).rejects.toThrow();
    const whole = await postJson(speech + PATH, GOOD);
    expect(whole.status).toBe(500);
    expect(whole.headers).toMatchObject({ 'x-should-retry': 'false', 'content-type': expect.stringMatching(/json/) });
  });
});

test.each([true, false])('a client that goes away aborts its synthesis (stream: %s)', async (stream) => {
  const { speech, engine } = await startListeners({ delay: 20 });
  const request = httpRequest(speech + PATH, { method: 'POST', headers: JSON_TYPE });
  request.on('error', () => {});
  request.end(JSON.stringify({ ...GOOD, input: 'Hello. '.repeat(500), stream }));
  await until(() => engine.handedOut > 0);
  request.destroy();
  await until(() => engine.aborted === 1);
});

test('voices are listed', async () => {
  const { speech } = await startListeners();
  const { json } = await send(`${speech}/v1/audio/voices`);
  const aliases = [...resolveVoices(VOICE_TABLE, VOICES)].map(([name, voice]) => ({
    id: name,
    name,
    alias_of: voice,
    made_of: { [voice]: 1 },
  }));
  expect(json).toEqual({ voices: [...VOICES.map((name) => ({ id: name, name, language: 'en-us' })), ...aliases] });
});

test('the official client gets a file', async () => {
  const { speech } = await startListeners();
  const openai = new OpenAI({ baseURL: `${speech}/v1`, apiKey: 'unused' });
  const response = await openai.audio.speech.create({ model: 'tts-1', input: 'Hello.', voice: 'aus-male-7', response_format: 'wav' });
  expect(parseWav(new Uint8Array(await response.arrayBuffer())).frames).toBe(2400);
  await expect(openai.audio.speech.create({ model: 'tts-1', input: 'Hello.', voice: 'nobody' })).rejects.toMatchObject({
    status: 400,
    param: 'voice',
  });
});
