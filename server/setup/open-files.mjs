/** How many files, sockets among them, this process may have open, and what they are for. Plain Node. */
import { readFileSync } from 'node:fs';

/** What the server has open besides connections and what they bring: its threads, its engine's channel, files of models and samples. */
const OWN_FILES = 128;
/** Fewest with which it is started: half of them are for connections. */
export const LEAST_OPEN_FILES = 2 * OWN_FILES;

/**
 * How many files this process may have open; undefined where the system does not say, or sets no limit. Node has raised its limit (`ulimit -n`) to the highest that
 * it may set.
 * @returns {number | undefined}
 */
export function openFilesLimit() {
  let limits = '';
  try {
    limits = readFileSync('/proc/self/limits', 'utf8');
  } catch {
    // Only Linux has it.
  }
  const [, soft] = /^Max open files +(\d+)/m.exec(limits) ?? [];
  return soft === undefined ? undefined : Number(soft);
}

/**
 * How many connections each of so many listeners may have, so that a flood of them leaves the process what it needs for itself. One listener has the page, a file of
 * which may be on its way to each of its connections.
 * @param {number | undefined} limit
 * @param {number} listeners
 * @returns {number | undefined}
 */
export function connectionsWithin(limit, listeners) {
  return limit === undefined ? undefined : Math.floor((limit - OWN_FILES) / (listeners + 1));
}
