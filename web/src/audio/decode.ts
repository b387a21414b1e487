/**
 * Decodes any sound file to 16 kHz mono: WAV of any width and rate by the engine's own reader in a worker, other formats by the browser's
 * decoders.
 */
import { Downmix } from '../../../engine/audio/downmix.ts';
import { formatBytes, nextTask } from '../util.ts';
import { startWorker } from '../trusted-types.ts';
import type { DecodeAnswer, DecodeMessage } from '../worker/decode-protocol.ts';
import { MAX_SECONDS, MAX_UNKNOWN_BYTES, checkLength } from './limits.ts';
import { CAPTURE_RATE } from './microphone.ts';
import { PeakMeter } from './peaks.ts';
import { isWavBlob } from './wav-blob.ts';
import workerUrl from '../worker/decode-worker.ts?worker&url';

/** A decoded sound, with levels for its waveform. */
export interface DecodedSound {
  /** Mono at 16 kHz. */
  readonly samples: Float32Array;
  /** Levels for the trace, 0..1. */
  readonly levels: Float32Array;
}

export interface DecodeOptions {
  readonly signal: AbortSignal;
  /** Called with the share that is decoded, 0..1. */
  readonly onProgress: (done: number) => void;
}

/** Frames mixed to mono per task of the main thread: a few milliseconds of work. */
const MIX_FRAMES = 1 << 18;

/**
 * Decodes a file to mono at 16 kHz. Throws an Error with a message for people when it is not sound or too long, DOMException('AbortError')
 * when `signal` aborts.
 */
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

/**
 * Decodes with the browser's decoders. They take the whole file and cannot be stopped; results that come after `signal` aborts are dropped.
 */
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

/** Duration in seconds by the file's own headers; undefined where they do not say. */
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
  const peaks = new PeakMeter();
  const planes = Array.from({ length: channels }, (_, channel) => buffer.getChannelData(channel));
  const mix = new Downmix();
  for (let first = 0; first < length; first += MIX_FRAMES) {
    const end = Math.min(length, first + MIX_FRAMES);
    const mono = mix.pushPlanes(planes, first, end);
    samples.set(mono, first);
    peaks.push(mono);
    onProgress(end / length);
    await nextTask();
    signal.throwIfAborted();
  }
  return { samples, levels: peaks.levels() };
}
