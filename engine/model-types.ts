/** The models that are understood, by config.json's `model_type`: all that engine, page, build and documents know of them, before any code is loaded. */
import { EngineError } from './errors.ts';
import type { Json } from './util/json.ts';
import { describe, isObject } from './util/json.ts';

/** What a model does, in the order in which tasks are listed everywhere. */
export const MODEL_TASKS = ['chat', 'speech', 'transcription'] as const;
export type ModelTask = (typeof MODEL_TASKS)[number];

interface TypeRow {
  readonly task: ModelTask;
  /** Its folder in engine/models, with a MODEL.md. */
  readonly family: string;
}

/** A row each; a family of chat models has its definition in models/registry.ts. */
export const MODEL_TYPES = {
  llama: { task: 'chat', family: 'llama' },
  mistral: { task: 'chat', family: 'llama' },
  mistral3: { task: 'chat', family: 'ministral' },
  ministral3: { task: 'chat', family: 'ministral' },
  qwen2: { task: 'chat', family: 'llama' },
  qwen3: { task: 'chat', family: 'llama' },
  qwen2_moe: { task: 'chat', family: 'qwen2-moe' },
  qwen3_moe: { task: 'chat', family: 'qwen3-moe' },
  glm: { task: 'chat', family: 'glm' },
  glm4: { task: 'chat', family: 'glm4' },
  glm4_moe: { task: 'chat', family: 'glm4-moe' },
  qwen3_next: { task: 'chat', family: 'qwen3-next' },
  qwen3_5: { task: 'chat', family: 'qwen3-5' },
  qwen3_5_text: { task: 'chat', family: 'qwen3-5' },
  qwen3_5_moe: { task: 'chat', family: 'qwen3-5' },
  qwen3_5_moe_text: { task: 'chat', family: 'qwen3-5' },
  lfm2: { task: 'chat', family: 'lfm2' },
  lfm2_moe: { task: 'chat', family: 'lfm2' },
  gpt_oss: { task: 'chat', family: 'gpt-oss' },
  smollm3: { task: 'chat', family: 'llama' },
  granite: { task: 'chat', family: 'llama' },
  granitemoehybrid: { task: 'chat', family: 'granite-hybrid' },
  granitemoe: { task: 'chat', family: 'granitemoe' },
  mixtral: { task: 'chat', family: 'mixtral' },
  gemma: { task: 'chat', family: 'gemma1' },
  gemma2: { task: 'chat', family: 'gemma' },
  gemma3: { task: 'chat', family: 'gemma' },
  gemma3_text: { task: 'chat', family: 'gemma' },
  gemma3n: { task: 'chat', family: 'gemma3n' },
  gemma3n_text: { task: 'chat', family: 'gemma3n' },
  gemma4: { task: 'chat', family: 'gemma4' },
  gemma4_text: { task: 'chat', family: 'gemma4' },
  apertus: { task: 'chat', family: 'apertus' },
  arcee: { task: 'chat', family: 'arcee' },
  olmo2: { task: 'chat', family: 'olmo' },
  olmo3: { task: 'chat', family: 'olmo' },
  olmoe: { task: 'chat', family: 'olmoe' },
  flex_olmo: { task: 'chat', family: 'flex-olmo' },
  phi3: { task: 'chat', family: 'phi3' },
  phimoe: { task: 'chat', family: 'phimoe' },
  cohere: { task: 'chat', family: 'cohere' },
  cohere2: { task: 'chat', family: 'cohere' },
  starcoder2: { task: 'chat', family: 'starcoder2' },
  stablelm: { task: 'chat', family: 'stablelm' },
  nemotron: { task: 'chat', family: 'nemotron' },
  ernie4_5: { task: 'chat', family: 'ernie4-5' },
  ernie4_5_moe: { task: 'chat', family: 'ernie4-5-moe' },
  hunyuan_v1_dense: { task: 'chat', family: 'hunyuan' },
  hunyuan_v1_moe: { task: 'chat', family: 'hunyuan-moe' },
  seed_oss: { task: 'chat', family: 'seed-oss' },
  exaone4: { task: 'chat', family: 'exaone4' },
  nemotron_h: { task: 'chat', family: 'nemotron-h' },
  falcon_h1: { task: 'chat', family: 'falcon-h1' },
  deepseek_v2: { task: 'chat', family: 'deepseek' },
  deepseek_v3: { task: 'chat', family: 'deepseek' },
  glm4_moe_lite: { task: 'chat', family: 'deepseek' },
  minicpm3: { task: 'chat', family: 'minicpm3' },
  gpt_neox: { task: 'chat', family: 'gpt-neox' },
  phi: { task: 'chat', family: 'phi' },
  gpt2: { task: 'chat', family: 'gpt2' },
  opt: { task: 'chat', family: 'opt' },
  minimax_m2: { task: 'chat', family: 'minimax-m2' },
  dots1: { task: 'chat', family: 'dots1' },
  kokoro: { task: 'speech', family: 'kokoro' },
  whisper: { task: 'transcription', family: 'whisper' },
} as const satisfies Readonly<Record<string, TypeRow>>;

type Rows = typeof MODEL_TYPES;
/** The families of models that do a task. */
export type FamilyOf<Task extends ModelTask> = Extract<Rows[keyof Rows], { readonly task: Task }>['family'];

/** The type that a config.json names; undefined when it names none. */
export function modelTypeOf(config: Json): string | undefined {
  const type = config['model_type'];
  if (typeof type === 'string') return type;
  // Kokoro's, as published, names no type; its vocoder gives it away.
  return type === undefined && isObject(config['istftnet']) ? 'kokoro' : undefined;
}

/** What a model of a type does; undefined for types that are not understood. */
export function taskOf(modelType: string | undefined): ModelTask | undefined {
  return rowOf(modelType)?.task;
}

/** The types that do a task, or all. */
export function typesOf(task?: ModelTask): readonly string[] {
  return Object.entries(MODEL_TYPES).flatMap(([type, row]) => (task === undefined || row.task === task ? [type] : []));
}

/** The family of a config.json that must be of a model for `task`; throws EngineError('unsupported') that says what it is a model for, or lists what there is. */
export function expectFamily<Task extends ModelTask>(config: Json, task: Task): FamilyOf<Task> {
  const type = modelTypeOf(config);
  const row = rowOf(type);
  if (row?.task === task) return row.family as FamilyOf<Task>;
  // `modelTask`: whoever shows it knows where models of that task are given.
  if (row) throw new EngineError('unsupported', `config.json: a ${row.task} model (model_type ${describe(type)}), where a ${task} model is expected`, { details: { modelTask: row.task } }); // prettier-ignore
  throw new EngineError('unsupported', `config.json: model_type ${describe(type ?? config['model_type'])} is not a ${task} model this build knows: ${typesOf(task).join(', ')}`); // prettier-ignore
}

function rowOf(type: string | undefined): TypeRow | undefined {
  return type !== undefined && Object.hasOwn(MODEL_TYPES, type) ? MODEL_TYPES[type as keyof Rows] : undefined;
}
