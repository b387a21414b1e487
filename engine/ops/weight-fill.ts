/** Fills weights on the device with packed rows, whether they are buffers or textures. */
import { assert } from '../errors.ts';
import type { Device } from '../gpu/device.ts';
import type { Recorder } from '../gpu/recorder.ts';
import type { Tensor } from '../gpu/tensor.ts';
import { TEXEL_ROW } from '../gpu/tensor.ts';
import { GROUP } from './weight-place.ts';
import type { LinearPart, LinearWeight } from './weight.ts';
import type { WeightType } from '../weights/storage.ts';

/** Target of a packing shader: `packed[(column / beside * words of a row + word) * beside + column % beside]`. */
export interface PackTarget {
  readonly dtype: WeightType;
  readonly packed: Tensor;
  /** Columns whose words are interleaved. */
  readonly beside: number;
  /** The column that the first row becomes. */
  readonly column: number;
}

/** Rows that go to one target. */
export interface Piece {
  readonly into: PackTarget;
  /** The first output feature, and how many. */
  readonly from: number;
  readonly count: number;
}

/**
 * Columns packed in a staging buffer before they are copied to a texture: enough groups to make whole rows of texels, whatever the length
 * of a row of words.
 */
export const WINDOW = (TEXEL_ROW / (GROUP / 4)) * GROUP;

/** A staging buffer for columns of a part that is a texture. */
interface Window {
  readonly part: LinearPart;
  readonly first: number;
  readonly packed: Tensor;
}

/** The target for a part that is a buffer, from a column on. */
export function targetIn({ dtype, weight, padded }: LinearPart, column: number): PackTarget {
  return { dtype, packed: weight, beside: padded, column };
}

/** Fills the weight of a convolution, whose values come in any order: if it is a texture, all of it is packed in a staging buffer first. */
export class TapFill {
  readonly #device: Device;
  readonly #parts: readonly { readonly part: LinearPart; readonly packed: Tensor }[];

  constructor(device: Device, { parts }: LinearWeight) {
    this.#device = device;
    this.#parts = parts.map((part) => ({
      part,
      packed: part.place === 'buffer' ? part.weight : device.tensor('packed taps', 'u32', part.weight.shape),
    }));
  }

  /** Targets of rows that begin with output feature `column`. */
  targets(column: number): readonly PackTarget[] {
    return this.#parts.map(({ part: { dtype, place, padded }, packed }) => {
      return { dtype, packed, beside: place === 'texture' ? GROUP : padded, column };
    });
  }

  /** Copies the staging buffer; nothing can be filled after this. */
  finish(): void {
    const rec = this.#device.record('fill taps');
    const copied = this.#parts.filter(({ part }) => part.place === 'texture');
    for (const { part, packed } of copied) rec.fill(packed, part.weight);
    rec.submit();
    this.#device.destroy(...copied.map(({ packed }) => packed));
  }
}

/** Fills a weight in the order of its output features; `finish` ends it. */
export class WeightFill {
  readonly #device: Device;
  readonly #weight: LinearWeight;
  #open: Window | undefined;
  /** Staging windows whose recordings are submitted, or will be before the next piece is requested. */
  readonly #spent: Tensor[] = [];

  constructor(device: Device, weight: LinearWeight) {
    this.#device = device;
    this.#weight = weight;
  }

  /**
   * Output features [begin, end), cut at the ends of parts and of staging windows. `rec` must pack each piece before the next is requested,
   * which copies the window before it.
   */
  *pieces(rec: Recorder, begin: number, end: number): Generator<Piece> {
    this.#clear();
    for (const part of this.#weight.parts) {
      const last = Math.min(end, part.first + part.count);
      for (let from = Math.max(begin, part.first); from < last;) {
        const column = from - part.first;
        if (part.place === 'buffer') {
          yield { into: targetIn(part, column), from, count: last - from };
          break;
        }
        const window = this.#window(rec, part, column);
        const count = Math.min(last - from, WINDOW - (column - window.first));
        yield { into: { dtype: part.dtype, packed: window.packed, beside: GROUP, column: column - window.first }, from, count };
        from += count;
      }
    }
  }

  /** Copies the last staging window; nothing can be filled after this. */
  finish(): void {
    const rec = this.#device.record('fill weight');
    const windows = this.end(rec);
    rec.submit();
    this.#device.destroy(...windows);
  }

  /** Ends filling within a recording; returns the tensors to free once it is submitted. */
  end(rec: Recorder): readonly Tensor[] {
    this.#close(rec);
    return this.#spent.splice(0);
  }

  /** The staging window that a column belongs to. */
  #window(rec: Recorder, part: LinearPart, column: number): Window {
    const first = column - (column % WINDOW);
    if (this.#open?.part === part && this.#open.first === first) return this.#open;
    assert(
      this.#open?.part !== part || this.#open.first < first,
      `${part.weight.label}: filled from column ${column} on, after later ones`,
    );
    this.#close(rec);
    const [words = 0] = part.weight.shape;
    const packed = this.#device.tensor('packed weights', 'u32', [Math.min(WINDOW, part.padded - first) * words]);
    this.#open = { part, first, packed };
    return this.#open;
  }

  #close(rec: Recorder): void {
    if (!this.#open) return;
    const { part, first, packed } = this.#open;
    const [words = 0] = part.weight.shape;
    rec.fill(packed, part.weight, (first / 4) * words);
    this.#spent.push(packed);
    this.#open = undefined;
  }

  #clear(): void {
    this.#device.destroy(...this.#spent.splice(0));
  }
}
