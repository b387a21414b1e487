/** Repositories of the time before config.json said how weights are quantised. */
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import { createNodePlatform } from '../../engine/platform/node.ts';
import { withWeights } from '../../engine/weights/model-folder.ts';
import { openModelFolder } from '../../engine/weights/open-model-folder.ts';

const FIXTURES = fileURLToPath(new URL('../fixtures/integers/', import.meta.url));
const platform = createNodePlatform({ log: () => undefined });

test.each([
  [
    'gptq',
    'quantize_config.json',
    'gptq_model-4bit-32g.safetensors',
    { bits: 4, group_size: 32, sym: true, desc_act: false, damp_percent: 0.01 },
  ],
  ['awq', 'quant_config.json', 'model.safetensors', { zero_point: true, q_group_size: 32, w_bit: 4, version: 'GEMM' }],
] as const)('%s as old repositories have it, described by %s, in %s', async (name, settingsFile, weightsFile, settings) => {
  const folder = mkdtempSync(join(tmpdir(), 'parley-integers-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const source = join(FIXTURES, name);
  const { quantization_config: _, ...config } = JSON.parse(readFileSync(join(source, 'config.json'), 'utf8')) as Record<string, unknown>;
  writeFileSync(join(folder, 'config.json'), JSON.stringify(config));
  writeFileSync(join(folder, settingsFile), JSON.stringify(settings));
  cpSync(join(source, 'model.safetensors'), join(folder, weightsFile));
  const model = await openModelFolder(platform, folder);
  expect(model.format).toBe(name === 'gptq' ? 'GPTQ 4-bit' : 'AWQ 4-bit');
  const published = await openModelFolder(platform, source);
  await withWeights(model, (mine) =>
    withWeights(published, async (theirs) => {
      expect(mine.names()).toEqual(theirs.names());
      for (const key of theirs.names()) expect(await mine.read(key)).toEqual(await theirs.read(key));
    }),
  );
  writeFileSync(join(folder, 'another.safetensors'), '');
  rmSync(join(folder, weightsFile));
  writeFileSync(join(folder, 'third.safetensors'), '');
  await expect(model.weights()).rejects.toThrow(/file not found: .*model\.safetensors$/);
});
