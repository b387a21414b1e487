/**
 * Voice activity detection after the model: turns the speech probabilities of chunks into stretches of speech, by the rules of Silero's `get_speech_timestamps`
 * and one more, `sure`.
 */

/** A stretch of audio: the samples [from, to). */
export interface Stretch {
  readonly from: number;
  readonly to: number;
}

/** Rules of where speech begins and ends, and how much around it is kept; times in seconds. */
export interface SpeechRules {
  /** A chunk of at least this probability begins speech; one below `threshold` - 0.15 (at least 0.01) may end it. */
  readonly threshold: number;
  /** A stretch counts as speech if it is longer than this. */
  readonly leastSpeech: number;
  /** A stretch shorter than `within` counts only if one of its chunks reaches this probability: musical notes are often taken for speech, but not with certainty. */
  readonly sure?: { readonly probability: number; readonly within: number };
  /** Silence that ends speech; shorter pauses belong to the speech. */
  readonly silence: number;
  /** Audio kept before and after speech. */
  readonly before: number;
  readonly after: number;
}

const FALL = 0.15;
const LEAST_THRESHOLD = 0.01;

/** Finds stretches of speech from the probabilities of consecutive chunks. */
export class SpeechFinder {
  readonly #rules: SpeechRules;
  readonly #sampleRate: number;
  readonly #chunk: number;
  readonly #found: Stretch[] = [];
  #at = 0;
  #start: number | undefined;
  /** Highest probability since the start. */
  #peak = 0;
  /** Where the silence began that may end the current stretch. */
  #end: number | undefined;

  constructor(rules: SpeechRules, { sampleRate, chunk }: { readonly sampleRate: number; readonly chunk: number }) {
    this.#rules = rules;
    this.#sampleRate = sampleRate;
    this.#chunk = chunk;
  }

  /** Takes the probability of the next chunk. */
  push(probability: number): void {
    const { threshold, silence } = this.#rules;
    const at = this.#at;
    this.#at += this.#chunk;
    this.#peak = Math.max(this.#peak, probability);
    if (probability >= threshold) {
      this.#end = undefined;
      if (this.#start === undefined) this.#peak = probability;
      this.#start ??= at;
    } else if (this.#start !== undefined && probability < Math.max(threshold - FALL, LEAST_THRESHOLD)) {
      this.#end ??= at;
      if (at - this.#end >= silence * this.#sampleRate) this.#close(this.#end);
    }
  }

  #close(to: number): void {
    const from = this.#start!;
    const { leastSpeech, sure } = this.#rules;
    const seconds = (to - from) / this.#sampleRate;
    const isSure = !sure || seconds >= sure.within || this.#peak >= sure.probability;
    if (seconds > leastSpeech && isSure) this.#found.push({ from, to });
    this.#start = this.#end = undefined;
  }

  /**
   * Returns the stretches of speech in audio of `length` samples, in order, with the audio kept around them. Stretches that touch are not joined. Ends of the
   * audio without speech are left out, however short.
   */
  finish(length: number): Stretch[] {
    if (this.#start !== undefined) this.#close(length);
    const { before, after } = this.#rules;
    const [ahead, behind] = [before * this.#sampleRate, after * this.#sampleRate];
    const borders = this.#found.slice(1).map(({ from }, i): Stretch => {
      const { to } = this.#found[i]!;
      const gap = from - to;
      // A pause too short for both is halved.
      if (gap < ahead + behind) return { from: to + Math.floor(gap / 2), to: from - Math.floor(gap / 2) };
      return { from: Math.floor(to + behind), to: Math.floor(from - ahead) };
    });
    return this.#found.map(({ from, to }, i) => ({
      from: borders[i - 1]?.to ?? Math.floor(Math.max(0, from - ahead)),
      to: borders[i]?.from ?? Math.floor(Math.min(length, to + behind)),
    }));
  }
}

/** Extends the first and the last stretch to the ends of the audio, if that adds at most `seconds` each: short ends are heard, like short pauses. */
export function withShortEnds(stretches: readonly Stretch[], length: number, sampleRate: number, seconds: number): Stretch[] {
  const most = seconds * sampleRate;
  return stretches.map(({ from, to }, i) => ({
    from: i === 0 && from <= most ? 0 : from,
    to: i === stretches.length - 1 && length - to <= most ? length : to,
  }));
}
