/** How far a download is, how fast, and how long it will take yet. Pure. */

/** A moment of a download. */
export interface PullProgress {
  /** The source, as it was written. */
  readonly what: string;
  readonly step: 'fetching' | 'checking' | 'joining';
  /** Bytes that are here. */
  readonly done: number;
  /** Bytes in all; absent where the other side does not say. */
  readonly total?: number;
  /** Set where another process does the work and this one waits. */
  readonly process?: number;
}

/** Speeds change; what counts is the last ten seconds. */
const WINDOW_MS = 10_000;

/** Speed and time left, from what is noted. Times are milliseconds of any clock that does not jump. */
export class Meter {
  readonly #marks: { readonly at: number; readonly done: number }[] = [];

  note(done: number, at: number): void {
    // What was here before, or was thrown away, is no speed.
    if (done < (this.#marks.at(-1)?.done ?? 0)) this.#marks.length = 0;
    this.#marks.push({ at, done });
    while (this.#marks.length > 2 && at - this.#marks[1]!.at > WINDOW_MS) this.#marks.shift();
  }

  /** Bytes a second; undefined before there is anything to tell. */
  get speed(): number | undefined {
    const [first, last] = [this.#marks[0], this.#marks.at(-1)];
    if (!first || !last || last.at - first.at < 500 || last.done === first.done) return undefined;
    return ((last.done - first.done) * 1000) / (last.at - first.at);
  }

  /** Undefined before enough has come to guess from. */
  secondsLeft(total: number): number | undefined {
    const { speed } = this;
    const done = this.#marks.at(-1)?.done ?? 0;
    return speed === undefined || done < total / 100 ? undefined : (total - done) / speed;
  }
}

/** 98 MB, as disks and networks count: in thousands. */
export function formatBytes(bytes: number): string {
  const units = ['bytes', 'kB', 'MB', 'GB', 'TB'];
  const power = Math.min(units.length - 1, bytes < 1000 ? 0 : Math.floor(Math.log10(bytes) / 3));
  const value = bytes / 1000 ** power;
  return `${power === 0 || value >= 99.95 ? value.toFixed(0) : value.toFixed(1)} ${units[power]}`;
}

/** 75 -> 1 min 15 s */
export function formatSeconds(seconds: number): string {
  const whole = Math.max(0, Math.round(seconds));
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`;
}

/** One line about a moment, of at most `columns` characters: the name gives way to the numbers. */
export function describeProgress(progress: PullProgress, meter: Meter, columns = Infinity): string {
  const { what, step, done, total, process } = progress;
  const amount = total === undefined ? formatBytes(done) : `${percent(done, total)} % of ${formatBytes(total)}`;
  const parts = [step === 'fetching' ? amount : `${step}, ${amount}`];
  if (step === 'fetching' && meter.speed !== undefined) parts.push(`${formatBytes(meter.speed)}/s`);
  const left = total === undefined || step !== 'fetching' ? undefined : meter.secondsLeft(total);
  if (left !== undefined) parts.push(`${formatSeconds(left)} left`);
  if (process !== undefined) parts.push(`fetched by process ${process}`);
  const numbers = parts.join(', ');
  return `${shorten(what, columns - numbers.length - 2)}: ${numbers}`.slice(0, Math.max(0, columns));
}

/** The beginning and the end of a name that is too long. */
function shorten(name: string, length: number): string {
  if (name.length <= length) return name;
  if (length < 8) return name.slice(0, Math.max(1, length));
  const head = Math.ceil((length - 1) / 2);
  return `${name.slice(0, head)}…${name.slice(name.length - (length - 1 - head))}`;
}

/** Never 100 before all is there. */
export const percent = (done: number, total: number): number => (total === 0 ? 100 : Math.floor((done / total) * 100));
