/**
 * Converts text to a checkpoint's phonemes, in a worker thread if the platform has threads: a long text would block the steps of every other request. In a browser
 * tab the engine has its own thread already, and one user.
 */
import { EngineError } from '../errors.ts';
import type { EspeakLanguage } from '../platform/espeak.ts';
import type { Platform } from '../platform/platform.ts';
import { LazyThread } from '../platform/thread.ts';
import { isUnspaced } from '../util/speech-languages.ts';
import type { SpeechLanguage, UnspacedLanguage } from '../util/speech-languages.ts';
import { PHONEME_OPERATIONS } from './phoneme-worker.ts';
import type { PhonemeRules, Spellings } from './phoneme-rules.ts';
import { fromIpa } from './phonemes.ts';
import type { PhonemeIds } from './phonemes.ts';
import { Pronouncer } from './pronouncer.ts';
import type { SpeechPlatform } from './pronouncer.ts';
import { WORD_MARK, readMarks, withStressLevel } from './speech-marks.ts';
import type { SpeechMark, SpeechMarks } from './speech-marks.ts';
import { joinSpans } from './spoken-spans.ts';
import type { SpokenSpan } from './spoken-spans.ts';

/** Stands beside a word that is read alone. */
const NEIGHBOUR = '\u{100000}';

/** The languages that a checkpoint speaks on a platform. */
export function spokenLanguages(spellings: Spellings, { openJapanese }: SpeechPlatform): readonly SpeechLanguage[] {
  return [...spellings.keys()].filter((language) => language !== 'ja' || openJapanese !== undefined);
}

/** A phonemizer for one checkpoint's alphabet. */
export class Phonemizer {
  /** The languages that can be spoken. */
  readonly languages: readonly SpeechLanguage[];
  readonly #here: Pronouncer;
  readonly #thread: LazyThread<typeof PHONEME_OPERATIONS> | undefined;
  readonly #spellings: Spellings;
  readonly #vocab: ReadonlyMap<string, number>;

  constructor(platform: SpeechPlatform & Pick<Platform, 'startWorker'>, spellings: Spellings, vocab: ReadonlyMap<string, number>) {
    const { startWorker } = platform;
    this.languages = spokenLanguages(spellings, platform);
    this.#here = new Pronouncer(platform);
    this.#thread = startWorker && new LazyThread(PHONEME_OPERATIONS, () => startWorker(new URL('./phoneme-worker.ts', import.meta.url)));
    this.#spellings = spellings;
    this.#vocab = vocab;
  }

  /** Replaces the marks of a text by characters, which `ids` reads: speech-marks.ts. */
  marks(text: string, language: SpeechLanguage): ReturnType<typeof readMarks> {
    return readMarks(text, { language, rules: this.#rules(language), vocab: this.#vocab });
  }

  /** Converts a piece of speakable text; calls are served in order. Throws EngineError('internal') if the thread ends. */
  async ids(text: string, language: SpeechLanguage = 'en-us', marks: SpeechMarks = new Map()): Promise<PhonemeIds> {
    const marked = new Map<string, string>();
    for (const character of text) if (marks.has(character)) marked.set(character, await this.#phonemesOf(marks.get(character)!, language));
    const ipa = isUnspaced(language) ? await this.#joined(text, language) : await this.#ipa(text, language);
    return fromIpa(ipa, this.#rules(language), this.#vocab, marked);
  }

  /** The phonemes of a marked word. Between two others a word is read as within a sentence. */
  async #phonemesOf({ text, phonemes, stress }: SpeechMark, language: SpeechLanguage): Promise<string> {
    if (stress === undefined) return phonemes ?? '';
    const other = { text: '', phonemes: ' ' };
    const read = await this.ids(`${NEIGHBOUR} ${text} ${NEIGHBOUR}`, language, new Map([[NEIGHBOUR, other]]));
    return withStressLevel(read.phonemes, stress);
  }

  async #joined(text: string, language: UnspacedLanguage): Promise<string> {
    const english = async (latin: string): Promise<string> => (await this.ids(latin)).phonemes;
    const spans = text.split(WORD_MARK).map(async (part, i) => (i % 2 === 1 ? [{ phonemes: ` ${part} ` }] : this.#spans(part, language)));
    return joinSpans((await Promise.all(spans)).flat(), english);
  }

  #rules(language: SpeechLanguage): PhonemeRules {
    const rules = this.#spellings.get(language);
    if (!rules) throw new EngineError('internal', `there are no phoneme rules for ${language}`);
    return rules;
  }

  #ipa(text: string, language: EspeakLanguage): Promise<string> {
    return this.#thread ? this.#thread.methods.toIpa({ text, language }) : this.#here.toIpa(text, language);
  }

  #spans(text: string, language: UnspacedLanguage): Promise<readonly SpokenSpan[]> {
    return this.#thread ? this.#thread.methods.toSpans({ text, language }) : this.#here.toSpans(text, language);
  }

  async close(): Promise<void> {
    await this.#thread?.close();
  }
}
