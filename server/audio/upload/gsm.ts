/**
 * Decodes GSM 06.10 full rate, in which telephone systems record calls, to samples at 8 kHz: 13 kbit/s in frames of 20 ms. In WAV files two frames share 65 bytes,
 * lowest bit first. Every sum is a saturating one of 16-bit words, as ETSI EN 300 961 requires, so that all decoders give the same result to the bit.
 */

/** Hz. */
export const GSM_RATE = 8000;
/** Bytes and samples of a block of two frames. */
export const GSM_BLOCK_BYTES = 65;
const GSM_BLOCK_SAMPLES = 320;

const FRAME_SAMPLES = 160;
const SUBFRAME = 40;
const PULSES = 13;
/** Largest lag of the pitch, in samples. */
const MAX_LAG = 120;
/** Bits of the eight log area ratios. */
const RATIO_BITS = [6, 6, 5, 5, 4, 4, 3, 3] as const;
/** Tables 5.1 (B, MIC), 5.2 (INVA), 5.3b (QLB) and 5.6 (FAC) of the standard. */
const RATIO_OFFSETS = [0, 0, 2048, -2560, 94, -1792, -341, -1144] as const;
const RATIO_MINIMA = [-32, -32, -16, -16, -8, -8, -4, -4] as const;
const RATIO_INVERSES = [13107, 13107, 13107, 13107, 19223, 17476, 31454, 29708] as const;
const GAINS = [3277, 11469, 21299, 32767] as const;
const STEPS = [18431, 20479, 22527, 24575, 26623, 28671, 30719, 32767] as const;
const DE_EMPHASIS = 28180;

const word = (value: number): number => Math.max(-0x8000, Math.min(0x7fff, value));
const add = (a: number, b: number): number => word(a + b);
const multiply = (a: number, b: number): number => word((a * b + 0x4000) >> 15);

/** A decoder of one stream. */
export class GsmDecoder {
  /** Excitation: the last MAX_LAG samples, followed by the current subframe's. */
  readonly #excitation = new Int16Array(MAX_LAG + SUBFRAME);
  #lag = SUBFRAME;
  #ratios: number[] = Array<number>(8).fill(0);
  /** State of the lattice filter. */
  readonly #state = new Int16Array(9);
  #last = 0;

  /** Decodes a block to [GSM_BLOCK_SAMPLES] 16-bit samples. */
  decode(block: Uint8Array): Int16Array {
    const bits = new Bits(block);
    const samples = new Int16Array(GSM_BLOCK_SAMPLES);
    for (let at = 0; at < GSM_BLOCK_SAMPLES; at += FRAME_SAMPLES) this.#frame(bits, samples.subarray(at, at + FRAME_SAMPLES));
    return samples;
  }

  #frame(bits: Bits, out: Int16Array): void {
    const coded = RATIO_BITS.map((count) => bits.take(count));
    const residual = new Int16Array(FRAME_SAMPLES);
    for (let at = 0; at < FRAME_SAMPLES; at += SUBFRAME) {
      this.#subframe(bits);
      residual.set(this.#excitation.subarray(MAX_LAG), at);
      this.#excitation.copyWithin(0, SUBFRAME);
    }
    const before = this.#ratios;
    const now = coded.map((code, i) => {
      const scaled = add(add(code, RATIO_MINIMA[i]!) << 10, -2 * RATIO_OFFSETS[i]!);
      const ratio = multiply(RATIO_INVERSES[i]!, scaled);
      return add(ratio, ratio);
    });
    this.#ratios = now;
    // The filter is interpolated from the previous frame's to this one's.
    const mixes = [
      [0, 13, (a: number, b: number) => add(add(a >> 2, b >> 2), a >> 1)],
      [13, 27, (a: number, b: number) => add(a >> 1, b >> 1)],
      [27, 40, (a: number, b: number) => add(add(a >> 2, b >> 2), b >> 1)],
      [40, FRAME_SAMPLES, (_: number, b: number) => b],
    ] as const;
    for (const [from, to, mix] of mixes) {
      const reflections = now.map((ratio, i) => reflectionOf(mix(before[i]!, ratio)));
      for (let i = from; i < to; i++) out[i] = this.#emphasised(this.#filtered(residual[i]!, reflections));
    }
  }

  /** Writes a subframe's excitation after the previous ones: the excitation one lag ago, scaled, plus the pulses. */
  #subframe(bits: Bits): void {
    const lag = bits.take(7);
    const gain = GAINS[bits.take(2)]!;
    const phase = bits.take(2);
    const pulses = pulsesOf(bits);
    if (lag >= SUBFRAME && lag <= MAX_LAG) this.#lag = lag;
    const all = this.#excitation;
    for (let i = 0; i < SUBFRAME; i++) {
      const place = i - phase;
      const pulse = place >= 0 && place % 3 === 0 ? (pulses[place / 3] ?? 0) : 0;
      all[MAX_LAG + i] = add(pulse, multiply(gain, all[MAX_LAG + i - this.#lag]!));
    }
  }

  #filtered(sample: number, reflections: readonly number[]): number {
    const state = this.#state;
    let value = sample;
    for (let i = 7; i >= 0; i--) {
      value = add(value, -multiply(reflections[i]!, state[i]!));
      state[i + 1] = add(state[i]!, multiply(reflections[i]!, value));
    }
    state[0] = value;
    return value;
  }

  #emphasised(sample: number): number {
    this.#last = add(sample, multiply(this.#last, DE_EMPHASIS));
    return add(this.#last, this.#last) & ~7;
  }
}

function reflectionOf(ratio: number): number {
  const size = ratio === -0x8000 ? 0x7fff : Math.abs(ratio);
  const value = size < 11059 ? size << 1 : size < 20070 ? size + 11059 : add(size >> 2, 26112);
  return ratio < 0 ? -value : value;
}

/** Decodes the pulses of a subframe: a block maximum of 6 bits, whose exponent and mantissa scale 3 bits each. */
function pulsesOf(bits: Bits): number[] {
  const maximum = bits.take(6);
  let exponent = maximum > 15 ? (maximum >> 3) - 1 : 0;
  let mantissa = maximum - (exponent << 3);
  if (mantissa === 0) [exponent, mantissa] = [-4, 15];
  else for (; mantissa <= 7; exponent--) mantissa = (mantissa << 1) | 1;
  const step = STEPS[mantissa - 8]!;
  const shift = 6 - exponent;
  const half = shift > 0 ? 1 << (shift - 1) : 0;
  return Array.from({ length: PULSES }, () => add(multiply(step, ((bits.take(3) << 1) - 7) << 12), half) >> shift);
}

/** Reads bits from bytes, lowest first. */
class Bits {
  #at = 0;
  readonly #bytes: Uint8Array;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  take(count: number): number {
    let value = 0;
    for (let i = 0; i < count; i++, this.#at++) value |= ((this.#bytes[this.#at >> 3]! >> (this.#at & 7)) & 1) << i;
    return value;
  }
}
