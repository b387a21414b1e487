/**
 * Watches the memory of a WebAssembly library that was built to trust its input (emscripten, a stack of 64 KiB without checks): bounds what it
 * may take, notices a stack that ran over, and keeps what the library says of its failures on the console.
 */

/** The stack of @mlc-ai/web-xgrammar 0.1.27 lies above its static data, from its lowest byte on; what runs over it damages those. */
const STACK_END = 70_976;
/** Bytes at the end of the stack that must stay as they are. A call's frame is smaller, so none can step over them. */
const CANARY_BYTES = 2_048;
const CANARY = 0xa5;
const PAGE = 65_536;

export class WasmGuard {
  #memory: WebAssembly.Memory | undefined;
  #maxBytes = 0;
  #refused = false;
  #said = '';

  /** Bytes of the library's memory. */
  get bytes(): number {
    return this.#memory?.buffer.byteLength ?? 0;
  }

  /** Runs what instantiates the library, whose memory may then grow to `maxBytes`. */
  async watch<T>(maxBytes: number, instantiate: () => Promise<T>): Promise<T> {
    this.#maxBytes = maxBytes;
    const original = WebAssembly.instantiate as (...args: unknown[]) => Promise<WebAssembly.WebAssemblyInstantiatedSource>;
    const watched = async (...args: unknown[]): Promise<WebAssembly.WebAssemblyInstantiatedSource> => {
      const result = await original.apply(WebAssembly, args);
      this.#take(result.instance);
      return result;
    };
    // The library takes the function for its messages when it is instantiated, once and for all.
    console.error = (...parts: unknown[]) => void (this.#said = this.#said || parts.join(' '));
    (WebAssembly as { instantiate: unknown }).instantiate = watched;
    try {
      return await instantiate();
    } finally {
      WebAssembly.instantiate = original as typeof WebAssembly.instantiate;
    }
  }

  /** Throws where the stack ran over. */
  check(): void {
    if (this.#memory && !this.#canary().every((byte) => byte === CANARY)) throw new Error('the schema is nested too deeply');
  }

  /** Why the library failed, as far as it said. */
  explain(error: unknown): string {
    if (this.#refused) return `it takes more than ${this.#maxBytes / 2 ** 20} MiB to compile`;
    // "[FATAL] file:line: Check failed: (condition) is false: reason"
    const reason = this.#said.split('\n')[0]!.replace(/^\[FATAL\] \S+: (Check failed: .* is false: )?/, '');
    return (reason || (error instanceof Error ? error.message : 'the grammar library failed')).slice(0, 200);
  }

  #take({ exports }: WebAssembly.Instance): void {
    const memory = Object.values(exports).find((value) => value instanceof WebAssembly.Memory);
    if (!memory) return;
    this.#memory = memory;
    this.#canary().fill(CANARY);
    memory.grow = (pages) => {
      this.#refused = memory.buffer.byteLength + pages * PAGE > this.#maxBytes;
      if (this.#refused) throw new RangeError('the memory may not grow further');
      return WebAssembly.Memory.prototype.grow.call(memory, pages);
    };
  }

  #canary(): Uint8Array {
    return new Uint8Array(this.#memory!.buffer, STACK_END, CANARY_BYTES);
  }
}
