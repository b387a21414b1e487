/** Request fields against zod schemas, with failures as the API's errors: dotted path in `param`, and a code of the contract. */
import type { z } from 'zod';
import { HttpError, invalidType } from '../http/errors.ts';

type Issue = z.core.$ZodIssue;

/**
 * Parses a body into a fresh object (nothing of the parsed JSON is copied by key, so `__proto__` is only another unknown field). A field
 * that is null counts as absent.
 */
export function validate<T extends z.ZodType>(schema: T, body: Readonly<Record<string, unknown>>): z.output<T> {
  const present = Object.fromEntries(Object.entries(body).filter(([key, value]) => value !== null && key !== '__proto__'));
  const result = schema.safeParse(present, { reportInput: true });
  if (result.success) return result.data;
  throw toError(typed(innermost(result.error.issues[0] as Issue), result.error.issues[0]));
}

/** A number where one of a few texts is wanted, or nothing, has the wrong type, not a wrong value. */
function typed(issue: Issue, whole: Issue | undefined): Issue {
  const isText = issue === whole && issue.code === 'invalid_value' && issue.values.every((value) => typeof value === 'string');
  if (!isText || typeof issue.input === 'string') return issue;
  return { ...issue, code: 'invalid_type', expected: 'string' };
}

/** A union reports one list of issues a branch: the branch that got furthest says what is wrong. */
function innermost(issue: Issue): Issue {
  if (issue.code !== 'invalid_union') return issue;
  const inner = issue.errors.flatMap((branch) => (branch[0] ? [innermost(branch[0])] : []));
  if (inner.length === 0) return unknownKind(issue);
  const best = inner.find((candidate) => candidate.path.length > 0 || candidate.code !== 'invalid_type');
  if (best) return { ...best, path: [...issue.path, ...best.path] };
  const expected = inner.map((candidate) => ('expected' in candidate ? String(candidate.expected) : '?'));
  return { ...issue, code: 'invalid_type', expected: expected.join(' or ') } as unknown as Issue;
}

/** A discriminated union whose `type` is missing or names no branch. */
function unknownKind(issue: Issue): Issue {
  const key = issue.path.at(-1);
  const given = typeof issue.input === 'object' && issue.input !== null && key !== undefined ? Reflect.get(issue.input, key) : undefined;
  const code = given === undefined ? 'invalid_type' : 'invalid_value';
  const known = ('options' in issue ? (issue.options as readonly unknown[]) : []).map((kind) => `'${String(kind)}'`);
  const message = known.length > 0 ? `must be one of ${known.join(', ')}` : 'is none of the known kinds';
  return { ...issue, code, expected: 'string', input: given, message } as unknown as Issue;
}

function toError(issue: Issue): HttpError {
  const param = pathOf(issue.path);
  if (issue.code === 'invalid_type' && issue.input === undefined) {
    return new HttpError(400, 'missing_required_parameter', `'${param}' is required`, { param });
  }
  if (issue.code === 'invalid_type') {
    return invalidType(param, article(issue.expected), issue.input);
  }
  if (issue.code === 'invalid_key') return toError({ ...(issue.issues[0] as Issue), path: issue.path });
  const custom = issue.code === 'custom' ? (issue.params?.['code'] as string | undefined) : undefined;
  return new HttpError(400, custom ?? 'invalid_value', `'${param}': ${issue.message}`, { param });
}

/** messages[2].content */
function pathOf(path: readonly PropertyKey[]): string {
  return path.reduce<string>(
    (text, key) => (typeof key === 'number' ? `${text}[${key}]` : text === '' ? String(key) : `${text}.${String(key)}`),
    '',
  );
}

const article = (expected: string): string => (/^[aeiou]/.test(expected) ? `an ${expected}` : `a ${expected}`);

/** The object without keys whose value is undefined, as `exactOptionalPropertyTypes` wants it. */
export function defined<T extends object>(fields: T): { [K in keyof T]: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as {
    [K in keyof T]: Exclude<T[K], undefined>;
  };
}
