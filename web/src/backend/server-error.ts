/** What servers say instead of an answer. OpenAI's form is usual, but several products have their own. */
import { EngineError } from '../../../engine/errors.ts';
import type { EngineErrorCode } from '../../../engine/errors.ts';
import type { Json } from '../../../engine/util/json.ts';
import { fieldsOf } from '../util.ts';

export interface ServerError {
  readonly message?: string;
  readonly code?: string;
  readonly param?: string;
}

/** Most characters of a server's words that are shown. */
const LONGEST = 500;

/** The error of a response that is none of the 200s. */
export async function serverError(response: Response): Promise<EngineError> {
  const body = await response.text().catch(() => '');
  const { message, code, param } = errorOf(parsed(body)) ?? { message: plainText(response, body) };
  const said = message || response.statusText;
  const text = `The server refused${said ? `: ${said}` : ''} (HTTP ${response.status}${code ? `, ${code}` : ''})`;
  return new EngineError(codeOf(response.status, code), text, param ? { param } : {});
}

/**
 * Reads the error of a body: `error`, an object or a text; its fields without it (vLLM); or `detail` (FastAPI), which is a text, an object, or a list
 * of the fields that are wrong. Returns undefined where the body has none.
 */
export function errorOf(body: unknown): ServerError | undefined {
  const { error, detail } = fieldsOf(body);
  if (error) return typeof error === 'string' ? { message: shortened(error) } : describe(fieldsOf(error));
  if (Array.isArray(detail)) return { ...describeAll(detail) };
  if (detail) return typeof detail === 'string' ? { message: shortened(detail) } : describe(fieldsOf(detail));
  return typeof fieldsOf(body)['message'] === 'string' ? describe(fieldsOf(body)) : undefined;
}

/** A server's words, cut where they go on for pages. */
export const shortened = (text: string): string => (text.length > LONGEST ? `${text.slice(0, LONGEST)}…` : text);

function describe({ message, code, param }: Json): ServerError {
  return {
    ...(typeof message === 'string' && { message: shortened(message) }),
    // A number is the HTTP status again.
    ...(typeof code === 'string' && !/^\d+$/.test(code) && { code }),
    ...(typeof param === 'string' && { param }),
  };
}

/** Describes a list of wrong fields: where each is, its name last, and what is wrong with it. */
function describeAll(wrong: readonly unknown[]): ServerError {
  const all = wrong.map(fieldsOf).map(({ loc, msg }) => ({ name: Array.isArray(loc) ? String(loc.at(-1)) : '', why: String(msg) }));
  const message = shortened(all.map(({ name, why }) => (name ? `${name}: ${why}` : why)).join('; '));
  return { message, ...(all[0]?.name && { param: all[0].name }) };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** A body of plain text, as proxies write it; pages have none to show. */
const plainText = (response: Response, body: string): string =>
  /^text\/plain\b/.test(response.headers.get('content-type') ?? '') ? shortened(body.trim()) : '';

/** Maps a refusal to the error code that decides which remedies this page offers; servers other than Parley's use codes of their own. */
function codeOf(status: number, code: string | undefined): EngineErrorCode {
  if (code === 'context_length_exceeded') return code;
  if (status === 503) return code === 'device_lost' ? code : 'queue_full';
  return status < 500 ? 'invalid_request' : 'internal';
}
