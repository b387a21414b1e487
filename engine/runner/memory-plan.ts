/** Plans memory: how much of a device each model takes, from configs and headers, before anything is loaded. */
import type { MemoryPlan, MemoryUse, ModelMemory } from '../api.ts';
import { EngineError } from '../errors.ts';
import type { Remedy } from '../errors.ts';
import { SAY_MEMORY } from '../gpu/memory.ts';
import type { DeviceMemory } from '../gpu/memory.ts';
import type { KVShape } from '../ops/kv.ts';
import { byWindow, expectStorable, largestWindow, pageBytes } from '../ops/kv.ts';
import { mostWindowPages, pagesBefore } from '../scheduler/sequence-windows.ts';
import { mostSlots, slotBytes } from '../ops/states.ts';
import type { StateShape } from '../ops/states.ts';
import { formatBytes } from '../util/memory.ts';
import { ceilDiv } from '../util/math.ts';

/** What a model needs, in bytes, as its config and the headers of its checkpoint tell. */
export interface ModelDemand extends Pick<ModelMemory, 'id' | 'task'> {
  readonly weights: number;
  /** Everything else whose size is fixed: activations, tables, caches of a fixed size. */
  readonly activations: number;
  /** What the weights would take if they were quantised at load, by value of the setting. */
  readonly quantised?: Readonly<Record<string, number>>;
  /** KV pages and states, which take what is left; chat models only. */
  readonly pages?: Pick<MemoryRequest, 'kv' | 'state' | 'speculative' | 'maxRunning' | 'context' | 'prefillChunk'>;
}

/** The memory to divide. */
export type MemoryShare = Pick<MemoryRequest, 'memory' | 'fraction' | 'maxBindingBytes'> & {
  /** Bytes that are taken already. */
  readonly taken: number;
};

/**
 * Divides a device's memory between its models: weights and activations of all of them first, then KV pages. Throws
 * EngineError('out_of_memory') with the numbers and what to do when that is too much.
 */
export function planModels({ taken, ...share }: MemoryShare, demands: readonly ModelDemand[]): MemoryPlan {
  const { memory, fraction } = share;
  const available = memory.bytes * fraction;
  const models: ModelMemory[] = [];
  let others = taken;
  // Models with pages come last: their pages take what the others leave.
  for (const { id, task, weights, activations, quantised, pages } of [...demands].sort(
    (a, b) => Number(a.pages !== undefined) - Number(b.pages !== undefined),
  )) {
    const use = pages && planMemory({ ...share, ...pages, model: id, others, weights, activations, quantised });
    if (!use && others + weights + activations > available)
      throw tooLarge({ memory, fraction, others, weights, activations, quantised, model: id });
    models.push({ id, task, weightBytes: weights, activationBytes: activations, ...(use && { pages: use }) });
    others += weights + activations + (use?.kvBytes ?? 0) + (use?.stateBytes ?? 0);
  }
  return { deviceBytes: memory.bytes, source: memory.from, fraction, models, totalBytes: others };
}

/** Tokens whose keys and values fit beside a model's weights and activations; 0 when the model does not fit. */
export function tokensThatFit(share: MemoryShare, demand: ModelDemand & { readonly pages: NonNullable<ModelDemand['pages']> }): number {
  try {
    const [model] = planModels(share, [demand]).models;
    return model!.pages!.kvPages * model!.pages!.pageSize;
  } catch (error) {
    if (error instanceof EngineError && error.code === 'out_of_memory') return 0;
    throw error;
  }
}

/** Least tokens that the KV cache must hold (or the context, if that is less): a model with fewer is of no use. */
const LEAST_TOKENS = 256;

const STORE_BYTES: Remedy = { does: 'store keys and values in bytes', settings: [{ name: 'kvCacheDtype', value: 'int8' }] };

export interface MemoryRequest {
  /** The model's id, for the message. */
  readonly model: string;
  readonly memory: DeviceMemory;
  /** Share of the memory that may be used. */
  readonly fraction: number;
  /** Bytes that are taken already by other models. */
  readonly others: number;
  readonly weights: number;
  readonly activations: number;
  readonly quantised?: ModelDemand['quantised'];
  readonly kv: KVShape;
  /** Absent in models without recurrent layers. */
  readonly state?: StateShape | undefined;
  /** Speculative decoding is on. */
  readonly speculative?: boolean;
  readonly maxRunning: number;
  /** Longest sequence asked for, in tokens. */
  readonly context: number;
  /** Most positions of one sequence that a step computes; absent = all of its positions. */
  readonly prefillChunk?: number | undefined;
  readonly maxBindingBytes: number;
}

/**
 * Share of the memory left by weights and activations that goes to recurrent states, where it does not suffice for all that may be needed.
 */
const STATE_SHARE = 1 / 4;

/** State slots per running sequence: its own (two with speculative decoding), and one for the prefix cache. */
function slotsEach(speculative: boolean): number {
  return speculative ? 3 : 2;
}

/** Most sequences that may run with this many state slots. */
export function runningWithin(slots: number, speculative = false): number {
  return Math.floor(slots / slotsEach(speculative));
}

/** State slots for all running sequences and the prefix cache, within their share of `left` bytes and what the adapter binds. */
function slotsWithin(state: StateShape, left: number, { maxRunning, maxBindingBytes, speculative = false }: MemoryRequest): number {
  const fitting = Math.floor((left * STATE_SHARE) / slotBytes(state));
  const each = slotsEach(speculative);
  return Math.max(each, Math.min(each * maxRunning, fitting, mostSlots(state, maxBindingBytes)));
}

/**
 * Plans one model's memory. What weights and activations leave of the share goes to recurrent states and KV pages, at most what
 * `maxRunning` sequences of `context` tokens can use and what the adapter binds. Throws EngineError('out_of_memory') with the numbers and
 * what to do when that is too little.
 */
export function planMemory(request: MemoryRequest): MemoryUse {
  const { memory, fraction, others, weights, activations, kv, state, context } = request;
  expectStorable(kv);
  const free = memory.bytes * fraction - others - weights - activations;
  const slots = state && slotsWithin(state, free, request);
  const stateBytes = state && slots! * slotBytes(state);
  const left = free - (stateBytes ?? 0);
  const { pages, windowPages, bytes } = pagesWithin(left, request);
  const least = ceilDiv(Math.min(LEAST_TOKENS, context), kv.pageSize);
  const leastWindows = Math.min(least, windowsOf(request));
  if (pages < least || (windowPages ?? leastWindows) < leastWindows) throw tooLarge(request, least * pageBytes(kv).all);
  return {
    deviceBytes: memory.bytes,
    source: memory.from,
    fraction,
    otherBytes: others,
    weightBytes: weights,
    activationBytes: activations,
    kvBytes: bytes,
    kvPages: pages,
    ...(windowPages !== undefined && { windowPages }),
    pageSize: kv.pageSize,
    kvCacheDtype: kv.dtype,
    ...(state && { stateSlots: slots!, stateBytes: stateBytes! }),
  };
}

/**
 * Share of the memory for pages that sliding-window layers get at most, where it does not suffice for all that running sequences may hold.
 */
const WINDOW_SHARE = 1 / 2;

/**
 * Pages that fit `left` bytes. Sliding-window layers get as many as running sequences can hold at once, which is all that they need however
 * long sequences are. Where memory is short they get half of it, and never more pages than the full-attention layers, which need one for
 * every page of a sequence.
 */
function pagesWithin(left: number, { kv, maxRunning, context, prefillChunk = context, maxBindingBytes }: MemoryRequest) {
  const { pageSize } = kv;
  const { whole, windowed } = byWindow(kv);
  const [page, ofWindow] = [pageBytes(whole), pageBytes(windowed)];
  const window = largestWindow(kv);
  const bound = Math.min(Math.floor(maxBindingBytes / page.largest), maxRunning * ceilDiv(context, pageSize));
  if (window === undefined) {
    const pages = Math.min(Math.floor(left / page.all), bound);
    return { pages, windowPages: undefined, bytes: pages * page.all };
  }
  const held = maxRunning * (pagesBefore(window, pageSize) + 1) + ceilDiv(prefillChunk, pageSize);
  const asked = Math.min(held, bound, Math.floor(maxBindingBytes / ofWindow.largest));
  const some = Math.min(asked, Math.floor((left * WINDOW_SHARE) / ofWindow.all));
  const rest = Math.min(Math.floor((left - some * ofWindow.all) / page.all), bound);
  const alike = Math.min(Math.floor(left / (page.all + ofWindow.all)), asked);
  const [pages, windowPages] = rest < some ? [alike, alike] : [rest, some];
  return { pages, windowPages, bytes: pages * page.all + windowPages * ofWindow.all };
}

/** Most pages of the sliding-window layers that one sequence holds. */
function windowsOf({ kv, context, prefillChunk = context }: MemoryRequest): number {
  return mostWindowPages(largestWindow(kv) ?? 1, kv.pageSize, prefillChunk, context);
}

/** The longest sequence, of at most `context` tokens, that fits the pages. */
export function longestWithin(
  { kvPages, windowPages = 0, pageSize }: Pick<MemoryUse, 'kvPages' | 'windowPages' | 'pageSize'>,
  kv: Pick<KVShape, 'layers'>,
  context: number,
  chunk: number,
): number {
  const longest = Math.min(context, kvPages * pageSize);
  const window = largestWindow(kv);
  const fits = window === undefined || mostWindowPages(window, pageSize, chunk, longest) <= windowPages;
  return fits ? longest : windowPages * pageSize;
}

/** The numbers that `tooLarge` reports. */
type TooLarge = Pick<MemoryRequest, 'model' | 'memory' | 'fraction' | 'others' | 'weights' | 'activations'> & Partial<MemoryRequest>;

function tooLarge(
  { model, memory, fraction, others, weights, activations, quantised = {}, kv, state, speculative = false, context = 0 }: TooLarge,
  leastKv = 0,
): EngineError {
  const leastSlots = slotsEach(speculative);
  const leastStates = state ? leastSlots * slotBytes(state) : 0;
  const needed = others + weights + activations + leastStates + leastKv;
  const parts = [
    ...(others > 0 ? [`other models ${formatBytes(others)}`] : []),
    `weights ${formatBytes(weights)}`,
    `activations ${formatBytes(activations)}`,
    ...(state ? [`${leastSlots} states of recurrent layers ${formatBytes(leastStates)}`] : []),
    ...(kv ? [`keys and values of ${Math.min(LEAST_TOKENS, context)} tokens ${formatBytes(leastKv)}`] : []),
  ];
  const share = `${fraction} x ${formatBytes(memory.bytes)} (${memory.from}) = ${formatBytes(fraction * memory.bytes)} may be taken`;
  const smaller = Object.entries(quantised).filter(([, bytes]) => bytes < weights && needed - weights + bytes <= fraction * memory.bytes);
  const remedies: Remedy[] = [
    ...(smaller.length > 0 ? [fewerBits(smaller)] : []),
    ...(kv ? chatRemedies(kv, state !== undefined) : []),
    { does: 'take a larger share', settings: [{ name: 'memFractionStatic' }] },
    SAY_MEMORY,
  ];
  return new EngineError('out_of_memory', `${model} does not fit: it needs ${formatBytes(needed)} (${parts.join(', ')}), and ${share}`, {
    remedies,
    details: { needed: Math.ceil(needed), available: Math.floor(fraction * memory.bytes) },
  }); // prettier-ignore
}

/** The remedy of quantising, given the settings with which the model would fit and their bytes. */
function fewerBits(smaller: readonly (readonly [string, number])[]): Remedy {
  const sizes = smaller.map(([value, bytes]) => `${value}: ${formatBytes(bytes)}`).join(', ');
  return { does: `store the weights in fewer bits (${sizes})`, settings: smaller.map(([value]) => ({ name: 'quantization', value })) };
}

const SPLIT: Remedy = {
  does: 'split the model over two devices, about half of it on each',
  settings: [
    { name: 'tpSize', value: 2 },
    { name: 'ppSize', value: 2 },
  ],
};

function chatRemedies(kv: KVShape, hasStates: boolean): readonly Remedy[] {
  return [
    ...(hasStates ? [] : [SPLIT]),
    ...(kv.dtype === 'int8' || kv.layers.some(({ valuesInKeys }) => valuesInKeys !== undefined) ? [] : [STORE_BYTES]),
    { does: 'compute less at once', settings: [{ name: 'maxRunningRequests' }, { name: 'chunkedPrefillSize' }] },
  ];
}
