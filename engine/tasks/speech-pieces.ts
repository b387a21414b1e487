/** Splits a text to be spoken into pieces that the model synthesises one at a time. */
import type { Pause } from '../audio/pauses.ts';
import { EngineError, requestAborted } from '../errors.ts';
import type { Remedy } from '../errors.ts';
import type { Phonemizer } from '../text/phonemizer.ts';
import type { SpeechLanguage } from '../util/speech-languages.ts';
import { halveText, lettersPerCharacter, normalizeText, phonemesAtMost, splitFirstClause, splitSentences } from '../text/speech-text.ts';

/** Most phonemes of a piece, about ten seconds: longer sentences are split at clauses, because the prosody of such models suffers. */
const MAX_PIECE_IDS = 160;
const ALLOW_MORE: Remedy = { does: 'allow more', settings: [{ name: 'maxSpeechPhonemes' }] };

/** A piece of text that is synthesised in one go. */
export interface SpeechPiece {
  readonly text: string;
  /** Phoneme ids. */
  readonly ids: readonly number[];
  /** Kind of the pause after the piece. */
  readonly pause: Pause;
}

/** How a text is read. */
export interface Manner {
  readonly speed: number;
  readonly language: SpeechLanguage;
}

export interface SpeechCutterOptions {
  readonly phonemizer: Pick<Phonemizer, 'ids'>;
  /** Most phonemes that the model takes at once. */
  readonly maxIds: number;
  /** Most phonemes of a request; at speeds below 1, this times the speed. */
  readonly maxPhonemes: number;
}

/** Splits texts into pieces. */
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
   * Splits a text into pieces lazily, while it is being spoken. Only if the text may have more phonemes than allowed are all pieces made at once, so that
   * EngineError('invalid_request') is thrown before anything is spoken.
   */
  async pieces(text: string, manner: Manner, signal: AbortSignal): Promise<AsyncGenerator<SpeechPiece, undefined>> {
    const normal = normalizeText(text, manner.language);
    const limit = Math.floor(this.#maxPhonemes * Math.min(1, manner.speed));
    const pieces = this.#counted(normal, limit, manner);
    if (phonemesAtMost(normal, manner.language) <= limit) return pieces;
    const all: SpeechPiece[] = [];
    for await (const piece of pieces) {
      if (signal.aborted) throw requestAborted();
      all.push(piece);
    }
    return replay(all);
  }

  /** Splits a piece whose audio turned out too long; undefined if it cannot be split. */
  halve({ text, pause }: SpeechPiece, language: SpeechLanguage): AsyncGenerator<SpeechPiece, undefined> | undefined {
    const halves = halveText(text, language);
    return halves && this.#both(halves, pause, language);
  }

  async *#counted(text: string, limit: number, { speed, language }: Manner): AsyncGenerator<SpeechPiece, undefined> {
    let count = 0;
    for await (const piece of this.#all(text, language)) {
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
   * Yields the pieces of a normalised text, in order, without those that have nothing to speak. A long first sentence is split after its first clause, so that a
   * stream starts sooner; this is done for other answers too, so that they sound the same.
   */
  async *#all(text: string, language: SpeechLanguage): AsyncGenerator<SpeechPiece, undefined> {
    let begun = false;
    for (const sentence of splitSentences(text)) {
      const ended = /[.!?…]["”')]*$/.test(sentence.text) ? sentence.text : `${sentence.text}.`;
      const pause = sentence.endsParagraph ? 'paragraph' : 'sentence';
      const [clause, rest] = (begun ? undefined : splitFirstClause(ended, language)) ?? [undefined, ended];
      const before = clause === undefined ? [] : [this.#fitting(clause, 'clause', language)];
      for (const part of [...before, this.#fitting(rest, pause, language)]) {
        for await (const piece of part) {
          begun = true;
          yield piece;
        }
      }
    }
  }

  async *#fitting(text: string, pause: Pause, language: SpeechLanguage): AsyncGenerator<SpeechPiece, undefined> {
    // A letter makes about one phoneme, so text far above the limit is split before the phonemizer spends time on it.
    let halves = lettersPerCharacter(language) * text.length > 2 * this.#maxIds ? halveText(text, language) : undefined;
    if (!halves) {
      const { ids, speakable } = await this.#phonemizer.ids(text, language);
      if (!speakable) return;
      halves = ids.length > this.#maxIds ? halveText(text, language) : undefined;
      if (!halves) {
        yield { text, ids, pause };
        return;
      }
    }
    yield* this.#both(halves, pause, language);
  }

  async *#both([first, second]: readonly [string, string], pause: Pause, language: SpeechLanguage): AsyncGenerator<SpeechPiece, undefined> {
    yield* this.#fitting(first, 'clause', language);
    yield* this.#fitting(second, pause, language);
  }
}

async function* replay(pieces: readonly SpeechPiece[]): AsyncGenerator<SpeechPiece, undefined> {
  yield* pieces;
}
