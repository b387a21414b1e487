/** An unbounded queue that is pushed to synchronously and read as an async iterable. After `end` or `fail` further values are dropped. */
export class AsyncQueue<T> implements AsyncIterable<T> {
  readonly #values: T[] = [];
  #state: { readonly kind: 'open' } | { readonly kind: 'ended' } | { readonly kind: 'failed'; readonly error: unknown } = { kind: 'open' };
  #notify: (() => void) | undefined;

  /** Number of values that have not been read. */
  get length(): number {
    return this.#values.length;
  }

  push(value: T): void {
    if (this.#state.kind !== 'open') return;
    this.#values.push(value);
    this.#notify?.();
  }

  /** Ends the iteration after the values pushed so far. */
  end(): void {
    if (this.#state.kind === 'open') this.#state = { kind: 'ended' };
    this.#notify?.();
  }

  /** Makes the iteration throw `error` at once; values not yet read are dropped. */
  fail(error: unknown): void {
    if (this.#state.kind !== 'open') return;
    this.#state = { kind: 'failed', error };
    this.#values.length = 0;
    this.#notify?.();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<T> {
    for (;;) {
      while (this.#values.length > 0) yield this.#values.shift()!;
      if (this.#state.kind === 'failed') throw this.#state.error;
      if (this.#state.kind === 'ended') return;
      await new Promise<void>((resolve) => (this.#notify = resolve));
      this.#notify = undefined;
    }
  }
}
