import { expect, test } from 'vitest';
import { FairQueue } from '../../engine/util/fair-queue.ts';

test('turns go to the least served and to the longest waiting, one after the other', () => {
  const queue = new FairQueue<string>();
  queue.push('a 9', 9);
  queue.push('b 5', 5);
  queue.push('c 0', 0);
  queue.push('d 0', 0);
  expect([1, 2, 3, 4, 5].map(() => queue.take())).toEqual(['c 0', 'a 9', 'd 0', 'b 5', undefined]);
});

test('companions of a turn are taken in order of arrival, and the others keep theirs', () => {
  const queue = new FairQueue<number>();
  for (const length of [5, 9, 2, 8, 3]) queue.push(length, length);
  expect(queue.takeWhere((length) => length < 6)).toEqual([5, 2, 3]);
  expect([queue.take(), queue.take(), queue.take()]).toEqual([8, 9, undefined]);
});

test('a newcomer waits for two turns at most, and a long job ends although newcomers never do', () => {
  const queue = new FairQueue<string>();
  for (let i = 0; i < 50; i++) queue.push('long', 1000 + i);
  queue.push('new', 0);
  expect([queue.take(), queue.take()]).toContain('new');
  let long = 0;
  for (let i = 0; i < 100; i++) {
    queue.push('new', 0);
    if (queue.take() === 'long') long++;
  }
  expect(long).toBe(49);
});
