/** Writes GGUF files: the counterpart of engine/weights/gguf/, for tests. */

/** A value with the type it is stored as; lists are of one type. */
export type Stored =
  | { readonly type: 'u32' | 'i32' | 'f32' | 'u64' | 'u16'; readonly value: number }
  | { readonly type: 'bool'; readonly value: boolean }
  | { readonly type: 'string'; readonly value: string }
  | { readonly type: 'strings'; readonly value: readonly string[] }
  | { readonly type: 'f32s'; readonly value: readonly number[] }
  | { readonly type: 'i32s'; readonly value: readonly number[] }
  | { readonly type: 'bools'; readonly value: readonly boolean[] };

export interface StoredTensor {
  /** Columns first, as the format has it. */
  readonly dimensions: readonly number[];
  /** ggml_type. */
  readonly type: number;
  readonly data: Uint8Array;
}

export interface GgufContent {
  readonly version?: number;
  readonly alignment?: number;
  readonly metadata: Readonly<Record<string, Stored>>;
  readonly tensors: Readonly<Record<string, StoredTensor>>;
}

type GgufHeadContent = Omit<GgufContent, 'tensors'> & {
  readonly tensors: Readonly<Record<string, Omit<StoredTensor, 'data'> & { readonly data: { readonly length: number } }>>;
};

const TYPES = { u16: 2, u32: 4, i32: 5, f32: 6, bool: 7, string: 8, u64: 10 } as const;

/** Bytes of a file. */
export function ggufFile(content: GgufContent): Uint8Array {
  const { alignment = 32, tensors } = content;
  const out = new Writer();
  out.bytes(ggufHead(content).head);
  for (const { data } of Object.values(tensors)) {
    out.align(alignment);
    out.bytes(data);
  }
  out.align(alignment);
  return out.done();
}

/** What stands before the tensors' data, of which only the length counts, and the bytes of the whole file. */
export function ggufHead({ version = 3, alignment = 32, metadata, tensors }: GgufHeadContent): { head: Uint8Array; size: number } {
  const out = new Writer();
  out.bytes(new TextEncoder().encode('GGUF'));
  out.u32(version);
  out.u64(Object.keys(tensors).length);
  out.u64(Object.keys(metadata).length);
  for (const [key, stored] of Object.entries(metadata)) {
    out.string(key);
    writeValue(out, stored);
  }
  let at = 0;
  for (const [name, { dimensions, type, data }] of Object.entries(tensors)) {
    out.string(name);
    out.u32(dimensions.length);
    for (const size of dimensions) out.u64(size);
    out.u32(type);
    out.u64(at);
    at += Math.ceil(data.length / alignment) * alignment;
  }
  const head = out.done();
  return { head, size: Math.ceil(head.length / alignment) * alignment + at };
}

function writeValue(out: Writer, stored: Stored): void {
  if (stored.type === 'strings' || stored.type === 'f32s' || stored.type === 'i32s' || stored.type === 'bools') {
    const element = stored.type.slice(0, -1) as 'string' | 'f32' | 'i32' | 'bool';
    out.u32(9);
    out.u32(TYPES[element]);
    out.u64(stored.value.length);
    for (const each of stored.value) writePlain(out, element, each);
    return;
  }
  out.u32(TYPES[stored.type]);
  writePlain(out, stored.type, stored.value);
}

function writePlain(out: Writer, type: keyof typeof TYPES, value: string | number | boolean): void {
  if (type === 'string') out.string(String(value));
  else if (type === 'bool') out.bytes(Uint8Array.of(value ? 1 : 0));
  else if (type === 'f32') out.bytes(new Uint8Array(Float32Array.of(Number(value)).buffer));
  else if (type === 'u16') out.bytes(new Uint8Array(Uint16Array.of(Number(value)).buffer));
  else if (type === 'u64') out.u64(Number(value));
  else out.u32(Number(value));
}

class Writer {
  readonly #parts: Uint8Array[] = [];
  #length = 0;

  bytes(bytes: Uint8Array): void {
    this.#parts.push(bytes);
    this.#length += bytes.length;
  }

  u32(value: number): void {
    this.bytes(new Uint8Array(Uint32Array.of(value).buffer));
  }

  u64(value: number): void {
    this.bytes(new Uint8Array(BigUint64Array.of(BigInt(value)).buffer));
  }

  string(text: string): void {
    const bytes = new TextEncoder().encode(text);
    this.u64(bytes.length);
    this.bytes(bytes);
  }

  align(alignment: number): void {
    this.bytes(new Uint8Array(-this.#length % alignment === 0 ? 0 : alignment - (this.#length % alignment)));
  }

  done(): Uint8Array {
    const all = new Uint8Array(this.#length);
    let at = 0;
    for (const part of this.#parts) {
      all.set(part, at);
      at += part.length;
    }
    return all;
  }
}
