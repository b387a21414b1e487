/** Warming up: what every loaded model runs before its first request. */
import { EngineError, LOAD_AS_F32 } from '../errors.ts';
import type { Device } from '../gpu/device.ts';
import type { Recorder } from '../gpu/recorder.ts';
import { selfTest } from './self-test.ts';

export interface WarmUp {
  /**
   * Records each kind of work that requests will bring. The next one is taken after one has run, so that an iterator may upload what it
   * needs.
   */
  readonly work: Iterable<(rec: Recorder) => void> | AsyncIterable<(rec: Recorder) => void>;
  /**
   * Work of other sizes, the largest first, so that scratch memory is made for the largest. All its kernels are compiled; it runs, once,
   * only where it has kernels that nothing else ran.
   */
  readonly sizes?: Iterable<(rec: Recorder) => void>;
  /** Runs a first piece of work; resolves to a message about the values that are not finite, or to undefined. */
  readonly tryOut?: () => Promise<string | undefined>;
}

/**
 * Compiles the kernels of all the work and runs each kind once, so that no request waits for a compiler; then checks the kernels (selfTest)
 * and tries the model out. Throws KernelFault where a kernel computes wrong results, and EngineError('invalid_model') where the model's
 * values are not finite.
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

/**
 * Starts compiling all kernels of these recordings. With autotuning on, it first measures the candidates, and then compiles the chosen
 * kernels.
 */
async function compileAll(device: Device, records: readonly ((rec: Recorder) => void)[]): Promise<readonly Recorded[]> {
  const compile = (): readonly Recorded[] => records.map((record) => ({ record, variants: device.compile(record) }));
  const first = compile();
  if (!device.tuning?.hasOffers) return first;
  await device.pipelines.settled();
  await selfTest(device);
  await device.tuning.settle();
  return compile();
}
