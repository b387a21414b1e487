/** The thread of one rank: answers the calls of a WorkerRank one after the other. */
import { EngineError } from '../errors.ts';
import type { Platform, WorkerPort } from '../platform/platform.ts';
import type { GroupSizes } from './group-memory.ts';
import type { RankPlace } from './link.ts';
import { RankHost } from './rank-host.ts';
import type { SplitModel } from './rank-host.ts';
import type { RankCall, RankReply } from './rank-port.ts';

/** Serves the port until it is told to close, which ends the thread. */
export function main(platform: Platform, port: WorkerPort): void {
  const host = new RankHost(platform);
  let queue = Promise.resolve();
  port.onMessage((message) => {
    queue = queue.then(() => answer(platform, host, message as RankCall, port));
  });
}

async function answer(platform: Platform, host: RankHost, { id, method, args }: RankCall, port: WorkerPort): Promise<void> {
  try {
    const value = await perform(host, method, args);
    if (method === 'open') void host.lost.then((reason) => port.post(failure(0, new EngineError('device_lost', reason))));
    port.post({ id, value, stats: { ...host.stats } } satisfies RankReply);
  } catch (error) {
    if (!(error instanceof EngineError) && error instanceof Error) platform.log(error.stack ?? error.message);
    port.post(failure(id, error));
  }
  if (method === 'close') port.close();
}

async function perform(host: RankHost, method: RankCall['method'], args: readonly unknown[]): Promise<unknown> {
  switch (method) {
    case 'open': return host.open(args[0] as string | undefined); // prettier-ignore
    case 'measure': return host.measure(); // prettier-ignore
    case 'load': return host.load(args[0] as SplitModel, args[1] as RankPlace, args[2] as Parameters<RankHost['load']>[2]); // prettier-ignore
    case 'reserve': return host.reserve(args[0] as Parameters<RankHost['reserve']>[0]); // prettier-ignore
    case 'start': return host.start(args[0] as number, args[1] as GroupSizes, args[2] as SharedArrayBuffer); // prettier-ignore
    case 'step': return host.step(args[0] as number); // prettier-ignore
    case 'close': return host.close(); // prettier-ignore
  }
}

function failure(id: number, error: unknown): RankReply {
  const code = error instanceof EngineError ? error.code : 'internal';
  return { id, error: { code, message: error instanceof Error ? error.message : String(error) } };
}
