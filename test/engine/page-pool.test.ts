import { describe, expect, test } from 'vitest';
import { BlockTable } from '../../engine/cache/block-table.ts';
import { PagePool } from '../../engine/cache/page-pool.ts';
import { createRng } from '../../engine/util/rng.ts';

describe('PagePool', () => {
  test('hands out each page once, low ones first, and nothing when short', () => {
    const pool = new PagePool(5);
    expect(pool.allocate(2)).toEqual([0, 1]);
    expect(pool.allocate(4)).toBeUndefined();
    expect(pool.numFree).toBe(3);
    expect(pool.allocate(3)).toEqual([2, 3, 4]);
    expect(pool.allocate(0)).toEqual([]);
    expect(pool.numUsed).toBe(5);
  });

  test('gives a page that was never used only when all before it are in use', () => {
    const pool = new PagePool(10);
    const [first, second] = [pool.allocate(3)!, pool.allocate(2)!];
    pool.release(first);
    expect(pool.allocate(2)!.every((page) => page < 3)).toBe(true);
    pool.release(second);
    expect(Math.max(...pool.allocate(3)!)).toBeLessThan(5);
    expect(pool.allocate(1)).toEqual([5]);
  });

  test('frees a shared page with its last holder', () => {
    const pool = new PagePool(2);
    const pages = pool.allocate(1)!;
    pool.share(pages);
    pool.release(pages);
    expect(pool.numFree).toBe(1);
    pool.release(pages);
    expect(pool.numFree).toBe(2);
    expect(() => pool.release(pages)).toThrow(/page 0 is released but free/);
    expect(() => pool.share(pages)).toThrow(/page 0 is shared but free/);
  });

  test('keeps its books over random operations', () => {
    const rng = createRng(3);
    const pool = new PagePool(32);
    const held: number[][] = [];
    for (let step = 0; step < 2000; step++) {
      const kind = rng.integer(3);
      const chosen = held[rng.integer(Math.max(1, held.length))];
      if (kind === 0) {
        const pages = pool.allocate(rng.integer(6));
        if (pages) held.push(pages);
      } else if (kind === 1 && chosen) {
        pool.share(chosen);
        held.push(chosen);
      } else if (chosen) {
        held.splice(held.indexOf(chosen), 1);
        pool.release(chosen);
      }
      pool.checkIntegrity();
      expect(pool.numUsed).toBe(new Set(held.flat()).size);
    }
    for (const pages of held) pool.release(pages);
    expect(pool.numFree).toBe(32);
  });
});

describe('BlockTable', () => {
  test('gives rows out and says what changed, once', () => {
    const table = new BlockTable(2, 4);
    expect([table.takeRow(), table.takeRow(), table.takeRow()]).toEqual([0, 1, undefined]);
    table.set(1, 0, [7, 8]);
    table.set(1, 2, [9]);
    table.set(0, 3, [5]);
    expect(table.takeDirty()).toEqual([
      { row: 1, from: 0, pages: Uint32Array.of(7, 8, 9) },
      { row: 0, from: 3, pages: Uint32Array.of(5) },
    ]);
    expect(table.takeDirty()).toEqual([]);
    expect(() => table.set(0, 3, [1, 2])).toThrow(/5 pages, expected at most 4/);
    table.freeRow(1);
    expect(() => table.freeRow(1)).toThrow(/freed twice/);
    expect(table.takeRow()).toBe(1);
  });
});
