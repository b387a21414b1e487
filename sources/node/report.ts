/** Reports the progress of a pull to a person: on a terminal in a line that is overwritten, elsewhere in a line now and then. */
import { Meter, describeProgress, percent } from '../progress.ts';
import type { PullProgress } from '../progress.ts';

/** A terminal, or a stream that a program reads. */
export interface ReportStream {
  write(text: string): unknown;
  readonly isTTY?: boolean;
  readonly columns?: number;
}

/** A reporter of pulls, which is told of progress and notes. */
export interface PullReport {
  onProgress(progress: PullProgress): void;
  /** Writes a line, above the one that is overwritten. */
  line(text: string): void;
  /** Clears the line that is overwritten. */
  end(): void;
}

const TERMINAL_MS = 100;
const PLAIN_MS = 10_000;
const PLAIN_PERCENT = 10;

/** Reports to a stream; `now` is a clock in milliseconds. */
export function reportPull(stream: ReportStream, now: () => number = () => performance.now()): PullReport {
  const isTerminal = stream.isTTY === true;
  let meter = new Meter();
  let last: PullProgress | undefined;
  let shown = { at: -Infinity, percent: 0 };
  let isOpen = false;
  const clear = (): void => {
    if (isOpen) stream.write('\r\x1b[K');
    isOpen = false;
  };
  const show = (text: string): void => {
    if (!isTerminal) return void stream.write(`${text}\n`);
    stream.write(`\r\x1b[K${text}`);
    isOpen = true;
  };
  return {
    onProgress(progress) {
      const at = now();
      const isNew = last?.what !== progress.what || last.step !== progress.step || last.process !== progress.process;
      if (isNew) meter = new Meter();
      if (isNew) shown = { at: isTerminal ? -Infinity : at, percent: 0 };
      meter.note(progress.done, at);
      last = progress;
      const part = progress.total === undefined ? 0 : percent(progress.done, progress.total);
      const isFetching = progress.step === 'fetching';
      const isFar = isFetching && (isNew || part >= shown.percent + PLAIN_PERCENT);
      const isDue = isTerminal ? at - shown.at >= TERMINAL_MS : at - shown.at >= PLAIN_MS || isFar;
      if (!isDue) return;
      shown = { at, percent: part - (part % PLAIN_PERCENT) };
      // A terminal of unknown size, as Docker's may be, reports 0.
      show(describeProgress(progress, meter, isTerminal ? (stream.columns || 80) - 1 : undefined));
    },
    line(text) {
      clear();
      stream.write(`${text}\n`);
    },
    end: clear,
  };
}
