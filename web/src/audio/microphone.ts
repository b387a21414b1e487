/** Records the microphone as 16 kHz mono, with levels for the trace. */
import { signal } from '@preact/signals';
import { resample } from '../../../engine/audio/resample.ts';
import type { SettingsData } from '../settings.ts';
import workletUrl from './capture-worklet.ts?worker&url';

export const CAPTURE_RATE = 16000;
const KEPT_LEVELS = 400;

/** Opens at `start`, is closed by `stop`; tracks are ended so that the browser's recording mark goes out. */
export class Microphone {
  /** Loudness 0..1 of the latest blocks of 20 ms. */
  readonly levels = signal<readonly number[]>([]);
  readonly seconds = signal(0);
  #stream: MediaStream | undefined;
  #context: AudioContext | undefined;
  #blocks: Float32Array[] = [];

  /** Throws an Error whose message tells the person what is wrong. */
  async start(constraints: SettingsData['microphone']): Promise<void> {
    const devices = navigator.mediaDevices as MediaDevices | undefined;
    if (!devices) throw new Error('Browsers give the microphone only to pages on https or localhost; this address is neither.');
    this.#blocks = [];
    this.levels.value = [];
    this.seconds.value = 0;
    // The browser resamples to this rate; one that cannot gives its own, and stop() converts. Made before the microphone opens, so
    // that the first syllable has somewhere to go.
    this.#context = await openContext();
    await this.#context.audioWorklet.addModule(workletUrl);
    try {
      this.#stream = await devices.getUserMedia({ audio: { channelCount: 1, ...constraints } });
    } catch (error) {
      await this.stop();
      throw new Error(explain(error), { cause: error });
    }
    const source = this.#context.createMediaStreamSource(this.#stream);
    const capture = new AudioWorkletNode(this.#context, 'capture', { numberOfOutputs: 0 });
    capture.port.onmessage = ({ data }: MessageEvent<Float32Array>) => this.#take(data);
    source.connect(capture);
  }

  /** Closes the microphone; returns what it heard at 16 kHz. */
  async stop(): Promise<Float32Array> {
    const rate = this.#context?.sampleRate ?? CAPTURE_RATE;
    for (const track of this.#stream?.getTracks() ?? []) track.stop();
    await this.#context?.close();
    this.#context = undefined;
    this.#stream = undefined;
    const samples = new Float32Array(this.#blocks.reduce((sum, block) => sum + block.length, 0));
    let at = 0;
    for (const block of this.#blocks) {
      samples.set(block, at);
      at += block.length;
    }
    this.#blocks = [];
    return resample(samples, rate, CAPTURE_RATE);
  }

  #take(block: Float32Array): void {
    this.#blocks.push(block);
    this.seconds.value += block.length / (this.#context?.sampleRate ?? CAPTURE_RATE);
    const levels: number[] = [];
    const size = 320;
    for (let at = 0; at + size <= block.length; at += size) levels.push(Math.min(1, 4 * rms(block.subarray(at, at + size))));
    this.levels.value = [...this.levels.peek(), ...levels].slice(-KEPT_LEVELS);
  }
}

async function openContext(): Promise<AudioContext> {
  try {
    return new AudioContext({ sampleRate: CAPTURE_RATE });
  } catch {
    return new AudioContext();
  }
}

function explain(error: unknown): string {
  const name = error instanceof DOMException ? error.name : '';
  if (name === 'NotAllowedError')
    return 'The microphone is blocked for this page. Allow it with the icon beside the address, then try again.';
  if (name === 'NotFoundError') return 'No microphone was found. Connect one, then try again.';
  if (name === 'NotReadableError') return 'Another program is using the microphone. Close it there, then try again.';
  return `The microphone cannot be opened: ${error instanceof Error ? error.message : String(error)}`;
}

/** Root mean square of a block. */
export function rms(samples: Float32Array): number {
  let sum = 0;
  for (const sample of samples) sum += sample * sample;
  return samples.length === 0 ? 0 : Math.sqrt(sum / samples.length);
}
