/**
 * Band-limited sample-rate conversion: a polyphase windowed sinc (Kaiser window). The pass band ends at 90 % of the lower
 * Nyquist frequency and the stop band begins at that frequency, so nothing folds back into the result.
 * Source: J. O. Smith, "Digital Audio Resampling"; Kaiser's formulas for window shape and length.
 */
import { assert } from '../errors.ts';
import { concatenated } from '../util/math.ts';

/** Attenuation of the stop band in dB; leaves room above the 80 dB promised for rounding of the f32 taps. */
const STOP_BAND = 90;
/** Pass-band edge as a share of the lower Nyquist frequency. */
const PASS_BAND = 0.9;
/** Most phases of an exact filter. For ratios with more, the two nearest phases are interpolated, with an error below -115 dB at 1024. */
const MAX_PHASES = 1024;

/**
 * Resamples [n] samples at `from` Hz to [round(n * to / from)] at `to` Hz, without delay; what is outside the input counts as silence. Returns the input itself if
 * the rates are equal.
 */
export function resample(input: Float32Array, from: number, to: number): Float32Array {
  assert(Number.isInteger(from) && Number.isInteger(to) && from > 0 && to > 0, `rates are positive integers, got ${from} and ${to}`);
  if (from === to) return input;
  const divisor = gcd(from, to);
  const output = new Float32Array(Math.round((input.length * to) / from));
  return convolve(input, output, designFilter(from / divisor, to / divisor), { centre: 0, remainder: 0 });
}

/** Streaming form of `resample`: the results of `push` and `flush`, joined, are those of `resample` for the joined blocks. */
export class Resampler {
  readonly #from: number;
  readonly #to: number;
  readonly #filter: Filter;
  /** Input that later outputs need, and the index of its first sample in the whole input. */
  #kept: Float32Array = new Float32Array(0);
  #start = 0;
  #made = 0;

  constructor(from: number, to: number) {
    assert(Number.isInteger(from) && Number.isInteger(to) && from > 0 && to > 0, `rates are positive integers, got ${from} and ${to}`);
    const divisor = gcd(from, to);
    this.#from = from;
    this.#to = to;
    this.#filter = designFilter(from / divisor, to / divisor);
  }

  /** Returns every output sample that the input so far determines. */
  push(block: Float32Array): Float32Array {
    if (this.#from === this.#to) return block;
    this.#kept = concatenated([this.#kept, block]);
    const { up, down, taps } = this.#filter;
    const known = this.#start + this.#kept.length - (taps - 1) / 2;
    return this.#make(Math.max(this.#made, Math.ceil((known * up) / down)));
  }

  /** Returns the remaining output samples; what follows the input counts as silence. */
  flush(): Float32Array {
    if (this.#from === this.#to) return new Float32Array(0);
    return this.#make(Math.round(((this.#start + this.#kept.length) * this.#to) / this.#from));
  }

  /** Computes outputs up to `end` (exclusive), then drops the input that only they needed. */
  #make(end: number): Float32Array {
    const { up, down, taps } = this.#filter;
    const whole = this.#made * down;
    const position = { centre: Math.floor(whole / up) - this.#start, remainder: whole % up };
    const output = convolve(this.#kept, new Float32Array(end - this.#made), this.#filter, position);
    this.#made = end;
    const needed = Math.floor((end * down) / up) - (taps - 1) / 2;
    const done = Math.min(this.#kept.length, Math.max(0, needed - this.#start));
    this.#kept = this.#kept.slice(done);
    this.#start += done;
    return output;
  }
}

interface Filter {
  /** Input samples advanced by one output sample, as a fraction: down / up. */
  readonly up: number;
  readonly down: number;
  readonly phases: number;
  /** Whether every output falls on a phase exactly. */
  readonly exact: boolean;
  /** Taps per phase: an odd number, centred. */
  readonly taps: number;
  /** [phases + 1, taps]; the last row is phase 0 of the next input sample, for interpolation. */
  readonly table: Float32Array;
}

function designFilter(down: number, up: number): Filter {
  const exact = up <= MAX_PHASES;
  const phases = exact ? up : MAX_PHASES;
  // In units of the input rate: the lower Nyquist frequency, and the middle of the transition band.
  const nyquist = 0.5 * Math.min(1, up / down);
  const cutoff = (nyquist * (1 + PASS_BAND)) / 2;
  const width = 2 * Math.PI * nyquist * (1 - PASS_BAND);
  const half = Math.ceil((STOP_BAND - 7.95) / (2.285 * width) / 2);
  const taps = 2 * half + 1;
  const beta = 0.1102 * (STOP_BAND - 8.7);
  const table = new Float32Array((phases + 1) * taps);
  for (let phase = 0; phase <= phases; phase++)
    fillPhase(table.subarray(phase * taps, (phase + 1) * taps), phase / phases, half, cutoff, beta);
  return { up, down, phases, exact, taps, table };
}

/** Taps for an output that lies `fraction` of an input sample after the centre tap; scaled to unit gain at 0 Hz. */
function fillPhase(row: Float32Array, fraction: number, half: number, cutoff: number, beta: number): void {
  let sum = 0;
  const exact = Array.from(row, (_, tap) => {
    const t = tap - half - fraction;
    const position = t / (half + 1);
    const window = Math.abs(position) >= 1 ? 0 : besselI0(beta * Math.sqrt(1 - position * position)) / besselI0(beta);
    const value = sinc(2 * cutoff * t) * window;
    sum += value;
    return value;
  });
  for (let tap = 0; tap < row.length; tap++) row[tap] = exact[tap]! / sum;
}

/** Position of an output in the input: after sample `centre`, by `remainder` parts of the filter's `up`. */
interface Position {
  readonly centre: number;
  readonly remainder: number;
}

/** Fills `output`, whose first sample is at position `from`. */
function convolve(input: Float32Array, output: Float32Array, filter: Filter, from: Position): Float32Array {
  return filter.exact ? convolveExact(input, output, filter, from) : convolveInterpolated(input, output, filter, from);
}

function convolveExact(input: Float32Array, output: Float32Array, { up, down, taps, table }: Filter, from: Position): Float32Array {
  const half = (taps - 1) / 2;
  let { centre, remainder: phase } = from;
  for (let i = 0; i < output.length; i++) {
    output[i] = dot(input, centre - half, table, phase * taps, taps);
    phase += down;
    centre += Math.floor(phase / up);
    phase %= up;
  }
  return output;
}

function convolveInterpolated(input: Float32Array, output: Float32Array, filter: Filter, from: Position): Float32Array {
  const { up, down, phases, taps, table } = filter;
  const half = (taps - 1) / 2;
  let { centre, remainder } = from;
  for (let i = 0; i < output.length; i++) {
    const position = (remainder / up) * phases;
    const phase = Math.floor(position);
    const weight = position - phase;
    const left = dot(input, centre - half, table, phase * taps, taps);
    const right = dot(input, centre - half, table, (phase + 1) * taps, taps);
    output[i] = left + (right - left) * weight;
    remainder += down;
    centre += Math.floor(remainder / up);
    remainder %= up;
  }
  return output;
}

/** Sum of input[from + k] * table[at + k]; beyond its ends the input is 0. */
function dot(input: Float32Array, from: number, table: Float32Array, at: number, taps: number): number {
  const first = Math.max(0, -from);
  const last = Math.min(taps, input.length - from);
  let sum = 0;
  for (let tap = first; tap < last; tap++) sum += input[from + tap]! * table[at + tap]!;
  return sum;
}

const sinc = (x: number): number => (x === 0 ? 1 : Math.sin(Math.PI * x) / (Math.PI * x));

/** Modified Bessel function of the first kind, order 0, by its power series. */
function besselI0(x: number): number {
  let term = 1;
  let sum = 1;
  for (let k = 1; term > sum * 1e-12; k++) {
    term *= (x / (2 * k)) ** 2;
    sum += term;
  }
  return sum;
}

function gcd(a: number, b: number): number {
  return b === 0 ? a : gcd(b, a % b);
}
