/** The log: JSON lines on stderr. Ids, routes, models, counts, times and error codes; never text, audio, keys or addresses. */
import { pino } from 'pino';
import type { Logger } from 'pino';

export type { Logger };

/** Levels as in pino: trace, debug, info, warn, error, fatal, silent. */
export function createLog(level: string): Logger {
  return pino({ level, base: null, timestamp: pino.stdTimeFunctions.isoTime }, pino.destination({ fd: 2, sync: false, minLength: 0 }));
}

/** A log for a program that Parley is a part of: `line` gets each line, of levels from `info` on. */
export function createLineLog(line: ((text: string) => void) | undefined): Logger {
  const level = line ? 'info' : 'silent';
  return pino({ level, base: null, timestamp: pino.stdTimeFunctions.isoTime }, { write: (text: string) => line?.(text.trimEnd()) });
}
