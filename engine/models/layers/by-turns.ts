/** Activations of layers that are not all alike: they are used by turns, so one buffer serves tensors of several widths. */
import type { DType, Tensor } from '../../gpu/tensor.ts';
import { byteSize } from '../../gpu/tensor.ts';

/** Makes a zero-filled tensor, as a device does. */
export interface TensorMaker {
  tensor(label: string, dtype: DType, shape: readonly number[]): Tensor;
}

/** A maker whose tensors of one name lie in one buffer, as long as they fit into the first of them: whoever needs the most should come first. */
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
