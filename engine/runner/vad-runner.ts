/** Runs Silero VAD over audio of any length, block by block; blocks of several requests take turns. */
import type { SampleSource } from '../audio/sample-source.ts';
import type { Device } from '../gpu/device.ts';
import { openSafetensors } from '../weights/safetensors.ts';
import {
  VAD_CHUNK,
  VAD_CONTEXT,
  VAD_HIDDEN,
  createVadWorkspace,
  loadSileroVad,
  sileroVad,
  sileroVadBytes,
  vadFrames,
} from '../models/silero-vad/silero-vad.ts';
import type { SileroVad, VadWorkspace } from '../models/silero-vad/silero-vad.ts';
import { indexBeyond } from '../util/math.ts';
import { warmUp } from './warm-up.ts';

/** Chunks per block (8.2 s of audio): enough rows to fill a GPU, and few enough that others' steps do not wait long for the LSTM. */
const BLOCK_CHUNKS = 256;

export class VadRunner {
  readonly #device: Device;
  readonly #model: SileroVad;
  readonly #workspace: VadWorkspace;
  /** The last block that was started; the next one waits for it. */
  #last: Promise<unknown> = Promise.resolve();

  constructor(device: Device, model: SileroVad) {
    this.#device = device;
    this.#model = model;
    this.#workspace = createVadWorkspace(device, BLOCK_CHUNKS);
  }

  /** Device bytes of its weights, and of everything else. */
  static demand(device: Device): { readonly weights: number; readonly activations: number } {
    return { weights: sileroVadBytes(), activations: device.measure(() => void createVadWorkspace(device, BLOCK_CHUNKS)) };
  }

  /** Loads the weights in a folder, and warms up. */
  static async load(device: Device, path: string): Promise<VadRunner> {
    const checkpoint = await openSafetensors(device.platform, path);
    try {
      const runner = new VadRunner(device, await loadSileroVad(device, checkpoint));
      await warmUp(device, { work: [(rec) => runner.#record(rec, 1)], tryOut: () => runner.#tryOut() });
      return runner;
    } finally {
      await checkpoint.close();
    }
  }

  /**
   * The probability of speech in each chunk of VAD_CHUNK samples of the audio, in order; zeros pad the last chunk. It starts from a zero
   * state, with silence before the audio.
   */
  async *probabilities(source: SampleSource): AsyncGenerator<Float32Array> {
    let state: Float32Array = new Float32Array(2 * VAD_HIDDEN);
    const step = BLOCK_CHUNKS * VAD_CHUNK;
    for (let from = 0; from < source.length; from += step) {
      const to = Math.min(from + step, source.length);
      const before = Math.min(VAD_CONTEXT, from);
      const samples = new Float32Array(VAD_CONTEXT + to - from);
      samples.set(await source.read(from - before, to), VAD_CONTEXT - before);
      const block = this.#last.then(() => this.#block(samples, Math.ceil((to - from) / VAD_CHUNK), state));
      // A block that fails concerns its own request only; the next one runs all the same.
      this.#last = block.catch(() => undefined);
      const { probabilities, left } = await block;
      state = left;
      yield probabilities;
    }
  }

  /** Runs one block from a state to the state after it. */
  async #block(
    samples: Float32Array,
    chunks: number,
    state: Float32Array,
  ): Promise<{ readonly probabilities: Float32Array; readonly left: Float32Array }> {
    const { frames, kept, probabilities } = this.#workspace;
    this.#device.write(frames, vadFrames(samples, chunks));
    this.#device.write(kept, state);
    const rec = this.#device.record('speech gate');
    this.#record(rec, chunks);
    const [found, left] = [rec.readback(probabilities, chunks * 4), rec.readback(kept, kept.byteLength)];
    rec.submit();
    return { probabilities: new Float32Array(await found.data()), left: new Float32Array(await left.data()) };
  }

  #record(rec: Parameters<typeof sileroVad>[0], chunks: number): void {
    sileroVad(rec, this.#model, this.#workspace, chunks);
  }

  async #tryOut(): Promise<string | undefined> {
    const noise = Float32Array.from({ length: VAD_CONTEXT + VAD_CHUNK }, (_, i) => Math.sin(i * i));
    const { probabilities } = await this.#block(noise, 1, new Float32Array(2 * VAD_HIDDEN));
    return indexBeyond(probabilities) < 0 ? undefined : 'the first probability of speech is not finite';
  }
}
