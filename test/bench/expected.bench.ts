/**
 * What a token of a decode should take on a card, from what its kernels read, write and compute: `npm run bench -- expected [--bandwidth GB/s]
 * [--gflops GFLOP/s] [--dispatch US] [--shape PART]`, a part of 0.5 B, 1 B, 8 B or parley-chat, or '' for all. Nothing is timed, so any adapter will do: the
 * kernels are those of a GPU, but matrices are cut where this adapter binds no more.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import type { Device } from '../../engine/gpu/device.ts';
import { sample, sampleScratch } from '../../engine/ops/sample.ts';
import { SAMPLING_ROW_WORDS } from '../../engine/ops/sampling-row.ts';
import { DecoderHarness } from '../support/decoder-harness.ts';
import { countWork } from '../support/kernel-work.ts';
import type { KernelWork } from '../support/kernel-work.ts';
import { writeLlamaGguf } from '../support/llama-gguf.ts';
import type { RandomShape } from '../support/random-checkpoint.ts';
import { benchDevice, fixed, printTable } from './harness.ts';

/** By an H100: what it reads, and multiplies in f32 without matrix units. A dispatch that waits for the one before takes some 3 us. */
const { values } = parseArgs({
  options: {
    bandwidth: { type: 'string', default: '3350' },
    gflops: { type: 'string', default: '60000' },
    dispatch: { type: 'string', default: '3' },
    shape: { type: 'string', default: '0.5 B' },
  },
  allowPositionals: true,
});
const [bandwidth, gflops, dispatchUs] = [values.bandwidth, values.gflops, values.dispatch].map(Number) as [number, number, number];

const SHAPES: Readonly<Record<string, RandomShape>> = {
  '0.5 B': { hidden: 896, intermediate: 4864, layers: 24, heads: 14, kvHeads: 2, headDim: 64, vocabulary: 151_936, maxPositions: 4096 },
  '1 B': { hidden: 2048, intermediate: 8192, layers: 16, heads: 32, kvHeads: 8, headDim: 64, vocabulary: 128_256, maxPositions: 4096 },
  '8 B': { hidden: 4096, intermediate: 14_336, layers: 32, heads: 32, kvHeads: 8, headDim: 128, vocabulary: 128_256, maxPositions: 4096 },
};
/** The bundled model that makes a token at a time. */
const BUNDLED = 'parley-chat';
const POSITIONS = 1024;

type Work = ReadonlyMap<string, Readonly<KernelWork>>;

/** Of one token of one sequence, greedy, by the model at a path. */
async function workOf(device: Device, path: string): Promise<Work> {
  const storage = { float: 'f16', keepBlocks: true, quantization: 'none' } as const;
  const harness = await DecoderHarness.load(device, path, {
    storage,
    dtype: 'f16',
    kvType: 'f16',
    context: POSITIONS,
    sequences: 1,
    rows: 1,
  });
  device.pretend(['software']);
  const work = countWork(device, () => POSITIONS, { run: false });
  await harness.step([{ sequence: 0, start: POSITIONS - 1, tokens: [2] }]);
  const { vocabulary } = harness.decoder.shape;
  const [settings, sampled, lastTokens] = [SAMPLING_ROW_WORDS, 1, 1].map((words) => device.tensor('sampling', 'u32', [1, words])) as [never, never, never]; // prettier-ignore
  const logits = device.tensor('logits', 'f32', [1, vocabulary]);
  sample(device.record('sample'), { logits, vocabulary, settings, scratch: sampleScratch(device, vocabulary, 1), sampled, lastTokens, rows: 1, greedy: true }); // prettier-ignore
  work.stop();
  return work.kernels;
}

/** From models of one and of two layers: what a layer takes, times the layers, and the rest. */
async function wholeWork(shape: RandomShape, kind: string): Promise<Work> {
  const folder = mkdtempSync(join(tmpdir(), 'parley-expected-'));
  try {
    const [one, two] = [new Map<string, Readonly<KernelWork>>(), new Map<string, Readonly<KernelWork>>()];
    for (const [layers, into] of [[1, one], [2, two]] as const) {
      const device = await benchDevice('default');
      const path = join(folder, `${layers}.gguf`);
      writeLlamaGguf(path, { ...shape, layers }, kind);
      for (const [name, work] of await workOf(device, path)) into.set(name, work);
      rmSync(path);
      device.close();
    } // prettier-ignore
    return new Map(
      [...two].map(([name, more]) => {
        const less = one.get(name) ?? { calls: 0, read: 0, written: 0, operations: 0 };
        const whole = (key: keyof KernelWork): number => less[key] + (shape.layers - 1) * (more[key] - less[key]);
        return [name, { calls: whole('calls'), read: whole('read'), written: whole('written'), operations: whole('operations') }];
      }),
    );
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function print(name: string, work: Work): void {
  const rows = [...work].map(([kernel, { calls, read, written, operations }]) => {
    const us = Math.max((read + written) / (bandwidth * 1e3), operations / (gflops * 1e3)) + calls * dispatchUs;
    return { kernel, calls, read, written, operations, us };
  });
  const total = rows.reduce((sum, { us }) => sum + us, 0);
  console.log(`\n${name}, one sequence at ${POSITIONS} positions, ${bandwidth} GB/s, ${dispatchUs} us a dispatch: ${fixed(total / 1000)} ms a token at best, ${fixed(1e6 / total, 0)} tokens/s\n`); // prettier-ignore
  printTable(
    ['kernel', 'calls', 'MB read', 'MB written', 'MFLOP', 'us at best'],
    rows
      .toSorted((a, b) => b.us - a.us)
      .map(({ kernel, calls, read, written, operations, us }) => [kernel, String(calls), fixed(read / 1e6, 3), fixed(written / 1e6, 3), fixed(operations / 1e6, 2), fixed(us, 1)]), // prettier-ignore
  );
}

for (const [name, shape] of Object.entries(SHAPES).filter(([name]) => name.includes(values.shape))) {
  // 256 values are one block of Q4_K; files of other widths have blocks of as many bits with 32.
  for (const kind of ['F16', 'Q8_0', shape.hidden % 256 === 0 ? 'Q4_K' : 'Q4_0']) print(`${name}, ${kind}`, await wholeWork(shape, kind));
}
if (BUNDLED.includes(values.shape)) {
  const device = await benchDevice('default');
  print(`${BUNDLED}, F16`, await workOf(device, fileURLToPath(new URL(`../../models/${BUNDLED}`, import.meta.url))));
  device.close();
}
process.exit(0);
