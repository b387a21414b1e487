/** What String.normalize() is given: it sorts the marks of each letter by comparing each with those before it. */
import { vi } from 'vitest';

/** How many marks of one letter are sorted together at most while `work` runs, when it has ended. */
export function marksSortedTogether<T>(work: () => T): T extends Promise<unknown> ? Promise<number> : number;
export function marksSortedTogether(work: () => unknown): number | Promise<number> {
  const normalize = vi.spyOn(String.prototype, 'normalize');
  const most = (): number => {
    const texts = normalize.mock.contexts.map(String);
    normalize.mockRestore();
    if (texts.length === 0) throw new Error('nothing was normalised');
    // The joiner that parts them is a mark itself.
    const runs = texts.flatMap((text) => text.match(/(?!\u034f)\p{M}(?:(?!\u034f)\p{M})*/gu) ?? []);
    return Math.max(0, ...runs.map(({ length }) => length));
  };
  const done = work();
  return done instanceof Promise ? done.then(most) : most();
}
