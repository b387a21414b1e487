/**
 * Parses the header of a GGUF file (ggml's docs/gguf.md, versions 2 and 3): metadata by key, and the place of each tensor. The file is not
 * trusted: every count, length and offset is checked before it is used. `@huggingface/gguf` was considered (0.4.6): it reads URLs,
 * truncates strings at the end of what was fetched, and checks neither types nor places of tensors.
 */
import { EngineError } from '../../errors.ts';
import type { ByteSource } from '../../platform/platform.ts';
import { quoted } from '../../util/json.ts';
import { alignUp, product } from '../../util/math.ts';
import type { TensorInfo } from '../checkpoint.ts';
import { STORAGE_TYPES, OTHER_TYPES } from './storage-types.ts';
import type { StorageType } from './storage-types.ts';

/** A metadata value; integers beyond 2^53 are bigints. */
export type GgufValue = number | bigint | boolean | string | readonly GgufValue[];

/** A tensor's place in its file. */
export interface GgufTensor extends TensorInfo {
  readonly name: string;
  readonly type: StorageType;
  /** Offset of the first byte, from the start of the file. */
  readonly start: number;
  readonly bytes: number;
}

export interface GgufHeader {
  readonly metadata: ReadonlyMap<string, GgufValue>;
  readonly tensors: readonly GgufTensor[];
}

/**
 * Limits of a header. The largest vocabularies take 15 MB and 1.5 million list values; the largest models have 3,000 tensors per file, with
 * names of 60 characters.
 */
export const HEADER_LIMITS = {
  bytes: 100 * 2 ** 20,
  keys: 2 ** 12,
  values: 2 ** 22,
  tensors: 2 ** 16,
  key: 256,
  dimensions: 4,
  alignment: 2 ** 16,
} as const;

/** "GGUF" */
export const GGUF_MAGIC = [0x47, 0x47, 0x55, 0x46] as const;

/** Bytes of the first read; most headers end within a few megabytes. */
const FIRST_READ = 2 ** 20;

/** Reads and checks a file's header; throws EngineError('invalid_model') with the path and what is wrong. */
export async function readHeader(path: string, source: ByteSource): Promise<GgufHeader> {
  const most = Math.min(source.size, HEADER_LIMITS.bytes);
  for (let length = Math.min(FIRST_READ, most); ; length = Math.min(length * 4, most)) {
    const head = await source.read(0, length);
    try {
      return parseHeader(head, source.size);
    } catch (error) {
      if (error instanceof BrokenHeader)
        throw new EngineError('invalid_model', `${path} is not a GGUF file that can be read: ${error.message}`);
      if (!(error instanceof EndOfBytes)) throw error;
      if (length < most) continue;
      const why =
        most < source.size
          ? `its header has more than ${HEADER_LIMITS.bytes} bytes`
          : `it ends within its header, at byte ${source.size} (file cut short?)`;
      throw new EngineError('invalid_model', `${path} is not a GGUF file that can be read: ${why}`);
    }
  }
}

class BrokenHeader extends Error {}
class EndOfBytes extends Error {}

function refuse(why: string): never {
  throw new BrokenHeader(why);
}

function parseHeader(bytes: Uint8Array, fileSize: number): GgufHeader {
  const reader = new Reader(bytes);
  if (!GGUF_MAGIC.every((byte) => reader.number('u8') === byte)) refuse('it does not begin with "GGUF"');
  const version = Number(reader.number('u32'));
  if (version !== 2 && version !== 3) refuse(describeVersion(version));
  const tensorCount = reader.count('tensors', HEADER_LIMITS.tensors);
  const keyCount = reader.count('metadata keys', HEADER_LIMITS.keys);
  const metadata = new Map<string, GgufValue>();
  for (let i = 0; i < keyCount; i++) {
    const key = reader.name('a metadata key');
    if (metadata.has(key)) refuse(`its metadata has ${quote(key)} twice`);
    metadata.set(key, reader.value(key));
  }
  const alignment = metadata.get('general.alignment') ?? 32;
  if (typeof alignment !== 'number' || alignment < 1 || alignment > HEADER_LIMITS.alignment || !Number.isInteger(Math.log2(alignment))) {
    refuse(`general.alignment is ${describeValue(alignment)}, expected a power of two up to ${HEADER_LIMITS.alignment}`);
  }
  const found = Array.from({ length: tensorCount }, () => readTensor(reader));
  const data = alignUp(reader.at, alignment);
  const tensors = found.map((tensor) => ({ ...tensor, start: data + tensor.start }));
  checkCover(tensors, data, alignment, fileSize);
  return { metadata, tensors };
}

function describeVersion(version: number): string {
  if (version === 1) return 'it is of version 1, which llama.cpp has not written since 2023; versions 2 and 3 are read';
  if (version > 0 && version % 2 ** 16 === 0) return 'its numbers are big-endian; only little-endian files are read';
  return `it is of version ${version}; versions 2 and 3 are read`;
}

/** Reads a tensor's entry; its `start` counts from the first byte after the header. */
function readTensor(reader: Reader): GgufTensor {
  const name = reader.name('a tensor');
  const dimensions = Number(reader.number('u32'));
  if (dimensions < 1 || dimensions > HEADER_LIMITS.dimensions) refuse(`tensor ${quote(name)} has ${dimensions} dimensions, expected 1 to ${HEADER_LIMITS.dimensions}`); // prettier-ignore
  const columnsFirst = Array.from({ length: dimensions }, () => reader.number('u64'));
  const id = Number(reader.number('u32'));
  const start = reader.number('u64');
  const type = STORAGE_TYPES.get(id);
  if (!type) refuse(`tensor ${quote(name)} ${describeType(id)}`);
  const shape = columnsFirst.reverse() as number[];
  if (!shape.every((size) => Number.isSafeInteger(size) && size > 0) || product(shape) > 2 ** 48)
    refuse(`tensor ${quote(name)} has shape [${shape.join(', ')}]`);
  if (shape.at(-1)! % type.values !== 0)
    refuse(`tensor ${quote(name)} is ${type.name} with rows of ${shape.at(-1)}, expected a multiple of ${type.values}`);
  if (typeof start !== 'number') refuse(`tensor ${quote(name)} lies at byte ${start}`);
  return { name, dtype: type.name, blocks: type.blocks, shape, type, start, bytes: (product(shape) / type.values) * type.bytes };
}

function describeType(id: number): string {
  const name = OTHER_TYPES.get(id);
  if (name === undefined) return `has the unknown type ${id}`;
  if (/^[IF]\d+$/.test(name)) return `is ${name}, which is no type of weights`;
  const readable = [...STORAGE_TYPES.values()].map((type) => type.name).join(', ');
  return `is quantised as ${name}, which is not read; take another file of the model, such as Q4_K_M or Q8_0 (read are ${readable})`;
}

/**
 * Checks the format's rule: tensors lie one after the other at multiples of the alignment and fill the file; the last padding may be
 * missing.
 */
function checkCover(tensors: readonly GgufTensor[], data: number, alignment: number, fileSize: number): void {
  const names = new Set<string>();
  let at = data;
  let end = data;
  for (const { name, start, bytes } of [...tensors].sort((a, b) => a.start - b.start)) {
    if (names.has(name)) refuse(`it has tensor ${quote(name)} twice`);
    names.add(name);
    if (start !== at)
      refuse(`tensor ${quote(name)} ${start < at ? 'overlaps the one before' : 'leaves a gap'}: it lies at byte ${start}, expected ${at}`);
    end = start + bytes;
    if (end > fileSize) refuse(`tensor ${quote(name)} ends at byte ${end} of ${fileSize} (file cut short?)`);
    at = alignUp(end, alignment);
  }
  if (fileSize > at) refuse(`its tensors end at byte ${end} of ${fileSize}`);
}

/** A metadata value as messages show it. */
export function describeValue(value: GgufValue): string {
  if (Array.isArray(value)) return `a list of ${value.length}`;
  return typeof value === 'string' ? quote(value) : String(value);
}

/** A string as messages show it, quoted and cut. */
function quote(name: string): string {
  return quoted(name.length > 80 ? `${name.slice(0, 80)}…` : name);
}

type NumberType = 'u8' | 'i8' | 'u16' | 'i16' | 'u32' | 'i32' | 'f32' | 'u64' | 'i64' | 'f64';

/** Metadata types by their id in a file. */
const VALUE_TYPES: readonly (NumberType | 'bool' | 'string' | 'list')[] = [
  'u8', 'i8', 'u16', 'i16', 'u32', 'i32', 'f32', 'bool', 'string', 'list', 'u64', 'i64', 'f64',
]; // prettier-ignore

const BYTES: Readonly<Record<NumberType | 'bool' | 'string', number>> = {
  u8: 1, i8: 1, bool: 1, u16: 2, i16: 2, u32: 4, i32: 4, f32: 4, u64: 8, i64: 8, f64: 8, string: 8,
}; // prettier-ignore

/** Reads values from position `at` and advances it; throws EndOfBytes where the bytes end. */
class Reader {
  at = 0;
  #values = 0;
  readonly #bytes: Uint8Array;
  readonly #view: DataView;
  // A token may begin with U+FEFF.
  readonly #text = new TextDecoder('utf-8', { ignoreBOM: true });

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  /** Advances by `length` bytes; returns the position before them. */
  #take(length: number): number {
    const from = this.at;
    if (length > this.#bytes.length - from) throw new EndOfBytes();
    this.at += length;
    return from;
  }

  number(type: NumberType): number | bigint {
    const at = this.#take(BYTES[type]);
    const view = this.#view;
    if (type === 'u8') return view.getUint8(at);
    if (type === 'i8') return view.getInt8(at);
    if (type === 'u16') return view.getUint16(at, true);
    if (type === 'i16') return view.getInt16(at, true);
    if (type === 'u32') return view.getUint32(at, true);
    if (type === 'i32') return view.getInt32(at, true);
    if (type === 'f32') return view.getFloat32(at, true);
    if (type === 'f64') return view.getFloat64(at, true);
    const long = type === 'u64' ? view.getBigUint64(at, true) : view.getBigInt64(at, true);
    const short = Number(long);
    return Number.isSafeInteger(short) ? short : long;
  }

  count(what: string, most: number): number {
    const count = this.number('u64');
    if (typeof count !== 'number' || count > most) refuse(`it claims ${count} ${what}; at most ${most} are read`);
    return count;
  }

  string(): string {
    const length = this.count('bytes of a text', HEADER_LIMITS.bytes);
    const from = this.#take(length);
    return this.#text.decode(this.#bytes.subarray(from, from + length));
  }

  /** Reads the name of a key or tensor, which must be short, because messages show it. */
  name(what: string): string {
    const name = this.string();
    if (/\p{Cc}/u.test(name)) refuse(`the name of ${what} is no text: ${quote(name)}`);
    return name.length > 0 && name.length <= HEADER_LIMITS.key ? name : refuse(`the name of ${what} has ${name.length} characters`);
  }

  value(key: string): GgufValue {
    const type = this.#type(key);
    if (type !== 'list') return this.#single(type, key);
    const element = this.#type(key);
    if (element === 'list') refuse(`${quote(key)} is a list of lists`);
    const length = this.count(`values of ${quote(key)}`, HEADER_LIMITS.values - this.#values);
    this.#values += length;
    // Allocate only once it is known that as many values can follow.
    if (length * BYTES[element] > this.#bytes.length - this.at) throw new EndOfBytes();
    return Array.from({ length }, () => this.#single(element, key));
  }

  #type(key: string): NumberType | 'bool' | 'string' | 'list' {
    const id = Number(this.number('u32'));
    return VALUE_TYPES[id] ?? refuse(`${quote(key)} has the unknown type ${id}`);
  }

  #single(type: NumberType | 'bool' | 'string', key: string): GgufValue {
    if (type === 'string') return this.string();
    if (type !== 'bool') return this.number(type);
    const byte = this.number('u8');
    return byte === 0 || byte === 1 ? byte === 1 : refuse(`${quote(key)} is the truth value ${byte}, expected 0 or 1`);
  }
}
