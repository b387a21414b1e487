/** Splits a text to be spoken into pieces that the model synthesises one at a time. */
import type { Pause } from '../audio/pauses.ts';
import { EngineError, requestAborted } from '../errors.ts';
import type { Remedy } from '../errors.ts';
import type { Phonemizer } from '../text/phonemizer.ts';
import { PAUSE_MARK, withoutMarks } from '../text/speech-marks.ts';
import type { SpeechMarks } from '../text/speech-marks.ts';
import type { SpeechLanguage } from '../util/speech-languages.ts';
import { halveText, lettersPerCharacter, normalizeText, phonemesAtMost, splitFirstClause, splitSentences } from '../text/speech-text.ts';

/** Most phonemes of a piece, about ten seconds: longer sentences are split at clauses, because the prosody of such models suffers. */
const MAX_PIECE_IDS = 160;
const ALLOW_MORE: Remedy = { does: 'allow more', settings: [{ name: 'maxSpeechPhonemes' }] };

/** A piece of text that is synthesised in one go. */
export interface SpeechPiece {
  /** Normalised, with the characters of its marks. */
  readonly text: string;
  /** The marks of the whole text. */
  readonly marks: SpeechMarks;
  /** Phoneme ids; none at the end of a text that ends with a pause. */
  readonly ids: readonly number[];
  /** Kind of the pause after the piece. */
  readonly pause: Pause;
  /** Seconds of the pause that the text gives before the piece. */
  readonly silence?: number | undefined;
}

/** How a text is read. */
export interface Manner {
  readonly speed: number;
  readonly language: SpeechLanguage;
}

/** How a part of a text is cut. */
interface Cut {
  readonly pause: Pause;
  readonly language: SpeechLanguage;
  readonly marks: SpeechMarks;
}

export interface SpeechCutterOptions {
  readonly phonemizer: Pick<Phonemizer, 'ids' | 'marks'>;
  /** Most phonemes that the model takes at once. */
  readonly maxIds: number;
  /** Most phonemes of a request; at speeds below 1, this times the speed. */
  readonly maxPhonemes: number;
}

/** Splits texts into pieces. */
export class SpeechCutter {
  readonly #phonemizer: Pick<Phonemizer, 'ids' | 'marks'>;
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
    const { text: marked, marks } = this.#phonemizer.marks(text, manner.language);
    const normal = normalizeText(marked, manner.language);
    const limit = Math.floor(this.#maxPhonemes * Math.min(1, manner.speed));
    const pieces = this.#counted(this.#all(normal, marks, manner.language), limit, manner);
    if (phonemesAtMost(normal, manner.language) <= limit) return pieces;
    const all: SpeechPiece[] = [];
    for await (const piece of pieces) {
      if (signal.aborted) throw requestAborted();
      all.push(piece);
    }
    return replay(all);
  }

  /** Splits a piece whose audio turned out too long; undefined if it cannot be split. */
  halve({ text, marks, pause }: SpeechPiece, language: SpeechLanguage): AsyncGenerator<SpeechPiece, undefined> | undefined {
    const halves = halveText(text, language);
    return halves && this.#both(halves, { pause, marks, language });
  }

  async *#counted(all: AsyncGenerator<SpeechPiece, undefined>, limit: number, { speed }: Manner): AsyncGenerator<SpeechPiece, undefined> {
    let count = 0;
    for await (const piece of all) {
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
   * Yields the pieces of a normalised text, in order, without those that have nothing to speak. Pauses that it gives are before the next piece, or at the end in one
   * without phonemes and with the text before it.
   */
  async *#all(text: string, marks: SpeechMarks, language: SpeechLanguage): AsyncGenerator<SpeechPiece, undefined> {
    const parts = text.split(PAUSE_MARK);
    let said: string | undefined;
    let silence: number | undefined;
    for (const [i, part] of parts.entries()) {
      if (i % 2 === 1) {
        silence = (silence ?? 0) + (marks.get(part)?.seconds ?? 0);
        continue;
      }
      const end = i + 1 < parts.length ? 'given' : 'paragraph';
      for await (const piece of this.#sentences(part, { pause: end, marks, language }, said === undefined)) {
        said = piece.text;
        yield { ...piece, silence };
        silence = undefined;
      }
    }
    if (said !== undefined && silence !== undefined) yield { text: said, marks, ids: [], pause: 'given', silence };
  }

  /**
   * Yields the pieces of a text between pauses. A long first sentence is split after its first clause, so that a stream starts sooner; this is done for other answers
   * too, so that they sound the same.
   */
  async *#sentences(text: string, cut: Cut, isFirst: boolean): AsyncGenerator<SpeechPiece, undefined> {
    let begun = !isFirst;
    const sentences = splitSentences(text);
    for (const [i, sentence] of sentences.entries()) {
      const isLast = i + 1 === sentences.length;
      // What a pause interrupts is not yet at its end.
      const ended = /[.!?…]["”')]*$/.test(sentence.text) || (isLast && cut.pause === 'given') ? sentence.text : `${sentence.text}.`;
      const pause = isLast ? cut.pause : sentence.endsParagraph ? 'paragraph' : 'sentence';
      const [clause, rest] = (begun ? undefined : splitFirstClause(ended, cut.language)) ?? [undefined, ended];
      const before = clause === undefined ? [] : [this.#fitting(clause, { ...cut, pause: 'clause' })];
      for (const part of [...before, this.#fitting(rest, { ...cut, pause })]) {
        for await (const piece of part) {
          begun = true;
          yield piece;
        }
      }
    }
  }

  async *#fitting(text: string, cut: Cut): AsyncGenerator<SpeechPiece, undefined> {
    const { pause, marks, language } = cut;
    // A letter makes about one phoneme, so text far above the limit is split before the phonemizer spends time on it.
    let halves = lettersPerCharacter(language) * text.length > 2 * this.#maxIds ? halveText(text, language) : undefined;
    if (!halves) {
      const { ids, speakable } = await this.#phonemizer.ids(text, language, marks);
      if (!speakable) return;
      halves = ids.length > this.#maxIds ? halveText(text, language) : undefined;
      if (!halves) {
        yield { text, marks, ids, pause };
        return;
      }
    }
    yield* this.#both(halves, cut);
  }

  async *#both([first, second]: readonly [string, string], cut: Cut): AsyncGenerator<SpeechPiece, undefined> {
    yield* this.#fitting(first, { ...cut, pause: 'clause' });
    yield* this.#fitting(second, cut);
  }
}

/** A piece's text as it is shown: without its marks. */
export const shownText = ({ text, marks }: SpeechPiece): string => withoutMarks(text, marks).trim();

async function* replay(pieces: readonly SpeechPiece[]): AsyncGenerator<SpeechPiece, undefined> {
  yield* pieces;
}
