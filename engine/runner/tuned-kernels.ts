/** Stores the autotuner's choices for the next start. */
import type { TunedKernel } from '../api.ts';
import type { Device } from '../gpu/device.ts';
import { Tuning } from '../gpu/tuning.ts';
import type { TuningOptions } from '../gpu/tuning.ts';
import { productCandidates } from '../ops/product-shapes.ts';
import { fingerprint } from '../util/fingerprint.ts';

/** Name of the file in the platform's cache. */
const FILE = 'kernels.json';

/** The chosen candidates by key of products, by adapter and kernels (keyOf). */
type Kept = Readonly<Record<string, Readonly<Record<string, string>>>>;

/** Options of measuring, and choices of another device of the same kind. */
export interface TuningStart extends Pick<TuningOptions, 'time' | 'now'> {
  readonly chosen?: Readonly<Record<string, string>>;
}

/** Starts autotuning on a device, and gives it the choices of earlier starts on the same adapter with the same kernels. */
export async function beginTuning(device: Device, { chosen, ...options }: TuningStart = {}): Promise<void> {
  const known = { ...(await readKept(device))[await keyOf(device)], ...chosen };
  device.tuning = new Tuning(device, { ...options, known });
}

/** Ends autotuning: logs and stores new choices, and returns all of them. */
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

/** The stored choices; none, with a warning in the log, where the file is damaged. */
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

/**
 * Key of what a measurement is valid for: the adapter, whose name ends with the driver's version under Dawn, every shader's text, and the
 * candidates.
 */
async function keyOf({ info, platform }: Device): Promise<string> {
  const { name, vendor, architecture } = info;
  const shaders = [...(await platform.shaders())].toSorted(([a], [b]) => (a < b ? -1 : 1));
  const text = JSON.stringify([shaders, productCandidates()]);
  return [vendor, architecture, name, fingerprint(text)].join(' | ');
}
