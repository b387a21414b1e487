/** Regular expressions that a grammar can hold: what they may say, and how much. */
import type { Refuse } from './schema-keywords.ts';

/** Time grows with the square of the terms that overlap: 0.7 s for 300 times `a*`. */
const MAX_LENGTH = 512;
/** A group takes 0.4 kB of the library's stack. */
const MAX_GROUPS = 32;
/** Of a counted repeat, times those around it: `((a{1000}){1000}){1000}` takes 8 s. */
const MAX_REPEATS = 100_000;

/** Refuses what is no regular expression, cannot be enforced, or is too large. */
export function checkPattern(pattern: unknown, keyword: string, refuse: Refuse): void {
  if (typeof pattern !== 'string') return refuse(keyword, `'${keyword}' is a regular expression`);
  if (pattern.length > MAX_LENGTH) refuse(keyword, `a pattern of ${pattern.length} characters; at most ${MAX_LENGTH} can be enforced`);
  try {
    new RegExp(pattern, 'u');
  } catch {
    refuse(keyword, `${JSON.stringify(pattern).slice(0, 80)} is not a regular expression`);
  }
  if (/\(\?[=!<]|\\[bB1-9kpP]/.test(pattern)) refuse(keyword, 'look-around, back references, \\b and \\p cannot be enforced');
  if (!pattern.startsWith('^') || !pattern.endsWith('$')) refuse(keyword, "a pattern must be anchored with '^' and '$'");
  const { groups, repeats } = measure(pattern);
  if (groups > MAX_GROUPS) refuse(keyword, `groups nested ${groups} deep; at most ${MAX_GROUPS} can be enforced`);
  if (repeats > MAX_REPEATS) refuse(keyword, `counted repeats multiply to ${repeats}; at most ${MAX_REPEATS} can be enforced`);
}

/** How deep groups are nested, and the largest product of nested counted repeats, of a valid pattern. */
function measure(pattern: string): { readonly groups: number; readonly repeats: number } {
  let groups = 0;
  // The largest product within each open group, and within the last term.
  const open = [1];
  let term = 1;
  for (const [token, , least, most] of pattern.matchAll(/\\.|\[(?:\\.|[^\]\\])*\]|\{((\d+)(?:,(\d*))?)\}|[^]/gu)) {
    if (token === '(') groups = Math.max(groups, open.push(1) - 1);
    else if (token === ')') term = open.pop() ?? 1;
    else if (least !== undefined) term *= Math.max(1, Number(least), Number(most ?? 0));
    else term = 1;
    open[open.length - 1] = Math.max(open.at(-1) ?? 1, token === '(' ? 1 : term);
  }
  return { groups, repeats: open[0] ?? 1 };
}
