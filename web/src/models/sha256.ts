/** Incremental SHA-256 (FIPS 180-4): `crypto.subtle` needs all data at once, and a checkpoint's file may have gigabytes. */

const ROUNDS = 64;
const BLOCK_BYTES = 64;
/** Fractional parts of the square roots of the first 8 primes and of the cube roots of the first 64. */
const { initial: INITIAL, constants: CONSTANTS } = derive();

export class Sha256 {
  readonly #state = INITIAL.slice();
  readonly #schedule = new Int32Array(ROUNDS);
  readonly #rest = new Uint8Array(BLOCK_BYTES);
  #filled = 0;
  #bytes = 0;

  update(data: Uint8Array): void {
    this.#bytes += data.length;
    let at = 0;
    if (this.#filled > 0) {
      at = Math.min(BLOCK_BYTES - this.#filled, data.length);
      this.#rest.set(data.subarray(0, at), this.#filled);
      this.#filled += at;
      if (this.#filled < BLOCK_BYTES) return;
      this.#compress(this.#rest, 0);
      this.#filled = 0;
    }
    for (; at + BLOCK_BYTES <= data.length; at += BLOCK_BYTES) this.#compress(data, at);
    this.#rest.set(data.subarray(at));
    this.#filled = data.length - at;
  }

  /** Finishes the hash and returns it in hex. */
  hex(): string {
    const length = new DataView(new ArrayBuffer(8));
    length.setBigUint64(0, BigInt(this.#bytes) * 8n);
    const zeros = (2 * BLOCK_BYTES - 9 - this.#filled) % BLOCK_BYTES;
    this.update(Uint8Array.of(0x80, ...new Uint8Array(zeros)));
    this.update(new Uint8Array(length.buffer));
    return Array.from(this.#state, (word) => (word >>> 0).toString(16).padStart(8, '0')).join('');
  }

  #compress(data: Uint8Array, at: number): void {
    const w = this.#schedule;
    for (let i = 0; i < 16; i++) {
      const j = at + 4 * i;
      w[i] = (data[j]! << 24) | (data[j + 1]! << 16) | (data[j + 2]! << 8) | data[j + 3]!;
    }
    for (let i = 16; i < ROUNDS; i++) {
      const x = w[i - 15]!;
      const y = w[i - 2]!;
      const s0 = rotate(x, 7) ^ rotate(x, 18) ^ (x >>> 3);
      const s1 = rotate(y, 17) ^ rotate(y, 19) ^ (y >>> 10);
      w[i] = (w[i - 16]! + s0 + w[i - 7]! + s1) | 0;
    }
    let [a, b, c, d, e, f, g, h] = this.#state as unknown as [number, number, number, number, number, number, number, number];
    for (let i = 0; i < ROUNDS; i++) {
      const s1 = rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25);
      const t1 = (h + s1 + ((e & f) ^ (~e & g)) + CONSTANTS[i]! + w[i]!) | 0;
      const s0 = rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22);
      const t2 = (s0 + ((a & b) ^ (a & c) ^ (b & c))) | 0;
      [h, g, f, e, d, c, b, a] = [g, f, e, (d + t1) | 0, c, b, a, (t1 + t2) | 0];
    }
    const sums = [a, b, c, d, e, f, g, h];
    for (let i = 0; i < 8; i++) this.#state[i] = (this.#state[i]! + sums[i]!) | 0;
  }
}

const rotate = (x: number, bits: number): number => (x >>> bits) | (x << (32 - bits));

/** Derives the standard's constants from their definition. */
function derive(): { readonly initial: Int32Array; readonly constants: Int32Array } {
  const primes: number[] = [];
  for (let n = 2; primes.length < ROUNDS; n++) if (primes.every((p) => n % p !== 0)) primes.push(n);
  const fraction = (x: number): number => Math.floor((x - Math.floor(x)) * 2 ** 32) | 0;
  return {
    initial: Int32Array.from(primes.slice(0, 8), (p) => fraction(Math.sqrt(p))),
    constants: Int32Array.from(primes, (p) => fraction(Math.cbrt(p))),
  };
}
