/** The coordinator's hold on a rank: in its own thread, or in a thread of the rank's. */
import type { MemoryUse } from '../api.ts';
import { EngineError } from '../errors.ts';
import type { EngineErrorCode } from '../errors.ts';
import type { DeviceStats } from '../gpu/device.ts';
import type { Shard } from '../models/shard.ts';
import type { Platform, PlatformWorker } from '../platform/platform.ts';
import type { StepLimits } from '../runner/step-input.ts';
import type { GroupSizes } from './group-memory.ts';
import type { RankPlace } from './link.ts';
import { RankHost } from './rank-host.ts';
import type { LoadedRank, OpenedRank, SplitModel } from './rank-host.ts';
import type { Signals } from './signals.ts';

/** RankHost's methods, whichever thread they run in. */
export interface RankPort {
  open(adapter: string | undefined): Promise<OpenedRank>;
  measure(): Promise<number>;
  load(model: SplitModel, place: RankPlace, shard: Shard): Promise<LoadedRank>;
  reserve(limits: Pick<StepLimits, 'maxRunning' | 'prefillChunk' | 'draftRows'>): Promise<MemoryUse>;
  start(pages: number, sizes: GroupSizes, buffer: ArrayBufferLike): Promise<void>;
  /** Steps run in the order they are asked for; resolves when this rank is done with it. */
  step(place: number): Promise<void>;
  /** Counters of the rank's device, as of its last answer. */
  readonly stats: DeviceStats | undefined;
  /** Resolves with the reason when the rank is gone for good. */
  readonly lost: Promise<string>;
  close(): Promise<void>;
}

type Method = 'open' | 'measure' | 'load' | 'reserve' | 'start' | 'step' | 'close';

/** How long a thread may take to give its device back and end itself. Terminating it is the last resort: Dawn may abort the whole process. */
const CLOSE_MS = 30_000;

/** To the rank's thread. */
export interface RankCall {
  readonly id: number;
  readonly method: Method;
  readonly args: readonly unknown[];
}

/** From it; an id of 0 is news that nobody asked for. */
export type RankReply =
  | { readonly id: number; readonly value: unknown; readonly stats: DeviceStats }
  | { readonly id: number; readonly error: { readonly code: EngineErrorCode; readonly message: string } };

/** A rank in this thread. */
export class LocalRank implements RankPort {
  readonly #host: RankHost;
  readonly #signals: () => Signals;
  #queue: Promise<void> = Promise.resolve();
  #resolveLost!: (reason: string) => void;
  readonly lost = new Promise<string>((resolve) => (this.#resolveLost = resolve));

  /** `signals` gives those of the group once it starts. */
  constructor(platform: Platform, signals: () => Signals) {
    this.#host = new RankHost(platform);
    this.#signals = signals;
  }

  get stats(): DeviceStats {
    return this.#host.stats;
  }

  async open(adapter: string | undefined): Promise<OpenedRank> {
    const opened = await this.#host.open(adapter);
    void this.#host.lost.then(this.#resolveLost);
    return opened;
  }

  measure(): Promise<number> {
    return this.#host.measure();
  }

  load(model: SplitModel, place: RankPlace, shard: Shard): Promise<LoadedRank> {
    return this.#host.load(model, place, shard);
  }

  reserve(limits: Pick<StepLimits, 'maxRunning' | 'prefillChunk' | 'draftRows'>): Promise<MemoryUse> {
    return this.#host.reserve(limits);
  }

  start(pages: number, sizes: GroupSizes, buffer: ArrayBufferLike): Promise<void> {
    return this.#host.start(pages, sizes, buffer, this.#signals());
  }

  step(place: number): Promise<void> {
    this.#queue = this.#queue.then(() => this.#host.step(place));
    return this.#queue;
  }

  async close(): Promise<void> {
    this.#host.close();
  }
}

interface Pending {
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: EngineError) => void;
}

/** A rank in a thread of its own (rank-worker.ts). */
export class WorkerRank implements RankPort {
  readonly #worker: PlatformWorker;
  readonly #pending = new Map<number, Pending>();
  readonly #exited: Promise<void>;
  #nextId = 1;
  #stats: DeviceStats | undefined;
  #resolveLost!: (reason: string) => void;
  readonly lost = new Promise<string>((resolve) => (this.#resolveLost = resolve));

  constructor(worker: PlatformWorker) {
    this.#worker = worker;
    worker.onMessage((message) => this.#take(message as RankReply));
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

  open(adapter: string | undefined): Promise<OpenedRank> {
    return this.#call('open', adapter);
  }

  measure(): Promise<number> {
    return this.#call('measure');
  }

  load(model: SplitModel, place: RankPlace, shard: Shard): Promise<LoadedRank> {
    return this.#call('load', model, place, shard);
  }

  reserve(limits: Pick<StepLimits, 'maxRunning' | 'prefillChunk' | 'draftRows'>): Promise<MemoryUse> {
    return this.#call('reserve', limits);
  }

  start(pages: number, sizes: GroupSizes, buffer: ArrayBufferLike): Promise<void> {
    return this.#call('start', pages, sizes, buffer);
  }

  step(place: number): Promise<void> {
    return this.#call('step', place);
  }

  async close(): Promise<void> {
    // Not the answer but the end of the thread is waited for: that it lost its device may be heard in between.
    const timer = setTimeout(() => void this.#worker.terminate(), CLOSE_MS);
    this.#call('close').catch(() => undefined);
    await this.#exited;
    clearTimeout(timer);
  }

  #call<T>(method: Method, ...args: readonly unknown[]): Promise<T> {
    const id = this.#nextId++;
    const answer = new Promise<T>((resolve, reject) => this.#pending.set(id, { resolve: resolve as (value: unknown) => void, reject }));
    this.#worker.post({ id, method, args } satisfies RankCall);
    return answer;
  }

  #take(reply: RankReply): void {
    const pending = this.#pending.get(reply.id);
    this.#pending.delete(reply.id);
    if ('error' in reply) {
      const error = new EngineError(reply.error.code, reply.error.message);
      if (pending) pending.reject(error);
      else this.#end(reply.error.message);
      return;
    }
    this.#stats = reply.stats;
    pending?.resolve(reply.value);
  }

  #end(reason: string): void {
    for (const { reject } of this.#pending.values())
      reject(new EngineError('device_lost', `an adapter of a split model was lost: ${reason}`));
    this.#pending.clear();
    this.#resolveLost(reason);
  }
}
