/** A stream of events in the shape of the OpenAI client's. */

/** Read once, by `for await`; leaving the loop ends the call. */
export class Stream<Item> implements AsyncIterable<Item> {
  /** Its abort ends the call; the loop then ends without an error. */
  readonly controller: AbortController;
  readonly #items: () => AsyncIterator<Item>;

  constructor(items: () => AsyncIterator<Item>, controller: AbortController) {
    this.#items = items;
    this.controller = controller;
  }

  [Symbol.asyncIterator](): AsyncIterator<Item> {
    return this.#items();
  }

  /** Two streams of the same items, each read at its own pace. */
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

  /** The items as lines of JSON, to be sent on. */
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
