/** Errors of the engine in the words of the command line. */
import type { EngineError, Remedy } from '../../engine/errors.ts';

/** What went wrong and what its operator can do, in one line. `own` are the options of a command, without dashes: it has not all flags that the server has. */
export function inFlags({ code, message, remedies, details }: EngineError, own?: readonly string[]): string {
  if (code === 'no_adapter') return `${message}; 'npx parley adapters' lists what there is`;
  const task = details?.['modelTask'];
  if (task !== undefined) return own ? `${message}; 'npm start' serves it with --${task}-model` : `${message}; --${task}-model takes it`;
  const here = own ? remedies.flatMap((remedy) => within(remedy, own)) : remedies;
  const [where, ways] = here.length > 0 ? ['', here] : [" of 'npm start'", remedies];
  const [first, ...others] = ways;
  if (!first) return message;
  if (others.length === 0) return `${message}; ${first.does} with ${flagsOf(first)}${where}`;
  return `${message}. Ways out${where}: ${ways.map((remedy) => `${remedy.does} (${flagsOf(remedy)})`).join('; ')}.`;
}

/** What of a remedy a command can do by these options. */
function within({ does, settings }: Remedy, options: readonly string[]): readonly Remedy[] {
  const known = settings.filter(({ name }) => options.includes(dashed(name)));
  return known.length > 0 ? [{ does, settings: known }] : [];
}

function flagsOf({ settings }: Remedy): string {
  // A switch takes no value behind it.
  const flagOf = ({ name, value }: Remedy['settings'][number]): string =>
    value === false ? `--no-${dashed(name)}` : `--${dashed(name)}${value === undefined || value === true ? '' : ` ${value}`}`;
  return settings.map(flagOf).join(' or ');
}

/** A setting's key as flags spell it, without the dashes before it. */
export function dashed(key: string): string {
  return key.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}
