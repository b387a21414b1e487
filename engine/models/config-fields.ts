/** Readers of config.json fields by type; each throws EngineError naming the field and what was found. */
import { EngineError } from '../errors.ts';
import { describe, isObject } from '../util/json.ts';
import type { Json } from '../util/json.ts';

/** Reads an object; undefined where the field is absent or null. */
export function optionalObject(json: Json, field: string): Json | undefined {
  const value = json[field] ?? undefined;
  if (value === undefined || isObject(value)) return value;
  throw new EngineError('invalid_model', `config.json: ${field} is ${describe(value)}, expected an object`);
}

/** Reads a finite number; `fallback` where the field is absent or null. */
export function number(json: Json, field: string, fallback?: number): number {
  const value = json[field] ?? fallback;
  if (typeof value !== 'number' || !Number.isFinite(value)) {
    throw new EngineError('invalid_model', `config.json: ${field} is ${describe(value)}, expected a number`);
  }
  return value;
}

/** Reads a positive integer; `fallback` where the field is absent or null. */
export function integer(json: Json, field: string, fallback?: number): number {
  const value = number(json, field, fallback);
  if (!Number.isInteger(value) || value < 1) throw new EngineError('invalid_model', `config.json: ${field} is ${value}, expected a positive integer`); // prettier-ignore
  return value;
}

/** More layers than any model has; a file with more is damaged. */
const MOST_LAYERS = 1024;

/** Reads `num_hidden_layers`. */
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

/**
 * Throws EngineError('unsupported') for settings that transformers reads for every model and no family here supports. `readsLayers`: the
 * family reads `per_layer_config` itself.
 */
export function expectUsual(json: Json, { readsLayers = false } = {}): void {
  for (const [field, value] of USUAL) expectValue(json, field, value);
  if (!readsLayers) expectValue(json, 'per_layer_config', null);
}

/** Reads `tie_word_embeddings` in families where it is true by default; undefined = the weights decide (the field is null). */
export function tiedByDefault({ tie_word_embeddings: tied }: Json): boolean | undefined {
  return tied === null ? undefined : tied !== false;
}

/** A token id field that may be one id, a list or null. */
export function tokenIds(value: unknown): number[] {
  return (Array.isArray(value) ? value : [value]).filter((id): id is number => typeof id === 'number');
}

/**
 * Reads `layer_types`, one for each layer; undefined where the field is absent. Throws EngineError('unsupported') for a type that is not in
 * `known`.
 */
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

/** By layer, its rotary embedding and whether it is recurrent. Throws EngineError('unsupported') unless a layer at least has attention. */
export function recurrentKinds<Rope>(
  layers: number,
  rope: Rope,
  isRecurrent: (layer: number) => boolean,
): readonly { readonly rope: Rope; readonly isRecurrent: boolean }[] {
  const kinds = Array.from({ length: layers }, (_, layer) => ({ rope, isRecurrent: isRecurrent(layer) }));
  if (kinds.some((kind) => !kind.isRecurrent)) return kinds;
  throw new EngineError('unsupported', 'config.json: no layer has attention, expected at least one');
}

/** More taps than any short convolution has; a file with more is damaged. */
const MOST_TAPS = 16;

/** Reads the taps of a recurrent layer's short convolution. */
export function convTaps(json: Json, field: string, fallback: number): number {
  const taps = integer(json, field, fallback);
  if (taps >= 2 && taps <= MOST_TAPS) return taps;
  throw new EngineError('unsupported', `config.json: ${field} is ${taps}, expected 2 to ${MOST_TAPS}`);
}

/** Reads a soft cap; undefined = none, which a file may say by null. */
export function softCap(json: Json, field: string, fallback?: number): number | undefined {
  const value = json[field] === undefined ? fallback : json[field];
  if (value === null || value === undefined) return undefined;
  if (typeof value === 'number' && value > 0) return value;
  throw new EngineError('invalid_model', `config.json: ${field} is ${describe(value)}, expected a positive number or null`);
}
