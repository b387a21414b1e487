/** The form of stored records. Another version of the page, newer or older, may have stored them. */

/** Types of fields, by name. */
export type Fields = Readonly<Record<string, 'string' | 'number'>>;

/** Whether a stored value is an object that has all of these fields, each of its type. */
export function hasFields(stored: unknown, fields: Fields): boolean {
  if (typeof stored !== 'object' || stored === null) return false;
  return Object.entries(fields).every(([name, type]) => typeof (stored as Record<string, unknown>)[name] === type);
}

/** Whether a stored value is a list of such objects. */
export const hasAllFields = (stored: unknown, fields: Fields): boolean =>
  Array.isArray(stored) && stored.every((entry) => hasFields(entry, fields));

/** Says that stored items of a kind, as `takes`, are left out of a view. */
export const leftOutWords = (items: string): string =>
  `Some ${items} are not shown: another version of this page stored them, which keeps them differently.`;
