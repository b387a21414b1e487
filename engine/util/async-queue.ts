/** Values from one side, awaited on the other. Ends by `end` or `fail`; later pushes are dropped. */
export class AsyncQueue<T> implements AsyncIterable<T> {
  readonly #values: T[] = [];
  #state: { readonly kind: 'open' } | { readonly kind: 'ended' } | { readonly kind: 'failed'; readonly error: unknown } = { kind: 'open' };
  #notify: (() => void) | undefined;

  /** Values that were pushed and not read. */
  get length(): number {
    return this.#values.length;
  }

  push(value: T): void {
    if (this.#state.kind !== 'open') return;
    this.#values.push(value);
    this.#notify?.();
  }

  /** The reader gets what was pushed, then the end. */
  end(): void {
    if (this.#state.kind === 'open') this.#state = { kind: 'ended' };
    this.#notify?.();
  }

  /** The reader gets the error next; what was pushed and not read is dropped. */
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
