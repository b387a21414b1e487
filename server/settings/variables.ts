/** Environment variables that look like settings and are none. */
import { FLAGS } from './flags.ts';
import { variablesOf } from './read.ts';

/** Variables besides the settings that Parley's programs read: a test finds them in the code. */
export const OTHER_VARIABLES: readonly string[] = [
  'BUILT_PLAYGROUND',
  'CACHE',
  'CHROMIUM',
  'DATA',
  'FIREFOX',
  'KILLS',
  'LLAMA_CPP',
  'NO_INSTALL',
  'OCEAN',
  'PACKAGE_FOLDER',
  'PROCESS',
  'PYTHON',
  'REAL_CLIPS',
  'ROUTERS',
  'SEED',
  'STARTED',
  'TABLE',
  'THOROUGH',
  'WEIGHTS',
  'WORK',
  'WORKERS',
].map((name) => `PARLEY_${name}`);

/** Most variables that are named. */
const MAX_NAMED = 10;
/** Most letters that a misspelt name may have too many, too few or wrong. */
const NEAR = 3;

/** Says which PARLEY_ variables have no effect, and which settings are perhaps meant, in one line; undefined if all have one. */
export function unknownVariables(env: Readonly<Record<string, string | undefined>>): string | undefined {
  const settings = FLAGS.flatMap(variablesOf);
  const known = new Set([...settings, ...OTHER_VARIABLES]);
  const names = Object.keys(env).filter((name) => name.startsWith('PARLEY_') && !known.has(name) && !isServiceLink(name, env[name]));
  if (names.length === 0) return undefined;
  const described = names.slice(0, MAX_NAMED).map((name) => {
    const near = nearest(name, settings);
    return near === undefined ? name : `${name} (is ${near} meant?)`;
  });
  const more = names.length > MAX_NAMED ? `, and ${names.length - MAX_NAMED} more` : '';
  return `the environment has variables that are no settings and have no effect: ${described.join(', ')}${more}`;
}

/** Whether Kubernetes set the variable: it names every service to every pod, and the service may be called parley. */
function isServiceLink(name: string, value = ''): boolean {
  return /_SERVICE_(HOST|PORT)|_PORT_\d+_(TCP|UDP|SCTP)/.test(name) || /^(tcp|udp|sctp):\/\//.test(value);
}

/** The name that differs in the fewest letters, if they are few. */
function nearest(name: string, names: readonly string[]): string | undefined {
  let [best, least]: [string | undefined, number] = [undefined, NEAR + 1];
  for (const other of names) {
    const distance = Math.abs(other.length - name.length) < least ? distanceOf(name, other) : least;
    if (distance < least) [best, least] = [other, distance];
  }
  return best;
}

/** Levenshtein's distance: letters to add, remove or replace. */
function distanceOf(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (const [i, letter] of [...a].entries()) {
    const next = [i + 1];
    for (let j = 0; j < b.length; j++) next.push(Math.min(next[j]! + 1, row[j + 1]! + 1, row[j]! + (letter === b[j] ? 0 : 1)));
    row = next;
  }
  return row.at(-1)!;
}
