/** Checks the keywords of one JSON Schema that hold values: the values themselves, and which keywords can be combined. */
import { checkPattern, isQuickToMatch, takesEmpty } from './schema-pattern.ts';
import { EXCLUSIVE, NUMERIC, isNote, typesOf } from './schema-keywords.ts';
import type { Keywords, Refuse } from './schema-keywords.ts';

const TYPES = new Set(['object', 'array', 'string', 'number', 'integer', 'boolean', 'null']);
/** Pairs of a lower and an upper limit, which must be in order. */
const COUNTS = [
  ['minLength', 'maxLength'],
  ['minItems', 'maxItems'],
  ['minProperties', 'maxProperties'],
] as const;
/** Largest limit accepted. No answer is that long, and the library's compile time does not depend on the number. */
const MAX_COUNT = 1_000_000;
/** Most levels of nesting of a value in `enum` or `const`. */
const MAX_VALUE_DEPTH = 32;
/** Most characters of a name or value; the size of the whole schema is limited too. */
const MAX_TEXT = 65_536;
/** Keywords that allow unlisted properties; without any of them the library allows none. */
const MORE_PROPERTIES = ['additionalProperties', 'unevaluatedProperties', 'patternProperties', 'propertyNames'] as const;

/**
 * Checks that refuse a value that is invalid for its keyword, contradicts another keyword, or cannot be enforced beside it. With `onlyMalformed` the caller wants
 * only the first kind, and a check may leave the others out.
 */
export const VALUE_CHECKS: readonly ((keywords: Keywords, refuse: Refuse, onlyMalformed: boolean) => void)[] = [
  checkExclusive,
  checkTypes,
  checkCounts,
  checkObject,
  checkString,
  checkRange,
  checkEnum,
];

function checkExclusive(keywords: Keywords, refuse: Refuse): void {
  if (!['boolean', 'undefined'].includes(typeof keywords.get('nullable'))) refuse('nullable', "'nullable' is true or false", 'malformed');
  const exclusive = EXCLUSIVE.find((keyword) => keywords.has(keyword));
  if (exclusive) {
    const beside = ['type', 'nullable', exclusive];
    const sibling = [...keywords.keys()].find((keyword) => !beside.includes(keyword) && !isNote(keyword, keywords));
    if (sibling) refuse(sibling, `'${sibling}' beside '${exclusive}' cannot be enforced: move it into the branches`);
  }
  if (((keywords.get('allOf') as unknown[] | undefined)?.length ?? 0) > 1)
    refuse('allOf', "'allOf' of more than one schema cannot be enforced");
}

function checkTypes(keywords: Keywords, refuse: Refuse): void {
  if (!keywords.has('type')) return;
  const type = keywords.get('type');
  const types: unknown[] = Array.isArray(type) ? type : [type];
  if (types.length === 0) refuse('type', "'type' is a type or a list of at least one", 'malformed');
  const unknown = types.find((name) => typeof name !== 'string' || !TYPES.has(name));
  if (unknown !== undefined) refuse('type', `unknown type ${show(unknown)}; the types are ${[...TYPES].join(', ')}`, 'malformed');
}

function checkCounts(keywords: Keywords, refuse: Refuse): void {
  for (const pair of COUNTS) {
    for (const keyword of pair) {
      const count = keywords.get(keyword) ?? 0;
      if (typeof count !== 'number' || !Number.isInteger(count) || count < 0 || count > MAX_COUNT) {
        refuse(keyword, `'${keyword}' is a whole number from 0 to ${MAX_COUNT}, found ${show(count)}`, typeof count === 'number' ? undefined : 'malformed'); // prettier-ignore
      }
    }
    const [least, most] = pair.map((keyword) => keywords.get(keyword) as number | undefined);
    if (least !== undefined && most !== undefined && least > most) refuse(pair[0], `'${pair[0]}' ${least} is above '${pair[1]}' ${most}`);
  }
}

function checkObject(keywords: Keywords, refuse: Refuse): void {
  const properties = keywords.get('properties') ?? {};
  for (const keyword of ['properties', 'patternProperties']) {
    for (const name of Object.keys(keywords.get(keyword) ?? {})) checkText(name, keyword, refuse);
  }
  for (const pattern of Object.keys(keywords.get('patternProperties') ?? {})) checkPattern(pattern, 'patternProperties', refuse);
  const required = keywords.get('required') ?? [];
  if (!Array.isArray(required) || required.some((name) => typeof name !== 'string'))
    return refuse('required', "'required' is a list of names", 'malformed');
  const missing = (required as string[]).find((name) => !Object.hasOwn(properties, name));
  if (missing !== undefined) refuse('required', `'${missing.slice(0, 80)}' is required but not in 'properties'`);
  const count = Object.keys(properties).length;
  checkNames(keywords, count, refuse);
  const least = keywords.get('minProperties') as number | undefined;
  const allowsMore = MORE_PROPERTIES.some((keyword) => keywords.has(keyword) && keywords.get(keyword) !== false);
  if (least !== undefined && least > count && !allowsMore) {
    refuse('minProperties', `'minProperties' ${least} is above the ${count} properties there are; others need 'additionalProperties'`);
  }
  const most = keywords.get('maxProperties') as number | undefined;
  if (most !== undefined && most < new Set(required).size)
    refuse('maxProperties', `'maxProperties' ${most} is below the ${required.length} that are required`);
}

function checkString(keywords: Keywords, refuse: Refuse): void {
  const pattern = keywords.get('pattern');
  const format = keywords.get('format');
  if (pattern !== undefined) {
    checkPattern(pattern, 'pattern', refuse);
    checkText(pattern as string, 'pattern', refuse);
    const other = ['minLength', 'maxLength'].find((keyword) => keywords.has(keyword) && !isImplied(keyword, keywords));
    if (other) refuse(other, `'${other}' beside 'pattern' cannot be enforced`);
  }
  if (format !== undefined && typeof format !== 'string') refuse('format', `a format is a name, found ${show(format)}`, 'malformed');
}

/** Refuses rules that the library would ignore: other rules for properties beside `propertyNames`, and listed properties beside `patternProperties`. */
function checkNames(keywords: Keywords, properties: number, refuse: Refuse): void {
  if (keywords.has('patternProperties') && properties > 0) {
    refuse('patternProperties', "'patternProperties' beside 'properties' cannot be enforced");
  }
  if (!keywords.has('propertyNames') || isNote('propertyNames', keywords)) return;
  const other = ['properties', 'patternProperties', 'additionalProperties'].find((keyword) => !['undefined', 'boolean'].includes(typeof keywords.get(keyword))); // prettier-ignore
  if (other) refuse('propertyNames', `'propertyNames' beside '${other}' cannot be enforced`);
}

/** Whether a pattern implies the length beside it: a `minLength` of 0, or of 1 if the pattern does not match the empty string. Clients write both. */
function isImplied(keyword: string, keywords: Keywords): boolean {
  const least = keywords.get('minLength') as number | undefined;
  return keyword === 'minLength' && (least === 0 || (least === 1 && !takesEmpty(keywords.get('pattern') as string)));
}

function checkRange(keywords: Keywords, refuse: Refuse): void {
  const bounds = NUMERIC.filter((keyword) => keywords.has(keyword));
  const [first] = bounds;
  if (!first) return;
  const number = (keyword: string): number | undefined => keywords.get(keyword) as number | undefined;
  const broken = bounds.find((keyword) => !Number.isFinite(number(keyword)));
  if (broken) refuse(broken, `'${broken}' is a number, found ${show(keywords.get(broken))}`, 'malformed');
  if ((number('multipleOf') ?? 1) <= 0) refuse('multipleOf', `'multipleOf' is above 0, found ${number('multipleOf')}`);
  if (!typesOf(keywords).some((type) => type === 'number' || type === 'integer')) {
    refuse(first, `'${first}' can be enforced where 'type' is number or integer`);
  }
  const [low, high] = lowHigh(keywords);
  if (low.value > high.value || (low.value === high.value && (low.exclusive || high.exclusive))) {
    refuse(low.keyword, `'${low.keyword}' ${low.value} and '${high.keyword}' ${high.value} leave no number`);
  }
}

interface Limit {
  readonly keyword: string;
  readonly value: number;
  readonly exclusive: boolean;
}

function lowHigh(keywords: Keywords): [Limit, Limit] {
  const tightest = (inclusive: string, exclusive: string, direction: 1 | -1): Limit => {
    const closed = {
      keyword: inclusive,
      value: (keywords.get(inclusive) as number | undefined) ?? -Infinity * direction,
      exclusive: false,
    };
    const open = { keyword: exclusive, value: (keywords.get(exclusive) as number | undefined) ?? -Infinity * direction, exclusive: true };
    return keywords.has(exclusive) && (open.value - closed.value) * direction >= 0 ? open : closed;
  };
  return [tightest('minimum', 'exclusiveMinimum', 1), tightest('maximum', 'exclusiveMaximum', -1)];
}

function checkEnum(keywords: Keywords, refuse: Refuse, onlyMalformed: boolean): void {
  const keyword = keywords.has('const') ? 'const' : 'enum';
  if (!keywords.has(keyword)) return;
  const values = keyword === 'const' ? [keywords.get('const')] : keywords.get('enum');
  if (!Array.isArray(values) || values.length === 0) return refuse('enum', "'enum' is a list of at least one value", 'malformed');
  // The remaining checks take time.
  if (onlyMalformed) return;
  for (const value of values) checkValue(value, 0, keyword, refuse);
  const types = typesOf(keywords);
  const alien = types.length > 0 ? values.findIndex((value) => !types.some((type) => hasType(value, type))) : -1;
  if (alien >= 0) refuse('enum', `${show(values[alien])} is not of type ${types.join(' or ')}`);
  const texts = values.filter((value) => typeof value === 'string');
  if (keywords.has('pattern') && !isQuickToMatch(keywords.get('pattern') as string, texts))
    refuse('pattern', `such a 'pattern' beside '${keyword}' cannot be enforced`);
  const odd = texts.find((text) => !fits(text, keywords));
  if (odd !== undefined) refuse(keyword, `${show(odd)} is not what the length or pattern beside it allows`);
  if (!NUMERIC.some((name) => keywords.has(name))) return;
  const [low, high] = lowHigh(keywords);
  const inside = (value: number): boolean =>
    (low.exclusive ? value > low.value : value >= low.value) && (high.exclusive ? value < high.value : value <= high.value);
  const outside = values.find((value) => typeof value === 'number' && !inside(value));
  if (outside !== undefined) refuse(keyword, `${show(outside)} is not between the bounds beside it`);
  if (keywords.has('multipleOf')) refuse('multipleOf', `'multipleOf' beside '${keyword}' cannot be enforced`);
}

/** Whether a string satisfies the length limits and the pattern beside it. */
function fits(text: string, keywords: Keywords): boolean {
  const number = (keyword: string): number | undefined => keywords.get(keyword) as number | undefined;
  const { length } = [...text];
  if (length < (number('minLength') ?? 0) || length > (number('maxLength') ?? Infinity)) return false;
  return !keywords.has('pattern') || new RegExp(keywords.get('pattern') as string, 'u').test(text);
}

function checkValue(value: unknown, depth: number, keyword: string, refuse: Refuse): void {
  if (depth > MAX_VALUE_DEPTH) refuse(keyword, `values may be nested ${MAX_VALUE_DEPTH} deep`);
  if (typeof value === 'string') checkText(value, keyword, refuse);
  if (typeof value !== 'object' || value === null) return;
  for (const [name, item] of Object.entries(value)) {
    checkText(name, keyword, refuse);
    checkValue(item, depth + 1, keyword, refuse);
  }
}

/** Refuses a string that is too long, or that the library cannot represent: a NUL ends its literals, and half a surrogate pair has no UTF-8. */
function checkText(text: string, keyword: string, refuse: Refuse): void {
  if (text.length > MAX_TEXT) refuse(keyword, `a text of ${text.length} characters; at most ${MAX_TEXT} can be enforced`);
  if (text.includes('\0')) refuse(keyword, `${show(text)} has a NUL character, which cannot be enforced`);
  if (/\p{Surrogate}/u.test(text)) refuse(keyword, `${show(text)} has half a surrogate pair, which is no character`);
}

function hasType(value: unknown, type: string): boolean {
  if (type === 'null') return value === null;
  if (type === 'array') return Array.isArray(value);
  if (type === 'integer') return Number.isInteger(value);
  if (type === 'object') return typeof value === 'object' && value !== null && !Array.isArray(value);
  return typeof value === type;
}

/** A value for a message, shortened; lists and objects only as such. */
function show(value: unknown): string {
  if (Array.isArray(value)) return 'a list';
  if (typeof value === 'object' && value !== null) return 'an object';
  return (JSON.stringify(value) ?? 'nothing').slice(0, 80);
}
