/** Counts from what a step records what its dispatches read, write and compute. */
import type { Device } from '../../engine/gpu/device.ts';
import type { Tensor } from '../../engine/gpu/tensor.ts';

/** Of one kernel, all calls together. */
export interface KernelWork {
  calls: number;
  /** Bytes. */
  read: number;
  written: number;
  /** Multiplications and additions of products and of attention; of other kernels one for each value that they write. */
  operations: number;
}

export interface CountedWork {
  readonly kernels: ReadonlyMap<string, Readonly<KernelWork>>;
  /** Bytes read of matrices that rows are multiplied with. */
  readonly matrices: number;
  /** Of pages of keys and values, as long as the sequences are. */
  readonly pages: number;
  /** Of everything else: rows of activations and of tables, vectors, what says where things lie. */
  readonly rest: number;
  stop(): void;
}

/** Tables of which rows are looked up, and the tensor that has as many bytes as those at most. */
const LOOKED_UP: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'embedding/embedding.wgsl': { weight: 'out' },
  'kv/rope_kv_store.wgsl': { cos_sin: 'q' },
  'kv/rope_kv_store_int8.wgsl': { cos_sin: 'q' },
  'kv/project_heads.wgsl': { cos_sin: 'q' },
};

/**
 * The work of what `device` records from now on. Every workgroup row of a product (grid y) goes through all of its weights, and every workgroup of the
 * attention through its share of the pages of a sequence of `positions`, of which it reads whole ones; whatever else is bound is read once. `run` = what is
 * counted is also done; without, nothing is compiled either.
 */
export function countWork(device: Device, positions: () => number, { run = true } = {}): CountedWork {
  const kernels = new Map<string, KernelWork>();
  const read = { matrices: 0, pages: 0, rest: 0 };
  const { record } = device;
  device.record = (label) => {
    const rec = record.call(device, label);
    const { dispatch } = rec;
    rec.dispatch = (kernel, variant, bindings, params, workgroups) => {
      const [x = 1, y = 1] = workgroups;
      const { file } = kernel.spec;
      const [isProduct, isHeads] = [file.startsWith('linear/'), kernel.name === 'project_heads'];
      const tensors = bindings as Record<string, Tensor>;
      const numbers = params as unknown as Record<string, number>;
      const work = kernels.get(kernel.name) ?? { calls: 0, read: 0, written: 0, operations: 0 };
      kernels.set(kernel.name, work);
      work.calls++;
      // A tensor stands for those that a variant does not read, too.
      const counted = new Set<string>();
      for (const [name, access] of Object.entries(kernel.spec.bindings)) {
        const { byteLength, shape, key } = tensors[name]!;
        if (counted.has(key)) continue;
        counted.add(key);
        const isPages = name.endsWith('_pages');
        if (access === 'write' || (isPages && access === 'update')) {
          // Of pages, a position a row.
          const bytes = isPages ? (byteLength / (shape[0]! * shape.at(-1)!)) * (numbers['m'] ?? y) : byteLength;
          work.written += bytes;
          work.operations += bytes / 4;
          continue;
        }
        let [part, bytes]: [keyof typeof read, number] = ['rest', byteLength];
        const lookedUp = LOOKED_UP[file]?.[name];
        if (lookedUp !== undefined) bytes = tensors[lookedUp]!.byteLength;
        else if ((isProduct || isHeads) && name === 'weight') [part, bytes] = ['matrices', byteLength * y];
        else if (isPages) {
          const { PAGE, GROUP } = variant.consts as Record<'PAGE' | 'GROUP', number>;
          // Tiles, times heads of keys and values.
          [part, bytes] = ['pages', (x * y * Math.ceil(positions() / PAGE) * (byteLength / shape[0]!) * GROUP) / numbers['heads']!];
        }
        read[part] += bytes;
        work.read += bytes;
      }
      if (isHeads) work.operations += 2 * numbers['m']! * x * 8 * variant.consts!['D8']! * 4 * numbers['k4']!;
      if (isProduct) work.operations += 2 * numbers['m']! * numbers['n']! * 4 * numbers['k4']!;
      // A tile of one row: scores and sums of values.
      if (kernel.name === 'paged_attention') work.operations += 4 * x * numbers['heads']! * 4 * variant.consts!['D4']! * positions();
      if (run) dispatch.call(rec, kernel, variant, bindings, params, workgroups);
    };
    return rec;
  };
  return {
    kernels,
    get matrices() {
      return read.matrices;
    },
    get pages() {
      return read.pages;
    },
    get rest() {
      return read.rest;
    },
    stop: () => void (device.record = record),
  };
}
