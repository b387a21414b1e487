/** What every loaded model does before its first request. */
import { EngineError, LOAD_AS_F32 } from '../errors.ts';
import type { Device } from '../gpu/device.ts';
import type { Recorder } from '../gpu/recorder.ts';
import { selfTest } from './self-test.ts';

export interface WarmUp {
  /** Records each kind of work that requests will bring. The next is asked for when one has run, so that it may upload what it needs. */
  readonly work: Iterable<(rec: Recorder) => void> | AsyncIterable<(rec: Recorder) => void>;
  /**
   * Work of other sizes, from the largest on, so that scratch memory is made for that. Its kernels are compiled; of it is run, once, what nothing
   * before it ran.
   */
  readonly sizes?: Iterable<(rec: Recorder) => void>;
  /** Does a first piece of work; says what of its results is not finite, or undefined where all is. */
  readonly tryOut?: () => Promise<string | undefined>;
}

/**
 * Compiles the kernels of all the work and runs each kind once, so that no request waits for a compiler; tests them; then tries the model out. Throws
 * KernelFault where a kernel is at fault, and EngineError('invalid_model') when what comes out is not finite.
 */
export async function warmUp(device: Device, { work, sizes = [], tryOut }: WarmUp): Promise<void> {
  const others = await compileAll(device, [...sizes]);
  const ran = new Set<string>();
  const run = async (record: (rec: Recorder) => void, known?: Set<string>): Promise<void> => {
    if (device.tuning) await compileAll(device, [record]);
    for (const variant of await device.warmUp(record, known)) ran.add(variant);
  };
  for await (const record of work) await run(record);
  for (const { record, variants } of others.toReversed()) {
    if ([...variants].some((variant) => !ran.has(variant))) await run(record, ran);
  }
  await selfTest(device);
  const bad = await tryOut?.();
  if (bad === undefined) return;
  throw new EngineError('invalid_model', `${bad}: the weights are damaged, or too large for f16`, { remedies: [LOAD_AS_F32] });
}

interface Recorded {
  readonly record: (rec: Recorder) => void;
  readonly variants: ReadonlySet<string>;
}

/** Starts compiling all kernels of these recordings. With the autotune on it lets that choose first, and compiles the chosen kernels. */
async function compileAll(device: Device, records: readonly ((rec: Recorder) => void)[]): Promise<readonly Recorded[]> {
  const compile = (): readonly Recorded[] => records.map((record) => ({ record, variants: device.compile(record) }));
  const first = compile();
  if (!device.tuning?.hasOffers) return first;
  await device.pipelines.settled();
  await selfTest(device);
  await device.tuning.settle();
  return compile();
}
