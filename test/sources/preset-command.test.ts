/** `--preset small` and `parley pull --preset small` as processes: from a hub that has small models by the names of the real ones, and then from the cache. */
import { expect, onTestFinished, test } from 'vitest';
import { PRESETS, parseSource, presetModels } from '../../sources/index.ts';
import { findModel } from '../../sources/node/index.ts';
import { distinctBytes, hubBench } from '../support/hub-bench.ts';
import { send } from '../support/listeners.ts';
import { startParley } from '../support/run-source.ts';
import { spawnAt, whenReady } from '../support/server-process.ts';

const FAKE = new URL('../support/serve-fake.ts', import.meta.url);
const bench = hubBench();
const files = (...names: string[]): Map<string, Buffer> => new Map(names.map((name) => [name, distinctBytes(5000, name)]));

/** What the repositories of the small preset hold, besides what is not wanted. */
const REPOSITORIES = {
  chat: files('SmolLM2-135M-Instruct.Q2_K.gguf', 'SmolLM2-135M-Instruct.Q4_K_M.gguf', 'README.md'),
  speech: files(
    'config.json',
    'onnx/model.onnx',
    'onnx/model_quantized.onnx',
    'voices/af_heart.bin',
    'voices/bf_emma.bin',
    'tokenizer.json',
  ),
  transcription: files('config.json', 'model.bin', 'tokenizer.json', 'vocabulary.txt'),
};
const WANTED = [
  'SmolLM2-135M-Instruct.Q4_K_M.gguf',
  'config.json',
  'model.bin',
  'onnx/model_quantized.onnx',
  'tokenizer.json',
  'vocabulary.txt',
  'voices/af_heart.bin',
  'voices/bf_emma.bin',
];

function publishPreset(): void {
  for (const { task, sources } of presetModels(PRESETS['small']!)) {
    const source = parseSource(sources[0]!.from);
    if (source.kind !== 'hub') throw new Error(`${sources[0]!.from} is no model of the hub`);
    bench.hub.commitTo(source.id, REPOSITORIES[task], source.revision);
  }
}

test('a preset is fetched, served by its ids without asking anybody, listed and removed', async () => {
  publishPreset();
  const pull = startParley(['pull', '--preset=small'], bench.env());
  expect([await pull.exit, pull.out.text.trim().split('\n').length]).toEqual([0, 3]);
  expect(bench.fetchedNames()).toEqual(WANTED);
  const asked = bench.hub.requests.length;
  const server = spawnAt(FAKE, ['--preset', 'small'], bench.env());
  onTestFinished(() => void server.child.kill('SIGKILL'));
  const list = startParley(['models', '--recommended'], bench.env());
  const { lines, urls } = await whenReady(server);
  const ids = presetModels(PRESETS['small']!).map(({ id }) => id);
  expect(lines.filter((line) => /^(chat|speech|transcription) /.test(line)).map((line) => line.split(/\s+/)[2])).toEqual(ids);
  const [model] = (await send(`${urls['speech']}/models`)).json.data as { id: string }[];
  expect(model!.id).toBe('Kokoro-82M-int8');
  expect(await list.exit).toBe(0);
  expect(list.out.text.match(/^(\S+) .* cached$/gm)!.map((line) => line.split(' ')[0])).toEqual(ids);
  expect(list.out.text).toMatch(/^--preset small {3}any adapter, 3\d\d MB: SmolLM2-135M-Instruct, Kokoro-82M-int8, whisper-base$/m);
  expect(bench.hub.requests).toHaveLength(asked);
  const remove = startParley(['rm', 'whisper-base'], bench.env());
  expect([await remove.exit, remove.out.text]).toEqual([0, expect.stringMatching(/^whisper-base: removed, /)]);
  expect(await findModel('whisper-base', { env: bench.env() })).toBeUndefined();
});

test('what does not fit is refused before anything is asked, in one line and with 2', async () => {
  publishPreset();
  const server = spawnAt(FAKE, ['--preset=medium', '--device-memory=2'], bench.env());
  const pull = startParley(['pull', '--preset', 'large'], bench.env({ PARLEY_DEVICE_MEMORY: '2' }));
  expect([await server.exit, server.lines]).toEqual([
    2,
    [expect.stringMatching(/^--preset medium does not fit .*: it needs 3\.\d GiB .* 0\.8 x 2\.0 GiB \(as set\)/)],
  ]);
  expect([await pull.exit, pull.err.text]).toEqual([
    2,
    expect.stringMatching(
      /^--preset large does not fit .* For another machine: parley pull Qwen3-14B Kokoro-82M whisper-large-v3-turbo\n$/,
    ),
  ]);
  expect(bench.hub.requests).toEqual([]);
});
