/** The self-test at start: what is right passes without another pipeline, what is wrong is named and replaced, or the start refused. */
import { beforeAll, describe, expect, test } from 'vitest';
import type { EngineInfo } from '../../engine/api.ts';
import type { EngineConfig } from '../../engine/config.ts';
import type { OptionalFeature } from '../../engine/gpu/caps.ts';
import { Device } from '../../engine/gpu/device.ts';
import { KernelFault } from '../../engine/gpu/kernel-fault.ts';
import type { Recorder } from '../../engine/gpu/recorder.ts';
import { conv1d, packConv1d } from '../../engine/ops/conv.ts';
import { denseAttention } from '../../engine/ops/dense-attention.ts';
import { gatedLinear, normedLinear } from '../../engine/ops/fused-linear.ts';
import { createKVCache, ropeKVStore } from '../../engine/ops/kv.ts';
import { attentionTileRows, pagedAttention } from '../../engine/ops/paged-attention.ts';
import { projectHeads } from '../../engine/ops/project-heads.ts';
import { ropeTable } from '../../engine/ops/rope.ts';
import { linear } from '../../engine/ops/linear.ts';
import { rmsNorm } from '../../engine/ops/norm.ts';
import { emptyLinear } from '../../engine/ops/pack-linear.ts';
import { sample, sampleScratch } from '../../engine/ops/sample.ts';
import { SAMPLING_ROW_WORDS } from '../../engine/ops/sampling-row.ts';
import { createNodePlatform } from '../../engine/platform/node.ts';
import { replaceableOf } from '../../engine/ops/replaceable.ts';
import { placeOf } from '../../engine/ops/weight-place.ts';
import { selfTest } from '../../engine/runner/self-test.ts';
import { testDevice } from '../support/device.ts';
import { startedChat } from '../support/started-chat.ts';
import { SPOILED_SUMS, once, spoiled } from '../support/spoiled-shaders.ts';
import type { Spoil } from '../support/spoiled-shaders.ts';
import { firstOf } from '../support/thorough.ts';

interface Start {
  readonly info: EngineInfo;
  readonly answer: string;
  readonly lines: readonly string[];
}

async function start(spoil: Spoil, quantization: EngineConfig['quantization'] = 'none'): Promise<Start> {
  const lines: string[] = [];
  const platform = spoiled(createNodePlatform({ log: (line) => void lines.push(line) }), spoil);
  return { ...(await startedChat(platform, { quantization })), lines };
}

describe('the self-test of a chat model', () => {
  let right: Start;
  /** Whether large weights lie in textures here, whose reading may be at fault wherever a kernel that reads them is. */
  let textures = false;
  let ofHalves: readonly { readonly kernel: string; readonly by: string }[] = [];
  beforeAll(async () => {
    const device = await testDevice();
    textures = placeOf(device.caps, 'f16', Infinity) === 'texture';
    if (textures) ofHalves = [{ kernel: 'floats_texture', by: 'floats_of_columns' }];
    device.close();
  });

  test('finds nothing where nothing is wrong', async () => {
    right = await start({});
    expect(right.info.kernels?.replaced).toEqual([]);
    expect(right.info.kernels?.tested).toBeGreaterThan(8);
  });

  test('replaces kernels that give wrong results, all at one go, names them, and answers as ever', async () => {
    const { info, answer, lines } = await start(SPOILED_SUMS);
    expect(info.kernels?.replaced.toSorted((a, b) => a.kernel.localeCompare(b.kernel))).toMatchObject([
      ...ofHalves,
      { kernel: 'linear_fused' },
      { kernel: 'linear_normed' },
      { kernel: 'linear_rows', by: 'linear_tile', why: expect.stringContaining('gives wrong results') as string },
      { kernel: 'project_heads' },
      { kernel: 'project_heads_many' },
      { kernel: 'reduce_lanes', by: 'reduce' },
    ]);
    expect(lines.filter((line) => line.startsWith('self-test: '))).toHaveLength(6 + ofHalves.length);
    expect(answer).toBe(right.answer);
  });

  test('puts weights into buffers where textures are read wrongly, and answers as ever', async () => {
    const quantised = await start({}, 'q8_0');
    const wrong = (text: string): string => once(text, 'return textureLoad(weight,', 'return vec4<u32>(1u) ^ textureLoad(weight,');
    const { info, answer } = await start({ 'lib/words_texture.wgsl': wrong }, 'q8_0');
    expect(quantised.info.kernels?.replaced).toEqual([]);
    expect(info.kernels?.replaced.map(({ kernel, by }) => [kernel, by])).toEqual(textures ? [['words_texture', 'words_of_columns']] : []);
    expect(answer).toBe(quantised.answer);
    const halves = await start({ 'lib/floats_texture.wgsl': wrong });
    expect(halves.info.kernels?.replaced.map(({ kernel, by }) => [kernel, by])).toEqual(ofHalves.map(({ kernel, by }) => [kernel, by]));
    expect(halves.answer).toBe(right.answer);
  });

  test('has pages in buffers where textures are read or written wrongly, and answers as ever', async () => {
    const read = await start({ 'lib/pages_texture.wgsl': (text) => once(text, 'words.xy, words.zw', 'words.zw, words.xy') });
    const inBuffers = [['pages_texture', 'pages_buffer']];
    expect(read.info.kernels?.replaced.map(({ kernel, by }) => [kernel, by])).toEqual(textures ? inBuffers : []);
    expect(read.answer).toBe(right.answer);
    // They are in the case of project_heads too, where its weights may be at fault as well.
    const written = await start({
      'lib/store_pages_texels.wgsl': (text) => once(text, 'pair.high, beside.high', 'beside.high, pair.high'),
    });
    const replaced = written.info.kernels?.replaced.map(({ kernel }) => kernel);
    expect(replaced?.toSorted()).toEqual(textures ? ['floats_texture', 'pages_texture'] : []);
    expect(written.answer).toBe(right.answer);
  });

  test('replaces a kernel that the driver does not compile', async () => {
    const { info, answer } = await start({ 'linear/linear_broadcast.wgsl': (text) => `${text}\nfn broken() -> u32 { return 1.5; }` });
    expect(info.kernels?.replaced).toMatchObject([...ofHalves, { kernel: 'linear_broadcast', by: 'linear_tile' }]);
    expect(answer).toBe(right.answer);
  });

  test('refuses to start, in one line, where nothing can take the place of what is wrong', async () => {
    const wrong = (text: string): string => once(text, 'select(total[i * SUMS + j] / total_sum[i],', 'select(total[i * SUMS + j],');
    await expect(start({ 'attention/paged_attention.wgsl': wrong })).rejects.toThrow(/cannot run Parley: kernel paged_attention .* gives wrong results/); // prettier-ignore
    const store = { 'lib/linear_store.wgsl': (text: string) => once(text, 'out[at] = y;', 'out[at] = 1.001 * y;') };
    await expect(start(store)).rejects.toThrow(/cannot run Parley: kernel linear_tile .* gives wrong results/);
  });
});

/** What a model's steps dispatch, in small. */
function dispatchSome(device: Device, pageSize: number): (rec: Recorder) => void {
  const [n, k] = [64, 2048];
  const [x, out, residual] = [
    device.tensor('x', 'f32', [40, k]),
    device.tensor('out', 'f32', [40, n]),
    device.tensor('residual', 'f32', [40, n]),
  ];
  const [halves, blocks] = [
    emptyLinear(device, 'halves', n, k, 'f16'),
    emptyLinear(device, 'blocks', n, k, 'Q4_K', placeOf(device.caps, 'Q4_K', Infinity)),
  ];
  const gated = device.tensor('gated', 'f32', [40, n / 2]);
  const [weight, normed] = [device.tensor('weight', 'f32', [k]), device.tensor('normed', 'f32', [40, k])];
  const vocabulary = 5000;
  const scratch = sampleScratch(device, vocabulary, 2);
  const settings = device.tensor('settings', 'u32', [2, SAMPLING_ROW_WORDS]);
  const sampling = { logits: device.tensor('logits', 'f32', [2, vocabulary]), vocabulary, scratch, settings, sampled: device.tensor('sampled', 'u32', [2]), lastTokens: device.tensor('last', 'u32', [2]), rows: 2 }; // prettier-ignore
  const kv = createKVCache(device, { layers: [{ kvHeads: 1, headDim: 64 }], pageSize, dtype: 'f16' }, 16);
  const heads = { cosSin: ropeTable(device, { theta: 1e4, headDim: 64, scaling: undefined }, 16), positions: settings, slots: settings, q: out, kv, layer: 0, heads: 2 }; // prettier-ignore
  const projection = emptyLinear(device, 'heads', 4 * 64, k, 'f16');
  const [narrow, fewInputs] = [device.tensor('narrow', 'f32', [40, 64]), emptyLinear(device, 'narrow heads', 4 * 64, 64, 'f16')];
  const conv = packConv1d(device, 'conv', new Float32Array(64 * 8 * 3), { outChannels: 64, inChannels: 8, kernel: 3 });
  const [sound, heard] = [device.tensor('sound', 'f32', [40, 8]), device.tensor('heard', 'f32', [40, 64])];
  return (rec) => {
    for (const rows of [1, 2, 3, 16, 40]) linear(rec, { x, weight: halves, out, rows });
    for (const rows of [1, 40]) linear(rec, { x, weight: blocks, out, rows, residual });
    rmsNorm(rec, { x, weight, out: normed, eps: 1e-5 });
    const input = { x, norm: weight, eps: 1e-5, normed };
    for (const rows of [1, 2]) {
      normedLinear(rec, { input, weight: blocks, out, rows });
      gatedLinear(rec, { input, weight: halves, activation: 'silu', gateUp: residual, out: gated, rows });
      projectHeads(rec, { input, weight: projection, bias: undefined, headNorm: undefined, ...heads, rows });
    }
    const few = { x: narrow, norm: undefined, eps: 1e-5, normed: narrow };
    for (const rows of [3, 16]) projectHeads(rec, { input: few, weight: fewInputs, bias: undefined, headNorm: undefined, ...heads, rows });
    for (const greedy of [true, false]) sample(rec, { ...sampling, greedy });
    ropeKVStore(rec, { ...heads, qkv: x, rows: 1 });
    const parted = { partials: x, positions: settings, parts: 2, rows: 1 };
    for (const [tileRows, split] of [
      [1, parted],
      [attentionTileRows(device.caps, 2, { kvHeads: 1, headDim: 64 }), undefined],
    ] as const) {
      pagedAttention(rec, { q: out, kv, layer: 0, blockTable: settings, tiles: settings, firstTile: 0, tileCount: 1, tileRows, out: residual, heads: 2, split }); // prettier-ignore
    }
    conv1d(rec, { x: sound, weight: conv, out: heard, padding: 1, activation: 'gelu' });
    for (const queries of [1, 16]) {
      denseAttention(rec, { q: { tensor: out }, k: { tensor: out, column: 0 }, v: { tensor: residual }, out: heard, heads: 2, headDim: 32, over: { queries, keys: 40 } }); // prettier-ignore
    }
  };
}

describe.each([
  ['the adapter as it is', []],
  ['an adapter without subgroups', ['subgroups']],
  ['a GPU', ['software']],
] as const satisfies readonly (readonly [string, readonly OptionalFeature[]])[])('the cases of %s', (_, disable) => {
  // Pages as short as a token are SGLang's default.
  test.each(firstOf(1, [16, 3, 1]))('pass with pages of %i, and take the pipelines that are there', async (pageSize) => {
    const device = await testDevice({ disable });
    const labels = device.compile(dispatchSome(device, pageSize));
    await device.pipelines.settled();
    const pipelines = device.stats.pipelines;
    await selfTest(device);
    expect(device.errors).toEqual([]);
    // Quantised matrices come through the kernel that packs them.
    const added = [...device.pipelines.compiled()].map(({ label }) => label).filter((label) => !labels.has(label));
    expect(added.filter((label) => !label.startsWith('pack_blocks'))).toEqual([]);
    expect(pipelines + added.length).toBe(device.stats.pipelines);
    expect(device.tested.size).toBeGreaterThan(labels.size - 4);
    device.close();
  });
});

test('attention for GPUs that gives wrong results is found, and every adapter has what takes its place', async () => {
  const name = process.env['PARLEY_ADAPTER'];
  const spoil = {
    'attention/paged_attention_wide.wgsl': (text: string) => once(text, 'fma(walked_sum(index),', 'fma(1.01 * walked_sum(index),'),
  };
  const faultOn = async (avoid: readonly string[]): Promise<unknown> => {
    const device = await Device.create(spoiled(createNodePlatform(), spoil), { ...(name && { name }), disable: ['software'], avoid });
    const kv = createKVCache(device, { layers: [{ kvHeads: 1, headDim: 32 }], pageSize: 16, dtype: 'f32' }, 4);
    const [x, words] = [device.tensor('x', 'f32', [1, 64]), device.tensor('words', 'u32', [1, 4])];
    device.compile((rec) => pagedAttention(rec, { q: x, kv, layer: 0, blockTable: words, tiles: words, firstTile: 0, tileCount: 1, tileRows: 1, out: x, heads: 2 })); // prettier-ignore
    await device.pipelines.settled();
    const fault: unknown = await selfTest(device).then(() => undefined, (error: unknown) => error); // prettier-ignore
    device.close();
    return fault;
  };
  const fault = await faultOn([]);
  expect(fault).toBeInstanceOf(KernelFault);
  expect((fault as KernelFault).faults.map((one) => replaceableOf(one, new Set()))).toEqual(['paged_attention_wide']);
  expect(await faultOn(['paged_attention_wide'])).toBeUndefined();
});
