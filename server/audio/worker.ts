/** Worker thread: decodes uploads and encodes speech, so that the HTTP loop never waits for either. */
import { parentPort } from 'node:worker_threads';
import { createMp3Encoder } from 'wasm-media-encoders';
import { floatToPcm16 } from '../../engine/audio/wav.ts';
import { Blocks } from '../body/blocks.ts';
import { decodeUpload } from './decode.ts';
import type { Decoded } from './decode.ts';
import { toHttpError } from '../http/errors.ts';

/** How samples become bytes; a WAV file is a header and `pcm`. */
export type SampleEncoding = 'pcm' | 'mp3';

/** `id` names a decoding, or an encoder from `open` to `finish` or `discard`. Every message but `discard` is answered once, in order. */
export type CodecRequest =
  | { readonly type: 'decode'; readonly id: number; readonly blocks: readonly Uint8Array<ArrayBuffer>[]; readonly path: string }
  | { readonly type: 'open'; readonly id: number; readonly encoding: SampleEncoding; readonly sampleRate: number }
  | { readonly type: 'push'; readonly id: number; readonly samples: Float32Array }
  | { readonly type: 'finish'; readonly id: number }
  | { readonly type: 'discard'; readonly id: number };

export type CodecReply =
  | ({ readonly id: number } & Decoded)
  | { readonly id: number; readonly bytes: Uint8Array }
  | {
      readonly id: number;
      readonly error: {
        readonly status: number;
        readonly code: string;
        readonly message: string;
        readonly param?: string;
        readonly stack?: string;
      };
    };

interface SampleEncoder {
  encode(samples: Float32Array): Uint8Array;
  finish(): Uint8Array;
}

const PCM: SampleEncoder = { encode: floatToPcm16, finish: () => new Uint8Array() };
/** kbit/s; MPEG-2 layer III at 24 kHz mono is transparent for speech well below this. */
const MP3_BITRATE = 96;

async function createSampleEncoder(encoding: SampleEncoding, sampleRate: number): Promise<SampleEncoder> {
  if (encoding === 'pcm') return PCM;
  const mp3 = await createMp3Encoder();
  mp3.configure({ sampleRate, channels: 1, bitrate: MP3_BITRATE });
  // What it returns is a view of its own memory.
  return { encode: (samples) => mp3.encode([samples]).slice(), finish: () => mp3.finalize().slice() };
}

const encoders = new Map<number, SampleEncoder>();

async function answer(request: CodecRequest): Promise<CodecReply | undefined> {
  const { id } = request;
  if (request.type === 'decode') {
    const file = Blocks.of(request.blocks);
    try {
      return { id, ...decodeUpload(file, request.path) };
    } finally {
      // The budget counts it no more.
      file.free();
    }
  }
  if (request.type === 'open') {
    encoders.set(id, await createSampleEncoder(request.encoding, request.sampleRate));
    return { id, bytes: new Uint8Array() };
  }
  const encoder = encoders.get(id);
  if (request.type === 'discard' || !encoder) {
    encoders.delete(id);
    return undefined;
  }
  if (request.type === 'push') return { id, bytes: encoder.encode(request.samples) };
  encoders.delete(id);
  return { id, bytes: encoder.finish() };
}

function failure(id: number, thrown: unknown): CodecReply {
  const { status, code, message, param, cause } = toHttpError(thrown);
  const stack = code === 'internal_error' && cause instanceof Error ? cause.stack : undefined;
  return { id, error: { status, code, message, ...(param !== undefined && { param }), ...(stack !== undefined && { stack }) } };
}

const port = parentPort;
// Requests are answered one after the other: an encoder's chunks must stay in order.
let queue = Promise.resolve();
port?.on('message', (request: CodecRequest) => {
  queue = queue.then(async () => {
    const reply = await answer(request).catch((error: unknown) => failure(request.id, error));
    if (!reply) return;
    const buffer = 'bytes' in reply ? reply.bytes.buffer : undefined;
    port.postMessage(reply, buffer instanceof ArrayBuffer ? [buffer] : []);
  });
});
