/**
 * Loading weights: seconds, MB/s beside this machine's own read-and-copy speed, and host memory above what was there before and what the device was
 * given, which fails above its bound. Each load runs in a process of its own. Files are sparse: what is stored does not change what loading does.
 * `npm run bench -- load [part of a shape] [--before CHECKOUT]`: the same files are loaded by another checkout of this repository too, with dependencies
 * installed (`git worktree add /tmp/before ba4281f; ln -s $PWD/node_modules /tmp/before/node_modules`: from before weights were streamed).
 */
import { fork } from 'node:child_process';
import { closeSync, ftruncateSync, mkdirSync, mkdtempSync, openSync, readSync, rmSync, statSync, writeFileSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { floatStorage } from '../../engine/config.ts';
import type { WeightStorage } from '../../engine/config.ts';
import type * as gpuDevice from '../../engine/gpu/device.ts';
import type * as nodePlatform from '../../engine/platform/node.ts';
import type * as registry from '../../engine/models/registry.ts';
import type * as weightLoader from '../../engine/models/weight-loader.ts';
import type * as modelFolder from '../../engine/weights/model-folder.ts';
import type * as openFolder from '../../engine/weights/open-model-folder.ts';
import { writeLlamaGguf } from '../support/llama-gguf.ts';
import { randomShapes } from '../support/random-checkpoint.ts';
import type { RandomShape } from '../support/random-checkpoint.ts';
import { benchDevice, fixed, loadText, printMachine, printTable } from './harness.ts';

const SHAPES: Readonly<Record<string, RandomShape>> = {
  '0.5B': { hidden: 896, intermediate: 4864, layers: 24, heads: 14, kvHeads: 2, headDim: 64, vocabulary: 151936, maxPositions: 2048 },
  '8B, 4 of 32 layers': { hidden: 4096, intermediate: 14336, layers: 4, heads: 32, kvHeads: 8, headDim: 128, vocabulary: 128256, maxPositions: 2048 },
}; // prettier-ignore
const CHUNK = 16 * 2 ** 20;
const MB = 1e6;
/** The blocks of a GGUF file of each shape, which are kept; 896 values are no whole number of Q4_K's. */
const BLOCKS: Readonly<Record<string, string>> = { '0.5B': 'Q8_0', '8B, 4 of 32 layers': 'Q4_K' };
/** Of host memory: the largest chunk, and this. */
const BOUND = CHUNK + 256 * 2 ** 20;
const STORAGES = ['none', 'q8_0', 'q4_0'] as const;
/** What becomes of the weights; `kept`: they stay in the file's blocks. */
type Quantization = (typeof STORAGES)[number] | 'kept';

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

/** The parts of the engine that load weights, of this checkout or another. */
async function partsOf(checkout: string) {
  const part = async (name: string): Promise<unknown> => import(pathToFileURL(join(checkout, 'engine', name)).href);
  return {
    ...((await part('gpu/device.ts')) as typeof gpuDevice),
    ...((await part('platform/node.ts')) as typeof nodePlatform),
    ...((await part('models/registry.ts')) as typeof registry),
    ...((await part('models/weight-loader.ts')) as typeof weightLoader),
    ...((await part('weights/model-folder.ts')) as typeof modelFolder),
    ...((await part('weights/open-model-folder.ts')) as typeof openFolder),
  };
}

/** Loads the weights of a folder as the chat engine does, or did: a loader took the name of a type once. */
async function load(checkout: string, path: string, quantization: Quantization | 'before'): Promise<Loaded> {
  const { Device, WeightLoader, createNodePlatform, decoderFor, openModelFolder, withWeights } = await partsOf(checkout);
  const name = process.env['PARLEY_ADAPTER'];
  const device = await Device.create(createNodePlatform({ log: () => undefined }), name ? { name } : {});
  const storage =
    quantization === 'before' ? ('f16' as unknown as WeightStorage)
    : quantization === 'kept' ? { ...floatStorage('f16'), keepBlocks: true }
    : { ...floatStorage('f16'), quantization }; // prettier-ignore
  const folder = await openModelFolder(device.platform, path);
  const json = await folder.json('config.json');
  const before = process.memoryUsage.rss();
  let most = before;
  const watch = (): number => (most = Math.max(most, process.memoryUsage.rss() - device.stats.bufferBytes));
  const timer = setInterval(watch, 5);
  const started = performance.now();
  await withWeights(folder, (checkpoint) => decoderFor(json).load(new WeightLoader(device, checkpoint, storage), json, 2048));
  await device.gpu.queue.onSubmittedWorkDone();
  const seconds = (performance.now() - started) / 1000;
  watch();
  clearInterval(timer);
  return { seconds, peak: most - before };
}

async function inProcess(...args: readonly string[]): Promise<Loaded> {
  const child = fork(fileURLToPath(import.meta.url), ['--load', ...args], { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] });
  return new Promise((done, reject) => {
    child.once('message', (message) => done(message as Loaded));
    child.once('exit', (code) => reject(new Error(`the load ended with ${code}`)));
  });
}

const HERE = fileURLToPath(new URL('../..', import.meta.url));
const { values, positionals } = parseArgs({ options: { load: { type: 'boolean' }, before: { type: 'string' } }, allowPositionals: true });
if (values.load) {
  const [checkout, path, quantization] = positionals as [string, string, Quantization | 'before'];
  const loaded = await load(checkout, path, quantization);
  process.send!(loaded, () => process.exit(0));
} else {
  printMachine(await benchDevice('default'));
  const root = mkdtempSync(join(tmpdir(), 'load-'));
  const rows: string[][] = [];
  let isBounded = true;
  for (const [name, shape] of Object.entries(SHAPES)) {
    if (!name.includes(positionals[0] ?? '')) continue;
    const folder = join(root, name.replaceAll(/\W/g, '-'));
    writeSparse(folder, shape);
    const measure = async (path: string, file: string, what: string, quantization: Quantization, isCompared: boolean): Promise<void> => {
      const { size } = statSync(file);
      const own = Math.min(readAndCopy(file), readAndCopy(file));
      const speed = (taken: number): string => fixed(size / MB / taken, 0);
      const row = (title: string, { seconds, peak }: Loaded, times: string): void => {
        rows.push([`${name} ${title}`, fixed(size / MB, 0), fixed(seconds, 2), times, speed(seconds), speed(own), fixed(peak / 2 ** 20, 0), loadText()]); // prettier-ignore
      };
      const compared = isCompared && values.before !== undefined;
      const before = compared ? await inProcess(resolve(values.before!), path, 'before') : undefined;
      if (before) row(`${what}, before`, before, '');
      const loaded = await inProcess(HERE, path, quantization);
      row(what, loaded, before ? fixed(before.seconds / loaded.seconds, 1) : '');
      isBounded &&= loaded.peak <= BOUND;
    };
    const file = join(folder, 'model.safetensors');
    for (const quantization of STORAGES) {
      const what = `bf16 to ${quantization === 'none' ? 'f16' : quantization}`;
      await measure(folder, file, what, quantization, quantization === 'none');
    }
    const gguf = join(folder, 'model.gguf');
    writeLlamaGguf(gguf, shape, BLOCKS[name]!);
    await measure(gguf, gguf, `${BLOCKS[name]} as it is`, 'kept', false);
    rmSync(folder, { recursive: true });
  }
  printTable(['weights', 'MB', 's', 'times as fast', 'MB/s', 'read and copy MB/s', 'host peak MiB', 'load'], rows);
  if (!isBounded) console.log(`host memory went above ${BOUND / 2 ** 20} MiB`);
  rmSync(root, { recursive: true });
  process.exit(isBounded ? 0 : 1);
}
