/** What goes wrong between a pull and the hub: connections, contents, disks, tokens, redirects. */
import { createHash } from 'node:crypto';
import { spawnSync } from 'node:child_process';
import {
  closeSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { readRepository } from '../../sources/hub.ts';
import type { SourceErrorKind } from '../../sources/index.ts';
import { secondsToWait } from '../../sources/retry-after.ts';
import { DISK, diskError } from '../../sources/node/disk.ts';
import { waiter } from '../../sources/node/download.ts';
import { sourceSettings } from '../../sources/node/index.ts';
import { keptBytes } from '../../sources/node/part-file.ts';
import { FILES, ID, NEEDED, NEEDED_BYTES, TOKEN, TUNING, WEIGHTS, failure, hubBench } from '../support/hub-bench.ts';

const bench = hubBench();
const storageBytes = (): number =>
  bench.hub.downloads.reduce((sum, { range }) => {
    const [, from, to] = /^bytes=(\d+)-(\d+)$/.exec(range ?? '') ?? [];
    return sum + (to === undefined ? 0 : Number(to) - Number(from) + 1);
  }, 0);

describe('what breaks', () => {
  const cuts = Array.from({ length: 10 }, (_, i) => Math.round(((i + 0.5) * WEIGHTS.length) / 10));

  test.each(cuts)('a connection that is cut after %i bytes is taken up there', async (cut) => {
    let faults = 1;
    bench.hub.fault = (name) => (name === 'model.safetensors' && faults-- > 0 ? cut : undefined);
    const { path } = await bench.pull(ID, { tuning: { ...TUNING, pieceBytes: 2 ** 20 } });
    expect(readFileSync(join(path, 'model.safetensors')).equals(WEIGHTS)).toBe(true);
    const ranges = bench.hub.downloads.filter(({ name }) => name === 'model.safetensors').map(({ range }) => range);
    expect(ranges[0]).toBe(`bytes=0-${WEIGHTS.length - 1}`);
    const [, from] = /^bytes=(\d+)-/.exec(ranges[1]!)!;
    // What the reader had not seen before the cut is asked for again, and nothing before that.
    expect(Number(from)).toBeLessThanOrEqual(cut);
    expect(ranges).toHaveLength(2);
  });

  test.each(cuts)('a server that dies after %i bytes: what came is kept, and the next pull fetches the rest', async (cut) => {
    let left = cut;
    bench.hub.fault = (name) => {
      if (name !== 'model.safetensors') return undefined;
      const now = Math.min(left, TUNING.pieceBytes);
      left -= now;
      return now === TUNING.pieceBytes ? undefined : now;
    };
    const one = { ...TUNING, connections: 1 };
    const error = await failure(bench.pull(ID, { tuning: one }));
    expect([error.kind, error.message]).toEqual([
      'network',
      expect.stringMatching(/model.safetensors.*; what came is kept, so do the same again to go on$/),
    ]);
    const hash = createHash('sha256').update(WEIGHTS).digest('hex');
    const kept = await keptBytes(join(bench.folder, 'blobs', hash), WEIGHTS.length, hash);
    expect(kept).toBeGreaterThanOrEqual(cut - (cut % TUNING.pieceBytes));
    bench.hub.fault = undefined;
    bench.hub.downloads.length = 0;
    const { path, fetched } = await bench.pull(ID, { tuning: one });
    expect(readFileSync(join(path, 'model.safetensors')).equals(WEIGHTS)).toBe(true);
    expect(storageBytes()).toBe(fetched);
    expect(fetched).toBeLessThanOrEqual(NEEDED_BYTES - kept);
  });

  test('a connection that brings nothing more is given up and taken up again', async () => {
    let stalls = 2;
    bench.hub.fault = (name) => (name === 'model.safetensors' && stalls-- > 0 ? 'stall' : undefined);
    const one = { ...TUNING, pieceBytes: 2 ** 20, idleMs: 50 };
    // A busy machine may let more than two wait for so long.
    const patient = { ...one, attempts: 100 };
    expect(readFileSync(join((await bench.pull(ID, { tuning: patient })).path, 'model.safetensors')).equals(WEIGHTS)).toBe(true);
    expect(bench.hub.downloads.filter(({ name }) => name === 'model.safetensors').length).toBeGreaterThanOrEqual(3);
    bench.hub.commit(new Map([...FILES, ['model.safetensors', Buffer.alloc(1)]]));
    stalls = Infinity;
    expect((await failure(bench.pull(ID, { tuning: one, update: true }))).message).toMatch(
      /^model.safetensors: nothing came for 0.05 s; what came is kept/,
    );
  });

  test('a file that is given up is given up whole: nothing more of it is asked for', async () => {
    let first = 500;
    bench.hub.fault = (name) => {
      if (name !== 'model.safetensors') return undefined;
      const now = first;
      first = 0;
      return now;
    };
    // The first piece is behind the others by one attempt, and waits for its next when they give up.
    const error = await failure(bench.pull(ID, { tuning: { ...TUNING, pieceBytes: 1000, retryMs: 20 } }));
    expect([error.kind, error.message]).toEqual(['network', expect.stringMatching(/^model.safetensors.*; what came is kept/)]);
    const asked = bench.hub.downloads.filter(({ name }) => name === 'model.safetensors').length;
    expect(asked).toBeLessThanOrEqual(TUNING.connections * TUNING.attempts + 1);
  });

  test('an address of the storage that has become too old is asked for again', async () => {
    bench.hub.refusals = 2;
    const { path } = await bench.pull(ID, { tuning: { ...TUNING, connections: 1 } });
    expect(readFileSync(join(path, 'model.safetensors')).equals(WEIGHTS)).toBe(true);
    bench.hub.commit(new Map([...FILES, ['model.safetensors', Buffer.alloc(1000)]]));
    bench.hub.refusals = 100;
    const error = await failure(bench.pull(ID, { update: true }));
    expect([error.kind, error.message]).toEqual([
      'network',
      expect.stringMatching(/^model.safetensors: 127.0.0.1:\d+ answered HTTP 403; what came is kept/),
    ]);
  });

  test.each(['model.safetensors', 'config.json'])('%s with one bit turned is refused and thrown away', async (wrong) => {
    bench.hub.fault = (name) => (name === wrong ? 'corrupt' : undefined);
    const error = await failure(bench.pull());
    expect([error.kind, error.message]).toEqual([
      'damaged',
      expect.stringMatching(new RegExp(`^${wrong} did not arrive as published \\(.* SHA|^${wrong} did not arrive as published \\(SHA-256`)),
    ]);
    bench.hub.fault = undefined;
    const { path } = await bench.pull();
    expect(readFileSync(join(path, wrong)).equals(FILES.get(wrong)!)).toBe(true);
  });

  test('stopped in the middle, what came is kept', async () => {
    const stop = new AbortController();
    const onProgress = ({ done }: { readonly done: number }): void => {
      if (done > WEIGHTS.length / 3) stop.abort();
    };
    const error = await failure(bench.pull(ID, { signal: stop.signal, onProgress, tuning: { ...TUNING, connections: 1 } }));
    expect([error.kind, error.message]).toEqual(['aborted', 'stopped; what came is kept, and the same command goes on']);
    expect((await bench.pull()).fetched).toBeLessThan((WEIGHTS.length * 3) / 4);
  });

  test('a full disk is one line, before it is filled or when it is', async () => {
    const small = { ...DISK, free: async () => 2 ** 26 + 1000 };
    const early = await failure(bench.pull(ID, { disk: small }));
    expect([early.kind, early.message]).toEqual([
      'disk',
      expect.stringMatching(/^300 kB have to come and 67.1 MB are free in .*: make room for 299 kB more, or set HF_HOME/),
    ]);
    expect(bench.hub.downloads).toEqual([]);
    let room = 150_000;
    const open: typeof DISK.open = async (path, flags) => {
      const handle = await DISK.open(path, flags);
      const write = async (bytes: Uint8Array, offset: number, length: number, position: number): Promise<object> => {
        room -= length;
        if (room < 0) throw Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC' });
        return handle.write(bytes, offset, length, position);
      };
      return { write: write as unknown as typeof handle.write, sync: () => handle.sync(), close: () => handle.close() };
    };
    const late = await failure(bench.pull(ID, { disk: { ...DISK, open } }));
    expect([late.kind, late.message]).toEqual([
      'disk',
      expect.stringMatching(/^the disk is full: .*; what came is kept, so make room and do the same again$/),
    ]);
    const { fetched } = await bench.pull();
    expect(fetched).toBeGreaterThan(100_000);
    expect(fetched).toBeLessThan(270_000);
  });
});

/** A disk of 200 kB, where this process may make one. */
const tiny = mkdtempSync(join(tmpdir(), 'parley-disk-'));
const mount = (...options: string[]): boolean => spawnSync('mount', [...options, 'tmpfs', tiny]).status === 0;
const isMounted = process.platform === 'linux' && mount('-t', 'tmpfs', '-o', 'size=200k');
afterAll(() => {
  // Lazily: a process that another test started may still hold what it inherited.
  if (isMounted) spawnSync('umount', ['--lazy', tiny]);
  rmSync(tiny, { recursive: true });
});

test.skipIf(!isMounted)(`a real disk that is full${isMounted ? '' : ' (skipped: this process may mount none)'}`, async () => {
  const disk = { ...DISK, free: async () => undefined };
  const env = bench.env({ HF_HUB_CACHE: tiny });
  expect((await failure(bench.pull(ID, { env, disk }))).message).toMatch(/^the disk is full: .*; what came is kept/);
  expect(mount('-o', 'remount,size=2m')).toBe(true);
  const { path, fetched } = await bench.pull(ID, { env, disk });
  expect(readFileSync(join(path, 'model.safetensors')).equals(WEIGHTS)).toBe(true);
  expect(fetched).toBeLessThan(NEEDED_BYTES - 100_000);
});

test.skipIf(!isMounted)('a real disk without room for a lock leaves none, which others would wait for', async () => {
  const hubs = join(tiny, 'without-room');
  const env = bench.env({ HF_HUB_CACHE: hubs });
  const fill = join(tiny, 'fill');
  const filling = openSync(fill, 'w');
  // All pages are taken; a file's name takes none.
  expect(() => {
    for (;;) writeSync(filling, Buffer.alloc(4096));
  }).toThrow('ENOSPC');
  closeSync(filling);
  expect(await failure(bench.pull(ID, { env }))).toMatchObject({
    kind: 'disk',
    message: expect.stringMatching(/^the disk is full: /) as string,
  });
  expect(readdirSync(hubs, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.lock'))).toEqual([]);
  rmSync(fill);
});

test('a limit on the size of files is told as one', () => {
  const error = Object.assign(new Error('EFBIG: file too large, write'), { code: 'EFBIG' });
  expect(diskError(error, '/c/blobs/x')).toMatchObject({
    kind: 'disk',
    message: expect.stringMatching(/^no file may become so large in \/c\/blobs /) as string,
  });
});

test('a cache that can be no folder is told as one', async () => {
  mkdirSync(bench.home, { recursive: true });
  const [file, away] = [join(bench.home, 'file'), join(bench.home, 'away')];
  writeFileSync(file, '');
  symlinkSync(join(bench.home, 'no', 'such', 'disk'), away);
  for (const cache of [file, away, join(bench.home, 'x'.repeat(300))]) {
    const env = bench.env({ HF_HUB_CACHE: cache, PARLEY_CACHE: cache });
    for (const source of [ID, `${bench.hub.url}/${ID}/resolve/main/config.json`])
      expect(await failure(bench.pull(source, { env }))).toMatchObject({
        kind: 'disk',
        message: expect.stringMatching(/^nothing can be kept in .* \(E[A-Z]+\); HF_HOME and PARLEY_CACHE name other folders$/) as string,
      });
  }
});

describe('what the hub refuses', () => {
  const refused = async (kind: SourceErrorKind, message: RegExp, more: Readonly<Record<string, string>> = {}): Promise<void> => {
    const error = await failure(bench.pull(ID, { env: bench.env(more) }));
    expect([error.kind, error.message]).toEqual([kind, expect.stringMatching(message)]);
    expect(existsSync(join(bench.folder, 'snapshots'))).toBe(false);
  };

  test('401: without a token, and with a wrong one', async () => {
    bench.hub.token = TOKEN;
    await refused(
      'missing',
      /^the hub has no open model somebody\/llama; its name may be wrong, or it is private: then set HF_TOKEN; and no folder/,
    );
    await refused('denied', /^the hub does not accept the token for somebody\/llama; see HF_TOKEN/, { HF_TOKEN: 'another' });
    expect((await bench.pull(ID, { env: bench.env({ HF_TOKEN: TOKEN }) })).files).toHaveLength(NEEDED.length);
  });

  test('403: terms that were not accepted', async () => {
    bench.hub.gated = true;
    await refused(
      'denied',
      /^somebody\/llama is given only to who has accepted its terms: accept them at http:.*\/somebody\/llama, then set HF_TOKEN \(it says "Access to model/,
    );
    bench.hub.token = TOKEN;
    await refused('denied', /accept them at .* with the account of your token/, { HF_TOKEN: TOKEN });
  });

  test('404: no such model', async () => {
    const error = await failure(bench.pull('somebody/else', { env: bench.env({ HF_TOKEN: TOKEN }) }));
    expect(error.message).toBe(
      'the hub has no open model somebody/else; its name may be wrong, or it is private and not for your token; and no folder has this name here',
    );
  });

  test('429, 500 and what is no hub', async () => {
    bench.hub.status = 429;
    await refused('network', /takes no more requests for now \(HTTP 429\); with HF_TOKEN set it takes more/);
    bench.hub.status = 500;
    await refused('network', /somebody\/llama: the hub answered HTTP 500 \(it says "the hub is being mended"\)/);
    bench.hub.status = undefined;
    bench.hub.listing = () => [{ type: 'file', path: 7 }];
    await refused('network', /the hub answers what no hub does: a file without name or size/);
  });

  describe('a hub that asks to wait', () => {
    const limit = (count: number, to: string, headers: Record<string, string>): void => void (bench.hub.limit = { count, to, headers });

    test.each([
      ['before its listing', '/api/models/'],
      ['before a file', '/resolve/'],
    ])('%s is waited for', async (_, to) => {
      limit(2, to, { 'retry-after': '0' });
      expect((await bench.pull()).fetched).toBe(NEEDED_BYTES);
      expect(bench.hub.limit!.count).toBeLessThanOrEqual(0);
    });

    test.each([
      ['Retry-After', { 'retry-after': '301' }, '5 min 1 s'],
      ['RateLimit', { ratelimit: '"api";r=0;t=7200' }, '2 h 0 min'],
    ])('for too long is told: %s', async (_, headers, time) => {
      for (const to of ['/api/models/', '/resolve/']) {
        limit(Infinity, to, headers);
        const { message, kind } = await failure(bench.pull());
        expect([kind, message]).toEqual(['network', expect.stringContaining(`(HTTP 429); it takes them again in ${time}; with HF_TOKEN`)]);
      }
    });

    test.each([
      [{ 'retry-after': '12' }, 12],
      [{ 'retry-after': 'Mon, 23 Nov 2026 07:00:30 GMT' }, 30],
      [{ 'retry-after': 'Mon, 23 Nov 2026 06:00:00 GMT' }, 0],
      [{ 'retry-after': 'soon', ratelimit: '"resolvers";r=0;t=55' }, 55],
      [{ 'retry-after': '-1' }, undefined],
      [{ ratelimit: 'nothing' }, undefined],
      [{}, undefined],
    ])('%o', (headers, seconds) => {
      expect(secondsToWait(new Headers(headers), Date.UTC(2026, 10, 23, 7))).toBe(seconds);
    });

    test('again and again is given up', async () => {
      for (const to of ['/api/models/', '/resolve/']) {
        limit(1000, to, { 'retry-after': '0' });
        expect((await failure(bench.pull())).message).toMatch(/it takes them again in 0 s/);
        expect(bench.hub.limit!.count).toBeGreaterThan(900);
      }
    });

    test('says so once, however many requests wait', async () => {
      const notes: string[] = [];
      const wait = waiter({ signal: new AbortController().signal, onNote: (line) => notes.push(line) });
      await Promise.all([wait(0.001), wait(0.001), wait(0)]);
      expect(notes).toEqual(['the other side takes no more requests for now; going on in 0 s']);
      await Promise.all([wait(0), wait(0)]);
      expect(notes).toHaveLength(1);
    });
  });

  test('fetching while offline', async () => {
    await refused('offline', /^somebody\/llama is not, or not wholly, in .*hub, and HF_HUB_OFFLINE forbids to fetch it/, {
      HF_HUB_OFFLINE: '1',
    });
    await refused('offline', /PARLEY_NO_INSTALL forbids/, { PARLEY_NO_INSTALL: '1' });
    expect(bench.hub.requests).toEqual([]);
  });
});

describe('the token', () => {
  test('goes to the hub alone, and not with a redirect to another host', async () => {
    bench.hub.token = TOKEN;
    await bench.pull(ID, { env: bench.env({ HF_TOKEN: TOKEN }) });
    const of = (host: string): (string | undefined)[] => [
      ...new Set(bench.hub.requests.filter((request) => request.host === host).map(({ authorization }) => authorization)),
    ];
    expect(of('hub')).toEqual([`Bearer ${TOKEN}`]);
    expect(of('storage')).toEqual([undefined]);
  });

  test("is read from where the hub's own tools store it", async () => {
    bench.hub.token = TOKEN;
    mkdirSync(bench.home, { recursive: true });
    writeFileSync(join(bench.home, 'token'), `${TOKEN}\n`);
    expect((await bench.pull()).files).toHaveLength(NEEDED.length);
    const folder = join(bench.home, 'elsewhere');
    mkdirSync(folder);
    writeFileSync(join(folder, 't'), TOKEN);
    expect(sourceSettings(bench.env({ HF_TOKEN_PATH: join(folder, 't') })).token).toBe(TOKEN);
    expect(sourceSettings(bench.env({ HF_HUB_DISABLE_IMPLICIT_TOKEN: '1' })).token).toBeUndefined();
    expect(sourceSettings(bench.env({ HF_TOKEN: 'other' })).token).toBe('other');
    expect(() => sourceSettings(bench.env({ HF_TOKEN: 'a\nb' }))).toThrow('HF_TOKEN holds no token');
  });

  test.each([
    ['another scheme', (): string => 'file:///etc/passwd', /redirects to file:/],
    [
      'another host without encryption',
      (): string => 'http://example.org/x',
      /redirects to http:\/\/example.org, which is not https; refused/,
    ],
    ['a name and password', (): string => 'https://u:p@example.org/x', /with a name and password/],
    ['no address', (): string => 'http://[', /redirects to what is no address/],
    ['itself, for ever', (): string => `${bench.hub.url}/${ID}/resolve/main/model.safetensors`, /redirects in a circle/],
  ])('a redirect to %s is refused', async (_, to, message) => {
    bench.hub.redirect = to;
    const error = await failure(bench.pull(ID, { env: bench.env({ HF_TOKEN: TOKEN }) }));
    expect([error.kind, error.message]).toEqual(['refused', expect.stringMatching(message)]);
  });
});

test('a list of folders without an end is no repository', async () => {
  let pages = 0;
  const endless = (input: unknown): Promise<Response> => {
    if (!String(input instanceof Request ? input.url : input).includes('/tree/'))
      return Promise.resolve(Response.json({ sha: '0'.repeat(40) }));
    const folders = Array.from({ length: 1000 }, (_, i) => ({ type: 'directory', path: `${pages}/${i}`, size: 0, oid: '0'.repeat(40) }));
    const link = `<https://hub.example/api/models/my/model/tree/main?cursor=${++pages}>; rel="next"`;
    return pages > 100 ? Promise.reject(new Error('asked on and on')) : Promise.resolve(Response.json(folders, { headers: { link } }));
  };
  const hub = { endpoint: 'https://hub.example', fetch: endless as typeof fetch, hasToken: false };
  await expect(readRepository(hub, 'my/model', 'main')).rejects.toThrow('more than 50000 files and folders');
});
