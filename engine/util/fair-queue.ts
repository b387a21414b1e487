/**
 * A queue that alternates between the item whose job has been served least, so that short jobs need not wait for long ones, and the item that has waited longest, so
 * that long jobs make progress whatever else arrives.
 */
export class FairQueue<T> {
  /** Waiting items in order of arrival. */
  readonly #waiting: { readonly item: T; readonly served: number }[] = [];
  #turns = 0;

  /** Adds an item; `served` is how much its job has been served so far. */
  push(item: T, served: number): void {
    this.#waiting.push({ item, served });
  }

  /** Removes and returns the next item; undefined if the queue is empty. */
  take(): T | undefined {
    const least = this.#waiting.reduce((best, { served }, i, all) => (served < all[best]!.served ? i : best), 0);
    return this.#waiting.splice(this.#turns++ % 2 === 0 ? least : 0, 1)[0]?.item;
  }

  /** Removes and returns the items for which `wanted` is true; it is asked in order of arrival. */
  takeWhere(wanted: (item: T) => boolean): T[] {
    const taken: T[] = [];
    for (let i = 0; i < this.#waiting.length;) {
      const { item } = this.#waiting[i]!;
      if (!wanted(item)) i++;
      else taken.push(...this.#waiting.splice(i, 1).map((entry) => entry.item));
    }
    return taken;
  }
}
