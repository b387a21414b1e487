/** Forms as no client writes them: each gets an answer, whatever the parser makes of it. */
import { describe, expect, test } from 'vitest';
import { writeWav } from '../../engine/audio/wav.ts';
import { formBody, postForm, send, startListeners } from '../support/listeners.ts';
import type { Answer, FormParts } from '../support/listeners.ts';
import { tone } from '../support/wav-file.ts';

const PATH = '/v1/audio/transcriptions';
const GOOD: FormParts = [
  ['file', writeWav(tone(440, 16000, 0.5), 16000)],
  ['model', 'parley-transcribe'],
];

/** Posts these bytes as a form with boundary XX. */
const post = (base: string, body: Uint8Array, type = 'multipart/form-data; boundary=XX'): Promise<Answer> =>
  send(base + PATH, { body, headers: { 'content-type': type } });

const part = (head: string, body: Uint8Array | string): Buffer =>
  Buffer.concat([Buffer.from(`--XX\r\n${head}\r\n\r\n`), Buffer.from(body), Buffer.from('\r\n')]);
const END = Buffer.from('--XX--\r\n');
const LARGE = Buffer.alloc(24_000);

describe('a form that is not what it should be gets a 400', () => {
  test.each<readonly [string, Uint8Array]>([
    ['a large part without a disposition', Buffer.concat([part('X-A: b', LARGE), END])],
    ['a large part of another disposition', Buffer.concat([part('Content-Disposition: attachment; name="file"', LARGE), END])],
    ['a large part without headers', Buffer.concat([part('', LARGE), END])],
    ['many large parts without a disposition', Buffer.concat([...Array.from({ length: 30 }, () => part('X-A: b', LARGE)), END])],
    ['a large preamble', Buffer.concat([LARGE, Buffer.from('\r\n'), END])],
    ['a large epilogue', Buffer.concat([END, LARGE])],
    ['a large part that does not end', part('X-A: b', LARGE)],
    ['headers that do not end', Buffer.from(`--XX\r\nContent-Disposition: form-data; name="file"; filename="${'a'.repeat(24_000)}`)],
    [
      'headers above their limit',
      Buffer.concat([part(`X-A: ${'a'.repeat(24_000)}\r\nContent-Disposition: form-data; name="f"`, LARGE), END]),
    ],
    ['a name with a line break', Buffer.concat([part('Content-Disposition: form-data; name="a\nb"', LARGE), END])],
    ['a large field without a name', Buffer.concat([part('Content-Disposition: form-data', LARGE), END])],
  ])('%s', async (_, body) => {
    const { transcription } = await startListeners();
    const { status, json } = await post(transcription, body);
    expect(status).toBe(400);
    expect(json.error.type).toBe('invalid_request_error');
    expect((await postForm(transcription + PATH, GOOD)).status).toBe(200);
  });

  test('also beside a good file, because nothing that was sent is lost in silence', async () => {
    const { transcription, engine } = await startListeners();
    const { status, json } = await post(transcription, Buffer.concat([part('X-A: b', LARGE), formBody(GOOD)]));
    expect([status, json.error.code]).toEqual([400, 'invalid_value']);
    expect(engine.transcriptions).toHaveLength(0);
  });
});

describe('the type of a form', () => {
  test.each([
    ['multipart/form-data;xboundary=X', 415],
    ['multipart/form-data; boundary=', 415],
    ['multipart/form-data; boundary=""', 415],
    ['multipart/form-data; charset=utf-8', 415],
    ['multipart/form-datax; boundary=XX', 415],
    [`multipart/form-data; boundary=${'b'.repeat(300)}`, 400],
    [`multipart/form-data; boundary=${'b'.repeat(201)}`, 400],
  ])('%s is refused with %i', async (type, status) => {
    const { transcription } = await startListeners();
    const answer = await post(transcription, formBody(GOOD), type);
    expect([answer.status, answer.json.error.code]).toEqual([status, status === 415 ? 'unsupported_media_type' : 'invalid_value']);
  });

  test.each(['multipart/form-data; boundary="XX"', 'Multipart/Form-Data;charset=utf-8;Boundary=XX', 'multipart/form-data ; boundary=XX'])(
    '%s is taken',
    async (type) => {
      const { transcription } = await startListeners();
      expect((await post(transcription, formBody(GOOD), type)).status).toBe(200);
    },
  );
});
