/** Counts from what a step records what its dispatches read, write and compute. */
import type { Device } from '../../engine/gpu/device.ts';
import { workOf } from '../../engine/ops/kernel-work.ts';

/** Of one kernel, all calls together. */
export interface KernelWork {
  calls: number;
  /** Bytes. */
  read: number;
  written: number;
  /** As engine/ops/kernel-work.ts has it. */
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

/**
 * The work of what `device` records from now on. Every workgroup row of a product (grid y) goes through all of its weights, so `matrices` and `read` count them
 * for each; sequences have so many `positions`, in whole pages. `run` = what is counted is also done; without, nothing is compiled either.
 */
export function countWork(device: Device, positions: () => number, { run = true } = {}): CountedWork {
  const kernels = new Map<string, KernelWork>();
  const read = { matrices: 0, pages: 0, rest: 0 };
  const { record } = device;
  device.record = (label) => {
    const rec = record.call(device, label);
    const { dispatch } = rec;
    rec.dispatch = (kernel, variant, bindings, params, workgroups) => {
      const found = workOf(kernel, variant, bindings, params, workgroups);
      const work = kernels.get(kernel.name) ?? { calls: 0, read: 0, written: 0, operations: 0 };
      kernels.set(kernel.name, work);
      const { file } = kernel.spec;
      const weight = file.startsWith('linear/') || kernel.name === 'project_heads' ? (found.reads.get('weight') ?? 0) : 0;
      const page = variant.consts?.['PAGE'] ?? 1;
      const pages = found.readAPosition * Math.ceil(positions() / page) * page;
      const matrices = weight * (workgroups[1] ?? 1);
      read.matrices += matrices;
      read.pages += pages;
      read.rest += found.read - weight;
      work.calls++;
      work.read += found.read - weight + matrices + pages;
      work.written += found.written;
      work.operations += found.operations + found.operationsAPosition * positions();
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
