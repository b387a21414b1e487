/** Reads files of torch.save (.pth, .pt): a zip archive with data.pkl, which describes the tensors, and their storages in data/. */
import { EngineError } from '../../errors.ts';
import type { ByteSource } from '../../platform/platform.ts';
import { fromBF16, fromF16 } from '../../util/f16.ts';
import { product } from '../../util/math.ts';
import type { Range } from '../../util/math.ts';
import type { ComputedTensor } from '../computed-checkpoint.ts';
import { dataStart, readEntryBytes, readZip } from '../zip.ts';
import type { ZipEntry } from '../zip.ts';
import { MAX_PICKLE_BYTES, readPickle } from './pickle.ts';
import type { Pickled, PickledTensor } from './pickle.ts';

/** An open file: what its pickle describes, and a reader of its tensors. */
export interface TorchFile {
  readonly root: Pickled;
  tensor(name: string, described: PickledTensor): Promise<ComputedTensor>;
}

/** Storage types of weights; the others hold ids. */
const FLOATS: ReadonlyMap<string, { readonly dtype: string; readonly bytes: number; readonly widen: (bytes: Uint8Array) => Float32Array }> =
  new Map([
    ['FloatStorage', { dtype: 'F32', bytes: 4, widen: ({ buffer, byteOffset: at, byteLength: n }) => new Float32Array(buffer, at, n / 4) }],
    ['HalfStorage', { dtype: 'F16', bytes: 2, widen: ({ buffer, byteOffset: at, byteLength: n }) => fromF16(new Uint16Array(buffer, at, n / 2)) }],
    ['BFloat16Storage', { dtype: 'BF16', bytes: 2, widen: ({ buffer, byteOffset: at, byteLength: n }) => fromBF16(new Uint16Array(buffer, at, n / 2)) }],
    ['DoubleStorage', { dtype: 'F64', bytes: 8, widen: ({ buffer, byteOffset: at, byteLength: n }) => Float32Array.from(new Float64Array(buffer, at, n / 8)) }],
  ]); // prettier-ignore

/** First byte of a bare pickle; an archive begins with P. */
const PROTO = 0x80;

/** Whether a storage type is one of weights. */
export function isFloat({ storage }: PickledTensor): boolean {
  return FLOATS.has(storage.type);
}

/** Reads an archive's pickle; throws EngineError('invalid_model') with its path and what is wrong. */
export async function openTorchFile(path: string, source: ByteSource): Promise<TorchFile> {
  const [first] = await source.read(0, Math.min(1, source.size));
  if (first === PROTO) throw new EngineError('invalid_model', `${path} is in the format that torch.save wrote before PyTorch 1.6; load it with torch.load and save it again`); // prettier-ignore
  const entries = await readZip(path, source);
  const pickle = [...entries.values()].find(({ name }) => /^([^/]+\/)?data\.pkl$/.test(name));
  if (!pickle) throw new EngineError('invalid_model', `${path} holds no data.pkl, so torch.save did not write it`);
  const folder = pickle.name.slice(0, -'data.pkl'.length);
  const order = entries.get(`${folder}byteorder`);
  const isBig = order && new TextDecoder().decode(await readEntryBytes(path, source, order, 64)).trim() === 'big';
  if (isBig) throw new EngineError('invalid_model', `${path} was written on a big-endian machine, which is not read`);
  const root = readPickle(path, await readEntryBytes(path, source, pickle, MAX_PICKLE_BYTES));
  return {
    root,
    tensor: async (name, described) => {
      const { key } = described.storage;
      const entry = entries.get(`${folder}data/${key}`);
      if (!entry) throw new EngineError('invalid_model', `${path} lacks data/${key}, which tensor ${name} lies in`);
      return tensorIn(path, source, entry, { name, described });
    },
  };
}

async function tensorIn(
  path: string,
  source: ByteSource,
  entry: ZipEntry,
  { name, described }: { name: string; described: PickledTensor },
): Promise<ComputedTensor> {
  // prettier-ignore
  const { storage, offset, shape, strides } = described;
  const type = FLOATS.get(storage.type);
  const refuse = (why: string): never => {
    throw new EngineError('invalid_model', `${path}: tensor ${name} ${why}`);
  };
  if (!type) return refuse(`is a ${storage.type}, expected floating point numbers`);
  if (!entry.stored) refuse('is packed; torch stores tensors as they are');
  if (entry.size !== storage.elements * type.bytes) refuse(`lies in ${entry.size} bytes, expected ${storage.elements * type.bytes}`);
  const last = shape.reduce((sum, size, axis) => sum + (size - 1) * strides[axis]!, offset);
  if (product(shape) > 0 && !(last < storage.elements)) refuse(`[${shape.join(', ')}] reaches element ${last} of ${storage.elements}`);
  // Strides of 0 would let a few bytes become any number of values.
  if (product(shape) > storage.elements) refuse(`[${shape.join(', ')}] has more values than the ${storage.elements} stored`);
  const start = await dataStart(path, source, entry);
  const stored = (from: number, to: number): Promise<Uint8Array> => source.read(start + from * type.bytes, (to - from) * type.bytes);
  const read = async (from: number, to: number): Promise<Float32Array> => {
    const bytes = await stored(from, to);
    return type.widen(bytes.byteOffset % type.bytes === 0 ? bytes : bytes.slice());
  };
  if (isContiguous(shape, strides)) {
    const { dtype } = type;
    return {
      dtype,
      shape,
      read: ({ from, to }) => read(offset + from, offset + to),
      stored: ({ from, to }) => stored(offset + from, offset + to),
    };
  }
  return { dtype: type.dtype, shape, read: async (range) => gather(await read(0, storage.elements), described, range) };
}

function isContiguous(shape: readonly number[], strides: readonly number[]): boolean {
  return shape.every((size, axis) => size === 1 || strides[axis] === product(shape.slice(axis + 1)));
}

/** Reads a tensor that lies in its storage in another order, such as a transposed one. */
function gather(stored: Float32Array, { offset, shape, strides }: PickledTensor, { from, to }: Range): Float32Array {
  return Float32Array.from({ length: to - from }, (_, i) => {
    let at = offset;
    let rest = from + i;
    for (let axis = shape.length - 1; axis >= 0; axis--) {
      at += (rest % shape[axis]!) * strides[axis]!;
      rest = Math.floor(rest / shape[axis]!);
    }
    return stored[at]!;
  });
}
