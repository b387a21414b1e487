/** The stream class of the OpenAI client, as far as it is public. */

/** A stream of events, to be read once by `for await`; leaving the loop ends the call. */
export class Stream<Item> implements AsyncIterable<Item> {
  /** Aborting it ends the call; the loop then ends without an error. */
  readonly controller: AbortController;
  readonly #items: () => AsyncIterator<Item>;

  constructor(items: () => AsyncIterator<Item>, controller: AbortController) {
    this.#items = items;
    this.controller = controller;
  }

  [Symbol.asyncIterator](): AsyncIterator<Item> {
    return this.#items();
  }

  /** Splits the stream into two with the same items, which can be read at different speeds. */
  tee(): [Stream<Item>, Stream<Item>] {
    const source = this.#items();
    const left: Promise<IteratorResult<Item>>[] = [];
    const right: Promise<IteratorResult<Item>>[] = [];
    const branch = (queue: Promise<IteratorResult<Item>>[]) => (): AsyncIterator<Item> => ({
      next: () => {
        if (queue.length === 0) {
          const next = source.next();
          left.push(next);
          right.push(next);
        }
        return queue.shift()!;
      },
    });
    return [new Stream(branch(left), this.controller), new Stream(branch(right), this.controller)];
  }

  /** Converts the stream to one of bytes: a line of JSON per item. */
  toReadableStream(): ReadableStream<Uint8Array> {
    const items = this.#items();
    const encoder = new TextEncoder();
    return new ReadableStream({
      async pull(controller) {
        const { value, done } = await items.next();
        if (done) controller.close();
        else controller.enqueue(encoder.encode(`${JSON.stringify(value)}\n`));
      },
      async cancel() {
        await items.return?.();
      },
    });
  }
}
