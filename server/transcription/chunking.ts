/** Voice activity detection in a transcription form: OpenAI's `chunking_strategy`, and `vad_filter` of other servers. */
import type { TranscriptionRequest, VadRules } from '../../engine/api.ts';
import { isObject } from '../../engine/util/json.ts';
import type { Form } from '../body/multipart.ts';
import { invalidValue, unsupportedValue } from '../http/errors.ts';
import type { Json } from '../http/route.ts';
import { parseBoolean } from './form-values.ts';

const FIELD = 'chunking_strategy';
const TYPE = 'server_vad';

/** The members of OpenAI's server_vad, with OpenAI's defaults, and their maxima here. */
const RULES = [
  { name: 'prefix_padding_ms', rule: 'prefixPaddingMs', default: 300, max: 60_000, type: 'integer' },
  { name: 'silence_duration_ms', rule: 'silenceDurationMs', default: 200, max: 60_000, type: 'integer' },
  { name: 'threshold', rule: 'threshold', default: 0.5, max: 1, type: 'number' },
] as const satisfies readonly { readonly rule: keyof VadRules; readonly [more: string]: unknown }[];

/** `chunking_strategy` and `vad_filter` as JSON Schema. */
export function describeChunking(): Record<string, Json> {
  const rules = RULES.map(({ name, type, max, default: value }) => [name, { type, minimum: 0, maximum: max, default: value }] as const);
  const serverVad = {
    type: 'object',
    required: ['type'],
    properties: { type: { const: TYPE }, ...Object.fromEntries(rules) },
    additionalProperties: false,
  };
  return {
    [FIELD]: { anyOf: [{ const: 'auto' }, serverVad], description: 'What counts as speech; the rest is not heard' },
    vad_filter: { type: 'boolean', description: 'Whether audio without speech is left out, which it is by default' },
  };
}

/** Parses both fields into the engine's `vad`; undefined if they are absent or `auto`. Throws HttpError 400 that names the field. */
export function parseChunking(fields: Form['fields']): TranscriptionRequest['vad'] {
  const filter = parseBoolean('vad_filter', fields.get('vad_filter')?.at(-1));
  const rules = parseRules(fields);
  if (rules && filter === false)
    throw unsupportedValue('vad_filter', `'vad_filter' false hears all audio, so '${FIELD}' has nothing to decide`);
  return rules ?? filter;
}

function parseRules(fields: Form['fields']): VadRules | undefined {
  const text = fields.get(FIELD)?.at(-1)?.trim();
  const parts = partsOf(fields);
  if (parts && text !== undefined) throw invalidValue(FIELD, `'${FIELD}' was sent whole and in parts`);
  if (!parts && (text === undefined || text === '' || text === 'auto')) return undefined;
  const strategy = parts ?? parseObject(text!);
  const { type, ...given } = strategy;
  if (type !== TYPE) throw invalidValue(FIELD, `'${FIELD}' must be 'auto' or an object of type '${TYPE}'`);
  const known = RULES.map(({ name }) => name as string);
  const other = Object.keys(given).find((name) => !known.includes(name));
  if (other !== undefined) throw invalidValue(FIELD, `'${FIELD}' has no '${other.slice(0, 40)}'; it takes type, ${known.join(', ')}`);
  const values = RULES.map(({ name, rule, default: value, max, type: kind }) => {
    const found = given[name] ?? value;
    if (typeof found !== 'number' || !(found >= 0 && found <= max) || (kind === 'integer' && !Number.isInteger(found)))
      throw invalidValue(
        `${FIELD}.${name}`,
        `'${FIELD}.${name}' must be ${kind === 'integer' ? 'an integer' : 'a number'} from 0 to ${max}`,
      );
    return [rule, found] as const;
  });
  return Object.fromEntries(values) as unknown as VadRules;
}

/** Reads `chunking_strategy` from one field per member, such as `chunking_strategy[type]`, which is how OpenAI's clients send it; undefined if there is none. */
function partsOf(fields: Form['fields']): Record<string, unknown> | undefined {
  const parts = [...fields].flatMap(([name, values]) => {
    const member = new RegExp(`^${FIELD}\\[(\\w+)\\]$`).exec(name)?.[1];
    const text = values.at(-1)!.trim();
    return member === undefined ? [] : [[member, member !== 'type' && text !== '' ? Number(text) : text] as const];
  });
  return parts.length > 0 ? Object.fromEntries(parts) : undefined;
}

function parseObject(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text);
    if (isObject(value)) return value;
  } catch {
    // Not JSON: refused below.
  }
  throw invalidValue(FIELD, `'${FIELD}' must be 'auto' or an object of type '${TYPE}'`);
}
