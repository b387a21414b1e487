/**
 * Published GGUF files: prompts have the tokens, and every greedy token is the one, that transformers gives in f32 on the dequantised weights, with matrices
 * as in the file and in f16. Keys and values, and then weights, are stored in f16 here, so two tokens may change places whose log probabilities differ by
 * less than 0.013. The files are not in the repository (../support/weights.ts).
 */
import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { weightStorage } from '../../engine/config.ts';
import type { Device } from '../../engine/gpu/device.ts';
import { createNodePlatform } from '../../engine/platform/node.ts';
import { Tokenizer } from '../../engine/text/tokenizer.ts';
import { openModelFolder } from '../../engine/weights/open-model-folder.ts';
import { DecoderHarness, argmax } from '../support/decoder-harness.ts';
import { testDevice } from '../support/device.ts';
import { publishedWeights } from '../support/weights.ts';

interface Golden {
  readonly file: string;
  readonly cases: readonly {
    readonly prompt: string;
    readonly prompt_ids: readonly number[];
    readonly ids: readonly number[];
    readonly gaps: readonly number[];
  }[];
}

const FLIPS_BELOW = 0.013;

describe.each(['smollm2-135m-q4_1', 'qwen2.5-coder-0.5b', 'gemma-3-270m-q4_k_m'])('%s', (name) => {
  const golden = JSON.parse(readFileSync(new URL(`../fixtures/gguf/${name}.json`, import.meta.url), 'utf8')) as Golden;
  const { path, absent } = publishedWeights(golden.file);

  describe.skipIf(absent !== undefined)(absent ?? 'against transformers', () => {
    let device: Device;
    beforeAll(async () => {
      device = await testDevice();
    });
    afterAll(() => device.close());

    test('prompts have the same tokens', async () => {
      const tokenizer = await Tokenizer.load(await openModelFolder(createNodePlatform(), path));
      for (const { prompt, prompt_ids } of golden.cases) expect(tokenizer.encode(prompt, { addSpecialTokens: true })).toEqual(prompt_ids);
    });

    test.each(['auto', 'f16'] as const)('greedy tokens are the same with weights stored as %s', async (dtype) => {
      const storage = weightStorage({ dtype, quantization: 'none' });
      const harness = await DecoderHarness.load(device, path, {
        storage,
        dtype: 'f16',
        context: 256,
        sequences: golden.cases.length,
        rows: 96,
      });
      for (const [sequence, { prompt_ids, ids, gaps }] of golden.cases.entries()) {
        const rows = await harness.step([{ sequence, start: 0, tokens: [...prompt_ids, ...ids.slice(0, -1)] }]);
        const found = rows.slice(prompt_ids.length - 1).map((row, i) => (gaps[i]! < FLIPS_BELOW ? ids[i]! : argmax(row)));
        expect(found).toEqual(ids);
      }
      expect(device.errors).toEqual([]);
    });
  });
});
