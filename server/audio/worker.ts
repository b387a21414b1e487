/** Worker thread that decodes uploads and encodes speech, so that the event loop of the HTTP server is not blocked by either. */
import { parentPort } from 'node:worker_threads';
import { Blocks } from '../body/blocks.ts';
import { decodeUpload } from './upload/decode.ts';
import type { Decoded } from './upload/decode.ts';
import { createSampleEncoder } from './encoders.ts';
import type { SampleEncoding } from './encoders.ts';
import type { Rates, SampleEncoder } from './pcm.ts';
import { codecFailed, toHttpError } from '../http/errors.ts';

/**
 * A request to the worker. `id` is that of a decoding, or of an encoder from `open` to `finish` or `discard`. Every message but `discard` is answered once, in
 * order.
 */
export type CodecRequest =
  | { readonly type: 'decode'; readonly id: number; readonly blocks: readonly Uint8Array<ArrayBuffer>[]; readonly path: string }
  | { readonly type: 'open'; readonly id: number; readonly encoding: SampleEncoding; readonly rates: Rates }
  | { readonly type: 'push'; readonly id: number; readonly samples: Float32Array }
  | { readonly type: 'finish'; readonly id: number }
  | { readonly type: 'discard'; readonly id: number };

/** The worker's answer to a request. */
export type CodecReply =
  | ({ readonly id: number } & Decoded)
  /** `head` replaces the beginning of the file; see SampleEncoder. */
  | { readonly id: number; readonly bytes: Uint8Array; readonly head?: Uint8Array }
  | {
      readonly id: number;
      readonly error: {
        readonly status: number;
        readonly code: string;
        readonly message: string;
        readonly headers: Readonly<Record<string, string>>;
        readonly param?: string;
        readonly stack?: string;
      };
    };

/** Milliseconds between two signs of progress. */
const PROGRESS_MS = 1_000;
const encoders = new Map<number, SampleEncoder>();

async function answer(request: CodecRequest): Promise<CodecReply | undefined> {
  const { id } = request;
  if (request.type === 'decode') {
    const file = Blocks.of(request.blocks);
    try {
      return { id, ...decodeUpload(file, request.path, { onProgress: reportProgress() }) };
    } finally {
      // The budget no longer counts the file.
      file.free();
    }
  }
  if (request.type === 'open') {
    encoders.set(id, await createSampleEncoder(request.encoding, request.rates));
    return { id, bytes: new Uint8Array() };
  }
  const encoder = encoders.get(id);
  if (request.type === 'discard') {
    encoder?.close?.();
    encoders.delete(id);
    return undefined;
  }
  // The encoder was in a worker that died, and that this one replaced.
  if (!encoder) throw codecFailed();
  if (request.type === 'push') return { id, bytes: encoder.encode(request.samples) };
  encoders.delete(id);
  const bytes = encoder.finish();
  const head = encoder.head?.();
  encoder.close?.();
  return { id, bytes, ...(head && { head }) };
}

/** Returns a function that tells the pool, at most once in PROGRESS_MS, that a decoding goes on. */
function reportProgress(): () => void {
  let last = performance.now();
  return () => {
    if (performance.now() - last < PROGRESS_MS) return;
    last = performance.now();
    port?.postMessage('progress');
  };
}

function failure(id: number, thrown: unknown): CodecReply {
  const { status, code, message, headers, param, cause } = toHttpError(thrown);
  const stack = code === 'internal_error' && cause instanceof Error ? cause.stack : undefined;
  return { id, error: { status, code, message, headers, ...(param !== undefined && { param }), ...(stack !== undefined && { stack }) } };
}

const port = parentPort;
// Requests are served one after the other, since an encoder's chunks must stay in order.
let queue = Promise.resolve();
port?.on('message', (request: CodecRequest) => {
  queue = queue.then(async () => {
    const reply = await answer(request).catch((error: unknown) => failure(request.id, error));
    if (!reply) return;
    const buffer = 'bytes' in reply ? reply.bytes.buffer : undefined;
    port.postMessage(reply, buffer instanceof ArrayBuffer ? [buffer] : []);
  });
});
port?.postMessage('loaded');
