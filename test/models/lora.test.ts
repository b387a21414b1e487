/** LoRA adapters against PEFT, and rows with adapters beside others: the bits that each has alone, and without adapters those of a model that has none. */
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { floatStorage } from '../../engine/config.ts';
import type { OptionalFeature } from '../../engine/gpu/caps.ts';
import type { Device } from '../../engine/gpu/device.ts';
import { createNodePlatform } from '../../engine/platform/node.ts';
import { openSafetensors } from '../../engine/weights/safetensors.ts';
import { differing, expectClose } from '../support/compare.ts';
import { DecoderHarness, argmax } from '../support/decoder-harness.ts';
import type { Chunk } from '../support/decoder-harness.ts';
import { testDevice } from '../support/device.ts';
import { unlessPassed } from '../support/known-cases.ts';

const FIXTURES = join(fileURLToPath(new URL('../..', import.meta.url)), 'test', 'fixtures');
const LORAS = join(FIXTURES, 'lora-tiny-random');
const base = (name: string): string => join(FIXTURES, 'llama-tiny-random', name);
const lora = (id: string) => ({ id, path: join(LORAS, id) });

interface Golden {
  readonly base: string;
  readonly prompt: number[];
  readonly greedy: number[];
}
const readGolden = (name: string): Golden => JSON.parse(readFileSync(join(LORAS, name, 'golden.json'), 'utf8')) as Golden;

const ON_LLAMA = ['queries-values', 'all-linear', 'one-layer'];

const FLAVOURS: readonly { readonly title: string; readonly disable: readonly OptionalFeature[] }[] = [
  { title: 'as it is', disable: [] },
  { title: 'without subgroups', disable: ['subgroups'] },
  { title: 'taken for a GPU', disable: ['software'] },
];

describe.each(FLAVOURS)('an adapter $title', ({ disable }) => {
  let device: Device;
  beforeAll(async () => {
    device = await testDevice({ disable });
  });
  afterAll(() => device.close());

  test.each(readdirSync(LORAS))('%s: logits and 64 greedy tokens are those of PEFT', async (name) => {
    const golden = readGolden(name);
    const checkpoint = await openSafetensors(createNodePlatform(), join(LORAS, name), 'golden.safetensors');
    const logits = await checkpoint.read('logits');
    const [rows = 0] = checkpoint.tensor('logits')!.shape;
    await checkpoint.close();
    await unlessPassed(
      device,
      { expected: [golden, logits] },
      async (on) => {
        const harness = await DecoderHarness.load(on, base(golden.base), { loras: [lora(name)] });
        const prompt = await harness.step([{ sequence: 0, start: 0, tokens: golden.prompt, lora: 1 }]);
        const stepwise = prompt.slice(-1);
        // PEFT's tokens, with which its own best ones are compared.
        const tokens = golden.greedy.slice(0, -1);
        for (const [i, token] of tokens.entries())
          stepwise.push(...(await harness.step([{ sequence: 0, start: golden.prompt.length + i, tokens: [token], lora: 1 }])));
        const whole = await harness.step([{ sequence: 1, start: 0, tokens: [...golden.prompt, ...tokens], lora: 1 }]);
        return { prompt, stepwise, whole };
      },
      ({ prompt, stepwise, whole }) => {
        expectClose(`${name} logits`, Float32Array.from(prompt.slice(-rows).flatMap((row) => [...row])), logits, 1e-6);
        expect(stepwise.map(argmax)).toEqual(golden.greedy);
        expect(differing(whole.slice(golden.prompt.length - 1), stepwise)).toBe(0);
      },
    );
    expect(device.errors).toEqual([]);
  });

  test.each([
    { title: 'f32', storage: floatStorage('f32') },
    { title: 'f16', storage: floatStorage('f16') },
    { title: 'q8_0', storage: { ...floatStorage('f16'), quantization: 'q8_0' } as const },
  ])(
    '$title: rows of three adapters and of none have the bits in one batch that they have alone, and of none those of a model without',
    async ({ storage }) => {
      const { prompt } = readGolden(ON_LLAMA[0]!);
      const prompts = [0, 1, 2, 3].map((of) => ({ sequence: of, start: 0, tokens: prompt.slice(of, 30), lora: of }));
      const decodes = [0, 1, 2, 3].map((of) => ({ sequence: of, start: 30 - of, tokens: [7 + of], lora: of }));
      await unlessPassed(
        device,
        { expected: [] },
        async (on) => {
          const without = await DecoderHarness.load(on, base('llama'), { storage });
          const harness = await DecoderHarness.load(on, base('llama'), { storage, loras: ON_LLAMA.map(lora) });
          const steps: readonly (readonly Chunk[])[] = [prompts, decodes];
          const together: Float32Array[] = [];
          for (const step of steps) together.push(...(await harness.step(step)));
          const alone: Float32Array[] = [];
          for (const step of steps) for (const chunk of step) alone.push(...(await harness.step([chunk])));
          const plain = [...(await without.step([prompts[0]!])), ...(await without.step([decodes[0]!]))];
          return { together, alone, plain };
        },
        ({ together, alone, plain }) => {
          expect(differing(together, alone)).toBe(0);
          const firstRow = (of: number): number => prompts.slice(0, of).reduce((sum, { tokens }) => sum + tokens.length, 0);
          expect(differing([...together.slice(0, 30), together[firstRow(4)]!], plain)).toBe(0);
          // No row has another's adapter.
          expect(new Set([0, 1, 2, 3].map((of) => together[firstRow(4) + of]!.join())).size).toBe(4);
        },
      );
      expect(device.errors).toEqual([]);
    },
  );
});

test('adapters on half-precision weights and pages stay close to those on f32', async () => {
  const device = await testDevice();
  const { prompt } = readGolden('queries-values');
  const chunk = [{ sequence: 0, start: 0, tokens: prompt, lora: 1 }];
  const options = { loras: [lora('queries-values')] };
  const full = await (await DecoderHarness.load(device, base('llama'), options)).step(chunk);
  const half = await (await DecoderHarness.load(device, base('llama'), { ...options, dtype: 'f16' })).step(chunk);
  // Weights are f16 in the file, so only keys and values are rounded; the adapter's scores are larger than the model's.
  half.forEach((row, i) => expectClose(`row ${i}`, row, full[i]!, 1e-4));
  device.close();
});
