/**
 * Integer-quantised safetensors: the values are those of the packages that define the formats, to the bit, in whole and in parts
 * (test/tools/dump_integers.py writes the fixtures); what is wrong or not read is refused in one line.
 */
import { createHash } from 'node:crypto';
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, onTestFinished, test } from 'vitest';
import { EngineError } from '../../engine/errors.ts';
import { createNodePlatform } from '../../engine/platform/node.ts';
import { createRng } from '../../engine/util/rng.ts';
import { widenBlocks } from '../../engine/weights/block-format.ts';
import { BLOCK_FORMATS } from '../../engine/weights/block-types.ts';
import type { Checkpoint } from '../../engine/weights/checkpoint.ts';
import { encodeRows, widenRows } from '../../engine/weights/integers/encode-rows.ts';
import { blocksOf, groupsInOrder } from '../../engine/weights/integers/integer-matrix.ts';
import type { IntegerMatrix } from '../../engine/weights/integers/integer-matrix.ts';
import { unpackRows } from '../../engine/weights/integers/unpack-codes.ts';
import { withWeights } from '../../engine/weights/model-folder.ts';
import { openModelFolder } from '../../engine/weights/open-model-folder.ts';
import { mutateBytes, mutateJson } from '../support/mutate-json.ts';

const FIXTURES = fileURLToPath(new URL('../fixtures/integers/', import.meta.url));
const platform = createNodePlatform({ log: () => undefined });

/** By fixture: the name of its format, and the types of blocks of its matrices; `floats` where no blocks hold them. */
const FORMATS: readonly (readonly [name: string, format: string, types: readonly string[]])[] = [
  ['gptq', 'GPTQ 4-bit', ['Q4_0']],
  ['gptq-v2', 'GPTQ 4-bit', ['Q5_0']],
  ['gptq-act-order', 'GPTQ 4-bit', ['floats']],
  ['gptq-8', 'GPTQ 8-bit', ['Q8_0']],
  ['gptq-8-mixed', 'GPTQ 4-bit', ['Q5_0', 'floats']],
  ['awq', 'AWQ 4-bit', ['Q5_0']],
  ['compressed', 'compressed-tensors 4-bit', ['Q4_0']],
  ['compressed-zeros', 'compressed-tensors 4-bit', ['Q5_0']],
  ['compressed-act-order', 'compressed-tensors 4-bit', ['floats']],
  ['compressed-8', 'compressed-tensors 8-bit', ['I8', 'Q8_0']],
  ['compressed-bytes', 'compressed-tensors 8-bit', ['I8']],
  ['compressed-one', 'compressed-tensors 8-bit', ['I8']],
  ['mlx', 'MLX 4-bit', ['Q4_1']],
  ['mlx-8', 'MLX 8-bit', ['U8']],
  ['mlx-mixed', 'MLX 4-bit', ['Q4_1', 'Q5_1', 'U8']],
  ['bitsandbytes', 'bitsandbytes 4-bit', ['floats']],
  ['bitsandbytes-fp4', 'bitsandbytes 4-bit', ['floats']],
  ['bitsandbytes-8', 'bitsandbytes 8-bit', ['I8']],
  ['nvfp4', 'NVFP4', ['NVFP4', 'floats']],
  ['nvfp4-modelopt', 'NVFP4', ['NVFP4', 'floats']],
];

interface Golden {
  readonly sha256: Readonly<Record<string, string>>;
}
const goldenOf = (name: string): Golden => JSON.parse(readFileSync(join(FIXTURES, name, 'golden.json'), 'utf8')) as Golden;

async function read<T>(folder: string, use: (checkpoint: Checkpoint) => Promise<T>): Promise<T> {
  const model = await openModelFolder(platform, folder);
  await model.json('config.json');
  return withWeights(model, use);
}

const digest = ({ buffer, byteOffset, byteLength }: Float32Array): string =>
  createHash('sha256')
    .update(new Uint8Array(buffer, byteOffset, byteLength))
    .digest('hex');

describe.each(FORMATS)('%s', (name, format, types) => {
  const { sha256 } = goldenOf(name);

  test('matrices have the bits of the reference, and no other tensors are left but those of floats', async () => {
    expect((await openModelFolder(platform, join(FIXTURES, name))).format).toBe(format);
    await read(join(FIXTURES, name), async (checkpoint) => {
      const found = Object.keys(sha256).map((key) => checkpoint.tensor(key)?.blocks ?? 'floats');
      expect([...new Set(found)].sort()).toEqual(types);
      for (const [key, expected] of Object.entries(sha256)) expect([key, digest(await checkpoint.read(key))]).toEqual([key, expected]);
      const others = checkpoint.names().filter((key) => !(key in sha256));
      expect(others.filter((key) => !/(?:norm|embed_tokens)\.weight$|\.bias$/.test(key))).toEqual([]);
    });
  });

  test('any rows and any part are those of the whole', async () => {
    await read(join(FIXTURES, name), async (checkpoint) => {
      const key = 'model.layers.0.self_attn.k_proj.weight';
      const { shape, blocks } = checkpoint.tensor(key)!;
      const [rows = 0, columns = 0] = shape;
      const whole = await checkpoint.read(key);
      const parts = [[0, 1], [31, 33], [5 * columns - 3, 9 * columns + 1], [whole.length - 3, whole.length]] as const; // prettier-ignore
      for (const [from, to] of parts) expect(await checkpoint.read(key, { from, to })).toEqual(whole.subarray(from, to));
      if (!blocks) return;
      const { values, bytes } = BLOCK_FORMATS[blocks];
      const inRow = (columns / values) * bytes;
      const all = await checkpoint.blocks!(key, { from: 0, to: rows });
      const room = new Uint8Array(all.length);
      for (const [from, to] of [
        [0, 3],
        [3, 14],
        [17, 32],
        [9, 10],
      ] as const)
        // prettier-ignore
        expect(await checkpoint.blocks!(key, { from, to }, room)).toEqual(all.slice(from * inRow, to * inRow));
    });
  });
});

/** A matrix [4, 64] of codes 0 to 15 with these scales, one for each row and 32 columns. */
function matrixOf(scales: Float32Array): {
  readonly matrix: IntegerMatrix;
  readonly widened: Float32Array;
  readonly encoded: Float32Array;
} {
  const groups = groupsInOrder(32, 64);
  const words = Uint32Array.from({ length: 32 }, (_, i) => (i % 2 ? 0xfedcba98 : 0x76543210));
  const rows = { unpack: unpackRows(words, 8, 4), scales };
  const matrix: IntegerMatrix = { dtype: 'test', shape: [4, 64], blocks: blocksOf({ bits: 4, zero: 8 }, 64, groups), groups, zero: 8, readRows: () => Promise.resolve(rows) }; // prettier-ignore
  const [widened, encoded, bytes] = [new Float32Array(256), new Float32Array(256), new Uint8Array(8 * 18)];
  widenRows(matrix, rows, 4, widened);
  encodeRows(matrix, rows, 4, bytes);
  widenBlocks(BLOCK_FORMATS.Q4_0, bytes, encoded);
  return { matrix, widened, encoded };
}

test('scales of f16, and those of bf16 from 2^-17 on, are kept; others are rounded to f16', () => {
  const rng = createRng(3);
  const bf16 = Float32Array.from({ length: 8 }, (_, i) => (1 + i / 128) * 2 ** -(17 - 2 * i));
  expect(matrixOf(bf16).encoded).toEqual(matrixOf(bf16).widened);
  for (const exponent of [-4, -9, -13]) {
    const { widened, encoded } = matrixOf(Float32Array.from({ length: 8 }, () => (1 + rng.uniform()) * 2 ** exponent));
    encoded.forEach((value, i) => expect(Math.abs(value - widened[i]!)).toBeLessThanOrEqual(Math.abs(widened[i]!) * 2 ** -11));
  }
  const { widened, encoded } = matrixOf(Float32Array.from({ length: 8 }, () => rng.uniform() * 2 ** -14));
  encoded.forEach((value, i) => expect(Math.abs(value - widened[i]!)).toBeLessThanOrEqual(8 * 2 ** -25));
  expect(encoded).not.toEqual(widened);
});

/** Splits a safetensors file into its header and its data. */
function parted(file: Buffer): {
  readonly header: Record<string, { dtype: string; shape: number[]; data_offsets: number[] }>;
  readonly data: Buffer;
} {
  const length = Number(file.readBigUInt64LE(0));
  return {
    header: JSON.parse(file.toString('utf8', 8, 8 + length)) as ReturnType<typeof parted>['header'],
    data: file.subarray(8 + length),
  };
}

function joined(header: string, data: Buffer): Buffer {
  const head = Buffer.alloc(8);
  head.writeBigUInt64LE(BigInt(Buffer.byteLength(header)));
  return Buffer.concat([head, Buffer.from(header), data]);
}

interface Files {
  readonly config: Record<string, Record<string, unknown>>;
  readonly header: ReturnType<typeof parted>['header'];
  readonly data: Buffer;
}

/** A copy of a fixture with something changed. */
function changed(name: string, change: (files: Files) => void): string {
  const folder = mkdtempSync(join(tmpdir(), 'parley-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  cpSync(join(FIXTURES, name), folder, { recursive: true });
  const { header, data } = parted(readFileSync(join(folder, 'model.safetensors')));
  const config = JSON.parse(readFileSync(join(folder, 'config.json'), 'utf8')) as Files['config'];
  change({ config, header, data });
  writeFileSync(join(folder, 'config.json'), JSON.stringify(config));
  writeFileSync(join(folder, 'model.safetensors'), joined(JSON.stringify(header), data));
  return folder;
}

const MODULE = 'model.layers.0.self_attn.q_proj';
/** Gives a tensor another name, since every byte of a file belongs to one. */
const without =
  (end: string) =>
  ({ header }: Files): void => {
    header['other'] = header[`${MODULE}.${end}`]!;
    delete header[`${MODULE}.${end}`];
  };
const shaped =
  (end: string, shape: number[], dtype?: string) =>
  ({ header }: Files): void => {
    Object.assign(header[`${MODULE}.${end}`]!, { shape, ...(dtype !== undefined && { dtype }) });
  };
/** Writes words into a tensor's data. */
const filled =
  (end: string, ...words: number[]) =>
  ({ header, data }: Files): void => {
    words.forEach((word, i) => data.writeUInt32LE(word, header[`${MODULE}.${end}`]!.data_offsets[0]! + 4 * i));
  };
const said =
  (field: string, value: unknown) =>
  ({ config }: Files): void =>
    void (config['quantization_config']![field] = value);

test.each<readonly [string, string, (files: Files) => void, RegExp]>([
  [
    'gptq',
    'no scales',
    without('scales'),
    /q_proj.qweight needs scales and zero points beside it; .*q_proj.scales is missing, .*qzeros is I32 \[2, 8\], .*qweight is I32 \[8, 64\]$/,
  ],
  ['gptq', 'no zero points', without('qzeros'), /qzeros is missing/],
  [
    'gptq',
    'scales of another shape',
    shaped('scales', [1, 128]),
    /needs a scale and a zero point for each group and row; .*scales is F16 \[1, 128\]/,
  ],
  ['gptq', 'scales of integers', shaped('scales', [2, 64], 'I16'), /scales of F16, BF16 or F32; .*scales is I16/],
  ['gptq', 'codes of other bits', shaped('qzeros', [4, 4]), /has codes of 2 bits by the shapes of its zero points; read are 4 and 8$/],
  [
    'gptq',
    'groups of another size',
    said('group_size', 48),
    /g_idx puts column 32 in group 1, out of order, and config.json does not say desc_act/,
  ],
  [
    'gptq',
    'a zero point that sym does not have',
    filled('qzeros', 0x77777776),
    /qzeros has a zero point of 7, and config.json says sym, which is 8; with "sym": false there it is read$/,
  ],
  [
    'gptq',
    'groups out of order',
    filled('g_idx', 1),
    /g_idx puts column 0 in group 1, out of order, and config.json does not say desc_act; with "desc_act": true there it is read$/,
  ],
  ['gptq', 'a group that there is not', filled('g_idx', 7), /g_idx puts column 0 in group 7, of 2 groups$/],
  ['gptq', 'g_idx of another length', shaped('g_idx', [2, 32]), /g_idx is I32 \[2, 32\], expected I32 \[64\]$/],
  ['gptq', 'an infinite scale', filled('scales', 0x7c00), /q_proj.scales holds Infinity at element 0/],
  [
    'gptq-act-order',
    'no g_idx',
    without('g_idx'),
    /q_proj.qweight was quantised out of order \(desc_act\), and .*g_idx is missing beside it$/,
  ],
  [
    'gptq',
    'no word of it in config.json',
    ({ config }) => void delete config['quantization_config'],
    /qweight is quantised, and config.json does not say how \(quantization_config\)$/,
  ],
  ['awq', 'no scales', without('scales'), /q_proj.qweight needs scales and zero points beside it/],
  ['awq', 'zero points of another shape', shaped('qzeros', [4, 4]), /has codes of NaN bits/],
  [
    'compressed',
    'no scales',
    without('weight_scale'),
    /weight_packed needs scales beside it, floats \[64, groups\] or one; .*weight_scale is missing$/,
  ],
  ['compressed', 'no shape', without('weight_shape'), /weight_packed needs its shape beside it, two integers; .*weight_shape is missing/],
  [
    'compressed',
    'a shape that does not fit',
    filled('weight_shape', 64, 0, 48),
    /is I32 \[64, 8\], which does not hold 64 x 48 codes .* of 4 bits$/,
  ],
  [
    'compressed',
    'scales of another shape',
    shaped('weight_scale', [32, 4]),
    /floats \[64, groups\] or one; .*weight_scale is BF16 \[32, 4\]$/,
  ],
  [
    'compressed-zeros',
    'zero points of another shape',
    shaped('weight_zero_point', [2, 4]),
    /weight_zero_point is I32 \[2, 4\], expected I8 \[64, 1\] or I32 \[8, 1\]$/,
  ],
  [
    'mlx',
    'no scales',
    without('scales'),
    /q_proj.weight is U32 \[64, 8\] and needs scales and biases of groups of 32 columns beside it, floats \[64, groups\]; .*scales is missing/,
  ],
  ['mlx', 'no biases', without('biases'), /biases is missing$/],
  ['bitsandbytes', 'no table', without('weight.quant_map'), /q_proj.weight needs the values of 16 codes; .*quant_map is missing$/],
  ['bitsandbytes', 'no scales', without('weight.absmax'), /q_proj.weight needs 64 scales; .*absmax is missing$/],
  [
    'bitsandbytes',
    'no scales of scales',
    without('weight.nested_absmax'),
    /absmax is quantised, and needs scales and a table; .*nested_absmax is missing/,
  ],
  [
    'bitsandbytes',
    'another shape',
    shaped('weight', [1024, 1], 'I16'),
    /q_proj.weight does not hold the codes that .*bitsandbytes__nf4 describes; .*weight is I16 \[1024, 1\]$/,
  ],
  [
    'bitsandbytes-8',
    'scales of another shape',
    shaped('SCB', [32], 'F64'),
    /is to be I8 \[rows, columns\], and its scales F32 \[rows\]; .*SCB is F64 \[32\]$/,
  ],
  [
    'nvfp4',
    'no scale of the matrix',
    without('weight_global_scale'),
    /weight_packed needs a scale of E4M3 for each 16 columns and one for all beside it; .*weight_global_scale is missing/,
  ],
  ['nvfp4', 'scales of another shape', shaped('weight_scale', [32, 8]), /weight_scale is F8_E4M3 \[32, 8\]/],
  [
    'nvfp4-modelopt',
    'a scale below zero',
    filled('weight_scale', 0xff),
    /q_proj.weight_scale holds the byte 255 at element 0, expected a scale of E4M3$/,
  ],
])('%s: %s is refused in one line', async (name, _, change, message) => {
  const reading = read(changed(name, change), async (checkpoint) => {
    for (const key of checkpoint.names()) if (key !== 'other') await checkpoint.read(key);
  });
  const refused = await reading.then(
    () => new EngineError('invalid_model', ''),
    (error: unknown) => error as EngineError,
  );
  expect(refused.message).toMatch(message);
  expect(refused.message).not.toMatch(/\n/);
  expect(refused).toMatchObject({ code: 'invalid_model' });
});

test('a scale that f16 cannot hold is refused', async () => {
  // 65536 in bf16.
  const reading = read(changed('compressed', filled('weight_scale', 0x47804780)), (checkpoint) => checkpoint.read(`${MODULE}.weight`));
  await expect(reading).rejects.toThrow(/q_proj.weight holds -?Infinity at element/);
});

test('experts that MLX stacks are read as one matrix', async () => {
  const folder = changed('mlx', ({ header }) => {
    for (const [end, inRow] of [['weight', 8], ['scales', 2], ['biases', 2]] as const) {
      header[`model.layers.0.mlp.switch_mlp.q_proj.${end}`] = { ...header[`${MODULE}.${end}`]!, shape: [4, 16, inRow] };
      delete header[`${MODULE}.${end}`];
    }
  }); // prettier-ignore
  await read(folder, async (checkpoint) => {
    const name = 'model.layers.0.mlp.experts.q_proj.weight';
    expect(checkpoint.tensor(name)).toMatchObject({ shape: [64, 64], blocks: 'Q4_1' });
    expect(digest(await checkpoint.read(name))).toBe(goldenOf('mlx').sha256[`${MODULE}.weight`]);
    expect(checkpoint.names().filter((key) => key.includes('switch_mlp'))).toEqual([]);
  });
});

test('compressed-tensors may mix bits, and marks columns in order with -1', async () => {
  const mixed = changed('compressed', ({ config }) => {
    const { config_groups: groups } = config['quantization_config'] as { config_groups: Record<string, { weights: object }> };
    groups['group_1'] = { weights: { ...groups['group_0']!.weights, num_bits: 8 } };
  });
  await read(mixed, async (checkpoint) => {
    for (const [key, expected] of Object.entries(goldenOf('compressed').sha256)) expect(digest(await checkpoint.read(key))).toBe(expected);
  });
  await read(changed('compressed-act-order', filled('weight_g_idx', 0xffffffff)), async (checkpoint) => {
    expect(checkpoint.tensor(`${MODULE}.weight`)).toMatchObject({ blocks: 'Q4_0' });
    expect(checkpoint.tensor('model.layers.0.self_attn.k_proj.weight')!.blocks).toBeUndefined();
  });
});

test('a bias that is not all zeros counts', async () => {
  await read(join(FIXTURES, 'gptq'), async (checkpoint) => {
    expect(checkpoint.names()).not.toContain(`${MODULE}.bias`);
    expect(await checkpoint.read(`${MODULE}.bias`)).toEqual(new Float32Array(64));
  });
  await read(changed('gptq', filled('bias', 1)), async (checkpoint) => {
    expect(checkpoint.names()).toContain(`${MODULE}.bias`);
    expect(checkpoint.names()).not.toContain('model.layers.0.self_attn.k_proj.bias');
  });
});

test.each(FORMATS.map(([name]) => name))('%s with anything changed is read, or refused in one line', async (name) => {
  const rng = createRng(17);
  const { header, data } = parted(readFileSync(join(FIXTURES, name, 'model.safetensors')));
  const config = readFileSync(join(FIXTURES, name, 'config.json'), 'utf8');
  const folder = mkdtempSync(join(tmpdir(), 'parley-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  let refused = 0;
  for (let i = 0; i < 40; i++) {
    const kind = rng.uniform();
    writeFileSync(join(folder, 'config.json'), kind < 0.3 ? mutateJson(rng, config) : config);
    const changedHeader = kind < 0.3 ? JSON.stringify(header) : mutateJson(rng, JSON.stringify(header));
    writeFileSync(join(folder, 'model.safetensors'), joined(changedHeader, kind > 0.9 ? Buffer.from(mutateBytes(rng, data)) : data));
    const reading = read(folder, async (checkpoint) => {
      for (const key of checkpoint.names()) await checkpoint.read(key);
    });
    await reading.catch((error: unknown) => {
      refused++;
      const problem = error instanceof EngineError ? error.message : `not a refusal: ${(error as Error).stack}`;
      expect(error, problem).toBeInstanceOf(EngineError);
      expect(problem).not.toMatch(/\n|TypeError|Cannot read|is not a function|assertion/);
    });
  }
  expect(refused).toBeGreaterThan(0);
});
