import { describe, expect, test } from 'vitest';
import { RadixCache } from '../../engine/cache/radix-cache.ts';
import type { RadixNode } from '../../engine/cache/radix-node.ts';
import { createRng } from '../../engine/util/rng.ts';

const PAGE = 4;

/** `count` tokens 0, 1, 2 ... with a `tail` that differs after `fork`. */
function tokens(count: number, fork = count, tail = 1000): number[] {
  return Array.from({ length: count }, (_, i) => (i < fork ? i : tail + i));
}

describe('radix cache', () => {
  test('matches whole pages of the longest prefix', () => {
    const cache = new RadixCache(PAGE);
    expect(cache.match(tokens(9)).length).toBe(0);
    expect(cache.insert(tokens(14), [0, 1, 2])).toMatchObject({ known: 0 });
    expect(cache.numPages).toBe(3);
    expect(cache.match(tokens(14)).pages).toEqual([0, 1, 2]);
    expect(cache.match(tokens(11)).pages).toEqual([0, 1]);
    expect(cache.match(tokens(12, 6)).pages).toEqual([0]);
    expect(cache.peek(tokens(12, 9))).toBe(8);
    cache.checkIntegrity();
  });

  test('a fork splits an edge and keeps both tails', () => {
    const cache = new RadixCache(PAGE);
    cache.insert(tokens(12), [0, 1, 2]);
    expect(cache.insert(tokens(16, 8), [10, 11, 12, 13]).known).toBe(2);
    expect(cache.match(tokens(12)).pages).toEqual([0, 1, 2]);
    expect(cache.match(tokens(16, 8)).pages).toEqual([0, 1, 12, 13]);
    expect(cache.numPages).toBe(5);
    cache.checkIntegrity();
  });

  test('inserting what is known adopts nothing', () => {
    const cache = new RadixCache(PAGE);
    cache.insert(tokens(8), [0, 1]);
    expect(cache.insert(tokens(8), [5, 6]).known).toBe(2);
    expect(cache.match(tokens(8)).pages).toEqual([0, 1]);
  });

  test('namespaces share nothing and vanish when empty', () => {
    const cache = new RadixCache(PAGE);
    cache.insert(tokens(8), [0, 1], 'a');
    expect(cache.match(tokens(8), 'b').length).toBe(0);
    // One that was only asked for is not kept.
    expect(cache.match(tokens(8), 'b').node).not.toBe(cache.match(tokens(8), 'b').node);
    expect(cache.match(tokens(8), 'a').length).toBe(8);
    expect(cache.clear().sort((a, b) => a - b)).toEqual([0, 1]);
    expect(cache.peek(tokens(8), 'a')).toBe(0);
  });

  test('evicts the least recently used leaf and never a locked path', () => {
    const cache = new RadixCache(PAGE);
    cache.insert(tokens(12, 4, 100), [0, 1, 2]);
    cache.insert(tokens(12, 4, 200), [0, 3, 4]);
    const held = cache.match(tokens(12, 4, 100)).node;
    cache.match(tokens(12, 4, 200));
    cache.lock(held);
    expect(cache.numEvictable).toBe(2);
    expect(cache.evict(1).sort((a, b) => a - b)).toEqual([3, 4]);
    expect(cache.evict(5)).toEqual([]);
    cache.unlock(held);
    expect(cache.evict(5).sort((a, b) => a - b)).toEqual([0, 1, 2]);
    expect(cache.numPages).toBe(0);
    cache.checkIntegrity();
  });

  test('what was read until just now is evicted last', () => {
    const cache = new RadixCache(PAGE);
    const { node } = cache.insert(tokens(12, 0, 100), [0, 1, 2]);
    cache.lock(node);
    cache.insert(tokens(12, 0, 200), [3, 4, 5]);
    cache.unlock(node);
    cache.checkIntegrity();
    expect(cache.evict(1)).toEqual([3, 4, 5]);
    expect(cache.evict(1)).toEqual([0, 1, 2]);
  });

  test('looks at few nodes to evict a page, however large the tree is', () => {
    const cache = new RadixCache(PAGE);
    let looks = 0;
    for (let i = 0; i < 1000; i++) {
      const { node } = cache.insert(tokens(8, 4, 1000 * (i + 1)), [0, i + 1]);
      const { children } = node;
      Object.defineProperty(node, 'children', { get: () => (looks++, children) });
    }
    for (let i = 0; i < 1000; i++) expect(cache.evict(1)).toEqual([i + 1]);
    expect(looks).toBeLessThan(4000);
    expect(cache.evict(1)).toEqual([0]);
    expect(cache.numPages).toBe(0);
  });

  test('a namespace whose last reader leaves is forgotten', () => {
    const cache = new RadixCache(PAGE);
    cache.insert(tokens(4), [0], 'a');
    const { node } = cache.match([7, 7, 7, 7], 'a');
    cache.lock(node);
    expect(cache.evict(1)).toEqual([0]);
    // Another reader of a namespace that nothing was in, by the same name.
    const { node: other } = cache.match(tokens(4), 'b');
    cache.lock(other);
    cache.insert(tokens(4), [1], 'b');
    cache.unlock(other);
    expect(cache.peek(tokens(4), 'b')).toBe(4);
    expect(cache.match(tokens(4), 'a').node).toBe(node);
    cache.unlock(node);
    expect(cache.match(tokens(4), 'a').node).not.toBe(node);
  });

  test('splitting under a lock keeps both halves locked', () => {
    const cache = new RadixCache(PAGE);
    const { node } = cache.insert(tokens(12), [0, 1, 2]);
    cache.lock(node);
    cache.match(tokens(12, 8));
    expect(cache.evict(9)).toEqual([]);
    cache.unlock(node);
    expect(cache.evict(9)).toHaveLength(3);
  });

  test('a path of as many nodes as a long text has pages is evicted', () => {
    const [cache, text] = [new RadixCache(1), tokens(10_000)];
    cache.insert(text, text);
    // As where each of many prompts goes on a little further than the one before.
    for (let length = text.length - 1; length > 0; length--) cache.match(text, '', length);
    expect(cache.evict(text.length)).toHaveLength(text.length);
  });

  test('an edge may have more pages than a call may have arguments', () => {
    const [cache, text] = [new RadixCache(1), tokens(200_000)];
    cache.insert(text, text);
    expect(cache.peek(text)).toBe(text.length);
    expect(cache.match(text).pages).toHaveLength(text.length);
    expect(cache.evict(text.length)).toHaveLength(text.length);
  });

  test.each([1, 2, 3, 4, 5])('10,000 random operations lose and share no page (seed %i)', (seed) => {
    const rng = createRng(seed);
    const cache = new RadixCache(PAGE);
    const total = 64;
    const free = Array.from({ length: total }, (_, i) => i);
    interface Running {
      readonly tokens: number[];
      readonly pages: number[];
      readonly node: RadixNode;
      readonly matched: number;
    }
    const running: Running[] = [];
    // What each page was last filled with: the tree must only ever hand out pages that hold the asked-for prefix.
    const contents = new Map<number, string>();
    const prefix = (all: readonly number[], page: number): string => all.slice(0, (page + 1) * PAGE).join();
    for (let step = 0; step < 10_000; step++) {
      if (rng.uniform() < 0.55) {
        const prompt = Array.from({ length: 1 + rng.integer(24) }, (_, i) => (i < 8 ? rng.integer(2) : rng.integer(3)));
        const match = cache.match(prompt);
        match.pages.forEach((page, i) => expect(contents.get(page)).toBe(prefix(prompt, i)));
        cache.lock(match.node);
        const need = Math.ceil(prompt.length / PAGE) - match.pages.length;
        if (free.length < need) free.push(...cache.evict(need - free.length));
        if (free.length < need) {
          cache.unlock(match.node);
          continue;
        }
        const own = free.splice(0, need);
        const pages = [...match.pages, ...own];
        own.forEach((page, i) => contents.set(page, prefix(prompt, match.pages.length + i)));
        running.push({ tokens: prompt, pages, node: match.node, matched: match.pages.length });
      } else if (running.length > 0) {
        const [done] = running.splice(rng.integer(running.length), 1);
        const full = Math.floor(done!.tokens.length / PAGE);
        const { known } = cache.insert(done!.tokens, done!.pages);
        free.push(...done!.pages.slice(done!.matched, known), ...done!.pages.slice(full));
        cache.unlock(done!.node);
      }
      if (step % 100 === 0) cache.checkIntegrity();
      const held = running.reduce((sum, r) => sum + r.pages.length - r.matched, 0);
      expect(free.length + cache.numPages + held).toBe(total);
    }
    for (const r of running) cache.unlock(r.node);
    expect(cache.numEvictable).toBe(cache.numPages);
    cache.clear();
    expect(cache.numPages).toBe(0);
  });
});
