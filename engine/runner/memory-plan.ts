/** The one plan for memory: what every model takes of a device, made of configs and headers before anything is loaded. */
import type { MemoryPlan, MemoryUse, ModelMemory } from '../api.ts';
import { EngineError } from '../errors.ts';
import type { Remedy } from '../errors.ts';
import { SAY_MEMORY } from '../gpu/memory.ts';
import type { DeviceMemory } from '../gpu/memory.ts';
import type { KVShape } from '../ops/kv.ts';
import { pageBytes } from '../ops/kv.ts';
import { formatBytes } from '../util/memory.ts';
import { ceilDiv } from '../util/math.ts';

/** What a model needs, in bytes, as far as its config and the headers of its checkpoint tell. */
export interface ModelDemand extends Pick<ModelMemory, 'id' | 'task'> {
  readonly weights: number;
  /** Everything else that does not depend on how much there is: activations, tables, caches of a fixed size. */
  readonly activations: number;
  /** What the weights would take if they were quantised at load, by the value of the setting. */
  readonly quantised?: Readonly<Record<string, number>>;
  /** Of a chat model: what takes the rest. */
  readonly pages?: Pick<MemoryRequest, 'kv' | 'maxRunning' | 'context'>;
}

/** What there is to divide. */
export type MemoryShare = Pick<MemoryRequest, 'memory' | 'fraction' | 'maxBindingBytes'> & {
  /** Bytes that are taken already. */
  readonly taken: number;
};

/**
 * Divides a device's memory between its models: weights and activations of all of them first, then pages of keys and values. Throws
 * EngineError('out_of_memory') with the numbers and what to do when that is too much.
 */
export function planModels({ taken, ...share }: MemoryShare, demands: readonly ModelDemand[]): MemoryPlan {
  const { memory, fraction } = share;
  const available = memory.bytes * fraction;
  const models: ModelMemory[] = [];
  let others = taken;
  // Models with pages come last: theirs are made of what the others leave.
  for (const { id, task, weights, activations, quantised, pages } of [...demands].sort(
    (a, b) => Number(a.pages !== undefined) - Number(b.pages !== undefined),
  )) {
    const use = pages && planMemory({ ...share, ...pages, model: id, others, weights, activations, quantised });
    if (!use && others + weights + activations > available)
      throw tooLarge({ memory, fraction, others, weights, activations, quantised, model: id });
    models.push({ id, task, weightBytes: weights, activationBytes: activations, ...(use && { pages: use }) });
    others += weights + activations + (use?.kvBytes ?? 0);
  }
  return { deviceBytes: memory.bytes, source: memory.from, fraction, models, totalBytes: others };
}

/** Tokens of keys and values that fit beside a model's weights and activations; 0 when the model does not fit. */
export function tokensThatFit(share: MemoryShare, demand: ModelDemand & { readonly pages: NonNullable<ModelDemand['pages']> }): number {
  try {
    const [model] = planModels(share, [demand]).models;
    return model!.pages!.kvPages * model!.pages!.pageSize;
  } catch (error) {
    if (error instanceof EngineError && error.code === 'out_of_memory') return 0;
    throw error;
  }
}

/** A model that holds fewer tokens than this (or than its context) is of no use. */
const LEAST_TOKENS = 256;

const STORE_BYTES: Remedy = { does: 'store keys and values in bytes', settings: [{ name: 'kvCacheDtype', value: 'int8' }] };

export interface MemoryRequest {
  /** The model's id, for the message. */
  readonly model: string;
  readonly memory: DeviceMemory;
  /** Share of the memory that may be taken. */
  readonly fraction: number;
  /** Bytes that are taken already by other models. */
  readonly others: number;
  readonly weights: number;
  readonly activations: number;
  readonly quantised?: ModelDemand['quantised'];
  readonly kv: KVShape;
  readonly maxRunning: number;
  /** Longest sequence asked for, in tokens. */
  readonly context: number;
  readonly maxBindingBytes: number;
}

/**
 * Divides the memory: what weights and activations leave of the share goes to pages of keys and values, at most what `maxRunning` sequences of
 * `context` tokens can use and what the adapter binds. Throws EngineError('out_of_memory') with the numbers and what to do when that is too little.
 */
export function planMemory(request: MemoryRequest): MemoryUse {
  const { memory, fraction, others, weights, activations, kv, maxRunning, context, maxBindingBytes } = request;
  const inOneBuffer = pageBytes(kv);
  const page = 2 * kv.layers * inOneBuffer;
  const left = memory.bytes * fraction - others - weights - activations;
  const most = maxRunning * ceilDiv(context, kv.pageSize);
  const pages = Math.min(Math.floor(left / page), Math.floor(maxBindingBytes / inOneBuffer), most);
  const least = ceilDiv(Math.min(LEAST_TOKENS, context), kv.pageSize);
  if (pages < least) throw tooLarge(request, least * page);
  return {
    deviceBytes: memory.bytes,
    source: memory.from,
    fraction,
    otherBytes: others,
    weightBytes: weights,
    activationBytes: activations,
    kvBytes: pages * page,
    kvPages: pages,
    pageSize: kv.pageSize,
    kvCacheDtype: kv.dtype,
  };
}

/** What `tooLarge` says; `leastKv` = bytes of the least pages, of a model that has any. */
type TooLarge = Pick<MemoryRequest, 'model' | 'memory' | 'fraction' | 'others' | 'weights' | 'activations'> & Partial<MemoryRequest>;

function tooLarge(
  { model, memory, fraction, others, weights, activations, quantised = {}, kv, context = 0 }: TooLarge,
  leastKv = 0,
): EngineError {
  const needed = others + weights + activations + leastKv;
  const parts = [
    ...(others > 0 ? [`other models ${formatBytes(others)}`] : []),
    `weights ${formatBytes(weights)}`,
    `activations ${formatBytes(activations)}`,
    ...(kv ? [`keys and values of ${Math.min(LEAST_TOKENS, context)} tokens ${formatBytes(leastKv)}`] : []),
  ];
  const share = `${fraction} x ${formatBytes(memory.bytes)} (${memory.from}) = ${formatBytes(fraction * memory.bytes)} may be taken`;
  const smaller = Object.entries(quantised).filter(([, bytes]) => bytes < weights && needed - weights + bytes <= fraction * memory.bytes);
  const remedies: Remedy[] = [
    ...(smaller.length > 0 ? [fewerBits(smaller)] : []),
    ...(kv ? chatRemedies(kv) : []),
    { does: 'take a larger share', settings: [{ name: 'memFractionStatic' }] },
    SAY_MEMORY,
  ];
  return new EngineError('out_of_memory', `${model} does not fit: it needs ${formatBytes(needed)} (${parts.join(', ')}), and ${share}`, {
    remedies,
    details: { needed: Math.ceil(needed), available: Math.floor(fraction * memory.bytes) },
  }); // prettier-ignore
}

/** Of the quantisations with which it fits. */
function fewerBits(smaller: readonly (readonly [string, number])[]): Remedy {
  const sizes = smaller.map(([value, bytes]) => `${value}: ${formatBytes(bytes)}`).join(', ');
  return { does: `store the weights in fewer bits (${sizes})`, settings: smaller.map(([value]) => ({ name: 'quantization', value })) };
}

function chatRemedies(kv: KVShape): readonly Remedy[] {
  return [
    {
      does: 'split the model over two devices, about half of it on each',
      settings: [
        { name: 'tpSize', value: 2 },
        { name: 'ppSize', value: 2 },
      ],
    },
    ...(kv.dtype === 'int8' ? [] : [STORE_BYTES]),
    { does: 'compute less at once', settings: [{ name: 'maxRunningRequests' }, { name: 'chunkedPrefillSize' }] },
  ];
}
