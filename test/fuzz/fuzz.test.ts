/** The fuzzer itself: cases that can be made again, and a judge that notices each fault it is for. */
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import { familyOf } from './case.ts';
import type { FuzzCase } from './case.ts';
import { makeCase } from './cases.ts';
import { perform } from './exchange.ts';
import { judge } from './judge.ts';

const NO_KEY = { key: undefined };

describe('cases', () => {
  const many = Array.from({ length: 5000 }, (_, index) => makeCase(5, index, NO_KEY));

  test('are the same for the same seed and number, alone or in a row', () => {
    for (const index of [4999, 3, 700]) expect(makeCase(5, index, NO_KEY)).toEqual(many[index]);
    expect(makeCase(6, 3, NO_KEY)).not.toEqual(many[3]);
  });

  test('are of every family, most of them whole, some of them not', () => {
    const families = new Set(many.map(familyOf));
    expect([...families].sort()).toEqual(['admin', 'body', 'file', 'form', 'head', 'pipeline', 'schema', 'siege']);
    const share = (answers: string): number => many.filter(({ expect: { answers: wanted } }) => wanted === answers).length / many.length;
    expect([share('one') > 0.6, share('optional') > 0.05, share('none') > 0.05]).toEqual([true, true, true]);
  });

  test.each([
    'reference chain',
    'reference ring',
    'optional properties',
    'without Content-Disposition',
    'boundary of',
    'Host: evil.com:80:80',
    'Origin: http://127.0.0.1.evil.com',
    'Expect: foo',
    'no Host',
    'uploads that do not come',
    'pattern',
    'wav: f32 with',
    'wav: rate',
  ])(
    // prettier-ignore
    'try %s',
    (name) => expect(many.filter((fuzz) => fuzz.name.includes(name)).length).toBeGreaterThan(0),
  );

  test('carry the key where one is set', () => {
    const bytes = makeCase(5, many.findIndex((fuzz) => familyOf(fuzz) === 'body'), { key: 'secret' }).bytes; // prettier-ignore
    expect(bytes.toString('latin1')).toContain('Authorization: Bearer secret\r\n');
  });
});

const CASE: FuzzCase = { name: 'body/x', listener: 'chat', method: 'POST', bytes: Buffer.from('POST / HTTP/1.1\r\n\r\n'), delivery: {}, expect: { answers: 'one' } }; // prettier-ignore
const json = (status: number, body: string, ...headers: string[]): string =>
  [`HTTP/1.1 ${status} X`, 'content-type: application/json', `content-length: ${Buffer.byteLength(body)}`, ...headers, '', body].join(
    '\r\n',
  );
const error = (changes: object = {}): string => JSON.stringify({ error: { message: 'm', type: 'invalid_request_error', param: null, code: 'invalid_value', ...changes } }); // prettier-ignore
const events = (text: string): string => `HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n${text}`;

/** The judge's findings about a server that says this to whatever comes; without `ends` it leaves the connection open. */
async function verdict(answer: string, { fuzz = CASE, ends = true } = {}): Promise<readonly string[]> {
  const server = createServer((socket) => {
    socket.on('error', () => {});
    socket.once('data', () => (ends ? socket.end(answer) : socket.write(answer)));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  return judge(fuzz, await perform(fuzz, (server.address() as AddressInfo).port, 300));
}

describe('the judge finds nothing in', () => {
  test.each([
    ['an answer', json(200, '{}')],
    ['an error of the contract', json(400, error())],
    ['503 with a reason', json(503, error({ type: 'server_error', code: 'queue_full' }), 'retry-after: 1')],
    ['chunks', 'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n1\r\n{\r\n1\r\n}\r\n0\r\n\r\n'],
    ['an interim answer before', `HTTP/1.1 100 Continue\r\n\r\n${json(200, '{}')}`],
    ['a stream', events('data: {}\n\ndata: [DONE]\n\n')],
  ])('%s', async (_, answer) => expect(await verdict(answer)).toEqual([]));
});

describe('the judge finds', () => {
  test.each([
    ['an internal error', json(500, error({ code: 'internal_error' })), /^status 500$/],
    ['503 without a reason', json(503, error({ code: 'what' }), 'retry-after: 1'), /503 without a reason/],
    ['503 without a time', json(503, error({ code: 'queue_full' })), /without retry-after/],
    ['401 without a challenge', json(401, error()), /without www-authenticate/],
    ['HTML', 'HTTP/1.1 404 X\r\ncontent-type: text/html\r\ncontent-length: 4\r\n\r\n<b/>', /type text\/html/],
    ['an error without a body', 'HTTP/1.1 417 X\r\ncontent-length: 0\r\n\r\n', /type none/],
    ['an error that is a string', json(400, '{"error":"no"}'), /without an error object/],
    ['an error without param', json(400, error({ param: undefined })), /error\.param/],
    ['a code that is a number', json(400, error({ code: 400 })), /error\.code is 400/],
    ['JSON that is none', json(200, '{"a"'), /JSON that is none/],
    ['a body shorter than declared', json(200, '{}').replace('content-length: 2', 'content-length: 9'), /broke off/],
    ['no answer', '', /ended without an answer/],
    ['no HTTP', 'hello\r\n\r\n', /not a status line/],
    ['chunks without a last one', 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n', /broke off/],
    ['a wrong chunk', 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n', /no number/],
    ['a stream that just stops', events('data: {}\n\n'), /without an end/],
    ['a stream with a bug in it', events(`data: ${error({ code: 'internal_error' })}\n\ndata: [DONE]\n\n`), /internal_error in a stream/],
  ])('%s', async (_, answer, fault) => expect((await verdict(answer)).join('; ')).toMatch(fault));

  test('silence', async () => {
    expect((await verdict('', { ends: false })).join()).toMatch(/nothing came.* 0\.3 s/);
  });

  test('a status that was not to be, and a stranger who is let in', async () => {
    const fuzz: FuzzCase = { ...CASE, expect: { answers: 'one', status: [403], withoutHeader: 'access-control-allow-origin' } };
    const faults = await verdict(json(200, '{}', 'access-control-allow-origin: http://evil.com'), { fuzz });
    expect(faults.join('; ')).toMatch(/status 200, not 403; access-control-allow-origin: http:\/\/evil\.com/);
  });

  test('nothing wrong where another case aborted everything', async () => {
    const fuzz: FuzzCase = { ...CASE, expect: { answers: 'one', status: [200] } };
    expect(await verdict(json(400, error({ code: 'request_aborted' })), { fuzz })).toEqual([]);
    expect(await verdict(json(400, error()), { fuzz })).toEqual(['status 400, not 200']);
  });

  test('a body that was taken for a request', async () => {
    const fuzz: FuzzCase = { ...CASE, expect: { answers: 'optional', atMost: 1 } };
    expect((await verdict(json(200, '{}') + json(200, '{}'), { fuzz })).join()).toMatch(/2 answers/);
  });

  test('a file from outside', async () => {
    const fuzz: FuzzCase = { ...CASE, name: 'file/x' };
    expect((await verdict('HTTP/1.1 200 OK\r\ncontent-length: 11\r\n\r\nroot:x:0:0:', { fuzz })).join()).toMatch(/shows root:x:0:0/);
  });

  test('a structured answer that finished and is no JSON', async () => {
    const fuzz: FuzzCase = { ...CASE, name: 'schema/x', bytes: Buffer.from('"response_format"') };
    const body = JSON.stringify({ choices: [{ finish_reason: 'stop', message: { content: '{"a":' } }] });
    expect((await verdict(json(200, body), { fuzz })).join()).toMatch(/not JSON, though finished/);
  });
});
