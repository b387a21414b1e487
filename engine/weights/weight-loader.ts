import { EngineError } from '../errors.ts';
import type { Device } from '../gpu/device.ts';
import type { Tensor } from '../gpu/tensor.ts';
import { packLinear } from '../ops/linear.ts';
import type { LinearWeight, WeightType } from '../ops/linear.ts';
import type { Checkpoint } from './safetensors.ts';

/**
 * Hands a checkpoint's tensors to a model by name, checks every shape, counts what was taken, and fails on leftovers: a weight that
 * nobody reads is a misunderstanding of the checkpoint.
 */
export class WeightLoader {
  readonly device: Device;
  /** Storage of matrices. */
  readonly dtype: WeightType;
  readonly #checkpoint: Checkpoint;
  readonly #taken = new Set<string>();
  #parameters = 0;

  constructor(device: Device, checkpoint: Checkpoint, dtype: WeightType) {
    this.device = device;
    this.dtype = dtype;
    this.#checkpoint = checkpoint;
  }

  /** Number of values handed out so far. */
  get parameters(): number {
    return this.#parameters;
  }

  has(name: string): boolean {
    return this.#checkpoint.shape(name) !== undefined;
  }

  /** Shape in the checkpoint; throws when the tensor is missing. */
  shape(name: string): readonly number[] {
    const shape = this.#checkpoint.shape(name);
    if (!shape) throw new EngineError('invalid_model', `tensor ${name} is missing in the checkpoint`);
    return shape;
  }

  /** Values of a tensor in f32 for host-side work (packing, folding norms). */
  async data(name: string, shape: readonly number[]): Promise<Float32Array> {
    const found = this.shape(name);
    if (found.length !== shape.length || found.some((size, i) => size !== shape[i])) {
      throw new EngineError('invalid_model', `tensor ${name} has shape [${found.join(', ')}], expected [${shape.join(', ')}]`);
    }
    if (!this.#taken.has(name)) {
      this.#taken.add(name);
      this.#parameters += shape.reduce((a, b) => a * b, 1);
    }
    return this.#checkpoint.read(name);
  }

  /** A vector or small table as an f32 tensor. */
  async tensor(name: string, shape: readonly number[]): Promise<Tensor> {
    return this.device.upload(name, 'f32', shape, await this.data(name, shape));
  }

  /** A Linear.weight [outFeatures, inFeatures], packed. */
  async linear(name: string, outFeatures: number, inFeatures: number): Promise<LinearWeight> {
    return packLinear(this.device, name, await this.data(name, [outFeatures, inFeatures]), outFeatures, inFeatures, this.dtype);
  }

  /** An embedding table [V, C], packed; never below f16, because it is looked up and not multiplied. */
  async table(name: string, rows: number, columns: number): Promise<LinearWeight> {
    const dtype = this.dtype === 'f32' ? 'f32' : 'f16';
    return packLinear(this.device, name, await this.data(name, [rows, columns]), rows, columns, dtype);
  }

  /** Several Linear.weights that read the same input (q, k, v; gate, up) as one matrix, stacked by output. */
  async mergedLinear(
    label: string,
    parts: readonly { readonly name: string; readonly outFeatures: number }[],
    inFeatures: number,
  ): Promise<LinearWeight> {
    const total = parts.reduce((sum, part) => sum + part.outFeatures, 0);
    const merged = new Float32Array(total * inFeatures);
    let row = 0;
    for (const { name, outFeatures } of parts) {
      merged.set(await this.data(name, [outFeatures, inFeatures]), row * inFeatures);
      row += outFeatures;
    }
    return packLinear(this.device, label, merged, total, inFeatures, this.dtype);
  }

  /** Several vectors one after the other; names that are `undefined` give zeros (Whisper's keys have no bias). */
  async mergedVector(label: string, parts: readonly { readonly name: string | undefined; readonly size: number }[]): Promise<Tensor> {
    const merged = new Float32Array(parts.reduce((sum, part) => sum + part.size, 0));
    let at = 0;
    for (const { name, size } of parts) {
      if (name !== undefined) merged.set(await this.data(name, [size]), at);
      at += size;
    }
    return this.device.upload(label, 'f32', [merged.length], merged);
  }

  /** Says that a tensor is known and deliberately unused. */
  skip(name: string): void {
    this.#taken.add(name);
  }

  /** Throws when the checkpoint holds tensors that nobody took. */
  finish(): void {
    const left = this.#checkpoint.names().filter((name) => !this.#taken.has(name));
    if (left.length > 0) {
      const shown = left.slice(0, 8).join(', ');
      throw new EngineError('invalid_model', `the checkpoint has ${left.length} tensors this architecture does not use: ${shown}`);
    }
  }
}
