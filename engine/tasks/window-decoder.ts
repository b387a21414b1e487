/**
 * Windows through the model's slots, those of all requests side by side: each is read, encoded and decoded, with the next step submitted before
 * the last one's tokens are read. Windows that are searched with several beams sit out one step in two, or on software adapters wait: their
 * next one depends on the tokens.
 */
import { EngineError, assert, stepFailed } from '../errors.ts';
import type { WhisperRunner } from '../runner/whisper-runner.ts';
import { alignmentOf, isHeard, settle, takeAlignment, wantsWords, withRoom } from './transcription-job.ts';
import type { Job, Window } from './transcription-job.ts';
import { WindowSteps } from './window-steps.ts';
import type { DetectedLanguage, SampledRow } from './window-steps.ts';

/** Who is told what comes of the windows. */
export interface WindowListener {
  /** The first window of a job without a language has told it: give the job its prompt. */
  language(job: Job, detected: DetectedLanguage): void;
  /** A window of the job is done. */
  done(job: Job): void;
  /** The job cannot be heard further; it has been forgotten. */
  failed(job: Job, error: EngineError): void;
  /** A step failed: nothing can be decoded any more. */
  lost(error: EngineError): void;
}

/** A step on the device. */
interface Submitted {
  readonly sampled: readonly SampledRow[];
  readonly result: ReturnType<WhisperRunner['step']>;
}

export class WindowDecoder {
  readonly #runner: WhisperRunner;
  readonly #listener: WindowListener;
  readonly #decode: (tokens: readonly number[]) => string;
  readonly #steps: WindowSteps;
  /** Windows without a slot, those of a request in order and requests by turns, and those with one. */
  #waiting: Window[] = [];
  readonly #active = new Set<Window>();
  readonly #freeSlots: number[];
  #running: Promise<void> | undefined;
  /** Windows whose words are being timed. */
  readonly #aligning = new Map<Window, Promise<void>>();

  /** `decode` makes text of tokens, to see whether it repeats itself. */
  constructor(runner: WhisperRunner, decode: (tokens: readonly number[]) => string, listener: WindowListener) {
    this.#runner = runner;
    this.#decode = decode;
    this.#listener = listener;
    this.#steps = new WindowSteps(runner);
    // The first is taken first, and then again: slots that no window has had yet take no memory.
    this.#freeSlots = Array.from({ length: runner.slots }, (_, slot) => runner.slots - 1 - slot);
  }

  /** Queues the windows of a job that are not done, and starts the loop unless it runs. */
  add({ windows }: Job): void {
    this.#waiting.push(...windows.filter(({ done }) => !done));
    this.#running ??= this.#loop().catch((error: unknown) => this.#listener.lost(stepFailed('transcription', error)));
  }

  /** Gives a job's windows their prompt; until then those that have a slot look for the language. */
  prompt({ windows }: Job, prompt: readonly number[]): void {
    for (const window of windows) this.#steps.prepare(window, prompt);
  }

  /** Forgets a job. */
  drop(job: Job): void {
    this.#waiting = this.#waiting.filter((window) => window.job !== job);
    for (const window of job.windows) {
      this.#release(window);
      this.#aligning.delete(window);
    }
  }

  /** Resolves when no step is under way. */
  async idle(): Promise<void> {
    await this.#running;
    await Promise.all(this.#aligning.values());
  }

  /** Steps until nothing is left. One window is encoded a turn, so that others' steps (and other tasks) wait for no more than that. */
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
        // The window that was to come in may have gone while it was read.
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
   * Searched windows sit out the step after theirs. On a GPU half of them step while the host ponders the others' tokens; a software adapter shares
   * its cores with the host, and one step for all is less work than two.
   */
  #waitsForTokens(): boolean {
    return this.#runner.software && [...this.#active].some(({ search }) => search !== undefined);
  }

  async #takeAll({ sampled, result }: Submitted): Promise<void> {
    const tokens = await result.tokens();
    for (const [i, row] of sampled.entries()) {
      const outcome = this.#steps.take(row, tokens[i]!);
      if (outcome === 'finished') await this.#judge(row.window);
      else if (outcome) this.#listener.language(row.window.job, outcome);
    }
  }

  /**
   * The window that comes in next: of the request with the fewest slots, so that a long recording does not hold up a short one. A request's language is
   * detected in its first window before the others follow.
   */
  #next(): Window | undefined {
    const slots = new Map<Job, number>();
    for (const { job, prompt } of this.#active) slots.set(job, (slots.get(job) ?? 0) + (prompt.length === 0 ? Infinity : 1));
    const held = ({ job }: Window): number => slots.get(job) ?? 0;
    let next: Window | undefined;
    for (const window of this.#waiting) if (held(window) < (next ? held(next) : Infinity)) next = window;
    return next;
  }

  /** Requests with as many slots take turns: a job's windows, after those that are heard before them, come behind the others. Their samples are read again then. */
  #yield(job: Job, first: readonly Window[] = []): void {
    for (const window of first) window.samples = undefined;
    const others = this.#waiting.filter((one) => one.job !== job);
    this.#waiting = [...others, ...first, ...this.#waiting.filter((one) => one.job === job)];
  }

  /** Reads the next window and gives it a slot. */
  async #admit(): Promise<void> {
    const window = this.#freeSlots.length > 0 ? this.#next() : undefined;
    if (!window) return;
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

  /** Ends a window, or lets it begin again in its slot while the others go on. */
  async #judge(window: Window): Promise<void> {
    const heard = await isHeard(window, this.#runner.model, this.#decode);
    // Its request may have gone away meanwhile.
    if (heard && this.#active.has(window)) this.#finish(window);
  }

  /** Ends a window; what it left unheard comes before the others of its request, and so do the parts of one that had no room for its text. */
  #finish(window: Window): void {
    const parts = withRoom(window, this.#runner.model);
    if (parts.length > 0) {
      for (const part of parts) this.#steps.prepare(part, window.prompt);
      this.#release(window);
      this.#yield(
        window.job,
        parts.filter(({ done }) => !done),
      );
      return;
    }
    // Before what is heard again is cut off its tokens: it helps to tell where the last ones end.
    if (wantsWords(window)) this.#align(window);
    const rest = settle(window, this.#runner.model);
    this.#release(window);
    if (rest) {
      this.#steps.prepare(rest, window.prompt);
      this.#yield(window.job, [rest]);
    }
    this.#listener.done(window.job);
  }

  /** Times a window's tokens. The work is submitted at once, so the slot may have another window's sound when the times come. */
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

  /** Takes a window's slot back; a step still in flight may write there, before whatever comes next. */
  #release(window: Window): void {
    window.done = true;
    window.samples = undefined;
    if (!this.#active.delete(window)) return;
    this.#freeSlots.push(window.slot!);
  }
}
