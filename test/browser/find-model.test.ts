/** Models that a person names or picks, before anything of them is fetched or copied: what they are, or in one sentence why they are refused. Without a browser. */
import { readFileSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { resolveConfig } from '../../engine/config.ts';
import { createBrowserPlatform } from '../../engine/platform/browser.ts';
import { describeModel } from '../../engine/tasks/describe-model.ts';
import { findModel } from '../../web/src/models/find-model.ts';
import type { Finder } from '../../web/src/models/find-model.ts';
import type { HubAccess } from '../../web/src/models/hub-authorization.ts';
import { requireFit } from '../../web/src/models/fit.ts';
import { AddWork } from '../../web/src/models/add-work.ts';
import type { ManifestFile, ModelManifest } from '../../web/src/models/manifest.ts';
import { ModelLibrary } from '../../web/src/models/model-library.ts';
import { ModelStore } from '../../web/src/models/model-store.ts';
import type { RecommendedPlace } from '../../web/src/models/recommended-work.ts';
import { describeFolder, describeGguf, pickedFiles } from '../../web/src/models/picked-model.ts';
import type { PickedModel } from '../../web/src/models/picked-model.ts';
import { modelFiles, modelPath } from '../../web/src/worker/model-files.ts';
import { RangeFile } from '../../web/src/worker/range-file.ts';
import { serveHub } from '../support/hub-server.ts';
import type { HubServer } from '../support/hub-server.ts';
import { kokoroFormat } from '../support/kokoro-formats.ts';
import { ROOT } from './chromium.ts';

const ID = 'somebody/model';
const FIXTURES = join(ROOT, 'test', 'fixtures');
const { signal } = new AbortController();

/** What the page's worker does. */
const readerFor =
  (access?: HubAccess): Finder['describe'] =>
  async (model) => {
    const files = modelFiles(model, async ({ name, size, at }) => {
      if (at === 'store') throw new Error('nothing is stored here');
      return at instanceof Blob ? at : new RangeFile({ name, size, url: at.url }, access);
    });
    return describeModel(
      createBrowserPlatform({ shaders: new Map(), ...files }),
      { path: modelPath(model), id: model.id },
      resolveConfig({}),
    );
  };
const readHeaders = readerFor();

const bytesOf = (path: string): Buffer => readFileSync(join(ROOT, path));
const folderFiles = (path: string): [string, Buffer][] =>
  readdirSync(path, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .map((file) => [file.slice(path.length).replace(/^\//, ''), readFileSync(file)]);

describe('a model of the hub', () => {
  let hub: HubServer;

  beforeAll(async () => {
    hub = await serveHub(ID);
  });
  beforeEach(() => {
    Object.assign(hub, { gated: false, terms: false, token: undefined, status: undefined });
    hub.downloads.length = hub.requests.length = 0;
  });
  afterAll(async () => {
    await hub.close();
  });

  const find = (text: string, access?: HubAccess): Promise<ModelManifest> =>
    findModel(text, { hub: `${hub.url}/`, access, describe: readerFor(access) }, signal);

  test('is described by its headers, with the hashes and addresses of one commit', async () => {
    const commit = hub.commit(new Map([...folderFiles(join(ROOT, 'models', 'parley-chat')), ['flax_model.msgpack', Buffer.alloc(9)]]));
    const found = await find(ID);
    expect(found).toMatchObject({ id: ID, task: 'chat', modelType: 'llama', source: 'hub', about: { contextLength: 2048 } });
    const weights = found.files.find(({ name }) => name === 'model.safetensors')!;
    expect(weights.url).toBe(`${hub.url}/${ID}/resolve/${commit}/model.safetensors`);
    expect(weights.published).toMatchObject({ kind: 'sha256' });
    expect(found.files.map(({ name }) => name)).not.toContain('flax_model.msgpack');
    const large = hub.downloads.filter(({ name }) => name === 'model.safetensors');
    expect(large.map(({ range }) => range)).toEqual(['bytes=0-262143']);
  });

  test('is of the revision, the quantisation or the file that was named', async () => {
    const gguf = (name: string): [string, Buffer] => [`it-${name}.gguf`, bytesOf(`test/fixtures/gguf/tiny/qwen3-${name}.gguf`)];
    hub.commit(new Map([gguf('Q8_0'), gguf('F16')]), 'v2');
    const named = await find(`${ID}@v2:Q8_0`);
    expect(named).toMatchObject({
      id: `${ID}@v2:Q8_0`,
      task: 'chat',
      modelType: 'qwen3',
      main: 'it-Q8_0.gguf',
      about: { format: 'GGUF Q8_0' },
    });
    expect((await find(`${ID}@v2:it-F16.gguf`)).main).toBe('it-F16.gguf');
    await expect(find(`${ID}@v2:Q4_K_M`)).rejects.toThrow(
      `${ID} has no file and no quantisation "Q4_K_M"; there are it-F16.gguf, it-Q8_0.gguf`,
    );
    await expect(find(`${ID}@v3`)).rejects.toThrow(`${ID} has no revision "v3"`);
  });

  test('may be quantised to integers, which its headers tell', async () => {
    hub.commit(new Map(folderFiles(join(FIXTURES, 'integers', 'awq'))));
    const found = await find(ID);
    expect(found).toMatchObject({ task: 'chat', modelType: 'qwen2', about: { format: 'AWQ 4-bit', contextLength: 128 } });
    expect(found.files.map(({ name }) => name).sort()).toEqual(['config.json', 'model.safetensors']);
  });

  test('may be a Whisper of CTranslate2, and a Kokoro with its voices', async () => {
    hub.commit(new Map(folderFiles(join(FIXTURES, 'ctranslate2-tiny-random', 'float16'))));
    expect(await find(ID)).toMatchObject({ task: 'transcription', modelType: 'whisper', about: { format: 'CTranslate2' } });
    const kokoro = kokoroFormat('onnx-int8');
    const files = folderFiles(kokoro);
    rmSync(kokoro, { recursive: true });
    hub.commit(new Map(files));
    expect(await find(ID)).toMatchObject({ task: 'speech', modelType: 'kokoro', about: { format: 'onnx', voices: ['af_one', 'bm_two'] } });
    hub.commit(new Map(files.filter(([name]) => !name.startsWith('voices'))));
    await expect(find(`${ID}:kokoro.int8.onnx`)).rejects.toThrow(`${ID}:kokoro.int8.onnx: kokoro.int8.onnx has no voices beside it`);
  });

  test.each([
    [{ 'config.json': '{"model_type":"bert"}', 'model.safetensors': 'x' }, /^config.json says model_type bert; known are llama/],
    [{ 'config.json': '{"quantization_config":{"quant_method":"hqq"}}', 'model.safetensors': 'x' }, /the weights are quantised with HQQ/],
    [{ 'model.safetensors': 'x' }, /^file not found: somebody\/model\/config.json/],
    [
      { 'config.json': '{"model_type":"llama"}', 'pytorch_model.bin': 'x' },
      /^somebody\/model has no weights that are read here; pytorch_model.bin/,
    ],
    [{ 'm-00001-of-00002.gguf': 'GGUF' }, /lacks part 2 of 2 of "m"/],
    [{ 'm.gguf': 'GGUF' }, /^somebody\/model\/m.gguf is not a GGUF file that can be read/],
  ])('%o is refused before it is fetched', async (files, message) => {
    hub.commit(new Map(Object.entries(files).map(([name, text]) => [name, Buffer.from(text)])));
    await expect(find(ID)).rejects.toThrow(message);
  });

  test('is given for a token, which nobody else is sent', async () => {
    hub.commit(new Map(folderFiles(join(ROOT, 'models', 'parley-chat'))));
    Object.assign(hub, { token: 'hf_mine', terms: true });
    // The listing is open to everyone, and the first file is not.
    await expect(find(ID)).rejects.toMatchObject({
      wantsToken: true,
      message: expect.stringMatching(
        /^config.json: somebody\/model is given only to who has accepted its terms: accept them at http:.*\/somebody\/model, then give the hub's token/,
      ) as string,
    });
    await expect(find(ID, { origin: hub.url, token: 'hf_other' })).rejects.toMatchObject({
      wantsToken: true,
      message: expect.stringMatching(/the hub does not accept the token for somebody\/model; see Hub and token/) as string,
    });
    hub.requests.length = 0;
    expect(await find(ID, { origin: hub.url, token: 'hf_mine' })).toMatchObject({ task: 'chat', modelType: 'llama' });
    const sent = (host: string): unknown[] =>
      hub.requests.filter((request) => request.host === host).map(({ authorization }) => authorization);
    expect(new Set(sent('hub'))).toEqual(new Set(['Bearer hf_mine']));
    expect(new Set(sent('storage'))).toEqual(new Set([undefined]));
    hub.requests.length = 0;
    await expect(find(ID, { origin: 'https://huggingface.co', token: 'hf_mine' })).rejects.toThrow();
    expect(new Set(sent('hub'))).toEqual(new Set([undefined]));
  });

  test('that is not to be had says why, and what can be done', async () => {
    const missing = expect.stringMatching(/^the hub has no open model some\/other.* or it is private: then give the hub's token/) as string;
    await expect(find('some/other')).rejects.toMatchObject({ wantsToken: true, message: missing });
    hub.gated = true;
    const denied = expect.stringMatching(
      /^somebody\/model is given only to who has accepted its terms.*, then give the hub's token/,
    ) as string;
    await expect(find(ID)).rejects.toMatchObject({ wantsToken: true, message: denied });
    hub.gated = false;
    hub.status = 503;
    await expect(find(ID)).rejects.toThrow('the hub answered HTTP 503');
    await expect(findModel(ID, { hub: 'http://127.0.0.1:9', describe: readHeaders }, signal)).rejects.toThrow(
      /^the hub at .* cannot be reached/,
    );
  });

  test('may be a GGUF file at an address, and what a page cannot ask for is named', async () => {
    hub.commit(
      new Map([
        ['a b.gguf', bytesOf('test/fixtures/gguf/tiny/llama-F16.gguf')],
        ['m.onnx', Buffer.alloc(3)],
      ]),
    );
    const at = (name: string): string => `${hub.url}/${ID}/resolve/main/${name}`;
    const sha256 = 'a'.repeat(64);
    const found = await find(`${at('a%20b.gguf')}#sha256=${sha256}`);
    expect(found).toMatchObject({ id: 'a b', source: 'address', main: 'a b.gguf', modelType: 'llama' });
    expect(found.files).toMatchObject([{ name: 'a b.gguf', published: { kind: 'sha256', hex: sha256 } }]);
    await expect(find(at('m.onnx'))).rejects.toThrow('only a GGUF file is a whole model');
    await expect(find(at('none.gguf'))).rejects.toMatchObject({ kind: 'missing', message: expect.stringContaining('HTTP 404') as string });
    for (const [status, kind] of [
      [403, 'denied'],
      [503, 'network'],
    ] as const) {
      vi.stubGlobal('fetch', async () => new Response(null, { status }));
      await expect(find('https://files.test/m.gguf')).rejects.toMatchObject({ kind });
      vi.unstubAllGlobals();
    }
    await expect(find('http://example.org/m.gguf')).rejects.toThrow('use https');
    await expect(find('pypi:a@1/b.gguf')).rejects.toThrow('which a page cannot ask');
    await expect(find('./folder')).rejects.toThrow('files and folders are opened with the buttons');
  });
});

test('a model that has no room, in storage or in memory, is refused with both numbers', () => {
  const model = { id: 'm', task: 'chat', modelType: 'llama', source: 'hub', files: [{ name: 'f', size: 5e9, sha256: [] }] } as const;
  expect(() => requireFit(model, {})).not.toThrow();
  expect(() => requireFit(model, { storageBytes: 1e9 })).toThrow('m takes 5.0 GB, and this browser gives this page 1.0 GB more');
  expect(() => requireFit(model, { storageBytes: 1e9 }, 4.5e9)).not.toThrow();
  const heavy = { ...model, about: { memoryBytes: 9e9 } };
  expect(() => requireFit(heavy, { memoryBytes: 4e9 })).toThrow('m needs about 9.0 GB of memory, and this machine has about 4.0 GB');
});

describe('files of the person', () => {
  const file = (path: string, content: Buffer | string): File => {
    const bytes = typeof content === 'string' ? new TextEncoder().encode(content) : new Uint8Array(content);
    return Object.assign(new File([bytes], path.split('/').at(-1)!), { webkitRelativePath: path });
  };
  const open = (folder: string): Promise<PickedModel> => {
    const files = folderFiles(join(ROOT, folder)).map(([name, bytes]) => file(`mine/${name}`, bytes));
    return describeFolder(pickedFiles(files), readHeaders, signal);
  };
  const openGguf = (names: readonly (readonly [string, string])[]): Promise<PickedModel> =>
    describeGguf(
      pickedFiles(names.map(([name, path]) => file(name, path === '' ? '' : bytesOf(`test/fixtures/gguf/tiny/${path}`)))),
      readHeaders,
      signal,
    );

  test('a folder is described as a model of its own, without what is no part of it', async () => {
    const { manifest, blobs } = await open('models/parley-speech');
    expect(manifest).toMatchObject({
      id: 'local/mine',
      task: 'speech',
      modelType: 'kokoro',
      source: 'local',
      about: { sampleRate: 24000 },
    });
    expect(manifest.about!.voices).toHaveLength(19);
    expect([...blobs.keys()]).toEqual(['config.json', 'model.safetensors', 'phoneme_rules.json', 'voices.safetensors']);
    const whisper = await open('test/fixtures/ctranslate2-tiny-random/int8');
    expect(whisper.manifest).toMatchObject({ task: 'transcription', about: { format: 'CTranslate2' } });
  });

  test('a GGUF file is a chat model; several are refused', async () => {
    const { manifest, blobs } = await openGguf([['Tiny-Q8_0.gguf', 'llama-Q8_0.gguf']]);
    expect(manifest).toMatchObject({ id: 'local/Tiny', task: 'chat', modelType: 'llama', main: 'Tiny-Q8_0.gguf' });
    expect([...blobs.keys()]).toEqual(['Tiny-Q8_0.gguf']);
    const two = openGguf([['a.gguf', 'llama-F16.gguf'], ['b.gguf', 'llama-F16.gguf']]); // prettier-ignore
    await expect(two).rejects.toThrow(/^a.gguf, b.gguf: open one model at a time/);
    await expect(openGguf([['a.bin', '']])).rejects.toThrow(/^a.bin is no GGUF file/);
    await expect(openGguf([['a-00001-of-00002.gguf', 'llama-F16.gguf']])).rejects.toThrow(/lacks part 2 of 2 of "a"/);
    await expect(openGguf([['a.gguf', '']])).rejects.toThrow(/^local\/a\/a.gguf is not a GGUF file that can be read/);
  });

  test.each([
    [{ 'picture.png': 'x' }, /^mine has no weights that are read here/],
    [{ 'config.json': '{}', 'model.pth': 'PK' }, /^mine has no weights that are read here; model.pth holds pickled PyTorch weights/],
    [{ 'config.json': 'null', 'model.safetensors': 'x' }, /config.json holds null, expected a JSON object/],
    [{ 'config.json': '{', 'model.safetensors': 'x' }, /config.json is not JSON/],
    [{ 'config.json': '{"model_type":5}', 'model.safetensors': 'x' }, /^config.json says model_type 5; known are/],
  ])('%o is refused', async (files, message) => {
    const picked = Object.entries(files).map(([name, text]) => file(`mine/${name}`, text));
    await expect(describeFolder(pickedFiles(picked), readHeaders, signal)).rejects.toThrow(message);
  });
});

test('an address whose file has the name of a model that is here is not taken for that one', async () => {
  const library = new ModelLibrary(new ModelStore());
  const file = (url: string): ManifestFile => ({ name: 'tiny.gguf', size: 5, url, sha256: [] });
  const manifest: ModelManifest = {
    id: 'tiny',
    task: 'chat',
    modelType: 'llama',
    source: 'address',
    files: [file('https://a.example/tiny.gguf')],
  };
  library.stored.value = [{ manifest, bytes: 5, complete: true }];
  const describe = async () => ({ id: 'tiny', task: 'chat', architecture: 'llama', weightBytes: 5 }) as const;
  const adding = new AddWork({ library, finder: { hub: 'https://hub.example', describe } } as unknown as RecommendedPlace);
  vi.stubGlobal('navigator', {});
  vi.stubGlobal('fetch', async () => new Response(null, { headers: { 'content-length': '5' } }));
  try {
    await adding.lookUp('https://a.example/tiny.gguf');
    expect([adding.note.value, library.found.value]).toEqual(['tiny is in the list below already', []]);
    await adding.lookUp('https://b.example/tiny.gguf');
    expect(adding.problem.value?.message).toBe('another tiny is in the list below: delete that one to have this one');
    library.stored.value = [];
    await adding.lookUp('https://b.example/tiny.gguf');
    expect([adding.note.value, library.manifest('tiny')?.files[0]?.url]).toEqual([
      'tiny has 5 B to download; it is listed below',
      'https://b.example/tiny.gguf',
    ]);
  } finally {
    vi.unstubAllGlobals();
  }
});
