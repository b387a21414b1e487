/**
 * Small random models written and quantised by llama.cpp itself (test/tools/dump_gguf_tiny.py) give the logits that transformers gives in f32 on the
 * dequantised weights, and a bad file is refused with one line.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import type { ChatRequest } from '../../engine/api.ts';
import { resolveConfig } from '../../engine/config.ts';
import { EngineError, namingModel } from '../../engine/errors.ts';
import type { Device } from '../../engine/gpu/device.ts';
import { createNodePlatform } from '../../engine/platform/node.ts';
import { ChatEngine } from '../../engine/tasks/chat-engine.ts';
import { Tokenizer } from '../../engine/text/tokenizer.ts';
import { createRng } from '../../engine/util/rng.ts';
import { withWeights } from '../../engine/weights/model-folder.ts';
import { openModelFolder } from '../../engine/weights/open-model-folder.ts';
import { openSafetensors } from '../../engine/weights/safetensors.ts';
import { checkpointBytes } from '../../engine/weights/storage.ts';
import { countWork } from '../support/kernel-work.ts';
import { expectClose } from '../support/compare.ts';
import { DecoderHarness } from '../support/decoder-harness.ts';
import { testDevice } from '../support/device.ts';
import { unlessPassed } from '../support/known-cases.ts';

const FOLDER = fileURLToPath(new URL('../fixtures/gguf/tiny/', import.meta.url));
const platform = createNodePlatform({ log: () => undefined });

interface Golden {
  readonly prompt: string;
  readonly prompt_ids: readonly number[];
}
const golden = JSON.parse(readFileSync(join(FOLDER, 'golden.json'), 'utf8')) as Readonly<Record<'llama' | 'qwen3', Golden>>;

let device: Device;
beforeAll(async () => {
  device = await testDevice();
});
afterAll(() => device.close());

const flat = (rows: readonly Float32Array[]): Float32Array => Float32Array.from(rows.flatMap((row) => [...row]));

describe.each(['llama', 'qwen3'] as const)('%s by llama.cpp', (name) => {
  const { prompt, prompt_ids } = golden[name];

  test('its prompt has the tokens of the tokenizer it was made from', async () => {
    const tokenizer = await Tokenizer.load(await openModelFolder(platform, join(FOLDER, `${name}-Q8_0.gguf`)));
    expect(tokenizer.encode(prompt, { addSpecialTokens: true })).toEqual(prompt_ids);
    expect(tokenizer.decode(prompt_ids)).toBe(prompt);
  });

  // Of Q4_K products scale the sums of blocks where the adapter has kernels for that (shaders/lib/fold.wgsl): rounded elsewhere. Without textures none has.
  test.each([
    ['Q8_0', 0],
    ['Q4_K_M', 1e-11],
  ] as const)(
    '%s: matrices that stay in the blocks of the file give the bits that their values in f32 give, and by sums of blocks an error of %s',
    async (kind, error) => {
      const path = join(FOLDER, `${name}-${kind}.gguf`);
      const step = [{ sequence: 0, start: 0, tokens: prompt_ids }];
      const storage = { float: 'f32', keepBlocks: true, quantization: 'none' } as const;
      onTestFinished(() => void device.pretend([]));
      await unlessPassed(
        device,
        { expected: [kind, error] },
        async (on) => {
          device.pretend([]);
          const unpacked = await DecoderHarness.load(on, path);
          const expected = await unpacked.step(step);
          const folded = await (await DecoderHarness.load(on, path, { storage })).step(step);
          device.pretend(['textures']);
          const packed = await DecoderHarness.load(on, path, { storage });
          expect(packed.weightBytes).toBeLessThan(unpacked.weightBytes / 2);
          return { expected, folded, packed: await packed.step(step) };
        },
        ({ expected, folded, packed }) => {
          expectClose(kind, flat(folded), flat(expected), error);
          expect(packed).toEqual(expected);
        },
      );
      expect(device.errors).toEqual([]);
    },
  );

  test('a decoding step reads its matrices once', async () => {
    const storage = { float: 'f16', keepBlocks: true, quantization: 'none' } as const;
    const harness = await DecoderHarness.load(device, join(FOLDER, `${name}-Q4_K_M.gguf`), { storage, dtype: 'f16' });
    const read = countWork(device, () => 1);
    onTestFinished(() => read.stop());
    for (const tokens of [1, 4]) {
      const before = read.matrices;
      const chunks = Array.from({ length: tokens }, (_, sequence) => ({ sequence, start: 0, tokens: [prompt_ids[0]!] }));
      await harness.step(chunks);
      expect(read.matrices - before).toBeGreaterThan(harness.weightBytes * 0.5);
      expect(read.matrices - before).toBeLessThan(harness.weightBytes * 1.05);
    }
  });

  test.each([
    ['q8_0', 0.6, 1e-3],
    ['q4_0', 0.5, 1e-1],
  ] as const)('packed to %s as they load, float matrices take %s of f16 and stay near', async (quantization, share, error) => {
    const path = join(FOLDER, `${name}-F16.gguf`);
    const step = [{ sequence: 0, start: 0, tokens: prompt_ids }];
    const storage = { float: 'f16', keepBlocks: true, quantization } as const;
    // The plan knows that the table has 8 bits whatever is asked for; the angles of positions and padding are the rest.
    const planned = await withWeights(await openModelFolder(platform, path), async (checkpoint) => checkpointBytes(checkpoint, storage));
    await unlessPassed(
      device,
      { expected: [quantization, error] },
      async (on) => {
        const half = await DecoderHarness.load(on, path, { dtype: 'f16' });
        const packed = await DecoderHarness.load(on, path, { storage, dtype: 'f16' });
        expect(packed.weightBytes).toBeLessThan(half.weightBytes * share);
        expect(packed.weightBytes / planned).toBeLessThan(1.35);
        return [await packed.step(step), await half.step(step)] as const;
      },
      ([packed, half]) => expectClose(quantization, flat(packed), flat(half), error),
    );
    expect(device.errors).toEqual([]);
  });

  test.each(['F16', 'Q8_0', 'Q4_K_M'])('%s: the logits are transformers on the same values', async (kind) => {
    const path = join(FOLDER, `${name}-${kind}.gguf`);
    expect((await openModelFolder(platform, path)).format).toBe(`GGUF ${kind}`);
    const reference = await openSafetensors(platform, FOLDER, 'golden.safetensors');
    const expected = await reference.read(`${name}-${kind}`);
    await reference.close();
    await unlessPassed(
      device,
      { expected: [expected] },
      async (on) => (await DecoderHarness.load(on, path)).step([{ sequence: 0, start: 0, tokens: prompt_ids }]),
      // Rounding of f32 sums in another order; the stored values are the same bits.
      (logits) => expectClose(`${name} ${kind}`, flat(logits), expected, 1e-5),
    );
    expect(device.errors).toEqual([]);
  });
});

/** Replaces, cuts out or adds bytes somewhere, mostly in the header, which is the first few kilobytes. */
function mutate(rng: ReturnType<typeof createRng>, file: Uint8Array): Uint8Array {
  const header = 12_000;
  const at = Math.floor(rng.uniform() * (rng.uniform() < 0.85 ? header : file.length));
  const kind = rng.uniform();
  if (kind < 0.15) return file.slice(0, at);
  if (kind < 0.25) return new Uint8Array([...file.subarray(0, at), ...file.subarray(at + 1 + Math.floor(rng.uniform() * 40))]);
  if (kind < 0.35)
    return new Uint8Array([...file.subarray(0, at), ...new Uint8Array(1 + Math.floor(rng.uniform() * 64)), ...file.subarray(at)]);
  const changed = file.slice();
  const length = kind < 0.6 ? 1 : kind < 0.8 ? 4 : 8;
  const odd = [0, 1, 0x7f, 0x80, 0xff][Math.floor(rng.uniform() * 5)]!;
  for (let i = at; i < Math.min(at + length, changed.length); i++) changed[i] = rng.uniform() < 0.5 ? odd : Math.floor(rng.uniform() * 256);
  return changed;
}

test('200 mutated files are loaded, or refused with one line that names the file', { timeout: 600_000 }, async () => {
  const rng = createRng(4711);
  const folder = mkdtempSync(join(tmpdir(), 'parley-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const path = join(folder, 'mutated.gguf');
  const whole = new Uint8Array(readFileSync(join(FOLDER, 'llama-Q4_K_M.gguf')));
  const config = resolveConfig({ maxRunningRequests: 2, contextLength: 64, deviceMemory: 256 * 2 ** 20 });
  const before = process.memoryUsage().rss;
  let most = before;
  let refused = 0;
  for (let i = 0; i < 200; i++) {
    writeFileSync(path, mutate(rng, whole));
    const error: unknown = await namingModel(path, ChatEngine.load(device, platform, { path }, config)).then(
      (engine) => engine.close(),
      (thrown: unknown) => thrown,
    );
    most = Math.max(most, process.memoryUsage().rss);
    if (error === undefined) continue;
    refused++;
    expect(error, `mutation ${i}: ${error instanceof Error ? error.stack : 'no error'}`).toBeInstanceOf(EngineError);
    const { code, message } = error as EngineError;
    expect(['invalid_model', 'unsupported'], `mutation ${i}: ${message}`).toContain(code);
    expect(message).toContain(path);
    expect(message).not.toMatch(/\n|TypeError|RangeError|Cannot read|undefined/);
    expect(message.length).toBeLessThan(1000);
    expect(device.errors).toEqual([]);
  }
  console.log(`GGUF: ${refused} of 200 refused, ${((most - before) / 2 ** 20).toFixed(0)} MiB more at most`);
  expect(refused).toBeGreaterThan(100);
  // The others are loaded, each with its buffers.
  expect(most - before).toBeLessThan(512 * 2 ** 20);
});

test('what goes on from a text begins with the space that it has, a new answer does not', async () => {
  const engine = await ChatEngine.load(
    device,
    platform,
    { path: join(FOLDER, 'llama-F16.gguf') },
    resolveConfig({ maxRunningRequests: 1 }),
  );
  onTestFinished(() => engine.close());
  const [the] = (await engine.tokenize({ prompt: 'a the' })).slice(-1);
  const ask = async (request: Partial<ChatRequest>): Promise<string> => {
    let text = '';
    const whole = { messages: [], sampling: { temperature: 0, logitBias: { [the!]: 100 } }, maxTokens: 2, ...request };
    for await (const event of engine.chat(whole, new AbortController().signal)) if (event.type === 'delta') text += event.text;
    return text;
  };
  const turn = [{ role: 'user', content: 'Hi' }, { role: 'assistant', content: 'Once upon a' }] as const; // prettier-ignore
  expect(await ask({ prompt: 'Once upon a' })).toBe(' the the');
  expect(await ask({ prompt: await engine.tokenize({ prompt: 'Once upon a' }) })).toBe(' the the');
  expect(await ask({ messages: turn, continueFinalMessage: true })).toBe(' the the');
  expect(await ask({ messages: turn.slice(0, 1) })).toBe('the the');
});
