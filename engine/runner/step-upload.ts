/** Several u32 arrays in one buffer, so that a step that fills them takes one upload. */
import type { Device } from '../gpu/device.ts';
import type { Tensor } from '../gpu/tensor.ts';
import { alignUp, product } from '../util/math.ts';

/** Words of 256 bytes, the alignment at which views of a buffer may begin. */
const ROW_WORDS = 64;

export class StepUpload<Name extends string> {
  /** The arrays by name, u32, as views of one buffer. */
  readonly tensors: Readonly<Record<Name, Tensor>>;
  readonly #device: Device;
  readonly #all: Tensor;
  readonly #words: Uint32Array;
  readonly #first: Readonly<Record<Name, number>>;
  /** One past the last word put since the last upload. */
  #end = 0;

  /** `shapes`: the arrays by name, in memory order. Arrays that few steps fill should come last. */
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

  /** Stages words for the beginning of an array; the next upload writes them. */
  put(name: Name, words: Uint32Array): void {
    this.stage(name, words.length).set(words);
  }

  /** The first `count` words of an array, for the caller to fill; the next upload writes them. */
  stage(name: Name, count: number): Uint32Array {
    const first = this.#first[name];
    this.#end = Math.max(this.#end, first + count);
    return this.#words.subarray(first, first + count);
  }

  /** Writes the staged words to the device in one piece: everything up to the last array that was put. */
  upload(): void {
    this.#device.write(this.#all, this.#words.subarray(0, this.#end));
    this.#end = 0;
  }
}
