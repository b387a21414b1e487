/** How far a pull is, for a person: one line that is written over on a terminal, now and then a line elsewhere. */
import { Meter, describeProgress, percent } from '../progress.ts';
import type { PullProgress } from '../progress.ts';

/** A terminal, or what is read by a program. */
export interface ReportStream {
  write(text: string): unknown;
  readonly isTTY?: boolean;
  readonly columns?: number;
}

export interface PullReport {
  onProgress(progress: PullProgress): void;
  /** Writes a line of its own, above the one that is written over. */
  line(text: string): void;
  /** Takes the line that is written over away. */
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
      // A terminal that knows no size, as Docker's may be, says 0.
      show(describeProgress(progress, meter, isTerminal ? (stream.columns || 80) - 1 : undefined));
    },
    line(text) {
      clear();
      stream.write(`${text}\n`);
    },
    end: clear,
  };
}
