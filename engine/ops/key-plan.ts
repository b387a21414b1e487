/** Plans how int8 pages store a layer's keys, from examples of them: see KVLayer.plan. */
import { APART_CHANNELS } from './kv.ts';

/** Largest magnitude of a signed count of five bits. */
const MOST_UNITS = 15;
/** The centre is taken over this many first positions, where most sequences lie, and slow channels have hardly turned. */
const POSITIONS = 4096;
/** Angles at which a rotary pair is examined. */
const ANGLES = 64;

export interface KeyExamples {
  /** [T, (H + 2 K) D]: the merged projection, before rotation. */
  readonly qkv: Float32Array;
  readonly rows: number;
  readonly heads: number;
  readonly kvHeads: number;
  readonly headDim: number;
  /** Rotary frequencies, [D/2]. */
  readonly frequencies: ArrayLike<number>;
}

/** A rotary pair of channels. */
interface Pair {
  readonly pair: number;
  readonly examples: readonly (readonly [number, number])[];
  readonly centre: readonly [number, number];
  /** Mean square of the pair's values without the centre. */
  readonly power: number;
}

/**
 * Computes KVLayer.plan, [K, 4 + D]. A head's centre is the mean of its keys over all examples and positions, which is not 0 where a bias
 * meets channels that turn slowly. Of what is left, the two pairs with the most power are kept apart, in units that reach the largest
 * example at any angle.
 */
export function planKeys(given: KeyExamples): Float32Array {
  const { kvHeads, headDim, frequencies } = given;
  const half = headDim / 2;
  const columns = APART_CHANNELS + headDim;
  const plan = new Float32Array(kvHeads * columns);
  for (let head = 0; head < kvHeads; head++) {
    const pairs = Array.from({ length: half }, (_, pair) => lookAt(given, head, pair));
    for (const { pair, centre } of pairs) {
      plan[head * columns + APART_CHANNELS + pair] = centre[0];
      plan[head * columns + APART_CHANNELS + half + pair] = centre[1];
    }
    const largest = pairs.toSorted((a, b) => b.power - a.power).slice(0, APART_CHANNELS / 2);
    plan.set(
      largest.flatMap((one) => [one.pair, reach(one, frequencies[one.pair]!) / MOST_UNITS]),
      head * columns,
    );
  }
  return plan;
}

function lookAt({ qkv, rows, heads, kvHeads, headDim, frequencies }: KeyExamples, head: number, pair: number): Pair {
  const examples = Array.from({ length: rows }, (_, row) => {
    const at = (row * (heads + 2 * kvHeads) + heads + head) * headDim + pair;
    return [qkv[at]!, qkv[at + headDim / 2]!] as const;
  });
  const mean = (value: (example: readonly [number, number]) => number): number => examples.reduce((sum, one) => sum + value(one), 0) / rows; // prettier-ignore
  const [x, y] = [mean(([first]) => first), mean(([, second]) => second)];
  // The mean of exp(i angle) over the positions is a geometric series.
  const middle = (frequencies[pair]! * (POSITIONS - 1)) / 2;
  // Channels that are not rotated stay where they are.
  const frequency = frequencies[pair]!;
  const length = frequency === 0 ? 1 : Math.sin((frequency * POSITIONS) / 2) / (POSITIONS * Math.sin(frequency / 2));
  const [cos, sin] = [length * Math.cos(middle), length * Math.sin(middle)];
  const centre = [x * cos - y * sin, y * cos + x * sin] as const;
  return { pair, examples, centre, power: mean(([first, second]) => first ** 2 + second ** 2) - centre[0] ** 2 - centre[1] ** 2 };
}

/** The largest magnitude of a rotated example, without the centre. */
function reach({ examples, centre }: Pair, frequency: number): number {
  const turn = Math.min(frequency * POSITIONS, 2 * Math.PI);
  let most = 0;
  for (let i = 0; i < ANGLES; i++) {
    const [cos, sin] = [Math.cos((turn * i) / ANGLES), Math.sin((turn * i) / ANGLES)];
    for (const [x, y] of examples) most = Math.max(most, Math.hypot(x * cos - y * sin - centre[0], y * cos + x * sin - centre[1]));
  }
  return most;
}
