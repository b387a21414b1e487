/** Reading safetensors: one file or a sharded set, by ranges. Format: 8-byte header length, JSON header, raw little-endian data. */
import { EngineError } from '../errors.ts';
import type { ByteSource, Platform } from '../platform/platform.ts';
import { fromBF16, fromF16 } from '../util/f16.ts';
import { product } from '../util/math.ts';
import type { Range } from '../util/math.ts';

interface Entry {
  readonly source: ByteSource;
  readonly path: string;
  readonly dtype: string;
  readonly shape: readonly number[];
  readonly start: number;
  readonly end: number;
}

const ELEMENT_BYTES: ReadonlyMap<string, number> = new Map([
  ['F64', 8], ['F32', 4], ['F16', 2], ['BF16', 2], ['I64', 8], ['I32', 4], ['U8', 1], ['I8', 1],
]); // prettier-ignore

/** Headers above this size are refused: a broken length must not allocate memory. */
const MAX_HEADER_BYTES = 100 * 2 ** 20;

/** The tensors of a checkpoint folder by name. */
export class Checkpoint {
  readonly #entries: ReadonlyMap<string, Entry>;
  readonly #sources: readonly ByteSource[];

  private constructor(entries: ReadonlyMap<string, Entry>, sources: readonly ByteSource[]) {
    this.#entries = entries;
    this.#sources = sources;
  }

  /**
   * Opens `file` (default model.safetensors) of a folder, or the shards its `.index.json` names. Throws EngineError('invalid_model') with
   * the file and what is wrong with it.
   */
  static async open(platform: Platform, folder: string, file = 'model.safetensors'): Promise<Checkpoint> {
    const index = platform.join(folder, `${file}.index.json`);
    let files = [file];
    if (!(await platform.exists(platform.join(folder, file))) && (await platform.exists(index))) {
      const map = (JSON.parse(await platform.readText(index)) as { weight_map?: Record<string, string> }).weight_map;
      if (!map) throw new EngineError('invalid_model', `${index} has no weight_map`);
      files = [...new Set(Object.values(map))];
    }
    const entries = new Map<string, Entry>();
    const sources: ByteSource[] = [];
    for (const name of files) {
      const path = platform.join(folder, name);
      const source = await platform.open(path);
      sources.push(source);
      await readHeader(path, source, entries);
    }
    return new Checkpoint(entries, sources);
  }

  names(): string[] {
    return [...this.#entries.keys()];
  }

  /** Shape of a tensor, or undefined when the checkpoint does not have it. */
  shape(name: string): readonly number[] | undefined {
    return this.#entries.get(name)?.shape;
  }

  /** About the bytes its tensors take on a device: matrices in `dtype`, vectors in f32. */
  bytesAs(dtype: 'f32' | 'f16'): number {
    const matrix = dtype === 'f16' ? 2 : 4;
    return [...this.#entries.values()].reduce((sum, { shape }) => sum + product(shape) * (shape.length > 1 ? matrix : 4), 0);
  }

  /** Values of a tensor, or of the elements [from, to) of it, widened to f32. */
  async read(name: string, elements?: Range): Promise<Float32Array> {
    const entry = this.#entries.get(name);
    if (!entry) throw new EngineError('invalid_model', `tensor ${name} is missing in the checkpoint`);
    const size = ELEMENT_BYTES.get(entry.dtype)!;
    const { from, to } = elements ?? { from: 0, to: product(entry.shape) };
    const bytes = await entry.source.read(entry.start + from * size, (to - from) * size);
    const { buffer, byteOffset, byteLength } = bytes;
    switch (entry.dtype) {
      case 'F32': return new Float32Array(buffer, byteOffset, byteLength / 4); // prettier-ignore
      case 'F16': return fromF16(new Uint16Array(buffer, byteOffset, byteLength / 2)); // prettier-ignore
      case 'BF16': return fromBF16(new Uint16Array(buffer, byteOffset, byteLength / 2)); // prettier-ignore
      case 'F64': return Float32Array.from(new Float64Array(buffer, byteOffset, byteLength / 8)); // prettier-ignore
      case 'I32': return Float32Array.from(new Int32Array(buffer, byteOffset, byteLength / 4)); // prettier-ignore
      case 'I64': return Float32Array.from(new BigInt64Array(buffer, byteOffset, byteLength / 8), Number); // prettier-ignore
      default: throw new EngineError('invalid_model', `${entry.path}: tensor ${name} has dtype ${entry.dtype}, expected F32, F16, BF16 or F64`); // prettier-ignore
    }
  }

  async close(): Promise<void> {
    await Promise.all(this.#sources.map((source) => source.close()));
  }
}

async function readHeader(path: string, source: ByteSource, entries: Map<string, Entry>): Promise<void> {
  const broken = (why: string): never => {
    throw new EngineError('invalid_model', `${path} is not a safetensors file: ${why}`);
  };
  if (source.size < 8) broken(`it has ${source.size} bytes`);
  const prefix = await source.read(0, 8);
  const length = Number(new DataView(prefix.buffer, prefix.byteOffset, 8).getBigUint64(0, true));
  if (length > MAX_HEADER_BYTES || 8 + length > source.size) broken(`the header claims ${length} bytes of ${source.size}`);
  const text = new TextDecoder().decode(await source.read(8, length));
  const header = parseHeader(text) ?? broken('the header is not a JSON object');
  for (const [name, value] of Object.entries(header)) {
    if (name === '__metadata__') continue;
    const { dtype, shape, data_offsets: offsets } = value as { dtype: string; shape: number[]; data_offsets: [number, number] };
    const bytes = ELEMENT_BYTES.get(dtype);
    if (!bytes || !Array.isArray(shape) || !Array.isArray(offsets)) broken(`tensor ${name} has dtype ${dtype}`);
    const [start, end] = [8 + length + offsets[0], 8 + length + offsets[1]];
    if (end - start !== product(shape) * bytes! || end > source.size || start < 8 + length) {
      broken(`tensor ${name} [${shape.join(', ')}] ${dtype} lies at ${start}..${end} of ${source.size} bytes (file cut short?)`);
    }
    if (entries.has(name)) broken(`tensor ${name} is in two shards`);
    entries.set(name, { source, path, dtype, shape, start, end });
  }
}

function parseHeader(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}
