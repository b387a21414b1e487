/** Mixes the channels of a recording to one. */
import { withoutDamage } from './sample-source.ts';

/**
 * What is left of the channels' power in their mean where they cancel each other, as a share of what unrelated channels leave: equal ones leave as much for each channel, and
 * opposite ones nothing.
 */
const CANCELLED = 0.1;
/** A channel with this share of the loudest one's power is as good as that one. */
const AS_LOUD = 0.5;
/** Frames after which what was heard counts half: one to four seconds at usual rates, so that pauses do not decide. */
const HALF_LIFE = 1 << 16;
/** Most frames that are mixed in one way, so that a caller with a whole recording hears a change within it as others do. */
const BLOCK = HALF_LIFE;

/**
 * Mixes blocks of a recording, in order. The result is the channels' mean, unless they cancel each other, as those of a microphone whose second wire was taken for a second
 * channel do: then it is the first loud channel, since of the mean nothing would be left but noise. Damaged samples become 0.
 */
export class Downmix {
  /** Power of each channel and of their mean, summed over what was heard lately. */
  #channels: Float64Array = new Float64Array(0);
  #mean = 0;

  /** Mixes interleaved samples of all channels, [frames, channels], to [frames]. */
  push(samples: Float32Array, channels: number): Float32Array {
    const sound = withoutDamage(samples);
    if (channels === 1) return sound;
    if (channels !== this.#channels.length) {
      this.#channels = new Float64Array(channels);
      this.#mean = 0;
    }
    const mono = new Float32Array(Math.floor(samples.length / channels));
    for (let first = 0; first < mono.length; first += BLOCK)
      this.#mix(sound.subarray(first * channels), mono.subarray(first, first + BLOCK));
    return mono;
  }

  /** Mixes the channels that the planes hold, from frame `from` to before `to`. */
  pushPlanes(planes: readonly Float32Array[], from: number, to: number): Float32Array {
    const channels = planes.length;
    const samples = new Float32Array((to - from) * channels);
    for (const [channel, plane] of planes.entries()) {
      for (let frame = from, at = channel; frame < to; frame++, at += channels) samples[at] = plane[frame]!;
    }
    return this.push(samples, channels);
  }

  /** Fills a block of `mono` from the interleaved samples at its beginning. */
  #mix(sound: Float32Array, mono: Float32Array): void {
    const powers = this.#channels;
    const channels = powers.length;
    this.#forget(mono.length);
    for (let frame = 0, at = 0; frame < mono.length; frame++) {
      let sum = 0;
      for (let channel = 0; channel < channels; channel++, at++) {
        const sample = sound[at]!;
        sum += sample;
        powers[channel]! += sample * sample;
      }
      const mean = sum / channels;
      mono[frame] = mean;
      this.#mean += mean * mean;
    }
    const total = powers.reduce((sum, power) => sum + power, 0);
    if (this.#mean * channels ** 2 >= CANCELLED * total) return;
    const loudest = Math.max(...powers);
    const heard = powers.findIndex((power) => power >= AS_LOUD * loudest);
    for (let frame = 0; frame < mono.length; frame++) mono[frame] = sound[frame * channels + heard]!;
  }

  #forget(frames: number): void {
    const share = 2 ** (-frames / HALF_LIFE);
    this.#mean *= share;
    for (let channel = 0; channel < this.#channels.length; channel++) this.#channels[channel]! *= share;
  }
}
