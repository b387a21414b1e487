/** Arrays of NumPy: .npy, and .npz, which is a zip archive of them. Format: numpy/lib/format.py. */
import { EngineError } from '../errors.ts';
import type { ByteSource } from '../platform/platform.ts';
import { fromF16 } from '../util/f16.ts';
import { product } from '../util/math.ts';
import { wholeTensor } from './computed-checkpoint.ts';
import type { ComputedTensor } from './computed-checkpoint.ts';
import { readEntryBytes, readZip } from './zip.ts';

/** Most bytes of a file's arrays together; the 54 published voices have half a megabyte each. */
const MAX_BYTES = 256 * 2 ** 20;

const TYPES: ReadonlyMap<string, { readonly dtype: string; readonly bytes: number; readonly widen: (bytes: Uint8Array) => Float32Array }> =
  new Map([
    ['<f4', { dtype: 'F32', bytes: 4, widen: (b: Uint8Array) => new Float32Array(b.buffer, 0, b.byteLength / 4) }],
    ['<f2', { dtype: 'F16', bytes: 2, widen: (b: Uint8Array) => fromF16(new Uint16Array(b.buffer, 0, b.byteLength / 2)) }],
    ['<f8', { dtype: 'F64', bytes: 8, widen: (b: Uint8Array) => Float32Array.from(new Float64Array(b.buffer, 0, b.byteLength / 8)) }],
  ]); // prettier-ignore

/** Reads the arrays of an .npz by name; throws EngineError('invalid_model') with its path and what is wrong. */
export async function readNpz(path: string, source: ByteSource): Promise<ReadonlyMap<string, ComputedTensor>> {
  const arrays = new Map<string, ComputedTensor>();
  const entries = await readZip(path, source);
  const total = [...entries.values()].reduce((sum, { size }) => sum + size, 0);
  if (total > MAX_BYTES) throw new EngineError('invalid_model', `${path} holds ${total} bytes of arrays; at most ${MAX_BYTES} are read`);
  for (const entry of entries.values()) {
    if (!entry.name.endsWith('.npy')) throw new EngineError('invalid_model', `${path} holds ${entry.name}, which is no array of NumPy`);
    const name = entry.name.slice(0, -'.npy'.length);
    arrays.set(name, parseNpy(`${path}: ${entry.name}`, await readEntryBytes(path, source, entry, MAX_BYTES)));
  }
  return arrays;
}

const MAGIC = '\x93NUMPY';

/** Parses the bytes of an .npy file; `path` names it in messages. */
function parseNpy(path: string, bytes: Uint8Array): ComputedTensor {
  const refuse = (why: string): never => {
    throw new EngineError('invalid_model', `${path} ${why}`);
  };
  const magic = String.fromCharCode(...bytes.subarray(0, MAGIC.length));
  const major = bytes[6];
  if (bytes.length < 12 || magic !== MAGIC || major === undefined || major < 1 || major > 3) refuse('is no array of NumPy');
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const start = major === 1 ? 10 : 12;
  const data = start + (major === 1 ? view.getUint16(8, true) : view.getUint32(8, true));
  if (data > bytes.length) refuse('is cut short');
  const header = new TextDecoder('latin1').decode(bytes.subarray(start, Math.min(data, start + 4096)));
  const descr = /'descr':\s*'([\x20-\x26\x28-\x7e]{1,16})'/.exec(header)?.[1];
  const type = TYPES.get(descr ?? '');
  if (!type) return refuse(`holds ${descr ?? 'no plain numbers'}, expected <f4, <f2 or <f8`);
  if (/'fortran_order':\s*True/.test(header)) refuse('lies column by column; save it with numpy.ascontiguousarray');
  const sizes = /'shape':\s*\(([\d\s,]*)\)/.exec(header)?.[1];
  if (sizes === undefined) return refuse('has no shape');
  const shape = sizes.split(',').flatMap((size) => (size.trim() === '' ? [] : [Number(size)]));
  const expected = product(shape) * type.bytes;
  if (bytes.length - data !== expected) refuse(`[${shape.join(', ')}] ${descr} takes ${bytes.length - data} bytes, expected ${expected}`);
  return wholeTensor(type.dtype, shape, () => Promise.resolve(type.widen(bytes.slice(data))));
}
