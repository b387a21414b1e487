/** Pieces of speech one behind the other: pauses that count the silence which the model itself leaves, and ends that do not click. */

/**
 * Silence between a sentence, a paragraph, and a piece cut off inside a sentence and what follows, in seconds at speed 1. What the model itself
 * leaves before and after a piece counts: the bundled one 0.10 and 0.15 s, published Kokoro 0.3 and 0.5.
 */
export const PAUSE = { sentence: 0.45, paragraph: 0.7, clause: 0.31 } as const;
/** What follows a piece. */
export type Pause = keyof typeof PAUSE;
/** Silence is below this part of a piece's loudest sample; so much of it stays where some is cut. */
const SILENCE = { level: 0.01, seconds: 0.03 } as const;
/** Ramp at both ends of a piece, in seconds: joins with silence must not click. */
const FADE_SECONDS = 0.004;

/**
 * A piece with ramped ends, and as much silence after it as its pause lacks; a piece that goes on inside its sentence loses what is too much. The next
 * piece's silence in front is taken to be this one's: one voice begins its sentences alike.
 */
export function joinable(
  samples: Float32Array,
  sampleRate: number,
  { pause, speed }: { readonly pause: Pause; readonly speed: number },
): Float32Array {
  const { before, after } = silences(samples);
  const lacking = Math.round((PAUSE[pause] / speed) * sampleRate) - before - after;
  const removable = pause === 'clause' ? Math.max(0, after - Math.round(SILENCE.seconds * sampleRate)) : 0;
  const kept = samples.subarray(0, samples.length - Math.min(removable, Math.max(0, -lacking)));
  const out = new Float32Array(kept.length + Math.max(0, lacking));
  out.set(kept);
  const ramp = Math.min(Math.round(FADE_SECONDS * sampleRate), kept.length >> 1);
  for (let i = 0; i < ramp; i++) {
    out[i]! *= i / ramp;
    out[kept.length - 1 - i]! *= i / ramp;
  }
  return out;
}

/** Samples of silence at both ends. */
function silences(samples: Float32Array): { readonly before: number; readonly after: number } {
  const level = SILENCE.level * samples.reduce((most, sample) => Math.max(most, Math.abs(sample)), 0);
  const isLoud = (sample: number): boolean => Math.abs(sample) > level;
  const before = samples.findIndex(isLoud);
  return before < 0 ? { before: 0, after: 0 } : { before, after: samples.length - 1 - samples.findLastIndex(isLoud) };
}
