/** The body of a call as it would arrive over HTTP. */
import { MAX_DEPTH, MAX_ELEMENTS, tooDeep, tooManyElements } from '../server/body/shape.ts';
import { invalidType } from '../server/http/errors.ts';

/**
 * Copies a body as JSON would: `toJSON` is called, functions are left out, and reactive or frozen objects become plain ones, which the engine's port can carry. Only
 * numbers stay as they are, so that NaN is refused and not taken for an absent field. Throws HttpError 400 for what no HTTP body can be: endless, deeper or longer.
 */
export function plainBody(body: unknown): Record<string, unknown> {
  let elements = 0;
  const count = (length: number): void => {
    elements += Math.max(0, length - 1);
    if (elements > MAX_ELEMENTS) throw tooManyElements();
  };
  const copy = (given: unknown, key: string, field: string, depth: number): unknown => {
    const value = hasToJson(given) ? given.toJSON(key) : given;
    if (typeof value === 'function' || typeof value === 'symbol') return undefined;
    if (typeof value === 'bigint') throw invalidType(field, 'a JSON value', value);
    if (typeof value !== 'object' || value === null) return value;
    if (depth > MAX_DEPTH) throw tooDeep();
    const inside = (name: string, item: unknown): unknown => copy(item, name, depth === 1 ? name : field, depth + 1);
    if (Array.isArray(value)) {
      count(value.length);
      return Array.from(value, (item, index) => inside(String(index), item));
    }
    const entries = Object.entries(value);
    count(entries.length);
    return Object.fromEntries(entries.map(([name, item]) => [name, inside(name, item)]).filter(([, item]) => item !== undefined));
  };
  const plain = copy(body, '', '', 1);
  return typeof plain === 'object' && plain !== null ? (plain as Record<string, unknown>) : {};
}

const hasToJson = (value: unknown): value is { toJSON(key: string): unknown } =>
  typeof value === 'object' && value !== null && typeof Reflect.get(value, 'toJSON') === 'function';
