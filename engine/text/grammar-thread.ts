/** The engine's side of one grammar worker thread: calls become promises, each with a time limit. */
import { EngineError } from '../errors.ts';
import type { PlatformWorker } from '../platform/platform.ts';
import type { GrammarCall, GrammarReply, Vocabulary } from './grammar-worker.ts';

/** Limits of one grammar thread; see GRAMMAR_LIMITS. */
export interface ThreadLimits {
  /** Time limit of one call; a grammar that takes longer is refused. */
  readonly milliseconds: number;
  /** Limit of the WASM memory, in bytes; a grammar that takes more is refused. */
  readonly maxBytes: number;
  /** Number of compiled grammars kept for further requests with the same schema. */
  readonly kept: number;
}

/** A call failed, and would fail in any other thread too. */
export class CallFailed extends Error {}

/** The thread ended before a call that was not the cause; the call may be repeated in another thread. */
export class ThreadLost extends Error {}

interface Waiting {
  readonly call: GrammarCall;
  readonly resolve: (mask: Int32Array) => void;
  readonly reject: (error: Error) => void;
}

/** Time limit for starting a thread, which compiles its scripts and reads the vocabulary. */
const LOAD_LIMIT_MS = 60_000;
const GRACE_MS = 50;
const NO_MASK = new Int32Array(0);

export class GrammarThread {
  /** Ids of the matchers that are open in this thread, or being opened. */
  readonly matchers = new Set<number>();
  /** Keys of the compiled grammars that the thread still has, the most recently used last. */
  readonly #keys = new Set<string>();
  readonly #limits: ThreadLimits;
  readonly #worker: PlatformWorker;
  readonly #onEnd: (thread: GrammarThread) => void;
  /** Calls without a reply, in order; the thread is working on the first. */
  #waiting: Waiting[] = [];
  #deadline: ReturnType<typeof setTimeout> | undefined;
  #bytes = 0;
  #ended = false;

  /** `onEnd` is called once, before the waiting calls are rejected. */
  constructor(worker: PlatformWorker, vocabulary: Vocabulary, limits: ThreadLimits, onEnd: (thread: GrammarThread) => void) {
    this.#worker = worker;
    this.#limits = limits;
    this.#onEnd = onEnd;
    worker.onMessage((message) => this.#take(message as GrammarReply));
    worker.onExit((why) => this.#end(why));
    const { maxBytes, kept } = limits;
    this.#post({ call: { type: 'load', vocabulary, maxBytes, kept }, resolve: () => {}, reject: () => {} });
  }

  /** Whether a grammar is being compiled or the vocabulary loaded, which takes much longer than a step of a matcher. */
  get isCompiling(): boolean {
    return this.#waiting.some(({ call }) => call.type === 'open' || call.type === 'load');
  }

  /** Whether no matcher is open in the thread. */
  get isIdle(): boolean {
    return this.matchers.size === 0;
  }

  /** How busy the thread is: open matchers and waiting calls. */
  get load(): number {
    return this.matchers.size + this.#waiting.length;
  }

  /** The library's WASM memory in bytes, as of the last reply. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Whether the thread still has this compiled grammar. */
  hasCompiled(key: string): boolean {
    return this.#keys.has(key);
  }

  /** Whether the thread is compiling this grammar, or about to. */
  isOpening(key: string): boolean {
    return this.#waiting.some(({ call }) => call.type === 'open' && call.key === key);
  }

  /** Makes a call; resolves with the token mask, which is empty for `close`. Rejects with CallFailed or ThreadLost. */
  ask(call: GrammarCall): Promise<Int32Array> {
    return new Promise((resolve, reject) => this.#post({ call, resolve, reject }));
  }

  /** Terminates the thread; waiting calls reject with ThreadLost. */
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

  /** Restarts the time limit, for the call that the thread is working on. */
  #watch(): void {
    clearTimeout(this.#deadline);
    const [first] = this.#waiting;
    if (!first) return;
    const milliseconds = first.call.type === 'load' ? LOAD_LIMIT_MS : this.#limits.milliseconds;
    // If this thread was blocked meanwhile, the reply is already queued; a short grace lets it be read first.
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

  /** Rejects the waiting calls: the first as the cause (unless `blame` is false), the others as repeatable, except when the thread could not even start. */
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
