/** Words the engine's errors in terms of the command line. */
import type { EngineError, Remedy } from '../engine/errors.ts';

/** One line with the error and what the operator can do. `own` are the options of a command, without dashes, which lacks some of the server's flags. */
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

/** The part of a remedy that a command's options can do. */
function within({ does, settings }: Remedy, options: readonly string[]): readonly Remedy[] {
  const known = settings.filter(({ name }) => options.includes(dashed(name)));
  return known.length > 0 ? [{ does, settings: known }] : [];
}

function flagsOf({ settings }: Remedy): string {
  // A switch takes no value.
  const flagOf = ({ name, value }: Remedy['settings'][number]): string =>
    value === false ? `--no-${dashed(name)}` : `--${dashed(name)}${value === undefined || value === true ? '' : ` ${value}`}`;
  return settings.map(flagOf).join(' or ');
}

/** A setting's key as flags spell it, without the dashes before it. */
export function dashed(key: string): string {
  return key.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}
