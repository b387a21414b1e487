/** Forms as no client writes them: each gets an answer, whatever the parser makes of it. */
import { PassThrough } from 'node:stream';
import type { Request } from 'express';
import { describe, expect, test } from 'vitest';
import { writeWav } from '../../engine/audio/wav.ts';
import { readForm } from '../../server/body/multipart.ts';
import { UploadBudget } from '../../server/body/upload-budget.ts';
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

test.each([100, 70_000])(
  'a file of %i bytes without a filename is told from a text, and a field that is too long is named',
  async (size) => {
    const { transcription } = await startListeners();
    const ask = async (name: string): Promise<unknown> => {
      const { status, json } = await post(
        transcription,
        Buffer.concat([part(`Content-Disposition: form-data; name="${name}"`, Buffer.alloc(size)), END]),
      );
      return { status, ...json.error };
    };
    const message = "'file' must be a file upload, not a text field: its part needs a filename";
    expect(await ask('file')).toMatchObject({ status: 400, code: 'invalid_type', param: 'file', message });
    if (size > 65_536)
      expect(await ask('prompt')).toMatchObject({ status: 400, message: "the form field 'prompt' is longer than 65536 bytes" });
  },
);

test('a file whose name comes in the form of RFC 5987 alone is a file', async () => {
  const { transcription, engine } = await startListeners();
  const head = 'Content-Disposition: form-data; name="file"; filename*=UTF-8\'\'caf%C3%A9.wav';
  const file = part(head, Buffer.from(writeWav(new Float32Array(1600), 16000)));
  const model = part('Content-Disposition: form-data; name="model"', Buffer.from('whisper-1'));
  expect((await post(transcription, Buffer.concat([file, model, END]))).status).toBe(200);
  expect(engine.transcriptions).toHaveLength(1);
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

describe('a form is the same however its bytes come', () => {
  const FORM = formBody([
    ['model', 'm'],
    ['file', Buffer.from('--X\r\n\r\n--X--XX')],
    ['prompt', ''],
    ['language', 'en'],
    ['temperature', ''],
  ]);
  const EXPECTED = {
    fields: new Map([
      ['model', ['m']],
      ['prompt', ['']],
      ['language', ['en']],
      ['temperature', ['']],
    ]),
    file: new Uint8Array(Buffer.from('--X\r\n\r\n--X--XX')),
  };

  /** Reads a form whose body comes in these pieces, each in a turn of its own or all in one. */
  async function read(pieces: readonly Buffer[], atOnce: boolean): Promise<unknown> {
    const body = new PassThrough();
    const properties = { get: (name: string) => (name === 'content-type' ? 'multipart/form-data; boundary=XX' : undefined), socket: {} };
    const form = readForm(Object.assign(body, properties, { complete: true }) as object as Request, 1 << 20, new UploadBudget());
    for (const piece of pieces) {
      body.write(piece);
      if (!atOnce) await new Promise(setImmediate);
    }
    body.end();
    const held = await form;
    held.upload.close();
    return { ...held.form, file: new Uint8Array(held.form.file!.subarray(0)) };
  }

  test.each([true, false])('in two pieces, wherever it is cut (at once: %s)', async (atOnce) => {
    for (let at = 0; at <= FORM.length; at++) {
      expect(await read([FORM.subarray(0, at), FORM.subarray(at)], atOnce), `cut at ${at}`).toEqual(EXPECTED);
    }
  });

  test('byte by byte', async () => {
    expect(
      await read(
        Array.from(FORM, (_, at) => FORM.subarray(at, at + 1)),
        false,
      ),
    ).toEqual(EXPECTED);
  });
});
