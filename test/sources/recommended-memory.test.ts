/**
 * What models/recommended.json says that models take of a device, against what the engine plans for them: by headers made of the published shapes, without
 * a weight. With PARLEY_TABLE=write it writes the figures into the table instead.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { resolveConfig } from '../../engine/config.ts';
import type { EngineConfig } from '../../engine/config.ts';
import type { Device } from '../../engine/gpu/device.ts';
import type { ModelDemand } from '../../engine/runner/memory-plan.ts';
import { ChatEngine } from '../../engine/tasks/chat-engine.ts';
import { Synthesizer } from '../../engine/tasks/synthesizer.ts';
import { Transcriber } from '../../engine/tasks/transcriber.ts';
import { PRESETS, RECOMMENDED_MODELS, downloadBytes, presetModels } from '../../sources/index.ts';
import type { AdapterBytes, RecommendedModel } from '../../sources/index.ts';
import { testDevice } from '../support/device.ts';
import { publishedFolder, publishedGguf, publishedKokoro, publishedWhisper } from '../support/published-headers.ts';
import type { PublishedDecoder, PublishedModel } from '../support/published-headers.ts';

/** As their config.json has it. */
const decoder = (
  model_type: PublishedDecoder['model_type'],
  [hidden_size, intermediate_size, num_hidden_layers]: readonly [number, number, number],
  [num_attention_heads, num_key_value_heads, head_dim]: readonly [number, number, number],
  [vocab_size, max_position_embeddings]: readonly [number, number],
  more: Partial<PublishedDecoder> = {},
): PublishedDecoder => ({ model_type, hidden_size, intermediate_size, num_hidden_layers, num_attention_heads, num_key_value_heads, head_dim, vocab_size,
  max_position_embeddings, tie_word_embeddings: true, rope_theta: 1e6, ...more }); // prettier-ignore
const whisper = (
  width: number,
  [encoderLayers, decoderLayers]: readonly [number, number],
  vocabulary: number,
  alignmentHeads: number,
  mels = 80,
): PublishedModel => publishedWhisper({ width, encoderLayers, decoderLayers, heads: width / 64, vocabulary, mels, alignmentHeads });

/** The largest source of each. */
const PUBLISHED: Readonly<Record<string, () => PublishedModel>> = {
  'SmolLM2-135M-Instruct': () => publishedGguf(decoder('llama', [576, 1536, 30], [9, 3, 64], [49152, 8192]), 'Q4_K_M'),
  'Qwen2.5-Coder-0.5B-Instruct': () =>
    publishedGguf(decoder('qwen2', [896, 4864, 24], [14, 2, 64], [151936, 32768], { stored_head: true }), 'Q4_K_M'),
  'Qwen3-0.6B': () => publishedFolder(decoder('qwen3', [1024, 3072, 28], [16, 8, 128], [151936, 40960], { stored_head: true })),
  'Qwen2.5-1.5B-Instruct': () => publishedGguf(decoder('qwen2', [1536, 8960, 28], [12, 2, 128], [151936, 32768]), 'Q8_0'),
  'Llama-3.2-1B-Instruct': () => publishedFolder(decoder('llama', [2048, 8192, 16], [32, 8, 64], [128256, 131072])),
  'Qwen3-4B-Instruct-2507': () => publishedGguf(decoder('qwen3', [2560, 9728, 36], [32, 8, 128], [151936, 262144]), 'Q4_K_M'),
  'Qwen3-14B': () =>
    publishedGguf(decoder('qwen3', [5120, 17408, 40], [40, 8, 128], [151936, 40960], { tie_word_embeddings: false }), 'Q4_K_M'),
  'Kokoro-82M-int8': publishedKokoro,
  'Kokoro-82M-fp16': publishedKokoro,
  'Kokoro-82M': publishedKokoro,
  'whisper-tiny.en': () => whisper(384, [4, 4], 51864, 8),
  'whisper-base': () => whisper(512, [6, 6], 51865, 8),
  'whisper-small': () => whisper(768, [12, 12], 51865, 10),
  'whisper-large-v3-turbo': () => whisper(1280, [32, 4], 51866, 6, 128),
};
const TASKS = { chat: ChatEngine, speech: Synthesizer, transcription: Transcriber };
/** What GPUs of today bind at least, and lavapipe. */
const ADAPTERS = {
  gpu: { software: false, family: 'generic', maxBindingBytes: 2 ** 31 - 4 },
  software: { software: true, family: 'cpu', maxBindingBytes: 2 ** 27 },
} as const;
const isWriting = process.env['PARLEY_TABLE'] === 'write';

let device: Device;
beforeAll(async () => {
  device = await testDevice();
});
afterAll(() => device.close());

async function demandOf(
  { id, task }: RecommendedModel,
  adapter: keyof AdapterBytes,
  config: Partial<EngineConfig> = {},
): Promise<ModelDemand> {
  const { platform, path } = PUBLISHED[id]!();
  // What is planned depends on these; nothing is made on the device.
  Object.defineProperty(device, 'caps', { value: { ...device.caps, ...ADAPTERS[adapter] }, configurable: true });
  return (await TASKS[task].prepare(device, platform, { path }, resolveConfig(config))).demand!;
}

test('a step has no more rows than a grid has workgroups in one direction, whatever is asked', async () => {
  const { platform, path } = publishedFolder(decoder('llama', [64, 128, 1], [1, 1, 64], [1024, 262144]));
  Object.defineProperty(device, 'caps', { value: { ...device.caps, ...ADAPTERS.gpu }, configurable: true });
  const activations = async (chunkedPrefillSize: number): Promise<number> => {
    const config = resolveConfig({ contextLength: 262144, chunkedPrefillSize });
    return (await ChatEngine.prepare(device, platform, { path }, config)).demand!.activations;
  };
  expect(await activations(262144)).toBe(await activations(65535 - 128));
  expect(await activations(65535 - 128)).toBeGreaterThan(await activations(65000 - 128));
});

test.each([
  [
    'as many as eight sequences have',
    128,
    {},
    { maxRunning: 72, speculative: true },
    [/128 rows of logits: at most 72 .* up to 56 drafts$/],
  ],
  ['at most half of them', 128, { speculativeNumDraftTokens: 64 }, { maxRunning: 64 }, [/at most 64 .* up to 64 drafts$/]],
  ['what is left by few sequences', 128, { maxRunningRequests: 8 }, { maxRunning: 8, speculative: true }, []],
  ['none of one', 1, {}, { maxRunning: 1, speculative: false }, [/ 1 rows .* up to 0 drafts$/]],
  ['none that nobody wants', 128, { speculativeNgram: false }, { maxRunning: 128, speculative: false }, []],
])('of the rows of logits that an adapter binds, drafts get %s', async (_, rows, settings, pages, lines) => {
  const { platform, path } = publishedFolder(decoder('llama', [64, 128, 1], [1, 1, 64], [262144, 1024]));
  Object.defineProperty(device, 'caps', { value: { ...device.caps, ...ADAPTERS.software, maxBindingBytes: rows * 2 ** 20 }, configurable: true }); // prettier-ignore
  const log: string[] = [];
  const config = resolveConfig({ speculativeNgram: true, ...settings });
  const { demand } = await ChatEngine.prepare(device, { ...platform, log: (line) => void log.push(line) }, { path }, config);
  expect(demand!.pages).toMatchObject(pages);
  expect(log).toEqual(lines.map((line) => expect.stringMatching(line) as string));
});

async function bytesOf(model: RecommendedModel, adapter: keyof AdapterBytes, config?: Partial<EngineConfig>): Promise<number> {
  const { weights, activations } = await demandOf(model, adapter, config);
  return roundUp(weights + activations);
}

/** Two digits, and up: a plan must not need more than the table says. */
function roundUp(bytes: number): number {
  const unit = 10 ** (Math.floor(Math.log10(bytes)) - 2);
  return Math.ceil(bytes / unit) * unit;
}

test.each(RECOMMENDED_MODELS)('$id has the published shapes', (model) => {
  const { parameters, fileBytes } = PUBLISHED[model.id]!();
  // A head that is stored twice is no parameter; Kokoro's own count has folded weight norms.
  if (!['Qwen2.5-Coder-0.5B-Instruct', 'Qwen3-0.6B'].includes(model.id) && model.task !== 'speech')
    expect(parameters).toBe(model.parameters);
  if (model.task !== 'speech') expect(fileBytes / downloadBytes(model)!).toBeCloseTo(1, 1);
});

test.skipIf(isWriting).each(RECOMMENDED_MODELS)('$id takes what the table says, on a GPU and on a software adapter', async (model) => {
  expect({ gpu: await bytesOf(model, 'gpu'), software: await bytesOf(model, 'software') }).toEqual(model.memory);
  const { pages } = await demandOf(model, 'gpu');
  const { layers = 0, ...heads } = model.kv ?? {};
  expect(pages?.kv.layers).toEqual(model.task === 'chat' ? Array.from({ length: layers }, () => heads) : undefined);
});

test.skipIf(isWriting)('presets with settings take what the table says with these', async () => {
  for (const { settings, memory, ...preset } of Object.values(PRESETS)) {
    expect(settings === undefined).toBe(memory === undefined);
    if (!memory) continue;
    for (const model of presetModels(preset))
      expect([model.id, await bytesOf(model, 'gpu', settings)]).toEqual([model.id, memory[model.task]]);
  }
});

test.runIf(isWriting)('the table is written', async () => {
  const file = new URL('../../models/recommended.json', import.meta.url);
  const table = JSON.parse(readFileSync(file, 'utf8')) as {
    models: { id: string; memory: AdapterBytes }[];
    presets: Record<string, { memory?: object }>;
  };
  for (const [i, model] of RECOMMENDED_MODELS.entries())
    table.models[i]!.memory = { gpu: await bytesOf(model, 'gpu'), software: await bytesOf(model, 'software') };
  for (const [name, preset] of Object.entries(PRESETS)) {
    if (!preset.settings) continue;
    const bytes = await Promise.all(presetModels(preset).map(async (model) => [model.task, await bytesOf(model, 'gpu', preset.settings)]));
    table.presets[name]!.memory = Object.fromEntries(bytes) as object;
  }
  writeFileSync(file, `${JSON.stringify(table, undefined, 2)}\n`);
});
