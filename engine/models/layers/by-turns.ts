/** Activations of layers of several sizes: since one layer runs at a time, one buffer serves tensors of several widths. */
import type { DType, Tensor } from '../../gpu/tensor.ts';
import { byteSize } from '../../gpu/tensor.ts';

/** Makes a zero-filled tensor, as a device does. */
export interface TensorMaker {
  tensor(label: string, dtype: DType, shape: readonly number[]): Tensor;
}

/** A TensorMaker whose tensors of one label share the buffer of the first of them, if they fit into it: the largest must be made first. */
export function byTurns(device: TensorMaker): TensorMaker {
  const first = new Map<string, Tensor>();
  return {
    tensor(label, dtype, shape) {
      const before = first.get(label);
      if (before?.dtype === dtype && byteSize(dtype, shape) <= before.byteLength) {
        const same = before.shape.length === shape.length && before.shape.every((size, i) => size === shape[i]);
        return same ? before : before.reshape(shape);
      }
      const made = device.tensor(label, dtype, shape);
      first.set(label, made);
      return made;
    },
  };
}
