/** Runs a task at most once in a while, however often it is asked for, and once more for the last time it was. */
export class Pace {
  readonly #every: number;
  readonly #run: () => void;
  #last = performance.now();
  #timer: ReturnType<typeof setTimeout> | undefined;

  /** The first run comes `every` ms from now at the earliest. */
  constructor(every: number, run: () => void) {
    this.#every = every;
    this.#run = run;
  }

  /** Runs the task now if the last run was `every` ms ago, else as soon as it will be. */
  ask(): void {
    const wait = this.#last + this.#every - performance.now();
    // Hidden pages hold timers back for up to a minute, and not what asks.
    if (wait <= 0) this.#runNow();
    else this.#timer ??= setTimeout(() => this.#runNow(), wait);
  }

  /** Drops a run that is due. */
  stop(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  #runNow(): void {
    this.stop();
    this.#last = performance.now();
    this.#run();
  }
}
