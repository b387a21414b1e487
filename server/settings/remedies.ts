/** Errors of the engine in the words of the command line. */
import type { EngineError, Remedy } from '../../engine/errors.ts';

/** What went wrong and what its operator can do, in one line. */
export function inFlags({ code, message, remedies, details }: EngineError): string {
  if (code === 'no_adapter') return `${message}; 'npx parley adapters' lists what there is`;
  if (details?.['modelTask'] !== undefined) return `${message}; --${details['modelTask']}-model takes it`;
  const [first, ...others] = remedies;
  if (!first) return message;
  if (others.length === 0) return `${message}; ${first.does} with ${flagsOf(first)}`;
  return `${message}. Ways out: ${remedies.map((remedy) => `${remedy.does} (${flagsOf(remedy)})`).join('; ')}.`;
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
