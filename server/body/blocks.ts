/** Collects received bytes in few large blocks; one buffer per chunk would cost far more than its bytes if chunks are tiny. */
import { MessageChannel } from 'node:worker_threads';

const BLOCK = 1 << 20;
/** A port whose other end is closed: buffers that are transferred to it are freed at once. */
const { port1: nobody, port2: otherEnd } = new MessageChannel();
otherEnd.close();

/** An append-only sequence of bytes, which are never copied again once they are added. */
export class Blocks {
  length = 0;
  readonly #blocks: Uint8Array<ArrayBuffer>[] = [];
  /** Offset of each block's first byte. */
  readonly #starts: number[] = [];

  /** Makes a sequence from blocks that another thread has handed over (see `take`). */
  static of(blocks: readonly Uint8Array<ArrayBuffer>[]): Blocks {
    const all = new Blocks();
    for (const block of blocks) all.#add(block, block.length);
    return all;
  }

  push(chunk: Uint8Array): void {
    for (let at = 0; at < chunk.length;) {
      let last = this.#blocks.at(-1);
      let used = this.length - (this.#starts.at(-1) ?? 0);
      if (last === undefined || used === last.length) {
        // Blocks double in size, so that a small field takes little memory.
        last = new Uint8Array(Math.min(BLOCK, Math.max(chunk.length - at, 2 * (last?.length ?? 512))));
        used = 0;
        this.#add(last, 0);
      }
      const piece = chunk.subarray(at, at + last.length - used);
      last.set(piece, used);
      this.length += piece.length;
      at += piece.length;
    }
  }

  /** The bytes [from, to), clamped to the length: a view if they are within one block, else a copy. */
  subarray(from: number, to = this.length): Uint8Array {
    const [first, end] = [Math.max(0, from), Math.min(to, this.length)];
    if (first >= end) return new Uint8Array();
    let index = this.#blockOf(first);
    const start = this.#starts[index]!;
    if (end <= start + this.#blocks[index]!.length) return this.#blocks[index]!.subarray(first - start, end - start);
    const bytes = new Uint8Array(end - first);
    for (let at = first; at < end; index++) {
      const piece = this.#blocks[index]!.subarray(at - this.#starts[index]!, end - this.#starts[index]!);
      bytes.set(piece, at - first);
      at += piece.length;
    }
    return bytes;
  }

  /** Removes and returns the blocks, to be transferred to another thread. */
  take(): Uint8Array<ArrayBuffer>[] {
    const used = this.length - (this.#starts.at(-1) ?? 0);
    const blocks = this.#blocks.splice(0);
    this.#starts.length = 0;
    this.length = 0;
    return blocks.map((block, i) => (i === blocks.length - 1 ? block.subarray(0, used) : block));
  }

  /** Frees the memory at once, instead of at the next garbage collection. No view of the bytes may be used after that. */
  free(): void {
    nobody.postMessage(
      undefined,
      this.take().map(({ buffer }) => buffer),
    );
  }

  #add(block: Uint8Array<ArrayBuffer>, used: number): void {
    this.#starts.push(this.length);
    this.#blocks.push(block);
    this.length += used;
  }

  /** The block with this byte: the last that does not begin after it. */
  #blockOf(at: number): number {
    let [low, high] = [0, this.#starts.length - 1];
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      if (this.#starts[middle]! <= at) low = middle;
      else high = middle - 1;
    }
    return low;
  }
}
