/** Small valid checkpoints with one thing changed: each is loaded, or refused with one sentence whose code ends the server for good. */
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { resolveConfig } from '../../engine/config.ts';
import { EngineError } from '../../engine/errors.ts';
import type { Device } from '../../engine/gpu/device.ts';
import { createNodePlatform } from '../../engine/platform/node.ts';
import { ChatEngine } from '../../engine/tasks/chat-engine.ts';
import { Synthesizer } from '../../engine/tasks/synthesizer.ts';
import { Transcriber } from '../../engine/tasks/transcriber.ts';
import { createRng } from '../../engine/util/rng.ts';
import { openSafetensors } from '../../engine/weights/safetensors.ts';
import { testDevice } from '../support/device.ts';
import { mutateBytes, mutateJson, pick } from '../support/mutate-json.ts';
import type { Random } from '../support/mutate-json.ts';
import { writeNumberTokenizer } from '../support/random-checkpoint.ts';
import { safetensorsFile } from '../support/safetensors-file.ts';
import type { Tensors } from '../support/safetensors-file.ts';

const FIXTURES = fileURLToPath(new URL('../fixtures/', import.meta.url));
/** The device's share that a checkpoint of a megabyte may take, whatever its config.json says. */
const LIMITS = { maxRunningRequests: 2, contextLength: 64, deviceMemory: 256 * 2 ** 20 } as const;

type Files = Record<string, Uint8Array>;

interface Kind {
  readonly name: string;
  readonly load: (device: Device, folder: string) => Promise<{ close(): Promise<void> }>;
  readonly write: (folder: string) => void;
  readonly mutations: number;
}

const platform = createNodePlatform({ log: () => undefined });
const config = resolveConfig(LIMITS);

/** A fixture's checkpoint with a tokenizer of numbers. */
const fixture =
  (path: string, vocabulary?: number) =>
  (folder: string): void => {
    cpSync(join(FIXTURES, path), folder, { recursive: true, filter: (file) => !/golden/.test(file) });
    if (vocabulary !== undefined) writeNumberTokenizer(folder, vocabulary);
  };

const KINDS: readonly Kind[] = [
  {
    name: 'chat',
    load: (device, path) => ChatEngine.load(device, platform, { path }, config),
    write: (folder) => {
      fixture('llama-tiny-random/qwen2', 160)(folder);
      writeFileSync(join(folder, 'generation_config.json'), JSON.stringify({ eos_token_id: [2], temperature: 0.7 }));
      const template = '{% for m in messages %}{{ m.role }} {{ m.content }}{% endfor %}';
      writeFileSync(join(folder, 'tokenizer_config.json'), JSON.stringify({ chat_template: template, bos_token: null, eos_token: '2' }));
    },
    mutations: 100,
  },
  {
    name: 'transcription',
    load: (device, path) => Transcriber.load(device, platform, { path }, config),
    write: fixture('whisper-tiny-random', 269),
    mutations: 60,
  },
  {
    name: 'speech',
    load: (device, path) => Synthesizer.load(device, platform, { path }, config),
    write: fixture('kokoro-tiny-random'),
    // Kernels of a loaded one are compiled anew each time.
    mutations: 24,
  },
];

function temporary(): string {
  const path = mkdtempSync(join(tmpdir(), 'parley-'));
  onTestFinished(() => rmSync(path, { recursive: true }));
  return path;
}

function readAll(folder: string, names: readonly string[]): Files {
  return Object.fromEntries(names.map((name) => [name, new Uint8Array(readFileSync(join(folder, name)))]));
}

/** Changes a value in a safetensors header, or elements of its data to what is no number. */
function mutateTensors(rng: Random, file: Uint8Array): Uint8Array {
  const view = new DataView(file.buffer, file.byteOffset, file.byteLength);
  const length = Number(view.getBigUint64(0, true));
  const data = file.slice(8 + length);
  if (rng.uniform() < 0.3) {
    const at = 4 * Math.floor((rng.uniform() * data.length) / 4);
    new DataView(data.buffer).setFloat32(at, pick(rng, [NaN, Infinity, 1e38, -1e30]), true);
    return new Uint8Array(Buffer.concat([file.slice(0, 8 + length), data]));
  }
  const header = new TextEncoder().encode(mutateJson(rng, new TextDecoder().decode(file.slice(8, 8 + length))));
  const head = new Uint8Array(8);
  new DataView(head.buffer).setBigUint64(0, BigInt(header.length), true);
  return new Uint8Array(Buffer.concat([head, header, data]));
}

function mutate(rng: Random, files: Files): { readonly name: string; readonly bytes: Uint8Array } {
  const name = pick(rng, Object.keys(files));
  const bytes = files[name]!;
  if (rng.uniform() < 0.15) return { name, bytes: mutateBytes(rng, bytes) };
  if (name.endsWith('.safetensors')) return { name, bytes: mutateTensors(rng, bytes) };
  return { name, bytes: new TextEncoder().encode(mutateJson(rng, new TextDecoder().decode(bytes))) };
}

/** Why loading failed, after checking that it is a refusal; undefined when it was loaded. */
async function refusalOf(loading: Promise<{ close(): Promise<void> }>): Promise<string | undefined> {
  try {
    await (await loading).close();
    return undefined;
  } catch (error) {
    const problem = error instanceof EngineError ? error.message : `not a refusal: ${(error as Error).stack}`;
    expect(error, problem).toBeInstanceOf(EngineError);
    expect(['invalid_model', 'unsupported', 'out_of_memory'], problem).toContain((error as EngineError).code);
    expect(problem).not.toMatch(/\n|TypeError|Cannot read|is not a function|not iterable|assertion/);
    expect(problem.length).toBeLessThan(1000);
    return problem;
  }
}

describe.each(KINDS)('a $name checkpoint', ({ name, load, write, mutations }) => {
  let device: Device;
  let folder: string;
  beforeAll(async () => {
    device = await testDevice();
    folder = mkdtempSync(join(tmpdir(), 'parley-'));
    write(folder);
  });
  afterAll(() => {
    rmSync(folder, { recursive: true });
    device.close();
  });

  const FILES: Readonly<Record<string, readonly string[]>> = {
    chat: ['config.json', 'generation_config.json', 'tokenizer.json', 'tokenizer_config.json', 'model.safetensors'],
    transcription: ['config.json', 'generation_config.json', 'preprocessor_config.json', 'tokenizer.json', 'model.safetensors'],
    speech: ['config.json', 'model.safetensors', 'voices.safetensors'],
  };

  test('is loaded as it is', async () => {
    await (await load(device, folder)).close();
  });

  test('with any file null, missing, empty or a list is refused with a sentence', async () => {
    for (const file of FILES[name]!) {
      for (const text of ['null', '', '[]', '5', '{']) {
        const path = temporary();
        cpSync(folder, path, { recursive: true });
        writeFileSync(join(path, file), text);
        const problem = await refusalOf(load(device, path));
        expect(problem, `${file}: ${text}`).toContain(file);
      }
    }
  });

  test(`with one of ${mutations} mutations is loaded or refused with a sentence`, async () => {
    const files = readAll(folder, FILES[name]!);
    const seed = Number(process.env['PARLEY_SEED'] ?? 1);
    const path = temporary();
    let refused = 0;
    for (let i = 0; i < mutations; i++) {
      const rng = createRng(seed * 1000 + i);
      cpSync(folder, path, { recursive: true });
      const { name: file, bytes } = mutate(rng, files);
      writeFileSync(join(path, file), bytes);
      try {
        if ((await refusalOf(load(device, path))) !== undefined) refused++;
      } catch (error) {
        const shown = new TextDecoder().decode(bytes.slice(0, 3000));
        throw new Error(`mutation ${i} of ${file}: ${(error as Error).message}\n${shown}`, { cause: error });
      }
      expect(device.errors).toEqual([]);
    }
    console.log(
      `${name}: ${refused} of ${mutations} refused, the others loaded; ${(process.memoryUsage().rss / 2 ** 20).toFixed(0)} MiB resident`,
    );
    expect(refused).toBeGreaterThan(mutations / 4);
  });
});

/** Writes a folder's weights anew as F32, with one tensor full of a value. */
async function fillTensor(folder: string, name: string, value: number): Promise<void> {
  const checkpoint = await openSafetensors(platform, folder);
  const tensors: Tensors = {};
  for (const one of checkpoint.names()) {
    const data = await checkpoint.read(one);
    tensors[one] = { shape: checkpoint.tensor(one)!.shape, data: one === name ? data.fill(value) : data };
  }
  await checkpoint.close();
  writeFileSync(join(folder, 'model.safetensors'), safetensorsFile(tensors));
}

describe('weights that lead out of the finite numbers', () => {
  let device: Device;
  beforeAll(async () => {
    device = await testDevice();
  });
  afterAll(() => device.close());

  test.each([
    ['f16', NaN, /tensor model.layers.1.mlp.down_proj.weight holds NaN at element 0, expected finite values/],
    ['f16', 1e30, /tensor model.layers.1.mlp.down_proj.weight holds 1.*e\+30, which f16 cannot hold/],
    ['f32', 3e38, /first values are not finite from 'layer 1' on: the weights are damaged/],
  ] as const)('chat in %s with a matrix of %d is refused with its name', async (dtype, value, message) => {
    const path = temporary();
    KINDS[0]!.write(path);
    await fillTensor(path, 'model.layers.1.mlp.down_proj.weight', value);
    const loading = ChatEngine.load(device, platform, { path }, resolveConfig({ ...LIMITS, dtype }));
    expect(await refusalOf(loading)).toMatch(message);
  });

  test.each([
    ['transcription', 'model.decoder.layer_norm.weight', /the first token's logits are not finite/],
    ['speech', 'decoder.generator.conv_post.bias', /samples spoken are not finite: the weights are damaged/],
  ])('%s with a vector that overflows is refused', async (name, tensor, message) => {
    const kind = KINDS.find((one) => one.name === name)!;
    const path = temporary();
    kind.write(path);
    await fillTensor(path, tensor, 3e38);
    expect(await refusalOf(kind.load(device, path))).toMatch(message);
  });
});
