/** Mixes the channels of a recording to one. */
import { withoutDamage } from '../../engine/audio/sample-source.ts';

/**
 * What is left of the channels' power in their mean where they cancel each other, as a share of what unrelated channels leave: equal ones leave as much for each channel, and
 * opposite ones nothing.
 */
const CANCELLED = 0.1;
/** A channel with this share of the loudest one's power is as good as that one. */
const AS_LOUD = 0.5;
/** Frames after which what was heard counts half: a second or two, so that pauses do not decide. */
const HALF_LIFE = 1 << 16;

/**
 * Mixes blocks of a recording, in order. The result is the channels' mean, unless they cancel each other, as those of a microphone whose second wire was taken for a second
 * channel do: then it is the first loud channel, since of the mean nothing would be left but noise.
 */
export class Downmix {
  /** Power of each channel and of their mean, summed over what was heard lately. */
  #channels: Float64Array = new Float64Array(0);
  #mean = 0;

  /** Mixes interleaved samples of all channels. */
  push(samples: Float32Array, channels: number): Float32Array {
    if (channels === 1) return samples;
    if (channels !== this.#channels.length) {
      this.#channels = new Float64Array(channels);
      this.#mean = 0;
    }
    const sound = withoutDamage(samples);
    const frames = Math.floor(samples.length / channels);
    this.#forget(frames);
    const mean = new Float32Array(frames);
    for (let frame = 0, at = 0; frame < frames; frame++) {
      let sum = 0;
      for (let channel = 0; channel < channels; channel++, at++) {
        const sample = sound[at]!;
        sum += sample;
        this.#channels[channel]! += sample * sample;
      }
      mean[frame] = sum / channels;
      this.#mean += mean[frame]! ** 2;
    }
    const total = this.#channels.reduce((sum, power) => sum + power, 0);
    if (this.#mean * channels ** 2 >= CANCELLED * total) return mean;
    const loudest = Math.max(...this.#channels);
    const heard = this.#channels.findIndex((power) => power >= AS_LOUD * loudest);
    return mean.map((_, frame) => sound[frame * channels + heard]!);
  }

  #forget(frames: number): void {
    const share = 2 ** (-frames / HALF_LIFE);
    this.#mean *= share;
    for (let channel = 0; channel < this.#channels.length; channel++) this.#channels[channel]! *= share;
  }
}
