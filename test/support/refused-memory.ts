/** A device that gives no more memory, as one does that other programs fill. */
import { vi } from 'vitest';
import type { Device } from '../../engine/gpu/device.ts';

/** Refuses every buffer whose label `refuses` names, until `restore` is called. What is said of it meanwhile is not printed. */
export function refuseMemory(device: Device, refuses: (label: string) => boolean): { readonly refused: string[]; restore(): void } {
  const { gpu } = device;
  // No buffer may have these usages together, so the device makes an invalid one, as it does without memory.
  const invalid = GPUBufferUsage.MAP_READ | GPUBufferUsage.MAP_WRITE | GPUBufferUsage.STORAGE;
  const [create, push, pop] = [gpu.createBuffer.bind(gpu), gpu.pushErrorScope.bind(gpu), gpu.popErrorScope.bind(gpu)];
  /** Refusals within each error scope that is open. */
  const scopes: string[][] = [];
  const refused: string[] = [];
  const spies = [
    vi.spyOn(device.platform, 'log').mockImplementation(() => undefined),
    vi.spyOn(gpu, 'pushErrorScope').mockImplementation((filter) => {
      scopes.push([]);
      return push(filter);
    }),
    vi.spyOn(gpu, 'popErrorScope').mockImplementation(async () => {
      const [first] = scopes.pop()!;
      return (await pop()) ?? (first === undefined ? null : { message: `no memory for ${first}` });
    }),
    vi.spyOn(gpu, 'createBuffer').mockImplementation((descriptor) => {
      const { label = '' } = descriptor;
      if (!refuses(label)) return create(descriptor);
      refused.push(label);
      scopes.at(-1)?.push(label);
      push('validation');
      const buffer = create({ ...descriptor, usage: invalid });
      void pop();
      return buffer;
    }),
  ];
  return { refused, restore: () => spies.forEach((spy) => spy.mockRestore()) };
}
