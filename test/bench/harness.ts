/** Timing shared by the benchmarks: interleaved runs, medians, outputs compared before any clock starts. */
import { cpus, loadavg } from 'node:os';
import { performance } from 'node:perf_hooks';
import { Device } from '../../engine/gpu/device.ts';
import type { Recorder } from '../../engine/gpu/recorder.ts';
import { createNodePlatform } from '../../engine/platform/node.ts';

/** Dawn's checks against untrusted shaders on, or off as ONNX Runtime has them (the server's --dawn-toggles). */
export type Profile = 'default' | 'fast';

/**
 * A device of the adapter that PARLEY_ADAPTER names, or of the best one. `wait` is that of the process's first device: `sleep` as ranks wait, `timer` as the
 * engine's process does, whose answers come up to a millisecond later.
 */
export async function benchDevice(toggles: Profile, wait: 'timer' | 'sleep' = 'timer'): Promise<Device> {
  const name = process.env['PARLEY_ADAPTER'];
  return Device.create(createNodePlatform({ toggles, wait, log: () => undefined }), name ? { name } : {});
}

/** One way of computing the same result. */
export interface Contender {
  readonly name: string;
  /** Input in host memory to output in host memory. */
  run(): Promise<Float32Array>;
}

export interface Timing {
  readonly name: string;
  /** Median milliseconds and, as a sign of disturbance, the interquartile range over the median. */
  readonly ms: number;
  readonly spread: number;
}

const MIN_ROUNDS = 7;
const MAX_ROUNDS = 60;
const MIN_SECONDS = 2;

/** Runs the contenders in turn, each round beginning with the next one, for at least `MIN_ROUNDS` rounds and `MIN_SECONDS`. */
export async function interleave(contenders: readonly Contender[]): Promise<readonly Timing[]> {
  const samples = contenders.map(() => [] as number[]);
  for (const contender of contenders) for (let i = 0; i < 2; i++) await contender.run();
  const start = performance.now();
  for (let round = 0; round < MAX_ROUNDS; round++) {
    if (round >= MIN_ROUNDS && performance.now() - start > MIN_SECONDS * 1000) break;
    for (let turn = 0; turn < contenders.length; turn++) {
      const i = (turn + round) % contenders.length;
      const from = performance.now();
      await contenders[i]!.run();
      samples[i]!.push(performance.now() - from);
    }
  }
  return contenders.map(({ name }, i) => summary(name, samples[i]!));
}

function summary(name: string, samples: readonly number[]): Timing {
  const sorted = [...samples].sort((a, b) => a - b);
  const at = (share: number): number => sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))]!;
  return { name, ms: at(0.5), spread: (at(0.75) - at(0.25)) / at(0.5) };
}

/** Largest difference of two outputs over the largest value; NaN anywhere gives NaN. */
export function relativeError(actual: Float32Array, expected: Float32Array): number {
  if (actual.length !== expected.length) throw new Error(`outputs have ${actual.length} and ${expected.length} values`);
  let worst = 0;
  let largest = 1e-30;
  for (let i = 0; i < expected.length; i++) {
    const difference = Math.abs(actual[i]! - expected[i]!);
    if (Number.isNaN(difference)) return NaN;
    worst = Math.max(worst, difference);
    largest = Math.max(largest, Math.abs(expected[i]!));
  }
  return worst / largest;
}

/** Milliseconds a dispatch sequence takes on the device, without uploads and readbacks: median over submissions of several repeats. */
export async function deviceTime(device: Device, record: (rec: Recorder) => void): Promise<number> {
  const submit = async (repeats: number): Promise<number> => {
    const rec = device.record('bench');
    for (let i = 0; i < repeats; i++) record(rec);
    const from = performance.now();
    await rec.submit().finished();
    return (performance.now() - from) / repeats;
  };
  await submit(1);
  const estimate = await submit(2);
  const repeats = Math.min(200, Math.max(1, Math.round(60 / estimate)));
  const samples: number[] = [];
  for (let i = 0; i < 7; i++) samples.push(await submit(repeats));
  return summary('', samples).ms;
}

/** Prints rows under a header, columns aligned. */
export function printTable(header: readonly string[], rows: readonly (readonly string[])[]): void {
  const widths = header.map((title, i) => Math.max(title.length, ...rows.map((row) => row[i]?.length ?? 0)));
  const line = (row: readonly string[]): string =>
    row.map((cell, i) => (i === 0 ? cell.padEnd(widths[i]!) : cell.padStart(widths[i]!))).join('  ');
  console.log(line(header));
  console.log(widths.map((width) => '-'.repeat(width)).join('  '));
  for (const row of rows) console.log(line(row));
  console.log();
}

/** Says what the numbers below were measured on. */
export function printMachine(device: Device): void {
  const { name, family, features } = device.info;
  console.log(`adapter  ${name} (${family}; ${features.join(', ')})`);
  console.log(`machine  ${cpus().length} x ${cpus()[0]?.model.trim() ?? 'unknown CPU'}, Node ${process.versions.node}`);
  console.log(`date     ${new Date().toISOString().slice(0, 16)}Z, load ${loadText()}\n`);
}

/** Load average of the last minute: above the number of idle cores the times below it are too long. */
export function loadText(): string {
  return loadavg()[0]!.toFixed(2);
}

export const fixed = (value: number, digits = 2): string => value.toFixed(digits);
