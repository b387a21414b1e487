/** A device that holds and computes nothing: models of any size are loaded on it, and what their steps would dispatch is written down. */
import type { Caps } from '../../engine/gpu/caps.ts';
import type { Device } from '../../engine/gpu/device.ts';
import type { Kernel } from '../../engine/gpu/kernel.ts';
import type { Recorder } from '../../engine/gpu/recorder.ts';
import { missingTensor } from '../../engine/weights/checkpoint.ts';
import type { Checkpoint, TensorInfo } from '../../engine/weights/checkpoint.ts';
import { BLOCK_FORMATS } from '../../engine/weights/block-types.ts';
import { product } from '../../engine/util/math.ts';

/** `device`, of which nothing but its code is used from here on; `dispatched` gets the name of every kernel that is recorded. */
export function planOnly(device: Device, caps: Partial<Caps>, dispatched: string[]): Device {
  Object.defineProperty(device, 'caps', { value: { ...device.caps, ...caps }, configurable: true });
  device.createBuffer = (label, size, usage) => ({ label, size, usage, destroy: () => undefined }) as unknown as GPUBuffer;
  device.createTexture = (label, width, height) =>
    ({ label, width, height, format: 'rgba32uint', destroy: () => undefined }) as unknown as GPUTexture;
  device.write = () => undefined;
  device.read = (tensor) => Promise.resolve(new Uint32Array(tensor.size));
  device.record = (label) => {
    const recorder: Partial<Recorder> = {
      caps: device.caps,
      device,
      label,
      mode: 'record',
      dispatch: (kernel: Kernel) => void dispatched.push(kernel.name),
      copy: () => undefined,
      fill: () => undefined,
      submit: () => ({ finished: () => Promise.resolve() }),
    };
    return recorder as Recorder;
  };
  return device;
}

/** Room for the largest chunk that is read at a time. */
const ZEROS = new Uint8Array(32 * 2 ** 20);

/** Tensors of zeros of these shapes: matrices in `type`, vectors as F32. */
export function zeroCheckpoint(shapes: Readonly<Record<string, readonly number[]>>, type: 'F16' | 'Q8_0' | 'Q4_K'): Checkpoint {
  const infoOf = (shape: readonly number[]): TensorInfo => {
    if (shape.length < 2) return { dtype: 'F32', shape };
    return type === 'F16' ? { dtype: type, shape } : { dtype: type, blocks: type, shape };
  };
  const tensor = (name: string): TensorInfo | undefined => shapes[name] && infoOf(shapes[name]);
  const shapeOf = (name: string): readonly number[] => {
    const shape = shapes[name];
    if (!shape) throw missingTensor(name);
    return shape;
  };
  return {
    names: () => Object.keys(shapes),
    tensor,
    read: (name, { from, to } = { from: 0, to: product(shapeOf(name)) }) => Promise.resolve(new Float32Array(to - from)),
    stored: (_, { from, to }) => Promise.resolve(ZEROS.subarray(0, (to - from) * 2)),
    blocks(name, { from, to }) {
      const { values, bytes } = BLOCK_FORMATS[type as 'Q8_0' | 'Q4_K'];
      return Promise.resolve(ZEROS.subarray(0, ((to - from) * shapeOf(name)[1]! * bytes) / values));
    },
    readIds: () => Promise.resolve(new Int32Array()),
    close: () => Promise.resolve(),
  };
}
