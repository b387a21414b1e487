/** Validates request fields with zod, and converts issues to the API's errors, with the field's path in `param`. */
import type { z } from 'zod';
import { HttpError, invalidType } from '../http/errors.ts';

type Issue = z.core.$ZodIssue;

/**
 * Validates a body and returns it as a new object. A top-level field that is null counts as absent, and `__proto__` is ignored. Throws HttpError 400 for the first
 * issue.
 */
export function validate<T extends z.ZodType>(schema: T, body: Readonly<Record<string, unknown>>): z.output<T> {
  const present = Object.fromEntries(Object.entries(body).filter(([key, value]) => value !== null && key !== '__proto__'));
  const result = schema.safeParse(present, { reportInput: true });
  if (result.success) return result.data;
  throw toError(typed(innermost(result.error.issues[0] as Issue), result.error.issues[0]));
}

/** Turns an invalid value of a string enum into an invalid type, if the value is no string. */
function typed(issue: Issue, whole: Issue | undefined): Issue {
  const isText = issue === whole && issue.code === 'invalid_value' && issue.values.every((value) => typeof value === 'string');
  if (!isText || typeof issue.input === 'string') return issue;
  return { ...issue, code: 'invalid_type', expected: 'string' };
}

/** Picks one issue of a union, which reports issues for each branch: that of the branch that got furthest. */
function innermost(issue: Issue): Issue {
  if (issue.code !== 'invalid_union') return issue;
  const found = issue.errors.flatMap((branch) => (branch[0] ? [innermost(branch[0])] : []));
  const inner = found.map((candidate) => (candidate.path.length === 0 ? typed(candidate, candidate) : candidate));
  if (inner.length === 0) return unknownKind(issue);
  // Of several kinds of objects, the issue of the one whose `type` was given.
  const within = inner.filter((candidate) => candidate.path.length > 0);
  const first = within.find(({ path }) => path.at(-1) !== 'type') ?? within[0] ?? inner.find(({ code }) => code !== 'invalid_type');
  const best = first && within.reduce((far, other) => (isFurther(other.path, far.path) ? other : far), first);
  if (best) return { ...best, path: [...issue.path, ...best.path] };
  const expected = new Set(inner.map((candidate) => ('expected' in candidate ? String(candidate.expected) : '?')));
  return { ...issue, code: 'invalid_type', expected: [...expected].join(' or ') } as unknown as Issue;
}

/** Whether a path leads further into an array, or deeper into its elements, than another, so that more of the value was valid. */
function isFurther(path: readonly PropertyKey[], than: readonly PropertyKey[]): boolean {
  const at = path.findIndex((key, index) => key !== than[index]);
  const [key, other] = [path[at], than[at]];
  return typeof key === 'number' && (other === undefined || (typeof other === 'number' && key > other));
}

/** The issue of a discriminated union whose `type` is missing or unknown. */
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
    return invalidType(param, article(issue.expected === 'record' ? 'object' : issue.expected), issue.input);
  }
  if (issue.code === 'invalid_key') return toError({ ...(issue.issues[0] as Issue), path: issue.path });
  const custom = issue.code === 'custom' ? (issue.params?.['code'] as string | undefined) : undefined;
  return new HttpError(400, custom ?? 'invalid_value', `'${param}'${limitOf(issue) ?? `: ${issue.message}`}`, { param });
}

/** Words an issue about a limit or an enum, unless the schema has a message of its own for it. */
function limitOf(issue: Issue): string | undefined {
  if (!/^(Too |Invalid option)/.test(issue.message)) return undefined;
  if (issue.code === 'invalid_value') return ` must be one of ${issue.values.map(String).join(', ')}, got ${foundIn(issue.input)}`;
  if (issue.code !== 'too_small' && issue.code !== 'too_big') return undefined;
  const { inclusive = true } = issue;
  const [words, limit] = issue.code === 'too_small' ? ([inclusive ? 'at least' : 'more than', issue.minimum] as const) : ([inclusive ? 'at most' : 'less than', issue.maximum] as const); // prettier-ignore
  if (issue.origin === 'number') return ` must be ${words} ${limit}, got ${String(issue.input)}`;
  const size = typeof issue.input === 'string' || Array.isArray(issue.input) ? `, got ${issue.input.length}` : '';
  return ` must have ${words} ${limit} ${issue.origin === 'string' ? 'characters' : 'entries'}${size}`;
}

/** A value as JSON for a message, truncated. */
function foundIn(value: unknown): string {
  const text = JSON.stringify(value) ?? String(value);
  return text.length > 60 ? `${text.slice(0, 60)}…` : text;
}

/** Formats a path, as in messages[2].content. */
function pathOf(path: readonly PropertyKey[]): string {
  return path.reduce<string>(
    (text, key) => (typeof key === 'number' ? `${text}[${key}]` : text === '' ? String(key) : `${text}.${String(key)}`),
    '',
  );
}

const article = (expected: string): string => (/^[aeiou]/.test(expected) ? `an ${expected}` : `a ${expected}`);

/** Drops keys whose value is undefined, as `exactOptionalPropertyTypes` requires. */
export function defined<T extends object>(fields: T): { [K in keyof T]: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as {
    [K in keyof T]: Exclude<T[K], undefined>;
  };
}
