/** Counts from what a step records how many bytes its dispatches read. */
import { onTestFinished } from 'vitest';
import type { Device } from '../../engine/gpu/device.ts';
import type { Tensor } from '../../engine/gpu/tensor.ts';

export interface BytesRead {
  /** Of matrices that rows are multiplied with. */
  matrices: number;
  /** Of pages of keys and values, as long as the sequences are. */
  pages: number;
  /** Everything else: rows of activations and of tables, vectors, what says where things lie. */
  rest: number;
}

/** Tables of which rows are looked up, and the tensor that has as many bytes as those at most. */
const LOOKED_UP: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'embedding/embedding.wgsl': { weight: 'out' },
  'kv/rope_kv_store.wgsl': { cos_sin: 'q' },
};

/**
 * The bytes that steps on `device` read from now on until the test ends. Every workgroup row of a product (grid y) goes through all of its weights, and every
 * workgroup of the attention through its share of the pages of a sequence of `positions`, of which it reads whole ones; whatever else is bound is read once.
 */
export function countBytesRead(device: Device, positions: () => number): BytesRead {
  const read: BytesRead = { matrices: 0, pages: 0, rest: 0 };
  const { record } = device;
  onTestFinished(() => void (device.record = record));
  device.record = (label) => {
    const rec = record.call(device, label);
    const { dispatch } = rec;
    rec.dispatch = (kernel, variant, bindings, params, workgroups) => {
      const [x = 1, y = 1] = workgroups;
      const { file } = kernel.spec;
      // A tensor stands for those that a variant does not read, too.
      const counted = new Set<string>();
      for (const [name, access] of Object.entries(kernel.spec.bindings)) {
        const { byteLength, shape, key } = (bindings as Record<string, Tensor>)[name]!;
        if (counted.has(key)) continue;
        counted.add(key);
        if (access === 'write' || (name.endsWith('_pages') && access === 'update')) continue;
        const lookedUp = LOOKED_UP[file]?.[name];
        if (lookedUp !== undefined) read.rest += (bindings as Record<string, Tensor>)[lookedUp]!.byteLength;
        else if (file.startsWith('linear/') && name === 'weight') read.matrices += byteLength * y;
        else if (name.endsWith('_pages')) {
          const { PAGE, GROUP } = variant.consts as Record<'PAGE' | 'GROUP', number>;
          const { heads } = params as unknown as Record<'heads', number>;
          // Tiles, times heads of keys and values.
          read.pages += (x * y * Math.ceil(positions() / PAGE) * (byteLength / shape[0]!) * GROUP) / heads;
        } else read.rest += byteLength;
      }
      dispatch.call(rec, kernel, variant, bindings, params, workgroups);
    };
    return rec;
  };
  return read;
}
