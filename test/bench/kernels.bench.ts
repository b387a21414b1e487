/** Our kernels beside ONNX Runtime's WebGPU provider: same shapes, same data, same adapter, interleaved, outputs compared first. */
import type { Device } from '../../engine/gpu/device.ts';
import { createRng } from '../../engine/util/rng.ts';
import { benchDevice, deviceTime, fixed, interleave, loadText, printMachine, printTable, relativeError } from './harness.ts';
import type { Contender } from './harness.ts';
import { attentionDuel, conv1dDuel, matmulDuel, quantisedDuel } from './duels.ts';
import type { Duel } from './duels.ts';
import { ortContender } from './rival.ts';

/** Ours reads the input from the host and returns the output to it, as ONNX Runtime's run() does. */
function ourContender(name: string, device: Device, duel: Duel): Contender & { readonly record: ReturnType<Duel['prepare']>['record'] } {
  const { upload, record, output } = duel.prepare(device);
  const run = async (): Promise<Float32Array> => {
    upload();
    const rec = device.record(duel.name);
    record(rec);
    const readback = rec.readback(output);
    rec.submit();
    return new Float32Array(await readback.data());
  };
  return { name, run, record };
}

async function fight(duel: Duel, devices: { readonly fast: Device; readonly plain: Device }): Promise<string[]> {
  const ours = ourContender('ours', devices.plain, duel);
  const fast = ourContender('ours, fast toggles', devices.fast, duel);
  const rival = await ortContender('webgpu', duel.graph, duel.rivalInputs);
  const native = await ortContender('cpu', duel.graph, duel.rivalInputs);
  const expected = duel.toOurLayout(await native.run());
  for (const { name, run } of [ours, fast]) {
    const error = relativeError(await run(), expected);
    if (!(error <= duel.tolerance)) throw new Error(`${duel.name}: ${name} differs from ONNX Runtime's CPU provider by ${error}`);
  }
  // A rival with a wrong answer has no time worth comparing; say so instead of a ratio.
  const rivalError = relativeError(duel.toOurLayout(await rival.run()), expected);
  const right = rivalError <= duel.tolerance;
  const timings = await interleave([ours, fast, rival]);
  const [a, b, c] = timings.map(({ ms }) => ms) as [number, number, number];
  const [cpu] = await interleave([native]);
  const kernel = await deviceTime(devices.plain, ours.record);
  const spread = Math.max(...timings.map((timing) => timing.spread));
  const gflops = (ms: number): string => fixed(duel.flops / ms / 1e6, 1);
  return [
    duel.name, fixed(a), fixed(b), fixed(c), right ? `${fixed(c / a)}x` : `wrong by ${fixed(rivalError, 3)}`, right ? `${fixed(c / b)}x` : '-', gflops(a), gflops(c), gflops(kernel), fixed(duel.bytes / kernel / 1e6, 1),
    fixed(cpu!.ms), `${fixed(spread * 100, 0)}%`, loadText(),
  ]; // prettier-ignore
}

// ONNX Runtime blocks while it waits; a timer of a millisecond would be most of what one row takes.
const devices = { fast: await benchDevice('fast', 'sleep'), plain: await benchDevice('default', 'sleep') };
printMachine(devices.fast);
console.log(
  'Milliseconds are medians of input in host memory to output in host memory, runs interleaved. "kernel": ours on the device alone.',
);
console.log(
  '"ours" runs with Dawn\'s checks against untrusted shaders, as the server does; "fast" without (--dawn-toggles fast), as ONNX Runtime does.',
);
console.log('"ORT cpu" is native code on the CPU and no rival of any WebGPU program on a software adapter.\n');
const header = [
  'shape', 'ours', 'fast', 'ORT webgpu', 'ratio', 'fast', 'GFLOP/s', 'ORT', 'kernel', 'GB/s', 'ORT cpu', 'spread', 'load',
]; // prettier-ignore
const rng = createRng(20261121);
const rows: string[][] = [];
const duels = [...matmulDuel(rng), ...quantisedDuel(rng), ...conv1dDuel(rng), ...attentionDuel(rng)];
for (const duel of duels) if (duel.name.includes(process.argv[2] ?? '')) rows.push(await fight(duel, devices));
printTable(header, rows);
process.exit(0);
