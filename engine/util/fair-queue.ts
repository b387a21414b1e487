/**
 * A queue whose turns go by how much each waiter's job has been served: the least goes first, so that a short job need not wait for all the long ones
 * before it, and every other turn is the longest waiter's, so that the long ones go on whatever else comes.
 */
export class FairQueue<T> {
  /** In order of arrival. */
  readonly #waiting: { readonly item: T; readonly served: number }[] = [];
  #turns = 0;

  push(item: T, served: number): void {
    this.#waiting.push({ item, served });
  }

  /** Takes the next out; undefined when nobody waits. */
  take(): T | undefined {
    const least = this.#waiting.reduce((best, { served }, i, all) => (served < all[best]!.served ? i : best), 0);
    return this.#waiting.splice(this.#turns++ % 2 === 0 ? least : 0, 1)[0]?.item;
  }

  /** Takes out those that are wanted, asked in order of arrival. */
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
