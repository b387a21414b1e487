/**
 * Converts text to a checkpoint's phonemes, in a worker thread if the platform has threads: a long text would block the steps of every other request. In a browser
 * tab the engine has its own thread already, and one user.
 */
import { EngineError } from '../errors.ts';
import type { Platform } from '../platform/platform.ts';
import { LazyThread } from '../platform/thread.ts';
import type { SpeechLanguage } from '../util/speech-languages.ts';
import type { Espeak } from './espeak.ts';
import { PHONEME_OPERATIONS, startEspeak } from './phoneme-worker.ts';
import { fromIpa, toIpa } from './phonemes.ts';
import type { PhonemeIds } from './phonemes.ts';
import type { Spellings } from './phoneme-rules.ts';

/** A phonemizer for one checkpoint's alphabet. */
export class Phonemizer {
  readonly #platform: PhonemizerPlatform;
  readonly #thread: LazyThread<typeof PHONEME_OPERATIONS> | undefined;
  readonly #spellings: Spellings;
  readonly #vocab: ReadonlyMap<string, number>;
  #espeak: Promise<Espeak> | undefined;

  constructor(platform: PhonemizerPlatform, spellings: Spellings, vocab: ReadonlyMap<string, number>) {
    const { startWorker } = platform;
    this.#platform = platform;
    this.#thread = startWorker && new LazyThread(PHONEME_OPERATIONS, () => startWorker(new URL('./phoneme-worker.ts', import.meta.url)));
    this.#spellings = spellings;
    this.#vocab = vocab;
  }

  /** The languages that can be spoken. */
  get languages(): readonly SpeechLanguage[] {
    return [...this.#spellings.keys()];
  }

  /** Converts a piece of speakable text; calls are served in order. Throws EngineError('internal') if the thread ends. */
  async ids(text: string, language: SpeechLanguage = 'en-us'): Promise<PhonemeIds> {
    const rules = this.#spellings.get(language);
    if (!rules) throw new EngineError('internal', `there are no phoneme rules for ${language}`);
    const ipa = await (this.#thread ? this.#thread.methods.toIpa({ text, language }) : toIpa(await this.#here(), text, language));
    return fromIpa(ipa, rules, this.#vocab);
  }

  /** espeak-ng in this thread. */
  #here(): Promise<Espeak> {
    this.#espeak ??= startEspeak(this.#platform);
    // The next call tries again.
    this.#espeak.catch(() => (this.#espeak = undefined));
    return this.#espeak;
  }

  async close(): Promise<void> {
    await this.#thread?.close();
  }
}

type PhonemizerPlatform = Pick<Platform, 'startWorker' | 'espeak'>;
