/** Worker thread of one rank. */
import type { Platform, WorkerPort } from '../platform/platform.ts';
import { Answerer } from '../util/rpc.ts';
import { RankHost } from './rank-host.ts';
import { RANK_OPERATIONS } from './rank-operations.ts';
import type { RankCall, RankReply } from './rank-operations.ts';

/** Serves the port until it is told to close, which ends the thread. */
export function main(platform: Platform, port: WorkerPort): void {
  const host = new RankHost(platform);
  const post = (message: RankReply): void => port.post(message);
  const answerer = new Answerer(
    RANK_OPERATIONS,
    host,
    // Not batched, because the next step may block this thread.
    (news) => post({ type: 'news', news: [news], stats: host.stats && { ...host.stats } }),
    (what) => platform.log(what),
  );
  void host.lost.then((reason) => post({ type: 'lost', reason }));
  let last: Promise<void> = Promise.resolve();
  port.onMessage((raw) => {
    const message = raw as RankCall;
    last = last.then(() => {
      if (message.type !== 'close') return answerer.receive(message);
      host.close();
      port.close();
    });
  });
}
