/** The speech gate: voice activity detection that decides which stretches of audio reach the transcription model. */
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
 * Default rules, with Silero's threshold; times in seconds. Short pauses stay in, and enough around longer ones that no word loses its edges. Measured for `sure`: each
 * of 60 single words (four synthetic voices, noise down to 0 dB) had a chunk of at least 0.94, while chords and melodies reached at most 0.92. `leastSpeech` is below
 * Silero's, because the word "up" lasts 0.16 s.
 */
const RULES: SpeechRules = {
  threshold: 0.5,
  leastSpeech: 0.1,
  sure: { probability: 0.93, within: 1 },
  silence: 2,
  before: 0.4,
  after: 0.4,
};
/** Silero's least duration of speech in seconds, used with the rules of a request. */
const LEAST_SPEECH = 0.25;

/** Finds the audio of a job that is transcribed: its speech, or all of it if the request switches the gate off. Throws EngineError('aborted') when the signal is aborted. */
export async function heardOf({ sound, request: { vad = true } }: Job, runner: VadRunner, signal: AbortSignal): Promise<KeptSound> {
  if (vad === false) return wholeSound(sound);
  const rules = vad === true ? RULES : rulesOf(vad);
  const finder = new SpeechFinder(rules, { sampleRate: VAD_RATE, chunk: VAD_CHUNK });
  for await (const block of runner.probabilities(sound)) {
    if (signal.aborted) throw requestAborted();
    for (const probability of block) finder.push(probability);
  }
  const stretches = finder.finish(sound.length);
  // What is left out between two stretches is at least this long, so shorter ends are kept too.
  const least = rules.silence - rules.before - rules.after;
  const padding = { before: rules.before * VAD_RATE, after: rules.after * VAD_RATE };
  return keptSound(sound, withShortEnds(stretches, sound.length, VAD_RATE, least), padding);
}

/** Rules of a request. Audio after speech is kept up to the silence that ends it, but no longer than by default. */
function rulesOf({ threshold, prefixPaddingMs, silenceDurationMs }: VadRules): SpeechRules {
  const silence = silenceDurationMs / 1000;
  return { threshold, leastSpeech: LEAST_SPEECH, silence, before: prefixPaddingMs / 1000, after: Math.min(silence, RULES.after) };
}
