/** JSON of untrusted files: its size and shape are checked before it is parsed. */
import { EngineError } from '../errors.ts';

/** A JSON object. */
export type Json = Readonly<Record<string, unknown>>;

/** Limits of a file: bytes, depth of nesting, values (counted by commas and opening brackets), and names of fields, which cost most memory. */
export interface JsonLimits {
  readonly bytes: number;
  readonly depth: number;
  readonly values: number;
  readonly names: number;
}

/** Default limits, enough for the largest published tokenizers (33 MB, 2.1 million values, 300,000 names). */
export const FILE_LIMITS: JsonLimits = { bytes: 64 * 2 ** 20, depth: 64, values: 2 ** 21 + 2 ** 19, names: 2 ** 19 };

/** Parses a file's bytes as a JSON object; throws EngineError('invalid_model') that names the path and what was found instead. */
export function parseJsonObject(path: string, bytes: Uint8Array, limits: JsonLimits = FILE_LIMITS): Json {
  const refuse = (why: string, cause?: unknown): never => {
    throw new EngineError('invalid_model', `${path} ${why}`, { cause });
  };
  const problem = boundsProblem(bytes, limits);
  if (problem !== undefined) refuse(problem);
  let value: unknown;
  try {
    value = parsed(new TextDecoder().decode(bytes));
  } catch (error) {
    // V8's message also quotes the text there, which may be anything; only the position is shown.
    const position = /position \d+/.exec(String(error))?.[0];
    refuse(`is not JSON${position ? ` (at ${position})` : ''}`, error);
  }
  return isObject(value) ? value : refuse(`holds ${describe(value)}, expected a JSON object`);
}

/** Texts, which are left alone, and numbers that Python writes and JSON does not have. */
const NO_NUMBERS = /"(?:[^"\\]|\\.)*"|-?\b(?:Infinity|NaN)\b/gs;
/** Characters of a file that may have such numbers: more than any config.json has. */
const MOST_PYTHON = 2 ** 18;

/** The value of JSON, or of what Python takes for it: infinity and NaN come as transformers 5 writes them, { "__float__": "Infinity" }. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    if (text.length > MOST_PYTHON || !/Infinity|NaN/.test(text)) throw error;
    const mended = text.replace(NO_NUMBERS, (found) => (found.startsWith('"') ? found : `{"__float__":"${found}"}`));
    try {
      return JSON.parse(mended);
    } catch {
      throw error;
    }
  }
}

/** Whether a value is an object with named fields. */
export function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Describes a value in a few words, for error messages. */
export function describe(value: unknown): string {
  if (Array.isArray(value)) return `a list of ${value.length}`;
  if (isObject(value)) return 'an object';
  const text = typeof value === 'string' ? quoted(value) : (JSON.stringify(value) ?? 'undefined');
  return text.length > 60 ? `${text.slice(0, 60)}…` : text;
}

/** Quotes a text for a message: on one line, with control characters escaped. */
export function quoted(text: string): string {
  return JSON.stringify(text).replace(/[\x7f-\x9f]/g, (character) => `\\u00${character.charCodeAt(0).toString(16)}`);
}

const [QUOTE, COMMA, COLON, OPEN_LIST, BACKSLASH, CLOSE_LIST, OPEN_OBJECT, CLOSE_OBJECT] = [0x22, 0x2c, 0x3a, 0x5b, 0x5c, 0x5d, 0x7b, 0x7d];

function boundsProblem(bytes: Uint8Array, limits: JsonLimits): string | undefined {
  if (bytes.length > limits.bytes) return `has ${bytes.length} bytes of JSON; at most ${limits.bytes} are read`;
  let depth = 0;
  let values = 0;
  let names = 0;
  let quoted = false;
  for (let i = 0; i < bytes.length; i++) {
    const byte = bytes[i]!;
    if (byte === QUOTE) quoted = !quoted;
    else if (quoted) {
      if (byte === BACKSLASH) i++;
    } else if (byte === OPEN_LIST || byte === OPEN_OBJECT) {
      if (++depth > limits.depth) return `nests JSON deeper than ${limits.depth} levels`;
      values++;
    } else if (byte === CLOSE_LIST || byte === CLOSE_OBJECT) depth--;
    else if (byte === COMMA) values++;
    else if (byte === COLON && ++names > limits.names) return `has more than ${limits.names} named JSON values`;
    if (values > limits.values) return `holds more than ${limits.values} JSON values`;
  }
  return undefined;
}
