/** Both audio interfaces through OpenAI's client: every field reaches the engine, every form of answer has its type, every error its class. */
import { readFileSync } from 'node:fs';
import OpenAI, { APIError, BadRequestError, NotFoundError, toFile } from 'openai';
import { describe, expect, test } from 'vitest';
import { OPENAI_VOICES } from '../../engine/util/voices.ts';
import { startListeners } from '../support/listeners.ts';
import type { Started } from '../support/listeners.ts';

const CLIP = readFileSync(new URL('../fixtures/parley-transcribe/clip.wav', import.meta.url));
const HEARD = 'Heard 2.01 seconds.';

function clients({ speech, transcription }: Started): { readonly speech: OpenAI['audio']['speech']; readonly heard: OpenAI['audio'] } {
  const client = (url: string): OpenAI => new OpenAI({ baseURL: `${url}/v1`, apiKey: 'unused', maxRetries: 0 });
  return { speech: client(speech).audio.speech, heard: client(transcription).audio };
}

async function refusal(call: Promise<unknown>): Promise<APIError> {
  const error = await call.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(APIError);
  return error as APIError;
}

describe('speech by the official client', () => {
  const good = { model: 'tts-1', input: 'Hello there.', voice: 'nona' } as const;

  test('takes every field of the client and every extra one', async () => {
    const started = await startListeners();
    const { speech } = clients(started);
    const extra = { seed: 11, sample_rate: 16000, stream: false, instructions: 'Kindly.', unknown: 1 };
    const answer = await speech.create({ ...good, ...extra, response_format: 'pcm', speed: 1.25, stream_format: 'audio' } as never);
    expect([answer.status, answer.headers.get('content-type'), answer.headers.get('x-speech-seed')]).toEqual([200, 'audio/pcm; rate=16000', '11']); // prettier-ignore
    expect((await answer.arrayBuffer()).byteLength).toBeGreaterThan(0);
    expect(started.engine.speeches[0]).toMatchObject({ text: 'Hello there.', voice: 'nona', seed: 11, speed: 1.25 });
  });

  test('takes every voice as a name and as an object, and models by their names', async () => {
    const { speech } = clients(await startListeners());
    for (const voice of OPENAI_VOICES) {
      expect((await speech.create({ ...good, voice })).status).toBe(200);
      expect((await speech.create({ ...good, voice: { id: voice } })).status).toBe(200);
    }
    for (const model of ['tts-1', 'tts-1-hd', 'parley-speech']) expect((await speech.create({ ...good, model })).status).toBe(200);
    expect((await speech.create({ ...good, voice: 'nona(2)+oni(1)' })).status).toBe(200);
  });

  test.each([
    ['mp3', 'audio/mpeg'],
    ['opus', 'audio/ogg; codecs=opus'],
    ['aac', 'audio/aac'],
    ['flac', 'audio/flac'],
    ['wav', 'audio/wav'],
    ['pcm', 'audio/pcm; rate=24000'],
  ] as const)('answers %s as %s, and as events', async (response_format, type) => {
    const { speech } = clients(await startListeners());
    const whole = await speech.create({ ...good, response_format });
    expect(whole.headers.get('content-type')).toBe(type);
    expect(Number(whole.headers.get('content-length'))).toBe((await whole.arrayBuffer()).byteLength);
    const events = await speech.create({ ...good, response_format, stream_format: 'sse' });
    expect(events.headers.get('content-type')).toMatch(/^text\/event-stream/);
    expect(await events.text()).toMatch(/^data: \{"type":"speech\.audio\.delta".*\n\ndata: \{"type":"speech\.audio\.done","usage":/s);
  });

  test('is refused with the class, the field and the code', async () => {
    const { speech } = clients(await startListeners());
    const wrong: readonly (readonly [object, string])[] = [
      [{ input: '' }, 'input'],
      [{ voice: 'nobody' }, 'voice'],
      [{ response_format: 'midi' }, 'response_format'],
      [{ speed: 4.5 }, 'speed'],
      [{ speed: 0.1 }, 'speed'],
      [{ instructions: 'a'.repeat(4097) }, 'instructions'],
      [{ stream_format: 'ndjson' }, 'stream_format'],
      [{ sample_rate: 1 }, 'sample_rate'],
      [{ seed: 0.5 }, 'seed'],
    ];
    for (const [change, param] of wrong) {
      const error = await refusal(speech.create({ ...good, ...change }));
      expect([error instanceof BadRequestError, error.param, error.code]).toEqual([true, param, 'invalid_value']);
      expect(error.message).toContain(param);
    }
    const unknown = await refusal(speech.create({ ...good, model: 'whisper-1' }));
    expect([unknown instanceof NotFoundError, unknown.param, unknown.code]).toEqual([true, 'model', 'model_not_found']);
    expect(unknown.requestID).toMatch(/\S/);
  });
});

describe('transcription by the official client', () => {
  const good = async () => ({ file: await toFile(CLIP, 'speech.bin'), model: 'whisper-1' });

  test('takes every field of the client', async () => {
    const started = await startListeners();
    const { heard } = clients(started);
    const answer = await heard.transcriptions.create({
      ...(await good()),
      response_format: 'json',
      language: 'en-US',
      prompt: 'Names: Ann.',
      temperature: 0.4,
      include: ['logprobs'],
      chunking_strategy: { type: 'server_vad', threshold: 0.6, prefix_padding_ms: 200, silence_duration_ms: 400 },
    });
    expect(answer.text).toBe(HEARD);
    expect(answer.usage).toEqual({ type: 'duration', seconds: 3 });
    expect(answer.logprobs!.length).toBeGreaterThan(0);
    for (const { token, logprob, bytes } of answer.logprobs!) {
      expect([typeof token, typeof logprob]).toEqual(['string', 'number']);
      expect(Buffer.from(bytes!).toString()).toBe(token);
    }
    expect(started.engine.transcriptions[0]).toMatchObject({ language: 'en', prompt: 'Names: Ann.', temperature: 0.4 });
  });

  test('answers each format in its type', async () => {
    const { heard } = clients(await startListeners());
    const of = async (response_format: 'text' | 'srt' | 'vtt'): Promise<string> =>
      await heard.transcriptions.create({ ...(await good()), response_format });
    expect(await of('text')).toBe(`${HEARD}\n`);
    expect(await of('srt')).toMatch(/^1\n00:00:00,000 --> 00:00:01,000\n/);
    expect(await of('vtt')).toMatch(/^WEBVTT\n\n00:00:00\.000 --> 00:00:01\.000\n/);
    const verbose = await heard.transcriptions.create({ ...(await good()), response_format: 'verbose_json', timestamp_granularities: ['segment', 'word'] }); // prettier-ignore
    expect(verbose).toMatchObject({ task: 'transcribe', language: 'english', text: HEARD });
    expect(typeof verbose.duration).toBe('number');
    const fields = ['avg_logprob', 'compression_ratio', 'end', 'id', 'no_speech_prob', 'seek', 'start', 'temperature', 'text', 'tokens'];
    expect(verbose.segments!.map((segment) => Object.keys(segment).sort())).toEqual(verbose.segments!.map(() => fields));
    for (const { word, start, end } of verbose.words!) expect([typeof word, start <= end]).toEqual(['string', true]);
  });

  test('streams text, segments and one end', async () => {
    const { heard } = clients(await startListeners());
    const stream = await heard.transcriptions.create({ ...(await good()), stream: true, timestamp_granularities: ['segment'] });
    let text = '';
    const types: string[] = [];
    for await (const event of stream) {
      types.push(event.type);
      if (event.type === 'transcript.text.delta') text += event.delta;
      if (event.type === 'transcript.text.done') expect([event.text, event.usage?.type]).toEqual([text, 'tokens']);
    }
    expect(text).toBe(HEARD);
    expect([types.at(-1), types.filter((type) => type === 'transcript.text.done').length]).toEqual(['transcript.text.done', 1]);
    expect(types).toContain('transcript.text.segment');
  });

  test('is refused with the class, the field and the code', async () => {
    const { heard } = clients(await startListeners());
    const wrong: readonly (readonly [object, string, string])[] = [
      [{ response_format: 'diarized_json' }, 'response_format', 'unsupported_value'],
      [{ response_format: 'xml' }, 'response_format', 'invalid_value'],
      [{ response_format: 'srt', stream: true }, 'stream', 'unsupported_value'],
      [{ language: 'klingon' }, 'language', 'invalid_value'],
      [{ temperature: 1.5 }, 'temperature', 'invalid_value'],
      [{ timestamp_granularities: ['letter'] }, 'timestamp_granularities', 'invalid_value'],
      [{ include: ['words'] }, 'include', 'invalid_value'],
      [{ known_speaker_names: ['Ann'] }, 'known_speaker_names', 'unsupported_parameter'],
      [{ file: await toFile(Buffer.from('hello'), 'speech.mp3') }, 'file', 'unsupported_audio'],
      [{ file: await toFile(Buffer.alloc(0), 'speech.mp3') }, 'file', 'audio_too_short'],
    ];
    for (const [change, param, code] of wrong) {
      const error = await refusal(heard.transcriptions.create({ ...(await good()), ...change } as never));
      expect([error instanceof BadRequestError, error.param, error.code]).toEqual([true, param, code]);
    }
    const unknown = await refusal(heard.transcriptions.create({ ...(await good()), model: 'tts-1' }));
    expect([unknown instanceof NotFoundError, unknown.param]).toEqual([true, 'model']);
    const english = await refusal(heard.translations.create(await good()));
    expect([english instanceof BadRequestError, english.param, english.code]).toEqual([true, 'model', 'unsupported_value']);
  });
});
