/** What every loaded model does before its first request. */
import { EngineError, LOAD_AS_F32 } from '../errors.ts';
import type { Device } from '../gpu/device.ts';
import type { Recorder } from '../gpu/recorder.ts';

export interface WarmUp {
  /** Records each kind of work that requests will bring. The next is asked for when one has run, so that it may upload what it needs. */
  readonly work: Iterable<(rec: Recorder) => void> | AsyncIterable<(rec: Recorder) => void>;
  /** Does a first piece of work; says what of its results is not finite, or undefined where all is. */
  readonly tryOut?: () => Promise<string | undefined>;
}

/**
 * Compiles the kernels of all the work and runs each kind once, so that no request waits for a compiler; then tries the model out. Throws
 * EngineError('invalid_model') when what comes out is not finite.
 */
export async function warmUp(device: Device, { work, tryOut }: WarmUp): Promise<void> {
  for await (const record of work) await device.warmUp(record);
  const bad = await tryOut?.();
  if (bad === undefined) return;
  throw new EngineError('invalid_model', `${bad}: the weights are damaged, or too large for f16`, { remedies: [LOAD_AS_F32] });
}
