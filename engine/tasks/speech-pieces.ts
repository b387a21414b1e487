/** Cuts a text that is to be spoken into pieces, each of which the model speaks in one go. */
import type { Pause } from '../audio/pauses.ts';
import { EngineError, requestAborted } from '../errors.ts';
import type { Remedy } from '../errors.ts';
import type { Accent } from '../text/phonemes.ts';
import type { Phonemizer } from '../text/phonemizer.ts';
import { halveText, normalizeText, phonemesAtMost, splitFirstClause, splitSentences } from '../text/speech-text.ts';

/** Sentences with more phonemes are cut at clauses: about ten seconds, beyond which the prosody of such models suffers. */
const MAX_PIECE_IDS = 160;
const ALLOW_MORE: Remedy = { does: 'allow more', settings: [{ name: 'maxSpeechPhonemes' }] };

export interface SpeechPiece {
  readonly text: string;
  readonly ids: readonly number[];
  /** What follows. */
  readonly pause: Pause;
}

/** How a text is read. */
export interface Manner {
  readonly speed: number;
  readonly accent: Accent;
}

export interface SpeechCutterOptions {
  readonly phonemizer: Pick<Phonemizer, 'ids'>;
  /** Phonemes that the model takes at once. */
  readonly maxIds: number;
  /** Phonemes of a request at most, at speed 1 or more; as many fewer as the speed is below. */
  readonly maxPhonemes: number;
}

/** Makes pieces of texts. */
export class SpeechCutter {
  readonly #phonemizer: Pick<Phonemizer, 'ids'>;
  readonly #maxIds: number;
  readonly #maxPhonemes: number;

  constructor({ phonemizer, maxIds, maxPhonemes }: SpeechCutterOptions) {
    this.#phonemizer = phonemizer;
    this.#maxIds = Math.min(maxIds, MAX_PIECE_IDS);
    this.#maxPhonemes = maxPhonemes;
  }

  /**
   * The pieces of a text, found while it is spoken, or, where there may be more phonemes than allowed, before. Throws EngineError('invalid_request')
   * where there are.
   */
  async pieces(text: string, manner: Manner, signal: AbortSignal): Promise<AsyncGenerator<SpeechPiece, undefined>> {
    const normal = normalizeText(text);
    const limit = Math.floor(this.#maxPhonemes * Math.min(1, manner.speed));
    const pieces = this.#counted(normal, limit, manner);
    if (phonemesAtMost(normal) <= limit) return pieces;
    const all: SpeechPiece[] = [];
    for await (const piece of pieces) {
      if (signal.aborted) throw requestAborted();
      all.push(piece);
    }
    return replay(all);
  }

  /** A piece that turned out too long, in shorter ones; undefined where it cannot be cut. */
  halve({ text, pause }: SpeechPiece, accent: Accent): AsyncGenerator<SpeechPiece, undefined> | undefined {
    const halves = halveText(text);
    return halves && this.#both(halves, pause, accent);
  }

  async *#counted(text: string, limit: number, { speed, accent }: Manner): AsyncGenerator<SpeechPiece, undefined> {
    let count = 0;
    for await (const piece of this.#all(text, accent)) {
      count += piece.ids.length;
      if (count > limit) {
        const at = speed < 1 ? ` at speed ${speed}` : '';
        const message = `the text has ${count} phonemes or more; at most ${limit} are spoken${at} in one request`;
        throw new EngineError('invalid_request', message, { param: 'text', remedies: [ALLOW_MORE] });
      }
      yield piece;
    }
  }

  /**
   * Pieces of normalised text that fit the model, in order; those without anything to say are left out. A long sentence at the beginning is cut behind
   * its first clause, whether the answer is streamed or not: what is heard is the same, and is heard sooner where it is.
   */
  async *#all(text: string, accent: Accent): AsyncGenerator<SpeechPiece, undefined> {
    let begun = false;
    for (const sentence of splitSentences(text)) {
      const ended = /[.!?…]["”')]*$/.test(sentence.text) ? sentence.text : `${sentence.text}.`;
      const pause = sentence.endsParagraph ? 'paragraph' : 'sentence';
      const [clause, rest] = (begun ? undefined : splitFirstClause(ended)) ?? [undefined, ended];
      const before = clause === undefined ? [] : [this.#fitting(clause, 'clause', accent)];
      for (const part of [...before, this.#fitting(rest, pause, accent)]) {
        for await (const piece of part) {
          begun = true;
          yield piece;
        }
      }
    }
  }

  async *#fitting(text: string, pause: Pause, accent: Accent): AsyncGenerator<SpeechPiece, undefined> {
    // Letters make about one phoneme each: text far above the limit is cut before the phonemizer spends time on it.
    let halves = text.length > 2 * this.#maxIds ? halveText(text) : undefined;
    if (!halves) {
      const { ids, speakable } = await this.#phonemizer.ids(text, accent);
      if (!speakable) return;
      halves = ids.length > this.#maxIds ? halveText(text) : undefined;
      if (!halves) {
        yield { text, ids, pause };
        return;
      }
    }
    yield* this.#both(halves, pause, accent);
  }

  async *#both([first, second]: readonly [string, string], pause: Pause, accent: Accent): AsyncGenerator<SpeechPiece, undefined> {
    yield* this.#fitting(first, 'clause', accent);
    yield* this.#fitting(second, pause, accent);
  }
}

async function* replay(pieces: readonly SpeechPiece[]): AsyncGenerator<SpeechPiece, undefined> {
  yield* pieces;
}
