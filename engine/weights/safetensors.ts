/** Reads safetensors, one file or a set of shards, by byte ranges. Format: 8-byte header length, JSON header, raw little-endian data. */
import { EngineError } from '../errors.ts';
import { readJsonFile } from '../platform/json-file.ts';
import type { ByteSource, Platform } from '../platform/platform.ts';
import { fromBF16, fromF16 } from '../util/f16.ts';
import { F8_E4M3, F8_E5M2, F8_E8M0, fromF8 } from '../util/f8.ts';
import { describeForeignFile } from '../util/foreign-format.ts';
import type { WeightSchemes } from '../util/foreign-format.ts';
import { describe, isObject, parseJsonObject } from '../util/json.ts';
import type { JsonLimits } from '../util/json.ts';
import { loneSafetensors } from '../util/lone-safetensors.ts';
import { product } from '../util/math.ts';
import type { Range } from '../util/math.ts';
import { finite, missingTensor } from './checkpoint.ts';
import type { Checkpoint, TensorInfo } from './checkpoint.ts';
import { withFp8Scales } from './fp8-checkpoint.ts';
import { withIntegers } from './integers/integer-checkpoint.ts';
import { describeMissing } from './missing.ts';
import { MODEL_WEIGHTS } from './model-folder.ts';
import { withMxfp4Blocks } from './mxfp4-checkpoint.ts';

interface Entry extends TensorInfo {
  readonly source: ByteSource;
  readonly path: string;
  readonly start: number;
  readonly end: number;
}

/** Bytes of an element, by the format's dtype names. Some are no weights: they may be in a file, unread. */
const ELEMENT_BYTES: ReadonlyMap<unknown, number> = new Map([
  ['F64', 8], ['F32', 4], ['F16', 2], ['BF16', 2], ['I64', 8], ['I32', 4], ['I16', 2], ['I8', 1], ['U64', 8], ['U32', 4], ['U16', 2], ['U8', 1], ['BOOL', 1],
  ['F8_E4M3', 1], ['F8_E5M2', 1], ['F8_E8M0', 1], ['C64', 8],
]); // prettier-ignore

/**
 * Limits of a header, which is an object of entries with lists. They allow 52,000 tensors, which take half a second to parse. Published shards
 * have hundreds, single files thousands, and those of experts in GPTQ tens of thousands: four for each matrix.
 */
const HEADER_LIMITS: JsonLimits = { bytes: 64 * 2 ** 20, depth: 3, values: 2 ** 19, names: 2 ** 18 };

/**
 * Opens `file` (default model.safetensors, or else the folder's only one) of a folder, or the shards that its `.index.json` names. Quantised weights are read with their
 * scales; `schemes` is what config.json says of them. Throws EngineError('invalid_model') with the file and what is wrong with it.
 */
export async function openSafetensors(
  platform: Platform,
  folder: string,
  file = MODEL_WEIGHTS,
  schemes: WeightSchemes = {},
): Promise<Checkpoint> {
  const entries = new Map<string, Entry>();
  const sources: ByteSource[] = [];
  try {
    for (const name of await shardsOf(platform, folder, file)) {
      const path = platform.join(folder, name);
      const source = await platform.open(path);
      sources.push(source);
      await readHeader(path, source, entries);
    }
    const path = platform.join(folder, file);
    const stored = await withIntegers(new SafetensorsCheckpoint(entries, sources), path, schemes.integers);
    return withMxfp4Blocks(withFp8Scales(stored, path, schemes.fp8), path);
  } catch (error) {
    await Promise.all(sources.map((source) => source.close()));
    throw error;
  }
}

class SafetensorsCheckpoint implements Checkpoint {
  readonly #entries: ReadonlyMap<string, Entry>;
  readonly #sources: readonly ByteSource[];

  constructor(entries: ReadonlyMap<string, Entry>, sources: readonly ByteSource[]) {
    this.#entries = entries;
    this.#sources = sources;
  }

  names(): readonly string[] {
    return [...this.#entries.keys()];
  }

  tensor(name: string): TensorInfo | undefined {
    return this.#entries.get(name);
  }

  async read(name: string, elements?: Range): Promise<Float32Array> {
    const entry = this.#entries.get(name);
    if (!entry) throw missingTensor(name);
    const widen = WIDEN.get(entry.dtype);
    if (!widen) throw new EngineError('invalid_model', `${entry.path}: tensor ${name} has dtype ${entry.dtype}${noteOn(entry.dtype)}, expected F32, F16, BF16, F64 or FP8`); // prettier-ignore
    const size = ELEMENT_BYTES.get(entry.dtype)!;
    const { from, to } = elements ?? { from: 0, to: product(entry.shape) };
    return finite(widen(await entry.source.read(entry.start + from * size, (to - from) * size)), entry.path, name, from);
  }

  async stored(name: string, { from, to }: Range, into?: Uint8Array): Promise<Uint8Array> {
    const entry = this.#entries.get(name);
    if (!entry) throw missingTensor(name);
    const size = ELEMENT_BYTES.get(entry.dtype)!;
    return entry.source.read(entry.start + from * size, (to - from) * size, into);
  }

  /** Reads a tensor of I32; throws EngineError('invalid_model') for other dtypes. */
  async readIds(name: string): Promise<Int32Array> {
    const entry = this.#entries.get(name);
    if (entry?.dtype !== 'I32') throw new EngineError('invalid_model', `tensor ${name} is ${entry?.dtype ?? 'missing'}, expected I32`);
    const { buffer, byteOffset, byteLength } = await entry.source.read(entry.start, entry.end - entry.start);
    return new Int32Array(buffer, byteOffset, byteLength / 4);
  }

  async close(): Promise<void> {
    await Promise.all(this.#sources.map((source) => source.close()));
  }
}

const WIDEN: ReadonlyMap<string, (bytes: Uint8Array) => Float32Array> = new Map([
  ['F64', ({ buffer, byteOffset, byteLength }) => Float32Array.from(new Float64Array(buffer, byteOffset, byteLength / 8))],
  ['F32', ({ buffer, byteOffset, byteLength }) => new Float32Array(buffer, byteOffset, byteLength / 4)],
  ['F16', ({ buffer, byteOffset, byteLength }) => fromF16(new Uint16Array(buffer, byteOffset, byteLength / 2))],
  ['BF16', ({ buffer, byteOffset, byteLength }) => fromBF16(new Uint16Array(buffer, byteOffset, byteLength / 2))],
  ['F8_E4M3', (bytes) => fromF8(bytes, F8_E4M3)],
  ['F8_E5M2', (bytes) => fromF8(bytes, F8_E5M2)],
  ['F8_E8M0', (bytes) => fromF8(bytes, F8_E8M0)],
]);

function noteOn(dtype: string): string {
  return /^[IU]|BOOL/.test(dtype) ? ' (integers are no weights, unless config.json says how they are quantised)' : '';
}

/**
 * Names of a checkpoint's files in its folder; throws EngineError('invalid_model') when there are none, or when the index names files
 * elsewhere.
 */
async function shardsOf(platform: Platform, folder: string, file: string): Promise<readonly string[]> {
  const single = platform.join(folder, file);
  if (await platform.exists(single)) return [file];
  const index = platform.join(folder, `${file}.index.json`);
  if (!(await platform.exists(index))) {
    const lone = file === MODEL_WEIGHTS ? loneSafetensors((await platform.list?.(folder)) ?? []) : undefined;
    if (lone !== undefined) return [lone];
    throw new EngineError('invalid_model', await describeMissing(platform, folder, single));
  }
  const map = (await readJsonFile(platform, index))['weight_map'];
  if (!isObject(map)) throw new EngineError('invalid_model', `${index}: weight_map is ${describe(map)}, expected an object`);
  const files = [...new Set(Object.values(map))];
  const wrong = files.find((name) => typeof name !== 'string' || !PLAIN_NAME.test(name));
  if (wrong !== undefined) throw new EngineError('invalid_model', `${index} names the file ${describe(wrong)}, expected a .safetensors file of its own folder`); // prettier-ignore
  if (files.length > MAX_SHARDS) throw new EngineError('invalid_model', `${index} names ${files.length} files; at most ${MAX_SHARDS} are read`); // prettier-ignore
  return files as string[];
}

/** A file name that is no path: neither folders, nor drives, nor control characters. */
const PLAIN_NAME = /^[^\\/:\p{Cc}]+\.safetensors$/u;
/** Published models have up to 200 shards; each holds a file open. */
const MAX_SHARDS = 512;

/** Longest name of a tensor, since messages show it. */
const MAX_NAME = 512;

async function readHeader(path: string, source: ByteSource, entries: Map<string, Entry>): Promise<void> {
  const broken = (why: string): never => {
    throw new EngineError('invalid_model', `${path} is not a safetensors file: ${why}`);
  };
  const head = await source.read(0, Math.min(8, source.size));
  const foreign = describeForeignFile('', head);
  if (foreign !== undefined) throw new EngineError('invalid_model', `${path} ${foreign}`);
  if (source.size < 8) broken(`it has ${source.size} bytes`);
  const length = Number(new DataView(head.buffer, head.byteOffset, 8).getBigUint64(0, true));
  if (8 + length > source.size) broken(`the header claims ${length} bytes of ${source.size}`);
  if (length > HEADER_LIMITS.bytes) broken(`the header claims ${length} bytes; at most ${HEADER_LIMITS.bytes} are read`);
  const header = parseJsonObject(`the header of ${path}`, await source.read(8, length), HEADER_LIMITS);
  const data = 8 + length;
  const found: Entry[] = [];
  for (const [name, value] of Object.entries(header)) {
    if (name === '__metadata__') continue;
    if (name.length > MAX_NAME) broken(`a tensor's name has ${name.length} characters`);
    if (/\p{Cc}/u.test(name)) broken(`the name of a tensor is no text: ${describe(name)}`);
    const entry = parseEntry(value, data);
    if (typeof entry === 'string') broken(`tensor ${name} ${entry}`);
    if (entries.has(name)) broken(`tensor ${name} is in two shards`);
    found.push({ ...(entry as Omit<Entry, 'source' | 'path'>), source, path });
    entries.set(name, found.at(-1)!);
  }
  checkCover(found, data, source.size, broken);
}

/** Parses a header's entry: its metadata and byte range in the file, or what is wrong with it. */
function parseEntry(value: unknown, data: number): Omit<Entry, 'source' | 'path'> | string {
  if (!isObject(value)) return `is ${describe(value)}, expected an object`;
  const { dtype, shape, data_offsets: offsets } = value;
  const bytes = ELEMENT_BYTES.get(dtype);
  const has = (name: string, field: unknown): string => (field === undefined ? `has no ${name}` : `has ${name} ${describe(field)}`);
  if (bytes === undefined) return has('dtype', dtype);
  if (!isSizes(shape)) return `${has('shape', shape)}, expected a list of sizes`;
  if (!isSizes(offsets) || offsets.length !== 2) return `${has('data_offsets', offsets)}, expected two positions`;
  const [from, to] = offsets as [number, number];
  if (to - from !== product(shape) * bytes) return `[${shape.join(', ')}] ${String(dtype)} lies at ${from}..${to}, expected ${product(shape) * bytes} bytes`; // prettier-ignore
  return { dtype: String(dtype), shape, start: data + from, end: data + to };
}

function isSizes(value: unknown): value is readonly number[] {
  return Array.isArray(value) && value.every((size) => Number.isSafeInteger(size) && size >= 0);
}

/** Checks the format's rule: tensors lie one after the other and fill the file, so that nothing is read twice and nothing is hidden. */
function checkCover(entries: readonly Entry[], data: number, size: number, broken: (why: string) => never): void {
  let at = data;
  for (const { start, end } of [...entries].sort((a, b) => a.start - b.start || a.end - b.end)) {
    if (end > size) broken(`a tensor ends at byte ${end} of ${size} (file cut short?)`);
    if (start !== at) broken(`its tensors ${start < at ? 'overlap' : 'leave a gap'} at byte ${Math.min(start, at)}`);
    at = end;
  }
  if (at !== size) broken(`its tensors end at byte ${at} of ${size}`);
}
