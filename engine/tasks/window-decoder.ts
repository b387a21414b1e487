/**
 * Decodes the windows of all requests side by side in the model's slots: reads, encodes and decodes each, and submits the next step before the tokens of the last are
 * read. Windows with beam search cannot do that, since their next step depends on the tokens: they take part in every other step or, on software adapters, the
 * loop waits for their tokens.
 */
import { EngineError, assert, stepFailed } from '../errors.ts';
import type { WhisperRunner } from '../runner/whisper-runner.ts';
import { alignmentOf, isHeard, settle, takeAlignment, wantsWords, withRoom } from './transcription-job.ts';
import type { Job, Window } from './transcription-job.ts';
import { WindowSteps } from './window-steps.ts';
import type { DetectedLanguage, SampledRow } from './window-steps.ts';

/** Callbacks of the decoder. */
export interface WindowListener {
  /** The language of a job was detected in its first window; the job now needs its prompt. */
  language(job: Job, detected: DetectedLanguage): void;
  /** A window of the job is done. */
  done(job: Job): void;
  /** The job failed, and has been dropped. */
  failed(job: Job, error: EngineError): void;
  /** A step failed, after which nothing can be decoded. */
  lost(error: EngineError): void;
}

/** A step in flight. */
interface Submitted {
  readonly sampled: readonly SampledRow[];
  readonly result: ReturnType<WhisperRunner['step']>;
}

export class WindowDecoder {
  readonly #runner: WhisperRunner;
  readonly #listener: WindowListener;
  readonly #decode: (tokens: readonly number[]) => string;
  readonly #steps: WindowSteps;
  /** Windows without a slot: requests take turns, and a request's windows are in order. Those with a slot are in `#active`. */
  #waiting: Window[] = [];
  readonly #active = new Set<Window>();
  readonly #freeSlots: number[];
  /** A slot that the device has no memory for; it is asked again once another was released. */
  #refused: number | undefined;
  #running: Promise<void> | undefined;
  /** Windows whose word times are being computed. */
  readonly #aligning = new Map<Window, Promise<void>>();

  /** `decode` turns tokens into text, by which repetitions are recognised. */
  constructor(runner: WhisperRunner, decode: (tokens: readonly number[]) => string, listener: WindowListener) {
    this.#runner = runner;
    this.#decode = decode;
    this.#listener = listener;
    this.#steps = new WindowSteps(runner);
    // A stack with slot 0 on top: a slot takes memory only once it has been used.
    this.#freeSlots = Array.from({ length: runner.slots }, (_, slot) => runner.slots - 1 - slot);
  }

  /** Queues a job's windows that are not done, and starts the loop unless it is running. */
  add({ windows }: Job): void {
    this.#waiting.push(...windows.filter(({ done }) => !done));
    this.#running ??= this.#loop().catch((error: unknown) => this.#listener.lost(stepFailed('transcription', error)));
  }

  /** Gives a job's windows their prompt. Until then, a window that has a slot detects the language. */
  prompt({ windows }: Job, prompt: readonly number[]): void {
    for (const window of windows) this.#steps.prepare(window, prompt);
  }

  /** Drops a job: its windows give up their slots. */
  drop(job: Job): void {
    this.#waiting = this.#waiting.filter((window) => window.job !== job);
    for (const window of job.windows) {
      this.#release(window);
      this.#aligning.delete(window);
    }
  }

  /** Resolves when no step is in flight and no word times are being computed. */
  async idle(): Promise<void> {
    await this.#running;
    await Promise.all(this.#aligning.values());
  }

  /** Runs steps until no window is left. At most one window is encoded per turn, so that steps and other tasks wait for no more than one encoding. */
  async #loop(): Promise<void> {
    let submitted: Submitted | undefined;
    try {
      await Promise.resolve();
      while (submitted || this.#active.size + this.#waiting.length > 0) {
        await this.#admit();
        if (submitted && this.#waitsForTokens()) {
          await this.#takeAll(submitted);
          submitted = undefined;
        }
        // The window to be admitted may have been dropped while its samples were read.
        if (!submitted && this.#active.size === 0) continue;
        const { sampled, rows, copies } = this.#steps.plan(this.#active);
        assert(rows.length > 0 || submitted, `nothing to do for ${this.#active.size} active and ${this.#waiting.length} waiting windows`);
        const current = rows.length > 0 ? { sampled, result: this.#runner.step(rows, copies) } : undefined;
        if (submitted) await this.#takeAll(submitted);
        submitted = current;
      }
    } finally {
      this.#running = undefined;
    }
  }

  /**
   * Whether the loop waits for a step's tokens before it plans the next. Windows with beam search sit out the step after theirs. On a GPU half of them are stepped
   * while the host processes the others' tokens; on a software adapter, which shares its cores with the host, one step for all is less work than two.
   */
  #waitsForTokens(): boolean {
    return this.#runner.software && [...this.#active].some(({ search }) => search !== undefined);
  }

  async #takeAll({ sampled, result }: Submitted): Promise<void> {
    const tokens = await result.tokens();
    for (const [i, row] of sampled.entries()) {
      const outcome = this.#steps.take(row, tokens[i]!);
      if (outcome === 'finished') this.#judge(row.window);
      else if (outcome) this.#listener.language(row.window.job, outcome);
    }
  }

  /**
   * The next window to admit: of the request with the fewest slots, so that a long recording does not hold up a short one. While a request's language is being
   * detected in its first window, its others wait.
   */
  #next(): Window | undefined {
    const slots = new Map<Job, number>();
    for (const { job, prompt } of this.#active) slots.set(job, (slots.get(job) ?? 0) + (prompt.length === 0 ? Infinity : 1));
    const held = ({ job }: Window): number => slots.get(job) ?? 0;
    let next: Window | undefined;
    for (const window of this.#waiting) if (held(window) < (next ? held(next) : Infinity)) next = window;
    return next;
  }

  /** Moves a job's windows behind those of other requests, so that requests take turns; windows in `first` precede the job's others. Their samples are read again later. */
  #yield(job: Job, first: readonly Window[] = []): void {
    for (const window of first) window.samples = undefined;
    const others = this.#waiting.filter((one) => one.job !== job);
    this.#waiting = [...others, ...first, ...this.#waiting.filter((one) => one.job === job)];
  }

  /** Reads the next window, gives it a slot and encodes it. */
  async #admit(): Promise<void> {
    const window = this.#freeSlots.length > 0 ? this.#next() : undefined;
    if (!window || !(await this.#hasRoom())) return;
    const { job, start, length } = window;
    try {
      window.samples ??= await job.heard.read(start, start + length);
    } catch (error) {
      this.drop(job);
      this.#listener.failed(job, error as EngineError);
      return;
    }
    if (!this.#waiting.includes(window)) return;
    this.#waiting.splice(this.#waiting.indexOf(window), 1);
    this.#yield(job);
    window.slot = this.#freeSlots.pop()!;
    this.#active.add(window);
    this.#runner.encode(window.slot, window.samples);
  }

  /** Whether the next free slot has memory. Slot 0 always has, and while another has none, those that have are taken. */
  async #hasRoom(): Promise<boolean> {
    const slot = this.#freeSlots.at(-1)!;
    if (slot === this.#refused) return false;
    const hasRoom = await this.#runner.makeRoom(slot);
    if (!hasRoom) this.#refused = slot;
    return hasRoom;
  }

  /** Finishes a window, or leaves it in its slot for another attempt. */
  #judge(window: Window): void {
    // The job may have been dropped meanwhile.
    if (this.#active.has(window) && isHeard(window, this.#runner.model, this.#decode)) this.#finish(window);
  }

  /** Finishes a window. Its unfinished end, or the parts of a window that ran out of room, are queued before its request's other windows. */
  #finish(window: Window): void {
    const parts = withRoom(window, this.#runner.model);
    if (parts.length > 0) {
      for (const part of parts) this.#steps.prepare(part, window.prompt);
      this.#release(window);
      this.#yield(
        window.job,
        parts.filter(({ done }) => !done),
      );
      // Parts may all be silent, and so done.
      return this.#listener.done(window.job);
    }
    // Aligned with all tokens, before the unfinished end is cut off, because those help to tell where the last ones end.
    if (wantsWords(window)) this.#align(window);
    const rest = settle(window, this.#runner.model);
    this.#release(window);
    if (rest) {
      this.#steps.prepare(rest, window.prompt);
      this.#yield(window.job, [rest]);
    }
    this.#listener.done(window.job);
  }

  /** Computes a window's word times. The work is submitted at once, so the slot may be given to another window before the result arrives. */
  #align(window: Window): void {
    const { model } = this.#runner;
    const { tokens, ...where } = alignmentOf(window, model);
    const matrix = this.#runner.align(window.slot!, tokens, where);
    window.aligning = true;
    const taken = async (): Promise<void> => {
      try {
        takeAlignment(window, model, await matrix, where.positions);
      } catch (error) {
        if (!(error instanceof EngineError)) this.#listener.lost(stepFailed('transcription', error));
        else if (this.#aligning.has(window)) this.#listener.failed(window.job, error);
        this.drop(window.job);
        return;
      }
      window.aligning = false;
      if (this.#aligning.delete(window)) this.#listener.done(window.job);
    };
    this.#aligning.set(window, taken());
  }

  /** Frees a window's slot. A step in flight may still write to it, but before any work that is submitted later. */
  #release(window: Window): void {
    window.done = true;
    window.samples = undefined;
    if (!this.#active.delete(window)) return;
    this.#freeSlots.push(window.slot!);
    this.#refused = undefined;
  }
}
