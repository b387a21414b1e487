/** Models of the hub, against a local server of its protocol: fetched, found again, listed, removed, and kept where they belong. */
import { createHash } from 'node:crypto';
import { existsSync, lstatSync, mkdirSync, readFileSync, readdirSync, readlinkSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { listCache, ownCacheFolder, removeCached, sourceSettings } from '../../sources/node/index.ts';
import { homeFolder } from '../../sources/node/settings.ts';
import { FILES, ID, NEEDED, NEEDED_BYTES, TUNING, WEIGHTS, distinctBytes, failure, hubBench } from '../support/hub-bench.ts';

const bench = hubBench();

describe('a pull', () => {
  test('brings the files that are needed, checked, in the layout of the standard cache', async () => {
    const seen: number[] = [];
    const { path, files, id, commit, format, fetched } = await bench.pull(ID, {
      onProgress: ({ step, done }) => void (step === 'fetching' && seen.push(done)),
    });
    expect([id, format, path]).toEqual([ID, 'safetensors', join(bench.folder, 'snapshots', commit!)]);
    expect(files.map((file) => file.path)).toEqual(NEEDED);
    for (const name of NEEDED) expect(readFileSync(join(path, name)).equals(FILES.get(name)!)).toBe(true);
    expect(readdirSync(path).sort()).toEqual(NEEDED);
    expect(bench.fetchedNames()).toEqual(['config.json', 'model.safetensors', 'tokenizer.json']);
    expect(readFileSync(join(bench.folder, 'refs', 'main'), 'utf8')).toBe(commit);
    expect(readlinkSync(join(path, 'model.safetensors'))).toBe(`../../blobs/${createHash('sha256').update(WEIGHTS).digest('hex')}`);
    expect(readdirSync(join(bench.folder, 'blobs')).filter((name) => name.includes('part'))).toEqual([]);
    expect(fetched).toBe(NEEDED_BYTES);
    expect(seen).toEqual([...seen].sort((a, b) => a - b));
    expect(bench.hub.downloads.filter(({ name }) => name === 'model.safetensors').length).toBeGreaterThan(5);
  });

  test('is not made again: the second time nobody is asked, also without a network', async () => {
    const first = await bench.pull();
    bench.hub.requests.length = 0;
    expect(await bench.pull()).toEqual({ ...first, fetched: 0 });
    expect(bench.hub.requests).toEqual([]);
    expect(await bench.pull(ID, { env: bench.env({ HF_HUB_OFFLINE: '1' }), update: true })).toEqual({ ...first, fetched: 0 });
    const notes: string[] = [];
    const away = { ...bench.env(), HF_ENDPOINT: 'http://127.0.0.1:9' };
    expect((await bench.pull(ID, { env: away, update: true, onNote: (line) => notes.push(line) })).path).toBe(first.path);
    expect(notes).toEqual([expect.stringMatching(/^the hub at http:\/\/127.0.0.1:9 cannot be reached: .*; what is in the cache is used$/)]);
  });

  test('with an update takes the new commit, and of it only what has changed', async () => {
    const first = await bench.pull();
    bench.hub.commit(new Map([...FILES, ['config.json', Buffer.from('{"model_type":"llama","new":1}')]]));
    bench.hub.downloads.length = 0;
    expect((await bench.pull()).commit).toBe(first.commit);
    const second = await bench.pull(ID, { update: true });
    expect(second.commit).not.toBe(first.commit);
    expect(bench.fetchedNames()).toEqual(['config.json']);
    expect(second.files.map((file) => file.path)).toEqual(NEEDED);
    expect(existsSync(join(second.path, 'model.safetensors'))).toBe(true);
    // The older one is still there by its hash.
    expect((await bench.pull(`${ID}@${first.commit!}`)).path).toBe(first.path);
  });

  test('of a revision: branch, tag, pull request and hash', async () => {
    const other = new Map([...FILES, ['config.json', Buffer.from('{}')]]);
    const commit = bench.hub.commit(other, 'v2');
    bench.hub.commit(other, 'refs/pr/1');
    for (const revision of ['v2', 'refs/pr/1', commit]) {
      const found = await bench.pull(`${ID}@${revision}`);
      expect([found.commit, readFileSync(join(found.path, 'config.json'), 'utf8')]).toEqual([commit, '{}']);
    }
    expect((await failure(bench.pull(`${ID}@v3`))).message).toBe(`${ID} has no revision "v3"`);
  });

  test('of one quantisation brings this file alone, and gives its path', async () => {
    const gguf = (name: string): [string, Buffer] => [name, distinctBytes(1000, name)];
    bench.hub.commit(
      new Map([gguf('m-Q4_K_M.gguf'), gguf('m-Q8_0.gguf'), gguf('big/m-F16-00001-of-00002.gguf'), gguf('big/m-F16-00002-of-00002.gguf')]),
    );
    const one = await bench.pull(`${ID}:Q8_0`);
    expect([one.id, one.path.endsWith('/m-Q8_0.gguf'), bench.fetchedNames()]).toEqual([`${ID}:Q8_0`, true, ['m-Q8_0.gguf']]);
    // What is here is not all that there is: another one is asked for.
    const standard = await bench.pull();
    expect(standard.path.endsWith('/m-Q4_K_M.gguf')).toBe(true);
    const split = await bench.pull(`${ID}:F16`);
    expect(split.files.map(({ path }) => path)).toEqual(['big/m-F16-00001-of-00002.gguf', 'big/m-F16-00002-of-00002.gguf']);
    expect(split.files.every(({ path }) => existsSync(join(split.path, '..', '..', path)))).toBe(true);
    expect((await failure(bench.pull(`${ID}:Q6_K`))).message).toMatch(
      /^somebody\/llama has no file and no quantisation "Q6_K"; there are /,
    );
  });

  test('lists a repository of many pages', async () => {
    bench.hub.commit(
      new Map([...FILES, ...Array.from({ length: 90 }, (_, i): [string, Buffer] => [`voices/v${i}.bin`, Buffer.from(`voice ${i}`)])]),
    );
    expect((await bench.pull()).files).toHaveLength(NEEDED.length + 90);
  });

  test('takes a cache that another tool has filled', async () => {
    const commit = 'c'.repeat(40);
    const snapshot = join(bench.folder, 'snapshots', commit);
    for (const folder of [snapshot, join(bench.folder, 'blobs'), join(bench.folder, 'refs')]) mkdirSync(folder, { recursive: true });
    writeFileSync(join(bench.folder, 'refs', 'main'), commit);
    for (const name of ['config.json', 'model.safetensors']) {
      writeFileSync(join(bench.folder, 'blobs', name), FILES.get(name)!);
      symlinkSync(`../../blobs/${name}`, join(snapshot, name));
    }
    const found = await bench.pull(ID, { env: bench.env({ HF_HUB_OFFLINE: '1' }) });
    expect([found.path, found.files.length]).toEqual([snapshot, 2]);
    expect(bench.hub.requests).toEqual([]);
    // What is there may lack a file: the hub is asked once, and what is here is not fetched again.
    const asked = bench.hub.commit(FILES, 'main');
    rmSync(bench.folder, { recursive: true });
    await bench.pull(`${ID}@${asked}`);
    rmSync(join(bench.folder, '.parley'), { recursive: true });
    rmSync(join(bench.folder, 'snapshots', asked, 'tokenizer.json'));
    bench.hub.downloads.length = 0;
    bench.hub.requests.length = 0;
    expect((await bench.pull(`${ID}@${asked}`)).files.map(({ path }) => path)).toEqual(NEEDED);
    expect([bench.hub.requests.length, bench.fetchedNames()]).toEqual([2, []]);
  });

  // Where nobody may write, not even root.
  test.skipIf(process.platform !== 'linux')('takes what is whole of a cache that may only be read, whoever has filled it', async () => {
    const first = await bench.pull();
    for (const name of [join(bench.folder, '.parley'), join(bench.home, 'hub', '.locks')]) {
      rmSync(name, { recursive: true });
      symlinkSync('/sys', name);
    }
    for (const update of [false, true]) expect(await bench.pull(ID, { update })).toEqual({ ...first, fetched: 0 });
    bench.hub.commit(new Map([...FILES, ['config.json', Buffer.from('{"model_type":"llama","new":1}')]]));
    expect((await failure(bench.pull())).message).toMatch(/^this may not be written: .*; set HF_HOME/);
  });

  test('from a server without ranges takes the file whole, once', async () => {
    bench.hub.wholeOnly = true;
    const { path } = await bench.pull();
    expect(readFileSync(join(path, 'model.safetensors')).equals(WEIGHTS)).toBe(true);
    expect(bench.hub.downloads.filter(({ name, range }) => name === 'model.safetensors' && range === undefined)).toHaveLength(1);
  });
});

describe('the caches and where they are', () => {
  test('the variables', () => {
    const of = (more: Readonly<Record<string, string>>): string => sourceSettings({ HF_TOKEN: 't', ...more }).hubCache;
    expect(of({ XDG_CACHE_HOME: '/c' })).toBe('/c/huggingface/hub');
    expect(of({ XDG_CACHE_HOME: '/c', HF_HOME: '/h' })).toBe('/h/hub');
    expect(of({ HF_HOME: '/h', HF_HUB_CACHE: '/k' })).toBe('/k');
    expect(sourceSettings({ XDG_CACHE_HOME: '/c' }).ownCache).toBe('/c/parley');
    expect(sourceSettings({}).endpoint).toBe('https://huggingface.co');
    for (const [endpoint, why] of [
      ['http://hub.example', /must be https/],
      ['x', /^HF_ENDPOINT is "x": expected an address, such as https:/],
      [' \n', undefined],
      ['https://hub.example\n', undefined],
      ['https://hub\n.example', /^HF_ENDPOINT is "https:\/\/hub\\n\.example": an address has no blanks and no line breaks$/],
      ['https://hub.example/ hub', /no blanks/],
      ['https://hub.example\u0000', /no blanks/],
      ['https://a:b@c', /without name/],
    ] as const) {
      if (why) expect(() => sourceSettings({ HF_ENDPOINT: endpoint })).toThrow(why);
      else expect(sourceSettings({ HF_ENDPOINT: endpoint }).endpoint).toMatch(/^https:\S+$/);
    }
    // Asks for nothing that could be wrong with the rest.
    expect(ownCacheFolder({ XDG_CACHE_HOME: '/c', HF_ENDPOINT: 'x', HF_TOKEN: 'a b' })).toBe('/c/parley');
  });

  test('a user without a home has the root for one; a runtime that forbids to ask is heard', () => {
    const failing = (code: string) => (): never => {
      throw Object.assign(new Error('uv_os_homedir returned ENOENT (no such file or directory)'), { code });
    };
    expect(homeFolder(failing('ERR_SYSTEM_ERROR'))).toBe('/');
    expect(() => homeFolder(failing('ERR_ACCESS_DENIED'))).toThrow('uv_os_homedir');
  });

  test.each([
    ['../../evil.gguf', /whose name leads out of its folder/],
    ['/etc/cron.d/evil.gguf', /is an absolute path/],
    ['a/\u0000.gguf', /control character/],
    ['C:evil.gguf', /drive/],
    ['x\\..\\..\\evil.gguf', /backslash/],
    ['sub/aux.gguf', /name of a device/],
  ])('a file that the hub names %j is refused', async (path, message) => {
    bench.hub.listing = (entries) => [{ ...entries.find((entry) => entry.path === 'model.safetensors')!, path }];
    const error = await failure(bench.pull());
    expect([error.kind, error.message]).toEqual(['refused', expect.stringMatching(message)]);
    expect(existsSync(join(bench.home, 'hub'))).toBe(false);
  });

  test('a hash that would be a path is no hash', async () => {
    bench.hub.listing = (entries) =>
      entries.map((entry) => ({ ...entry, oid: '../../../x', lfs: { oid: '../../x', size: 1, pointerSize: 1 } }));
    expect((await failure(bench.pull())).message).toMatch(/no hash for/);
  });

  test('a link that leads out of the cache is not followed, neither to read nor to write', async () => {
    const { path } = await bench.pull();
    const outside = join(bench.home, 'outside');
    mkdirSync(outside);
    writeFileSync(join(outside, 'config.json'), FILES.get('config.json')!);
    rmSync(join(path, 'config.json'));
    symlinkSync(join(outside, 'config.json'), join(path, 'config.json'));
    expect((await failure(bench.pull(ID, { env: bench.env({ HF_HUB_OFFLINE: '1' }) }))).kind).toBe('offline');
    const again = await bench.pull();
    expect(lstatSync(join(again.path, 'config.json')).isSymbolicLink()).toBe(true);
    expect(readlinkSync(join(again.path, 'config.json'))).toMatch(/^\.\.\/\.\.\/blobs\//);
    const evil = new Map([...FILES, ['voices/a.bin', Buffer.from('voice')]]);
    const commit = bench.hub.commit(evil);
    mkdirSync(join(bench.folder, 'snapshots', commit), { recursive: true });
    symlinkSync(outside, join(bench.folder, 'snapshots', commit, 'voices'));
    expect((await failure(bench.pull(ID, { update: true }))).message).toMatch(/"voices\/a.bin" would leave the cache/);
    expect(readdirSync(outside)).toEqual(['config.json']);
  });

  test('lists what is there and removes it: a file, a revision, a model', async () => {
    bench.hub.commit(
      new Map([
        ['m-Q4_0.gguf', distinctBytes(1000, 'a')],
        ['m-Q8_0.gguf', distinctBytes(2000, 'b')],
      ]),
    );
    await bench.pull(`${ID}:Q4_0`);
    const old = await bench.pull(`${ID}:Q8_0`);
    bench.hub.commit(
      new Map([
        ['m-Q4_0.gguf', distinctBytes(1000, 'a')],
        ['m-F16.gguf', distinctBytes(4000, 'c')],
      ]),
      'next',
    );
    await bench.pull(`${ID}@next:F16`);
    const settings = sourceSettings(bench.env());
    const [model] = await listCache(settings);
    expect(model).toMatchObject({ source: ID, format: 'gguf', path: bench.folder, complete: true });
    expect(model!.size).toBeGreaterThan(7000);
    expect(await removeCached(`${ID}:Q8_0`, settings)).toBe(2000);
    expect(existsSync(old.path)).toBe(false);
    expect((await bench.pull(`${ID}:Q4_0`)).fetched).toBe(0);
    const freed = await removeCached(`${ID}@next`, settings);
    expect(freed).toBeGreaterThanOrEqual(4000);
    expect(freed).toBeLessThan(5000);
    expect((await failure(removeCached(`${ID}@next`, settings))).message).toMatch(/is not in .*; 'parley models' lists what is/);
    expect(await removeCached(ID, settings)).toBeGreaterThan(1000);
    expect(await listCache(settings)).toEqual([]);
    expect(existsSync(bench.folder)).toBe(false);
    expect((await failure(removeCached('a/b', settings))).kind).toBe('missing');
  });

  test('leaves what has come of a file when another one is removed', async () => {
    const files = ['m-Q4_0.gguf', 'm-Q8_0.gguf'].map((name): [string, Buffer] => [name, distinctBytes(100_000, name)]);
    bench.hub.commit(new Map(files));
    await bench.pull(`${ID}:Q8_0`);
    let left = 60_000;
    bench.hub.fault = () => {
      const now = left;
      left = 0;
      return now;
    };
    await failure(bench.pull(`${ID}:Q4_0`, { tuning: { ...TUNING, pieceBytes: 2 ** 20 } }));
    bench.hub.fault = undefined;
    const settings = sourceSettings(bench.env());
    expect(await removeCached(`${ID}:Q8_0`, settings)).toBeLessThan(110_000);
    expect(await listCache(settings)).toMatchObject([{ source: ID, complete: false }]);
    expect((await bench.pull(`${ID}:Q4_0`)).fetched).toBeLessThan(100_000);
  });

  test('removes of a file what no other file that is here needs', async () => {
    const names = ['config.json', 'onnx/model_fp16.onnx', 'onnx/model_quantized.onnx', 'voices/af.bin'];
    bench.hub.commit(new Map(names.map((name) => [name, distinctBytes(1000, name)])));
    const pull = (file: string) => bench.pull(`${ID}:onnx/${file}.onnx`);
    const first = await pull('model_fp16');
    await pull('model_quantized');
    const settings = sourceSettings(bench.env());
    expect(await removeCached(`${ID}:onnx/model_fp16.onnx`, settings)).toBe(1000);
    expect(existsSync(first.path)).toBe(false);
    expect((await pull('model_quantized')).fetched).toBe(0);
    expect(await removeCached(`${ID}:onnx/model_quantized.onnx`, settings)).toBeGreaterThanOrEqual(3000);
    expect(existsSync(bench.folder)).toBe(false);
  });
});
