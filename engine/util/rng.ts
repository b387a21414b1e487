/** A small seeded generator for host-side use (tests, seeds); kernels have their own counter-based one. */
export interface Rng {
  /** Uniform in [0, 1). */
  uniform(): number;
  /** Standard normal (Box-Muller). */
  normal(): number;
  /** Integer in [0, bound). */
  integer(bound: number): number;
}

/** mulberry32: 32 bits of state, passes the usual small-state tests. */
export function createRng(seed: number): Rng {
  let state = seed >>> 0;
  const uniform = (): number => {
    state = (state + STEP) >>> 0;
    return mixed(state) / 4294967296;
  };
  return {
    uniform,
    normal: () => Math.sqrt(-2 * Math.log(Math.max(uniform(), 1e-12))) * Math.cos(2 * Math.PI * uniform()),
    integer: (bound) => Math.floor(uniform() * bound),
  };
}

const STEP = 0x6d2b79f5;

function mixed(state: number): number {
  let t = Math.imul(state ^ (state >>> 15), state | 1);
  t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
  return (t ^ (t >>> 14)) >>> 0;
}

/** The 32 bits of draw `index` of that generator, computed directly; the same as in lib/random_bits.wgsl. */
export function randomBits(seed: number, index: number): number {
  return mixed((seed + Math.imul(index + 1, STEP)) >>> 0);
}
