/** Any sound file as 16 kHz mono: WAV by the engine's own reader (any width and rate) in a worker, the rest by the browser's decoders. */
import { formatBytes, nextTask } from '../util.ts';
import { startWorker } from '../trusted-types.ts';
import type { DecodeAnswer, DecodeMessage } from '../worker/decode-protocol.ts';
import { MAX_SECONDS, MAX_UNKNOWN_BYTES, checkLength } from './limits.ts';
import { CAPTURE_RATE } from './microphone.ts';
import { PeakMeter } from './peaks.ts';
import { isWavBlob } from './wav-blob.ts';
import workerUrl from '../worker/decode-worker.ts?worker&url';

/** A sound as it is heard and shown. */
export interface DecodedSound {
  /** Mono at 16 kHz. */
  readonly samples: Float32Array;
  /** For the trace, 0..1. */
  readonly levels: Float32Array;
}

export interface DecodeOptions {
  readonly signal: AbortSignal;
  /** Told the share that is decoded, 0..1. */
  readonly onProgress: (done: number) => void;
}

/** Frames mixed in one go on the page's thread: a few milliseconds. */
const MIX_FRAMES = 1 << 18;

/** Throws an Error with a readable message for what is no sound or too long; DOMException('AbortError') when `signal` stops it. */
export async function decodeAudio(file: Blob, options: DecodeOptions): Promise<DecodedSound> {
  const isWav = await isWavBlob(file);
  options.signal.throwIfAborted();
  return isWav ? decodeInWorker(file, options) : decodeByBrowser(file, options);
}

function decodeInWorker(file: Blob, { signal, onProgress }: DecodeOptions): Promise<DecodedSound> {
  return new Promise<DecodedSound>((resolve, reject) => {
    const worker = startWorker(workerUrl, 'parley decode');
    const end = (): void => {
      worker.terminate();
      signal.removeEventListener('abort', onAbort);
    };
    const onAbort = (): void => {
      end();
      reject(signal.reason);
    };
    signal.addEventListener('abort', onAbort);
    worker.addEventListener('error', (event) => {
      end();
      reject(new Error(event.message || 'the script that decodes sound could not be loaded'));
    });
    worker.addEventListener('message', ({ data }: MessageEvent<DecodeAnswer>) => {
      if (data.type === 'progress') return onProgress(data.done);
      end();
      if (data.type === 'decoded') resolve(data);
      else reject(new Error(data.message));
    });
    worker.postMessage({ file, rate: CAPTURE_RATE, maxSeconds: MAX_SECONDS } satisfies DecodeMessage);
  });
}

/** These decoders take the whole file and cannot be stopped; what they give after `signal` is dropped. */
async function decodeByBrowser(file: Blob, options: DecodeOptions): Promise<DecodedSound> {
  const seconds = await durationOf(file);
  if (seconds !== undefined) checkLength(seconds);
  if (file.size > MAX_UNKNOWN_BYTES)
    throw new Error(`it has ${formatBytes(file.size)}; at most ${formatBytes(MAX_UNKNOWN_BYTES)} of compressed sound are read`);
  const { signal } = options;
  signal.throwIfAborted();
  const bytes = await file.arrayBuffer();
  signal.throwIfAborted();
  const context = new OfflineAudioContext(1, 1, CAPTURE_RATE);
  const decoded = await context.decodeAudioData(bytes).catch((error: unknown) => {
    throw new Error('this browser cannot read the file as sound; WAV, MP3, M4A, Ogg and FLAC usually work', { cause: error });
  });
  signal.throwIfAborted();
  checkLength(decoded.duration);
  return mixDown(decoded, options);
}

/** Seconds as the file's own headers have it; undefined where they do not say. */
function durationOf(file: Blob): Promise<number | undefined> {
  return new Promise((resolve) => {
    const element = new Audio();
    const answer = (seconds: number | undefined): void => {
      element.removeAttribute('src');
      URL.revokeObjectURL(url);
      resolve(seconds);
    };
    const url = URL.createObjectURL(file);
    element.preload = 'metadata';
    element.onloadedmetadata = () => answer(Number.isFinite(element.duration) ? element.duration : undefined);
    element.onerror = () => answer(undefined);
    element.src = url;
  });
}

async function mixDown(buffer: AudioBuffer, { signal, onProgress }: DecodeOptions): Promise<DecodedSound> {
  const { length, numberOfChannels: channels } = buffer;
  const samples = new Float32Array(length);
  const peaks = new PeakMeter(length);
  const sources = Array.from({ length: channels }, (_, channel) => buffer.getChannelData(channel));
  for (let first = 0; first < length; first += MIX_FRAMES) {
    const end = Math.min(length, first + MIX_FRAMES);
    for (const source of sources) for (let i = first; i < end; i++) samples[i]! += source[i]! / channels;
    peaks.push(samples.subarray(first, end));
    onProgress(end / length);
    await nextTask();
    signal.throwIfAborted();
  }
  return { samples, levels: peaks.levels() };
}
