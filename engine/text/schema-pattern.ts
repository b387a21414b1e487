/** Regular expressions that a grammar can hold: what they may say, and how much. */
import type { Refuse } from './schema-keywords.ts';

/** Time grows with the square of the terms that overlap: 0.7 s for 300 times `a*`. */
const MAX_LENGTH = 512;
/** A group takes 0.4 kB of the library's stack. */
const MAX_GROUPS = 32;
/** Of a counted repeat, times those around it: `((a{1000}){1000}){1000}` takes 8 s. */
const MAX_REPEATS = 100_000;
/** Of matching a pattern here. */
const MAX_STEPS = 65_536;

/** Refuses what is no regular expression, cannot be enforced, or is too large. */
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
 * Whether a pattern may be matched here with these texts: with groups and several repeats the time may double with each character. One repeat is tried from
 * each character on, as far as it goes: the time grows with the square of their number (10 s for 65,536).
 */
export function isQuickToMatch(pattern: string, texts: readonly string[]): boolean {
  const structure = (pattern.match(TERM) ?? []).filter((term) => STRUCTURE.test(term));
  const repeats = structure.filter((term) => /^[*+?{]/.test(term)).length;
  if (repeats > 1 || structure.some((term) => /^[(|]/.test(term))) return false;
  return texts.reduce((steps, { length }) => steps + length * (repeats > 0 ? length : pattern.length), 0) <= MAX_STEPS;
}

/** Whether a checked pattern takes the empty text, told by its terms: a match that goes back through `(a*|b*){60}c` would take years. */
export function takesEmpty(pattern: string): boolean {
  if (pattern === DECIMAL) return false;
  // Of each group that is open: whether one of its alternatives takes nothing, whether the terms of the present one do, and whether the last of them does.
  const open = [{ some: false, all: true, last: true }];
  let isRepeat = false;
  for (const term of pattern.match(TERM) ?? []) {
    const group = open.at(-1)!;
    const wasRepeat = isRepeat;
    isRepeat = /^(?:[*+?]|\{.+)$/.test(term);
    // Behind a repeat, `?` says that it is to be short.
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

/** What Pydantic writes for a Decimal: digits with a sign and a point, and not without a digit. */
const DECIMAL = '^(?!^[-+.]*$)[+-]?0*\\d*\\.?\\d*$';
const DECIMAL_WITHOUT_LOOKING = '^[+-]?(?:\\d+\\.?\\d*|\\.\\d+)$';

/** What stands for a character, or several, in a regular expression; everything else is structure. */
const TERM =
  /\[(?:\\[^]|[^\]\\])*\]|\\(?:x[\da-fA-F]{2}|u\{[\da-fA-F]+\}|u[dD][89abAB][\da-fA-F]{2}\\u[dD][c-fC-F][\da-fA-F]{2}|u[\da-fA-F]{4}|c[a-zA-Z]|[^])|\(\?:|\{\d+(?:,\d*)?\}|[^]/gu;
const STRUCTURE = /^(?:[\^$()|?*+]|\(\?:|\{.+)$/;

/** Formats whose rules in the library (0.1.27) take a quotation mark as it is, and bytes that are no characters. */
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

/** A checked pattern that takes whole texts, as the library's do: JSON Schema's are looked for anywhere in a text. */
export function anchoredPattern(pattern: string): string {
  if (pattern === DECIMAL) return DECIMAL_WITHOUT_LOOKING;
  const alternatives = alternativesOf(pattern);
  if (alternatives.length === 1 && alternatives[0]!.isAtStart && alternatives[0]!.isAtEnd) return pattern;
  const whole = alternatives.map(
    ({ terms, isAtStart, isAtEnd }) => (isAtStart ? '' : ANYTHING) + terms.join('') + (isAtEnd ? '' : ANYTHING),
  );
  // The library knows no empty alternative.
  return `^(?:${whole.filter((text) => text !== '').join('|')})${whole.includes('') ? '?' : ''}$`;
}

/** Characters from the first code point to the last. */
type Span = readonly [first: number, last: number];
const LAST = 0x10ffff;
/** Halves of a pair, which are no characters. */
const SURROGATES: Span = [0xd800, 0xdfff];
const SETS: Readonly<Record<string, readonly Span[]>> = {
  d: [[0x30, 0x39]],
  w: [[0x30, 0x39], [0x41, 0x5a], [0x5f, 0x5f], [0x61, 0x7a]],
  s: [[0x09, 0x0d], [0x20, 0x20], [0xa0, 0xa0], [0x1680, 0x1680], [0x2000, 0x200a], [0x2028, 0x2029], [0x202f, 0x202f], [0x205f, 0x205f], [0x3000, 0x3000], [0xfeff, 0xfeff]],
}; // prettier-ignore
const LINE_ENDS: readonly Span[] = [[0x0a, 0x0a], [0x0d, 0x0d], [0x2028, 0x2029]]; // prettier-ignore
/** What a JSON text may not hold as it is: control characters, the quotation mark, the backslash. */
const ESCAPED: readonly Span[] = [[0x00, 0x1f], [0x22, 0x22], [0x5c, 0x5c]]; // prettier-ignore

/**
 * A checked pattern for what JSON writes between quotation marks, which is what the library (0.1.27) matches it with: a term that takes a quotation
 * mark, a backslash or a control character takes its escape instead. Its classes hold bytes, so those of characters beyond ASCII are spelled in UTF-8.
 */
export function escapedPattern(pattern: string): string {
  return pattern.replace(TERM, (term) => {
    if (STRUCTURE.test(term)) return term;
    const spans = spansOf(term);
    const escaped = without(spans, without([[0, LAST]], ESCAPED)).flatMap(charactersOf);
    const isPlain = escaped.length === 0 && spans.every(([first, last]) => last < 0x80 || first === last);
    // The library does not know each way to spell one.
    if (isPlain && !term.startsWith('[')) return spans[0]![0] < 0x80 ? term : String.fromCodePoint(spans[0]![0]);
    return `(?:${[...plainParts(without(spans, ESCAPED)), ...escapes(escaped)].join('|')})`;
  });
}

/** Alternatives for characters that stand as they are. */
function plainParts(spans: readonly Span[]): readonly string[] {
  const ascii = without(spans, [[0x80, LAST]]);
  return [...(ascii.length > 0 ? [`[${classOf(ascii)}]`] : []), ...beyondAscii(without(spans, [[0, 0x7f]]))];
}

const SHORT: Readonly<Record<string, string>> = { '"': '"', '\\': '\\\\', '\b': 'b', '\f': 'f', '\n': 'n', '\r': 'r', '\t': 't' };

/** Alternatives for the escapes of characters: few, since the time that a grammar takes grows with the square of what can come next. */
function escapes(characters: readonly string[]): readonly string[] {
  const short = characters.flatMap((character) => SHORT[character] ?? []).join('');
  const codes = characters.map((character) => character.charCodeAt(0)).filter((code) => code < 32);
  const digits = [0, 1].map((high) => codes.filter((code) => code >> 4 === high).map((code) => (code & 15).toString(16)).join('')); // prettier-ignore
  const long = digits[0] === digits[1] && digits[0] !== '' ? [`[01][${digits[0]}]`] : digits.flatMap((low, high) => (low === '' ? [] : [`${high}[${low}]`])); // prettier-ignore
  return [...(short === '' ? [] : [`\\\\[${short}]`]), ...long.map((code) => `\\\\u00${code}`)];
}

const classOf = (spans: readonly Span[]): string => spans.map(([first, last]) => `${hex(first)}-${hex(last)}`).join('');
const hex = (byte: number): string => `\\x${byte.toString(16).padStart(2, '0')}`;

/** Alternatives of bytes that are the UTF-8 of these characters. */
function beyondAscii(spans: readonly Span[]): readonly string[] {
  // A length of the encoding each, without halves of surrogate pairs, which are no characters.
  const lengths: readonly Span[] = [[0x80, 0x7ff], [0x800, 0xd7ff], [0xe000, 0xffff], [0x10000, LAST]]; // prettier-ignore
  return lengths.flatMap((length) => within(spans, length).flatMap(([first, last]) => byteRanges(utf8(first), utf8(last))));
}

const utf8 = (code: number): readonly number[] => [...new TextEncoder().encode(String.fromCodePoint(code))];

/** Alternatives for the byte strings from `low` to `high`, which are equally long. */
function byteRanges(low: readonly number[], high: readonly number[]): readonly string[] {
  // The library would take a class of one byte for the character of that number.
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

/** The characters that a term takes, in order. */
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

/** The characters of a term that is no class: one, or those of an escape such as `\D`. */
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

/** The characters of `spans` that are in none of `others`. */
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

/** The part of `spans` that lies in one. */
const within = (spans: readonly Span[], [first, last]: Span): readonly Span[] =>
  spans.map(([from, to]): Span => [Math.max(from, first), Math.min(to, last)]).filter(([from, to]) => from <= to);

const charactersOf = ([first, last]: Span): string[] => Array.from({ length: last - first + 1 }, (_, i) => String.fromCharCode(first + i));
