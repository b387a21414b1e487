/** Choosing kernels by measurement, with a stopwatch that says what a test wants: who wins, what a wrong candidate gets, and what is kept for the next start. */
import { afterEach, expect, test } from 'vitest';
import type { TunedKernel } from '../../engine/api.ts';
import type { Device } from '../../engine/gpu/device.ts';
import { Device as GPU } from '../../engine/gpu/device.ts';
import type { Recorder } from '../../engine/gpu/recorder.ts';
import type { TuningOptions } from '../../engine/gpu/tuning.ts';
import { linear } from '../../engine/ops/linear.ts';
import { packLinear } from '../../engine/ops/pack-linear.ts';
import { productShapes } from '../../engine/ops/product-shapes.ts';
import { createNodePlatform } from '../../engine/platform/node.ts';
import type { Platform } from '../../engine/platform/platform.ts';
import { beginTuning, endTuning } from '../../engine/runner/tuned-kernels.ts';
import { warmUp } from '../../engine/runner/warm-up.ts';
import { createRng } from '../../engine/util/rng.ts';

const [N, K, ROWS] = [96, 272, 20];
/** The ways for 20 rows: tiles of 32, 16 and 64 rows by 64 columns, and one of 32 x 32. */
const NAMES = productShapes(ROWS, K / 4).map(({ name }) => name);
const KEY = `product f32, 32 x ${K} x ${N}`;

const devices: Device[] = [];
afterEach(() => devices.splice(0).forEach((device) => device.close()));

interface Kept {
  text?: string | undefined;
  written: number;
}

interface Setup {
  readonly kept?: Kept;
  readonly lines?: string[];
  readonly spoil?: (shaders: ReadonlyMap<string, string>) => ReadonlyMap<string, string>;
  /** Name of the adapter's driver, where it is another. */
  readonly driver?: string;
}

/** A device that has the kernels of a GPU. */
async function gpu({ kept = { written: 0 }, lines = [], spoil = (shaders) => shaders, driver }: Setup): Promise<Device> {
  const node = createNodePlatform({ log: (line) => lines.push(line) });
  const platform: Platform = {
    ...node,
    shaders: async () => spoil(await node.shaders()),
    kept: {
      read: async () => kept.text,
      write: async (_, text) => {
        kept.text = text;
        kept.written++;
      },
    },
  };
  const name = process.env['PARLEY_ADAPTER'];
  const device = await GPU.create(platform, { disable: ['software'], ...(name && { name }) });
  devices.push(device);
  if (driver !== undefined) Object.assign(device.info, { name: driver });
  return device;
}

/** Microseconds of each candidate, by the tile that a trial's pipelines have. */
function stopwatch(microseconds: Readonly<Record<string, number>>, asked: string[] = []): NonNullable<TuningOptions['time']> {
  return (device, record, repeats) => {
    const [label = ''] = device.compile(record);
    const [tile, side] = [/TILE_M=(\d)/, /SIDE=(\d+)/].map((of) => Number(of.exec(label)?.[1])) as [number, number];
    const name = `block ${side * tile}${side === 16 ? '' : ` x ${4 * side}`}`;
    asked.push(name);
    return Promise.resolve(((microseconds[name] ?? 1000) * repeats) / 1000);
  };
}

interface Tuned {
  readonly chosen: string | undefined;
  readonly asked: readonly string[];
  readonly result: Float32Array;
  readonly tile: string | undefined;
}

/** Loads a "model" of one product, and multiplies. */
async function start(
  device: Device,
  microseconds: Readonly<Record<string, number>>,
  options: Pick<TuningOptions, 'now'> = {},
): Promise<Tuned> {
  const rng = createRng(3);
  const values = (count: number): Float32Array => Float32Array.from({ length: count }, () => rng.normal());
  const weight = packLinear(device, 'weight', values(N * K), N, K);
  const [x, out] = [device.upload('x', 'f32', [ROWS, K], values(ROWS * K)), device.tensor('out', 'f32', [ROWS, N])];
  const work = (rec: Recorder): void => linear(rec, { x, weight, out });
  const asked: string[] = [];
  await beginTuning(device, { time: stopwatch(microseconds, asked), ...options });
  await warmUp(device, { work: [work] });
  const [tuned] = await endTuning(device);
  const [label = ''] = device.compile(work);
  return { chosen: tuned?.chosen, asked, result: (await device.read(out)) as Float32Array, tile: /TILE_M=\d/.exec(label)?.[0] };
}

test('the fastest candidate is taken, gives the same bits, and is not measured at the second start', async () => {
  const kept: Kept = { written: 0 };
  const usual = await start(await gpu({}), { 'block 32': 100, 'block 16': 96, 'block 64': 300 });
  // Four in a hundred may be noise.
  expect(usual).toMatchObject({ chosen: 'block 32', tile: 'TILE_M=2', asked: NAMES });
  const first = await start(await gpu({ kept }), { 'block 32': 100, 'block 16': 300, 'block 64': 60 });
  expect(first).toMatchObject({ chosen: 'block 64', tile: 'TILE_M=4', asked: NAMES });
  expect(new Uint32Array(first.result.buffer)).toEqual(new Uint32Array(usual.result.buffer));
  const second = await start(await gpu({ kept }), {});
  expect(second).toMatchObject({ chosen: 'block 64', tile: 'TILE_M=4', asked: [] });
  expect(kept.written).toBe(1);
});

test('what was kept is nothing to another driver and to other kernels, which have entries of their own', async () => {
  const kept: Kept = { written: 0 };
  await start(await gpu({ kept }), { 'block 32': 100, 'block 16': 300, 'block 64': 60 });
  const other = await start(await gpu({ kept, driver: 'a newer driver' }), { 'block 32': 100, 'block 16': 50, 'block 64': 60 });
  expect(other).toMatchObject({ chosen: 'block 16', asked: NAMES });
  const spoil = (shaders: ReadonlyMap<string, string>): ReadonlyMap<string, string> => new Map([...shaders, ['lib/new.wgsl', '// new']]);
  const newer = await start(await gpu({ kept, spoil }), { 'block 32': 10, 'block 16': 50, 'block 64': 60 });
  expect(newer).toMatchObject({ chosen: 'block 32', asked: NAMES });
  const entries = Object.values(JSON.parse(kept.text!) as Record<string, Record<string, string>>);
  expect(entries).toEqual([{ [KEY]: 'block 64' }, { [KEY]: 'block 16' }, { [KEY]: 'block 32' }]);
});

test('a damaged file is as none, with a line, and is written anew', async () => {
  for (const text of ['{"a": ', '[1]', '{"a": {"b": 1}}']) {
    const [kept, lines]: [Kept, string[]] = [{ text, written: 0 }, []];
    const { asked } = await start(await gpu({ kept, lines }), { 'block 32': 100, 'block 16': 300, 'block 64': 60 });
    expect(asked).toEqual(NAMES);
    expect(lines).toContain('autotune: kernels.json in the cache is damaged; all is measured anew');
    expect(Object.values(JSON.parse(kept.text!) as object)).toEqual([{ [KEY]: 'block 64' }]);
  }
});

test('a candidate that gives other bits is not measured and does not win', async () => {
  const lines: string[] = [];
  // A tile of 64 rows that is wrong: the others compile to what they were.
  const spoil = (shaders: ReadonlyMap<string, string>): ReadonlyMap<string, string> => {
    const text = shaders.get('linear/linear_block.wgsl')!;
    expect(text).toContain('for (var first = 0u; first < params.k4;');
    return new Map([...shaders, ['linear/linear_block.wgsl', text.replace('for (var first = 0u; first < params.k4;', 'for (var first = select(0u, STEP, TILE_M == 4u && SIDE == 16u); first < params.k4;')]]); // prettier-ignore
  };
  const { chosen, asked } = await start(await gpu({ lines, spoil }), { 'block 32': 100, 'block 16': 200, 'block 64': 1 });
  expect(chosen).toBe('block 32');
  expect(asked).toEqual(['block 32', 'block 16', 'block 32 x 32']);
  expect(lines).toContain(`autotune: ${KEY}: block 64 gave other bits and cannot be chosen`);
});

test('what there is no time for is left as it is', async () => {
  let time = 0;
  const device = await gpu({});
  const [x, out] = [device.tensor('x', 'f32', [ROWS, 64]), device.tensor('out', 'f32', [ROWS, 256])];
  const weights = [64, 128, 256].map((columns) => packLinear(device, 'weight', new Float32Array(64 * columns), columns, 64));
  await beginTuning(device, { time: stopwatch({ 'block 32': 100, 'block 16': 50, 'block 64': 60 }), now: () => (time += 2500) });
  await warmUp(device, { work: [(rec) => weights.forEach((weight) => linear(rec, { x, weight, out }))] });
  expect(device.tuned.size).toBe(2);
});

test.each([
  ['of the device', []],
  ['of the host', ['timestamps']],
] as const)('the clock %s measures every candidate', async (_, disable) => {
  const device = await gpu({});
  device.pretend(['software', ...disable]);
  const tuned = await measured(device);
  expect(Object.keys(tuned?.microseconds ?? {})).toEqual(NAMES);
  for (const time of Object.values(tuned!.microseconds!)) expect(time).toBeGreaterThan(0);
});

async function measured(device: Device): Promise<TunedKernel | undefined> {
  const weight = packLinear(device, 'weight', new Float32Array(N * K).fill(0.5), N, K);
  const [x, out] = [device.tensor('x', 'f32', [ROWS, K]), device.tensor('out', 'f32', [ROWS, N])];
  await beginTuning(device);
  await warmUp(device, { work: [(rec) => linear(rec, { x, weight, out })] });
  return (await endTuning(device))[0];
}

test('a software adapter has nothing to choose', async () => {
  const device = await GPU.create(createNodePlatform());
  devices.push(device);
  if (device.caps.family !== 'cpu') return;
  expect(await start(device, {})).toMatchObject({ chosen: undefined, asked: [] });
});

test('weights of several layers take turns, so that no cache holds what is read', async () => {
  const device = await gpu({});
  const layers = Array.from({ length: 3 }, () => packLinear(device, 'weight', new Float32Array(N * K), N, K));
  const [x, out] = [device.tensor('x', 'f32', [ROWS, K]), device.tensor('out', 'f32', [ROWS, N])];
  const read = new Set<unknown>();
  const time: TuningOptions['time'] = (timed, record, repeats) => {
    for (let i = 0; i < repeats; i++)
      for (const step of timed.capture('turn', record).steps) if (step.kind === 'dispatch') read.add(step.group);
    return Promise.resolve(1);
  };
  await beginTuning(device, { time });
  const step = (rec: Recorder): void => {
    for (const weight of layers) linear(rec, { x, weight, out });
  };
  await warmUp(device, { work: [step] });
  await endTuning(device);
  // A kernel has a group of bindings for each weight.
  expect(read.size).toBe(layers.length);
});
