/** The end of a rank's thread, with a thread that only pretends. */
import { expect, test } from 'vitest';
import { workerRank } from '../../engine/parallel/rank-port.ts';
import type { RankCall, RankReply } from '../../engine/parallel/rank-operations.ts';

test('a rank that is closed ends itself, even when it tells in between that its device is lost', async () => {
  const posted: RankCall[] = [];
  const state = { terminated: false };
  let tell!: (reply: RankReply) => void;
  let exit!: (why: string) => void;
  const rank = workerRank({
    post: (message) => void posted.push(message as RankCall),
    onMessage: (callback) => (tell = callback),
    onExit: (callback) => (exit = callback),
    terminate: async () => void (state.terminated = true),
  });
  const step = rank.step(0);
  const closed = rank.close();
  expect(posted.map(({ type }) => type)).toEqual(['call', 'close']);
  tell({ type: 'lost', reason: 'destroyed' });
  await expect(step).rejects.toMatchObject({ code: 'device_lost' });
  let isClosed = false;
  void closed.then(() => (isClosed = true));
  // Nothing that is posted here goes by a task of its own.
  await new Promise((resolve) => setImmediate(resolve));
  expect(isClosed).toBe(false);
  exit('exit code 0');
  await closed;
  expect(state.terminated).toBe(false);
  expect(await rank.lost).toBe('destroyed');
});
