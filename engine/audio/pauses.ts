/** Prepares pieces of speech to be joined: with pauses that count the silence which the model itself leaves, and ends that do not click. */

/**
 * Silence after a sentence, after a paragraph, and after a piece that was cut off inside a sentence, in seconds at speed 1. What the model itself leaves before
 * and after a piece counts: 0.10 and 0.15 s with the bundled model, 0.3 and 0.5 s with published Kokoro. A pause that the text gives is silence of its own.
 */
export const PAUSE = { sentence: 0.45, paragraph: 0.7, clause: 0.31, given: 0 } as const;
/** Where a piece ends, which decides the pause after it. */
export type Pause = keyof typeof PAUSE;
/** `level`: samples below this share of a piece's loudest are silence. `seconds`: as much silence stays where some is cut. */
const SILENCE = { level: 0.01, seconds: 0.03 } as const;
/** Seconds of the ramp at both ends of a piece, without which joins with silence would click. */
const FADE_SECONDS = 0.004;

export interface Joint {
  /** What follows the piece. */
  readonly pause: Pause;
  readonly speed: number;
  /** Seconds of a pause that the text gives before the piece. */
  readonly silence?: number | undefined;
}

/**
 * Returns a piece with ramped ends and the silence that its pause lacks; a piece that ends inside its sentence loses excess silence, and so do both sides of a pause
 * that the text gives, which is exactly as long as it says. The next piece is assumed to begin with as much silence as this one, since one voice begins its
 * sentences alike.
 */
export function joinable(samples: Float32Array, sampleRate: number, { pause, speed, silence }: Joint): Float32Array {
  const { before, after } = silences(samples);
  const excess = (silent: number): number => Math.max(0, silent - Math.round(SILENCE.seconds * sampleRate));
  const lacking = Math.round((PAUSE[pause] / speed) * sampleRate) - before - after;
  const removable = pause === 'clause' || pause === 'given' ? excess(after) : 0;
  const kept = samples.subarray(silence === undefined ? 0 : excess(before), samples.length - Math.min(removable, Math.max(0, -lacking)));
  const start = Math.round((silence ?? 0) * sampleRate);
  const out = new Float32Array(start + kept.length + Math.max(0, lacking));
  out.set(kept, start);
  const ramp = Math.min(Math.round(FADE_SECONDS * sampleRate), kept.length >> 1);
  for (let i = 0; i < ramp; i++) {
    out[start + i]! *= i / ramp;
    out[start + kept.length - 1 - i]! *= i / ramp;
  }
  return out;
}

/** Number of silent samples at both ends; 0 for a piece that is all silence. */
function silences(samples: Float32Array): { readonly before: number; readonly after: number } {
  const level = SILENCE.level * samples.reduce((most, sample) => Math.max(most, Math.abs(sample)), 0);
  const isLoud = (sample: number): boolean => Math.abs(sample) > level;
  const before = samples.findIndex(isLoud);
  return before < 0 ? { before: 0, after: 0 } : { before, after: samples.length - 1 - samples.findLastIndex(isLoud) };
}
