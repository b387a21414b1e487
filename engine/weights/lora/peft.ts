/** Reads LoRA adapters as PEFT saves them: a folder with adapter_config.json and adapter_model.safetensors. */
import { EngineError } from '../../errors.ts';
import { readJsonFile } from '../../platform/json-file.ts';
import type { Platform } from '../../platform/platform.ts';
import { describe, isObject } from '../../util/json.ts';
import type { Json } from '../../util/json.ts';
import type { Checkpoint } from '../checkpoint.ts';
import { openSafetensors } from '../safetensors.ts';
import { loraError } from './lora-adapter.ts';
import type { LoraAdapter, LoraModule, LoraSource, LoraTensor } from './lora-adapter.ts';

const CONFIG = 'adapter_config.json';
const WEIGHTS = 'adapter_model.safetensors';
/** A matrix of an adapter; older versions of PEFT leave the name of the adapter, `default`, in the tensor's. */
const TENSOR = /^base_model\.model\.(.+)\.lora_(A|B)(?:\.default)?\.weight$/;
/** Ways of initialising an adapter that leave the base model as it is; others change its weights too, which the adapter then needs. */
const PLAIN_STARTS = [undefined, null, true, false, 'gaussian', 'orthogonal', 'eva'] as const;
/** Tensors that an error names at most. */
const SHOWN = 4;

/** Opens an adapter. Throws EngineError that names the adapter, the file or the field, what was found and what is expected. */
export async function openPeft(platform: Platform, source: LoraSource): Promise<LoraAdapter> {
  const { path } = source;
  const config = await configOf(platform, source);
  refuseOthers(source, config);
  const weights = platform.join(path, WEIGHTS);
  if (!(await platform.exists(weights))) throw loraError('invalid_model', source, await withoutWeights(platform, path));
  const checkpoint = await openSafetensors(platform, path, WEIGHTS);
  try {
    return {
      ...source,
      modules: modulesOf(source, config, checkpoint),
      read: ({ name }) => checkpoint.read(name),
      close: () => checkpoint.close(),
    };
  } catch (error) {
    await checkpoint.close();
    throw error;
  }
}

async function configOf(platform: Platform, source: LoraSource): Promise<Json> {
  const path = platform.join(source.path, CONFIG);
  if (await platform.exists(path)) return readJsonFile(platform, path);
  throw loraError(
    'invalid_model',
    source,
    `file not found: ${path}; expected a folder with ${CONFIG} and ${WEIGHTS}, as PEFT saves it, or a GGUF file`,
  );
}

async function withoutWeights(platform: Platform, path: string): Promise<string> {
  const names = (await platform.list?.(path)) ?? [];
  const pickled = names.includes('adapter_model.bin') ? ', which holds adapter_model.bin: save it with safe_serialization=True' : '';
  return `file not found: ${platform.join(path, WEIGHTS)}${pickled}`;
}

/** Refuses what is more than products of low rank beside a model's matrices. */
function refuseOthers(source: LoraSource, config: Json): void {
  const refuse = (field: string, expected: string): never => {
    throw loraError('unsupported', source, `${CONFIG}: ${field} is ${shown(config[field])}, expected ${expected}`);
  };
  const isEmpty = (value: unknown): boolean =>
    value === undefined || value === null || value === false || (Array.isArray(value) ? value.length === 0 : isObject(value) && Object.keys(value).length === 0); // prettier-ignore
  if (config['peft_type'] !== 'LORA') refuse('peft_type', '"LORA"');
  if (config['use_dora'] === true) refuse('use_dora', 'false: DoRA adapters are not served');
  if (config['bias'] !== undefined && config['bias'] !== 'none') refuse('bias', '"none": adapters that train biases are not served');
  if (!PLAIN_STARTS.some((start) => start === config['init_lora_weights']))
    refuse('init_lora_weights', `true, or "gaussian": with others the base model's weights change as well, unless PEFT converts the adapter`); // prettier-ignore
  for (const field of ['modules_to_save', 'trainable_token_indices', 'target_parameters', 'alora_invocation_tokens'])
    if (!isEmpty(config[field])) refuse(field, 'none: an adapter has LoRA matrices only');
  for (const field of ['lora_bias', 'use_qalora', 'layer_replication', 'arrow_config', 'use_bdlora', 'kasa_config', 'monteclora_config'])
    if (!isEmpty(config[field])) refuse(field, 'none');
}

/** A field's value; of a list its items. */
function shown(value: unknown): string {
  return Array.isArray(value) ? `[${value.slice(0, SHOWN).map(describe).join(', ')}]` : describe(value);
}

/** The pairs of matrices in a checkpoint, by module. */
function modulesOf(source: LoraSource, config: Json, checkpoint: Checkpoint): ReadonlyMap<string, LoraModule> {
  const found = new Map<string, { A?: LoraTensor; B?: LoraTensor }>();
  const others: string[] = [];
  for (const name of checkpoint.names()) {
    const [, module, half] = TENSOR.exec(name) ?? [];
    if (module === undefined) others.push(name);
    else found.set(module, { ...found.get(module), [half as 'A' | 'B']: { name, shape: checkpoint.tensor(name)!.shape } });
  }
  if (others.length > 0)
    throw loraError('unsupported', source, `${WEIGHTS} has ${others.length} tensors that are no LoRA matrices of linear layers: ${others.slice(0, SHOWN).join(', ')}`); // prettier-ignore
  if (found.size === 0) throw loraError('invalid_model', source, `${WEIGHTS} has no tensors`);
  const numbers = numbersOf(source, config);
  return new Map(
    [...found].map(([module, { A: a, B: b }]) => {
      if (!a || !b) throw loraError('invalid_model', source, `${module} has a matrix lora_${a ? 'A' : 'B'} without lora_${a ? 'B' : 'A'}`);
      const { rank, scale } = numbers(module);
      const expectRank = ({ name, shape }: LoraTensor, axis: 0 | 1): void => {
        if (shape.length !== 2 || shape[axis] !== rank)
          throw loraError('invalid_model', source, `tensor ${name} has shape [${shape.join(', ')}], expected ${axis === 0 ? `[${rank}, inputs]` : `[outputs, ${rank}]`}: ${CONFIG} gives it rank ${rank}`); // prettier-ignore
      };
      expectRank(a, 0);
      expectRank(b, 1);
      return [module, { rank, scale, a, b }];
    }),
  );
}

/** Rank and scale of a module, as PEFT finds them: by the first pattern that its name, or the end of it, matches, else by `r` and `lora_alpha`. */
function numbersOf(source: LoraSource, config: Json): (module: string) => { readonly rank: number; readonly scale: number } {
  const positive = (field: string, value: unknown, fallback: number, isWhole: boolean): number => {
    const number = value ?? fallback;
    if (typeof number === 'number' && Number.isFinite(number) && number > 0 && (!isWhole || Number.isInteger(number))) return number;
    throw loraError('invalid_model', source, `${CONFIG}: ${field} is ${describe(number)}, expected a positive ${isWhole ? 'integer' : 'number'}`); // prettier-ignore
  };
  const r = positive('r', config['r'], 8, true);
  const alpha = positive('lora_alpha', config['lora_alpha'], 8, false);
  const [ranks, alphas] = [patternsOf(source, config, 'rank_pattern'), patternsOf(source, config, 'alpha_pattern')];
  const matching = (patterns: Patterns, module: string): unknown => patterns.find(({ test }) => test.test(module))?.value;
  return (module) => {
    const rank = positive('rank_pattern', matching(ranks, module), r, true);
    const ofModule = positive('alpha_pattern', matching(alphas, module), alpha, false);
    return { rank, scale: ofModule / (config['use_rslora'] === true ? Math.sqrt(rank) : rank) };
  };
}

type Patterns = readonly { readonly test: RegExp; readonly value: unknown }[];

function patternsOf(source: LoraSource, config: Json, field: string): Patterns {
  const patterns = config[field] ?? {};
  if (!isObject(patterns)) throw loraError('invalid_model', source, `${CONFIG}: ${field} is ${describe(patterns)}, expected an object`);
  return Object.entries(patterns).map(([pattern, value]) => {
    try {
      return { test: new RegExp(`^(?:.*\\.)?(?:${pattern})$`), value };
    } catch (cause) {
      const what = `${CONFIG}: ${field} has ${describe(pattern)}, expected a regular expression`;
      throw new EngineError('invalid_model', loraError('invalid_model', source, what).message, { cause });
    }
  });
}
