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
  if (file instanceof Uint8Array || file instanceof ArrayBuffer) return copyOf(file);
  if (isIterable(file)) return collectBytes(file, signal);
  throw invalidType('file', 'a File, a Blob, a Response, a stream or bytes', file);
}

/** A copy of bytes, because their owner may change them. Bytes that were transferred to elsewhere are none, and cannot be copied. */
function copyOf(bytes: ArrayBufferView | ArrayBuffer): Uint8Array<ArrayBuffer> {
  if (bytes.byteLength === 0) return new Uint8Array(0);
  const { buffer, byteOffset } = ArrayBuffer.isView(bytes) ? bytes : { buffer: bytes, byteOffset: 0 };
  return new Uint8Array(new Uint8Array(buffer, byteOffset, bytes.byteLength));
}

const isIterable = (value: unknown): value is AsyncIterable<Uint8Array> =>
  typeof value === 'object' && value !== null && Symbol.asyncIterator in value;

/** Reads a stream, such as that of a file in Node. Once the signal is aborted, the stream is closed when its next bytes arrive. */
async function collectBytes(stream: AsyncIterable<Uint8Array>, signal: AbortSignal): Promise<Uint8Array<ArrayBuffer>> {
  const chunks: Uint8Array<ArrayBuffer>[] = [];
  for await (const chunk of stream) {
    signal.throwIfAborted();
    // A stream of text, such as that of a file opened with an encoding, would be read as nothing at all.
    if (!ArrayBuffer.isView(chunk) && !((chunk as unknown) instanceof ArrayBuffer)) throw invalidType('file', 'a stream of bytes', chunk);
    chunks.push(copyOf(chunk));
  }
  return new Uint8Array(await new Blob(chunks).arrayBuffer());
}
