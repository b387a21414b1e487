/**
 * Audio worklet that posts the microphone's samples in blocks of 20 ms. The last block is lost if it is not full when the microphone
 * closes.
 */
interface Processor {
  readonly port: MessagePort;
}
declare const AudioWorkletProcessor: { new (): Processor };
declare const registerProcessor: (name: string, processor: new () => Processor) => void;
declare const sampleRate: number;

const BLOCK_SAMPLES = Math.round(sampleRate / 50);

class Capture extends AudioWorkletProcessor {
  #block = new Float32Array(BLOCK_SAMPLES);
  #filled = 0;

  process([input]: readonly (readonly Float32Array[])[]): boolean {
    let samples = input?.[0] ?? new Float32Array(0);
    while (samples.length > 0) {
      const part = samples.subarray(0, this.#block.length - this.#filled);
      this.#block.set(part, this.#filled);
      this.#filled += part.length;
      samples = samples.subarray(part.length);
      if (this.#filled < this.#block.length) continue;
      this.port.postMessage(this.#block, [this.#block.buffer]);
      this.#block = new Float32Array(BLOCK_SAMPLES);
      this.#filled = 0;
    }
    return true;
  }
}

registerProcessor('capture', Capture);
