/** The coordinator's handle of a rank, which runs in the coordinator's thread or in one of its own. */
import { EngineError } from '../errors.ts';
import type { DeviceStats } from '../gpu/caps.ts';
import type { Platform, PlatformWorker } from '../platform/platform.ts';
import { Caller } from '../util/rpc.ts';
import { RankHost } from './rank-host.ts';
import { RANK_OPERATIONS } from './rank-operations.ts';
import type { RankCall, RankOperations, RankReply } from './rank-operations.ts';
import type { Signals } from './signals.ts';

/** A rank as the coordinator sees it. */
export interface RankPort extends RankOperations {
  /** Counters of the rank's device, as of its last reply; undefined before it is opened. */
  readonly stats: DeviceStats | undefined;
  /** Resolves with the reason when the rank is lost. */
  readonly lost: Promise<string>;
  close(): Promise<void>;
}

/** Time that a thread has to release its device and end. Terminating it is the last resort, because Dawn may then abort the whole process. */
const CLOSE_MS = 30_000;

/** Makes a rank in this thread; `signals` is called for the group's signals when it starts. */
export function localRank(platform: Platform, signals: () => Signals): RankPort {
  const host = new RankHost(platform, signals);
  let last: Promise<void> = Promise.resolve();
  return {
    open: (request) => host.open(request),
    measure: () => host.measure(),
    load: (request) => host.load(request),
    reserve: (limits) => host.reserve(limits),
    start: (request) => host.start(request),
    reserveProcessing: () => host.reserveProcessing(),
    step: (place) => (last = last.then(() => host.step(place))),
    get stats() {
      return host.stats;
    },
    lost: host.lost,
    close: async () => host.close(),
  };
}

/** Makes a rank in a worker thread (rank-worker.ts). */
export function workerRank(worker: PlatformWorker): RankPort {
  const thread = new RankThread(worker);
  return Object.assign(thread, thread.caller.methods);
}

class RankThread {
  readonly caller = new Caller(RANK_OPERATIONS, (message) => this.#post(message));
  readonly #worker: PlatformWorker;
  readonly #exited: Promise<void>;
  #stats: DeviceStats | undefined;
  #resolveLost!: (reason: string) => void;
  readonly lost = new Promise<string>((resolve) => (this.#resolveLost = resolve));

  constructor(worker: PlatformWorker) {
    this.#worker = worker;
    worker.onMessage((message) => this.#receive(message as RankReply));
    this.#exited = new Promise((resolve) =>
      worker.onExit((why) => {
        this.#end(`its thread ended: ${why}`);
        resolve();
      }),
    );
  }

  get stats(): DeviceStats | undefined {
    return this.#stats;
  }

  async close(): Promise<void> {
    // Waits for the thread itself to end; meanwhile it may report that its device is lost.
    const timer = setTimeout(() => void this.#worker.terminate(), CLOSE_MS);
    this.#post({ type: 'close' });
    await this.#exited;
    clearTimeout(timer);
  }

  #post(message: RankCall): void {
    this.#worker.post(message);
  }

  #receive(message: RankReply): void {
    if (message.type === 'lost') return this.#end(message.reason);
    this.#stats = message.stats;
    this.caller.receive(message);
  }

  #end(reason: string): void {
    this.caller.fail(new EngineError('device_lost', `an adapter of a split model was lost: ${reason}`));
    this.#resolveLost(reason);
  }
}
