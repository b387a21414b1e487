/** The engine's side of one grammar thread: its calls as promises, each with a time limit. */
import { EngineError } from '../errors.ts';
import type { PlatformWorker } from '../platform/platform.ts';
import type { GrammarCall, GrammarReply, Vocabulary } from './grammar-worker.ts';

/** What a grammar thread may take; see GRAMMAR_LIMITS. */
export interface ThreadLimits {
  /** Of one call: a grammar that takes longer is refused. */
  readonly milliseconds: number;
  /** Of the library's memory: a grammar that takes more is refused. */
  readonly maxBytes: number;
  /** Compiled grammars kept for the next request with the same schema. */
  readonly kept: number;
}

/** A call failed and cannot succeed elsewhere. */
export class CallFailed extends Error {}

/** The thread is gone with a call that was not to blame: it may be made again on another one. */
export class ThreadLost extends Error {}

interface Waiting {
  readonly call: GrammarCall;
  readonly resolve: (mask: Int32Array) => void;
  readonly reject: (error: Error) => void;
}

/** For starting a thread: its scripts are compiled and the vocabulary is read. */
const LOAD_LIMIT_MS = 60_000;
const GRACE_MS = 50;
const NO_MASK = new Int32Array(0);

export class GrammarThread {
  /** Matchers that are open here, or being opened. */
  readonly matchers = new Set<number>();
  /** Keys of the grammars that were compiled here, the most recent last; the thread keeps as many. */
  readonly #keys = new Set<string>();
  readonly #limits: ThreadLimits;
  readonly #worker: PlatformWorker;
  readonly #onEnd: (thread: GrammarThread) => void;
  /** Calls without an answer, in order: the thread is at the first. */
  #waiting: Waiting[] = [];
  #deadline: ReturnType<typeof setTimeout> | undefined;
  #bytes = 0;
  #ended = false;

  /** `onEnd` is called once, before the calls that wait are rejected. */
  constructor(worker: PlatformWorker, vocabulary: Vocabulary, limits: ThreadLimits, onEnd: (thread: GrammarThread) => void) {
    this.#worker = worker;
    this.#limits = limits;
    this.#onEnd = onEnd;
    worker.onMessage((message) => this.#take(message as GrammarReply));
    worker.onExit((why) => this.#end(why));
    const { maxBytes, kept } = limits;
    this.#post({ call: { type: 'load', vocabulary, maxBytes, kept }, resolve: () => {}, reject: () => {} });
  }

  /** Whether it is at work on something other than a step of a matcher, which takes long. */
  get isCompiling(): boolean {
    return this.#waiting.some(({ call }) => call.type === 'open' || call.type === 'load');
  }

  /** Whether nothing runs in it. */
  get isIdle(): boolean {
    return this.matchers.size === 0;
  }

  /** What waits for an answer and what will come back for one. */
  get load(): number {
    return this.matchers.size + this.#waiting.length;
  }

  get bytes(): number {
    return this.#bytes;
  }

  hasCompiled(key: string): boolean {
    return this.#keys.has(key);
  }

  isOpening(key: string): boolean {
    return this.#waiting.some(({ call }) => call.type === 'open' && call.key === key);
  }

  /** Answers with the mask, empty for `close`. Rejects with CallFailed or ThreadLost. */
  ask(call: GrammarCall): Promise<Int32Array> {
    return new Promise((resolve, reject) => this.#post({ call, resolve, reject }));
  }

  end(): Promise<void> {
    this.#end('it was ended', false);
    return this.#worker.terminate();
  }

  #post(waiting: Waiting): void {
    if (this.#ended) return waiting.reject(new ThreadLost('the thread has ended'));
    this.#waiting.push(waiting);
    if (this.#waiting.length === 1) this.#watch();
    this.#worker.post(waiting.call);
  }

  /** The clock runs for the call that the thread is at. */
  #watch(): void {
    clearTimeout(this.#deadline);
    const [first] = this.#waiting;
    if (!first) return;
    const milliseconds = first.call.type === 'load' ? LOAD_LIMIT_MS : this.#limits.milliseconds;
    // Where this thread itself was busy all the time, the answer is there and is read first.
    const giveUp = (): void => this.#giveUp(`it takes more than ${milliseconds / 1000} s`);
    this.#deadline = setTimeout(() => (this.#deadline = setTimeout(giveUp, GRACE_MS)), milliseconds);
  }

  #take({ mask, bytes, error }: GrammarReply): void {
    if (this.#ended) return;
    this.#bytes = bytes;
    if (error?.broken) return this.#giveUp(error.message);
    const { call, resolve, reject } = this.#waiting.shift()!;
    this.#watch();
    if (error) return reject(new CallFailed(error.message));
    if (call.type === 'open') this.#keep(call.key);
    resolve(mask ?? NO_MASK);
  }

  #keep(key: string): void {
    this.#keys.delete(key);
    this.#keys.add(key);
    if (this.#keys.size > this.#limits.kept) this.#keys.delete(this.#keys.keys().next().value!);
  }

  #giveUp(why: string): void {
    this.#end(why);
    void this.#worker.terminate();
  }

  /** The call it was at is to blame, unless the end was asked for; the rest may be made again, except where the thread could not even start. */
  #end(why: string, blame = true): void {
    if (this.#ended) return;
    this.#ended = true;
    clearTimeout(this.#deadline);
    this.#onEnd(this);
    const [first, ...rest] = this.#waiting;
    this.#waiting = [];
    first?.reject(blame ? new CallFailed(why) : new ThreadLost(why));
    const failed =
      blame && first?.call.type === 'load' ? new EngineError('internal', `the grammar library could not be started: ${why}`) : undefined;
    for (const { reject } of rest) reject(failed ?? new ThreadLost(why));
  }
}
