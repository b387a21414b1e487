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
import { joinSpans } from './spoken-spans.ts';
import type { SpokenSpan } from './spoken-spans.ts';

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

  /** Converts a piece of speakable text; calls are served in order. Throws EngineError('internal') if the thread ends. */
  async ids(text: string, language: SpeechLanguage = 'en-us'): Promise<PhonemeIds> {
    if (!isUnspaced(language)) return fromIpa(await this.#ipa(text, language), this.#rules(language), this.#vocab);
    const english = async (latin: string): Promise<string> => (await this.ids(latin)).phonemes;
    return fromIpa(await joinSpans(await this.#spans(text, language), english), this.#rules(language), this.#vocab);
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
