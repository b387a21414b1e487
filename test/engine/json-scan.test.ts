/** JSON as models write it, in pieces: what is mended, what stays as it was written, and where it ends. */
import { describe, expect, test } from 'vitest';
import { JsonScan, mendJson } from '../../engine/text/json-scan.ts';
import { createRng } from '../../engine/util/rng.ts';
import { pick } from '../support/mutate-json.ts';
import type { Random } from '../support/mutate-json.ts';

interface Scanned {
  readonly text: string;
  readonly rest: string;
  readonly isLost: boolean;
}

/** Scans pieces; what stands behind the end is left over. `last` says what is still missing. */
function scan(pieces: readonly string[], last: 'close' | 'cut' = 'cut'): Scanned {
  const reader = new JsonScan();
  let [text, rest, isOpen] = ['', '', true];
  for (const piece of pieces) {
    const { text: read, taken, ended } = isOpen ? reader.push(piece) : { text: '', taken: 0, ended: true };
    text += read;
    rest += piece.slice(taken);
    isOpen = !ended;
  }
  return { text: text + reader[last](), rest, isLost: reader.isLost };
}

/** One piece, characters, and pieces of three. */
const cuts = (text: string): readonly (readonly string[])[] => [[text], [...text], text.match(/[^]{1,3}/g) ?? []];

/** What is written, and the JSON that it is. */
const MENDED: [what: string, written: string, json: string][] = [
  ['single quotes', `{'city': 'Perth', "n": 1}`, '{"city": "Perth", "n": 1}'],
  ['quotes of the other kind within', `{'say': 'a "word"', "it": "it's"}`, '{"say": "a \\"word\\"", "it": "it\'s"}'],
  ['an escaped apostrophe', `{'a': 'it\\'s', "b": "it\\'s"}`, '{"a": "it\'s", "b": "it\'s"}'],
  ['escapes', `{'a': '\\n\\u00e9\\"\\\\'}`, '{"a": "\\n\\u00e9\\"\\\\"}'],
  ['words of Python', '{"a": True, "b": [False, None], "c": null}', '{"a": true, "b": [false, null], "c": null}'],
  ['words of Python within strings', '{"a": "True, None"}', '{"a": "True, None"}'],
  ['a comma too many in an object', '{"a": 1, "b": {"c": 2,},\n}', '{"a": 1, "b": {"c": 2}\n}'],
  ['a comma too many in a list', '{"a": [1, [2 , ], ]}', '{"a": [1, [2  ] ]}'],
  ['commas and brackets within strings', '{"a": ",}", "b": ",]"}', '{"a": ",}", "b": ",]"}'],
  ['lines and tabs in strings', '{"a": "x\n\ty\r", "b\n": 1}', '{"a": "x\\n\\ty\\r", "b\\n": 1}'],
  [
    'expressions',
    `{"grep": "\\d+\\.\\s \\"x\\"\\\\ \\1", 'b': '\\w"\\'', "c": "\\n"}`,
    '{"grep": "\\\\d+\\\\.\\\\s \\"x\\"\\\\ \\\\1", "b": "\\\\w\\"\'", "c": "\\n"}',
  ],
  ['a path', '{"path": "C:\\Users\\users\\docs\n", "n": 1}', '{"path": "C:\\\\Users\\\\users\\\\docs\\n", "n": 1}'],
  ['a backslash at the end', `{'a': '\\d\\u'}`, '{"a": "\\\\d\\\\u"}'],
  ['keys without quotes', '{city: "Perth", $n_1 : {a-b: True}}', '{"city": "Perth", "$n_1" : {"a-b": true}}'],
  ['keys that are words', '{True: 1, null: 2}', '{"True": 1, "null": 2}'],
  ['nothing', '{}', '{}'],
  ['a list', "[ 'a', {}, [] ]", '[ "a", {}, [] ]'],
];

/** What can be read in no way, or in several. */
const LOST: [what: string, written: string][] = [
  ['quotes within quotes', '{"text": "He said "hello" and left"}'],
  ['code within quotes', '{"code": "d = {"k": "v", "w": "x"}"}'],
  ['code within single quotes', "{'code': 'd = {'k': 'v', 'w': 'x'}'}"],
  ['an apostrophe in single quotes', "{'text': 'it's'}"],
  ['a path with escapes that JSON lacks', '{"path": "C:\\Users\\name"}'],
  ['an expression beside a line', '{"run": "x\\n", "grep": "a\\n\\d+"}'],
  ['an expression before a line', '{"grep": "\\d+\\n"}'],
  ['an expression before a code point', '{"grep": "\\d+\\u00e9"}'],
  ['a character by its number', '{"a": "\\x41"}'],
  ['another', '{"a": "\\033[1m"}'],
  ['half a code point', '{"a": "\\u00g1"}'],
  ['a line that is escaped', '{"a": "x \\\ny"}'],
  ['NaN', '{"a": NaN}'],
  ['text without quotes', '{"city": Perth}'],
  ['a number that JSON lacks', '{"a": 01}'],
  ['two numbers', '{"a": 1 2}'],
  ['no comma', '{"a": 1 "b": 2}'],
  ['two commas', '{"a": 1,, "b": 2}'],
  ['a comma first', '[, 1]'],
  ['a comma alone', '{"a": [,]}'],
  ['a key without a value', '{"a", "b": 1}'],
  ['a key without a value at the end', '{"a":}'],
  ['a bracket of the other kind', '{"a": [1}'],
  ['a comment', '{"a": 1, // one\n"b": 2}'],
  ['a set', "{'a', 'b'}"],
  ['a number for a key', '{1: 2}'],
  ['three quotes', '{"a": """x"""}'],
  ['a call', "weather('Perth')"],
];

describe('JSON as models write it', () => {
  test.each(MENDED)('%s: %s', (_, written, json) => {
    JSON.parse(json);
    for (const pieces of cuts(`${written} }`)) expect(scan(pieces)).toEqual({ text: json, rest: ' }', isLost: false });
    expect(mendJson(` ${written}\n`)).toBe(json);
  });

  test.each(LOST)('%s stays no JSON: %s', (_, written) => {
    const [whole, ...others] = cuts(written).map((pieces) => scan(pieces, 'close'));
    expect(whole).toMatchObject({ isLost: true });
    for (const other of others) expect(other).toEqual(whole);
    expect(() => JSON.parse(whole!.text)).toThrow();
    expect(mendJson(written)).toBeUndefined();
  });

  test.each(['"text"', 'true', ' 12 '])('what is no object and no list is given on as it is: %s', (written) => {
    for (const pieces of cuts(written)) expect(scan(pieces)).toEqual({ text: written, rest: '', isLost: true });
    expect(mendJson(written)).toBeUndefined();
  });

  test('from where it cannot be read it is given on to its last bracket, as it was written', () => {
    const written = '{"a": "x "y" }", b: [1, {True}]}';
    for (const pieces of cuts(`${written} so`)) expect(scan(pieces)).toEqual({ text: written, rest: ' so', isLost: true });
  });

  test.each([
    ['{"a": {"b": [1, "x"', ']}}'],
    ["{'a': True, ", '}'],
    ['{"a": 12', '}'],
    ['{"a": [{}', ']}'],
  ])('brackets that were forgotten are closed where the author says that it is over: %s', (written, closed) => {
    for (const pieces of cuts(written)) {
      const { text, isLost } = scan(pieces, 'close');
      expect(isLost).toBe(false);
      expect(text.endsWith(closed)).toBe(true);
      expect(JSON.parse(text)).toEqual(JSON.parse(mendJson(written.replace(/, $/, '') + closed)!));
    }
  });

  test.each([
    '{',
    '{"a',
    '{"a":',
    '{"a": "x',
    '{"a": [',
    '{"a": tru',
    '{"a": "x\\',
    '{"a": "x\\u00',
    '{"a": "\\d + ',
    '{"a": "\\d\\',
    '{"a": 1, "b"',
    '{"a": -',
    '',
  ])('where more is missing than brackets, all is as it was written: %s', (written) => {
    for (const pieces of cuts(written)) for (const last of ['close', 'cut'] as const) expect(scan(pieces, last).text).toBe(written);
  });

  test('what was cut is as it was written', () => {
    for (const pieces of cuts('{"a": {"b": 1, ')) expect(scan(pieces).text).toBe('{"a": {"b": 1, ');
  });

  test('a piece may be read from its middle', () => {
    expect(new JsonScan().push('x = {"a": 1}; y', 4)).toEqual({ text: '{"a": 1}', taken: 8, ended: true });
  });

  test('all JSON comes out as it is, and means the same when Python has written it', () => {
    const rng = createRng(7);
    for (let i = 0; i < 150; i++) {
      const value = { a: anyValue(rng, 3) };
      for (const json of [JSON.stringify(value), JSON.stringify(value, null, 2)]) {
        for (const pieces of cuts(json)) expect(scan(pieces)).toEqual({ text: json, rest: '', isLost: false });
      }
      const python = asPython(value);
      const [whole, ...others] = cuts(python).map((pieces) => scan(pieces));
      expect(JSON.parse(whole!.text), python).toEqual(value);
      for (const other of others) expect(other).toEqual(whole);
    }
  });

  test('whatever was written, what comes out means the same or is no JSON', () => {
    const rng = createRng(8);
    const parts = [
      '{',
      '}',
      '[',
      ']',
      ',',
      ':',
      '"',
      "'",
      '\\',
      ' ',
      '\n',
      'a',
      '1',
      'True',
      'null',
      '\\d',
      '\\u',
      '"b": ',
      "'c'",
      '"d"',
      'n',
      'é',
    ];
    let valid = 0;
    for (let i = 0; i < 6_000; i++) {
      const written = `{"a": ${Array.from({ length: Math.floor(rng.uniform() * 8) }, () => pick(rng, parts)).join('')}}`;
      const [whole, ...others] = cuts(written).map((pieces) => scan(pieces, 'close'));
      for (const other of others) expect(other).toEqual(whole);
      const { text, rest, isLost } = whole!;
      if (isLost) expect(() => JSON.parse(text), written).toThrow();
      const strict = parse(written);
      if (strict === undefined) continue;
      valid++;
      expect([text, rest, isLost]).toEqual([written, '', false]);
    }
    expect(valid).toBeGreaterThan(30);
  });
});

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

const STRINGS = ['', 'Perth', "it's", 'say "x"', 'a\nb\tc', '}],:{[', '\\', 'é\u{1f600}', 'True', '// no'];

function anyValue(rng: Random, depth: number): unknown {
  const kind = Math.floor(rng.uniform() * (depth > 0 ? 5 : 3));
  if (kind === 0) return pick(rng, STRINGS);
  if (kind === 1) return pick(rng, [0, -1.5, 1e21, 1e-7, 12]);
  if (kind === 2) return pick(rng, [true, false, null]);
  const values = Array.from({ length: Math.floor(rng.uniform() * 4) }, () => anyValue(rng, depth - 1));
  return kind === 3 ? values : Object.fromEntries(values.map((value) => [pick(rng, STRINGS), value]));
}

/** As Python prints it, with a comma behind the last of several. */
function asPython(value: unknown): string {
  if (value === null) return 'None';
  if (typeof value === 'boolean') return value ? 'True' : 'False';
  if (typeof value === 'number') return String(value);
  if (typeof value === 'string') return `'${value.replaceAll('\\', '\\\\').replaceAll("'", "\\'").replaceAll('\n', '\\n')}'`;
  if (Array.isArray(value)) return `[${value.map((one) => `${asPython(one)}, `).join('')}]`;
  return `{${Object.entries(value as object).map(([key, one]) => `${asPython(key)}: ${asPython(one)},`).join(' ')}}`; // prettier-ignore
}
