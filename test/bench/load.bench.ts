/**
 * Loading weights: seconds, MB/s beside this machine's own read-and-copy speed, and host memory above what was there before and what the device was
 * given. Each load runs in a process of its own. Files are sparse: what is stored does not change what loading does.
 */
import { fork } from 'node:child_process';
import { closeSync, ftruncateSync, mkdirSync, mkdtempSync, openSync, readSync, rmSync, statSync, writeFileSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { floatStorage } from '../../engine/config.ts';
import { decoderFor } from '../../engine/models/registry.ts';
import { WeightLoader } from '../../engine/models/weight-loader.ts';
import { withWeights } from '../../engine/weights/model-folder.ts';
import { openModelFolder } from '../../engine/weights/open-model-folder.ts';
import { randomShapes } from '../support/random-checkpoint.ts';
import type { RandomShape } from '../support/random-checkpoint.ts';
import { benchDevice, fixed, loadText, printMachine, printTable } from './harness.ts';

const SHAPES: Readonly<Record<string, RandomShape>> = {
  '0.5B': { hidden: 896, intermediate: 4864, layers: 24, heads: 14, kvHeads: 2, headDim: 64, vocabulary: 151936, maxPositions: 2048 },
  '8B, 4 of 32 layers': { hidden: 4096, intermediate: 14336, layers: 4, heads: 32, kvHeads: 8, headDim: 128, vocabulary: 128256, maxPositions: 2048 },
}; // prettier-ignore
const CHUNK = 16 * 2 ** 20;
const MB = 1e6;

/** What a load took. */
interface Loaded {
  readonly seconds: number;
  /** Bytes above what the process had before it and what the device was given. */
  readonly peak: number;
}

/** Writes a checkpoint in bf16 whose values are zeros, but for the first of each tensor. */
function writeSparse(folder: string, shape: RandomShape): void {
  mkdirSync(folder);
  const { config, tensors } = randomShapes(shape);
  let at = 0;
  const entries = Object.entries(tensors).map(([name, sizes]) => {
    const bytes = 2 * sizes.reduce((a, b) => a * b, 1);
    at += bytes;
    return [name, { dtype: 'BF16', shape: sizes, data_offsets: [at - bytes, at] }] as const;
  });
  const header = Buffer.from(JSON.stringify(Object.fromEntries(entries)));
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(header.length));
  const file = openSync(join(folder, 'model.safetensors'), 'w');
  writeSync(file, Buffer.concat([length, header]));
  ftruncateSync(file, 8 + header.length + at);
  const values = Buffer.from(Uint16Array.from({ length: 64 }, (_, i) => 0x3c00 + i).buffer);
  for (const [, { data_offsets: offsets }] of entries) writeSync(file, values, 0, values.length, 8 + header.length + offsets[0]);
  closeSync(file);
  writeFileSync(join(folder, 'config.json'), JSON.stringify(config));
  writeFileSync(join(folder, 'tokenizer.json'), '{}');
}

/** Seconds to read a file in chunks and to copy each to other memory. */
function readAndCopy(path: string): number {
  const [from, to] = [Buffer.alloc(CHUNK), Buffer.alloc(CHUNK)];
  const file = openSync(path, 'r');
  const started = performance.now();
  for (let read = readSync(file, from); read > 0; read = readSync(file, from)) from.copy(to, 0, 0, read);
  closeSync(file);
  return (performance.now() - started) / 1000;
}

/** Loads the weights of a folder as the chat engine does. */
async function load(path: string): Promise<Loaded> {
  const device = await benchDevice('default');
  const folder = await openModelFolder(device.platform, path);
  const json = await folder.json('config.json');
  const before = process.memoryUsage.rss();
  let most = before;
  const watch = (): number => (most = Math.max(most, process.memoryUsage.rss() - device.stats.bufferBytes));
  const timer = setInterval(watch, 5);
  const started = performance.now();
  await withWeights(folder, (checkpoint) => decoderFor(json).load(new WeightLoader(device, checkpoint, floatStorage('f16')), json, 2048));
  await device.gpu.queue.onSubmittedWorkDone();
  const seconds = (performance.now() - started) / 1000;
  watch();
  clearInterval(timer);
  return { seconds, peak: most - before };
}

async function inProcess(path: string): Promise<Loaded> {
  const child = fork(fileURLToPath(import.meta.url), ['--load', path], { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] });
  return new Promise((resolve, reject) => {
    child.once('message', (message) => resolve(message as Loaded));
    child.once('exit', (code) => reject(new Error(`the load ended with ${code}`)));
  });
}

if (process.argv[2] === '--load') {
  const loaded = await load(process.argv[3]!);
  process.send!(loaded, () => process.exit(0));
} else {
  printMachine(await benchDevice('default'));
  const root = mkdtempSync(join(tmpdir(), 'load-'));
  const rows: string[][] = [];
  for (const [name, shape] of Object.entries(SHAPES)) {
    if (!name.includes(process.argv[2] ?? '')) continue;
    const folder = join(root, name.replaceAll(/\W/g, '-'));
    writeSparse(folder, shape);
    const path = join(folder, 'model.safetensors');
    const { size } = statSync(path);
    const own = Math.min(readAndCopy(path), readAndCopy(path));
    const { seconds, peak } = await inProcess(folder);
    const speed = (taken: number): string => fixed(size / MB / taken, 0);
    rows.push([`${name} bf16`, fixed(size / MB, 0), fixed(seconds, 2), speed(seconds), speed(own), fixed(peak / 2 ** 20, 0), loadText()]);
    rmSync(folder, { recursive: true });
  }
  printTable(['weights', 'MB', 's', 'MB/s', 'read and copy MB/s', 'host peak MiB', 'load'], rows);
  rmSync(root, { recursive: true });
  process.exit(0);
}
