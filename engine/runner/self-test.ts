/**
 * Runs the kernels that loaded models take on small cases with known results, before a request meets them (README.md, "Choosing kernels").
 */
import type { Device } from '../gpu/device.ts';
import { viewAs } from '../gpu/device.ts';
import { KernelFault, faultOf } from '../gpu/kernel-fault.ts';
import type { Fault } from '../gpu/kernel-fault.ts';
import { KERNEL_CHECKS } from './kernel-checks.ts';
import { Workbench } from './workbench.ts';
import type { KernelCheck } from './workbench.ts';

/** Throws KernelFault where a compiled pipeline that was not tested before computes wrong numbers. All cases run in one submission. */
export async function selfTest(device: Device): Promise<void> {
  const bench = new Workbench(device);
  const checks = [...device.pipelines.compiled()].flatMap(({ label, kernel, variant }) => {
    const make = KERNEL_CHECKS.get(kernel);
    if (!make || device.tested.has(label)) return [];
    const check = make(variant, bench);
    if (!check) return [];
    return [{ label, kernel, variant, check }];
  });
  for (const { label, check } of checks) for (const tested of [label, ...dispatched(device, check)]) device.tested.add(tested);
  await device.pipelines.settled();
  const rec = device.record('self-test');
  const running = checks.map(({ kernel, variant, check }) => {
    check.record(rec);
    return { kernel, variant, check, result: rec.readback(check.out) };
  });
  rec.submit();
  const faults: Fault[] = [];
  for (const { kernel, variant, check, result } of running) {
    const { out, seen, expected, tolerance } = check;
    const values = viewAs(out.dtype, await result.data(), out.size);
    const off = difference(seen?.(values) ?? values, expected);
    // Written as a negation so that NaN is a fault.
    if (!(off <= tolerance))
      faults.push(faultOf(kernel, variant, `gives wrong results (off by ${off.toPrecision(2)}; ${tolerance} may be)`));
  }
  bench.clear();
  if (faults.length > 0) throw new KernelFault(device.info.name, faults);
}

/** Labels of all pipelines that a case dispatches, which are tested with it. Its products are not offered to the autotuner. */
function dispatched(device: Device, { record }: KernelCheck): ReadonlySet<string> {
  const { tuning } = device;
  device.tuning = undefined;
  const labels = device.compile(record);
  device.tuning = tuning;
  return labels;
}

/** Relative squared error: sum of squared differences over sum of squares of the expected values. */
function difference(actual: ArrayLike<number>, expected: ArrayLike<number>): number {
  let [squares, all] = [0, 0];
  for (let i = 0; i < expected.length; i++) {
    squares += (actual[i]! - expected[i]!) ** 2;
    all += expected[i]! ** 2;
  }
  return squares === 0 ? 0 : squares / all;
}
