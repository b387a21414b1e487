/** The container of CTranslate2's weights (faster-whisper): named variables one after the other, little-endian and unaligned. */
import { EngineError } from '../../errors.ts';
import type { ByteSource } from '../../platform/platform.ts';
import { fromBF16, fromF16 } from '../../util/f16.ts';
import { product } from '../../util/math.ts';
import type { Range } from '../../util/math.ts';
import { ByteCursor, ReadAhead } from '../byte-cursor.ts';

/** A variable and its place in the file. */
export interface Variable {
  readonly dtype: VariableType;
  /** Shape; [] is a scalar. */
  readonly shape: readonly number[];
  /** Offset of the first byte. */
  readonly start: number;
}

export type VariableType = keyof typeof TYPES;

export interface ModelBin {
  /** The converter's name of the model, e.g. `WhisperSpec`. */
  readonly spec: string;
  readonly revision: number;
  readonly variables: ReadonlyMap<string, Variable>;
  /** Aliases: other name -> name of a variable. */
  readonly aliases: ReadonlyMap<string, string>;
}

/** Bytes and reader of an element, by the format's type names. */
const TYPES = {
  f32: { bytes: 4, widen: (b: Uint8Array) => new Float32Array(b.buffer, b.byteOffset, b.byteLength / 4) },
  i8: { bytes: 1, widen: (b: Uint8Array) => Float32Array.from(new Int8Array(b.buffer, b.byteOffset, b.byteLength)) },
  i16: { bytes: 2, widen: (b: Uint8Array) => Float32Array.from(new Int16Array(b.buffer, b.byteOffset, b.byteLength / 2)) },
  i32: { bytes: 4, widen: (b: Uint8Array) => Float32Array.from(new Int32Array(b.buffer, b.byteOffset, b.byteLength / 4)) },
  f16: { bytes: 2, widen: (b: Uint8Array) => fromF16(new Uint16Array(b.buffer, b.byteOffset, b.byteLength / 2)) },
  bf16: { bytes: 2, widen: (b: Uint8Array) => fromBF16(new Uint16Array(b.buffer, b.byteOffset, b.byteLength / 2)) },
} as const;

/** Type names in the order of their ids. */
const TYPE_IDS: readonly VariableType[] = ['f32', 'i8', 'i16', 'i32', 'f16', 'bf16'];
/** Files before version 4 give an element's size instead of its type. */
const TYPE_BY_SIZE: ReadonlyMap<number, VariableType> = new Map([[4, 'f32'], [1, 'i8'], [2, 'i16']]); // prettier-ignore

/** Longest name, since messages show it; a spec and a variable's name have some 60 characters. */
const MAX_NAME = 512;
const MAX_RANK = 8;
/** Most variables; large-v3 with int8 weights has 2,900. */
const MAX_VARIABLES = 1 << 16;

/**
 * Reads where each variable lies, a few kilobytes at a time; throws EngineError('invalid_model') with the file and what is wrong with it.
 */
export async function readModelBin(path: string, source: ByteSource): Promise<ModelBin> {
  const cursor = new ByteCursor(path, new ReadAhead(source), 0, source.size);
  const version = await u32(cursor, 'the version');
  if (version < 2 || version > 6) throw broken(path, `its version is ${version}, expected 2 to 6`);
  const spec = await text(cursor, "the model's kind");
  const revision = await u32(cursor, 'the revision');
  const count = await u32(cursor, 'the number of variables');
  if (count > MAX_VARIABLES) throw broken(path, `it claims ${count} variables; at most ${MAX_VARIABLES} are read`);
  const variables = new Map<string, Variable>();
  for (let i = 0; i < count; i++) {
    const name = await text(cursor, `the name of variable ${i}`);
    if (variables.has(name)) throw broken(path, `the variable ${name} comes twice`);
    variables.set(name, await readVariable(cursor, name, version));
  }
  const aliases = version >= 3 ? await readAliases(cursor, variables) : new Map<string, string>();
  if (cursor.left > 0) throw broken(path, `${cursor.left} bytes follow its last variable`);
  return { spec, revision, variables, aliases };
}

/** Reads elements [from, to) of a variable as stored, widened to f32. */
export async function readStored(source: ByteSource, variable: Variable, elements: Range): Promise<Float32Array> {
  return TYPES[variable.dtype].widen(aligned(await storedBytes(source, variable, elements)));
}

/** Reads the bytes of elements [from, to). */
export function storedBytes(source: ByteSource, { dtype, start }: Variable, { from, to }: Range): Promise<Uint8Array> {
  const { bytes } = TYPES[dtype];
  return source.read(start + from * bytes, (to - from) * bytes);
}

/** Copies bytes to an aligned buffer, as typed arrays need: positions in the file are not aligned. */
function aligned(bytes: Uint8Array): Uint8Array {
  return bytes.byteOffset % 4 === 0 ? bytes : bytes.slice();
}

async function readVariable(cursor: ByteCursor, name: string, version: number): Promise<Variable> {
  const what = `the variable ${name}`;
  const rank = (await cursor.view(1, what)).getUint8(0);
  if (rank > MAX_RANK) throw broken(cursor.path, `${what} has ${rank} dimensions`);
  const dimensions = await cursor.view(4 * rank, what);
  const shape = Array.from({ length: rank }, (_, i) => dimensions.getUint32(4 * i, true));
  const type = await cursor.view(5, what);
  const id = type.getUint8(0);
  const dtype = version >= 4 ? TYPE_IDS[id] : TYPE_BY_SIZE.get(id);
  if (dtype === undefined) throw broken(cursor.path, `${what} has the unknown type ${id}`);
  const bytes = type.getUint32(1, true) * (version >= 4 ? 1 : id);
  const expected = product(shape) * TYPES[dtype].bytes;
  if (bytes !== expected) throw broken(cursor.path, `${what} [${shape.join(', ')}] ${dtype} takes ${bytes} bytes, expected ${expected}`);
  const start = cursor.position;
  cursor.skip(bytes, what);
  return { dtype, shape, start };
}

async function readAliases(cursor: ByteCursor, variables: ReadonlyMap<string, Variable>): Promise<Map<string, string>> {
  const aliases = new Map<string, string>();
  const count = await u32(cursor, 'the number of aliases');
  if (count > MAX_VARIABLES) throw broken(cursor.path, `it claims ${count} aliases; at most ${MAX_VARIABLES} are read`);
  for (let i = 0; i < count; i++) {
    const alias = await text(cursor, `alias ${i}`);
    const name = await text(cursor, `the name behind ${alias}`);
    if (!variables.has(name)) throw broken(cursor.path, `${alias} stands for ${name}, which it does not have`);
    aliases.set(alias, name);
  }
  return aliases;
}

async function u32(cursor: ByteCursor, what: string): Promise<number> {
  return (await cursor.view(4, what)).getUint32(0, true);
}

/** Reads a string: a length that counts the closing NUL, then the characters. */
async function text(cursor: ByteCursor, what: string): Promise<string> {
  const length = (await cursor.view(2, what)).getUint16(0, true);
  if (length < 1 || length > MAX_NAME) throw broken(cursor.path, `${what} has ${length} bytes, expected 1 to ${MAX_NAME}`);
  const bytes = await cursor.bytes(length, what);
  const name = new TextDecoder().decode(bytes.subarray(0, length - 1));
  if (bytes[length - 1] !== 0 || /[\p{Cc}\ufffd]/u.test(name)) throw broken(cursor.path, `${what} is no text`);
  return name;
}

function broken(path: string, why: string): EngineError {
  return new EngineError('invalid_model', `${path} is not a CTranslate2 model: ${why}`);
}
