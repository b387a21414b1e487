import { EngineError } from '../errors.ts';
import type { Kernel, Variant } from './kernel.ts';
import { variantLabel } from './kernel.ts';

/** A pipeline that an adapter does not compile, or that computes wrong numbers there. */
export interface Fault {
  readonly kernel: Kernel;
  readonly variant: Variant;
  /** Such as "differs by 0.3 from what it should give". */
  readonly why: string;
}

/** An engine may go on without these kernels, where others do the same. */
export class KernelFault extends EngineError {
  readonly faults: readonly Fault[];

  constructor(adapter: string, faults: readonly Fault[], cause?: unknown) {
    const lines = faults.map(({ kernel, variant, why }) => `kernel ${variantLabel(kernel, variant)} ${why}`);
    super('no_adapter', `${adapter} cannot run Parley: ${lines.join('; ')}`, { cause });
    this.faults = faults;
  }
}
