import { EngineError } from '../errors.ts';
import type { ByteSource } from '../platform/platform.ts';

/** Bytes fetched at a time: headers are small and lie between tensors that are skipped. */
const WINDOW_BYTES = 8192;

/** Buffered reads: small reads of a file that lie close together share one fetch. */
export class ReadAhead {
  readonly #source: ByteSource;
  #window: Uint8Array = new Uint8Array();
  #start = 0;

  constructor(source: ByteSource) {
    this.#source = source;
  }

  /** Reads `length` bytes at `offset`; they are valid until the next call. */
  async read(offset: number, length: number): Promise<Uint8Array> {
    if (offset < this.#start || offset + length > this.#start + this.#window.length) {
      this.#window = await this.#source.read(offset, Math.min(Math.max(length, WINDOW_BYTES), this.#source.size - offset));
      this.#start = offset;
    }
    return this.#window.subarray(offset - this.#start, offset - this.#start + length);
  }
}

/** Reads a file's headers in order, and skips what lies between them without fetching it. */
export class ByteCursor {
  readonly path: string;
  readonly end: number;
  readonly #bytes: ReadAhead;
  #position: number;

  /** A cursor over bytes [from, to) of a file; `path` names it in messages. */
  constructor(path: string, bytes: ReadAhead, from: number, to: number) {
    this.path = path;
    this.#bytes = bytes;
    this.#position = from;
    this.end = to;
  }

  get position(): number {
    return this.#position;
  }

  /** Bytes between the position and the end. */
  get left(): number {
    return this.end - this.#position;
  }

  /**
   * Reads the next `length` bytes, valid until the next call; throws EngineError('invalid_model'), naming `what`, where the file ends
   * before them.
   */
  async bytes(length: number, what: string): Promise<Uint8Array> {
    const at = this.#position;
    this.skip(length, what);
    return this.#bytes.read(at, length);
  }

  /** Reads the next `length` bytes as a DataView. */
  async view(length: number, what: string): Promise<DataView> {
    const { buffer, byteOffset } = await this.bytes(length, what);
    return new DataView(buffer, byteOffset, length);
  }

  skip(length: number, what: string): void {
    if (length > this.left) {
      throw new EngineError('invalid_model', `${this.path} is cut short or damaged: ${what} takes ${length} bytes at byte ${this.#position}, and ${this.left} are left`); // prettier-ignore
    }
    this.#position += length;
  }
}
