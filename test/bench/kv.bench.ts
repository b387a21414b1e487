/** Storing keys and values and attending to them, by the storage of the pages: milliseconds on the device. */
import type { Device } from '../../engine/gpu/device.ts';
import { APART_CHANNELS, createKVCache, ropeKVStore } from '../../engine/ops/kv.ts';
import type { KVType } from '../../engine/ops/kv.ts';
import { attentionTileRows, pagedAttention } from '../../engine/ops/paged-attention.ts';
import { ropeTable } from '../../engine/ops/rope.ts';
import { ceilDiv } from '../../engine/util/math.ts';
import { benchDevice, deviceTime, fixed, loadText, printMachine, printTable } from './harness.ts';
import { percentile } from './serving/load.ts';

const PAGE = 16;
const LENGTH = 1024;
const SEQUENCES = 8;
const CHUNK = 256;
const TURNS = 3;
const TYPES: readonly KVType[] = ['f32', 'f16', 'int8'];
const SHAPES = [
  { heads: 4, kvHeads: 2, headDim: 64 },
  { heads: 16, kvHeads: 8, headDim: 128 },
];

interface Shape {
  readonly heads: number;
  readonly kvHeads: number;
  readonly headDim: number;
}

/** What is timed of one storage: decode of 8 sequences, a chunk of a prompt, the store of a chunk. */
function measurements(device: Device, { heads, kvHeads, headDim }: Shape, dtype: KVType): readonly (() => Promise<number>)[] {
  const perSequence = LENGTH / PAGE;
  const words = (name: string, shape: readonly [number, ...number[]], value: (i: number) => number) =>
    device.upload(
      name,
      'u32',
      shape,
      Uint32Array.from({ length: shape.reduce((a, b) => a * b, 1) }, (_, i) => value(i)),
    );
  const kv = createKVCache(device, { layers: [{ kvHeads, headDim }], pageSize: PAGE, dtype }, SEQUENCES * perSequence);
  const q = device.tensor('q', 'f32', [CHUNK, heads * (headDim + APART_CHANNELS)]);
  const out = device.tensor('out', 'f32', [CHUNK, heads * headDim]);
  const qkv = device.tensor('qkv', 'f32', [CHUNK, (heads + 2 * kvHeads) * headDim]);
  const blockTable = words('table', [SEQUENCES, perSequence], (i) => i);
  const decodes = words('decodes', [SEQUENCES, 4], (i) => [i >> 2, 1, i >> 2, LENGTH - 1][i & 3]!);
  const tileRows = attentionTileRows(device.caps, heads, { kvHeads, headDim });
  const tileCount = ceilDiv(CHUNK, tileRows);
  const row = (tile: number): number => tile * tileRows;
  const prefills = words('prefills', [tileCount, 4], (i) => [row(i >> 2), Math.min(tileRows, CHUNK - row(i >> 2)), 0, LENGTH - CHUNK + row(i >> 2)][i & 3]!); // prettier-ignore
  const positions = words('positions', [CHUNK], (i) => LENGTH - CHUNK + i);
  const cosSin = ropeTable(device, { theta: 10000, headDim, scaling: undefined }, LENGTH);
  const shared = { q, kv, layer: 0, blockTable, firstTile: 0, out, heads };
  return [
    () => deviceTime(device, (rec) => pagedAttention(rec, { ...shared, tiles: decodes, tileCount: SEQUENCES, tileRows: 1 })),
    () => deviceTime(device, (rec) => pagedAttention(rec, { ...shared, tiles: prefills, tileCount, tileRows })),
    () => deviceTime(device, (rec) => ropeKVStore(rec, { qkv, cosSin, positions, slots: positions, q, kv, layer: 0, heads, rows: CHUNK })),
  ];
}

const device = await benchDevice('default');
printMachine(device);
for (const shape of SHAPES) {
  const timed = TYPES.map((dtype) => measurements(device, shape, dtype));
  const samples = timed.map((functions) => functions.map(() => [] as number[]));
  for (let turn = 0; turn < TURNS; turn++) {
    for (const [i, functions] of timed.entries()) for (const [j, run] of functions.entries()) samples[i]![j]!.push(await run());
  }
  printTable(
    [
      `${shape.heads} heads over ${shape.kvHeads} of ${shape.headDim}, ms`,
      `decode ${SEQUENCES} at ${LENGTH}`,
      `prefill ${CHUNK} to ${LENGTH}`,
      `store ${CHUNK}`,
      'load',
    ],
    TYPES.map((dtype, i) => [dtype, ...samples[i]!.map((values) => fixed(percentile(values, 0.5))), loadText()]),
  );
}
process.exit(0);
