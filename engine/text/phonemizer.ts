/**
 * Phonemes of a checkpoint's alphabet, found in a thread of their own where the platform has threads: espeak-ng speaks the whole text to itself, which
 * would hold up the steps of every other request. In a tab the engine has a thread to itself already, and one user.
 */
import type { Platform } from '../platform/platform.ts';
import { LazyThread } from '../platform/thread.ts';
import { PHONEME_OPERATIONS } from './phoneme-worker.ts';
import { fromIpa, toIpa } from './phonemes.ts';
import type { Accent, PhonemeIds, Spellings } from './phonemes.ts';

export class Phonemizer {
  readonly #thread: LazyThread<typeof PHONEME_OPERATIONS> | undefined;
  readonly #spellings: Spellings;
  readonly #vocab: ReadonlyMap<string, number>;

  constructor({ startWorker }: Pick<Platform, 'startWorker'>, spellings: Spellings, vocab: ReadonlyMap<string, number>) {
    this.#thread = startWorker && new LazyThread(PHONEME_OPERATIONS, () => startWorker(new URL('./phoneme-worker.ts', import.meta.url)));
    this.#spellings = spellings;
    this.#vocab = vocab;
  }

  /** Phonemes of a piece of speakable English; pieces wait for each other in order of the calls. Throws EngineError('internal') when the thread ends. */
  async ids(text: string, accent: Accent = 'en-us'): Promise<PhonemeIds> {
    const ipa = await (this.#thread ? this.#thread.methods.toIpa({ text, accent }) : toIpa(text, accent));
    return fromIpa(ipa, this.#spellings[accent], this.#vocab);
  }

  async close(): Promise<void> {
    await this.#thread?.close();
  }
}
