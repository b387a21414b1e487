import type { MemoryUse } from '../api.ts';
import { EngineError } from '../errors.ts';
import type { Remedy } from '../errors.ts';
import { SAY_MEMORY } from '../gpu/memory.ts';
import type { DeviceMemory } from '../gpu/memory.ts';
import type { KVShape } from '../ops/kv.ts';
import { pageBytes } from '../ops/kv.ts';
import { formatBytes } from '../util/memory.ts';
import { ceilDiv } from '../util/math.ts';

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

function tooLarge({ model, memory, fraction, others, weights, activations, kv, context }: MemoryRequest, leastKv: number): EngineError {
  const needed = others + weights + activations + leastKv;
  const parts = [
    ...(others > 0 ? [`other models ${formatBytes(others)}`] : []),
    `weights ${formatBytes(weights)}`,
    `activations ${formatBytes(activations)}`,
    `keys and values of ${Math.min(LEAST_TOKENS, context)} tokens ${formatBytes(leastKv)}`,
  ];
  const share = `${fraction} x ${formatBytes(memory.bytes)} (${memory.from}) = ${formatBytes(fraction * memory.bytes)} may be taken`;
  const remedies: Remedy[] = [
    {
      does: 'split the model over two devices, about half of it on each',
      settings: [
        { name: 'tpSize', value: 2 },
        { name: 'ppSize', value: 2 },
      ],
    },
    ...(kv.dtype === 'int8' ? [] : [STORE_BYTES]),
    { does: 'compute less at once', settings: [{ name: 'maxRunningRequests' }, { name: 'chunkedPrefillSize' }] },
    { does: 'take a larger share', settings: [{ name: 'memFractionStatic' }] },
    SAY_MEMORY,
  ];
  return new EngineError('out_of_memory', `${model} does not fit: it needs ${formatBytes(needed)} (${parts.join(', ')}), and ${share}`, {
    remedies,
    details: { needed: Math.ceil(needed), available: Math.floor(fraction * memory.bytes) },
  }); // prettier-ignore
}
