/** Mean absolute difference of log band energies, in nepers. */
export function logMelDistance(a: ArrayLike<number>, b: ArrayLike<number>, sampleRate: number): number {
  return bandsDistance(logBands(a, sampleRate), logBands(b, sampleRate));
}

/** The same of band energies that are there already; NaN when there are not as many. */
export function bandsDistance(a: ArrayLike<number>, b: ArrayLike<number>): number {
  if (a.length !== b.length) return NaN;
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += Math.abs(a[i]! - b[i]!) / a.length;
  return sum;
}

const WINDOW = 1024;
const HOP = 256;
const BANDS = 80;
const FLOOR = 1e-5;

/** Logarithms of a signal's energies, frame by frame: 80 mel-spaced bands, 1024-sample Hann windows, hop 256. */
export function logBands(signal: ArrayLike<number>, sampleRate: number): number[] {
  const mel = (hz: number): number => 2595 * Math.log10(1 + hz / 700);
  const edges = Array.from({ length: BANDS + 2 }, (_, i) => 700 * (10 ** ((mel(sampleRate / 2) * i) / (BANDS + 1) / 2595) - 1));
  const out: number[] = [];
  for (let start = 0; start + WINDOW <= signal.length; start += HOP) {
    const power = powerSpectrum(signal, start);
    for (let m = 0; m < BANDS; m++) {
      const [low, mid, high] = [edges[m]!, edges[m + 1]!, edges[m + 2]!];
      let energy = 0;
      for (let k = 0; k < power.length; k++) {
        const hz = (k * sampleRate) / WINDOW;
        energy += Math.max(0, Math.min((hz - low) / (mid - low), (high - hz) / (high - mid))) * power[k]!;
      }
      out.push(Math.log(energy + FLOOR));
    }
  }
  return out;
}

/** |FFT|^2 of a Hann-windowed frame by the radix-2 recursion, bins 0..WINDOW / 2. */
function powerSpectrum(signal: ArrayLike<number>, start: number): Float64Array {
  const re = Float64Array.from({ length: WINDOW }, (_, i) => signal[start + i]! * (0.5 - 0.5 * Math.cos((2 * Math.PI * i) / WINDOW)));
  const im = new Float64Array(WINDOW);
  for (let i = 1, j = 0; i < WINDOW; i++) {
    let bit = WINDOW >> 1;
    for (; j & bit; bit >>= 1) j ^= bit;
    j ^= bit;
    if (i < j) [re[i], re[j]] = [re[j]!, re[i]!];
  }
  for (let size = 2; size <= WINDOW; size *= 2) {
    for (let i = 0; i < WINDOW; i += size) {
      for (let k = 0; k < size / 2; k++) {
        const angle = (-2 * Math.PI * k) / size;
        const [c, s] = [Math.cos(angle), Math.sin(angle)];
        const [p, q] = [i + k, i + k + size / 2];
        const [x, y] = [re[q]! * c - im[q]! * s, re[q]! * s + im[q]! * c];
        [re[q], im[q], re[p], im[p]] = [re[p]! - x, im[p]! - y, re[p]! + x, im[p]! + y];
      }
    }
  }
  return Float64Array.from({ length: WINDOW / 2 + 1 }, (_, k) => re[k]! ** 2 + im[k]! ** 2);
}
