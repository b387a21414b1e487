/** The listener that serves the playground: the headers of `_headers`, compressed copies, and neither on what the API answers. */
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { request as httpRequest } from 'node:http';
import type { IncomingHttpHeaders } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { brotliCompressSync, brotliDecompressSync, gunzipSync, gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createChatApp } from '../../server/chat/routes.ts';
import { listen } from '../../server/listener/listen.ts';
import type { Listener } from '../../server/listener/listen.ts';
import { parseHeaderRules } from '../../server/listener/playground.ts';
import { FakeEngine } from '../support/fake-engine.ts';

const HEADERS_FILE = fileURLToPath(new URL('../../web/public/_headers', import.meta.url));
const PAGE = `<!doctype html><title>page</title>${'<p>text</p>'.repeat(200)}`;
const SCRIPT = 'export const value = 1;\n'.repeat(200);

interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

describe('the playground on the chat listener', () => {
  let folder: string;
  let listener: Listener;

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'parley-static-'));
    mkdirSync(join(folder, 'assets'));
    cpSync(HEADERS_FILE, join(folder, '_headers'));
    for (const [name, text] of [
      ['index.html', PAGE],
      ['assets/index-abc123.js', SCRIPT],
    ] as const) {
      // prettier-ignore
      writeFileSync(join(folder, name), text);
      writeFileSync(join(folder, `${name}.br`), brotliCompressSync(text));
      writeFileSync(join(folder, `${name}.gz`), gzipSync(text));
    }
    writeFileSync(join(folder, 'sw.js'), SCRIPT);
    writeFileSync(join(folder, 'weights.safetensors'), Buffer.alloc(5000));
    listener = await listen(createChatApp({ engine: new FakeEngine(), modelId: 'parley-chat', staticFolder: folder }), {
      host: '127.0.0.1',
      port: 0,
    });
  });
  afterAll(() => {
    listener?.destroy();
    rmSync(folder, { recursive: true, force: true });
  });

  const get = (path: string, headers: Record<string, string> = {}, method = 'GET'): Promise<Answer> =>
    new Promise((resolve, reject) => {
      const request = httpRequest({ host: '127.0.0.1', port: listener.port, path, method, headers }, (response) => {
        const chunks: Buffer[] = [];
        response.on('data', (chunk: Buffer) => chunks.push(chunk));
        response.on('end', () => resolve({ status: response.statusCode!, headers: response.headers, body: Buffer.concat(chunks) }));
      });
      request.on('error', reject);
      request.end();
    });

  test.each(['/', '/index.html', '/assets/index-abc123.js', '/sw.js', '/weights.safetensors'])(
    '%s has the headers of _headers',
    async (path) => {
      const { status, headers } = await get(path);
      expect(status).toBe(200);
      expect(headers).toMatchObject({
        'content-security-policy': "frame-ancestors 'self'",
        'cross-origin-opener-policy': 'same-origin',
        'cross-origin-embedder-policy': 'require-corp',
        'cross-origin-resource-policy': 'same-origin',
        'referrer-policy': 'no-referrer',
        'x-content-type-options': 'nosniff',
        'permissions-policy': expect.stringContaining('microphone=(self)'),
        vary: expect.stringMatching(/origin, accept-encoding/i),
      });
    },
  );

  test('files named after their content may be kept for ever, the others are asked for again', async () => {
    expect((await get('/assets/index-abc123.js')).headers['cache-control']).toBe('public, max-age=31536000, immutable');
    for (const path of ['/', '/sw.js', '/weights.safetensors']) expect((await get(path)).headers['cache-control']).toBe('no-cache');
    const { etag } = (await get('/', { 'accept-encoding': 'br' })).headers;
    const again = await get('/', { 'accept-encoding': 'br', 'if-none-match': etag! });
    expect([again.status, again.body.length, again.headers['cache-control']]).toEqual([304, 0, 'no-cache']);
  });

  test.each([
    ['gzip, deflate, br, zstd', 'br', brotliDecompressSync],
    ['br;q=0.5', 'br', brotliDecompressSync],
    ['gzip, br;q=0', 'gzip', gunzipSync],
    ['deflate', undefined, (bytes: Buffer) => bytes],
    [undefined, undefined, (bytes: Buffer) => bytes],
  ])('Accept-Encoding: %s is answered with %s', async (accepted, encoding, unpack) => {
    for (const [path, text, type] of [
      ['/', PAGE, 'text/html; charset=utf-8'],
      ['/assets/index-abc123.js?v=1', SCRIPT, 'text/javascript; charset=utf-8'],
    ] as const) {
      // prettier-ignore
      const { status, headers, body } = await get(path, accepted === undefined ? {} : { 'accept-encoding': accepted });
      expect([status, headers['content-encoding'], headers['content-type']]).toEqual([200, encoding, type]);
      expect(unpack(body).toString()).toBe(text);
      if (encoding) expect(Number(headers['content-length'])).toBeLessThan(text.length);
    }
  });

  test('what has no copy, and parts of a file, come as they are', async () => {
    const whole = await get('/weights.safetensors', { 'accept-encoding': 'br, gzip' });
    expect([whole.headers['content-encoding'], whole.body.length]).toEqual([undefined, 5000]);
    const part = await get('/assets/index-abc123.js', { 'accept-encoding': 'br, gzip', range: 'bytes=7-11' });
    expect([part.status, part.headers['content-encoding'], part.body.toString()]).toEqual([206, undefined, SCRIPT.slice(7, 12)]);
  });

  test('API answers and errors are neither compressed nor dressed as files', async () => {
    for (const path of ['/v1/models', '/health', '/nothing', '/%E0%A4%A', '/assets/']) {
      const { headers, body } = await get(path, { 'accept-encoding': 'br, gzip' });
      expect([path, headers['content-type'], headers['content-encoding']]).toEqual([path, 'application/json; charset=utf-8', undefined]);
      expect(headers['content-security-policy']).toBeUndefined();
      expect(headers['cache-control']).toBe('no-store');
      JSON.parse(body.toString());
    }
  });

  test.each([
    [412, 'precondition_failed', { 'if-match': '"x"' }],
    [412, 'precondition_failed', { 'if-unmodified-since': 'Thu, 01 Jan 1970 00:00:00 GMT' }],
    [416, 'range_not_satisfiable', { range: 'bytes=99999-' }],
  ])('a condition or a part that cannot be met is %i %s', async (wanted, code, asked) => {
    for (const path of ['/', '/assets/index-abc123.js', '/weights.safetensors']) {
      const { status, headers, body } = await get(path, { 'accept-encoding': 'br, gzip', ...asked });
      expect([status, headers['content-type'], headers['content-encoding'], headers['etag'], headers['cache-control']]).toEqual([
        wanted,
        'application/json; charset=utf-8',
        undefined,
        undefined,
        'no-store',
      ]);
      expect(JSON.parse(body.toString())).toMatchObject({ error: { code, type: 'invalid_request_error' } });
      if (wanted === 416) expect(headers['content-range']).toMatch(/^bytes \*\/\d+$/);
    }
  });

  test('a HEAD is a GET without its body', async () => {
    const { status, headers, body } = await get('/', { 'accept-encoding': 'br' }, 'HEAD');
    expect([status, headers['content-encoding'], body.length]).toEqual([200, 'br', 0]);
  });
});

test('a line of _headers that is neither path nor header is named', () => {
  expect(() => parseHeaderRules('/*\n  X-A: b\nnonsense')).toThrow(/line 3.*nonsense/);
  expect(() => parseHeaderRules('  X-A: b')).toThrow(/line 1/);
  const [rule] = parseHeaderRules('# said\n/a.b/*\n  X-A: b: c \n');
  expect(rule!.headers).toEqual([['X-A', 'b: c']]);
  expect(['/a.b/', '/a.b/c/d', '/axb/c', '/x/a.b/c'].map((path) => rule!.pattern.test(path))).toEqual([true, true, false, false]);
});
