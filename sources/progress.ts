/** Progress of a download, its speed, and the time left. Pure. */

/** State of a download at one moment. */
export interface PullProgress {
  /** The source as the user wrote it. */
  readonly what: string;
  readonly step: 'fetching' | 'checking' | 'joining';
  /** Bytes that have arrived. */
  readonly done: number;
  /** Bytes in total; absent if the server does not tell. */
  readonly total?: number;
  /** Id of another process that does the work while this one waits. */
  readonly process?: number;
}

/** Speed is measured over the last ten seconds. */
const WINDOW_MS = 10_000;

/** Computes speed and time left from noted amounts. Times are milliseconds of any monotonic clock. */
export class Meter {
  readonly #marks: { readonly at: number; readonly done: number }[] = [];

  note(done: number, at: number): void {
    // Bytes that were here before, or were discarded, do not count as speed.
    if (done < (this.#marks.at(-1)?.done ?? 0)) this.#marks.length = 0;
    this.#marks.push({ at, done });
    while (this.#marks.length > 2 && at - this.#marks[1]!.at > WINDOW_MS) this.#marks.shift();
  }

  /** Bytes per second; undefined until it can be measured. */
  get speed(): number | undefined {
    const [first, last] = [this.#marks[0], this.#marks.at(-1)];
    if (!first || !last || last.at - first.at < 500 || last.done === first.done) return undefined;
    return ((last.done - first.done) * 1000) / (last.at - first.at);
  }

  /** Estimated seconds left; undefined until there is a speed to estimate from. */
  secondsLeft(total: number): number | undefined {
    const { speed } = this;
    const done = this.#marks.at(-1)?.done ?? 0;
    return speed === undefined || done < total / 100 ? undefined : (total - done) / speed;
  }
}

/** Formats a size (98 MB), in powers of 1000, as disks and networks do. */
export function formatBytes(bytes: number): string {
  const units = ['bytes', 'kB', 'MB', 'GB', 'TB'];
  const power = Math.min(units.length - 1, bytes < 1000 ? 0 : Math.floor(Math.log10(bytes) / 3));
  const value = bytes / 1000 ** power;
  return `${power === 0 || value >= 99.95 ? value.toFixed(0) : value.toFixed(1)} ${units[power]}`;
}

/** Formats a duration: 75 -> 1 min 15 s. */
export function formatSeconds(seconds: number): string {
  const whole = Math.max(0, Math.round(seconds));
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`;
}

/** Describes a state in a line of at most `columns` characters; the name is shortened before the numbers. */
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

/** Shortens a long name to its beginning and end. */
function shorten(name: string, length: number): string {
  if (name.length <= length) return name;
  if (length < 8) return name.slice(0, Math.max(1, length));
  const head = Math.ceil((length - 1) / 2);
  return `${name.slice(0, head)}…${name.slice(name.length - (length - 1 - head))}`;
}

/** Whole percent, rounded down: never 100 before everything is there. */
export const percent = (done: number, total: number): number => (total === 0 ? 100 : Math.floor((done / total) * 100));
