/** Regular expressions in JSON Schemas: which can be enforced, and how they are rewritten for the grammar library. */
import type { Refuse } from './schema-keywords.ts';

/** Most characters of a pattern. Compile time grows with the square of the number of overlapping terms: 0.7 s for 300 times `a*`. */
const MAX_LENGTH = 512;
/** Most levels of nested groups, each of which takes 0.4 kB of the library's stack. */
const MAX_GROUPS = 32;
/** Largest product of nested counted repeats: `((a{1000}){1000}){1000}` takes 8 s. */
const MAX_REPEATS = 100_000;
/** Most steps of matching a pattern in JavaScript, as isQuickToMatch estimates them. */
const MAX_STEPS = 65_536;

/** Refuses a value that is no regular expression, or one that cannot be enforced or is too large. */
export function checkPattern(pattern: unknown, keyword: string, refuse: Refuse): void {
  if (pattern === DECIMAL) return;
  if (typeof pattern !== 'string') return refuse(keyword, `'${keyword}' is a regular expression`, 'malformed');
  if (pattern.length > MAX_LENGTH) refuse(keyword, `a pattern of ${pattern.length} characters; at most ${MAX_LENGTH} can be enforced`);
  try {
    new RegExp(pattern, 'u');
  } catch {
    refuse(keyword, `${JSON.stringify(pattern).slice(0, 80)} is not a regular expression`);
  }
  if (/\(\?[=!<]|\\[bB1-9kpP]/.test(pattern))
    refuse(
      keyword,
      "look-around, back references, \\b and \\p cannot be enforced; characters, classes, groups, '|', repeats, and '^' and '$' at the ends can",
    );
  const terms = (pattern.match(TERM) ?? []).filter((term) => !STRUCTURE.test(term));
  const nothing = terms.find((term) => without(spansOf(term), [SURROGATES]).length === 0);
  if (nothing !== undefined) refuse(keyword, `${nothing} takes no character`);
  const inside = alternativesOf(pattern).flatMap(({ terms }) => terms);
  if (inside.includes('^') || inside.includes('$'))
    refuse(keyword, "'^' and '$' can be enforced at the ends of a pattern and of its alternatives");
  const { groups, repeats } = measure(pattern);
  if (groups > MAX_GROUPS) refuse(keyword, `groups nested ${groups} deep; at most ${MAX_GROUPS} can be enforced`);
  if (repeats > MAX_REPEATS) refuse(keyword, `counted repeats multiply to ${repeats}; at most ${MAX_REPEATS} can be enforced`);
}

/**
 * Whether JavaScript can match a pattern with these strings quickly. With groups or several repeats the time may double with each character, so those are never
 * tried. A single repeat is tried from every character to as far as it goes: the time grows with the square of the length (10 s for 65,536).
 */
export function isQuickToMatch(pattern: string, texts: readonly string[]): boolean {
  const structure = (pattern.match(TERM) ?? []).filter((term) => STRUCTURE.test(term));
  const repeats = structure.filter((term) => /^[*+?{]/.test(term)).length;
  if (repeats > 1 || structure.some((term) => /^[(|]/.test(term))) return false;
  return texts.reduce((steps, { length }) => steps + length * (repeats > 0 ? length : pattern.length), 0) <= MAX_STEPS;
}

/** Whether a checked pattern matches the empty string, determined from its terms: backtracking through `(a*|b*){60}c` would take years. */
export function takesEmpty(pattern: string): boolean {
  if (pattern === DECIMAL) return false;
  // For each open group, which parts match the empty string: an earlier alternative (`some`), the current one without its last term (`all`), and that term
  // (`last`).
  const open = [{ some: false, all: true, last: true }];
  let isRepeat = false;
  for (const term of pattern.match(TERM) ?? []) {
    const group = open.at(-1)!;
    const wasRepeat = isRepeat;
    isRepeat = /^(?:[*+?]|\{.+)$/.test(term);
    // After a repeat, `?` makes it lazy.
    if (isRepeat) group.last ||= (term === '?' && !wasRepeat) || /^(?:\*|\{0+[,}])/.test(term);
    else if (term === ')') {
      const { some, all, last } = open.pop()!;
      open.at(-1)!.last = some || (all && last);
    } else {
      group.all &&= group.last;
      group.last = /^(?:[\^$|]|\(.*)$/.test(term);
      if (term === '|') Object.assign(group, { some: group.some || group.all, all: true });
      if (term.startsWith('(')) open.push({ some: false, all: true, last: true });
    }
  }
  const [{ some, all, last }] = open as [{ some: boolean; all: boolean; last: boolean }];
  return some || (all && last);
}

/** Depth of nested groups, and the largest product of nested counted repeats, of a valid pattern. */
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

/** Pydantic's pattern of a Decimal: digits, optionally with a sign and a point, and at least one digit. */
const DECIMAL = '^(?!^[-+.]*$)[+-]?0*\\d*\\.?\\d*$';
const DECIMAL_WITHOUT_LOOKING = '^[+-]?(?:\\d+\\.?\\d*|\\.\\d+)$';

/** A term of a regular expression: what matches a character, or structure such as groups and repeats (STRUCTURE). */
const TERM =
  /\[(?:\\[^]|[^\]\\])*\]|\\(?:x[\da-fA-F]{2}|u\{[\da-fA-F]+\}|u[dD][89abAB][\da-fA-F]{2}\\u[dD][c-fC-F][\da-fA-F]{2}|u[\da-fA-F]{4}|c[a-zA-Z]|[^])|\(\?:|\{\d+(?:,\d*)?\}|[^]/gu;
const STRUCTURE = /^(?:[\^$()|?*+]|\(\?:|\{.+)$/;

/** Patterns for formats whose rules in the library (0.1.27) accept unescaped quotation marks and invalid UTF-8. */
export const FORMAT_PATTERNS: ReadonlyMap<unknown, string> = new Map([
  ['json-pointer', '^(?:/(?:[^~/]|~[01])*)*$'],
  ['relative-json-pointer', '^(?:0|[1-9]\\d*)(?:#|(?:/(?:[^~/]|~[01])*)*)$'],
]);

const ANYTHING = '[\\s\\S]*';

/** An alternative of a pattern, without the anchors at its ends. */
interface Alternative {
  readonly terms: readonly string[];
  readonly isAtStart: boolean;
  readonly isAtEnd: boolean;
}

function alternativesOf(pattern: string): readonly Alternative[] {
  const alternatives: string[][] = [[]];
  let depth = 0;
  for (const term of pattern.match(TERM) ?? []) {
    depth += term.startsWith('(') ? 1 : term === ')' ? -1 : 0;
    if (term === '|' && depth === 0) alternatives.push([]);
    else alternatives.at(-1)!.push(term);
  }
  return alternatives.map((terms) => {
    const isAtStart = terms[0] === '^';
    const isAtEnd = terms.at(-1) === '$';
    return { terms: terms.slice(isAtStart ? 1 : 0, isAtEnd ? -1 : undefined), isAtStart, isAtEnd };
  });
}

/** Anchors a checked pattern at both ends: the library matches whole strings, whereas JSON Schema's patterns match anywhere in a string. */
export function anchoredPattern(pattern: string): string {
  if (pattern === DECIMAL) return DECIMAL_WITHOUT_LOOKING;
  const alternatives = alternativesOf(pattern);
  if (alternatives.length === 1 && alternatives[0]!.isAtStart && alternatives[0]!.isAtEnd) return pattern;
  const whole = alternatives.map(
    ({ terms, isAtStart, isAtEnd }) => (isAtStart ? '' : ANYTHING) + terms.join('') + (isAtEnd ? '' : ANYTHING),
  );
  // The library does not support empty alternatives.
  return `^(?:${whole.filter((text) => text !== '').join('|')})${whole.includes('') ? '?' : ''}$`;
}

/** An inclusive range of code points. */
type Span = readonly [first: number, last: number];
const LAST = 0x10ffff;
/** Surrogates, which are no characters. */
const SURROGATES: Span = [0xd800, 0xdfff];
const SETS: Readonly<Record<string, readonly Span[]>> = {
  d: [[0x30, 0x39]],
  w: [[0x30, 0x39], [0x41, 0x5a], [0x5f, 0x5f], [0x61, 0x7a]],
  s: [[0x09, 0x0d], [0x20, 0x20], [0xa0, 0xa0], [0x1680, 0x1680], [0x2000, 0x200a], [0x2028, 0x2029], [0x202f, 0x202f], [0x205f, 0x205f], [0x3000, 0x3000], [0xfeff, 0xfeff]],
}; // prettier-ignore
const LINE_ENDS: readonly Span[] = [[0x0a, 0x0a], [0x0d, 0x0d], [0x2028, 0x2029]]; // prettier-ignore
/** Characters that a JSON string must escape: control characters, the quotation mark, the backslash. */
const ESCAPED: readonly Span[] = [[0x00, 0x1f], [0x22, 0x22], [0x5c, 0x5c]]; // prettier-ignore

/**
 * Rewrites a checked pattern for the JSON spelling of a string, which is what the library (0.1.27) matches it with: a term that matches a quotation mark, a
 * backslash or a control character matches its escape instead. The library's classes are of bytes, so characters beyond ASCII are written as their UTF-8.
 */
export function escapedPattern(pattern: string): string {
  return pattern.replace(TERM, (term) => {
    if (STRUCTURE.test(term)) return term;
    const spans = spansOf(term);
    const escaped = without(spans, without([[0, LAST]], ESCAPED)).flatMap(charactersOf);
    const isPlain = escaped.length === 0 && spans.every(([first, last]) => last < 0x80 || first === last);
    // The library does not know every escape of a character.
    if (isPlain && !term.startsWith('[')) return spans[0]![0] < 0x80 ? term : String.fromCodePoint(spans[0]![0]);
    return `(?:${[...plainParts(without(spans, ESCAPED)), ...escapes(escaped)].join('|')})`;
  });
}

/** Alternatives that match characters without escape. */
function plainParts(spans: readonly Span[]): readonly string[] {
  const ascii = without(spans, [[0x80, LAST]]);
  return [...(ascii.length > 0 ? [`[${classOf(ascii)}]`] : []), ...beyondAscii(without(spans, [[0, 0x7f]]))];
}

const SHORT: Readonly<Record<string, string>> = { '"': '"', '\\': '\\\\', '\b': 'b', '\f': 'f', '\n': 'n', '\r': 'r', '\t': 't' };

/** Alternatives that match the escapes of characters. They are few, since a grammar's time grows with the square of the possible continuations. */
function escapes(characters: readonly string[]): readonly string[] {
  const short = characters.flatMap((character) => SHORT[character] ?? []).join('');
  const codes = characters.map((character) => character.charCodeAt(0)).filter((code) => code < 32);
  const digits = [0, 1].map((high) => codes.filter((code) => code >> 4 === high).map((code) => (code & 15).toString(16)).join('')); // prettier-ignore
  const long = digits[0] === digits[1] && digits[0] !== '' ? [`[01][${digits[0]}]`] : digits.flatMap((low, high) => (low === '' ? [] : [`${high}[${low}]`])); // prettier-ignore
  return [...(short === '' ? [] : [`\\\\[${short}]`]), ...long.map((code) => `\\\\u00${code}`)];
}

const classOf = (spans: readonly Span[]): string => spans.map(([first, last]) => `${hex(first)}-${hex(last)}`).join('');
const hex = (byte: number): string => `\\x${byte.toString(16).padStart(2, '0')}`;

/** Alternatives that match the UTF-8 of characters beyond ASCII. */
function beyondAscii(spans: readonly Span[]): readonly string[] {
  // One range for each encoded length, without surrogates, which are no characters.
  const lengths: readonly Span[] = [[0x80, 0x7ff], [0x800, 0xd7ff], [0xe000, 0xffff], [0x10000, LAST]]; // prettier-ignore
  return lengths.flatMap((length) => within(spans, length).flatMap(([first, last]) => byteRanges(utf8(first), utf8(last))));
}

const utf8 = (code: number): readonly number[] => [...new TextEncoder().encode(String.fromCodePoint(code))];

/** Alternatives that match the byte strings from `low` to `high` (inclusive), which have the same length. */
function byteRanges(low: readonly number[], high: readonly number[]): readonly string[] {
  // The library would take a class with one byte for the character of that number, so the byte is written twice.
  const bytes = (from: number, to: number): string => (from === to ? `[${hex(from)}${hex(from)}]` : `[${hex(from)}-${hex(to)}]`);
  const [from, ...lowRest] = low as [number, ...number[]];
  const [to, ...highRest] = high as [number, ...number[]];
  if (lowRest.length === 0) return [bytes(from, to)];
  if (from === to) return byteRanges(lowRest, highRest).map((rest) => bytes(from, from) + rest);
  const [least, most] = [lowRest.map(() => 0x80), lowRest.map(() => 0xbf)];
  const below = lowRest.every((byte) => byte === 0x80) ? [] : byteRanges(lowRest, most).map((rest) => bytes(from, from) + rest);
  const above = highRest.every((byte) => byte === 0xbf) ? [] : byteRanges(least, highRest).map((rest) => bytes(to, to) + rest);
  const [first, last] = [from + (below.length > 0 ? 1 : 0), to - (above.length > 0 ? 1 : 0)];
  const between = first > last ? [] : byteRanges(least, most).map((rest) => bytes(first, last) + rest);
  return [...below, ...between, ...above];
}

/** Characters that a term matches. */
function spansOf(term: string): readonly Span[] {
  if (term === '.') return without([[0, LAST]], LINE_ENDS);
  if (!term.startsWith('[')) return setOf(term);
  const spans: Span[] = [];
  const isNegative = term.startsWith('[^');
  const items = term.slice(isNegative ? 2 : 1, -1).match(TERM) ?? [];
  for (let i = 0; i < items.length; i++) {
    const isRange = items[i + 1] === '-' && i + 2 < items.length;
    const first = setOf(items[i]!);
    spans.push(...(isRange ? [[first[0]![0], setOf(items[i + 2]!)[0]![0]] as const] : first));
    if (isRange) i += 2;
  }
  return isNegative ? without([[0, LAST]], spans) : spans;
}

/** Characters that a term other than a class matches: one, or those of an escape such as `\D`. */
function setOf(term: string): readonly Span[] {
  const set = SETS[term.slice(1).toLowerCase()];
  if (term.length === 2 && term.startsWith('\\') && set) return term[1] === term[1]!.toLowerCase() ? set : without([[0, LAST]], set);
  const code = codeOf(term);
  return [[code, code]];
}

const CONTROL: Readonly<Record<string, number>> = { t: 9, n: 10, v: 11, f: 12, r: 13, 0: 0 };

/** Code point of a term that is one character. */
function codeOf(term: string): number {
  if (term.length === 1 || !term.startsWith('\\')) return term.codePointAt(0)!;
  const pair = /^\\u(....)\\u(....)$/.exec(term);
  if (pair) return String.fromCharCode(parseInt(pair[1]!, 16), parseInt(pair[2]!, 16)).codePointAt(0)!;
  const hex = /^\\(?:x|u\{?)([\da-fA-F]{2,})/.exec(term)?.[1];
  if (hex !== undefined) return parseInt(hex, 16);
  if (/^\\c./.test(term)) return term.charCodeAt(2) % 32;
  return CONTROL[term[1]!] ?? term.codePointAt(1)!;
}

/** Removes the characters of `others` from `spans`. */
function without(spans: readonly Span[], others: readonly Span[]): readonly Span[] {
  return others.reduce<readonly Span[]>(
    (left, [from, to]) =>
      left.flatMap(([first, last]): Span[] => {
        const parts: Span[] = [[first, Math.min(last, from - 1)], [Math.max(first, to + 1), last]]; // prettier-ignore
        return parts.filter(([start, end]) => start <= end);
      }),
    spans,
  );
}

/** The parts of `spans` within one range. */
const within = (spans: readonly Span[], [first, last]: Span): readonly Span[] =>
  spans.map(([from, to]): Span => [Math.max(from, first), Math.min(to, last)]).filter(([from, to]) => from <= to);

const charactersOf = ([first, last]: Span): string[] => Array.from({ length: last - first + 1 }, (_, i) => String.fromCharCode(first + i));
