/**
 * Every kernel that loaded models take is tested before a request meets it: the pipelines of the bundled and of the fixture models, which Dawn's null backend
 * compiles without computing anything, have cases, and those cases find on the adapter at hand what is right and what is wrong.
 */
import { cpSync, existsSync, mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { resolveConfig } from '../../engine/config.ts';
import type { EngineConfig, ModelSource } from '../../engine/config.ts';
import type { OptionalFeature } from '../../engine/gpu/caps.ts';
import { Device } from '../../engine/gpu/device.ts';
import { KernelFault } from '../../engine/gpu/kernel-fault.ts';
import type { Kernel, Variant } from '../../engine/gpu/kernel.ts';
import { PipelineCache } from '../../engine/gpu/pipeline-cache.ts';
import { expectFamily } from '../../engine/model-types.ts';
import { createNodePlatform } from '../../engine/platform/node.ts';
import { HEARING_CHECKS } from '../../engine/runner/hearing-checks.ts';
import { LATENT_CHECKS } from '../../engine/runner/latent-checks.ts';
import { LAYER_CHECKS } from '../../engine/runner/layer-checks.ts';
import { LOAD_CHECKS } from '../../engine/runner/load-checks.ts';
import { MIXER_CHECKS } from '../../engine/runner/mixer-checks.ts';
import { selfTest } from '../../engine/runner/self-test.ts';
import { SPEECH_CHECKS } from '../../engine/runner/speech-checks.ts';
import { VadRunner } from '../../engine/runner/vad-runner.ts';
import { createEngine } from '../../engine/tasks/engine.ts';
import type { Json } from '../../engine/util/json.ts';
import { randomPath } from '../../engine/weights/random/random-folder.ts';
import { testDevice } from '../support/device.ts';
import { isKernel } from '../support/kernel-declaration.ts';
import { nullPlatform } from '../support/null-platform.ts';
import type { NullAdapter } from '../support/null-platform.ts';
import { writeNumberTokenizer } from '../support/random-checkpoint.ts';
import { THOROUGH, firstOf } from '../support/thorough.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const FIXTURES = join(ROOT, 'test', 'fixtures', 'llama-tiny-random');
const NAMES = readdirSync(FIXTURES);

const FOR_A_REQUEST = 'compiled for the first request that asks for it';
const OF_MATRICES = 'of adapters with subgroup matrices, of which the null backend lists none; its case is in numerics.test.ts';
/** Kernels that none of the models here takes when it is loaded, and why that is well. */
const LATER: Readonly<Record<string, string>> = {
  bias_logits: FOR_A_REQUEST,
  count_tokens: FOR_A_REQUEST,
  half_rows: OF_MATRICES,
  linear_matrix: OF_MATRICES,
  logprobs: FOR_A_REQUEST,
  mask_logits: FOR_A_REQUEST,
  penalize_logits: FOR_A_REQUEST,
  project_heads: 'binds more tensors than the null backend lets; its case is in self-test.test.ts',
  project_heads_many: 'as project_heads',
  shard_best: 'of ranks, which compare what they found in shard_candidates',
  shard_candidates: 'of ranks: without right candidates no text makes sense, and each rank samples from all of them',
  slice_threshold: 'of vocabularies larger than these; its case is in self-test.test.ts',
  sort_slices: 'of vocabularies larger than these; its case is in self-test.test.ts',
};

interface Pipeline {
  readonly label: string;
  readonly kernel: Kernel;
  readonly variant: Variant;
}

interface Walked {
  readonly pipelines: readonly Pipeline[];
  /** Labels of those that have no case, and of those that only cases take. */
  readonly untested: readonly string[];
  readonly added: readonly string[];
}

type Loads = (platform: ReturnType<typeof nullPlatform>) => Promise<unknown>;

const engineOf =
  (config: Partial<EngineConfig>): Loads =>
  (platform) =>
    createEngine(platform, resolveConfig({ maxRunningRequests: 4, contextLength: 512, autotune: false, ...config }));

/** A fixture with a tokenizer, which few have. */
const chatOf =
  (name: string, settings: Partial<EngineConfig> = {}, fixtures = FIXTURES, loras: ModelSource['loras'] = []): Loads =>
  async (platform) => {
    const folder = mkdtempSync(join(tmpdir(), 'parley-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    cpSync(join(fixtures, name), folder, { recursive: true });
    const config = JSON.parse(readFileSync(join(folder, 'config.json'), 'utf8')) as { vocab_size?: number; text_config?: { vocab_size: number } }; // prettier-ignore
    if (!existsSync(join(folder, 'tokenizer.json'))) writeNumberTokenizer(folder, config.vocab_size ?? config.text_config!.vocab_size);
    await engineOf({ chat: { path: folder, loras }, ...settings })(platform);
  };

const BUNDLED: Readonly<Record<string, Loads>> = {
  'parley-chat': engineOf({ chat: { path: join(ROOT, 'models', 'parley-chat') } }),
  'parley-chat with int8 pages': engineOf({ chat: { path: join(ROOT, 'models', 'parley-chat') }, kvCacheDtype: 'int8' }),
  'parley-speech': engineOf({ speech: { path: join(ROOT, 'models', 'parley-speech') } }),
  'parley-transcribe': engineOf({ transcription: { path: join(ROOT, 'models', 'parley-transcribe') } }),
  'silero-vad': async (platform) => VadRunner.load(await Device.create(platform), join(ROOT, 'models', 'silero-vad')),
};
const MODELS: Readonly<Record<string, Loads>> = {
  ...BUNDLED,
  'kokoro-tiny-random': engineOf({ speech: { path: join(ROOT, 'test', 'fixtures', 'kokoro-tiny-random') } }),
  ...Object.fromEntries(NAMES.map((name) => [name, chatOf(name)])),
  ...Object.fromEntries(
    ['f32', 'f16', 'bf16', 'q4_k', 'mxfp4'].map((type) => [
      `random ${type}`,
      engineOf({ chat: { path: randomPath({ shape: 'llama-tiny', type, seed: 1 }) } }),
    ]),
  ),
  'llama with an adapter': chatOf('llama', {}, FIXTURES, [
    { id: 'a', path: join(ROOT, 'test', 'fixtures', 'lora-tiny-random', 'all-linear') },
  ]),
  'qwen3_5 with its head': chatOf('qwen3_5-last', { speculativeMtp: true }, join(ROOT, 'test', 'fixtures', 'mtp-tiny-random')),
};

/** Loads a model where nothing is computed: its cases run, and all of them find wrong results. */
async function walk(adapter: NullAdapter, load: Loads): Promise<Walked> {
  const [before, create, compiled] = [new Set<string>(), Device.create.bind(Device), PipelineCache.prototype.compiled];
  let device: Device | undefined;
  const creating = vi.spyOn(Device, 'create').mockImplementation(async (...args) => {
    // The engine would load all again without what can be replaced.
    if (device) throw new Error('once is enough');
    return (device = await create(...args));
  });
  const asking = vi.spyOn(PipelineCache.prototype, 'compiled').mockImplementation(function* (this: PipelineCache) {
    for (const pipeline of compiled.call(this)) {
      before.add(pipeline.label);
      yield pipeline;
    }
  });
  try {
    await expect(load(nullPlatform(adapter))).rejects.toThrow(/gives wrong results|once is enough/);
  } finally {
    creating.mockRestore();
    asking.mockRestore();
  }
  const { pipelines: cache, tested } = device!;
  const all = [...cache.compiled()];
  const untested = all.filter(({ label }) => !tested.has(label)).map(({ label }) => label);
  return { pipelines: all.filter(({ label }) => before.has(label)), untested, added: all.map(({ label }) => label).filter((label) => !before.has(label)) }; // prettier-ignore
}

const familyOf = (name: string): string => expectFamily(JSON.parse(readFileSync(join(FIXTURES, name, 'config.json'), 'utf8')) as Json, 'chat'); // prettier-ignore
/** In a short run one checkpoint of each family. */
const OF_EACH_FAMILY = THOROUGH
  ? MODELS
  : Object.fromEntries(
      Object.entries(MODELS).filter(([name], _, all) => {
        const alike = all.filter(([other]) => NAMES.includes(other) && NAMES.includes(name) && familyOf(other) === familyOf(name));
        return alike.length === 0 || alike[0]![0] === name;
      }),
    );

/** Where models are walked: all of them on a software adapter, each family on a GPU, and on others those that take other kernels there. */
const ADAPTERS: readonly (readonly [string, NullAdapter, Readonly<Record<string, Loads>>])[] = [
  ['a software adapter', { name: 'llvmpipe', lanes: 8 }, MODELS],
  ['a GPU', { name: 'a GPU', lanes: 32 }, OF_EACH_FAMILY],
  ['a software adapter of four lanes', { name: 'SwiftShader', lanes: 4 }, BUNDLED],
  ['a GPU without subgroups', { name: 'a GPU' }, BUNDLED],
];

/** Kernels that some model took. */
const met = new Set<string>();

describe.each(ADAPTERS)('on %s', (_, adapter, models) => {
  test.each(Object.entries(models))('every pipeline of %s has a case, and no case takes another', async (_, load) => {
    const { pipelines, untested, added } = await walk(adapter, load);
    for (const { kernel } of pipelines) met.add(kernel.name);
    expect(untested).toEqual([]);
    // Quantised matrices come to their cases through the kernel that packs them.
    expect(added.filter((label) => !label.startsWith('pack_blocks'))).toEqual([]);
  });
});

test('every other kernel has a reason', async () => {
  const kernels: string[] = [];
  for (const file of readdirSync(join(ROOT, 'engine', 'ops'))) {
    const module = (await import(join(ROOT, 'engine', 'ops', file))) as Record<string, unknown>;
    kernels.push(...Object.values(module).filter(isKernel).map(({ name }) => name)); // prettier-ignore
  }
  expect(kernels.filter((name) => !met.has(name)).toSorted()).toEqual(Object.keys(LATER).toSorted());
});

/** Models that have, all together, every kernel of the cases below. */
const FAMILIES = [
  'parley-speech',
  'parley-transcribe',
  'silero-vad',
  'apertus',
  'deepseek_v3',
  'ernie4_5_moe',
  'gemma3n',
  'gemma4-experts',
  'gpt_oss-mxfp4',
  'granitemoehybrid-mamba',
  'hunyuan_v1_dense',
  'lfm2_moe',
  'phimoe',
  'qwen3_5_moe',
  'qwen3_5 with its head',
  'random f16',
  'random q4_k',
];
const CHECKS = [...SPEECH_CHECKS, ...HEARING_CHECKS, ...LAYER_CHECKS, ...LATENT_CHECKS, ...MIXER_CHECKS, ...LOAD_CHECKS].map(
  ([kernel]) => kernel,
);

/** What these models take on an adapter like the tests' own, without what its other cases test. */
async function pipelinesOf(disable: readonly OptionalFeature[], { caps }: Device): Promise<readonly Pipeline[]> {
  const lanes = caps.subgroups && !disable.includes('subgroups') ? caps.subgroupMinSize : undefined;
  const adapter = { name: disable.includes('software') ? 'a GPU' : 'llvmpipe', lanes };
  const found = new Map<string, Pipeline>();
  for (const name of FAMILIES) for (const pipeline of (await walk(adapter, MODELS[name]!)).pipelines) found.set(pipeline.label, pipeline);
  return [...found.values()].filter(({ kernel }) => CHECKS.includes(kernel));
}

async function compileAll(device: Device, pipelines: readonly Pipeline[]): Promise<void> {
  for (const { kernel, variant } of pipelines) device.pipelines.compile(kernel, variant);
  await device.pipelines.settled();
}

const FLAVOURS = [
  ['as it is', [], 'lstm'],
  ['as a GPU', ['software'], 'lstm_texels'],
  ['without subgroups', ['subgroups'], 'lstm_texels'],
] as const satisfies readonly (readonly [string, readonly OptionalFeature[], string])[];

describe.each(firstOf(2, FLAVOURS))('the adapter %s', (_, disable, other) => {
  test('passes the cases of all that these models take', async () => {
    const device = await testDevice({ disable });
    onTestFinished(() => device.close());
    const pipelines = await pipelinesOf(disable, device);
    // Of the two kernels that walk an LSTM in both directions, an adapter takes one.
    const left = CHECKS.filter((kernel) => !pipelines.some((pipeline) => pipeline.kernel === kernel)).map(({ name }) => name);
    expect(left).toEqual([other]);
    await compileAll(device, pipelines);
    await selfTest(device);
    expect(device.errors).toEqual([]);
    expect(pipelines.filter(({ label }) => !device.tested.has(label))).toEqual([]);
  });
});

/** By file: what a driver makes of its text, and the kernels whose cases find it. */
const SPOILED: readonly (readonly [string, string, string, readonly string[]])[] = [
  ['lib/lstm_step.wgsl', 'sigmoid(sum[b].w) * safe_tanh(c)', 'sigmoid(sum[b].w) * c', ['lstm_forward']],
  ['rnn/lstm_texels.wgsl', 'sigmoid(gates[3]) * safe_tanh(c)', 'sigmoid(gates[3]) * c', ['lstm_texels']],
  ['norm/instance_stats.wgsl', 'squares = fma(d, d, squares)', 'squares = fma(d, d, 0.99 * squares)', ['adain', 'quads_texture']],
  ['spectral/overlap_add.wgsl', 'sum / envelope', '1.001 * sum / envelope', ['spectrum']],
  ['spectral/frame.wgsl', 'signal[first', '1.001 * signal[first', ['polar']],
  ['spectral/source_phase.wgsl', 'sum = fract(sum + ', 'sum = fract(0.99 * sum + ', ['source']],
  ['spectral/mel_log.wgsl', 'maxima[frame] = highest', 'maxima[frame] = highest + 8.0', ['mel_scale', 'mel_denoise']],
  ['attention/alignment_stats.wgsl', 'squares = fma(d, d, squares)', 'squares = fma(d, d, 0.5 * squares)', ['alignment_matrix']],
  ['sample/token_candidates.wgsl', 'last_value - norm', 'last_value', ['token_candidates']],
  ['recurrent/causal_conv.wgsl', 'tails[(span.w', 'tails[(1u + span.w', ['causal_conv']],
  ['recurrent/gated_delta_rule.wgsl', 'store_state(stop.x, head', 'state[0] *= 0.99; store_state(stop.x, head', ['gated_delta_rule']],
  ['recurrent/selective_scan.wgsl', 'fma(vec4<f32>(skip), x[c], sums[c])', 'fma(vec4<f32>(0.99 * skip), x[c], sums[c])', ['selective_scan']],
  ['experts/group_rows.wgsl', 'tile_experts[tile] = params.first_expert + e', 'tile_experts[tile] = params.first_expert', ['group_rows']],
  ['experts/expert_linear.wgsl', 'fma(a.w, w[j].w,', 'fma(0.0, w[j].w,', ['expert_linear']],
  ['experts/route_rows.wgsl', 'found = exp(found - all.largest) / all.sum', 'found = 0.0 * all.sum', ['route_rows']],
  ['experts/combine_rows.wgsl', 'sum += residual[at]', 'sum += 0.99 * residual[at]', ['combine_rows']],
  ['rope/qk_norm.wgsl', 'qkv[first + d] = value * weight', 'qkv[first + d] = 1.001 * value * weight', ['qk_norm']],
  ['rope/rope_norm.wgsl', 'qkv[first + d] = pair.low * scale', 'qkv[first + d] = 1.001 * pair.low * scale', ['rope_norm']],
  ['kv/latent_queries.wgsl', 'q[to + R4 + d] = pair.low', 'q[to + R4 + d] = pair.high', ['latent_queries']],
  ['kv/latent_store.wgsl', '* scale * norm[i]', '* 1.01 * scale * norm[i]', ['latent_store']],
  ['load/pack_floats.wgsl', 'let values = quad_at(first + column, params.columns - column)', 'let values = quad_at(first + column, params.columns - column) ^ vec4<u32>(1u << 10u)', ['pack_floats']],
  ['load/random_floats.wgsl', 'abs(code)', 'abs(code | 2)', ['random_floats']],
  ['load/random_blocks.wgsl', 'params.first + at / STORED_BYTES', 'at / STORED_BYTES', ['random_blocks']],
  ['load/quantize_floats.wgsl', 'byte_of(values[j], inverse) << (j * 8u)', 'byte_of(values[j], inverse) << ((j ^ 1u) * 8u)', ['quantize_floats']],
]; // prettier-ignore

test('what is wrong is found, by the case of its kernel', async () => {
  const platform = createNodePlatform();
  const shaders = new Map(await platform.shaders());
  for (const [file, from, to] of SPOILED) {
    expect(shaders.get(file), file).toContain(from);
    shaders.set(file, shaders.get(file)!.replace(from, to));
  }
  const name = process.env['PARLEY_ADAPTER'];
  const device = await Device.create({ ...platform, shaders: () => Promise.resolve(shaders) }, name ? { name } : {});
  onTestFinished(() => device.close());
  await compileAll(device, await pipelinesOf([], device));
  const fault: unknown = await selfTest(device).then(() => undefined, (error: unknown) => error); // prettier-ignore
  expect(fault).toBeInstanceOf(KernelFault);
  const names = (fault as KernelFault).faults.map((one) => one.names[0]!);
  expect([...new Set(names)].toSorted()).toEqual(SPOILED.flatMap(([, , , kernels]) => kernels).toSorted());
});
