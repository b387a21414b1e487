/** Records the microphone as 16 kHz mono, with levels for the trace. */
import { signal } from '@preact/signals';
import { resample } from '../../../engine/audio/resample.ts';
import { concatenated } from '../../../engine/util/math.ts';
import type { SettingsData } from '../settings.ts';
import { messageOf } from '../util.ts';
import { ENOUGH_RECORDED, MAX_SECONDS } from './limits.ts';
import workletUrl from './capture-worklet.ts?worker&url';

/** Sample rate of recordings, in Hz: the one that transcription takes. */
export const CAPTURE_RATE = 16000;
const KEPT_LEVELS = 400;

const MICROPHONE_GONE = 'The microphone has gone: it was unplugged, or this page may not use it any more.';

/** Open resources of one recording. */
interface Recording {
  readonly stream: MediaStream;
  readonly context: AudioContext;
  /** The samples so far, in blocks. */
  readonly blocks: Float32Array[];
}

/** Records the microphone between `start` and `stop`. Tracks are ended, so that the browser's recording indicator goes out. */
export class Microphone {
  /** Loudness 0..1 of the most recent blocks. */
  readonly levels = signal<readonly number[]>([]);
  readonly seconds = signal(0);
  #recording: Recording | undefined;
  /** Aborted by a `stop` or another `start` while the microphone is opening: the browser may be waiting for the person's permission. */
  #opening = new AbortController();

  /**
   * Opens the microphone. Throws an Error whose message tells the person what is wrong, or an AbortError when `stop` or another `start`
   * comes before it is open; nothing is left open then. Calls `enough`, with words for the person, when the browser ends the recording, which
   * would be silence from then on, and when it is as long as recordings may be.
   */
  async start(constraints: SettingsData['microphone'], enough: (why: string) => void): Promise<void> {
    const devices = navigator.mediaDevices as MediaDevices | undefined;
    if (!devices) throw new Error('Browsers give the microphone only to pages on https or localhost; this address is neither.');
    void this.stop();
    const { signal } = this.#opening;
    this.levels.value = [];
    this.seconds.value = 0;
    // The browser resamples to this rate; one that cannot uses its own, and stop() converts. Created before the microphone opens, so that
    // the first syllable is not lost.
    const context = openContext();
    let stream: MediaStream | undefined;
    try {
      await context.audioWorklet.addModule(workletUrl);
      signal.throwIfAborted();
      stream = await devices.getUserMedia({ audio: { channelCount: 1, ...constraints } });
      signal.throwIfAborted();
    } catch (error) {
      await close(context, stream);
      signal.throwIfAborted();
      throw new Error(await explain(error), { cause: error });
    }
    const blocks: Float32Array[] = [];
    this.#recording = { stream, context, blocks };
    // A track fires no 'ended' event when the page itself stops it.
    const end = (why: string): void => void (this.#recording?.blocks === blocks && enough(why));
    for (const track of stream.getTracks()) track.addEventListener('ended', () => end(MICROPHONE_GONE));
    const source = context.createMediaStreamSource(stream);
    const capture = new AudioWorkletNode(context, 'capture', { numberOfOutputs: 0 });
    capture.port.onmessage = ({ data }: MessageEvent<Float32Array>) => {
      blocks.push(data);
      this.#show(data, context.sampleRate);
      if (this.seconds.peek() >= MAX_SECONDS) end(ENOUGH_RECORDED);
    };
    source.connect(capture);
  }

  /** Closes the microphone; returns the recording at 16 kHz. */
  async stop(): Promise<Float32Array> {
    this.#opening.abort();
    this.#opening = new AbortController();
    const recording = this.#recording;
    this.#recording = undefined;
    if (!recording) return new Float32Array(0);
    const { context, stream, blocks } = recording;
    await close(context, stream);
    return resample(concatenated(blocks), context.sampleRate, CAPTURE_RATE);
  }

  #show(block: Float32Array, rate: number): void {
    this.seconds.value += block.length / rate;
    this.levels.value = [...this.levels.peek(), Math.min(1, 4 * rms(block))].slice(-KEPT_LEVELS);
  }
}

async function close(context: AudioContext, stream: MediaStream | undefined): Promise<void> {
  for (const track of stream?.getTracks() ?? []) track.stop();
  await context.close();
}

function openContext(): AudioContext {
  try {
    return new AudioContext({ sampleRate: CAPTURE_RATE });
  } catch {
    return new AudioContext();
  }
}

async function explain(error: unknown): Promise<string> {
  const name = error instanceof Error ? error.name : '';
  if (name === 'NotAllowedError') {
    // Some browsers have no such permission to ask for.
    const permission = await navigator.permissions?.query({ name: 'microphone' }).catch(() => undefined);
    return permission?.state === 'prompt'
      ? 'The microphone was not allowed. Try again, and allow it when the browser asks.'
      : 'The microphone is blocked for this page. Allow it with the icon beside the address, then try again.';
  }
  if (name === 'NotFoundError') return 'No microphone was found. Connect one, then try again.';
  if (name === 'NotReadableError') return 'Another program is using the microphone. Close it there, then try again.';
  // Some of the browsers' errors have a name only.
  return `The microphone cannot be opened: ${messageOf(error) || name}`;
}

/** Root mean square of a block. */
export function rms(samples: Float32Array): number {
  let sum = 0;
  for (const sample of samples) sum += sample * sample;
  return samples.length === 0 ? 0 : Math.sqrt(sum / samples.length);
}
