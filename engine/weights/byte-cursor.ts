import { EngineError } from '../errors.ts';
import type { ByteSource } from '../platform/platform.ts';

/** Bytes that are fetched at a time: headers are small and lie between tensors that are skipped. */
const WINDOW_BYTES = 8192;

/** Reads the headers of a file in order, and skips what lies between them without fetching it. */
export class ByteCursor {
  readonly path: string;
  readonly end: number;
  readonly #source: ByteSource;
  #position: number;
  #window: Uint8Array = new Uint8Array();
  #windowStart = 0;

  /** Over the bytes [from, to) of a file; `path` is what messages call it. */
  constructor(path: string, source: ByteSource, from = 0, to: number = source.size) {
    this.path = path;
    this.#source = source;
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

  /** The next `length` bytes, valid until the next call; throws EngineError('invalid_model') where the file ends before them. */
  async bytes(length: number, what: string): Promise<Uint8Array> {
    this.#check(length, what);
    const inWindow = this.#position >= this.#windowStart && this.#position + length <= this.#windowStart + this.#window.length;
    if (!inWindow) {
      this.#windowStart = this.#position;
      this.#window = await this.#source.read(this.#position, Math.min(Math.max(length, WINDOW_BYTES), this.left));
    }
    const at = this.#position - this.#windowStart;
    this.#position += length;
    return this.#window.subarray(at, at + length);
  }

  /** The next bytes as numbers. */
  async view(length: number, what: string): Promise<DataView> {
    const { buffer, byteOffset } = await this.bytes(length, what);
    return new DataView(buffer, byteOffset, length);
  }

  skip(length: number, what: string): void {
    this.#check(length, what);
    this.#position += length;
  }

  #check(length: number, what: string): void {
    if (length <= this.left) return;
    throw new EngineError('invalid_model', `${this.path} is cut short or damaged: ${what} takes ${length} bytes at byte ${this.#position}, and ${this.left} are left`); // prettier-ignore
  }
}
