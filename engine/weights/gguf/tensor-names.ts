/** Maps a GGUF file's tensors to Hugging Face's names (llama.cpp: gguf-py/gguf/tensor_mapping.py). */
import { product } from '../../util/math.ts';
import { architectureOf, layersOf } from './architecture.ts';
import type { GgufTensor } from './header.ts';
import type { Metadata } from './metadata.ts';
import { scaleNames } from './nvfp4.ts';
import type { PartTensor } from './parts.ts';
import { ROPE_FACTORS } from './rope.ts';

/** Names outside of layers. */
const TOP: ReadonlyMap<string, string> = new Map([
  ['token_embd.weight', 'model.embed_tokens.weight'],
  // GPT-2
  ['position_embd.weight', 'model.embed_positions.weight'],
  ['output_norm.weight', 'model.norm.weight'],
  ['output_norm.bias', 'model.norm.bias'],
  // LFM2
  ['token_embd_norm.weight', 'model.norm.weight'],
  ['output.weight', 'lm_head.weight'],
  ['output.bias', 'lm_head.bias'],
  // Gemma 3n, whose file stacks the projections of all streams.
  ['altup_proj.weight', 'model.altup_projections.weight'],
  ['altup_unembd_proj.weight', 'model.altup_unembed_projections.weight'],
  // Gemma 3n and 4
  ['per_layer_token_embd.weight', 'model.embed_tokens_per_layer.weight'],
  ['per_layer_model_proj.weight', 'model.per_layer_model_projection.weight'],
  ['per_layer_proj_norm.weight', 'model.per_layer_projection_norm.weight'],
]);

/** Names of a layer's parts. */
const PARTS: ReadonlyMap<string, string> = new Map([
  ['attn_norm', 'input_layernorm'],
  ['attn_q', 'self_attn.q_proj'],
  ['attn_k', 'self_attn.k_proj'],
  ['attn_v', 'self_attn.v_proj'],
  ['attn_output', 'self_attn.o_proj'],
  ['attn_q_norm', 'self_attn.q_norm'],
  ['attn_k_norm', 'self_attn.k_norm'],
  ['ffn_norm', 'post_attention_layernorm'],
  ['ffn_gate', 'mlp.gate_proj'],
  ['ffn_up', 'mlp.up_proj'],
  ['ffn_down', 'mlp.down_proj'],
]);

/** A tensor under Hugging Face's name. */
export interface NamedTensor {
  readonly tensor: PartTensor;
  /** Rows per head, if the file has them permuted into rotary pairs. */
  readonly pairedRows: number | undefined;
  /** Function from a stored value to the tensor's value; undefined = the value itself. */
  readonly value: ((stored: number) => number) | undefined;
  /** One number that all values are multiplied by, or one per expert of a stack (NVFP4). */
  readonly scale: PartTensor | undefined;
}

/** The tensors of a file by Hugging Face's names. Unknown ones keep their names, and the loader refuses what no model takes. */
export function namedTensors(metadata: Metadata, tensors: ReadonlyMap<string, PartTensor>): ReadonlyMap<string, NamedTensor> {
  const { name, permuted, parts, tensors: own, head, values, byLayer = false, normOffset = 0 } = architectureOf(metadata);
  const layers = layersOf(metadata, name) ?? Infinity;
  const heads = metadata.everyLayer(`${name}.attention.head_count`);
  const headsOf: Readonly<Record<string, number | undefined>> = {
    attn_q: heads,
    attn_k: (byLayer ? undefined : metadata.everyLayer(`${name}.attention.head_count_kv`)) ?? heads,
  };
  const found = new Map<string, NamedTensor>();
  const beside = new Set([...tensors.values()].flatMap(({ name, dtype }) => (dtype === 'NVFP4' ? Object.values(scaleNames(name)) : [])));
  for (const tensor of tensors.values()) {
    if (Object.values<string>(ROPE_FACTORS).includes(tensor.name) || beside.has(tensor.name)) continue;
    const [, layer, stored = ''] = /^blk\.(\d+)\.(.+)$/.exec(tensor.name) ?? [];
    const inHead = layer !== undefined && Number(layer) >= layers;
    if (inHead && !head) continue;
    const [, part = '', kind] = /^(\w+)\.(weight|bias)$/.exec(stored) ?? [];
    const known = parts?.get(part) ?? PARTS.get(part);
    const inLayer = own?.get(stored) ?? (known && `${known}.${kind}`);
    const at = inHead ? `mtp.layers.${Number(layer) - layers}` : `model.layers.${layer}`;
    const other = inHead ? `mtp.${tensor.name}` : tensor.name;
    const hugging = TOP.get(tensor.name) ?? head?.get(stored) ?? (inLayer && `${at}.${inLayer}`) ?? other;
    const count = permuted ? headsOf[part] : undefined;
    const isShifted = normOffset !== 0 && /(_norm|nextn\.[eh]norm)\.weight$/.test(tensor.name);
    const value = values?.get(stored) ?? (isShifted ? (value: number) => value - normOffset : undefined);
    const scale = tensor.dtype === 'NVFP4' ? scaleOf(metadata, tensor, tensors) : undefined;
    found.set(hugging, { tensor: shaped(stored, tensor), pairedRows: count && headRows(metadata, tensor, count), value, scale });
  }
  return found;
}

/** The tensor with the scale of a tensor, or with those of its experts, if there is one. */
function scaleOf(metadata: Metadata, { name, shape }: PartTensor, tensors: ReadonlyMap<string, PartTensor>): PartTensor | undefined {
  const scale = tensors.get(scaleNames(name).scale);
  const experts = shape.length > 2 ? shape[0]! : 1;
  if (scale && (scale.blocks || ![1, experts].includes(product(scale.shape))))
    metadata.refuse(`tensor ${scale.name} is ${scale.dtype} [${scale.shape.join(', ')}], expected a number${experts > 1 ? `, or ${experts}` : ''}`); // prettier-ignore
  return scale;
}

/** A tensor of a layer in the shape that PyTorch has it in. */
function shaped(stored: string, tensor: PartTensor): PartTensor {
  if (/conv(1d)?\.weight$/.test(stored)) return asFilters(tensor);
  if (stored.endsWith('_inp_shexp.weight')) return asRow(tensor);
  return /^ssm_(a|d|norm\.weight)$/.test(stored) ? asVector(tensor) : stackedByRows(tensor);
}

/** Reshapes a matrix, of one column or a row per group, to a vector. */
function asVector(tensor: PartTensor): PartTensor {
  return { ...tensor, shape: [product(tensor.shape)] };
}

/** Reshapes a stack of experts' matrices into one matrix. */
function stackedByRows(tensor: PartTensor): PartTensor {
  const [experts = 1, rows = 1, columns] = tensor.shape;
  return columns === undefined ? tensor : { ...tensor, shape: [experts * rows, columns] };
}

/** Reshapes depthwise filters [channels, taps] to PyTorch's [channels, 1, taps]. */
function asFilters(tensor: PartTensor): PartTensor {
  const [channels = 1, taps = 1] = tensor.shape;
  return { ...tensor, shape: [channels, 1, taps] };
}

/** Reshapes a vector to a matrix of one row. */
function asRow(tensor: PartTensor): PartTensor {
  return { ...tensor, shape: [1, product(tensor.shape)] };
}

function headRows(metadata: Metadata, { name, shape }: GgufTensor, heads: number): number {
  const rows = shape[0]! / heads;
  if (!Number.isInteger(rows) || rows % 2 !== 0)
    metadata.refuse(`tensor ${name} has shape [${shape.join(', ')}], expected rows for ${heads} heads of an even size`);
  return rows;
}

/** Values per row of a tensor, whose rows are its first dimension. */
export function rowLength({ shape }: GgufTensor): number {
  return product(shape.slice(1));
}
