/** Which stretches of a request's audio reach the transcription model: those in which somebody speaks. */
import type { VadRules } from '../api.ts';
import { keptSound, wholeSound } from '../audio/kept-sound.ts';
import type { KeptSound } from '../audio/kept-sound.ts';
import { SpeechFinder, withShortEnds } from '../audio/speech-segments.ts';
import type { SpeechRules } from '../audio/speech-segments.ts';
import { requestAborted } from '../errors.ts';
import { VAD_CHUNK, VAD_RATE } from '../models/silero-vad/silero-vad.ts';
import type { VadRunner } from '../runner/vad-runner.ts';
import type { Job } from './transcription-job.ts';

/**
 * Silero's threshold. Pauses of a talk are heard with it; of longer ones so much stays that no word loses its edges. 60 words alone, of four synthetic voices and
 * in noise down to 0 dB, had a chunk of 0.94 at least, and chords and melodies one of 0.92 at most; "up" is 0.16 s long, less than Silero's least.
 */
const RULES: SpeechRules = {
  threshold: 0.5,
  leastSpeech: 0.1,
  sure: { probability: 0.93, within: 1 },
  silence: 2,
  before: 0.4,
  after: 0.4,
};
/** Silero's least speech, for rules that a request brings. */
const LEAST_SPEECH = 0.25;

/** What of a job's audio is heard. Throws EngineError('aborted') when the signal says so. */
export async function heardOf({ sound, request: { vad = true } }: Job, runner: VadRunner, signal: AbortSignal): Promise<KeptSound> {
  if (vad === false) return wholeSound(sound);
  const rules = vad === true ? RULES : rulesOf(vad);
  const finder = new SpeechFinder(rules, { sampleRate: VAD_RATE, chunk: VAD_CHUNK });
  for await (const block of runner.probabilities(sound)) {
    if (signal.aborted) throw requestAborted();
    for (const probability of block) finder.push(probability);
  }
  const stretches = finder.finish(sound.length);
  // Between stretches at least this much is left out.
  const least = rules.silence - rules.before - rules.after;
  const padding = { before: rules.before * VAD_RATE, after: rules.after * VAD_RATE };
  return keptSound(sound, withShortEnds(stretches, sound.length, VAD_RATE, least), padding);
}

/** As they were asked for. What follows speech is kept as far as silence does not end it yet, but no more than by default. */
function rulesOf({ threshold, prefixPaddingMs, silenceDurationMs }: VadRules): SpeechRules {
  const silence = silenceDurationMs / 1000;
  return { threshold, leastSpeech: LEAST_SPEECH, silence, before: prefixPaddingMs / 1000, after: Math.min(silence, RULES.after) };
}
