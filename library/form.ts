/** Converts a transcription request to the form that it is over HTTP, so that both are validated by the same code. */
import { invalidType } from '../server/http/errors.ts';

/** Converts fields to text, as in a form. Fields that are null, undefined or an empty array are omitted. */
export function formOf(fields: Readonly<Record<string, unknown>>): ReadonlyMap<string, readonly string[]> {
  const text = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value));
  const present = Object.entries(fields).filter(
    ([, value]) => value !== undefined && value !== null && !(Array.isArray(value) && value.length === 0),
  );
  return new Map(present.map(([name, value]) => [name, Array.isArray(value) ? value.map(text) : [text(value)]]));
}

/** Reads the bytes of a recording; undefined if there is none. Throws HttpError 400 for a value of another type. */
export async function bytesOf(file: unknown, signal: AbortSignal): Promise<Uint8Array<ArrayBuffer> | undefined> {
  if (file === undefined || file === null) return undefined;
  if (file instanceof Blob || file instanceof Response) return new Uint8Array(await file.arrayBuffer());
  // Copied, because the caller may change its bytes.
  if (file instanceof Uint8Array) return new Uint8Array(file);
  if (file instanceof ArrayBuffer) return new Uint8Array(file.slice(0));
  if (isIterable(file)) return collectBytes(file, signal);
  throw invalidType('file', 'a File, a Blob, a Response, a stream or bytes', file);
}

const isIterable = (value: unknown): value is AsyncIterable<Uint8Array> =>
  typeof value === 'object' && value !== null && Symbol.asyncIterator in value;

/** Reads a stream, such as that of a file in Node. Once the signal is aborted, the stream is closed when its next bytes arrive. */
async function collectBytes(stream: AsyncIterable<Uint8Array>, signal: AbortSignal): Promise<Uint8Array<ArrayBuffer>> {
  const chunks: Uint8Array<ArrayBuffer>[] = [];
  for await (const chunk of stream) {
    signal.throwIfAborted();
    chunks.push(new Uint8Array(chunk));
  }
  return new Uint8Array(await new Blob(chunks).arrayBuffer());
}
