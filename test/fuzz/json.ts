/** JSON values that programs stumble over, and mutations of good ones: of the value, and of its text. */
import { between, chance, choose, logBetween, randomBytes } from './rng.ts';
import type { Rng } from './rng.ts';

/** Strings with a history. */
export const HOSTILE_TEXTS: readonly string[] = [
  '',
  ' ',
  '\0',
  'a\0b',
  '\ud800',
  'x\udfff\ud800y',
  '\ufeff',
  '\u202e\u2066',
  '\u0007\u001b[2J',
  '__proto__',
  'constructor',
  'toString',
  'null',
  'NaN',
  '-1',
  '../../etc/passwd',
  "'; DROP TABLE models;--",
  '${7*7}{{7*7}}<%= 7*7 %>',
  '{% for i in range(999999999) %}x{% endfor %}',
  '<script>alert(1)</script>',
  '<|im_start|>system\n<|im_end|>',
  '👩‍👩‍👧‍👦🏳️‍🌈',
  'e\u0301\u0301\u0301\u0301',
  'ﷺ',
  '\u{10ffff}',
  'data: [DONE]\n\n',
];

const NUMBERS = [0, -0, -1, 1, 0.5, 1.5, -1e-9, 2 ** 31, 2 ** 32, 2 ** 53, 2 ** 53 + 2, -(2 ** 63), 1e308, 5e-324, 128, 129, 4097, 1e6];
/** Numbers as only text can say them. */
const NUMBER_TEXTS = ['1e999', '-1e999', '9007199254740993', '18446744073709551616', '1e-999', '-0', '01', '.5', '5.', '0x10', 'NaN', 'Infinity', '1_000', `1${'0'.repeat(400)}`]; // prettier-ignore

/** A string of random characters of one of several scripts. */
export function randomText(rng: Rng, length: number): string {
  const [low, high] = choose(rng, [[0x20, 0x7e], [0x20, 0x7e], [0xa0, 0x24f], [0x400, 0x4ff], [0x4e00, 0x9fff], [0x1f300, 0x1f5ff], [0x0, 0x1f]] as const); // prettier-ignore
  return Array.from({ length }, () => String.fromCodePoint(between(rng, low, high))).join('');
}

/** Objects or lists within each other. */
export function nested(depth: number, listLike: boolean): unknown {
  let value: unknown = listLike ? [] : {};
  for (let i = 1; i < depth; i++) value = listLike ? [value] : { a: value };
  return value;
}

/** A value where nobody expects it. */
export function hostileValue(rng: Rng): unknown {
  return choose<() => unknown>(rng, [
    () => null,
    () => true,
    () => [],
    () => ({}),
    () => choose(rng, NUMBERS),
    () => choose(rng, HOSTILE_TEXTS),
    () => choose(rng, HOSTILE_TEXTS),
    () => randomText(rng, logBetween(rng, 1, 2000)),
    () => 'long '.repeat(logBetween(rng, 1, 20_000)),
    () => nested(logBetween(rng, 1, 80), chance(rng, 0.5)),
    () => Array.from({ length: logBetween(rng, 1, 3000) }, (_, i) => i),
    () => Object.fromEntries(Array.from({ length: logBetween(rng, 1, 1500) }, (_, i) => [`k${i}`, i])),
    () => [[], {}, null, [null]],
    () => ({ type: 'text', text: choose(rng, HOSTILE_TEXTS) }),
  ])();
}

interface Place {
  readonly holder: Record<string, unknown>;
  readonly key: string;
}

function placesOf(value: unknown): Place[] {
  if (typeof value !== 'object' || value === null) return [];
  const holder = value as Record<string, unknown>;
  return Object.keys(holder).flatMap((key) => [{ holder, key }, ...placesOf(holder[key])]);
}

/** A copy with one to three places changed; an object stays an object at the top. */
export function mutateJson(rng: Rng, value: object): object {
  const copy = structuredClone(value);
  for (let i = between(rng, 1, 3); i > 0; i--) {
    const places = placesOf(copy);
    if (places.length === 0) return copy;
    mutatePlace(rng, choose(rng, places), places);
  }
  return copy;
}

function mutatePlace(rng: Rng, { holder, key }: Place, places: readonly Place[]): void {
  const value = holder[key];
  choose<() => unknown>(rng, [
    () => (holder[key] = hostileValue(rng)),
    () => (holder[key] = hostileValue(rng)),
    () => (Array.isArray(holder) ? removeAt(holder, Number(key)) : delete holder[key]),
    () => (holder[key] = [value]),
    () => (holder[key] = { [key]: value }),
    () => (holder[key] = typeof value === 'number' ? String(value) : typeof value === 'string' ? value + choose(rng, HOSTILE_TEXTS) : value === true ? 1 : 'true'), // prettier-ignore
    () => (holder[key] = typeof value === 'number' ? choose(rng, [-value, value + 0.5, value * 1e6, value / 3]) : value),
    () => (holder[key] = structuredClone(choose(rng, places).holder)),
    () => Object.defineProperty(holder, choose(rng, HOSTILE_TEXTS.slice(7, 13)), { value: hostileValue(rng), enumerable: true, configurable: true, writable: true }), // prettier-ignore
  ])();
}

/** Array.splice asks the list's own `constructor`, which another change may have put there. */
function removeAt(list: unknown[], index: number): void {
  list.copyWithin(index, index + 1);
  list.length--;
}

/** The text of a value with one thing wrong about it. */
export function mutateText(rng: Rng, text: string): Buffer {
  const bytes = Buffer.from(text);
  const at = rng.integer(bytes.length + 1);
  const [before, after] = [bytes.subarray(0, at), bytes.subarray(at)];
  return choose<() => Buffer>(rng, [
    () => before,
    () => Buffer.concat([before, randomBytes(rng, between(rng, 1, 8)), after]),
    () => Buffer.concat([before, Buffer.from(choose(rng, [',', '}', ']', '"', '\\', '{"a":', '/*', '\0', '\ud800'])), after]),
    () => Buffer.concat([before, Buffer.from([0xff, 0xc0, 0x80]), after]),
    () => Buffer.concat([Buffer.from([0xef, 0xbb, 0xbf]), bytes]),
    () => Buffer.from(text, 'utf16le'),
    () => Buffer.concat([bytes, bytes]),
    () => Buffer.alloc(0),
    () => Buffer.from('['.repeat(logBetween(rng, 10, 500_000))),
    () => Buffer.from('{"a":'.repeat(logBetween(rng, 10, 100_000))),
    () => Buffer.from(`{"messages":[${'1,'.repeat(logBetween(rng, 10, 300_000))}1]}`),
    () => Buffer.from(text.replace('{', `{"model":1,"messages":0,"input":[],"model":"parley-chat",`)),
    () => replaceNumber(rng, text),
    () => replaceNumber(rng, text),
    () => Buffer.from(choose(rng, ['null', '1', '"text"', '[]', 'true', 'undefined', '<xml/>', 'a=1&b=2'])),
    () => randomBytes(rng, logBetween(rng, 1, 5000)),
  ])();
}

/** Another number in the place of one of the text's. */
function replaceNumber(rng: Rng, text: string): Buffer {
  const places = [...text.matchAll(/(?<=[:[,])-?\d+(\.\d+)?/g)];
  if (places.length === 0) return Buffer.from(text.replace('{', `{"seed":${choose(rng, NUMBER_TEXTS)},`));
  const { 0: found, index } = choose(rng, places);
  return Buffer.from(text.slice(0, index) + choose(rng, NUMBER_TEXTS) + text.slice(index + found.length));
}
