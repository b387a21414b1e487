/** Reads LoRA adapters as llama.cpp has them: a GGUF file, as its convert_lora_to_gguf.py writes it. */
import { EngineError } from '../../errors.ts';
import type { Platform } from '../../platform/platform.ts';
import { isObject } from '../../util/json.ts';
import type { Json } from '../../util/json.ts';
import { modelTypesOf } from '../gguf/architecture.ts';
import { GgufCheckpoint } from '../gguf/checkpoint.ts';
import { openParts } from '../gguf/gguf-folder.ts';
import { Metadata } from '../gguf/metadata.ts';
import type { GgufValue } from '../gguf/header.ts';
import { readModel } from '../gguf/parts.ts';
import type { PartTensor } from '../gguf/parts.ts';
import { namedTensors } from '../gguf/tensor-names.ts';
import type { NamedTensor } from '../gguf/tensor-names.ts';
import { loraError } from './lora-adapter.ts';
import type { LoraAdapter, LoraModule, LoraSource } from './lora-adapter.ts';

/** A matrix of an adapter: the tensor that it changes, and which of both it is. */
const TENSOR = /^(.+\.weight)\.lora_(a|b)$/;
/** Tensors that an error names at most. */
const SHOWN = 4;

/** Both matrices for a tensor, by its name in GGUF. */
interface Pair {
  readonly a: PartTensor;
  readonly b: PartTensor;
}

/**
 * Opens an adapter in a GGUF file for a base model with this config.json, whose heads say how rows of queries and keys lie. Throws
 * EngineError that names the adapter, the key or the tensor, what was found and what is expected.
 */
export async function openGgufLora(platform: Platform, source: LoraSource, file: string, base: Json): Promise<LoraAdapter> {
  const { metadata, tensors, paths } = await readModel(platform, file);
  const architecture = expectKind(source, metadata, base);
  const alpha = metadata.number('adapter.lora.alpha') ?? 0;
  const pairs = pairsOf(source, tensors);
  const named = namesOf(source, architecture, pairs, base);
  const stored = new Map<string, NamedTensor>();
  const modules = new Map<string, LoraModule>();
  for (const [name, ofB] of named) {
    const { a, b } = pairs.get(ofB.tensor.name)!;
    const rank = rankOf(source, a, b);
    stored.set(a.name, { tensor: a, pairedRows: undefined, value: undefined, scale: undefined });
    stored.set(b.name, { ...ofB, tensor: b });
    // As llama.cpp: without an alpha the product is added as it is.
    modules.set(name.replace(/\.weight$/, ''), { rank, scale: alpha === 0 ? 1 : alpha / rank, a, b });
  }
  const checkpoint = new GgufCheckpoint(stored, await openParts(platform, paths));
  return { ...source, modules, read: ({ name }) => checkpoint.read(name), close: () => checkpoint.close() };
}

/** The architecture of an adapter that goes with the base model. */
function expectKind(source: LoraSource, metadata: Metadata, base: Json): string {
  const expect = (key: string, expected: string): void => {
    const found = metadata.text(key);
    if (found === expected) return;
    const isModel = key === 'general.type' && (found === undefined || found === 'model');
    throw loraError(isModel ? 'invalid_model' : 'unsupported', source, `${key} is ${found === undefined ? 'missing' : JSON.stringify(found)}, expected "${expected}"${isModel ? ': it is a model' : ''}`); // prettier-ignore
  };
  expect('general.type', 'adapter');
  expect('adapter.type', 'lora');
  if (metadata.has('adapter.alora.invocation_tokens'))
    throw loraError('unsupported', source, 'adapter.alora.invocation_tokens is there: activated LoRA (aLoRA) is not served');
  const name = metadata.text('general.architecture') ?? metadata.refuse('general.architecture is missing');
  const types = modelTypesOf(name);
  const type = String(base['model_type']);
  if (types.length === 0)
    throw loraError('unsupported', source, `its architecture is ${JSON.stringify(name)}, whose tensors are not known`);
  // A language model inside of another has a type of its own.
  const own = type.replace(/_text$/, '');
  if (!types.some((one) => one.replace(/_text$/, '') === own))
    throw loraError('invalid_model', source, `its architecture is ${JSON.stringify(name)} (${types.join(', ')}), and the base model is of type ${type}: it was made for another model`); // prettier-ignore
  return name;
}

function pairsOf(source: LoraSource, tensors: ReadonlyMap<string, PartTensor>): ReadonlyMap<string, Pair> {
  const found = new Map<string, Partial<Pair>>();
  const others: string[] = [];
  for (const tensor of tensors.values()) {
    const [, name, half] = TENSOR.exec(tensor.name) ?? [];
    if (name === undefined || tensor.shape.length !== 2) others.push(tensor.name);
    else found.set(name, { ...found.get(name), [half as 'a' | 'b']: tensor });
  }
  if (others.length > 0)
    throw loraError('unsupported', source, `it has ${others.length} tensors that are no LoRA matrices of linear layers: ${others.slice(0, SHOWN).join(', ')}`); // prettier-ignore
  if (found.size === 0) throw loraError('invalid_model', source, 'it has no tensors');
  for (const [name, { a, b }] of found)
    if (!a || !b) throw loraError('invalid_model', source, `${name} has a matrix lora_${a ? 'a' : 'b'} without lora_${a ? 'b' : 'a'}`);
  return found as Map<string, Pair>;
}

/** B of each pair under the name that the checkpoint has for the tensor, with the order of its rows, as of the tensor itself. */
function namesOf(source: LoraSource, architecture: string, pairs: ReadonlyMap<string, Pair>, base: Json): ReadonlyMap<string, NamedTensor> {
  const config = isObject(base['text_config']) ? base['text_config'] : base;
  const heads = config['num_attention_heads'];
  const keys: [string, unknown][] = [
    ['general.architecture', architecture],
    [`${architecture}.attention.head_count`, heads],
    [`${architecture}.attention.head_count_kv`, config['num_key_value_heads'] ?? heads],
  ];
  const metadata = new Metadata(source.path, new Map(keys.filter(([, value]) => value !== undefined) as [string, GgufValue][]));
  const outputs = new Map([...pairs].map(([name, { b }]) => [name, { ...b, name }]));
  const named = inAdapter(source, () => namedTensors(metadata, outputs));
  if (named.size !== outputs.size) throw loraError('invalid_model', source, 'two of its tensors change the same one');
  return named;
}

/** Errors of `work` with the name of the adapter. */
function inAdapter<T>(source: LoraSource, work: () => T): T {
  try {
    return work();
  } catch (cause) {
    if (!(cause instanceof EngineError)) throw cause;
    throw new EngineError(cause.code, loraError('invalid_model', source, cause.message).message, { cause });
  }
}

function rankOf(source: LoraSource, a: PartTensor, b: PartTensor): number {
  const rank = a.shape[0]!;
  if (b.shape[1] === rank) return rank;
  throw loraError('invalid_model', source, `tensor ${b.name} has shape [${b.shape.join(', ')}], expected [outputs, ${rank}]: ${a.name} has [${a.shape.join(', ')}]`); // prettier-ignore
}
