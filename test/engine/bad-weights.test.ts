/** Published formats with bytes changed: every file is read, or refused in one line that names it; nothing else happens, and memory stays bounded. */
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { EngineError } from '../../engine/errors.ts';
import { createNodePlatform } from '../../engine/platform/node.ts';
import { createRng } from '../../engine/util/rng.ts';
import { withWeights } from '../../engine/weights/model-folder.ts';
import { openModelFolder } from '../../engine/weights/open-model-folder.ts';
import { kokoroFormat } from '../support/kokoro-formats.ts';

const MUTATIONS = 100;
/** The files have 0.1 to 0.7 MB; what is read is let go between. */
const MEMORY = 512 * 2 ** 20;
const platform = createNodePlatform();

interface Kind {
  readonly file: string;
  /** The weights, as a folder of Hugging Face calls them, that the file holds. */
  readonly holds: 'model.safetensors' | 'voices.safetensors';
  readonly make: () => string;
}

const fixture = (path: string) => (): string => {
  const folder = mkdtempSync(join(tmpdir(), 'parley-'));
  cpSync(fileURLToPath(new URL(`../fixtures/${path}`, import.meta.url)), folder, { recursive: true });
  return folder;
};

const KINDS: readonly Kind[] = [
  { file: 'model.safetensors', holds: 'model.safetensors', make: fixture('llama-tiny-random/qwen3') },
  { file: 'model.bin', holds: 'model.safetensors', make: fixture('ctranslate2-tiny-random/int8') },
  { file: 'kokoro.int8.onnx', holds: 'model.safetensors', make: () => kokoroFormat('onnx-int8') },
  { file: 'kokoro-v1_0.pth', holds: 'model.safetensors', make: () => kokoroFormat('pth') },
  { file: 'voices/af_one.pt', holds: 'voices.safetensors', make: () => kokoroFormat('pth') },
  { file: 'voices-v1.0.bin', holds: 'voices.safetensors', make: () => kokoroFormat('onnx') },
];

type Random = ReturnType<typeof createRng>;
const below = (rng: Random, n: number): number => Math.floor(rng.uniform() * n);

/** Cuts a file, overwrites a few bytes, puts an extreme number somewhere, repeats or drops a piece; near both ends more often, where tables lie. */
function mutate(rng: Random, bytes: Buffer): Buffer {
  const copy = Buffer.from(bytes);
  const near = (): number => [below(rng, copy.length), below(rng, Math.min(2000, copy.length)), copy.length - 1 - below(rng, Math.min(4000, copy.length))][below(rng, 3)]!; // prettier-ignore
  const kind = below(rng, 6);
  if (kind === 0) return copy.subarray(0, below(rng, copy.length));
  if (kind === 1) return Buffer.concat([copy.subarray(0, near()), copy.subarray(near())]);
  if (kind === 2) copy.writeUInt32LE([0, 0xffff_ffff, 0x7fff_ffff, 0x8000_0000, 1][below(rng, 5)]!, Math.min(near(), copy.length - 4));
  else if (kind === 3) copy.fill(below(rng, 256), 0, below(rng, 40));
  else for (let i = 0; i < 1 + below(rng, 8); i++) copy[near()] = below(rng, 256);
  return copy;
}

/** Opens a folder and reads all of these weights, a tensor at a time. */
async function readAll(path: string, weights: Kind['holds']): Promise<void> {
  const folder = await openModelFolder(platform, path);
  for (const file of ['config.json', 'generation_config.json'] as const) await folder.json(file, { optional: true });
  await withWeights(folder, async (checkpoint) => {
    for (const name of checkpoint.names()) await checkpoint.read(name);
  }, weights); // prettier-ignore
}

describe.each(KINDS)('$file', ({ file, holds, make }) => {
  let folder: string;
  beforeAll(() => {
    folder = make();
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  test('is read as it is', () => readAll(folder, holds));

  test(`with one of ${MUTATIONS} mutations is read, or refused in a line that names it`, async () => {
    const path = join(folder, file);
    const bytes = readFileSync(path);
    const before = process.memoryUsage().rss;
    let refused = 0;
    let most = before;
    for (let i = 0; i < MUTATIONS; i++) {
      writeFileSync(path, mutate(createRng(7000 + i), bytes));
      const error: unknown = await readAll(folder, holds).catch((reason: unknown) => reason);
      most = Math.max(most, process.memoryUsage().rss);
      if (error === undefined) continue;
      refused++;
      const problem = error instanceof EngineError ? error.message : `mutation ${i} is no refusal: ${(error as Error).stack}`;
      expect(error, problem).toMatchObject({ code: 'invalid_model' });
      expect(problem).toContain(file);
      expect(problem).not.toMatch(/\n|TypeError|RangeError|undefined|NaN is not/);
      expect(problem.length).toBeLessThan(1000);
    }
    writeFileSync(path, bytes);
    console.log(`${file}: ${refused} of ${MUTATIONS} refused, ${((most - before) / 2 ** 20).toFixed(0)} MiB more at most`);
    expect(refused).toBeGreaterThan(MUTATIONS / 4);
    expect(most - before).toBeLessThan(MEMORY);
  }, 300_000);
});
