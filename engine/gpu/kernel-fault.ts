import { EngineError } from '../errors.ts';
import type { Kernel, Variant } from './kernel.ts';
import { variantLabel } from './kernel.ts';

/** A pipeline that an adapter does not compile, or that computes wrong numbers there. Plain data: a rank of a split model tells of it from its thread. */
export interface Fault {
  readonly label: string;
  /** Of the kernel, and of the fragments it is made with, without folders. */
  readonly names: readonly string[];
  /** Such as "differs by 0.3 from what it should give". */
  readonly why: string;
}

/** What is wrong with a variant of a kernel. */
export function faultOf(kernel: Kernel, variant: Variant, why: string): Fault {
  const fragments = (kernel.spec.fragments?.(variant) ?? []).map((path) => path.replace(/^lib\/|\.wgsl$/g, ''));
  // Where words lie in a texture, that is what may be at fault in every kernel that reads or writes them, before the kernel itself.
  const textures = fragments.filter((name) => name.endsWith('_texture'));
  return { label: variantLabel(kernel, variant), names: [...textures, kernel.name, ...fragments], why };
}

/** Faults that a message names: where a driver is wrong they are dozens, of one cause. */
const NAMED = 3;

/** An engine may go on without these kernels, where others do the same. */
export class KernelFault extends EngineError {
  readonly faults: readonly Fault[];

  constructor(adapter: string, faults: readonly Fault[], cause?: unknown) {
    const lines = faults.slice(0, NAMED).map(({ label, why }) => `kernel ${label} ${why}`);
    const others = faults.length - lines.length;
    const more = others === 0 ? '' : `; and ${others} more`;
    super('no_adapter', `${adapter} cannot run Parley: ${lines.join('; ')}${more}`, { cause });
    this.faults = faults;
  }
}
