/** Parses values of form fields, which are text. */
import { invalidValue } from '../http/errors.ts';

const BOOLEANS: ReadonlyMap<string, boolean> = new Map([['true', true], ['1', true], ['false', false], ['0', false]]); // prettier-ignore

/** Parses `true`, `false`, `1` or `0`; undefined for an absent or empty value. Throws HttpError 400 that names the field. */
export function parseBoolean(name: string, text: string | undefined): boolean | undefined {
  if (text === undefined || text === '') return undefined;
  const value = BOOLEANS.get(text.toLowerCase());
  if (value === undefined) throw invalidValue(name, `'${name}' must be true or false`);
  return value;
}
