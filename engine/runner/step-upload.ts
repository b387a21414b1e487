/** Arrays of words in one buffer, so that a step that fills several of them is one upload. */
import type { Device } from '../gpu/device.ts';
import type { Tensor } from '../gpu/tensor.ts';
import { alignUp, product } from '../util/math.ts';

/** Views of a buffer begin at multiples of 256 bytes. */
const ROW_WORDS = 64;

export class StepUpload<Name extends string> {
  /** The arrays, as u32. */
  readonly tensors: Readonly<Record<Name, Tensor>>;
  readonly #device: Device;
  readonly #all: Tensor;
  readonly #words: Uint32Array;
  readonly #first: Readonly<Record<Name, number>>;
  /** One past the last word that was put since the last upload. */
  #end = 0;

  /** `shapes` by name, in their order in memory: what few steps fill stands last. */
  constructor(device: Device, label: string, shapes: Readonly<Record<Name, readonly number[]>>) {
    const names = Object.keys(shapes) as Name[];
    const places = new Map<Name, number>();
    let rows = 0;
    for (const name of names) {
      places.set(name, rows);
      rows += alignUp(product(shapes[name]), ROW_WORDS) / ROW_WORDS;
    }
    const ofEach = <T>(of: (name: Name) => T): Readonly<Record<Name, T>> =>
      Object.fromEntries(names.map((name) => [name, of(name)])) as Record<Name, T>;
    this.#device = device;
    const all = device.tensor(label, 'u32', [rows, ROW_WORDS]);
    this.#all = all;
    this.#words = new Uint32Array(rows * ROW_WORDS);
    this.#first = ofEach((name) => places.get(name)! * ROW_WORDS);
    this.tensors = ofEach((name) => all.rows(places.get(name)!, rows).reshape(shapes[name]));
  }

  /** Words for the beginning of an array; they go to the device with the next upload. */
  put(name: Name, words: Uint32Array): void {
    const first = this.#first[name];
    this.#words.set(words, first);
    this.#end = Math.max(this.#end, first + words.length);
  }

  /** Writes what was put: all from the first array to the last of those, in one piece. */
  upload(): void {
    this.#device.write(this.#all, this.#words.subarray(0, this.#end));
    this.#end = 0;
  }
}
