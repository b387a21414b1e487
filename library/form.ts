/** A transcription's request as the form that it is over HTTP, whose fields are all text: one check for both. */
import { invalidType } from '../server/http/errors.ts';

/** The fields as a form has them; what is null or undefined is absent, and an empty array, of which a form has nothing. */
export function formOf(fields: Readonly<Record<string, unknown>>): ReadonlyMap<string, readonly string[]> {
  const text = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value));
  const present = Object.entries(fields).filter(
    ([, value]) => value !== undefined && value !== null && !(Array.isArray(value) && value.length === 0),
  );
  return new Map(present.map(([name, value]) => [name, Array.isArray(value) ? value.map(text) : [text(value)]]));
}

/** The bytes of a recording; undefined where there is none. Throws HttpError 400 for what is none. */
export async function bytesOf(file: unknown, signal: AbortSignal): Promise<Uint8Array<ArrayBuffer> | undefined> {
  if (file === undefined || file === null) return undefined;
  if (file instanceof Blob || file instanceof Response) return new Uint8Array(await file.arrayBuffer());
  // Copied: what becomes of the caller's own bytes is the caller's business.
  if (file instanceof Uint8Array) return new Uint8Array(file);
  if (file instanceof ArrayBuffer) return new Uint8Array(file.slice(0));
  if (isIterable(file)) return collectBytes(file, signal);
  throw invalidType('file', 'a File, a Blob, a Response, a stream or bytes', file);
}

const isIterable = (value: unknown): value is AsyncIterable<Uint8Array> =>
  typeof value === 'object' && value !== null && Symbol.asyncIterator in value;

/** A readable stream, such as that of a file in Node; left, and so closed, at its next bytes once the signal has aborted. */
async function collectBytes(stream: AsyncIterable<Uint8Array>, signal: AbortSignal): Promise<Uint8Array<ArrayBuffer>> {
  const chunks: Uint8Array<ArrayBuffer>[] = [];
  for await (const chunk of stream) {
    signal.throwIfAborted();
    chunks.push(new Uint8Array(chunk));
  }
  return new Uint8Array(await new Blob(chunks).arrayBuffer());
}
