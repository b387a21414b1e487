/** State cache of recurrent layers: slots of fixed size, each with the state of one sequence after one of its tokens. */
import { EngineError, assert } from '../errors.ts';
import type { Caps } from '../gpu/caps.ts';
import type { Device } from '../gpu/device.ts';
import type { Tensor } from '../gpu/tensor.ts';

/** Size of a sequence's recurrent state, in f32 values per layer. */
export interface StateShape {
  readonly layers: number;
  /** Values of the convolution tail, its last inputs: [taps - 1, channels]. */
  readonly tail: number;
  /** Values of the state matrix: [heads, value channels, key channels]. */
  readonly matrix: number;
}

export interface StateLayer {
  /** [slots, tail] f32. */
  tail: Tensor;
  /** [slots, matrix] f32. */
  matrix: Tensor;
}

/** State slots of every recurrent layer, allocated on demand up to `limit` (growStates). */
export interface StateCache {
  readonly shape: StateShape;
  /** Number of slots allocated now. */
  slots: number;
  readonly limit: number;
  readonly layers: readonly StateLayer[];
}

/** u32 words of a span: two vec4s (shaders/lib/spans.wgsl). */
export const SPAN_WORDS = 8;

/** No slot. Read, it stands for the initial state of zeros; as the target of a copy, it skips the copy. */
const NO_SLOT = 0xffffffff;

/** Copies the state after the first `after` rows of a span, at least one, into `slot`. */
export interface StateCopy {
  readonly slot: number;
  readonly after: number;
}

/** The rows of one sequence in a step, with its recurrent-state slots. */
export interface Span {
  readonly first: number;
  readonly rows: number;
  /** Slot of the state before the span's first row; undefined at the beginning of a sequence, whose state is all zeros. */
  readonly read?: number | undefined;
  readonly write: number;
  readonly keep?: StateCopy | undefined;
  /** A second copy, whose slot may be `read`: a span reads its slot before it writes. */
  readonly certain?: StateCopy | undefined;
}

/** Writes span number `index` into `words`, its copies in the order in which they are taken. */
export function writeSpan(words: Uint32Array, index: number, { first, rows, read = NO_SLOT, write, keep, certain }: Span): void {
  const copies = [keep, certain].filter((copy) => copy !== undefined).sort((a, b) => a.after - b.after);
  const none = { slot: NO_SLOT, after: 0 };
  const [one = none, other = none] = copies;
  words.set([first, rows, read, write, one.slot, one.after, other.slot, other.after], index * SPAN_WORDS);
}

/** Bytes of one slot, over all layers. */
export function slotBytes({ layers, tail, matrix }: StateShape): number {
  return 4 * layers * (tail + matrix);
}

/** Most slots whose buffers fit an adapter's binding limit, in bytes. */
export function mostSlots({ tail, matrix }: StateShape, maxBindingBytes: number): number {
  return Math.floor(maxBindingBytes / (4 * Math.max(tail, matrix)));
}

/** Slots that a software adapter allocates first, since its memory is the host's. */
const FIRST_SLOTS = 2;

/** Slots allocated at first: all `limit` slots on a GPU; on a software adapter few, which grow with use (growStates). */
export function firstSlots({ software }: Pick<Caps, 'software'>, limit: number): number {
  return software ? Math.min(FIRST_SLOTS, limit) : limit;
}

/**
 * Allocates `slots` slots that may grow to `limit`. Tail and matrix of each layer are buffers of their own, so that each stays below the
 * adapter's binding limit; throws EngineError('out_of_memory') where one cannot.
 */
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

/** Grows to hold the first `needed` slots, as growKVCache does for pages; returns whether slots moved to new tensors. */
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
