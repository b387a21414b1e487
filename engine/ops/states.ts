/** What recurrent layers keep of sequences: slots of a fixed size, each with the state of one sequence behind one of its tokens. */
import { EngineError, assert } from '../errors.ts';
import type { Caps } from '../gpu/caps.ts';
import type { Device } from '../gpu/device.ts';
import type { Tensor } from '../gpu/tensor.ts';

/** Sizes of one sequence's state in one layer, in values. */
export interface StateShape {
  readonly layers: number;
  /** The last inputs of a short convolution: [taps - 1, channels]. */
  readonly tail: number;
  /** What the layer remembers: [heads, value channels, key channels]. */
  readonly matrix: number;
}

export interface StateLayer {
  /** [slots, tail] f32. */
  tail: Tensor;
  /** [slots, matrix] f32. */
  matrix: Tensor;
}

/** The slots of every layer. They may be fewer than there may come to be (growStates). */
export interface StateCache {
  readonly shape: StateShape;
  /** Slots there are now, and at most. */
  slots: number;
  readonly limit: number;
  readonly layers: readonly StateLayer[];
}

/** Words of a span, two vectors of shaders/lib/spans.wgsl. */
export const SPAN_WORDS = 8;

/** Slot of no state: one that is read is all zeros, a copy is not taken. */
const NO_SLOT = 0xffffffff;

/** A copy of the state behind the first `after` rows of a span, one at least. */
export interface StateCopy {
  readonly slot: number;
  readonly after: number;
}

/** Rows of one sequence in a step, and the slots of its state. */
export interface Span {
  readonly first: number;
  readonly rows: number;
  /** Undefined: the sequence begins. */
  readonly read?: number | undefined;
  readonly write: number;
  readonly keep?: StateCopy | undefined;
  /** Another, which may lie in the slot that is read: what a span reads, it reads before it writes. */
  readonly certain?: StateCopy | undefined;
}

/** Writes span number `index`, the copies in the order in which they are taken. */
export function writeSpan(words: Uint32Array, index: number, { first, rows, read = NO_SLOT, write, keep, certain }: Span): void {
  const copies = [keep, certain].filter((copy) => copy !== undefined).sort((a, b) => a.after - b.after);
  const none = { slot: NO_SLOT, after: 0 };
  const [one = none, other = none] = copies;
  words.set([first, rows, read, write, one.slot, one.after, other.slot, other.after], index * SPAN_WORDS);
}

/** Bytes of a slot in all layers. */
export function slotBytes({ layers, tail, matrix }: StateShape): number {
  return 4 * layers * (tail + matrix);
}

/** Slots that an adapter binds at once. */
export function mostSlots({ tail, matrix }: StateShape, maxBindingBytes: number): number {
  return Math.floor(maxBindingBytes / (4 * Math.max(tail, matrix)));
}

/** Where memory is shared with everything else, slots are taken when they are used. */
const FIRST_SLOTS = 2;

/** Slots of `limit` that are allocated at first: all on a GPU, few on a software adapter, where they are grown when used. */
export function firstSlots({ software }: Pick<Caps, 'software'>, limit: number): number {
  return software ? Math.min(FIRST_SLOTS, limit) : limit;
}

/** Allocates `slots` of at most `limit` slots; one buffer a layer and kind, so that a layer's share stays below the adapter's binding limit. */
export function createStates(device: Device, shape: StateShape, limit: number, slots = limit): StateCache {
  if (limit > mostSlots(shape, device.caps.maxBindingBytes)) {
    throw new EngineError('out_of_memory', `${limit} states of ${4 * shape.matrix} bytes a layer; this adapter binds ${device.caps.maxBindingBytes}`); // prettier-ignore
  }
  return { shape, slots, limit, layers: Array.from({ length: shape.layers }, (_, i) => layerOf(device, shape, i, slots)) };
}

function layerOf(device: Device, { tail, matrix }: StateShape, layer: number, slots: number): StateLayer {
  return {
    tail: device.tensor(`state tails ${layer}`, 'f32', [slots, tail]),
    matrix: device.tensor(`states ${layer}`, 'f32', [slots, matrix]),
  };
}

/** Makes room for the first `needed` slots as growKVCache does for pages; returns whether they lie in new tensors. */
export function growStates(device: Device, states: StateCache, needed: number): boolean {
  if (needed <= states.slots) return false;
  assert(needed <= states.limit, `${needed} states are asked for, there are at most ${states.limit}`);
  states.slots = Math.min(states.limit, Math.max(needed, 2 * states.slots));
  states.layers.forEach((layer, i) => {
    const rec = device.record('more states');
    const more = layerOf(device, states.shape, i, states.slots);
    rec.copy(layer.tail, more.tail);
    rec.copy(layer.matrix, more.matrix);
    rec.submit();
    device.destroy(layer.tail, layer.matrix);
    Object.assign(layer, more);
  });
  return true;
}
