/**
 * Reads protocol buffers field by field from a file. Libraries decode whole messages in memory, and a model is one message; here large
 * fields are skipped and their place is kept. Encoding: protobuf.dev/programming-guides/encoding.
 */
import { EngineError } from '../../errors.ts';
import type { ByteSource } from '../../platform/platform.ts';
import { describe } from '../../util/json.ts';
import { ByteCursor, ReadAhead } from '../byte-cursor.ts';

/** A field's number, and its value or the place of its bytes. */
export interface Field {
  readonly number: number;
  /** Value of a varint, as far as a double holds it; 0 for other kinds. */
  readonly value: number;
  /** Range of the field's contents; for a varint, of its own bytes. */
  readonly from: number;
  readonly to: number;
  readonly kind: 'varint' | 'bytes' | 'fixed32' | 'fixed64';
}

const KINDS = ['varint', 'fixed64', 'bytes', undefined, undefined, 'fixed32'] as const;

/** A file that is one message. */
export class ProtobufFile {
  readonly path: string;
  readonly source: ByteSource;
  readonly #ahead: ReadAhead;

  constructor(path: string, source: ByteSource) {
    this.path = path;
    this.source = source;
    this.#ahead = new ReadAhead(source);
  }

  /** Iterates over the fields of a message within a byte range; throws EngineError('invalid_model') where they do not fit into it. */
  async *fields(from = 0, to: number = this.source.size): AsyncGenerator<Field> {
    const cursor = new ByteCursor(this.path, this.#ahead, from, to);
    while (cursor.left > 0) {
      const key = await varint(cursor);
      const number = Math.floor(key / 8);
      const kind = KINDS[key % 8];
      if (kind === undefined || number < 1) throw this.broken(`byte ${cursor.position - 1} begins no field`);
      const start = cursor.position;
      if (kind === 'varint') yield { number, kind, value: await varint(cursor), from: start, to: cursor.position };
      else {
        const length = kind === 'bytes' ? await varint(cursor) : kind === 'fixed32' ? 4 : 8;
        const at = cursor.position;
        cursor.skip(length, `field ${number}`);
        yield { number, kind, value: 0, from: at, to: at + length };
      }
    }
  }

  /** Reads the contents of a small field, valid until the next call. */
  async bytes({ from, to }: Field, most: number): Promise<Uint8Array> {
    if (to - from > most) throw this.broken(`a field of ${to - from} bytes at byte ${from}; at most ${most} are read`);
    return this.#ahead.read(from, to - from);
  }

  async text(field: Field): Promise<string> {
    const text = new TextDecoder().decode(await this.bytes(field, MAX_TEXT));
    if (/\p{Cc}/u.test(text)) throw this.broken(`the name at byte ${field.from} is no text: ${describe(text)}`);
    return text;
  }

  /** The integers packed into a field, or its only one; for negative ones, which take ten bytes, the lower 32 bits. */
  async varints(field: Field, most: number): Promise<number[]> {
    if (field.kind === 'varint') return [field.value];
    const bytes = await this.bytes(field, 10 * most);
    const values: number[] = [];
    for (let at = 0; at < bytes.length;) {
      if (values.length === most) throw this.broken(`more than ${most} numbers at byte ${field.from}`);
      const { value, next } = varintIn(bytes, at);
      if (next < 0) throw this.broken(`a number is cut short at byte ${field.from + at}`);
      values.push(value);
      at = next;
    }
    return values;
  }

  broken(why: string): EngineError {
    return new EngineError('invalid_model', `${this.path} is no ONNX model that can be read: ${why}`);
  }
}

/** Longest name, since messages show it; PyTorch's are paths of modules. */
const MAX_TEXT = 1024;

async function varint(cursor: ByteCursor): Promise<number> {
  let value = 0;
  for (let factor = 1, i = 0; i < 10; factor *= 128, i++) {
    const byte = (await cursor.bytes(1, 'a number'))[0]!;
    value += (byte & 127) * factor;
    if (byte < 128) return value;
  }
  throw new EngineError('invalid_model', `${cursor.path} is damaged: a number at byte ${cursor.position} has more than ten bytes`);
}

function varintIn(bytes: Uint8Array, from: number): { readonly value: number; readonly next: number } {
  let value = 0;
  let low = 0;
  for (let i = 0; i < 10 && from + i < bytes.length; i++) {
    const byte = bytes[from + i]!;
    value += (byte & 127) * 2 ** (7 * i);
    if (i < 5) low |= (byte & 127) << (7 * i);
    if (byte < 128) return { value: i === 9 ? low : value, next: from + i + 1 };
  }
  return { value: 0, next: -1 };
}
