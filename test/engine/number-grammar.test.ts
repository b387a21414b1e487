/** Numbers within bounds: the rules are read back as a regular expression's states and tried against arithmetic. */
import { describe, expect, test } from 'vitest';
import { numberRules } from '../../engine/text/number-grammar.ts';
import type { NumberRange } from '../../engine/text/number-grammar.ts';

/** Whether right-linear rules accept a text: an interpreter of the EBNF itself. */
function reader(rules: string): (text: string) => boolean {
  const table = new Map(
    rules
      .trim()
      .split('\n')
      .map((line) => line.split(' ::= ') as [string, string]),
  );
  const [start] = table.keys();
  const accepts = (rule: string, text: string): boolean =>
    table
      .get(rule)!
      .split(' | ')
      .some((choice) => {
        if (choice === '""') return text === '';
        const [symbol, next] = choice.split(' ') as [string, string | undefined];
        const set = symbol.slice(1, -1);
        if (text === '' || !set.includes(text[0]!)) return false;
        return next === undefined ? text.length === 1 : accepts(next, text.slice(1));
      });
  return (text) => accepts(start!, text);
}

const VALUES = ['0', '1', '2', '3', '4', '5', '7', '9', '10', '12', '13', '15', '19', '20', '25', '49', '50', '51', '99', '100', '101', '105', '149', '150', '999', '1000', '1234567']; // prettier-ignore
const FRACTIONS = ['', '.0', '.1', '.4', '.5', '.25', '.49', '.50', '.51', '.05', '.001', '.999', '.500'];
const texts = VALUES.flatMap((whole) => FRACTIONS.flatMap((fraction) => [whole + fraction, `-${whole}${fraction}`]));

/** In thousandths, so that nothing is rounded. */
const thousandths = (text: string): number => Math.round(Number(text) * 1000);
const decimals = (text: string): number => text.split('.')[1]?.length ?? 0;
function satisfies(range: NumberRange, text: string): boolean {
  const value = thousandths(text);
  const at = (bound: number): number => Math.round(bound * 1000);
  return (
    (!range.integer || !text.includes('.')) &&
    (range.minimum === undefined || value >= at(range.minimum)) &&
    (range.exclusiveMinimum === undefined || value > at(range.exclusiveMinimum)) &&
    (range.maximum === undefined || value <= at(range.maximum)) &&
    (range.exclusiveMaximum === undefined || value < at(range.exclusiveMaximum)) &&
    (range.multipleOf === undefined || (value % at(range.multipleOf) === 0 && decimals(text) <= decimals(String(range.multipleOf))))
  );
}

describe('numbers within bounds', () => {
  test.each<NumberRange>([
    { integer: true, minimum: 5 },
    { integer: true, maximum: 12 },
    { integer: true, minimum: -12, maximum: 105 },
    { integer: true, exclusiveMinimum: 0, exclusiveMaximum: 100 },
    { integer: true, maximum: -3 },
    { integer: true, minimum: 10, maximum: 10 },
    { integer: true, multipleOf: 5 },
    { integer: true, minimum: 10, multipleOf: 7 },
    { integer: true, multipleOf: 2.5 },
    { integer: true, minimum: 1.5 },
    { integer: false, minimum: 0 },
    { integer: false, exclusiveMinimum: 0 },
    { integer: false, minimum: 0, maximum: 1 },
    { integer: false, minimum: -1.5, maximum: 12.25 },
    { integer: false, exclusiveMinimum: 0.5, exclusiveMaximum: 50.5 },
    { integer: false, maximum: -0.05 },
    { integer: false, minimum: 4, exclusiveMinimum: 4, maximum: 100, exclusiveMaximum: 105 },
    { integer: false, multipleOf: 0.01 },
    { integer: false, multipleOf: 0.25, minimum: -10, maximum: 50 },
    { integer: false, multipleOf: 0.05 },
    { integer: false, multipleOf: 12 },
    { integer: false, multipleOf: 1 },
  ])('%j', (range) => {
    const accepts = reader(numberRules('n', range));
    const wrong = texts.filter(
      (text) => accepts(text) !== (satisfies(range, text) && !/^-0(\.0+)?$/.test(text)) && !/^-0(\.0+)?$/.test(text),
    );
    expect(wrong).toEqual([]);
    expect(['', '-', '.5', '1.', '00', '01', '+1', '1e3'].filter(accepts)).toEqual([]);
  });

  test('far bounds are read digit by digit', () => {
    const safe = reader(numberRules('n', { integer: true, minimum: Number.MIN_SAFE_INTEGER, maximum: Number.MAX_SAFE_INTEGER }));
    expect(['9007199254740991', '-9007199254740991', '0', '8999999999999999'].every(safe)).toBe(true);
    expect(['9007199254740992', '-9007199254740992', '10000000000000000'].some(safe)).toBe(false);
    const tiny = reader(numberRules('n', { integer: false, exclusiveMinimum: 1e-7, maximum: 1.5e21 }));
    expect(['0.00000011', '1', '1500000000000000000000'].every(tiny)).toBe(true);
    expect(['0.0000001', '0', '1500000000000000000000.1', '1500000000000000000001'].some(tiny)).toBe(false);
  });

  test.each<[NumberRange, RegExp]>([
    [{ integer: true, minimum: 1.2, maximum: 1.8 }, /no number satisfies/],
    [{ integer: true, minimum: 11, maximum: 13, multipleOf: 7 }, /no number satisfies/],
    [{ integer: true, multipleOf: 1_999 }, /more than 500 states/],
    [{ integer: true, multipleOf: 99_991 }, /more than 20000 states/],
  ])('%j is refused', (range, message) => {
    expect(() => numberRules('n', range)).toThrow(message);
  });
});
