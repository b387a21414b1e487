import { EngineError } from '../errors.ts';
import type { Kernel, Variant } from './kernel.ts';
import { variantLabel } from './kernel.ts';

/** A pipeline that does not compile on an adapter, or gives wrong results there. Plain data, because ranks of a split model report it from their threads. */
export interface Fault {
  readonly label: string;
  /** Names of the kernel and of its fragments, without folders. */
  readonly names: readonly string[];
  /** The reason, such as "differs by 0.3 from what it should give". */
  readonly why: string;
}

/** Makes the fault of a variant of a kernel. */
export function faultOf(kernel: Kernel, variant: Variant, why: string): Fault {
  const fragments = (kernel.spec.fragments?.(variant) ?? []).map((path) => path.replace(/^lib\/|\.wgsl$/g, ''));
  // If a binding lies in a texture, the access to textures is the first suspect: it would be wrong in every kernel that has one.
  const textures = fragments.filter((name) => name.endsWith('_texture'));
  return { label: variantLabel(kernel, variant), names: [...textures, kernel.name, ...fragments], why };
}

/** Most faults that a message names: a wrong driver causes dozens of the same kind. */
const NAMED = 3;

/** Thrown for kernels with faults. An engine can be loaded again without them if others can do their work. */
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
