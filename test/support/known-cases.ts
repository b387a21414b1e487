/** Tests whose verdict is a matter of what a device would compute: they need not run while that is what it was when they passed (passed-cases.ts, in Node alone). */
import type { Device } from '../../engine/gpu/device.ts';

/** Asks the same of the device whatever it reads, and returns that. */
export type Ask<T> = (device: Device) => Promise<T>;

/** All that decides whether what was read is right, beside the code that judges. */
export interface Judgement {
  readonly expected: readonly unknown[];
  /** The test file is a table of kernel cases, which kernel-case.ts judges: its text does not count. */
  readonly isOfTable?: boolean;
}

export interface KnownCases {
  /** Of all that `ask` reads from a device, and of what is expected; undefined if what is asked is not known beforehand. */
  digest(like: Device, ask: Ask<unknown>, judgement: Judgement): Promise<string | undefined>;
  has(digest: string): boolean;
  add(digest: string): void;
}

let knownCases: KnownCases | undefined;
export const useKnownCases = (cases: KnownCases): void => void (knownCases = cases);

/** Judges what `ask` reads from `device`, unless it has passed before. `ask` may be called twice, the first time with a device that computes nothing. */
export async function unlessPassed<T>(device: Device, judgement: Judgement, ask: Ask<T>, judge: (read: T) => void): Promise<void> {
  const digest = await knownCases?.digest(device, ask, judgement);
  if (digest !== undefined && knownCases!.has(digest)) return;
  judge(await ask(device));
  if (digest !== undefined) knownCases!.add(digest);
}
