/** Fields of a config.json, each of the kind that is asked for; each throws EngineError naming the field and what was found. */
import { EngineError } from '../errors.ts';
import { describe, isObject } from '../util/json.ts';
import type { Json } from '../util/json.ts';

/** An object, or undefined where the file has none. */
export function optionalObject(json: Json, field: string): Json | undefined {
  const value = json[field] ?? undefined;
  if (value === undefined || isObject(value)) return value;
  throw new EngineError('invalid_model', `config.json: ${field} is ${describe(value)}, expected an object`);
}

/** A finite number. */
export function number(json: Json, field: string, fallback?: number): number {
  const value = json[field] ?? fallback;
  if (typeof value !== 'number' || !Number.isFinite(value)) {
    throw new EngineError('invalid_model', `config.json: ${field} is ${describe(value)}, expected a number`);
  }
  return value;
}

/** A positive integer. */
export function integer(json: Json, field: string, fallback?: number): number {
  const value = number(json, field, fallback);
  if (!Number.isInteger(value) || value < 1) throw new EngineError('invalid_model', `config.json: ${field} is ${value}, expected a positive integer`); // prettier-ignore
  return value;
}

/** More than any model has; a file that says so is damaged. */
const MOST_LAYERS = 1024;

/** `num_hidden_layers`. */
export function layerCount(json: Json, fallback?: number): number {
  const layers = integer(json, 'num_hidden_layers', fallback);
  if (layers <= MOST_LAYERS) return layers;
  throw new EngineError('invalid_model', `config.json: num_hidden_layers is ${layers}, expected at most ${MOST_LAYERS}`);
}

/** Throws EngineError('unsupported') unless the field is absent or has the one value that the forward pass knows. */
export function expectValue(json: Json, field: string, expected: unknown): void {
  const value = json[field] ?? expected;
  if (value !== expected) {
    throw new EngineError('unsupported', `config.json: ${field} is ${describe(value)}, expected ${JSON.stringify(expected)}`);
  }
}

/** Fields that transformers reads of every model, with the values that change nothing. */
const USUAL: readonly (readonly [field: string, value: unknown])[] = [
  ['is_causal', true],
  ['attention_chunk_size', null],
  ['kv_sharing_modes', null],
  ['number_of_conv_states', 1],
];

/** Throws EngineError('unsupported') for what any model of transformers may be told and no family here does; `readsLayers`: it reads `per_layer_config` itself. */
export function expectUsual(json: Json, { readsLayers = false } = {}): void {
  for (const [field, value] of USUAL) expectValue(json, field, value);
  if (!readsLayers) expectValue(json, 'per_layer_config', null);
}

/** Whether the head is the table of tokens, as it is in families that say so by default; undefined where the weights say it. */
export function tiedByDefault({ tie_word_embeddings: tied }: Json): boolean | undefined {
  return tied === null ? undefined : tied !== false;
}

/** A token id field that may be one id, a list or null. */
export function tokenIds(value: unknown): number[] {
  return (Array.isArray(value) ? value : [value]).filter((id): id is number => typeof id === 'number');
}

/** The kinds of the layers, [layers], of `layer_types`; undefined where the file does not have it. Throws EngineError('unsupported') for a kind that is not in `known`. */
export function layerTypes<Kind extends string>(json: Json, layers: number, known: readonly Kind[]): readonly Kind[] | undefined {
  const kinds = json['layer_types'] ?? undefined;
  if (kinds === undefined) return undefined;
  if (!Array.isArray(kinds) || kinds.length < layers) {
    throw new EngineError('invalid_model', `config.json: layer_types is ${describe(kinds)}, expected a list of ${layers}`);
  }
  return kinds.slice(0, layers).map((kind: unknown) => {
    const found = known.find((one) => one === kind);
    if (found !== undefined) return found;
    throw new EngineError('unsupported', `config.json: layer_types has ${describe(kind)}; known are ${known.join(' and ')}`);
  });
}

/** A cap that a file may have as null: none. */
export function softCap(json: Json, field: string, fallback?: number): number | undefined {
  const value = json[field] === undefined ? fallback : json[field];
  if (value === null || value === undefined) return undefined;
  if (typeof value === 'number' && value > 0) return value;
  throw new EngineError('invalid_model', `config.json: ${field} is ${describe(value)}, expected a positive number or null`);
}
