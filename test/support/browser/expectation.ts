/** The few matchers that kernel cases use. */

type Matchers = Readonly<Record<string, (...expected: never[]) => void>>;

function fail(sentence: string): never {
  throw new Error(sentence);
}

const show = (value: unknown): string => {
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  return text === undefined ? String(value) : text.slice(0, 200);
};

/** Structural equality of plain data, arrays and typed arrays. */
function equal(a: unknown, b: unknown): boolean {
  if (Object.is(a, b)) return true;
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false;
  const keys = Object.keys(a);
  return keys.length === Object.keys(b).length && keys.every((key) => equal(a[key as never], b[key as never]));
}

/** The message of what a function throws; undefined where it throws nothing. */
function thrownBy(run: () => unknown): string | undefined {
  try {
    run();
    return undefined;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

/** As vitest's expect(); a matcher that is not here throws instead of passing. */
export function expectation(actual: unknown): Matchers {
  const number = actual as number;
  const check = (holds: boolean, words: string, expected: unknown): void => {
    if (!holds) fail(`expected ${show(actual)} ${words} ${show(expected)}`);
  };
  const matchers: Matchers = {
    toBe: (expected: unknown) => check(Object.is(actual, expected), 'to be', expected),
    toEqual: (expected: unknown) => check(equal(actual, expected), 'to equal', expected),
    toBeGreaterThan: (expected: number) => check(number > expected, 'to be above', expected),
    toBeGreaterThanOrEqual: (expected: number) => check(number >= expected, 'to be at least', expected),
    toBeLessThan: (expected: number) => check(number < expected, 'to be below', expected),
    toBeLessThanOrEqual: (expected: number) => check(number <= expected, 'to be at most', expected),
    toBeCloseTo: (expected: number, digits = 2) => check(Math.abs(number - expected) < 10 ** -digits / 2, 'to be close to', expected),
    toHaveLength: (expected: number) => check((actual as ArrayLike<unknown>).length === expected, 'to have the length', expected),
    toThrow: (expected: RegExp) => {
      const thrown = thrownBy(actual as () => unknown);
      if (thrown === undefined || !expected.test(thrown)) fail(`expected an error with ${expected}, got ${show(thrown)}`);
    },
    toBeUndefined: () => check(actual === undefined, 'to be', undefined),
  };
  return new Proxy(matchers, {
    get: (known, name) => known[String(name)] ?? fail(`the browser's self-test does not know expect().${String(name)}`),
  });
}
