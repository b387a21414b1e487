/**
 * Stands in for vitest when the kernel cases run in a page's self-test: the bundler puts it in vitest's place. It collects what a test file registers and
 * throws like vitest where an expectation fails; a matcher it lacks is an error, never a pass.
 */
import { expectation } from './expectation.ts';

type Work = () => unknown;

/** Thrown by a test that has nothing to test here. */
export class Skipped extends Error {}

/** What a test of `test.for` gets beside its row. */
interface TestContext {
  skip(why: string): never;
}

const CONTEXT: TestContext = {
  skip(why) {
    throw new Skipped(why);
  },
};

export interface CollectedTest {
  readonly name: string;
  readonly run: Work;
}

/** A describe block: `before` and `after` run once around its tests. */
export interface Suite {
  readonly name: string;
  readonly before: Work[];
  readonly after: Work[];
  readonly tests: CollectedTest[];
}

const suites: Suite[] = [];
const open: Suite[] = [];

/** What has been registered so far, in order; the caller takes it all. */
export function takeSuites(): Suite[] {
  return suites.splice(0).filter((suite) => suite.tests.length > 0);
}

function current(): Suite {
  const suite = open.at(-1) ?? suites.findLast(({ name }) => name === '');
  return suite ?? newSuite('');
}

function newSuite(name: string): Suite {
  const suite: Suite = { name, before: [], after: [], tests: [] };
  suites.push(suite);
  return suite;
}

function register(name: string, run: Work): void {
  current().tests.push({ name, run });
}

function each(rows: readonly unknown[]) {
  return (title: string, run: (...values: unknown[]) => unknown): void => {
    for (const row of rows) register(titled(title, row), () => run(...(Array.isArray(row) ? (row as unknown[]) : [row])));
  };
}

/** The row as it is, and the context. */
function eachFor<Row>(rows: readonly Row[]) {
  return (title: string, run: (row: Row, context: TestContext) => unknown): void => {
    for (const row of rows) register(titled(title, row), () => run(row, CONTEXT));
  };
}

/** `%s` in a title is the row's next value, `$field` its field, as in vitest. */
function titled(title: string, row: unknown): string {
  const values: readonly unknown[] = Array.isArray(row) ? row : [row];
  const fields = Object(row) as Readonly<Record<string, unknown>>;
  let next = 0;
  return title.replace(/%[sdif]/g, () => String(values[next++])).replace(/\$(\w+)/g, (_, name: string) => String(fields[name])); // prettier-ignore
}

function suite(name: string, define: Work): void {
  const outer = open.map((suite) => suite.name);
  const opened = newSuite([...outer, name].join(' › '));
  opened.before.push(...open.flatMap(({ before }) => before));
  open.push(opened);
  try {
    define();
  } finally {
    open.pop();
  }
}

function eachSuite<Row>(rows: readonly Row[]) {
  return (title: string, define: (row: Row) => void): void => {
    for (const row of rows) suite(titled(title, row), () => define(row));
  };
}

export const describe = Object.assign(suite, { each: eachSuite });
export const test = Object.assign(register, { each, for: eachFor });
export const it = test;
export const expect = expectation;

export function beforeAll(work: Work): void {
  innermost().before.push(work);
}

export function afterAll(work: Work): void {
  innermost().after.push(work);
}

/** The block that a hook stands in. Blocks run one after the other here, so a hook of the whole file would be over before the second. */
function innermost(): Suite {
  const suite = open.at(-1);
  if (!suite) throw new Error('beforeAll and afterAll stand in a describe block in files of kernel cases');
  return suite;
}
