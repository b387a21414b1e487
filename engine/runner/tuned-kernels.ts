/** What was measured on an adapter, kept for the next start. */
import type { TunedKernel } from '../api.ts';
import type { Device } from '../gpu/device.ts';
import { Tuning } from '../gpu/tuning.ts';
import type { TuningOptions } from '../gpu/tuning.ts';
import { productShapes } from '../ops/product-shapes.ts';
import { fingerprint } from '../util/fingerprint.ts';

/** In the platform's cache. */
const FILE = 'kernels.json';
/** Rows of which each has candidates of its own. */
const CANDIDATE_ROWS = [1, 4, 8, 16, 32, 64, 128, 256];
/** Quads of rows with few chunks of K, and with many. */
const CANDIDATE_QUADS = [16, 1024];

type Kept = Readonly<Record<string, Readonly<Record<string, string>>>>;

/** How a device's clock is read, and what is chosen already: by another device of its kind. */
export interface TuningStart extends Pick<TuningOptions, 'time' | 'now'> {
  readonly chosen?: Readonly<Record<string, string>>;
}

/** Gives a device something to measure with, and what was measured on the same adapter with the same kernels. */
export async function beginTuning(device: Device, { chosen, ...options }: TuningStart = {}): Promise<void> {
  const known = { ...(await readKept(device))[await keyOf(device)], ...chosen };
  device.tuning = new Tuning(device, { ...options, known });
}

/** Keeps what is new, and says what was chosen. */
export async function endTuning(device: Device): Promise<readonly TunedKernel[]> {
  const { tuning, platform } = device;
  device.tuning = undefined;
  if (!tuning || tuning.choices.size === 0) return [];
  const all = [...tuning.choices];
  const measured = all.filter(([, { microseconds }]) => microseconds !== undefined);
  for (const [key, { wrong = [] }] of measured) {
    if (wrong.length > 0) platform.log(`autotune: ${key}: ${wrong.join(' and ')} gave other bits and cannot be chosen`);
  }
  const fromDefault = measured.filter(([, { chosen, microseconds = {} }]) => chosen !== Object.keys(microseconds)[0]);
  platform.log(
    `autotune: ${measured.length} shapes measured, ${fromDefault.length} of them gain; ${all.length - measured.length} known from earlier`,
  );
  if (measured.length > 0) await keep(device, Object.fromEntries(all.map(([key, { chosen }]) => [key, chosen])));
  return all.map(([shape, { chosen, microseconds }]) => ({ shape, chosen, ...(microseconds && { microseconds }) }));
}

async function keep(device: Device, choices: Readonly<Record<string, string>>): Promise<void> {
  const { platform } = device;
  const kept = await readKept(device);
  const key = await keyOf(device);
  try {
    await platform.kept?.write(FILE, JSON.stringify({ ...kept, [key]: { ...kept[key], ...choices } }));
  } catch (error) {
    platform.log(`autotune: what was measured cannot be kept: ${String(error)}`);
  }
}

/** A file that is not as it should be is as none. */
async function readKept({ platform }: Device): Promise<Kept> {
  const text = await platform.kept?.read(FILE);
  if (text === undefined) return {};
  try {
    const found: unknown = JSON.parse(text);
    if (isKept(found)) return found;
  } catch {
    // Said below.
  }
  platform.log(`autotune: ${FILE} in the cache is damaged; all is measured anew`);
  return {};
}

function isKept(value: unknown): value is Kept {
  const isTable = (table: unknown): table is object => typeof table === 'object' && table !== null && !Array.isArray(table);
  if (!isTable(value)) return false;
  return Object.values(value).every((row) => isTable(row) && Object.values(row).every((chosen) => typeof chosen === 'string'));
}

/** The adapter, whose name Dawn ends with its driver's version, and the kernels: another text or another candidate, and what was measured says nothing. */
async function keyOf({ info, platform }: Device): Promise<string> {
  const { name, vendor, architecture } = info;
  const candidates = CANDIDATE_ROWS.flatMap((rows) => CANDIDATE_QUADS.map((k4) => productShapes(rows, k4).map((shape) => shape.name)));
  const text = JSON.stringify([[...(await platform.shaders())].toSorted(([a], [b]) => (a < b ? -1 : 1)), candidates]);
  return [vendor, architecture, name, fingerprint(text)].join(' | ');
}
