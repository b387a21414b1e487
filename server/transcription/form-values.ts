/** Values of a form's fields, which arrive as text. */
import { invalidValue } from '../http/errors.ts';

const BOOLEANS: ReadonlyMap<string, boolean> = new Map([['true', true], ['1', true], ['false', false], ['0', false]]); // prettier-ignore

/** `true`, `false`, `1` or `0`; undefined for what is absent or empty. */
export function parseBoolean(name: string, text: string | undefined): boolean | undefined {
  if (text === undefined || text === '') return undefined;
  const value = BOOLEANS.get(text.toLowerCase());
  if (value === undefined) throw invalidValue(name, `'${name}' must be true or false`);
  return value;
}
